"""Text of every encoding and line end: what is read as it was meant, and what the sentence says of the rest."""

import codecs
import warnings

import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.documents import open_document
from manyhands.io.reading import read_export
from manyhands.io.sources import Source
from manyhands.io.text_tables import as_utf8, utf8_error

TABLE = "item,worker,label\ncafé,ann,cat\n2,ann,dog\n"


@pytest.fixture
def written(tmp_path):
    def write(content: bytes, name: str = "votes.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (b"", "utf-16-le"),
        (b"", "utf-16-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_same_table_in_other_bytes(written, mark, encoding, line_end):
    reading = read_export(written(mark + TABLE.replace("\n", line_end).encode(encoding)))
    assert reading.annotations.item_ids.tolist() == ["café", "2"]
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}


@pytest.mark.parametrize("name", ["votes.csv", "votes.json", "votes.jsonl", "votes.txt"])
def test_latin_letters_are_not_guessed_at(written, name):
    """The sentence names the line and a way out, whatever kind of file it is."""
    table = {"votes.csv": TABLE, "votes.txt": "ann item-1 cat\nann café dog\n"}
    json_line = '{"item": "1", "worker": "ann", "label": "cat"}\n{"item": "café", "worker": "ann", "label": "dog"}\n'
    path = written(table.get(name, json_line).encode("latin-1"), name)
    with pytest.raises(AnnotationError, match=r"line 2: byte \d+ is not UTF-8.*café.*`encoding=.cp1252.`"):
        read_export(path)


def test_an_encoding_that_the_user_names(written):
    assert "café" in read_export(written(TABLE.encode("latin-1")), encoding="latin-1").annotations.item_ids
    with pytest.raises(AnnotationError, match=r"votes\.csv, line 2: byte 21 is not utf-8"):
        read_export(written(TABLE.encode("latin-1")), encoding="utf-8")
    with pytest.raises(AnnotationError, match="is not utf-16"):
        read_export(written(b"item,worker,label\n1,ann,cat"), encoding="utf-16")


@pytest.mark.parametrize("encoding", ["no-such", "", "a\0b", "base64", "rot13"])
def test_an_encoding_that_is_none(written, encoding):
    with pytest.raises(ParameterError, match="no encoding called"):
        read_export(written(TABLE.encode()), encoding=encoding)


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("name", ["votes.csv", "votes.json", "votes.txt"])
def test_a_nul_is_named_by_its_line(written, mark, name):
    """A byte order mark does not let it pass."""
    with pytest.raises(AnnotationError, match="line 3: a NUL byte"):
        read_export(written(mark + b"item,worker,label\n1,ann,cat\n2,a\0n,dog\n", name))


def test_utf16_of_other_alphabets_is_named_by_its_nuls(written):
    """Without a mark, and with few Latin letters, it cannot be told from binary; the sentence says how to read it."""
    table = "item,worker,label\nпредмет,анна,кот\n"
    path = written(("яяяя," * 40 + table).encode("utf-16-le"))
    with pytest.raises(AnnotationError, match=r"NUL byte.*`encoding=.utf-16-le.`"):
        read_export(path)
    path = written(table.encode("utf-16-le"))
    assert read_export(path, encoding="utf-16-le").annotations.item_ids.tolist() == ["предмет"]


@pytest.mark.parametrize("content", [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, b"\n\n", b"  \n"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.txt", "votes.json", "votes.jsonl", "votes.tsv"])
def test_a_file_that_says_nothing(written, content, name):
    with pytest.raises(AnnotationError):
        read_export(written(content, name))


def test_a_header_alone_is_a_table_without_rows(written):
    reading = read_export(written(b"item,worker,label\n"))
    assert reading.ledger.as_dict() == {"rows_read": 0, "kept": 0, "excluded": {}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'item,worker,label\n1,ann,"cat\n2,bob,dog\n', "after line 1"),
        (b"item,worker,label\n1,ann,cat\n2,bob,dog,more\n", "line 3: 4 cells where the header names 3"),
        (b'item,worker,label\n1,ann,ca"t\n2,bob,dog\n', "line 2: a double quote within a cell"),
    ],
)
def test_quotes_and_ragged_rows(written, content, said):
    """The sentence names the line; an open quote swallows the rest of the file, so there it is the line before it."""
    with pytest.raises(AnnotationError, match=said):
        read_export(written(content))


IDS = ["007", str(2**63), str(2**53 + 1), "1", "1.0", "\U0001f600", "\u202eabc", "=1+1", "two\nlines", "a\tb", " x "]
IDS += ["x" * 10_000, "None", "NA", "nan", "-0", "1e5", "TRUE", "a,b", 'say "hi"', "'", "\\n", "#", "a\u2028b", "\x85b"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json"])
def test_ids_keep_their_identity(tmp_path, kind):
    """What looks like a number, a formula, nothing or two lines comes out as it went in."""
    import csv
    import json

    path = tmp_path / f"votes.{kind}"
    rows = [{"item": name, "worker": name, "label": name} for name in IDS]
    if kind in ("csv", "tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="," if kind == "csv" else "\t")
            writer.writerows([["item", "worker", "label"], *(row.values() for row in rows)])
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) if kind == "jsonl" else json.dumps(rows), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        reading = read_export(path)
    assert "class_like_missing" in reading.notes
    labels = reading.annotations
    for values in (labels.item_ids, labels.worker_ids, labels.classes):
        assert sorted(values) == sorted(IDS)


def test_ids_that_look_alike_are_kept_apart_and_told(written):
    """An accent on its letter and one after it are two ids, and nobody sees it."""
    with pytest.warns(UserWarning, match="look_alike_ids"):
        labels = read_export(written("item,worker,label\ncaf\u00e9,ann,x\ncafe\u0301,ann,x\n".encode())).annotations
    assert sorted(labels.item_ids) == ["cafe\u0301", "caf\u00e9"]


def test_the_line_that_tells_excel_the_separator(written):
    """It is skipped, and what it says holds; it counts as a line."""
    path = written(b"sep=;\r\nitem;worker;label\r\n1;ann;a,b\r\n")
    assert read_export(path).annotations.classes.tolist() == ["a,b"]
    assert read_export(written(b'"sep=|"\nitem|worker|label\n1|ann|x\n')).annotations.classes.tolist() == ["x"]
    with pytest.raises(AnnotationError, match="line 4: the worker"):
        read_export(written(b"sep=,\nitem,worker,label\n1,ann,x\n2,,x\n"))
    with pytest.raises(AnnotationError, match="line 3: 4 cells"):
        read_export(written(b"sep=,\nitem,worker,label\n1,ann,x,y\n"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('\n\nitem,worker,label\n"1\n\n1",ann,x\n\n2,,y\n', 8),
        ("item,worker,label\r\n1,ann,x\r\n2,,y", 3),
        ("\ufeffitem,worker,label\n1,ann,x\n \n2,,y\n\n", 4),
        ('item,worker,label\n1,ann,x\n"2",,"a ""b"""\n', 3),
    ],
)
def test_lines_are_those_of_an_editor(written, text, line):
    """Blank lines count, and so do those within a cell."""
    with pytest.raises(AnnotationError, match=rf"votes\.csv, line {line}: the worker \(worker\) is blank"):
        read_export(written(text.encode()))


def test_lines_of_a_question(written):
    """Rows of other questions are not read, and count."""
    text = b"item,question,worker,label\n1,q,a,x\n1,r,a,x\n2,q,,x\n"
    with pytest.raises(AnnotationError, match="line 4: the worker"):
        read_export(written(text), question="q")


def test_a_file_that_is_gone_has_rows_only(written):
    path = written(TABLE.encode())
    table = open_document(path)
    assert table.place(0) == f"{path}, line 2"
    path.unlink()
    assert table.place(0) == f"{path}, row 1 after the header"


@pytest.mark.parametrize("row", [",ann,x", "1,,x", " ,ann,x"])
def test_an_id_that_is_blank_is_named_by_its_line(written, row):
    with pytest.raises(AnnotationError, match=r"line 3: the (item|worker)"):
        read_export(written(f"item,worker,label\n1,ann,x\n{row}\n".encode()))


def test_utf8_is_left_as_it_is(tmp_path):
    """A large file in good order is loaded once, and not copied."""
    path = tmp_path / "votes.csv"
    path.write_text(TABLE, encoding="utf-8")
    loaded = Source(str(path), path).loaded()
    assert as_utf8(loaded) is loaded
    assert utf8_error(Source(str(path), path)) is None
