"""One writer at a time, and no lock outlives the process that holds it."""

import errno
import json
import os
import platform
import signal
import subprocess
import sys
import time

import pytest

from manyhands._core import writing
from manyhands._core.writing import claim, verify_folder, write_files
from manyhands.exceptions import OutputExistsError, ParameterError

pytestmark = pytest.mark.fast

_HOLD = """
import sys, time
from manyhands._core.writing import claim
with claim(sys.argv[1], ["a", "b"]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["locks of the system", "no locks"])
def either_lock(request, monkeypatch):
    """The file system with locks, and one that has none."""
    if request.param == "no locks":

        def none(descriptor):
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(writing, "_try_lock", none)
    return request.param


def test_the_second_is_refused_and_the_first_goes_on(tmp_path, either_lock):
    """The message names the process that writes; nothing is left when both are done."""
    with claim(tmp_path / "out", ["a", "b"]) as output:
        for force in (False, True):
            with (
                pytest.raises(OutputExistsError, match=rf"Another run is writing .*out \(process {os.getpid()} on "),
                claim(tmp_path / "out", ["a", "c"], force=force),
            ):
                pytest.fail("both write")
        output.write({"a": b"1", "b": b"2"})
    assert verify_folder(tmp_path / "out") == ["a", "b"]
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "b", "manifest.json"]


def test_single_files_of_one_folder_do_not_wait_for_each_other(tmp_path, either_lock):
    """But two writers of the same file do."""
    with claim(tmp_path, ["a.csv"], manifest=False) as one, claim(tmp_path, ["b.csv"], manifest=False) as two:
        with (
            pytest.raises(OutputExistsError, match=r"Another run is writing .*a\.csv"),
            claim(tmp_path, ["a.csv"], manifest=False),
        ):
            pytest.fail("both write")
        one.write({"a.csv": b"1"})
        two.write({"b.csv": b"2"})
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]


def test_a_file_with_the_longest_name(tmp_path):
    """Its lock and its temporary files have shorter ones."""
    name = "x" * 251 + ".csv"
    write_files(tmp_path, {name: b"1"})
    assert os.listdir(tmp_path) == [name]


def test_a_name_in_the_way_appears_during_the_work(tmp_path):
    """What was not there when the run began is not replaced at its end."""
    with claim(tmp_path, ["a"]) as output:
        (tmp_path / "a").write_bytes(b"mine")
        with pytest.raises(OutputExistsError, match="already has a"):
            output.write({"a": b"new"})
    assert (tmp_path / "a").read_bytes() == b"mine"


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    """Its file is still there, and the next run takes it and removes it."""
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(out)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n" or process.stdout.readline()
        with pytest.raises(OutputExistsError, match=f"process {process.pid} on"), claim(out, ["a"]):
            pytest.fail("both write")
        process.kill()
    assert os.listdir(out) == [".manyhands.lock"]
    write_files(out, {"a": b"1", "b": b"2"})
    assert sorted(os.listdir(out)) == ["a", "b"]


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed there")
def test_a_lock_that_its_last_holder_removed_is_no_lock(tmp_path, monkeypatch):
    """A process that opened the file before it was removed tries again with the present one."""
    try_lock, calls = writing._try_lock, []

    def after_removal(descriptor):
        if not calls:
            (tmp_path / ".manyhands.lock").unlink()
        calls.append(descriptor)
        return try_lock(descriptor)

    monkeypatch.setattr(writing, "_try_lock", after_removal)
    with claim(tmp_path, ["a"]), pytest.raises(OutputExistsError), claim(tmp_path, ["b"]):
        pytest.fail("both write")
    assert len(calls) == 3


class TestWithoutLocks:
    """Where the existence of the file is the lock, it counts for as long as its process lives."""

    @pytest.fixture(autouse=True)
    def no_locks(self, monkeypatch):
        def none(descriptor):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

        monkeypatch.setattr(writing, "_try_lock", none)

    def leave(self, folder, **owner):
        owner = {"pid": os.getpid(), "host": platform.node(), "start": "2000-01-01 00:00:00"} | owner
        path = folder / ".manyhands.lock.pid"
        path.write_text(json.dumps(owner))
        return path

    @pytest.mark.skipif(os.name != "posix", reason="no process can be asked for there")
    def test_of_a_dead_process(self, tmp_path):
        process = subprocess.Popen([sys.executable, "-S", "-c", ""])
        process.wait()
        self.leave(tmp_path, pid=process.pid)
        write_files(tmp_path, {"a": b"1", "b": b"2"})
        assert sorted(os.listdir(tmp_path)) == ["a", "b"]

    @pytest.mark.parametrize("owner", [{}, {"host": "another.example", "pid": 1}, {"pid": "x"}])
    def test_of_a_process_that_lives_or_cannot_be_asked_for(self, tmp_path, owner):
        path = self.leave(tmp_path, **owner)
        with pytest.raises(OutputExistsError, match="Another run is writing"), claim(tmp_path, ["a"]):
            pytest.fail("both write")
        if owner:  # after a day it is taken for dead
            old = time.time() - 100_000
            os.utime(path, (old, old))
            write_files(tmp_path, {"a": b"1", "b": b"2"})
            assert sorted(os.listdir(tmp_path)) == ["a", "b"]

    def test_no_process_is_asked_where_asking_would_end_it(self, tmp_path, monkeypatch):
        """On Windows, signal 0 is Ctrl-C."""
        monkeypatch.setattr(writing.os, "kill", lambda process, number: pytest.fail(f"{process} was asked"))
        monkeypatch.setattr(writing, "_SIGNALS_ASK", False)
        self.leave(tmp_path)
        with pytest.raises(OutputExistsError), claim(tmp_path, ["a"]):
            pytest.fail("both write")


_WRITE_MANY = """
import sys
from manyhands.exceptions import OutputExistsError
from manyhands._core.writing import write_files
folder, letter, n = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for k in range(n):
    files = {name: letter * (1000 + k) for name in ("a", "b", "c")}
    write_files(folder, files, force=True, manifest=True)
"""


def _start(folder, letter, n):
    command = [sys.executable, "-c", _WRITE_MANY, str(folder), letter, str(n)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _let_go(*processes):
    for process in processes:
        while process.stdout.readline() != b"ready\n":
            pass
    for process in processes:
        process.stdin.write(b"\n")
        process.stdin.flush()


def test_writers_that_take_turns_leave_one_set(tmp_path):
    """Two processes that replace the same files again and again."""
    processes = [_start(tmp_path / "out", letter, 20) for letter in "xy"]
    _let_go(*processes)
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert verify_folder(tmp_path / "out") == ["a", "b", "c"]
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "b", "c", "manifest.json"]
    assert len({(tmp_path / "out" / name).read_bytes() for name in "abc"}) == 1


def _kill_while_writing(out, delay):
    """Kill a process that replaces files; the set that it leaves is whole, or known not to be."""
    process = _start(out, "z", 1_000_000)
    _let_go(process)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    found = {(out / name).read_bytes() for name in "abc"}
    try:
        verify_folder(out)
    except ParameterError as error:
        assert "a run was killed while it wrote" in str(error)
    else:
        assert len(found) == 1


def _check_kills(tmp_path, delays):
    out = tmp_path / "out"
    write_files(out, dict.fromkeys("abc", b"first"), manifest=True)
    for delay in delays:
        _kill_while_writing(out, delay)
        with claim(out, ["other"]):  # whatever comes next completes the set
            pass
        assert verify_folder(out) == ["a", "b", "c"]
        assert len({(out / name).read_bytes() for name in "abc"}) == 1
        assert sorted(os.listdir(out)) == ["a", "b", "c", "manifest.json"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed there")
def test_real_kills_leave_what_the_next_run_repairs(tmp_path):
    """At three random moments."""
    _check_kills(tmp_path, (0.05, 0.0613, 0.0727))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed there")
def test_many_real_kills_leave_what_the_next_run_repairs(tmp_path):
    """At twenty random moments."""
    _check_kills(tmp_path, [0.02 + 0.00717 * k for k in range(20)])
