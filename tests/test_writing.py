"""Files appear whole or not at all."""

import os

import pytest

from manyhands import writing
from manyhands.exceptions import OutputExistsError
from manyhands.writing import write_files


def test_nothing_is_replaced_without_force(tmp_path):
    """A file in the way is named, and nothing is written."""
    write_files(tmp_path, {"a": b"old"})
    with pytest.raises(OutputExistsError, match="already has a"):
        write_files(tmp_path, {"b": b"new", "a": b"new"})
    assert sorted(os.listdir(tmp_path)) == ["a"] and (tmp_path / "a").read_bytes() == b"old"
    write_files(tmp_path, {"a": b"new"}, force=True)
    assert (tmp_path / "a").read_bytes() == b"new"


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
