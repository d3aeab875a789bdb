"""Archives and compressed files are unpacked in memory within limits."""

import bz2
import io
import zipfile

import pytest

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io import sources
from manyhands.io.sources import bunzip2, read_members


def packed(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_csv", ".csv"), content)
    return buffer.getvalue()


def read(content, *names):
    return read_members(io.BytesIO(content), "a.zip", names)


def test_members_are_found_in_any_folder():
    content = packed(set__gt_csv="deep", set__more__gt_csv="deeper", other_csv="x")
    assert read(content, "gt.csv", "other.csv") == {"gt.csv": b"deep", "other.csv": b"x"}


def test_names_that_lead_out_are_refused():
    with pytest.raises(AnnotationError, match="which leads out of it"):
        read(packed(**{"..__..__evil_csv": "out"}), "evil.csv")


def test_missing_members_and_damaged_archives():
    whole = packed(gt_csv="x" * 50)
    with pytest.raises(AnnotationError, match=r"a\.zip has no member crowd_labels\.csv"):
        read(whole, "crowd_labels.csv")
    with pytest.raises(AnnotationError, match="not a complete zip file"):
        read(whole[:-30], "gt.csv")
    with pytest.raises(AnnotationError, match=r"'gt.csv' cannot be unpacked|not a complete zip file"):
        read(whole[:36] + b"\xff\xff" + whole[38:], "gt.csv")


def test_zip_bombs_are_refused(monkeypatch):
    with pytest.raises(LimitError, match="100 times its size"):
        read(packed(gt_csv=b"\0" * 20_000_000), "gt.csv")
    content = packed(a_csv=b"0123456789", b_csv=b"0123456789", c_csv=b"")
    monkeypatch.setattr(sources, "MAX_BYTES", 19)
    with pytest.raises(LimitError, match="unpacks to 20 bytes; at most 19"):
        read(content, "a.csv")
    monkeypatch.setattr(sources, "MAX_MEMBERS", 2)
    with pytest.raises(LimitError, match="has 3 members; at most 2"):
        read(content, "a.csv")


def test_bz2(monkeypatch):
    content = bz2.compress(b"hello")
    assert bunzip2(content, "a.bz2") == b"hello"
    with pytest.raises(LimitError, match=r"a\.bz2 unpacks to more than the 10,485,760 bytes"):
        bunzip2(bz2.compress(b"\0" * 20_000_000), "a.bz2")
    with pytest.raises(AnnotationError, match="not a complete bz2 file"):
        bunzip2(content[:-5], "a.bz2")
    with pytest.raises(AnnotationError, match="not a bz2 file"):
        bunzip2(b"hello", "a.bz2")
    monkeypatch.setattr(sources, "MAX_BYTES", 4)
    with pytest.raises(LimitError, match="more than the 4 bytes"):
        bunzip2(content, "a.bz2")
