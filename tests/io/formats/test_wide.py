"""Wide tables: a row per item, a column per worker."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from broken_exports import quiet_read, triples
from manyhands.exceptions import AnnotationError

pytestmark = pytest.mark.fast

SAMPLES = Path(__file__).parents[2] / "samples" / "wide"


@pytest.fixture
def wide(tmp_path):
    def write(text):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_blank_cells_are_no_labels_and_a_blank_row_is_an_item():
    reading = quiet_read(SAMPLES / "blank.csv")
    assert reading.format == "wide"
    assert reading.ledger.as_dict() == {"rows_read": 9, "kept": 4, "excluded": {"no_label": 5}}
    assert reading.annotations.item_ids.tolist() == ["item-1", "item-2", "item-3"]
    assert triples(reading)[0] == ("item-1", "ann", "negative")


def test_minus_one_among_whole_numbers_is_no_label():
    reading = quiet_read(SAMPLES / "minus1.csv")
    assert reading.ledger.as_dict() == {"rows_read": 6, "kept": 4, "excluded": {"no_label": 2}}
    assert triples(reading) == [("item-1", "0", "0"), ("item-1", "1", "1"), ("item-2", "1", "2"), ("item-2", "2", "2")]
    assert "-1 is no label" in reading.columns["label"]


def test_minus_one_as_a_float_is_no_label_either(wide):
    reading = quiet_read(wide("item,a,b,c\n1,0.0,-1.0,1.0\n2,1.0,1.0,-1.0\n"))
    assert reading.ledger.excluded == {"no_label": 2}
    assert reading.annotations.classes.tolist() == ["0.0", "1.0"]


def test_minus_one_is_a_class_where_the_user_names_another_sign(wide):
    reading = quiet_read(wide("item,a,b,c\n1,0,-1,1\n2,1,1,-1\n"), missing="0")
    assert reading.annotations.classes.tolist() == ["-1", "1"]


def test_a_worker_without_labels_is_known(wide):
    reading = quiet_read(wide("item,ann,bob,idle\n1,x,y,\n2,y,y,\n"))
    assert reading.annotations.worker_ids.tolist() == ["ann", "bob", "idle"]


def test_all_cells_are_where_they_belong(tmp_path):
    """Against a plain loop, on a matrix that is not square."""
    cells = np.random.default_rng(0).integers(0, 3, (7, 4)).astype(str)
    frame = pl.DataFrame({"item": [f"i{at}" for at in range(7)], **{f"w{at}": cells[:, at] for at in range(4)}})
    expected = sorted((f"i{i}", f"w{w}", cells[i, w]) for i in range(7) for w in range(4))
    assert triples(quiet_read(frame)) == expected


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("item\n1\n", {"format": "wide"}, "has one column"),
        ("item,a,a\n1,x,y\n", {"format": "wide"}, "several columns for the workers a"),
        ("item,a,b\n1,x,y\n1,y,x\n", {"format": "wide"}, "several rows for the item '1'"),
        ("item,a,b\n1,x,y\n", {"format": "wide", "item": "no"}, "Column 'no' is not in"),
        ("item,a,b\n1,x,y\n", {"format": "wide", "worker": "a,no"}, "Column 'no' is not in"),
        ("item,a,b\n1,x,y\n", {"format": "wide", "label": "a"}, '`label="a"` has no meaning'),
        ("item,a,b\n,x,y\n", {"format": "wide"}, "the item .* is blank"),
    ],
)
def test_what_is_refused(wide, text, options, said):
    with pytest.raises(AnnotationError, match=said):
        quiet_read(wide(text), **options)


def test_some_columns_as_workers(wide):
    reading = quiet_read(wide("item,ann,note,bob\n1,x,see below,y\n2,y,,x\n"), format="wide", worker="ann, bob")
    assert reading.annotations.worker_ids.tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    "text",
    [
        "item,text,more\n1,a long story,b\n2,another one,c\n",  # texts share no classes
        "item,worker,score\n1,ann,x\n2,ann,x\n",  # a worker's column
        "thing,a,b\n1,x,x\n2,x,y\n",  # no item's name on top
        "item,a,b\n1,x,x\n1,x,y\n",  # items repeat
    ],
)
def test_tables_of_another_kind_are_not_taken_for_wide(wide, text):
    with pytest.raises(AnnotationError, match=r"Columns? for the"):
        quiet_read(wide(text))


CROWD = """item,text,ann,gold,bob,majority,Final Label,comment,code
1,t1,x,x,y,x,x,,c1
2,t1,y,,y,y,y,hm,c2
3,t2,x,y,x,x,x,,c3
"""


def test_columns_that_are_no_workers(wide):
    """Gold is gold; outcomes, remarks and columns in which nothing comes again are named in a note."""
    reading = quiet_read(wide(CROWD))
    assert reading.format == "wide" and reading.annotations.worker_ids.tolist() == ["ann", "bob"]
    assert reading.gold == {"1": "x", "3": "y"} and reading.columns["gold"] == "gold"
    assert reading.notes["columns_left_out"].startswith(
        "Not taken for workers: text, majority, Final Label, comment, code."
    )
    assert reading.ledger.kept == 6


def test_the_user_overrides_what_is_left_out(wide):
    reading = quiet_read(wide(CROWD), worker="ann,majority,gold")
    assert reading.annotations.worker_ids.tolist() == ["ann", "gold", "majority"]
    assert "columns_left_out" not in reading.notes and reading.gold == {}


def test_naming_several_columns_makes_it_a_wide_table(wide):
    """Wherever the items are; a single name is a column of workers."""
    path = wide("ann,bob,thing,item\nx,y,t,1\ny,y,u,2\n")
    reading = quiet_read(path, worker="ann, Bob")
    assert reading.format == "wide" and reading.columns["item"] == "item" and reading.ledger.kept == 4
    assert quiet_read(path, worker="ann,bob", item="thing").annotations.item_ids.tolist() == ["t", "u"]
    with pytest.raises(AnnotationError, match="Column 'ann,no' is not in"):
        quiet_read(path, worker="ann,no")
    with pytest.raises(AnnotationError, match="there is none for the items"):
        quiet_read(path, worker="ann,bob,thing,item")
    with pytest.raises(AnnotationError, match="none of text, gold looks like a worker's column"):
        quiet_read(wide("item,text,gold\n1,a,b\n"), format="wide")


def test_a_few_different_labels_are_no_texts(wide):
    """Two cells may differ by chance, and labels of others are labels."""
    reading = quiet_read(wide("item,ann,bob,cyd\n1,a,b,a\n2,c,c,\n3,b,b,d\n"))
    assert reading.annotations.worker_ids.tolist() == ["ann", "bob", "cyd"]


def test_no_label_is_no_gold(wide):
    reading = quiet_read(wide("item,a,b,gold\n1,0,1,-1\n2,1,1,1\n3,-1,0,0\n"))
    assert reading.gold == {"2": "1", "3": "0"}
    assert quiet_read(wide("item,a,b,gold\n1,x,y,?\n2,x,x,x\n"), missing="?").gold == {"2": "x"}


def test_columns_of_a_questionnaire_are_told(wide):
    assert '`format="survey"`' in quiet_read(wide("id,q1,q2\n1,x,y\n2,y,y\n")).notes["rows_may_be_people"]
    assert (
        '`format="survey"`' in quiet_read(wide("id,Question 1,Question 2\n1,x,y\n2,y,y\n")).notes["rows_may_be_people"]
    )
    assert "rows_may_be_people" not in quiet_read(wide("id,ann,q2\n1,x,y\n2,y,y\n")).notes


def test_the_line_of_a_cell(wide):
    with pytest.raises(AnnotationError, match=r"x\.csv, line 4: the item \(item\) is blank"):
        quiet_read(wide("item,a,b\n1,x,y\n\n,x,y\n"), format="wide")


def test_json(tmp_path):
    """A list of flat objects is a table like any other."""
    path = tmp_path / "x.json"
    path.write_text('[{"item": 1, "ann": "x", "bob": null}, {"item": 2, "ann": "y", "bob": "x"}]')
    reading = quiet_read(path)
    assert reading.format == "wide" and triples(reading) == [("1", "ann", "x"), ("2", "ann", "y"), ("2", "bob", "x")]
    path.write_text('[{"item": 1, "ann": "x", "bob": "x"}, {"item": 2, "ann": "x", "bob": ["x"]}]')
    with pytest.raises(AnnotationError, match="in no format that manyhands supports"):
        quiet_read(path)
