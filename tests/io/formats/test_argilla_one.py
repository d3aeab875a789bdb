"""Argilla 1: feedback records of its API and of the Hub."""

import json
from pathlib import Path

import polars as pl
import pytest

from broken_exports import quiet_read, triples
from manyhands.exceptions import AnnotationError
from manyhands.io import read_export

SAMPLES = Path(__file__).parents[2] / "samples" / "argilla"
pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


def test_records_of_the_api():
    reading = read_export(SAMPLES / "feedback_api.json", item_fields=True)
    assert triples(reading) == [
        ("item-1", "1111", "negative"),
        ("item-2", "1111", "positive"),
        ("item-2", "2222", "positive"),
    ]
    assert reading.item_fields.values("text") == {"item-1": "Arrived broken", "item-2": "Lovely"}
    assert reading.item_fields.values("src") == {"item-1": "a"}


@pytest.mark.parametrize("kind", ["lists", "objects", "parquet"])
def test_records_of_the_hub(kind, tmp_path):
    """Responses as a list of objects, as an object of lists, and in the cells of a table."""
    lines = [json.loads(line) for line in (SAMPLES / "feedback_hub.jsonl").read_text().splitlines()]
    if kind == "objects":
        for line in lines:
            given = line["sentiment"]
            line["sentiment"] = {key: [one[key] for one in given] for key in given[0]}
    path = tmp_path / ("a.parquet" if kind == "parquet" else "a.jsonl")
    if kind == "parquet":
        pl.DataFrame(lines).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reading = read_export(path, item_fields=True)
    assert triples(reading) == [
        ("1", "1111", "negative"),
        ("2", "1111", "positive"),
        ("2", "2222", "positive"),
    ]
    assert reading.ledger.excluded == {"prediction": 1, "draft": 1}
    assert reading.item_fields.values("text") == {"1": "Arrived broken", "2": "Lovely"}
    assert "sentiment" not in reading.item_fields.fields


def test_lists_that_differ_in_length(tmp_path):
    entry = {"external_id": "a", "text": "t", "q": {"user_id": ["1", "2"], "value": ["x"]}, "q-suggestion": None}
    (tmp_path / "a.json").write_text(json.dumps([entry]))
    with pytest.raises(AnnotationError, match="the answers to 'q' differ in length"):
        quiet_read(tmp_path / "a.json")
