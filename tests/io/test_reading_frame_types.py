"""Ids and labels of data frames keep their type."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from manyhands import Annotations, MajorityVote, label_frame, read_annotations
from manyhands.io import read_export

LIBRARIES = {"pandas": pd.DataFrame, "polars": lambda columns: pl.DataFrame(columns, strict=False)}


def types_of(ids):
    return {type(value) for value in ids.tolist()}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10, 9, 10, 2], [2, 9, 10]),
        ([True, False, True, True], [False, True]),
        ([1.0, None, 2.0, 1.0], [1, 2]),
        ([0.5, 1.0, None, 0.5], [0.5, 1.0]),
        (["10", "9", "2", "10"], ["10", "2", "9"]),
        (["x", "", None, "y"], ["x", "y"]),
    ],
)
def test_labels_keep_their_type(library, values, expected):
    """Integers, truth values and floats; whole floats are integers, which missing values turned into floats."""
    frame = LIBRARIES[library]({"task": list("abab"), "worker": [5, 5, 6, 6], "label": values})
    votes = read_annotations(frame)
    assert votes.classes.tolist() == expected and types_of(votes.classes) == {type(value) for value in expected}
    assert votes.worker_ids.tolist() == [5, 6] and votes.item_ids.tolist() == ["a", "b"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_ids_are_those_of_from_triples(library):
    """Reading a frame gives what the three columns give, types and order included."""
    columns = {"task": [30, 4, 30, 200], "worker": [7, 7, 8, 8], "label": [1, 0, 1, 1]}
    assert read_annotations(LIBRARIES[library](columns)) == Annotations.from_triples(*columns.values())
    model = MajorityVote().fit(LIBRARIES[library](columns), gold={200: 0})
    assert model.labels_.tolist() == [1, 0, 0]
    table = label_frame(model)
    assert (table.index.tolist() if library == "pandas" else table["item"].to_list()) == [30, 4, 200]


def test_objects_of_pandas():
    """Columns of Python objects have a type where all are of one; mixtures and long integers are text or integers."""
    frame = pd.DataFrame({"task": ["a", "b", "c"], "worker": ["u", "v", "u"]})
    for values, expected in (
        ([2, np.int64(1), None], [1, 2]),
        ([True, None, np.bool_(False)], [False, True]),
        ([1, "1", 2], ["1", "2"]),
        ([1, True, 2], ["1", "2", "true"]),
        ([2**70, 1, 1], [1, 2**70]),
        (pd.array([3, None, 4], dtype="Int64"), [3, 4]),
        (pd.Categorical([3, 4, 3]), [3, 4]),
    ):
        votes = read_annotations(frame.assign(label=pd.Series(values, dtype=getattr(values, "dtype", object))))
        assert votes.classes.tolist() == expected


def test_what_the_caller_says_comes_first():
    """Types, a map of labels and ids as text turn the types of the frame off."""
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": [1, 2, 1], "label": [1, 2, 1]})
    assert read_annotations(frame, types={"label": float}).item_ids.tolist() == ["1", "2"]
    assert read_annotations(frame, label_map={"1": "yes"}).classes.tolist() == ["2", "yes"]
    assert read_annotations(frame, item_ids=["2", "1"]).item_ids.tolist() == ["2", "1"]
    assert read_annotations(frame, item_ids=[2, 1, 0]).item_ids.tolist() == [2, 1, 0]
    assert read_annotations(frame.astype({"label": str})).classes.tolist() == ["1", "2"]


def test_several_frames_agree_or_are_text():
    """Batches with one type keep it; where one has text, all are text."""
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": [1, 2, 1], "label": [1, 2, 1]})
    more = frame.assign(task=frame["task"] + 10)
    assert read_annotations([frame, more]).item_ids.tolist() == [1, 2, 11, 12]
    assert read_annotations([frame, more.astype({"task": str})]).item_ids.tolist() == ["1", "2", "11", "12"]


def test_a_wide_frame():
    """A column per worker: items, labels and the names of columns."""
    frame = pd.DataFrame([[7, 1, 0], [5, 1, 1], [6, 0, 1]], columns=["item", 1, 2])
    votes = read_annotations(frame, format="wide")
    assert (votes.item_ids.tolist(), votes.worker_ids.tolist(), votes.classes.tolist()) == ([7, 5, 6], [1, 2], [0, 1])


def test_gold_and_fields_have_the_types_of_the_items():
    """What the frame says beside the labels is found under the same ids."""
    frame = pl.DataFrame(
        {"task": [3, 3, 1], "worker": [1, 2, 1], "label": [1, 1, 0], "gold": [1, 1, None], "text": list("xxy")}
    )
    reading = read_export(frame, item_fields=True)
    assert reading.gold == {3: 1} and reading.annotations.item_ids.tolist() == [3, 1]


def test_files_are_text(tmp_path):
    """A file has no types: 007 stays 007, and so do the numbers of a Parquet table."""
    frame = pl.DataFrame({"task": [3, 3], "worker": [1, 2], "label": [1, 0]})
    frame.write_csv(tmp_path / "votes.csv")
    frame.write_parquet(tmp_path / "votes.parquet")
    for name in ("votes.csv", "votes.parquet"):
        assert read_annotations(tmp_path / name).item_ids.tolist() == ["3"]
