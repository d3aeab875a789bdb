"""Tables of the truth."""

import pytest

from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.io.read.truth import read_truth


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
