"""Tables with columns that are missing, misspelled, or not labels."""

from __future__ import annotations

import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io import read_export

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


def test_all_missing_columns_are_named_at_once_with_the_nearest_names(tmp_path):
    table = pl.DataFrame({"Itm": ["1"], "Annotatr": ["a"], "note": ["x"]})
    table.write_csv(tmp_path / "x.csv")
    with pytest.raises(AnnotationError) as caught:
        read_export(tmp_path / "x.csv", format="long")
    message = str(caught.value)
    assert "Columns for the item and the worker and the label are not in" in message
    assert "`item=`, `worker=` and `label=`" in message
    assert '`item="Itm"`' in message and '`worker="Annotatr"`' in message and '`label="note"`' not in message
    with pytest.raises(AnnotationError, match=r"read_annotations\(df, item='Itm', worker='Annotatr', label=\.\.\.\)"):
        read_export(table, format="long")


def test_one_missing_column_keeps_its_sentence(tmp_path):
    table = pl.DataFrame({"item": ["1"], "worker": ["a"], "final label of the person": ["x"]})
    table.write_csv(tmp_path / "x.csv")
    with pytest.raises(AnnotationError, match=r"Column for the label is not in .*Perhaps `label=.final label of the"):
        read_export(tmp_path / "x.csv", format="long")


def test_an_e_mail_names_the_annotator():
    table = pl.DataFrame({"Item ID": ["1", "1"], "Annotator E-Mail": ["a@x.org", "b@x.org"], "Label": ["x", "y"]})
    reading = read_export(table)
    assert reading.columns["worker"] == "Annotator E-Mail" and reading.annotations.n_workers == 2


@pytest.mark.parametrize(
    "remarks", [["unclear", "", "blurry", "dark"], ["", "not sure about it", "", ""]], ids=["words", "phrase"]
)
def test_a_column_of_remarks_is_no_worker(remarks):
    table = pl.DataFrame(
        {
            "item": ["1", "2", "3", "4"],
            "ann": ["cat", "dog", "cat", "dog"],
            "bob": ["cat", "cat", "cat", "dog"],
            "what ann thought": remarks,
        }
    )
    reading = read_export(table, format="wide")
    assert reading.annotations.worker_ids.tolist() == ["ann", "bob"]
    assert "what ann thought" in reading.notes["columns_left_out"]


def test_a_worker_who_alone_uses_a_class_stays_a_worker():
    table = pl.DataFrame({"item": list("1234"), "a": list("xyxy"), "b": list("xxyy"), "c": list("zzzz")})
    assert read_export(table, format="wide").annotations.worker_ids.tolist() == ["a", "b", "c"]
