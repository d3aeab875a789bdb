"""Archives are read into memory within limits."""

import bz2
import zipfile

import pytest

from manyhands.datasets import archives
from manyhands.datasets.archives import read_bz2, read_members
from manyhands.exceptions import AnnotationError, LimitError


def packed(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_csv", ".csv"), content)
    return path


def test_members_are_found_in_any_folder_and_never_extracted(tmp_path):
    path = packed(tmp_path / "a.zip", set__gt_csv="deep", set__more__gt_csv="deeper", other_csv="x")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../evil.csv", "out")
    assert read_members(path, ["gt.csv", "evil.csv"]) == {"gt.csv": b"deep", "evil.csv": b"out"}
    assert [p.name for p in tmp_path.rglob("*")] == ["a.zip"]


def test_what_is_missing_or_broken_is_said(tmp_path):
    path = packed(tmp_path / "a.zip", gt_csv="x" * 50)
    with pytest.raises(AnnotationError, match=r"has no crowd_labels\.csv"):
        read_members(path, ["crowd_labels.csv"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(AnnotationError, match="not a zip file that can be read"):
        read_members(path, ["gt.csv"])
    path.write_bytes(whole.replace(b"gt.csv", b"gt.csv", 1)[:36] + b"\xff\xff" + whole[38:])
    with pytest.raises(AnnotationError, match="not a zip file that can be read"):
        read_members(path, ["gt.csv"])


def test_bombs_are_refused(tmp_path, monkeypatch):
    path = packed(tmp_path / "a.zip", gt_csv=b"\0" * 1_000_000, a_csv=b"0123456789", b_csv=b"0123456789")
    with pytest.raises(LimitError, match="100 times its size"):
        read_members(path, ["gt.csv"])
    with pytest.raises(LimitError, match="beyond 9 bytes"):
        read_members(path, ["a.csv"], max_bytes=9)
    with pytest.raises(LimitError, match="larger than 19 bytes together"):
        read_members(path, ["a.csv", "b.csv"], max_bytes=19)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    with pytest.raises(LimitError, match="holds 3 files"):
        read_members(path, ["a.csv"])


def test_bz2(tmp_path):
    path = tmp_path / "a.bz2"
    path.write_bytes(bz2.compress(b"hello"))
    assert read_bz2(path) == b"hello"
    with pytest.raises(LimitError, match="beyond 4 bytes"):
        read_bz2(path, max_bytes=4)
    path.write_bytes(bz2.compress(b"\0" * 1_000_000))
    with pytest.raises(LimitError, match="100 times its size"):
        read_bz2(path)
    path.write_bytes(bz2.compress(b"hello")[:-5])
    with pytest.raises(AnnotationError, match="ends before its content does"):
        read_bz2(path)
    path.write_bytes(b"hello")
    with pytest.raises(AnnotationError, match="not a bz2 file"):
        read_bz2(path)
