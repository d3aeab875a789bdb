"""Scale: tasks and conversations, all by one annotator."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from broken_exports import ANY_JSON, broken_entries, check_broken, lines_writer, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records, open_document
from manyhands.io.formats.scale import recognise

SAMPLES = Path(__file__).parents[2] / "samples" / "scale"


@pytest.fixture
def export(tmp_path):
    return lines_writer(tmp_path, "tasks.jsonl")


def task(item="a", status="completed", **more):
    marks = {"task_id": f"t-{item}", "status": status, "unique_id": item, "completed_at": "2026-01-05T12:00:00Z"}
    return marks | {"response": {"annotations": more}}


def test_a_task():
    reading = quiet_read(SAMPLES / "task.json")
    assert reading.format == "scale" and reading.question == "sentiment"
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert triples(reading) == [("item-1", "scale", "negative")]
    assert "not a crowd" in reading.notes["single_worker"]


def test_a_conversation():
    reading = quiet_read(SAMPLES / "genai_task.json")
    assert reading.question == "formatting"
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert triples(reading) == [("task_1/tu/0", "scale", "3")]


def test_parts_of_conversations(export):
    """Threads, turns and messages may all have annotations; several threads are kept apart."""

    def annotated(value, **more):
        return {"annotations": [{"key": "q", "value": value}]} | more

    turn = annotated("turn", id="u", messages=[{"role": "user"}, annotated("message"), annotated("named", id="m")])
    thread = annotated("thread", turns=[turn, {"messages": [annotated("second")]}])
    conversation = {"task_id": "t", "status": "completed", "threads": [thread]}
    assert {item: label for item, _, label in triples(quiet_read(export(conversation)))} == {
        "t": "thread",
        "t/u": "turn",
        "t/u/1": "message",
        "t/u/m": "named",
        "t/1/0": "second",
    }
    items = quiet_read(export(conversation | {"threads": [thread, annotated("x", id="z")]})).annotations.item_ids
    assert items.tolist() == ["t/0", "t/0/u", "t/0/u/1", "t/0/u/m", "t/0/1/0", "t/z"]


def test_a_conversation_without_annotations(export):
    quiet = {"task_id": "t", "status": "completed", "threads": [{"turns": []}]}
    reading = quiet_read(export(quiet, task(q="x")))
    assert reading.ledger.excluded == {"no_label": 1} and reading.annotations.item_ids.tolist() == ["t", "a"]


def test_unfinished_tasks_are_drafts(export):
    pending = {"task_id": "t", "status": "pending", "params": {}}
    reading = quiet_read(export(pending, task("b", "canceled", q="x"), task(q="y")))
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"draft": 2}}
    assert triples(reading) == [("a", "scale", "y")]
    assert quiet_read(export(task(q=None), task("b", q="x"))).ledger.excluded == {"no_label": 1}


def test_several_fields_and_several_responses(export):
    path = export(task(q="x", r=["y", "z"]), task("b", q={"type": "category", "response": [["x"]]}))
    with pytest.raises(AnnotationError, match="several questions: q, r"):
        quiet_read(path)
    assert triples(quiet_read(path, question="q")) == [("a", "scale", "x"), ("b", "scale", "x")]
    assert triples(quiet_read(path, question="r=z")) == [("a", "scale", "yes")]
    assert triples(quiet_read(path, label="q")) == triples(quiet_read(path, question="q"))


def test_a_categorisation(export):
    entry = task() | {"response": {"category": "red"}}
    assert triples(quiet_read(export(entry))) == [("a", "scale", "red")]


@pytest.mark.parametrize("annotations", [[{"left": 1, "label": "car"}], {"q": {"boxes": []}}, {"q": [{"rank": 1}]}])
def test_marks_are_no_classes(export, annotations):
    reading = quiet_read(export(task() | {"response": {"annotations": annotations}}))
    assert reading.ledger.excluded == {"region": 1} and "parts of items" in reading.refusal


def test_a_task_done_again_counts_once(export):
    late = task(q="late") | {"completed_at": "2026-01-06T12:00:00Z"}
    reading = quiet_read(export(late, task(q="early")))
    assert triples(reading) == [("a", "scale", "late")] and reading.ledger.excluded == {"duplicate": 1}


def test_a_page_of_the_api(tmp_path):
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"docs": [task(q="x"), task("b", q="y")], "total": 2}), encoding="utf-8")
    reading = quiet_read(path)
    assert reading.format == "scale" and reading.ledger.kept == 2


def test_items_by_other_fields(export):
    path = export(task(q="x") | {"metadata": {"item": "m"}})
    assert triples(quiet_read(path, item="task_id"))[0][0] == "t-a"
    assert triples(quiet_read(path, item="metadata.item"))[0][0] == "m"
    assert triples(quiet_read(export(task(None, q="x"))))[0][0] == "t-None"


@pytest.mark.parametrize(
    ("entry", "options", "sentence"),
    [
        (task(q="x"), {"item": "ref"}, "Field 'ref' is not in .*It has: task_id, status"),
        (task(q="x"), {"worker": "w"}, 'so `worker="w"` has no meaning'),
        (task(q="x") | {"unique_id": None, "task_id": None}, {}, "row 1 has no task_id"),
        (task(q="x") | {"response": 3}, {"format": "scale"}, "row 1: response has no annotations by field"),
        (task(q="x") | {"threads": [3]}, {}, "row 1: threads is not a list of objects"),
        (task(q="x") | {"threads": [{"turns": 3}]}, {}, "row 1: turns is not a list of objects"),
        (task(q="x") | {"unique_id": []}, {}, "row 1: unique_id is a list"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, entry, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        quiet_read(export(entry), **options)


def test_plain_answers_to_tasks_are_not_claimed(export):
    assert recognise(open_document(export({"task_id": 1, "worker_id": 2, "response": "x", "status": "done"}))) is None


@settings(max_examples=200)
@given(entries=broken_entries(SAMPLES / "task.json", SAMPLES / "genai_task.json"))
def test_whatever_is_broken_gives_one_of_our_errors(entries, tmp_path_factory):
    recognise(Records("odd.json", entries))
    check_broken(write_json(tmp_path_factory.getbasetemp() / "broken-scale.json", entries), format="scale")


@given(ANY_JSON)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None
