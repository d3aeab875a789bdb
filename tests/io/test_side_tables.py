"""Tables beside an export: the truth, gold, and columns that are known by name."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning
from manyhands.io.side_tables import read_columns, read_gold, read_truth
from manyhands.io.sources import Source


def test_rows_without_a_class_are_passed_over(tmp_path):
    """By id, and in order, where an item is the number of its row."""
    (tmp_path / "t.csv").write_text("item,label\na,x\nb,\nc,y\na,x\n")
    assert read_truth(tmp_path / "t.csv") == {"a": "x", "c": "y"}
    assert read_truth(tmp_path / "t.csv", n_rows=4) == {"0": "x", "2": "y", "3": "x"}
    for n_rows in (3, 5):
        with pytest.raises(AlignmentError, match=f"has 4 rows for {n_rows} rows of features"):
            read_truth(tmp_path / "t.csv", n_rows=n_rows)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("item,colour\na,x\n", "no column for the label. It has: item, colour. Call it label."),
        ("name,label\na,x\n", "no column for the item. It has: name, label. Call it item."),
        ("item,label\na,x\na,y\n", "t.csv, line 3: 'a' has two classes, 'x' and 'y'"),
        ("item,label\na,\n", "names no class for any item, so there is no truth in it"),
    ],
)
def test_tables_that_tell_nothing(content, sentence, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(AnnotationError, match=sentence):
        read_truth(tmp_path / "t.csv")


def test_what_is_no_table(tmp_path):
    """A folder, a file that is not there, JSON of another kind: called by what was asked for."""
    with pytest.raises(AnnotationError, match=r"is not a table. Give a table of truth with a row for each item"):
        read_truth(tmp_path)
    with pytest.raises(AnnotationError, match=r"no.csv does not exist. Give the file of gold"):
        read_truth(tmp_path / "no.csv", what="gold")
    (tmp_path / "t.json").write_text('{"a": "x"}')
    with pytest.raises(AnnotationError, match="is not a table"):
        read_truth(tmp_path / "t.json")


VOTES = Annotations.from_triples(["1", "1", "2"], ["a", "b", "a"], ["x", "y", "x"])


@pytest.mark.parametrize("header", ["task,label", "item,gold", "truth,item_id"])
def test_gold_is_found_by_the_usual_names(tmp_path, header):
    """Rows without a label are passed over."""
    path = tmp_path / "gold.csv"
    cells = ["1,x", "2,"] if not header.startswith("truth") else ["x,1", ",2"]
    path.write_text("\n".join([header, *cells]))
    assert read_gold(path, VOTES) == {"1": "x"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clip,label\n1,x\n", "no column for the item. It has: clip, label"),
        ("item,colour\n1,x\n", "no column for the label"),
        ("item,label\n1,x\n1,y\n", "line 3: '1' has two classes, 'x' and 'y'"),
        ("item,label\n7,x\n", "names no item of the export: it has 7; the export has items such as '1'"),
        ("item,label\n1,z\n", "classes that no worker gave: z. There are: x, y"),
        ("item,label\n1,\n", "there is no gold in it"),
    ],
)
def test_bad_gold_gets_one_sentence(tmp_path, text, words):
    """What, where, and what to do."""
    path = tmp_path / "gold.csv"
    path.write_text(text)
    with pytest.raises(AnnotationError, match=words) as error:
        read_gold(path, VOTES)
    assert "\n" not in str(error.value)


def test_gold_of_a_larger_job_is_used_as_far_as_it_goes(tmp_path):
    """A master table of known answers; what does not fit is counted."""
    path = tmp_path / "gold.csv"
    path.write_text("item,label\n1,x\n2,z\n7,x\n8,y\n")
    with pytest.warns(CrowdWarning, match="2 items not in the export and 1 item of a class that no worker gave"):
        assert read_gold(path, VOTES) == {"1": "x"}


def read(text, *wanted):
    content = text if isinstance(text, bytes) else text.encode()
    return [column.tolist() for column in read_columns(Source("votes.csv", content=content), wanted)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("task,label\n1,2\n3,4\n", [[1, 3], [2, 4]]),
        ("\ufefftask,label\r\n1,2\r\n\r\n3,4", [[1, 3], [2, 4]]),
        ('other,label,task\n"a, b",2,1\n"c\nd",4,3\n', [[1, 3], [2, 4]]),
        ("task,label\n42_0,1\n42_1,-1\n", [["42_0", "42_1"], [1, -1]]),
        ("task,label\n007,1\n1.5,2\n", [["007", "1.5"], [1, 2]]),
        ("task,label\n99999999999999999999,1\n", [["99999999999999999999"], [1]]),
        ("task,label\na,\n,1\n", [["a", ""], ["", "1"]]),
        ("task,label\n", [[], []]),
    ],
)
def test_columns_are_integers_where_all_cells_are(text, expected):
    assert read(text, "task", "label") == expected


def test_types_of_columns():
    numbers, texts = read_columns(Source("votes.csv", content=b"a,b\n1,x\n2,yy\n"), ("a", "b"))
    assert numbers.dtype == np.int64 and texts.dtype == object


def test_a_column_may_have_one_of_several_names():
    assert read("performer\n5\n", ("worker", "performer")) == [[5]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("task\n1\n", "votes.csv has no column label. It has: task."),
        ("", "votes.csv is empty"),
        ("task,label\na,1\nb\n", "votes.csv, line 3: 1 cell(s) where the header names 2 columns."),
        ("task,label\na,1\nb,2,3\n", "votes.csv, line 3: 3 cells where the header names 2 columns."),
        (b"task,label\n\xff,1\n", "votes.csv, line 2: byte 11 is not UTF-8 text"),
    ],
)
def test_a_damaged_file_is_refused(text, message):
    with pytest.raises(AnnotationError) as caught:
        read(text, "task", "label")
    assert message in str(caught.value)
