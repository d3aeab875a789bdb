"""Fields of items in every format that has some."""

import json
from pathlib import Path

import polars as pl
import pytest

from manyhands.io import read_export
from manyhands.io.item_fields import ItemFields, read_item_fields

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
SAMPLES = Path(__file__).parents[1] / "samples"
EXPECTED = {  # file -> question, item, some of its fields
    "label_studio/export.json": ("sentiment", "101", {"text": "Arrived broken, refund please", "ref": "item-1"}),
    "label_studio/csv/result.csv": ("sentiment", "101", {"text": "Arrived broken, refund please", "ref": "item-1"}),
    "label_studio/min/result.json": ("sentiment", "102", {"text": "Great, thanks!", "ref": "item-2"}),
    "mturk/batch_results.csv": (None, "item-1", {"text": "Arrived broken"}),
    "mturk/batch_results_multi.csv": (None, "item-2", {"id": "item-2"}),
    "toloka/assignments.tsv": (None, "item-1", {"text": 'He said "broken"'}),
    "toloka/assignments_api.json": (None, "gold-7", {"item_id": "gold-7"}),
    "prodigy/choice.jsonl": (None, "112", {"text": "Great!"}),
    "prodigy/binary.jsonl": (None, "112", {"text": "Great!"}),
    "argilla/records_flat.jsonl": (None, "item-1", {"text": "Arrived broken", "src": "a"}),
    "argilla/records_nested.json": (None, "item-1", {"text": "Arrived broken", "src": "a"}),
    "doccano/individual": (None, "2", {"text": "Great!", "ref": "item-2"}),
    "doccano/legacy_1x.jsonl": (None, "15", {"text": "Arrived broken"}),
    "labelbox/export.ndjson": (
        None,
        "item-1",
        {"row_data": "Arrived broken", "global_key": "item-1", "external_id": "item-1"},
    ),
    "appen/full.csv": (None, "7002", {"text": "Great!", "item_id": "gold-7", "sentiment_gold": "positive\nneutral"}),
    "hf/lists_per_item.jsonl": (None, "item-1", {"text": "Arrived broken", "annotation_agreement": 0.67}),
}


def of_item(fields, item):
    """Return the fields of one item."""
    return {name: found.values[item] for name, found in fields.fields.items() if item in found.values}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_tool_gives_the_fields_of_its_items(name):
    question, item, known = EXPECTED[name]
    found = read_export(SAMPLES / name, question=question, item_fields=True).item_fields
    given = of_item(found, item)
    assert known.items() <= given.items()
    assert given.keys() - known.keys() <= {"item_id"}  # the column of ids itself, and no answer, worker or time
    alone = read_item_fields(SAMPLES / name)  # without a question: fields do not depend on it
    assert of_item(alone, item) == given


def test_fields_are_collected_only_on_request():
    assert read_export(SAMPLES / "prodigy" / "choice.jsonl").item_fields is None


def test_the_item_may_be_a_key_of_the_data():
    path = SAMPLES / "label_studio" / "export.json"
    found = read_export(path, question="sentiment", item="ref", item_fields=True).item_fields
    assert found.values("text")["item-2"] == "Great, thanks!"


def test_other_questions_are_no_fields(tmp_path):
    """In a long table with several questions, neither the question nor the answers belong to the item."""
    rows = [(n, w, q, f"{q}{w}", f"t{n}") for n in "ab" for w in "12" for q in ("mood", "topic")]
    table = pl.DataFrame(rows, schema=["item", "worker", "question", "label", "text"], orient="row")
    reading = read_export(table, question="mood", item_fields=True)
    assert list(reading.item_fields.fields) == ["text"]
    assert list(read_item_fields(table).fields) == ["text"]


def test_a_wide_table_gives_all_columns_but_the_workers():
    table = pl.DataFrame(
        {"item": ["a", "b", "c"], "ann": ["x", "y", "x"], "bob": ["x", "y", "y"], "text": ["one", "two", "three"]}
    )
    reading = read_export(table, format="wide", item_fields=True)
    assert reading.annotations.n_workers == 2
    assert reading.item_fields.values("text") == {"a": "one", "b": "two", "c": "three"}


def test_columns_called_like_workers_are_left_out_where_nothing_shows_whose_they_are():
    once = pl.DataFrame({"item": ["a", "b"], "worker": ["1", "2"], "label": ["x", "y"], "email": ["a@x.de", "b@x.de"]})
    found = read_export(once, item_fields=True).item_fields
    assert not len(found) and found.left_out == ["email"]
    twice = pl.concat([once, once.with_columns(worker=pl.lit("3"))])  # the same for two workers: of the item
    assert list(read_export(twice, item_fields=True).item_fields.fields) == ["email"]


def test_types_of_a_frame_are_kept():
    table = pl.DataFrame({"item": ["a"], "worker": ["1"], "label": ["x"], "price": [0.1], "tags": [["u", "v"]]})
    found = read_export(table, item_fields=True).item_fields
    assert found.values("price") == {"a": 0.1} and list(found.values("tags")["a"]) == ["u", "v"]


def test_a_comment_of_one_worker_is_no_field_of_the_item():
    """It is blank in the rows of the others; the text of an item is not, except by mistake."""
    rows = [
        (str(n), str(w), "x", f"text {n}" if (n, w) != (3, 1) else " ", f"c{n}" if w == 1 else None)
        for n in range(10)
        for w in range(3)
    ]
    table = pl.DataFrame(rows, schema=["item", "worker", "label", "text", "remark"], orient="row")
    found = read_export(table, item_fields=True).item_fields
    assert list(found.fields) == ["text"] and found.left_out == ["remark"]
    assert len(found.values("text")) == 10 and not found.fields["text"].conflicts


def test_batches_are_joined(tmp_path):
    for name, text in (("one", "Great"), ("two", "Great!")):
        task = {"id": 1, "data": {"text": text, "from": name}, "annotations": []}
        (tmp_path / f"{name}.json").write_text(json.dumps([task]))
    found = read_item_fields(tmp_path)
    assert found.values("text") == {"1": "Great"} and found.fields["text"].conflicts == {"1"}


def test_rows_and_columns_are_counted_alike():
    """The fast path for columns agrees with a plain loop over rows."""
    items = [*"abcabcabd", None]
    cells = ["x", "y", " ", "x", "z", None, "w", "", "v", "u"]
    by_row, by_column = ItemFields(), ItemFields()
    for item, cell in zip(items, cells):
        by_row.add(item, {"f": cell})
    by_column.add_columns(pl.Series(items, dtype=pl.String), [("f", pl.Series(cells, dtype=pl.String))])
    assert vars(by_row.fields["f"]) == vars(by_column.fields["f"])
    assert by_row.fields["f"].conflicts == {"a", "b"} and by_row.values("f") == {"a": "x", "b": "y", "d": "v"}
