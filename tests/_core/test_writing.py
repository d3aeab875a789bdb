"""Files appear complete or not at all, and those of one run together."""

import errno
import json
import os
import subprocess
import sys

import pytest

from manyhands._core import writing
from manyhands._core.writing import claim, refuse_unwritable, verify_folder, write_files
from manyhands.exceptions import OutputExistsError, ParameterError

pytestmark = pytest.mark.fast


def contents(folder):
    """Of all that is there; a folder has none."""
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


def test_nothing_is_replaced_without_force(tmp_path):
    """A file in the way is named, and nothing is written."""
    write_files(tmp_path, {"a": b"old"})
    with pytest.raises(OutputExistsError, match="already has a"):
        write_files(tmp_path, {"b": b"new", "a": b"new"})
    assert contents(tmp_path) == {"a": b"old"}
    write_files(tmp_path, {"a": b"new"}, force=True)
    assert contents(tmp_path) == {"a": b"new"}


def test_a_folder_that_cannot_be_is_refused_before_the_work(tmp_path):
    """A file in its place, a folder in the place of a file, a system without files; the check leaves nothing behind."""
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
    """Even for a superuser."""
    with pytest.raises(ParameterError, match="Nothing can be written to /proc/none: "):
        refuse_unwritable("/proc/none")


def test_a_failure_leaves_the_old_files_and_no_debris(tmp_path, monkeypatch):
    """When the second file cannot be written, the first one keeps its old content; the error names the second."""
    write_files(tmp_path, {"a": b"old", "b": b"old"})
    sync, left = os.fsync, [1]

    def full_disk(descriptor):
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        sync(descriptor)

    monkeypatch.setattr(writing.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space") as caught:
        write_files(tmp_path, {"a": b"new", "b": b"new"}, force=True)
    assert caught.value.filename == str(tmp_path / "b")
    assert contents(tmp_path) == {"a": b"old", "b": b"old"}


def test_a_run_that_fails_leaves_no_folder(tmp_path):
    """Neither the folder that was made for it, nor those above it; a folder that was there stays."""
    (tmp_path / "mine").mkdir()
    with pytest.raises(ZeroDivisionError), claim(tmp_path / "mine" / "a" / "b", ["x"]):
        assert (tmp_path / "mine" / "a" / "b").is_dir()
        raise ZeroDivisionError
    assert os.listdir(tmp_path / "mine") == []


def test_an_interruption_while_files_are_moved_waits(tmp_path, monkeypatch):
    """Ctrl-C between two files of a set leaves the whole new set."""
    write_files(tmp_path, {"a": b"old", "b": b"old"}, manifest=True)
    replace, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(writing.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, {"a": b"new", "b": b"new"}, force=True, manifest=True)
    assert verify_folder(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "manifest.json"]


class TestTemporaryNames:
    """They are not predictable, and no link is followed."""

    @pytest.fixture
    def opened(self, monkeypatch):
        """Every file that is opened for writing, with its flags."""
        found, real = [], os.open

        def watched(path, flags, *rest, **options):
            if flags & os.O_EXCL:
                found.append((os.fspath(path), flags))
            return real(path, flags, *rest, **options)

        monkeypatch.setattr(writing.os, "open", watched)
        return found

    def test_they_differ_from_run_to_run_and_are_new(self, tmp_path, opened):
        for _ in range(2):
            write_files(tmp_path, {"a": b"1", "b": b"2"}, force=True)
        paths = [path for path, _ in opened if path.startswith(str(tmp_path / ".manyhands-"))]
        assert len(paths) == len(set(paths)) == 6  # two files and a journal, twice
        for path, flags in opened:
            if path in paths:
                assert flags & os.O_CREAT
                assert flags & getattr(os, "O_NOFOLLOW", 0) == getattr(os, "O_NOFOLLOW", 0)

    @pytest.mark.skipif(os.name != "posix", reason="permissions are others there")
    def test_only_the_user_may_look_at_what_is_not_ready(self, tmp_path, monkeypatch):
        """The folder of the temporary files is closed to others; the files have the usual permissions."""
        modes, replace = [], os.replace

        def watched(source, target):
            modes.append(os.stat(os.path.dirname(source)).st_mode & 0o777)
            replace(source, target)

        monkeypatch.setattr(writing.os, "replace", watched)
        mask = os.umask(0o027)
        try:
            write_files(tmp_path / "new", {"a": b"1"})
        finally:
            os.umask(mask)
        assert modes == [0o700]
        assert (tmp_path / "new" / "a").stat().st_mode & 0o777 == 0o640

    def test_a_link_under_the_name_of_the_lock_is_not_followed(self, tmp_path):
        (tmp_path / "precious").write_bytes(b"mine")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / ".manyhands.lock").symlink_to(tmp_path / "precious")
        with pytest.raises(ParameterError, match="symbolic link"):
            write_files(tmp_path / "out", {"a": b"1", "b": b"2"})
        assert (tmp_path / "precious").read_bytes() == b"mine"


class TestLinks:
    """In the place of a file or of the folder."""

    @pytest.mark.parametrize("exists", [True, False], ids=["live", "dangling"])
    @pytest.mark.parametrize("manifest", [True, False])
    def test_one_in_the_place_of_a_file_needs_force_and_is_not_followed(self, tmp_path, exists, manifest):
        out, target = tmp_path / "out", tmp_path / "elsewhere"
        out.mkdir()
        if exists:
            target.write_bytes(b"mine")
        (out / "a").symlink_to(target)
        with pytest.raises(OutputExistsError, match=r"already has a.*the symbolic link itself is replaced"):
            write_files(out, {"a": b"new"}, manifest=manifest)
        assert (out / "a").is_symlink() and target.exists() == exists
        write_files(out, {"a": b"new"}, manifest=manifest, force=True)
        assert not (out / "a").is_symlink() and (out / "a").read_bytes() == b"new"
        assert not exists or target.read_bytes() == b"mine"

    def test_a_folder_that_is_a_link_to_nothing_is_refused(self, tmp_path):
        (tmp_path / "out").symlink_to(tmp_path / "nowhere")
        for folder in (tmp_path / "out", tmp_path / "out" / "deep"):
            for force in (False, True):
                with pytest.raises(ParameterError, match="out is a symbolic link that points to nothing"):
                    write_files(folder, {"a": b"new"}, force=force)
        assert not (tmp_path / "nowhere").exists()

    def test_a_folder_that_is_a_link_to_a_folder_is_that_folder(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "out").symlink_to(tmp_path / "real")
        write_files(tmp_path / "out", {"a": b"new"}, manifest=True)
        assert sorted(os.listdir(tmp_path / "real")) == ["a", "manifest.json"] and (tmp_path / "out").is_symlink()


class TestManifest:
    """It records which files belong together."""

    def test_the_same_files_give_the_same_manifest(self, tmp_path):
        for name in ("one", "two"):
            write_files(tmp_path / name, {"a": b"1", "b": b"2"}, manifest=True)
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
        assert manifest["files"]["a"]["size"] == 1 and len(manifest["files"]["a"]["sha256"]) == 64
        assert manifest["files"]["a"]["run"] == manifest["files"]["b"]["run"]
        assert verify_folder(tmp_path / "one") == ["a", "b"]

    def test_what_is_mixed_cut_off_or_missing_is_named(self, tmp_path):
        with pytest.raises(ParameterError, match=r"has no manifest\.json"):
            verify_folder(tmp_path)
        write_files(tmp_path, {"a": b"1", "b": b"2"}, manifest=True)
        write_files(tmp_path, {"a": b"3"}, force=True)
        with pytest.raises(ParameterError, match=r"a is not the file that manifest\.json names"):
            verify_folder(tmp_path)
        (tmp_path / "a").unlink()
        with pytest.raises(ParameterError, match="incomplete: a is missing"):
            verify_folder(tmp_path)
        (tmp_path / "manifest.json").write_text('{"schema": 2, "files": {"../a": {}}}')
        with pytest.raises(ParameterError, match="cannot be read"):
            verify_folder(tmp_path)

    def test_runs_with_other_files_share_a_folder(self, tmp_path):
        """Each is whole; but files of two runs are not one set."""
        write_files(tmp_path, {"a": b"1", "b": b"2"}, manifest=True)
        write_files(tmp_path, {"c": b"3"}, manifest=True)
        assert verify_folder(tmp_path) == ["a", "b", "c"] and verify_folder(tmp_path, ["a", "b"]) == ["a", "b"]
        with pytest.raises(ParameterError, match="of several runs"):
            verify_folder(tmp_path, ["a", "c"])

    def test_files_of_a_replaced_run_are_named_and_belong_to_none(self, tmp_path):
        write_files(tmp_path, {"a": b"1", "b": b"2"}, manifest=True)
        with claim(tmp_path, ["a"], force=True) as output:
            assert output.write({"a": b"3"}) == ["b"]
        assert verify_folder(tmp_path) == ["a"] and (tmp_path / "b").read_bytes() == b"2"

    @pytest.mark.parametrize("content", [b"{}", b"[1]", b"not json", b'{"schema": 1, "files": {}}'])
    def test_a_manifest_of_another_program_is_not_replaced_without_force(self, tmp_path, content):
        (tmp_path / "manifest.json").write_bytes(content)
        with pytest.raises(OutputExistsError, match=r"already has manifest\.json"):
            write_files(tmp_path, {"a": b"1"}, manifest=True)
        assert contents(tmp_path) == {"manifest.json": content}
        write_files(tmp_path, {"a": b"1"}, manifest=True, force=True)
        assert verify_folder(tmp_path) == ["a"]


NEW = {"a.csv": b"a" * 100_000, "b.csv": b"b" * 100_000, "c.json": b"c" * 100_000}
OLD = {"a.csv": b"old", "c.json": b"old"}
_KILLED_AT_EVERY_STEP = """
import os, pathlib, signal, sys
from manyhands._core import writing
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
    folder = pathlib.Path(sys.argv[1]) / str(n_steps)
    writing.write_files(folder, OLD, manifest=True)
    child = os.fork()
    if not child:
        left, os.fsync, os.replace = n_steps, dying(os.fsync), dying(os.replace)
        writing.write_files(folder, NEW, force=True, manifest=True)
        os._exit(0)
    if not os.waitpid(child, 0)[1]:
        break
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder for each step at which a run that replaces files was killed."""
    if os.name != "posix":
        pytest.skip("there is no fork")
    folder = tmp_path_factory.mktemp("killed")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    script = f"NEW, OLD = {NEW!r}, {OLD!r}\n{_KILLED_AT_EVERY_STEP}"
    command = [sys.executable, "-", str(folder)]
    subprocess.run(command, input=script.encode(), check=True, timeout=60, env=environment)
    return sorted(folder.iterdir(), key=lambda path: int(path.name))


def test_a_kill_at_any_step_leaves_a_whole_set_or_one_that_is_known_to_be_mixed(killed):
    """And the next run, even one that is refused, completes the new set or restores the old one."""
    shown, states = [], []
    for folder in killed:
        found = {name: content for name, content in contents(folder).items() if not name.startswith(".")}
        manifest = json.loads(found.pop("manifest.json"))["files"]
        assert all(content in (NEW[name], OLD.get(name)) for name, content in found.items())
        shown.append(sum(content == NEW[name] for name, content in found.items()))
        try:
            verify_folder(folder)
            states.append("new" if manifest.keys() == NEW.keys() else "old")
            assert found == (NEW if states[-1] == "new" else OLD)
        except ParameterError as error:
            states.append("mixed")
            assert "a run was killed while it wrote" in str(error)
        with pytest.raises(OutputExistsError):
            write_files(folder, NEW, manifest=True)
        repaired = NEW if states[-1] in ("new", "mixed") else OLD
        assert verify_folder(folder) == sorted(repaired)
        assert {k: v for k, v in contents(folder).items() if k != "manifest.json"} == repaired  # and no debris
    # Three files, the manifest, the journal and their folder are synced; four are moved; the folder is synced.
    assert shown == [0] * 7 + [1, 2, 3, 3, 3]
    assert states == ["old"] * 7 + ["mixed"] * 3 + ["new"] * 2


class TestLeftovers:
    """Of killed runs."""

    def test_those_of_the_same_files_go_and_others_stay(self, tmp_path):
        random = "0123456789abcdef"
        gone = [f".manyhands-{random}.tmp"]
        kept = [f".other-{random}.tmp", ".manyhands-.tmp", f"manyhands-{random}.tmp", f".manyhands-{random}.tmp.txt"]
        for name in [*gone, *kept]:
            (tmp_path / name).mkdir()
            (tmp_path / name / "a").write_bytes(b"half")
        (tmp_path / f".manyhands-{'0' * 16}.tmp").write_bytes(b"a file")
        write_files(tmp_path, {"a": b"new", "b": b"new"})
        assert sorted(os.listdir(tmp_path)) == sorted([*kept, f".manyhands-{'0' * 16}.tmp", "a", "b"])

    def test_those_of_a_single_file_go_with_its_next_run(self, tmp_path):
        leftover = tmp_path / ".a.csv-0123456789abcdef.tmp"
        leftover.mkdir()
        write_files(tmp_path, {"b.csv": b"new"})
        assert leftover.exists()
        write_files(tmp_path, {"a.csv": b"new"})
        assert not leftover.exists()

    @pytest.mark.parametrize("damage", ["journal", "file", "moved"])
    def test_a_set_that_cannot_be_completed_is_not(self, tmp_path, damage):
        """A journal that is cut off, a file that is not what it was, one that was changed since."""
        aside = tmp_path / ".manyhands-0123456789abcdef.tmp"
        aside.mkdir()
        (aside / "b").write_bytes(b"changed" if damage == "file" else b"new")
        (tmp_path / "a").write_bytes(b"changed" if damage == "moved" else b"new")
        journal = json.dumps({name: writing.checksum(b"new") for name in ("a", "b")})
        (aside / ".journal").write_text(journal[:20] if damage == "journal" else journal)
        with pytest.raises(OutputExistsError):
            write_files(tmp_path, {"a": b"x", "b": b"x"})
        assert os.listdir(tmp_path) == ["a"]

    def test_a_link_is_not_a_leftover(self, tmp_path):
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious" / "a").write_bytes(b"mine")
        out = tmp_path / "out"
        out.mkdir()
        (out / ".manyhands-0123456789abcdef.tmp").symlink_to(tmp_path / "precious")
        write_files(out, {"a": b"new", "b": b"new"})
        assert (tmp_path / "precious" / "a").read_bytes() == b"mine"
