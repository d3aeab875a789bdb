"""Long tables: what is read, what is left out and counted, and what is refused in one sentence."""

from pathlib import Path

import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.tables import read_table


@pytest.fixture
def table(tmp_path: Path):
    def write(text: str | bytes, name: str = "votes.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_text_stays_as_it_came(table):
    """Ids and classes that look like numbers, formulas or missing values survive byte for byte."""
    path = table('task,worker,label\n007,=1+1,NA\n"a,b",é,None\n"two\nlines", x ,1.0\n')
    read = read_table(path).annotations
    assert read.item_ids.tolist() == ["007", "a,b", "two\nlines"]
    assert read.worker_ids.tolist() == [" x ", "=1+1", "é"]
    assert read.classes.tolist() == ["1.0", "NA", "None"]


def test_every_row_is_accounted_for(table):
    """rows read = kept + excluded by reason; the last answer of a worker who repeats himself counts."""
    path = table("task,worker,label\n1,a,x\n1,a,y\n1,b,\n2,a,  \n3,b,x\n")
    reading = read_table(path)
    assert reading.ledger.as_dict() == {"rows_read": 5, "kept": 2, "excluded": {"no_label": 2, "duplicate": 1}}
    assert reading.annotations.item_ids.tolist() == ["1", "2", "3"]
    assert reading.annotations.classes[reading.annotations.label].tolist() == ["y", "x"]


def test_twenty_repeats_count_once(table):
    """A worker who votes twenty times on one item has one vote."""
    path = table("task,worker,label\n" + "1,spam,x\n" * 20 + "1,a,y\n1,b,y\n")
    assert read_table(path).ledger.excluded == {"duplicate": 19}


@pytest.mark.parametrize("header", ["task,worker,label", "Item,Annotator,Answer", "item_id,rater,response"])
def test_common_column_names_are_found(table, header):
    """The usual names are found, whatever their case."""
    assert read_table(table(f"{header}\n1,a,x\n")).annotations.n_annotations == 1


def test_columns_can_be_named(table):
    """Unusual names are given by the caller, even where a usual one exists too."""
    read = read_table(table("clip,who,said,label\n1,a,x,zzz\n"), item="clip", worker="who", label="said")
    assert read.annotations.classes.tolist() == ["x"]


def test_tsv_and_byte_order_mark(table):
    """A TSV file with a byte order mark reads like any other."""
    assert read_table(table(b"\xef\xbb\xbftask\tworker\tlabel\n1\ta\tx\n", "votes.tsv")).columns["item"] == "task"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b,c\n1,2,3\n", "for the item is not in"),
        ("task,worker,label\n1,a,x\n2,,y\n", "row 2 after the header: the worker"),
        ("task,worker,label\n,a,x\n", "row 1 after the header: the item"),
        ("task,worker,label\n1,a,x,extra\n", "line 2: 4 cells"),
        ('task,worker,label\n1,"a,x\n', "Check its quotes"),
        (b"task,worker,label\n1,a,caf\xe9\n", "not UTF-8"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(table, text, words):
    """What is wrong, where, and what to do."""
    path = table(text)
    with pytest.raises(AnnotationError, match=words) as error:
        read_table(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["missing.csv", "votes.exe", "."])
def test_what_is_no_table_is_refused(tmp_path, name):
    """A path that is missing, a folder, or of another kind."""
    (tmp_path / "votes.exe").write_bytes(b"MZ")
    with pytest.raises(AnnotationError):
        read_table(tmp_path / name)
