"""Labelbox: labels of data rows, benchmarks, questions inside answers, several projects, the retired export."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings

from broken_exports import ANY_JSON, broken_entries, check_broken, lines_writer, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records
from manyhands.io.formats.labelbox import recognise

SAMPLES = Path(__file__).parents[2] / "samples" / "labelbox"


@pytest.fixture
def export(tmp_path):
    return lines_writer(tmp_path, "export.ndjson")


def radio(question, answer, inner=()):
    chosen = {"name": answer.title(), "value": answer, "classifications": list(inner)}
    return {"name": question.title(), "value": question, "radio_answer": chosen}


def label(*classifications, worker="ann@example.org", benchmark=False, skipped=False, objects=(), **more):
    return {
        "label_details": {"created_by": worker, "is_benchmark_reference": benchmark},
        "performance_details": {"skipped": skipped},
        "annotations": {"objects": list(objects), "classifications": list(classifications)},
    } | more


def data_row(*labels, key="a", **projects):
    projects = projects or {"p": labels}
    content = {name: {"name": f"Project {name}", "labels": list(given)} for name, given in projects.items()}
    return {"data_row": {"id": f"dr-{key}", "global_key": key, "external_id": "e"}, "projects": content}


def test_export():
    reading = quiet_read(SAMPLES / "export.ndjson")
    assert reading.format == "labelbox" and reading.question == "sentiment"
    assert reading.ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"gold_account": 1, "skipped": 1}}
    assert triples(reading) == [
        ("item-1", "ann@example.org", "negative"),
        ("item-1", "bo@example.org", "neutral"),
    ]
    assert reading.gold == {"item-1": "negative"}
    assert reading.annotations.worker_ids.tolist() == ["ann@example.org", "bo@example.org", "cy@example.org"]
    assert reading.notes == {}


def test_checklists_texts_and_questions_inside_answers(export):
    inner = radio("why", "late")
    topics = [{"value": "refund", "classifications": [radio("sum", "all")]}, {"value": "delivery"}]
    topic = {"value": "topic", "checklist_answers": topics}
    text = {"name": "Remark", "text_answer": {"content": "none"}}
    reading = quiet_read(
        export(data_row(label(radio("sentiment", "negative", [inner]), topic, text))), question="sentiment"
    )
    assert reading.questions == {"sentiment": 1, "topic": 1, "Remark": 1, "sentiment/why": 1, "topic/refund/sum": 1}
    path = export(data_row(label(topic)))
    assert triples(quiet_read(path, question="topic=refund")) == [("a", "ann@example.org", "yes")]
    assert triples(quiet_read(path, label="topic/refund/sum")) == [("a", "ann@example.org", "all")]


def test_a_thousand_questions_inside_each_other(export):
    deepest = radio("q", "x")
    for _ in range(300):
        deepest = radio("q", "x", [deepest])
    assert len(quiet_read(export(data_row(label(deepest))), question="q").questions) == 301


def test_data_rows_without_labels(export):
    reading = quiet_read(
        export(data_row(key="b"), data_row(label(radio("q", "x"))), {"data_row": {"id": "c"}, "projects": {}})
    )
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"no_label": 2}}
    assert reading.annotations.item_ids.tolist() == ["b", "a", "c"]


def test_several_projects(export):
    """Labels of another project do not leave the question open; an unlabelled data row of this one does."""
    one, two = label(radio("q", "x")), label(radio("q", "y"), worker="bo")
    path = export(data_row(one=[one], two=[two]), data_row(one=[], two=[two], key="b"))
    with pytest.raises(AnnotationError, match="several projects: Project one/q, Project two/q"):
        quiet_read(path)
    with pytest.raises(AnnotationError, match="no question 'q'"):
        quiet_read(path, question="q")
    reading = quiet_read(path, question="Project one/q")
    assert triples(reading) == [("a", "ann@example.org", "x")]
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"no_label": 1}}
    assert len(triples(quiet_read(path, label="Project two/q"))) == 2
    assert triples(quiet_read(path, question="Project two/q=y"))[0] == ("a", "bo", "yes")


def test_projects_of_one_name_go_by_their_ids(export):
    entry = data_row(one=[label(radio("q", "x"))], two=[label(radio("q", "y"))])
    entry["projects"]["two"]["name"] = "Project one"
    assert triples(quiet_read(export(entry), question="two/q")) == [("a", "ann@example.org", "y")]


def test_another_project_without_labels_is_no_matter(export):
    reading = quiet_read(export(data_row(one=[label(radio("q", "x"))], two=[])))
    assert reading.question == "q" and reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}


def test_labels_of_nobody_are_refused(export):
    bare = {"annotations": {"classifications": [radio("q", "x")]}}
    reading = quiet_read(export(data_row(bare)))
    assert reading.ledger.excluded == {"no_worker": 1} and "label_details" in reading.refusal
    assert quiet_read(export(data_row(bare, label(radio("q", "x"))))).refusal is None


def test_objects_are_no_classes(export):
    reading = quiet_read(export(data_row(label(objects=[{"name": "box"}]))))
    assert reading.ledger.excluded == {"region": 1} and "has only labels of parts of items (box)" in reading.refusal
    assert quiet_read(export(data_row(label(radio("q", "x"), objects=[{"name": "box"}])))).ledger.kept == 1


def test_a_benchmark_is_known_for_all_its_questions(export):
    benchmark = label(radio("q", "x"), {"value": "r", "checklist_answers": [{"value": "1"}]}, benchmark=True)
    path = export(data_row(label(radio("q", "y")), benchmark))
    assert quiet_read(path, question="q").gold == {"a": "x"} and quiet_read(path, question="r").gold == {"a": "1"}


def test_items_by_other_keys(export):
    path = export(data_row(label(radio("q", "x")), key=None))
    assert triples(quiet_read(path))[0][0] == "e"
    assert triples(quiet_read(path, item="id"))[0][0] == "dr-None"
    assert triples(quiet_read(path, item="data_row.id"))[0][0] == "dr-None"


V1 = {
    "ID": "l1",
    "DataRow ID": "d1",
    "Labeled Data": "text",
    "Created By": "ann",
    "Created At": "2021-01-01T00:00:00Z",
    "Project Name": "P",
    "External ID": "a",
    "Skipped": False,
}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"classifications": [{"title": "Q", "value": "q", "answer": {"title": "X", "value": "x"}}]}, "x"),
        ({"classifications": [{"title": "q", "answers": [{"title": "X"}]}], "objects": []}, "X"),
        ({"classifications": [{"value": "q", "answer": "words"}]}, "words"),
        ({"q": "x"}, "x"),
        ({"q": ["x"]}, "x"),
    ],
)
@pytest.mark.parametrize("as_table", [False, True])
def test_the_retired_export(export, tmp_path, content, expected, as_table):
    skipped = V1 | {"Created By": "bo", "Label": "Skip", "Skipped": True}
    rows = [V1 | {"Label": content}, skipped]
    path = export(*rows)
    if as_table:
        path = tmp_path / "v1.csv"
        cells = [row | {"Label": json.dumps(row["Label"])} if row is not skipped else row for row in rows]
        pl.DataFrame([{key: str(cell) for key, cell in row.items()} for row in cells]).write_csv(path)
    reading = quiet_read(path)
    assert reading.format == "labelbox" and "v1" in reading.notes["retired_export"]
    assert triples(reading) == [("a", "ann", expected)]
    assert reading.ledger.excluded == {"skipped": 1}


@pytest.mark.parametrize("mark", [{"Label": "Skip"}, {"Label": "", "Skipped": True}])
def test_what_was_skipped_in_the_retired_export(export, mark):
    reading = quiet_read(export(V1 | {"Label": {"q": "x"}}, V1 | mark))
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"skipped": 1}}


@pytest.mark.parametrize(
    ("entry", "options", "sentence"),
    [
        ({"projects": {}}, {"format": "labelbox"}, "row 1 has no data_row"),
        ({"data_row": {}, "projects": {}}, {}, "row 1 has none of global_key, external_id, id"),
        ({"data_row": {"id": 1}, "projects": []}, {}, "row 1: projects is not an object"),
        (data_row(3), {}, "row 1: an entry of labels is not an object"),
        (data_row(label(radio("q", "x"), worker=["ann"])), {}, "row 1: created_by is a list"),
        (data_row(label(3)), {}, "row 1: an entry of classifications is not an object"),
        (data_row(label(radio("q", "x"))), {"item": "ref"}, "Field 'ref' is not in .*It has: id, global_key"),
        (data_row(label(radio("q", "x"))), {"worker": "w"}, 'so `worker="w"` has no meaning'),
        (V1 | {"Label": [1]}, {}, "row 1: Label is not an object"),
        (V1 | {"Label": {"q": {"deep": 1}}}, {}, "row 1: q is an object"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, entry, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        quiet_read(export(entry), **options)


@settings(max_examples=200)
@given(entries=broken_entries(SAMPLES / "export.ndjson"))
def test_whatever_is_broken_gives_one_of_our_errors(entries, tmp_path_factory):
    recognise(Records("odd.json", entries))
    check_broken(write_json(tmp_path_factory.getbasetemp() / "broken-labelbox.json", entries), format="labelbox")


@given(ANY_JSON)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None
