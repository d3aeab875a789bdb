"""What is written back is what tools take in, and what this package reads again."""

import io
import json
from pathlib import Path

import orjson
import polars as pl
import pytest

from manyhands import Annotations, MajorityVote
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.documents import open_document
from manyhands.io.formats import read_document
from manyhands.io.judgements import ColumnOptions
from manyhands.io.reading import read_export
from manyhands.io.side_tables import read_gold
from manyhands.io.sources import Source
from manyhands.io.write.results import label_frame
from manyhands.io.write.training_table import jsonl, parquet
from manyhands.io.write.write_back import check_write_back, copies_of_tasks, label_studio_tasks, predictions_for_tasks

pytestmark = pytest.mark.fast

SAMPLES = Path(__file__).parents[2] / "samples" / "label_studio"
EXPORT = SAMPLES / "export.json"


def annotation(by, label, kind="choices", **more):
    value = {"choices": [label]} if kind == "choices" else {kind: label}
    result = {"from_name": "q", "to_name": "img", "type": kind, "value": value}
    return {"completed_by": by, "result": [result], **more}


@pytest.fixture
def table():
    """Labels with a tie, an item without one, and a class nobody is sure of."""
    columns = {"item": ["a", "b"], "label": ["no", None], "confidence": [0.7, 0.5], "n_labels": [3, 0]}
    return pl.DataFrame(columns | {"alerts": [None, "unlabelled"], "p_yes": [0.3, 0.5], "p_no": [0.7, 0.5]})


def labels_of(table):
    return {item: (label, sure) for item, label, sure in table.select("item", "label", "confidence").iter_rows()}


def test_there_and_back_again(tmp_path):
    """Import, aggregate, write back, import again: the labels come back as predictions, and as nobody's judgement."""
    reading = read_export(EXPORT, question="sentiment")
    with pytest.warns(CrowdWarning, match="single_class"):
        found = labels_of(label_frame(MajorityVote().fit(reading.annotations)))
    written = copies_of_tasks(EXPORT, found, question="sentiment", model_version="run-1")
    (tmp_path / "back.json").write_bytes(written)
    again = read_export(tmp_path / "back.json", question="sentiment")
    assert again.format == "label-studio"
    assert again.ledger.as_dict() == {"rows_read": 4, "kept": 0, "excluded": {"prediction": 1, "no_label": 3}}
    tasks = json.loads(written)
    expected = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": ["neutral"]}}
    assert tasks[0]["predictions"] == [{"model_version": "run-1", "score": 1.0, "result": [expected]}]
    assert [task["predictions"] for task in tasks[1:]] == [[], []]
    assert [(task["id"], task["data"]) for task in tasks] == [
        (task["id"], task["data"]) for task in json.loads(EXPORT.read_text())
    ]
    assert not any(name in written for name in (b"example.org", b"completed_by", b"annotations"))


def test_every_label_comes_back_as_it_went(tmp_path):
    said = {1: "aab", 2: "bbc", 3: "cca", 4: "aaa"}
    tasks = [
        {"id": number, "data": {}, "annotations": [annotation(by, label) for by, label in enumerate(labels)]}
        for number, labels in said.items()
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    found = labels_of(label_frame(MajorityVote().fit(read_export(tmp_path / "export.json").annotations)))
    (tmp_path / "back.json").write_bytes(copies_of_tasks(tmp_path / "export.json", found, question="q"))
    again = read_document(open_document(tmp_path / "back.json"), ColumnOptions())
    predicted = again.reason == "prediction"
    rows = zip(again.item.filter(predicted), again.answers["q"].filter(predicted))
    assert dict(rows) == {"1": "a", "2": "b", "3": "c", "4": "a"} == {item: label for item, (label, _) in found.items()}


def test_ids_and_data_stand_as_they_did():
    invalid = b'"caf\\u00e9 \\"}{][\\\\", "n": 1.10, "big": 123456789012345678901234567890'
    data = b'{"text": %s, "in": {"id": 5, "data": {}}}' % invalid
    given = orjson.dumps(annotation(1, "a"))
    entry = b'{"data": %s, "meta": {"id": 9}, "id": 1.0, "annotations": [%s]}' % (data, given)
    for name, content in (("x.json", b"[%s]" % entry), ("x.jsonl", entry + b"\n\n" + entry + b"\n"), ("x.json", entry)):
        written = copies_of_tasks(Source(name, content=content), {"1.0": ("a", 0.5)}, question="q")
        assert b'"data": ' + data in written and b'"id": 1.0,' in written
        assert len(json.loads(written)) == 1 and len(json.loads(written)[0]["predictions"]) == 1


@pytest.mark.parametrize(("kind", "label", "value"), [("rating", 4, {"rating": 4}), ("number", 2.5, {"number": 2.5})])
def test_numbers_go_back_as_numbers(kind, label, value):
    export = orjson.dumps([{"id": 1, "data": {}, "annotations": [annotation(1, label, kind)]}])
    written = copies_of_tasks(Source("x.json", content=export), {"1": (str(label), 1)}, question="q")
    (result,) = json.loads(written)[0]["predictions"][0]["result"]
    assert result["value"] == value and result["type"] == kind and result["to_name"] == "img"


def test_a_combination_goes_back_as_its_choices():
    entries = [annotation(by, label) for by, label in enumerate(("a", "b", "c", "d", "c + d"))]
    source = Source("x.json", content=orjson.dumps([{"id": 1, "data": {}, "annotations": entries}]))
    for label, choices in (("a + b", ["a", "b"]), ("c + d", ["c + d"]), ("a + z", ["a + z"])):
        written = copies_of_tasks(source, {"1": (label, 1)}, question="q")
        assert json.loads(written)[0]["predictions"][0]["result"][0]["value"] == {"choices": choices}


def test_items_by_another_key_and_files_of_annotations(tmp_path):
    found = {"item-1": ("negative", 0.25)}
    written = json.loads(copies_of_tasks(EXPORT, found, question="sentiment", item="ref"))
    assert [len(task["predictions"]) for task in written] == [1, 0, 0] and written[0]["predictions"][0]["score"] == 0.25
    for name, by in (("1.json", 5), ("2.json", 6)):
        content = annotation(by, "a", task={"id": 101, "data": {"text": "t"}})
        (tmp_path / name).write_text(json.dumps(content))
    (task,) = json.loads(copies_of_tasks(tmp_path, {"101": ("a", 1)}, question="q"))
    assert task["id"] == 101 and task["data"] == {"text": "t"} and len(task["predictions"]) == 1


def test_every_task_is_written_once(tmp_path):
    """Tasks that are one item, tasks without an id, the same id elsewhere, and the same file twice."""
    tasks = [
        {"id": number, "data": {"text": text}, "annotations": [annotation(1, "a")]}
        for number, text in ((1, "same"), (2, "same"), ("1", "same"), (1.0, "same"), (None, "same"), (None, "same"))
    ]
    other = [{"id": 1, "data": {"text": "other"}, "annotations": [annotation(1, "a")]}, tasks[-1]]
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    one.write_text(json.dumps(tasks))
    two.write_text(json.dumps(other))
    found = {"same": ("a", 0.9)}
    written = json.loads(copies_of_tasks([one, two], found, question="q", item="data.text"))
    assert [repr(task["id"]) for task in written] == ["1", "2", "'1'", "1.0", "None", "None", "1", "None"]
    assert [len(task["predictions"]) for task in written] == [1, 1, 1, 1, 1, 1, 0, 1]
    two.write_text(json.dumps(tasks[:4]))
    assert len(json.loads(copies_of_tasks([one, two], found, question="q"))) == 6


def test_files_of_annotations_are_one_task_each(tmp_path):
    """Also where the task is a number alone, or was changed in between; its data stand as they did all the same."""
    (tmp_path / "0.json").write_bytes(b"")
    for name, task in (
        ("1", 5),
        ("2", 4),
        ("2b", 5),
        ("3", {"id": 6, "data": {"n": 7}}),
        ("4", {"id": 6, "data": {"n": 8}}),
    ):
        content = json.dumps(annotation(1, "a", task=task, id=99, data={"by": name}))
        (tmp_path / f"{name}.json").write_text(
            content.replace(" 7", " 1.10").replace('"task"', '"t\\u0061sk"' if name == "2" else '"task"')
        )
    written = copies_of_tasks(tmp_path, {"5": ("a", 1), "6": ("a", 1)}, question="q")
    assert [(task["id"], task["data"], len(task["predictions"])) for task in json.loads(written)] == [
        (5, None, 1),
        (4, None, 0),
        (6, {"n": 1.1}, 1),
    ]
    assert b'{"n": 1.10}' in written


def test_the_encoding_that_was_read_is_read_again(tmp_path):
    path = tmp_path / "x.json"
    task = {"id": 1, "data": {"text": "caf\u00e9"}, "annotations": [annotation(1, "\u00e9")]}
    path.write_text(json.dumps([task], ensure_ascii=False), encoding="cp1252")
    with pytest.raises(AnnotationError, match="not UTF-8"):
        copies_of_tasks(path, {}, question="q")
    (written,) = json.loads(copies_of_tasks(path, {"1": ("\u00e9", 1)}, question="q", encoding="cp1252"))
    assert written["data"] == {"text": "caf\u00e9"} and len(written["predictions"]) == 1


def test_what_cannot_be_written_back_is_said_before_the_work():
    questions = {"topic": 5, "a": 4, "a=b": 3}
    check_write_back([EXPORT], "topic", questions)
    check_write_back([EXPORT], "a=b", questions)
    with pytest.raises(ParameterError, match=r"whether 'refund' was chosen for 'topic'.*and `by_choice=True`"):
        check_write_back([EXPORT], "topic=refund", questions)
    for refused in (lambda: check_write_back(["-"], "topic", questions),
                    lambda: copies_of_tasks("-", {}, question="q")):  # fmt: skip
        with pytest.raises(ParameterError, match="standard input can be read only once"):
            refused()


def test_what_cannot_be_written_back():
    with pytest.raises(AnnotationError, match=r"no question 'mood'\. It has: sentiment, topic"):
        copies_of_tasks(EXPORT, {}, question="mood")
    with pytest.raises(AnnotationError, match="not a JSON export of Label Studio"):
        copies_of_tasks([EXPORT, SAMPLES / "min" / "result.json"], {}, question="sentiment")
    alone = orjson.dumps(annotation(1, "a", task={"id": 1, "data": {"deep": 5}}))
    deep = Source(
        "x.json", content=alone.replace(b":5}", b":" + b"[" * 300 + b"]" * 300 + b"}").replace(b"data", b"d\\u0061ta")
    )
    with pytest.raises(AnnotationError, match="cannot be written as JSON"):
        copies_of_tasks(deep, {}, question="q")
    with pytest.raises(ParameterError, match="`kind` is 'words'; allowed are choices"):
        label_studio_tasks({}, kind="words")


def test_new_tasks(tmp_path, table):
    path = tmp_path / "tasks.json"
    path.write_bytes(label_studio_tasks(labels_of(table), from_name="mood", to_name="words"))
    result = {"from_name": "mood", "to_name": "words", "type": "choices", "value": {"choices": ["no"]}}
    first, second = json.loads(path.read_bytes())
    prediction = {"model_version": "manyhands", "score": 0.7, "result": [result]}
    assert first == {"data": {"item": "a", "manyhands_priority": 0.3}, "predictions": [prediction]}
    assert second["data"]["item"] == "b" and second["predictions"] == []
    again = read_export(path, item="item", question="mood")
    assert again.ledger.excluded == {"prediction": 1, "no_label": 2}


def test_json_lines(table):
    lines = [json.loads(line) for line in jsonl(table).splitlines()]
    assert lines[0] == {
        "item": "a",
        "label": "no",
        "confidence": 0.7,
        "label_probs": [0.3, 0.7],
        "n_labels": 3,
        "alerts": None,
        "classes": ["yes", "no"],
    }
    assert pl.read_ndjson(jsonl(table))["label"].to_list() == ["no", None]


def test_parquet(table):
    written = parquet(table)
    frame = pl.read_parquet(written)
    assert frame.columns == ["item", "label", "label_id", "confidence", "label_probs", "n_labels", "alerts"]
    assert frame["label"].to_list() == ["no", None] and frame["label_id"].to_list() == [1, None]
    assert frame["label_probs"].dtype == pl.List(pl.Float32)
    assert frame["label_probs"].to_list()[0] == pytest.approx([0.3, 0.7])
    metadata = pl.read_parquet_metadata(io.BytesIO(written))
    features = json.loads(metadata["huggingface"])["info"]["features"]
    assert list(features) == frame.columns and json.loads(metadata["classes"]) == ["yes", "no"]
    assert features["label_id"] == {"names": ["yes", "no"], "_type": "ClassLabel"}
    assert features["label"] == {"dtype": "string", "_type": "Value"}
    assert features["label_probs"] == {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "Sequence"}
    assert features["n_labels"]["dtype"] == "int64" and features["confidence"]["dtype"] == "float64"


def test_parquet_of_integer_classes():
    votes = Annotations.from_triples([1, 1, 2], ["a", "b", "a"], [7, 7, 10])
    frame = pl.read_parquet(parquet(label_frame(MajorityVote().fit(votes))))
    assert frame["label"].to_list() == ["7", "10"]
    assert frame["label_id"].to_list() == [0, 1]


@pytest.mark.parametrize(("name", "write"), [("labels.jsonl", jsonl), ("labels.parquet", parquet)])
def test_labels_are_not_taken_for_a_crowd(tmp_path, table, name, write):
    """They have no workers, so reading them as judgements is refused, not guessed at."""
    (tmp_path / name).write_bytes(write(table))
    with pytest.raises(AnnotationError, match=name):
        read_export(tmp_path / name)


@pytest.mark.parametrize(("name", "write"), [("labels.jsonl", jsonl), ("labels.parquet", parquet)])
def test_labels_are_read_again_as_known_ones(tmp_path, name, write):
    annotations = Annotations.from_triples(["1", "1", "2"], ["x", "y", "x"], ["a", "a", "b"], item_ids=["1", "2", "3"])
    found = label_frame(MajorityVote().fit(annotations))
    (tmp_path / name).write_bytes(write(found))
    assert read_gold(tmp_path / name, annotations) == {"1": "a", "2": "b"}


def test_another_table_is_refused():
    with pytest.raises(AnnotationError, match="no column label, confidence, n_labels, alerts"):
        jsonl(pl.DataFrame({"item": ["a"]}))


def test_predictions_name_tasks_that_exist_and_nothing_else():
    """The form of Label Studio's import of predictions: no task, data or annotation is written."""
    written = json.loads(
        predictions_for_tasks(EXPORT, {"101": ("negative", 0.75), "103": (None, 0)}, question="sentiment")
    )
    result = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": ["negative"]}}
    assert written == [{"task": 101, "result": [result], "score": 0.75, "model_version": "manyhands"}]


def test_a_task_without_an_id_cannot_get_a_prediction(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"data": {"text": "a"}, "annotations": [annotation(1, "x")]}]))
    with pytest.raises(AnnotationError, match="no id"):
        predictions_for_tasks(path, {"a": ("x", 1)}, question="q", item="text")


def test_new_tasks_can_be_sorted_by_how_uncertain_they_are():
    tasks = json.loads(label_studio_tasks({"a": ("x", 0.75), "b": ("y", 1.0)}))
    assert [task["data"]["manyhands_priority"] for task in tasks] == [0.25, 0.0]
