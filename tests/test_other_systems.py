"""What can be checked of Windows and macOS without them: names, encodings, locks, processes, memory, simulated here.

That the package runs there is not shown by this; docs/maintainers.md says what was not run.
"""

import ctypes
import fcntl
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path, PureWindowsPath
from types import ModuleType, SimpleNamespace

import pytest

import manyhands
from manyhands._core import system
from manyhands.exceptions import OutputExistsError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the other systems are simulated on POSIX")

ROOT = Path(__file__).parents[1]
SOURCE = Path(manyhands.__file__).parent
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
# Names of workers and items that no file may be called after.
ODD = ["CON", "a:b", "a/b", "Ann", "ann", "x.", "Zoë", "名前", "a*?", "<b>"]


def problems_of(names):
    """What Windows and file systems that ignore case would not take in these relative paths."""
    found = [f"{name} differs in case alone" for name, n in Counter(name.casefold() for name in names).items() if n > 1]
    for name in names:
        for part in Path(name).parts:
            if re.search(r'[<>:"|?*\\\x00-\x1f]', part) or part.endswith((" ", ".")):
                found.append(f"{name} has a character that Windows refuses")
            if part.partition(".")[0].casefold() in RESERVED:
                found.append(f"{name} is reserved")
        if len(name) > 180:  # of the 260 characters that a path may have
            found.append(f"{name} is long")
    return found


def test_every_kind_of_name_is_refused():
    assert problems_of(["a/Labels.csv", "a/labels.csv"]) == ["a/labels.csv differs in case alone"]
    assert problems_of(["nul.csv"]) == ["nul.csv is reserved"] and problems_of(["a:b", "c."])
    assert problems_of(["x" * 181]) and problems_of(["results/rows/a.jsonl", "README.md"]) == []


def test_the_source_tree_has_names_that_every_system_takes():
    files = [
        path.relative_to(ROOT).as_posix() for name in ("src", "tests", "docs") for path in (ROOT / name).rglob("*")
    ]
    assert len(files) > 500 and problems_of([name for name in files if "__pycache__" not in name]) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A function: the files that a crowd with odd names becomes, in a locale; text in another encoding is an error."""

    def written(name, **variables):
        folder = tmp_path_factory.mktemp(name)
        rows = [f"{item},{worker},{'Zoë' if n % 3 else 'CON'}" for item in ODD for n, worker in enumerate(ODD)]
        (folder / "votes.csv").write_text("item,worker,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
        base = {key: value for key, value in os.environ.items() if key not in ("LANG", "PYTHONUTF8")}
        for command in (
            ("aggregate", "votes.csv", "-o", "out", "--write", "jsonl", "--write", "training"),
            ("report", "votes.csv", "-o", "page.html"),
            ("demo", "-o", "demo"),
        ):
            strict = ("-X", "warn_default_encoding", "-W", "error::EncodingWarning")
            done = subprocess.run(
                [sys.executable, *strict, "-m", "manyhands", *command],
                cwd=folder, env=base | variables, capture_output=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
        return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}

    return written


LOCALES = {"utf-8": {"PYTHONUTF8": "1"}, "ascii": {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}}


@pytest.fixture(scope="module")
def in_locales(written):
    return {name: written(name, **variables, SOURCE_DATE_EPOCH="1700000000") for name, variables in LOCALES.items()}


@pytest.mark.slow
def test_files_are_named_after_nothing_in_the_data(in_locales):
    names = list(in_locales["utf-8"])
    assert "out/labels.csv" in names and problems_of(names) == []


@pytest.mark.slow
def test_the_locale_changes_no_byte(in_locales):
    """Where text is ASCII by default, as where it is UTF-8: every file names its encoding when it is opened."""
    tables = [name for name in in_locales["utf-8"] if name.endswith((".csv", ".jsonl"))]
    assert len(tables) > 5
    for name in tables:
        assert in_locales["ascii"][name].read_bytes() == in_locales["utf-8"][name].read_bytes(), name
    assert "名前" in in_locales["ascii"]["out/workers.csv"].read_text(encoding="utf-8")


class WindowsOs:
    """The module `os` as Windows has it: no `geteuid`, no `O_DIRECTORY`, and open files that cannot be replaced."""

    name = "nt"

    def __getattr__(self, name):
        if name in ("geteuid", "getuid", "O_DIRECTORY", "O_NOFOLLOW", "fork", "sysconf"):
            raise AttributeError(name)
        return getattr(os, name)

    def replace(self, source, target):
        for path in (source, target):
            refuse_open(path)
        os.replace(source, target)


def refuse_open(path):
    """Raise the error of Windows if this process has the file open."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("there is no list of open files")
    for descriptor in descriptors.iterdir():
        try:
            if os.path.realpath(descriptor) == os.path.realpath(path):
                raise PermissionError(13, "The process cannot access the file", str(path))
        except FileNotFoundError:
            continue


def lock_as_windows(descriptor, mode, n_bytes):
    """`msvcrt.locking`: one byte at the place of the descriptor, or PermissionError."""
    assert mode == 2 and n_bytes == 1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None


@pytest.fixture
def windows_writing(monkeypatch):
    """The module that writes files, as Windows would run it."""
    msvcrt = ModuleType("msvcrt")
    msvcrt.locking, msvcrt.LK_NBLCK = lock_as_windows, 2
    spec = importlib.util.spec_from_file_location("writing_on_windows", SOURCE / "_core" / "writing.py")
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as while_it_loads:
        while_it_loads.setitem(sys.modules, "os", WindowsOs())
        while_it_loads.setitem(sys.modules, "msvcrt", msvcrt)
        while_it_loads.setitem(sys.modules, "fcntl", None)  # importing it is an error
        while_it_loads.setitem(sys.modules, spec.name, module)
        while_it_loads.setattr(sys, "platform", "win32")
        spec.loader.exec_module(module)
    monkeypatch.setattr(module, "sys", SimpleNamespace(platform="win32"))
    unlink = Path.unlink

    def unlink_as_windows(path, missing_ok=False):
        refuse_open(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_as_windows)
    return module


def test_files_are_written_whole_and_locked_on_windows(windows_writing, tmp_path):
    """Without `fcntl`, folders that can be flushed and open files that can be moved."""
    folder = tmp_path / "out"
    windows_writing.write_files(folder, {"a.csv": b"1", "b.csv": b"2"}, manifest=True)
    with pytest.raises(OutputExistsError):
        windows_writing.write_files(folder, {"a.csv": b"3"}, manifest=True)
    (folder / ".manyhands-0123456789abcdef.tmp").mkdir()  # left by a run that was ended; there is no `geteuid`
    windows_writing.write_files(folder, {"a.csv": b"3", "b.csv": b"4"}, force=True, manifest=True)
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == {"a.csv": b"3", "b.csv": b"4"}
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert windows_writing.verify_folder(folder) == ["a.csv", "b.csv"]


def test_two_runs_exclude_each_other_on_windows(windows_writing, tmp_path):
    with (
        windows_writing.claim(tmp_path, ["a.csv"]),
        pytest.raises(OutputExistsError, match="Another run is writing"),
        windows_writing.claim(tmp_path, ["b.csv"]),
    ):
        pass
    with windows_writing.claim(tmp_path, ["b.csv"]):
        pass


def test_processes_are_spawned_where_none_can_be_forked(monkeypatch):
    """Windows has no server of forks; what a process is given can then be pickled."""
    from manyhands.reproduce import runner

    monkeypatch.setattr(runner, "get_all_start_methods", lambda: ["spawn"])
    assert runner._context().get_start_method() == "spawn"


def test_memory_is_asked_of_windows(monkeypatch):
    """The kernel's own function fills a structure; there is no /proc."""

    def fill(reference):
        status = reference._obj  # MEMORYSTATUSEX: length and load, 32 bits each, then seven fields of 64 bits
        assert ctypes.sizeof(status) == 64 and status[0] & 0xFFFFFFFF == 64
        status[1], status[2] = 16 << 30, 5 << 30
        return 1

    windll = SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=fill))
    monkeypatch.setattr(ctypes, "windll", windll, raising=False)
    monkeypatch.setattr(system.sys, "platform", "win32")
    assert system.physical_bytes() == 16 << 30
    monkeypatch.setattr(system, "_group_limits", list)
    monkeypatch.setattr(system, "_process_limits", list)
    assert system.available_bytes() == 5 << 30


def test_the_peak_of_memory_on_macos_is_in_bytes(monkeypatch):
    """Linux reports kilobytes, macOS bytes, and it has no /proc."""
    import resource

    monkeypatch.setattr(system.Path, "exists", lambda path: False)
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=123_000))
    monkeypatch.setattr(system.sys, "platform", "darwin")
    assert system.peak_bytes() == 123_000
    monkeypatch.setattr(system.sys, "platform", "linux")
    assert system.peak_bytes() == 123_000 * 1024


def test_a_drive_of_windows_is_no_address(monkeypatch):
    """C: is an address such as s3: elsewhere."""
    from manyhands.spark import remote

    assert remote.local_path("C:/labels") is None
    monkeypatch.setattr(remote, "os", SimpleNamespace(name="nt"))
    monkeypatch.setattr(remote, "Path", PureWindowsPath)
    assert remote.local_path("C:/labels") == PureWindowsPath("C:/labels")
