"""Files that are written piece by piece appear with the others of their run."""

import errno
import hashlib
import os
import subprocess
import sys

import pytest

from manyhands._core.writing import claim, verify_folder, write_files
from manyhands.exceptions import OutputExistsError, ParameterError

pytestmark = pytest.mark.fast

NAMES = ["large.csv", "small.json"]


def write_both(folder, pieces, small, **options):
    """Write a large file in pieces and a small one with it."""
    with claim(folder, NAMES, **options) as output, output.stage() as staged:
        with staged.create("large.csv") as file:
            for piece in pieces:
                file.write(piece)
        assert not (folder / "large.csv").exists() or options.get("force")
        return output.write({"small.json": small}, staged)


def names(folder):
    """Of everything that is there, hidden files too."""
    return sorted(os.listdir(folder))


def test_they_appear_whole_with_their_manifest(tmp_path):
    """Size and checksum are those of all pieces."""
    write_both(tmp_path, [b"a,b\n", b"", b"1,2\n" * 1000], b"{}")
    assert (tmp_path / "large.csv").read_bytes() == b"a,b\n" + b"1,2\n" * 1000
    assert names(tmp_path) == ["large.csv", "manifest.json", "small.json"]
    assert sorted(verify_folder(tmp_path)) == NAMES
    before = (tmp_path / "manifest.json").read_bytes()
    write_files(tmp_path, {"large.csv": b"a,b\n" + b"1,2\n" * 1000, "small.json": b"{}"}, manifest=True, force=True)
    assert (tmp_path / "manifest.json").read_bytes() == before
    with open(tmp_path / "large.csv", "ab") as file:
        file.write(b"x")
    with pytest.raises(ParameterError, match=r"is not the file that manifest\.json names"):
        verify_folder(tmp_path)


def test_a_file_of_a_library_is_adopted(tmp_path):
    """It is part of the set as it lies there."""
    with claim(tmp_path, ["table.bin"]) as output, output.stage() as staged:
        (staged.path / "table.bin").write_bytes(b"x" * 10)
        staged.adopt("table.bin")
        assert staged.digests["table.bin"] == (10, hashlib.sha256(b"x" * 10).hexdigest())
        output.write({}, staged)
    assert verify_folder(tmp_path) == ["table.bin"]


def test_existing_files_are_replaced_with_force_only(tmp_path):
    """Whether they are large or small."""
    write_both(tmp_path, [b"old"], b"old")
    with pytest.raises(OutputExistsError, match=r"already has large\.csv"):
        write_both(tmp_path, [b"new"], b"new")
    write_both(tmp_path, [b"new"], b"new", force=True)
    assert (tmp_path / "large.csv").read_bytes() == b"new"


@pytest.mark.parametrize("where", ["in the block", "in write", "at the end"])
def test_a_failure_leaves_nothing(tmp_path, monkeypatch, where):
    """A full disk is named with the final file; the old set stays."""
    write_both(tmp_path, [b"old"], b"old")
    if where == "at the end":

        def full(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(OSError) as caught,
        claim(tmp_path, NAMES, force=True) as output,
        output.stage() as staged,
        staged.create("large.csv") as file,
    ):
        file.write(b"new")
        if where == "in the block":
            raise OSError(errno.ENOSPC, "No space left on device", "another file")
        if where == "in write":

            class Full:
                """A file without space."""

                def write(self, content):
                    raise OSError(errno.ENOSPC, "No space left on device")

            file._file = Full()
            file.write(b"more")
    assert caught.value.filename == ("another file" if where == "in the block" else str(tmp_path / "large.csv"))
    assert names(tmp_path) == ["large.csv", "manifest.json", "small.json"]
    assert (tmp_path / "large.csv").read_bytes() == b"old"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_killed_run_leaves_nothing_under_the_final_names(tmp_path):
    """The next run removes what it left."""
    code = (
        "import os, signal, sys\nfrom manyhands._core.writing import claim\n"
        "with claim(sys.argv[1], ['large.csv']) as output, output.stage() as staged, staged.create('large.csv') as f:\n"
        "    f.write(b'half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    assert "large.csv" not in names(tmp_path)
    assert any(name.endswith(".tmp") for name in names(tmp_path))
    write_both(tmp_path, [b"whole"], b"{}")
    assert names(tmp_path) == ["large.csv", "manifest.json", "small.json"]
