"""Data frames of polars and pandas: every value as the text that it would be in a file."""

import datetime
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import frame_as_text
from manyhands.io.reading import read_export


def texts(frame):
    return frame_as_text(frame)[0].to_series(0).to_list()


class Colour(str, Enum):  # noqa: UP042 - the kind whose str() is not its value
    RED = "red"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, None], ["true", "false", None]),
        ([1, 2**62, None], ["1", str(2**62), None]),
        ([1.0, 1.5, float("nan"), None], ["1.0", "1.5", None, None]),
        (["007", "", " ", "nan", "None", None], ["007", "", " ", "nan", "None", None]),
        ([datetime.date(2026, 1, 5)], ["2026-01-05"]),
        ([datetime.timedelta(seconds=5)], ["0:00:05"]),
        ([Decimal("1.50")], ["1.50"]),
        ([["a", "b"], [], None], ['["a","b"]', "[]", None]),
        ([{"a": 1, "b": datetime.date(2026, 1, 5)}], ['{"a":1,"b":"2026-01-05"}']),
        ([None, None], [None, None]),
        ([], []),
    ],
)
def test_polars(values, expected):
    assert texts(pl.DataFrame({"x": pl.Series(values, strict=False)})) == expected
    assert texts(pl.LazyFrame({"x": pl.Series(values, strict=False)})) == expected


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b", "unused"])])
def test_polars_categories(dtype):
    assert texts(pl.DataFrame({"x": pl.Series(["a", "b", None], dtype=dtype)})) == ["a", "b", None]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, "1", 1.0, True, None], ["1", "1", "1.0", "true", None]),
        ([np.float64(1.5), np.int64(2), np.bool_(True), np.str_("x")], ["1.5", "2", "true", "x"]),
        ([pd.NA, pd.NaT, np.nan, None], [None, None, None, None]),
        ([2**70, -(2**63)], [str(2**70), str(-(2**63))]),
        ([np.array(["a", "b"]), ["c"], ("d",)], ['["a","b"]', '["c"]', '["d"]']),
        ([pd.Timestamp("2026-01-05 09:00")], ["2026-01-05 09:00:00"]),
        ([Colour.RED], ["red"]),
    ],
)
def test_pandas_objects(values, expected):
    assert texts(pd.DataFrame({"x": pd.Series(values, dtype=object)})) == expected


def test_pandas_columns():
    assert texts(pd.DataFrame({"x": pd.Categorical(["b", None], categories=["a", "b"])})) == ["b", None]
    assert texts(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")})) == ["1", None]
    assert texts(pd.DataFrame({"x": pd.array([True, None], dtype="boolean")})) == ["true", None]


def test_whole_numbers_that_a_missing_value_made_floats():
    """1.0 is then meant as 1; a column with one that is not whole, or with text, stays as it is."""
    assert texts(pd.DataFrame({"x": [1, None]})) == ["1", None]
    assert texts(pd.DataFrame({"x": pd.array([1.0, None], dtype="Float64")})) == ["1", None]
    assert texts(pd.DataFrame({"x": [1.0, 1.5]})) == ["1.0", "1.5"]
    assert texts(pd.DataFrame({"x": ["1.0", None]})) == ["1.0", None]
    assert texts(pl.DataFrame({"x": [1.0, float("nan"), None, -0.0]})) == ["1", None, None, "0"]
    assert texts(pl.DataFrame({"x": [2.0**60, float("inf")]})) == [str(2.0**60), "inf"]
    assert texts(pl.DataFrame({"x": pl.Series([2.0], dtype=pl.Float32)})) == ["2"]


def test_names_that_come_twice_are_kept_twice():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert frame_as_text(frame)[1] == ["a", "a"]
    assert frame_as_text(pd.DataFrame([[1]], columns=[7]))[1] == ["7"]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pl.DataFrame({"x": [b"ab"]}), "Column 'x' holds bytes"),
        (pd.DataFrame({"x": [b"ab"]}), "holds bytes"),
        (pd.DataFrame({"x": pd.Series(["\ud800"], dtype=object)}), "an unpaired surrogate"),
    ],
)
def test_what_is_no_text(frame, said):
    with pytest.raises(AnnotationError, match=said):
        frame_as_text(frame)


def test_what_is_no_frame():
    class Odd:
        columns = ("a",)

    with pytest.raises(AnnotationError, match="A Odd is not a data frame"):
        read_export(Odd())


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_frames_and_parquet_are_read_alike(make, tmp_path):
    """Numbers and truth values give the same labels from a frame, which keeps their type, and as text from a file."""
    columns = {"item": [1, 2, 2], "worker": ["ann", "ann", "bob"], "label": [True, False, True]}
    path = tmp_path / "votes.parquet"
    pl.DataFrame(columns).write_parquet(path)
    frame, file = read_export(make(columns)).annotations, read_export(path).annotations
    assert (frame.item_ids.tolist(), frame.classes.tolist()) == ([1, 2], [False, True])
    assert (file.item_ids.tolist(), file.classes.tolist()) == (["1", "2"], ["false", "true"])
    assert all(np.array_equal(getattr(frame, name), getattr(file, name)) for name in ("item", "worker", "label"))


def test_broken_parquet(tmp_path):
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"item": [1], "worker": [1], "label": [1]}).write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    with pytest.raises(AnnotationError, match="cannot be read as Parquet"):
        read_export(path)


def test_a_panic_in_the_reader_is_a_sentence(tmp_path, monkeypatch):
    """What Rust throws is no Exception, and would pass every handler."""
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"item": [1]}).write_parquet(path)

    def panic(file):
        raise pl.exceptions.PanicException("index out of bounds\nsecond line")

    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(AnnotationError, match=r"as Parquet: index out of bounds\."):
        read_export(path)
