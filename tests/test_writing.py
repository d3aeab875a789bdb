"""Files appear whole or not at all."""

import os
import subprocess
import sys

import pytest

from manyhands import writing
from manyhands.exceptions import OutputExistsError, ParameterError
from manyhands.writing import refuse_unwritable, write_files


def test_nothing_is_replaced_without_force(tmp_path):
    """A file in the way is named, and nothing is written."""
    write_files(tmp_path, {"a": b"old"})
    with pytest.raises(OutputExistsError, match="already has a"):
        write_files(tmp_path, {"b": b"new", "a": b"new"})
    assert sorted(os.listdir(tmp_path)) == ["a"] and (tmp_path / "a").read_bytes() == b"old"
    write_files(tmp_path, {"a": b"new"}, force=True)
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_folder_that_cannot_be_is_refused_before_the_work(tmp_path):
    """A file in its way, a folder in a file's way, a system that takes no files; nothing is made by asking."""
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    refuse_unwritable(tmp_path, ["file"])
    refuse_unwritable(tmp_path / "new" / "deep", ["file"])
    for path in ("file", "file/sub", "file/sub/deep"):
        with pytest.raises(ParameterError, match="file is not a folder, so nothing can be written to"):
            refuse_unwritable(tmp_path / path)
    with pytest.raises(ParameterError, match="folder is a folder, and cannot be replaced by a file"):
        refuse_unwritable(tmp_path, ["file", "folder"])
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no such folder")
def test_a_folder_in_which_no_file_can_be():
    """Even for whoever may do everything."""
    with pytest.raises(ParameterError, match="Nothing can be written to /proc/none: "):
        refuse_unwritable("/proc/none")


def test_a_failure_leaves_the_old_files_and_no_debris(tmp_path, monkeypatch):
    """When the second file cannot be written, the first one keeps its old content."""
    write_files(tmp_path, {"a": b"old", "b": b"old"})
    write_through = writing._write_through

    def full_disk(path, content):
        if path.name.startswith(".b."):
            raise OSError(28, "No space left on device")
        write_through(path, content)

    monkeypatch.setattr(writing, "_write_through", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_files(tmp_path, {"a": b"new", "b": b"new"}, force=True)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == {"a": b"old", "b": b"old"}


NEW = {"a.csv": b"a" * 100_000, "b.csv": b"b" * 100_000, "c.json": b"c" * 100_000}
OLD = {"a.csv": b"old", "c.json": b"old"}
_KILLED_AT_EVERY_STEP = """
import importlib.util, os, pathlib, signal, sys
# The module alone, without the package: a process that never had threads may fork.
spec = importlib.util.spec_from_file_location("writing", sys.argv[1])
writing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(writing)
left = 0

def dying(call):
    def step(*given):
        global left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*given)
    return step

for n_steps in range(100):
    folder = pathlib.Path(sys.argv[2]) / str(n_steps)
    writing.write_files(folder, OLD)
    child = os.fork()
    if not child:
        left, os.fsync, os.replace = n_steps, dying(os.fsync), dying(os.replace)
        writing.write_files(folder, NEW, force=True)
        os._exit(0)
    if not os.waitpid(child, 0)[1]:
        break
"""


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
def test_a_kill_at_any_step_leaves_whole_files(tmp_path):
    """Each file is the old one or the new one, and the next run takes away what the killed one left."""
    script = f"NEW, OLD = {NEW!r}, {OLD!r}\n{_KILLED_AT_EVERY_STEP}"
    command = [sys.executable, "-", writing.__file__, str(tmp_path)]
    subprocess.run(command, input=script.encode(), check=True, timeout=60)
    n_new, n_temporary = [], []
    for folder in sorted(tmp_path.iterdir(), key=lambda path: int(path.name)):
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        shown = {name: content for name, content in found.items() if not name.startswith(".")}
        assert all(content in (NEW[name], OLD.get(name)) for name, content in shown.items())
        assert shown.keys() >= OLD.keys()
        n_new.append(sum(content == NEW[name] for name, content in shown.items()))
        n_temporary.append(len(found) - len(shown))
        write_files(folder, NEW, force=True)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == NEW
    assert n_new == [0, 0, 0, 0, 1, 2, 3, 3]  # three syncs, three replacements, the sync of the folder, and no kill
    assert n_temporary == [1, 2, 3, 3, 2, 1, 0, 0]


class TestLeftovers:
    @pytest.fixture
    def dead(self):
        """The number of a process that is no more."""
        process = subprocess.Popen([sys.executable, "-S", "-c", ""])
        process.wait()
        return process.pid

    def test_only_those_of_the_same_files_and_of_dead_processes_go(self, tmp_path, dead):
        kept = [
            f".a.{os.getppid()}.tmp",
            f".other.{dead}.tmp",
            ".a.tmp",
            f"a.{dead}.tmp",
            f".a.{dead}.tmp.txt",
            ".a.x.tmp",
        ]
        for name in [*kept, f".a.{dead}.tmp", f".b[1].{dead}.tmp"]:
            (tmp_path / name).write_bytes(b"half")
        old = os.stat(tmp_path).st_mtime - 7200
        for name in (f".a.{dead}.tmp", f".b[1].{dead}.tmp"):
            os.utime(tmp_path / name, (old, old))
        write_files(tmp_path, {"a": b"new", "b[1]": b"new"})
        assert sorted(os.listdir(tmp_path)) == sorted([*kept, "a", "b[1]"])

    def test_a_run_that_fails_takes_nothing_away(self, tmp_path, dead):
        write_files(tmp_path, {"a": b"old"})
        (tmp_path / f".a.{dead}.tmp").write_bytes(b"half")
        with pytest.raises(OutputExistsError):
            write_files(tmp_path, {"a": b"new"})
        assert len(os.listdir(tmp_path)) == 2

    def test_no_process_is_asked_where_asking_would_end_it(self, tmp_path, monkeypatch):
        """On Windows, signal 0 is Ctrl-C: what is an hour old is nobody's any more."""
        monkeypatch.setattr(writing.os, "kill", lambda process, number: pytest.fail(f"{process} was asked"))
        paths = [tmp_path / ".a.1.tmp", tmp_path / ".a.2.tmp"]
        for path in paths:
            path.write_bytes(b"half")
        before = paths[0].stat().st_mtime - 4000
        os.utime(paths[0], (before, before))
        monkeypatch.setattr(writing, "_SIGNALS_ASK", False)
        write_files(tmp_path, {"a": b"new"})
        assert sorted(os.listdir(tmp_path)) == [".a.2.tmp", "a"]
