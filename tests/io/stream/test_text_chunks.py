"""Parts of text files: whole lines, whole rows of CSV, and nothing lost."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.exceptions import AnnotationError
from manyhands.io.stream import text_chunks
from manyhands.io.stream.inputs import InputFile
from manyhands.io.stream.text_chunks import read_lines


def as_file(path, content, is_compressed=False):
    path.write_bytes(gzip.compress(content) if is_compressed else content)
    return InputFile(path, path.name, "csv", is_compressed, path.stat().st_size, 0)


@given(
    rows=st.lists(
        st.lists(st.sampled_from(['"a\nb"', '"x ""y"" z"', "c", "", '"\n\n"', "été"]), min_size=1, max_size=3)
    ),
    n_bytes=st.integers(1, 40),
    is_compressed=st.booleans(),
)
def test_parts_are_whole_rows_and_together_the_file(tmp_path_factory, rows, n_bytes, is_compressed):
    content = "".join(",".join(row) + "\n" for row in rows).encode()
    file = as_file(tmp_path_factory.mktemp("text") / "t", content, is_compressed)
    parts = list(read_lines(file, n_bytes, quoted=True))
    assert b"".join(part.content for part in parts) == content
    for part in parts:
        assert part.content.count(b'"') % 2 == 0 and part.content.endswith(b"\n")
        assert part.first == content.count(b"\n", 0, part.offset) + 1
        assert content[part.offset :].startswith(part.content)
    assert [part.share for part in parts] == sorted(part.share for part in parts)


def test_the_mark_of_utf8_is_left_out_and_the_last_line_needs_no_end(tmp_path):
    parts = list(read_lines(as_file(tmp_path / "t", "\ufeffa\nb\nc".encode()), 3, quoted=False))
    assert b"".join(part.content for part in parts) == b"a\nb\nc"
    assert [part.first for part in parts] == [1, 2, 3]


def test_lines_without_an_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_chunks, "_LONGEST", 50)
    with pytest.raises(AnnotationError, match=r"after line 1: .* bytes without the end of a row"):
        list(read_lines(as_file(tmp_path / "t", b"a\n" + b"x" * 100), 10, quoted=True))
