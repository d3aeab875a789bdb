"""Training sets: fields of items as they came, beside the labels."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from manyhands import Annotations, MajorityVote, training_set
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io import read_export
from manyhands.io.item_fields import ItemFields
from manyhands.io.write.training_table import join_fields
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.options import ExportOptions

SAMPLES = Path(__file__).parents[2] / "samples"
MTURK, ARGILLA = SAMPLES / "mturk" / "batch_results.csv", SAMPLES / "argilla" / "records_nested.json"

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


def votes(items="aab", labels=("cat", "cat", "dog")):
    return MajorityVote().fit(Annotations.from_triples(list(items), ["w1", "w2", "w1"], list(labels)))


def fields_of(rows):
    found = ItemFields()
    for item, given in rows:
        found.add(item, given)
    return found


def task(number, data, answers):
    """A task of Label Studio, with the answers of one worker each."""
    results = [
        {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [answer]}}
        for answer in answers
    ]
    annotations = [{"completed_by": at, "result": [result]} for at, result in enumerate(results, start=1)]
    return {"id": number, "data": data, "annotations": annotations}


TASKS = [
    task(
        1, {"text": "=cmd(1)", "url": "http://x/1", "meta": {"lang": "de", "n": [1, 2.5]}, "label": 7}, ["good", "good"]
    ),
    task(2, {"text": 'say "hi",\nthere', "meta": None, "price": 0.12345678901}, ["bad", "good", "bad"]),
    task(3, {"text": "nobody"}, []),
]


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(TASKS))
    return str(path)


def test_every_field_comes_as_it_was(export, tmp_path):
    """Nested data, numbers and line breaks survive in all three files."""
    run = aggregate([export], method="majority-vote", out=tmp_path / "out", write=list(KINDS))
    rows = [json.loads(line) for line in (tmp_path / "out" / "training.jsonl").read_text().splitlines()]
    for row, known in zip(rows, TASKS):
        kept = {("item_label" if key == "label" else key): value for key, value in known["data"].items()}
        assert {key: row[key] for key in kept} == kept
    assert [row["label"] for row in rows] == ["good", "bad"]  # the third task has no label
    assert rows[0]["soft_label"] == {"bad": 0.0, "good": 1.0} and rows[1]["weight"] == rows[1]["confidence"]
    table = list(csv.DictReader(io.StringIO((tmp_path / "out" / "training.csv").read_text(), newline="")))
    assert run.summary["training_fields"] == ["text", "url", "meta", "item_label", "price"]
    own = ["label", "confidence", "weight", "p_bad", "p_good"]
    assert list(table[0]) == ["item", *run.summary["training_fields"], *own]
    assert table[0]["text"] == "=cmd(1)" and table[1]["text"] == 'say "hi",\nthere'
    assert json.loads(table[0]["meta"]) == {"lang": "de", "n": [1, 2.5]}
    assert table[1]["price"] == "0.12345678901"  # not rounded to the decimals of a probability
    packed = pl.read_parquet(tmp_path / "out" / "training.parquet")
    assert packed["price"].to_list() == [None, 0.12345678901] and packed["item_label"].to_list() == [7, None]
    assert "item_label" in run.summary["notes"]["fields_renamed"]
    assert run.summary["notes"]["unlabelled"] == "The training set lacks 1 item without a label."


KINDS = ("training", "training:jsonl", "training-parquet")


def test_formulas_are_guarded_on_request(export, tmp_path):
    aggregate([export], method="majority-vote", out=tmp_path / "out", write=["training"], spreadsheet_safe=True)
    assert "'=cmd(1)" in (tmp_path / "out" / "training.csv").read_text()


def test_conflicting_values_keep_the_first_and_are_counted(tmp_path):
    text = {str(n): f"text {n}" for n in range(10)}
    rows = [f"{n},w{w},{'xy'[int(n) % 2]},{text[n]},note {n}{w}\n" for n in text for w in range(3)]
    rows[2] = rows[2].replace("text 0", "Text 0 (corrected)")
    path = tmp_path / "votes.csv"
    path.write_text("item,worker,label,text,remark\n" + "".join(rows))
    with pytest.warns(CrowdWarning, match="1 item has different values of text; the first of each was kept"):
        run = aggregate([str(path)], method="majority-vote", out=tmp_path / "out", write=["training"])
    table = pl.read_csv(tmp_path / "out" / "training.csv")
    assert table["text"].to_list() == [text[str(item)] for item in table["item"].to_list()]
    assert "remark" not in table.columns and "remark" in run.summary["notes"]["fields_left_out"]


def test_an_export_without_fields_says_so(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,worker,label\na,w1,x\na,w2,x\nb,w1,y\n")
    with pytest.warns(CrowdWarning, match="ids and labels alone"):
        aggregate([str(path)], method="majority-vote", out=tmp_path / "out", write=["training"])
    assert (tmp_path / "out" / "training.csv").read_text().startswith("item,label,confidence,weight,p_x,p_y\n")


def test_fields_that_name_workers_are_left_out_with_pseudonyms(tmp_path):
    rows = "".join(f"{n},ann,{'xy'[n % 2]},ann,3\n{n},bob,x,ann,3\n" for n in range(4))
    path = tmp_path / "votes.csv"
    path.write_text("item,worker,label,author,n\n" + rows)
    aggregate([str(path)], method="majority-vote", out=tmp_path / "a", write=["training"], worker_names="pseudonyms")
    text = (tmp_path / "a" / "training.csv").read_text()
    assert text.startswith("item,n,label") and "ann" not in text
    aggregate([str(path)], method="majority-vote", out=tmp_path / "b", write=["training"])
    assert (tmp_path / "b" / "training.csv").read_text().startswith("item,author,n,label")


def test_names_of_columns_are_never_shared():
    """A prefix is added until the name is free: two fields never become one column."""
    found = join_fields(votes(), fields_of([("a", {"label": 1, "item_label": 2, "p_cat": 3, "soft_label": 4})]))
    assert list(found.fields) == ["item_item_label", "item_label", "item_p_cat", "item_soft_label"]
    assert found.frame()["item_item_label"].to_list() == [1, None] and len(set(found.frame().columns)) == 10


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], pl.Int64),
        ([1, 2.5], pl.Float64),
        ([True, False], pl.Boolean),
        ([1, "x"], pl.String),
        ([10**30, 1], pl.String),
        ([[1], {"a": 1}], pl.String),
    ],
)
def test_types_are_kept_where_all_values_share_one(values, dtype):
    table = join_fields(votes(), fields_of(zip("ab", ({"f": value} for value in values)))).frame()
    assert table["f"].dtype == dtype


def test_fields_come_from_a_frame_a_path_or_a_reading(tmp_path):
    model = votes()
    frame = pl.DataFrame({"id": ["b", "a"], "text": ["Woof", "Meow"], "n": [2, 1]})
    assert training_set(model, frame).select("item", "text", "n").rows() == [("a", "Meow", 1), ("b", "Woof", 2)]
    frame.write_csv(tmp_path / "texts.csv")
    assert training_set(model, tmp_path / "texts.csv")["text"].to_list() == ["Meow", "Woof"]
    table = pl.DataFrame({"item": [*"aab"], "worker": ["1", "2", "1"], "label": [*"xxy"], "text": ["m", "m", "w"]})
    reading = read_export(table, item_fields=True)
    fitted = MajorityVote().fit(reading.annotations)
    assert training_set(fitted, reading)["text"].to_list() == ["m", "w"]
    assert training_set(fitted, table)["text"].to_list() == ["m", "w"]  # a table of labels, with workers
    assert training_set(model).columns == ["item", "label", "confidence", "weight", "p_cat", "p_dog"]
    with pytest.raises(ParameterError, match="item_fields=True"):
        training_set(model, read_export(table))
    with pytest.raises(AnnotationError, match="ids of items"):
        training_set(model, frame.rename({"id": "number"}))


@pytest.mark.parametrize("convert", [int, str])
def test_ids_are_compared_as_text(export, convert):
    """A file has text where a data frame has numbers."""
    items = [convert(item) for item in (1, 1, 2)]
    model = MajorityVote().fit(Annotations.from_triples(items, ["w1", "w2", "w1"], ["x", "x", "y"]))
    assert training_set(model, export)["text"].to_list() == ["=cmd(1)", 'say "hi",\nthere']


@pytest.mark.parametrize(
    ("items", "sentence"), [("xxy", "None of 2 items have"), (["1", "1", "7"], "Only 1 of 2 items has")]
)
def test_items_without_fields_are_told(export, items, sentence):
    model = MajorityVote().fit(Annotations.from_triples(list(items), ["w1", "w2", "w1"], ["x", "x", "y"]))
    with pytest.warns(CrowdWarning, match=f"items_without_fields: {sentence} fields in the file of items"):
        training_set(model, export)


@pytest.mark.parametrize("kind", ["csv", "mturk", "argilla"])
def test_new_tasks_of_label_studio_have_the_fields_of_the_items(kind, tmp_path):
    """As the training set of the same run has."""
    path = {"csv": tmp_path / "a.csv", "mturk": MTURK, "argilla": ARGILLA}[kind]
    if kind == "csv":
        path.write_text("item,worker,label,text,code\n1,a,x,red,7\n1,b,x,red,7\n2,a,y,blue,8\n2,b,y,blue,8\n")
    options = ExportOptions(question=None if kind == "csv" else "sentiment")
    aggregate([str(path)], options, out=str(tmp_path / "out"), write=["label-studio-tasks", "training"])
    tasks = json.loads((tmp_path / "out" / "label_studio_tasks.json").read_text())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "training.csv").read_text())))
    assert len(tasks) == len(rows) > 0
    for task, row in zip(tasks, rows):
        assert task["data"]["item"] == row["item"] and task["data"]["text"] == row["text"] != ""


def test_fields_follow_converted_ids(tmp_path):
    table = pl.DataFrame({"item": ["007", "007"], "worker": ["1", "2"], "label": ["x", "x"], "text": ["m", "m"]})
    reading = read_export(table, item_fields=True, types={"item": int})
    assert training_set(MajorityVote().fit(reading.annotations), reading).row(0)[:2] == (7, "m")


def test_pandas_has_the_items_as_index():
    pandas = pytest.importorskip("pandas")
    texts = pandas.DataFrame({"id": ["a", "b"], "text": ["Meow", None], "n": [1.5, float("nan")]})
    table = training_set(votes(), texts, library="pandas")
    assert table.loc["a", "text"] == "Meow" and table.loc["a", "n"] == 1.5 and pandas.isna(table.loc["b", "text"])


def test_all_questions_have_their_training_set(tmp_path):
    from manyhands.jobs.aggregate import aggregate_questions

    text = json.loads(json.dumps(TASKS))
    for one in text:
        for at, annotation in enumerate(one["annotations"]):
            more = {"from_name": "topic", "to_name": "text", "type": "choices", "value": {"choices": ["ab"[at % 2]]}}
            annotation["result"].append(more)
    path = tmp_path / "export.json"
    path.write_text(json.dumps(text))
    options = {"method": "majority-vote", "write": ["training"]}
    aggregate_questions([str(path)], out=tmp_path / "out", options=options)
    assert all((tmp_path / "out" / name / "training.csv").exists() for name in ("mood", "topic"))
