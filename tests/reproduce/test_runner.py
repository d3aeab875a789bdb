"""Runs: in processes, resumed after a kill, the same whatever the number of processes."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from manyhands._core.progress import listening
from manyhands.exceptions import ManyhandsError, OutputExistsError, ParameterError
from manyhands.reproduce import load_table, runner
from manyhands.reproduce.cells import cells_of, run_cell
from manyhands.reproduce.records import appending, read_records
from manyhands.reproduce.tables import Row
from measuring import CROWD, SKENE, TOML, VOTE, dies, small_table, stillborn, tells_threads

QUICK = {"quick": True, "jobs": 1}
TWO_CLASSES_ONLY = Row("KOS", "kos")


def figures(records):
    """What must not depend on how cells were run."""
    return {
        key: {name: value for name, value in record["metrics"].items() if name != "fit_seconds"}
        for key, record in records.by_key.items()
    }


def test_every_cell_is_a_complete_row(tmp_path):
    """Values, seconds, memory, seed, versions, parameters, commit, machine; and the work is reported."""
    reports = []
    with listening(lambda *result: reports.append(result)):
        found = runner.run(small_table(), tmp_path, **QUICK)
    lines = [json.loads(line) for line in (tmp_path / "own-small.jsonl").read_text().splitlines()]
    assert len(lines) == len(found.by_key) == 4 and found.n_torn == 0
    asked = "key table dataset row seed quick metrics seconds peak_mb parameters chosen versions commit machine"
    assert set(asked.split()) <= set(lines[0])
    assert lines[0]["table"] == "own/small" and {line["seed"] for line in lines} == {501000, 501001}
    assert all(line["quick"] and 0 < line["metrics"]["accuracy"] <= 1 and line["seconds"] > 0 for line in lines)
    assert sys.platform != "linux" or all(10 < line["peak_mb"] < 2000 for line in lines)
    assert reports == [(done, 4, "own/small") for done in range(5)]


def test_the_number_of_processes_does_not_show(tmp_path):
    """Nor does whether cells share one."""
    table = small_table([SKENE], seeds=2)
    one = runner.run(table, tmp_path / "one", jobs=1)
    two = runner.run(table, tmp_path / "two", jobs=2)
    assert figures(one) == figures(two) and len(one.by_key) == 2


def test_a_finished_run_has_nothing_to_do_and_a_changed_table_little(tmp_path, monkeypatch):
    """Only what is not there is measured."""
    runner.run(small_table([VOTE]), tmp_path, **QUICK)
    before = (tmp_path / "own-small.jsonl").read_bytes()
    started = []
    real = runner._start
    monkeypatch.setattr(runner, "_start", lambda cell, data: started.append(str(cell)) or real(cell, data))
    runner.run(small_table([VOTE]), tmp_path, **QUICK)
    assert (tmp_path / "own-small.jsonl").read_bytes() == before and started == []
    runner.run(small_table([VOTE, SKENE]), tmp_path, seeds=1, **QUICK)
    assert started == ["D&S on crowd, seed 501000"]


def test_a_failing_cell_is_recorded_and_the_rest_goes_on(tmp_path):
    """It is tried again only when asked for."""
    three = replace(CROWD, arguments=CROWD.arguments | {"n_classes": 3})
    table = small_table([TWO_CLASSES_ONLY, VOTE], [three])
    path = tmp_path / "own-small.jsonl"
    runner.run(table, tmp_path, seeds=1, **QUICK)
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["error"].startswith("AnnotationError: KOS is for two classes") and "\n" not in first["error"]
    assert "metrics" in second and "metrics" not in first
    runner.run(table, tmp_path, seeds=1, **QUICK)
    assert len(path.read_text().splitlines()) == 2
    runner.run(table, tmp_path, seeds=1, retry=True, **QUICK)
    assert len(path.read_text().splitlines()) == 3


def test_a_process_that_dies_is_a_failed_cell(tmp_path, monkeypatch):
    """Such as one that used all memory."""
    monkeypatch.setattr(runner, "_work", dies)
    found = runner.run(small_table([VOTE], seeds=2), tmp_path, jobs=1)
    errors = [record["error"] for record in found.by_key.values()]
    assert errors == ["Its process was ended by SIGKILL, perhaps for lack of memory."] * 2


def test_a_process_that_does_not_come_up_is_nobodys_failure(tmp_path, monkeypatch):
    """Nothing is recorded against the cell."""
    monkeypatch.setattr(runner, "_work", stillborn)
    with pytest.raises(ManyhandsError, match=r"did not start: it ended with code 3.*__main__"):
        runner.run(small_table([VOTE]), tmp_path, jobs=1)
    assert read_records(tmp_path / "own-small.jsonl").by_key == {}


def test_each_process_has_one_thread_and_one_cell(tmp_path, monkeypatch):
    """And the environment of the caller is unchanged."""
    monkeypatch.setattr(runner, "_work", tells_threads)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    found = [record["metrics"] for record in runner.run(small_table([VOTE]), tmp_path, jobs=1).by_key.values()]
    assert {(one["libraries"], one["kernels"]) for one in found} == {(1, 1)}
    assert len({one["pid"] for one in found}) == 2
    assert os.environ["OMP_NUM_THREADS"] == "7" and "OPENBLAS_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(("free", "at_once"), [(100 << 20, 1), (1 << 50, 3), (None, 3)])
def test_memory_limits_how_many_run_at_once(monkeypatch, free, at_once):
    """One always runs; as many as were asked for run if there is memory, or the system does not report it."""
    monkeypatch.setattr(runner, "available_bytes", lambda: free)
    running, most = set(), []

    def start(cell, data):
        running.add(cell.key)
        most.append(len(running))
        return cell.key, runner._Child(NoProcess(), cell)

    monkeypatch.setattr(runner, "_start", start)
    monkeypatch.setattr(runner.connections, "wait", lambda lines: lines[:1])
    monkeypatch.setattr(runner, "_receive", lambda line, worker: {"metrics": {}})
    monkeypatch.setattr(runner, "_reuse_or_end", lambda line, workers, *_: (workers.pop(line), running.discard(line)))
    cells = cells_of(small_table(seeds=3))
    runner._run_all(cells, lambda record: None, 3, 500)
    assert max(most) == at_once and len(most) == 6


class NoProcess:
    """Stands where a process would."""


def test_two_runs_at_once_are_refused(tmp_path):
    """On one file; a process that is dead holds nothing, as the resumed runs below show."""
    with (
        appending(tmp_path / "own-small.jsonl"),
        pytest.raises(OutputExistsError, match="Another run"),
    ):
        runner.run(small_table(), tmp_path, **QUICK)
    with pytest.raises(ParameterError, match="`jobs=` is 0"):
        runner.run(small_table(), tmp_path, jobs=0)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGINT"])
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which processes are there")
def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path, ending):
    """What is there stays; the rest is measured; no process is left behind; figures are those of a run in one go."""
    (tmp_path / "own").mkdir()
    toml = tmp_path / "own" / "small.toml"
    toml.write_text(TOML.rpartition("[[rows]]")[0])  # one row, three seeds
    path = tmp_path / "out" / "own-small.jsonl"
    process = start_command_that_sleeps(tmp_path, "reproduce", str(toml), "-o", str(path.parent), "--jobs", "1")
    children = children_of(process.pid)  # one builds data sets, one measures a cell
    assert len(children) == 2
    for child in children:
        os.kill(child, signal.SIGINT)  # a terminal sends Ctrl-C to all processes; only the first one acts on it
    time.sleep(0.3)
    assert children_of(process.pid) == children
    os.killpg(process.pid, signal.SIGINT) if ending == "SIGINT" else process.kill()
    err = process.communicate(timeout=20)[1].decode()
    assert process.returncode == (-9 if ending == "SIGKILL" else 130)
    assert "Traceback" not in err and ("the same command resumes from there" in err) == (ending == "SIGINT")
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    before = path.read_bytes()
    assert before.count(b"\n") == 1
    path.write_bytes(before + b'{"key": "cut o')  # as a kill in the middle of a line would leave it
    found = runner.run(load_table(toml), path.parent, jobs=1)
    assert len(found.by_key) == 3 and found.n_torn == 1
    assert path.read_bytes().startswith(before) and path.read_bytes().count(b"\n") == 4
    by_hand = {cell.key: run_cell(cell).metrics["accuracy"] for cell in cells_of(load_table(toml))}
    assert {key: value["accuracy"] for key, value in figures(found).items()} == by_hand


def start_command_that_sleeps(folder, *arguments):
    """A command in a process group of its own, in the middle of its second cell."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "ASLEEP": str(folder / "asleep")}
    program = "import sys, measuring; measuring.command_that_sleeps(*sys.argv[1:])"
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    wait_for((folder / "asleep").exists)
    return process


def children_of(pid):
    """The processes that cells run in (on Linux): they are forked from one that `pid` started."""
    (server,) = (child for child, command in forked_from(pid).items() if b"forkserver" in command)
    return list(forked_from(server))


def forked_from(pid):
    """Process -> command line of the children of a process."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found[int(entry.name)] = (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
    return found


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
