"""`aggregate` out of core: the bits of the same shards in memory, and runs that were killed go on."""

import errno
import gzip
import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from manyhands import cli, workflows
from manyhands.cli.app import run
from manyhands.exceptions import LimitError
from manyhands.sharded.fits import METHODS
from manyhands.workflows import labels_on_shards, memory_choice, shard_limits, sharded_aggregation

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
LIMIT = "500MB"
FILES = ["labels.csv", "labels.jsonl", "labels.parquet", "workers.csv"]


@pytest.fixture(scope="module")
def table():
    """Eight hundred items of three classes, with repeats and items that nobody labelled."""
    rng = np.random.default_rng(3)
    rows = []
    for item in range(800):
        truth = rng.integers(3)
        for worker in rng.choice(30, rng.integers(1, 6), replace=False):
            label = truth if rng.random() < 0.5 + 0.015 * worker else rng.integers(3)
            rows.append((f"item {item}", f"w{worker}", ["no", "yes", "don't, know"][label]))
    rows += [("item 0", "w0", "no"), ("item 0", "w0", "yes"), ("nobody", "w0", None), ('é"', "w1", "no")]
    return pl.DataFrame(rows, schema=["item", "worker", "label"], orient="row")


@pytest.fixture(scope="module")
def votes(table, tmp_path_factory):
    """The same rows in all formats that are read in parts."""
    folder = tmp_path_factory.mktemp("votes")
    table.write_parquet(folder / "votes.parquet", row_group_size=500)
    table.write_csv(folder / "votes.csv")
    (folder / "votes.csv.gz").write_bytes(gzip.compress((folder / "votes.csv").read_bytes()))
    table.write_ndjson(folder / "votes.jsonl")
    (folder / "parts").mkdir()
    for number, part in enumerate((table[:900], table[900:])):
        part.write_parquet(folder / "parts" / f"part-{number}.parquet")
    return folder


@pytest.fixture
def large(monkeypatch):
    """Let small files need more memory than the limit, so that they go out of core."""
    monkeypatch.setattr(memory_choice, "_PROGRAM", 10**9)


def contents(folder, names=FILES):
    """Bytes of files by name."""
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.parametrize("method", METHODS)
def test_the_bits_are_those_of_the_same_shards_in_memory(votes, tmp_path, monkeypatch, method):
    """All tables byte by byte, for every method."""
    options = {"method": method, "write": ["jsonl", "parquet"]}
    path = [str(votes / "votes.parquet")]
    inside = workflows.aggregate(path, out=tmp_path / "inside", shards="hash", **options)
    monkeypatch.setattr(memory_choice, "_PROGRAM", 10**9)
    outside = workflows.aggregate(path, out=tmp_path / "outside", max_memory=LIMIT, cache=tmp_path / "cache", **options)
    assert (inside.route.kind, outside.route.kind) == ("in memory, on shards", "out of core")
    assert contents(tmp_path / "inside") == contents(tmp_path / "outside")
    assert inside.summary | {"route": None} == outside.summary | {"route": None}
    assert inside.fit.history == outside.fit.history


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", ["votes.csv", "votes.csv.gz", "votes.jsonl", "parts"])
def test_the_format_of_the_file_changes_nothing(votes, tmp_path, name):
    """Each format gives the files of the Parquet file."""
    options = {"method": "dawid-skene", "max_memory": LIMIT, "cache": tmp_path / "cache"}
    for source, out in (("votes.parquet", "one"), (name, "other")):
        workflows.aggregate([str(votes / source)], out=tmp_path / out, **options)
    names = ["labels.csv", "workers.csv"]
    assert contents(tmp_path / "one", names) == contents(tmp_path / "other", names)


@pytest.mark.usefixtures("large")
def test_the_command_says_what_it_does(votes, tmp_path, capsys):
    """The route and why, the cache and its disk; the second run finds the codes."""
    command = ["aggregate", str(votes / "votes.csv"), "-m", "dawid-skene", "-o", str(tmp_path / "out")]
    command += ["--max-memory", LIMIT, "--cache", str(tmp_path / "cache")]
    assert run(command) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    first, second = [line for line in printed.err.splitlines() if not line.startswith("note:")][:2]
    assert first.startswith("Out of core: ") and first.endswith("and the limit is 500 MB.")
    assert second.startswith("The labels were coded into the cache: ") and second.endswith(" kB of disk).")
    assert "Out of core, 1 shard, " in printed.err
    assert run([*command, "--force"]) == 0
    assert "The codes of this file are in the cache: " in capsys.readouterr().err
    assert run([*command, "--force", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["course"]["cache_hit"] is True
    assert found["course"]["passes_replayed"] == 0
    assert found["ledger"]["excluded"] == {"no_label": 1, "duplicate": 1}
    assert list((tmp_path / "cache" / "passes").iterdir()) == []


@pytest.mark.usefixtures("large")
def test_the_cache_of_the_user_is_the_default(votes, tmp_path, monkeypatch):
    """It is beside the downloads."""
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path / "own"))
    found = workflows.aggregate([str(votes / "votes.csv")], method="majority-vote", out=tmp_path, max_memory=LIMIT)
    assert found.course["cache"].startswith(str(tmp_path / "own" / "codes"))


DYING = """
import importlib, os, signal, sys
module, name, function, calls = {module!r}, {name!r}, {function!r}, [{calls}]
owner = importlib.import_module(module)
owner = getattr(owner, name) if name else owner
done = getattr(owner, function)
def die(*given, **more):
    calls[0] -= 1
    if not calls[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return done(*given, **more)
setattr(owner, function, die)
importlib.import_module("manyhands.workflows.memory_choice")._PROGRAM = 10**9
from manyhands.cli.app import run
sys.exit(run(sys.argv[1:]))
"""
KILLED = {  # step -> module, class, function and number of the call during which the process is killed
    "read": ("manyhands.io.stream.spill", "Spill", "add", 1),
    "sort": ("manyhands.sharded.code_writer", "CodeFolderWriter", "add_block", 99),
    "fit": ("manyhands.sharded.pass_log", "PassLog", "_write", 5),
    "output": ("manyhands.writing.staged_files", "StagedFile", "write", 50),
    "placing": ("manyhands.writing.staging", "", "_move", 1),
}


@pytest.fixture(scope="module")
def undisturbed(votes, tmp_path_factory):
    """Files of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_choice, "_PROGRAM", 10**9)
        assert run(command(votes, folder)) == 0
    return contents(folder / "out", [*FILES, "summary.json", "manifest.json"])


def command(votes, folder):
    """A run out of core."""
    options = ["-m", "pooled-dawid-skene", "--write", "jsonl", "--write", "parquet", "--max-memory", LIMIT, "-q"]
    return ["aggregate", str(votes / "votes.parquet"), *options, "-o", f"{folder}/out", "--cache", f"{folder}/cache"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("step", KILLED)
def test_a_killed_run_goes_on(votes, tmp_path, undisturbed, capsys, step):
    """Nothing is under the final names; the same command gives the bytes of an undisturbed run, and says so."""
    module, name, function, calls = KILLED[step]
    code = DYING.format(module=module, name=name, function=function, calls=calls)
    asked = command(votes, tmp_path)
    assert subprocess.run([sys.executable, "-c", code, *asked], capture_output=True).returncode == -9
    out = tmp_path / "out"
    assert not out.exists() or all(name.startswith(".") for name in os.listdir(out))
    assert run([one for one in asked if one != "-q"]) == 0
    printed = capsys.readouterr().err
    assert contents(out, undisturbed) == undisturbed
    assert sorted(os.listdir(out)) == sorted(undisturbed)
    assert ("are in the cache" in printed) == (step not in ("read", "sort"))
    assert ("taken from the record of a run that did not end" in printed) == (step in ("fit", "output", "placing"))
    if step == "fit":
        assert "4 passes were taken from the record" in printed
    left = sorted(os.listdir(tmp_path / "cache"))
    assert len(left) == 2 and "passes" in left and os.listdir(tmp_path / "cache" / "passes") == []


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("step", ["read", "output", "parts"])
def test_a_full_disk_is_one_sentence(votes, tmp_path, capsys, monkeypatch, step):
    """With the file that could not grow; nothing is half-written, and the same command goes on."""
    module, name, function = {
        "read": ("manyhands.io.stream.spill", "Spill", "add"),
        "output": ("manyhands.writing.staged_files", "StagedFile", "write"),
        "parts": ("polars", "DataFrame", "write_parquet"),
    }[step]
    owner = getattr(__import__(module, fromlist=[name]), name)
    where = str(tmp_path / "out" / "labels.parquet") if step == "parts" else "the/file"

    def full(*given, **more):
        if step == "parts":
            raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")
        raise OSError(errno.ENOSPC, "No space left on device", "the/file")

    asked = command(votes, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(owner, function, full)
        assert run(asked) == 3
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note:")]
    assert line.startswith(f"manyhands: The disk is full: {where} cannot grow (No space left on device). Make room")
    assert not (tmp_path / "out").exists()
    assert run(asked) == 0


@pytest.mark.usefixtures("large")
def test_memory_that_the_system_refuses_is_one_sentence(votes, tmp_path, capsys, monkeypatch):
    """What was finished stays, and the same command goes on."""
    asked = command(votes, tmp_path)

    def refuse(*given):
        raise MemoryError("Unable to allocate 8 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(sharded_aggregation, "write_labels", refuse)
        assert run(asked) == 5
    printed = capsys.readouterr().err
    assert "The system gave no more memory to this process (Unable to allocate 8 GiB). The job was to stay" in printed
    assert not (tmp_path / "out").exists()
    assert run([one for one in asked if one != "-q"]) == 0
    assert "taken from the record of a run that did not end; 0 were computed." in capsys.readouterr().err


@pytest.mark.usefixtures("large")
def test_an_interrupted_run_says_how_it_goes_on(votes, tmp_path, capsys, monkeypatch):
    """With the exit code of interruptions."""

    def interrupt(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(sharded_aggregation, "write_labels", interrupt)
    assert run([one for one in command(votes, tmp_path) if one != "-q"]) == 130
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2].endswith("stay in the cache: the same command goes on from here.")
    assert lines[-1] == "manyhands: interrupted; all files that exist are complete"


@pytest.mark.usefixtures("large")
def test_all_questions_are_in_memory_or_refused(votes, tmp_path, capsys):
    """With a limit, before anything is read; without one they are tried in memory."""
    asked = ["aggregate", str(votes / "votes.csv"), "--all-questions", "-m", "majority-vote", "-o", str(tmp_path / "o")]
    assert run([*asked, "--max-memory", LIMIT]) == 5
    assert "does not support --all-questions. Give a file with the rows of one question." in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
    assert run(asked) == 0 and (tmp_path / "o" / "questions.csv").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory as Linux states it")
def test_the_peak_of_the_parent_is_not_counted():
    """A process that was started by a larger one."""
    code = "from manyhands.workflows.step_times import peak_memory; print(peak_memory())"
    fill = np.ones(60_000_000)  # 480 MB
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, preexec_fn=lambda: None)
    assert len(fill) and 0 < int(done.stdout) < 400_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on data of Linux")
def test_a_hard_limit_on_data_is_kept(tmp_path):
    """A million labels under 500 MB, which the system enforces; polars returns what it freed."""
    rng = np.random.default_rng(0)
    item = rng.permutation(1_000_000) // 3
    label = np.where(rng.random(len(item)) < 0.8, item % 2, 1 - item % 2)
    table = pl.DataFrame({"item": item, "worker": rng.integers(0, 200, len(item)), "label": label})
    table.select(pl.format("item-{}", "item").alias("item"), "worker", "label").write_parquet(tmp_path / "v.parquet")
    code = (
        "import resource, runpy, sys\nresource.setrlimit(resource.RLIMIT_DATA, (500_000_000, 500_000_000))\n"
        "runpy.run_module('manyhands', run_name='__main__')"
    )
    asked = ["aggregate", str(tmp_path / "v.parquet"), "-m", "one-coin", "-o", str(tmp_path / "out"), "--json"]
    done = subprocess.run([sys.executable, "-c", code, *asked, "--cache", str(tmp_path / "c")], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["route"] == "out of core" and "400 MB may be used" in found["reason"]
    assert max(found["course"]["peak_bytes"].values()) < 500_000_000


@pytest.mark.parametrize("limited", [False, True])
def test_polars_is_told_to_return_memory_where_it_is_limited(monkeypatch, limited):
    """Before it is loaded, and not where the user has told it otherwise."""
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    cli._return_memory(["aggregate", "v.csv", *(["--max-memory=4GB"] if limited else [])])
    assert os.environ.pop("_RJEM_MALLOC_CONF", None) == ("retain:false" if limited else None)


@pytest.mark.parametrize(
    ("n_workers", "n_shards", "part"),
    [
        (
            10,
            2,
            "2 shard(s) of 4,000,000 labels at a time 623 MB), and 500 MB may be used. Give --max",
        ),
        (10, 2, "823MB or more, or set MANYHANDS_THREADS=1."),
        (100_000, 1, "(tables of 100,000 x 8^2 numbers 717 MB, 1 shard(s) of 8,000,000"),
        (100_000, 1, "MB or more, or merge rare classes."),
        (10, 1, "Give --max-memory 772MB or more."),
    ],
)
def test_the_reason_for_the_least_memory_is_named(monkeypatch, n_workers, n_shards, part):
    """What takes the most decides what is proposed besides a larger limit."""
    monkeypatch.setenv("MANYHANDS_THREADS", "2")
    sizes = {"n_labels": 8_000_000, "n_items": 1_000_000, "n_shards": n_shards}
    labels = SimpleNamespace(worker_ids=range(n_workers), classes=range(8), **sizes)
    with pytest.raises(LimitError) as refused:
        shard_limits.check_memory_of_shards(labels, "dawid-skene", 500_000_000)
    assert part in str(refused.value)


@pytest.mark.usefixtures("large")
def test_a_cache_among_the_files_that_are_read_is_refused(votes, tmp_path, capsys):
    """The next run would take it for labels."""
    parts = shutil.copytree(votes / "parts", tmp_path / "parts")
    asked = ["aggregate", str(parts), "--max-memory", LIMIT, "-o", str(tmp_path / "out"), "--cache", f"{parts}/cache"]
    assert run(asked) == 2
    assert f"The cache {parts}/cache is within {parts}, whose files are read." in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not (parts / "cache").exists()


@pytest.mark.usefixtures("large")
def test_too_little_disk_or_memory_is_said_beforehand(votes, tmp_path, capsys, monkeypatch):
    """With what is needed; nothing is written."""
    asked = command(votes, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shard_limits.shutil, "disk_usage", lambda path: _Usage(1000))
        assert run(asked) == 5
        assert "The codes of these labels need about " in capsys.readouterr().err
    monkeypatch.setattr(shard_limits, "PROGRAM", 600_000_000)
    assert run(asked) == 5
    printed = capsys.readouterr().err
    assert "pooled-dawid-skene on 30 workers and 3 classes needs at least 6" in printed
    assert "Give --max-memory 6" in printed and "MB or more" in printed
    assert run(["aggregate", str(votes / "votes.csv"), "--max-memory", "100MB", "-o", str(tmp_path / "out")]) == 5
    assert "out of core it needs at least 268 MB. Give --max-memory 270MB or more" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ({"item": ["a", None], "worker": ["w", "v"], "label": ["x", "x"]}, "item"),
        ({"item": ["a", "b"], "worker": ["w", None], "label": ["x", "x"]}, "worker"),
        ({"item": ["a", "b"], "worker": ["w", "v"], "label": [None, None]}, "label"),
        ({"item": ["a", "b"], "rating": ["x", "x"]}, "worker"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(tmp_path, capsys, rows, part):
    """As an ordinary run does."""
    pl.DataFrame(rows).cast(pl.String).write_parquet(tmp_path / "bad.parquet")
    asked = ["aggregate", str(tmp_path / "bad.parquet"), "-m", "dawid-skene", "-o", str(tmp_path / "out")]
    assert run([*asked, "--max-memory", LIMIT, "--cache", str(tmp_path / "cache")]) == 3
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(("note:", "Out of core:"))]
    assert part in line
    assert not (tmp_path / "out").exists()
    assert all(path.name == "passes" for path in (tmp_path / "cache").glob("*"))


@pytest.mark.usefixtures("large")
def test_a_damaged_cache_is_named(votes, tmp_path, capsys):
    """With what to do; nothing is written."""
    asked = command(votes, tmp_path)
    assert run(asked) == 0
    (codes,) = (path for path in (tmp_path / "cache").iterdir() if path.name != "passes")
    with open(codes / "codes.bin", "r+b") as file:
        file.write(b"\xff" * 8)
    assert run([*asked, "--force"]) == 3
    assert "codes.bin cannot be used: block" in capsys.readouterr().err


class _Usage:
    """A disk with some bytes free."""

    def __init__(self, free):
        self.free = free


@pytest.mark.usefixtures("large")
def test_the_same_fit_runs_once_at_a_time(votes, tmp_path, capsys, monkeypatch):
    """A second run on the same record of passes is refused with the process that holds it."""
    asked = command(votes, tmp_path)

    def second(*given):
        monkeypatch.undo()
        monkeypatch.setattr(memory_choice, "_PROGRAM", 10**9)
        assert run([*asked[:-3], str(tmp_path / "other"), *asked[-2:]]) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(labels_on_shards, "SourceLabels", second)
    assert run(asked) == 130
    printed = capsys.readouterr().err
    assert "Another run is writing the passes of the same fit to " in printed
    assert f"(process {os.getpid()} on " in printed and "or give another folder with --cache." in printed


def test_a_file_beyond_the_limit_goes_out_of_core_by_itself(tmp_path, capsys):
    """Without any help of a test: three hundred thousand labels under 280 MB, and the same in memory."""
    rng = np.random.default_rng(0)
    item = np.arange(330_000) // 3
    label = np.where(rng.random(len(item)) < 0.8, item % 2, 1 - item % 2)
    table = pl.DataFrame({"item": item, "worker": rng.integers(0, 200, len(item)), "label": label})
    table.select(pl.format("i{}", "item").alias("item"), "worker", "label").write_parquet(tmp_path / "votes.parquet")
    command = ["aggregate", str(tmp_path / "votes.parquet"), "-m", "one-coin", "-q"]
    cached = ["--max-memory", "280MB", "--cache", str(tmp_path / "cache")]
    assert run([*command, "-o", str(tmp_path / "outside"), *cached]) == 0
    assert run([*command, "-o", str(tmp_path / "inside"), "--shards", "hash"]) == 0
    names = ["labels.csv", "workers.csv"]
    assert contents(tmp_path / "outside", names) == contents(tmp_path / "inside", names)
    summary = json.loads((tmp_path / "outside" / "summary.json").read_text())
    assert summary["route"] == "out of core"
    assert summary["n_items"] == 110_000
