"""Parts of text files (whole lines, whole rows of CSV), and operations on texts as bytes beside plain loops."""

import gzip
from zlib import crc32

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.exceptions import AnnotationError
from manyhands.io.stream import batches
from manyhands.io.stream.batches import (
    InputFile,
    code_texts,
    crc_of_texts,
    join_texts,
    order_texts,
    read_lines,
    take_texts,
)
from manyhands.sharded.code_folder import TextIds


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
    monkeypatch.setattr(batches, "_LONGEST", 50)
    with pytest.raises(AnnotationError, match=r"after line 1: .* bytes without the end of a row"):
        list(read_lines(as_file(tmp_path / "t", b"a\n" + b"x" * 100), 10, quoted=True))


TEXTS = st.lists(st.one_of(st.text(max_size=40), st.sampled_from(["a", "b", "item-00000001", "x" * 28, "x" * 29])))


def joined(texts):
    return TextIds(np.array([len(text.encode()) for text in texts], np.int64), "".join(texts).encode())


@pytest.fixture(params=["compiled", "plain"])
def either(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(batches, "_columns", None)
    elif batches._columns is None:
        pytest.skip("the compiled columns were not built")


@pytest.mark.usefixtures("either")
class TestTexts:
    @given(texts=TEXTS)
    def test_crc(self, texts):
        found = crc_of_texts(pl.Series(texts, dtype=pl.String))
        assert found.tolist() == [crc32(text.encode()) for text in texts] and found.dtype == np.uint32

    @given(texts=TEXTS)
    def test_joining_and_taking(self, texts):
        whole = join_texts(pl.Series(texts, dtype=pl.String))
        assert whole.decoded() == texts and whole.data == "".join(texts).encode()
        rows = np.array([at for at in range(len(texts)) if at % 3 != 1][::-1], np.int64)
        assert take_texts(whole, rows).decoded() == [texts[row] for row in rows]

    @given(texts=TEXTS)
    def test_codes_are_in_the_order_of_appearance(self, texts):
        codes, first = code_texts(joined(texts))
        distinct = list(dict.fromkeys(texts))
        assert codes.tolist() == [distinct.index(text) for text in texts]
        assert first.tolist() == [texts.index(text) for text in distinct]

    def test_many_texts(self):
        texts = [f"item-{n * 7919 % 5000}" for n in range(20_000)]
        codes, first = code_texts(joined(texts))
        assert [texts[first[code]] for code in codes] == texts and len(first) == 5000


def test_columns_of_several_chunks_have_the_same_crc():
    texts = pl.concat([pl.Series(["a", "a text that is longer than a view"]), pl.Series(["b" * 50])], rechunk=False)
    assert crc_of_texts(texts).tolist() == [crc32(text.encode()) for text in texts]
    assert crc_of_texts(texts[1:]).tolist() == [crc32(text.encode()) for text in texts[1:]]


@pytest.mark.skipif(batches._columns is None, reason="the compiled columns were not built")
@pytest.mark.parametrize("lengths", [[1, 1], [2, 2], [-1, 4], [3, 2**40]])
def test_lengths_that_do_not_add_up_are_refused(lengths):
    arrays = np.array(lengths, np.int64), np.empty(2, np.int32), np.empty(2, np.int64)
    with pytest.raises(ValueError, match="do not fit together"):
        batches._columns.code_joined_text(1, np.frombuffer(b"abc", np.uint8), *arrays)


def test_texts_with_one_crc_are_ordered_by_their_bytes():
    texts = ["plumless", "buckeroo", "a", "codding", "gnu"]  # the pairs share a CRC-32
    assert crc32(b"plumless") == crc32(b"buckeroo") and crc32(b"codding") == crc32(b"gnu")
    order = order_texts(joined(texts), crc_of_texts(pl.Series(texts)))
    wanted = sorted(texts, key=lambda text: (crc32(text.encode()), text.encode()))
    assert [texts[at] for at in order] == wanted
