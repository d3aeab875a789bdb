"""Scale: tasks and conversations, all by one voice."""

import json
import warnings
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyhands.exceptions import AnnotationError, CrowdWarning, ManyhandsError
from manyhands.io.documents import Records, open_document
from manyhands.io.formats.scale import recognise
from manyhands.io.reading import read as read_aloud

SAMPLES = Path(__file__).parents[2] / "samples" / "scale"


def read(path, **options):
    """A reading whose notes are not warned of; tests look at them by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return read_aloud(path, **options)


def labels_of(reading):
    """(item, worker, label) of every judgement that counts."""
    votes = reading.annotations
    columns = votes.item_ids[votes.item], votes.worker_ids[votes.worker], votes.classes[votes.label]
    return list(zip(*(column.tolist() for column in columns)))


@pytest.fixture
def export(tmp_path):
    """A function that writes objects as JSON lines."""

    def write(*objects, name="tasks.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in objects), encoding="utf-8")
        return path

    return write


def task(item="a", status="completed", **more):
    marks = {"task_id": f"t-{item}", "status": status, "unique_id": item, "completed_at": "2026-01-05T12:00:00Z"}
    return marks | {"response": {"annotations": more}}


def test_a_task():
    reading = read(SAMPLES / "task.json")
    assert reading.format == "scale" and reading.question == "sentiment"
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert labels_of(reading) == [("item-1", "scale", "negative")]
    assert "no crowd" in reading.notes["one_voice"]


def test_a_conversation():
    reading = read(SAMPLES / "genai_task.json")
    assert reading.question == "formatting"
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert labels_of(reading) == [("task_1/tu/0", "scale", "3")]


def test_parts_of_conversations(export):
    """Threads, turns and messages may all have annotations; several threads are kept apart."""

    def annotated(value, **more):
        return {"annotations": [{"key": "q", "value": value}]} | more

    turn = annotated("turn", id="u", messages=[{"role": "user"}, annotated("message"), annotated("named", id="m")])
    thread = annotated("thread", turns=[turn, {"messages": [annotated("second")]}])
    conversation = {"task_id": "t", "status": "completed", "threads": [thread]}
    assert {item: label for item, _, label in labels_of(read(export(conversation)))} == {
        "t": "thread",
        "t/u": "turn",
        "t/u/1": "message",
        "t/u/m": "named",
        "t/1/0": "second",
    }
    items = read(export(conversation | {"threads": [thread, annotated("x", id="z")]})).annotations.item_ids
    assert items.tolist() == ["t/0", "t/0/1/0", "t/0/u", "t/0/u/1", "t/0/u/m", "t/z"]


def test_a_conversation_without_annotations(export):
    quiet = {"task_id": "t", "status": "completed", "threads": [{"turns": []}]}
    reading = read(export(quiet, task(q="x")))
    assert reading.ledger.excluded == {"no_label": 1} and reading.annotations.item_ids.tolist() == ["a", "t"]


def test_unfinished_tasks_are_drafts(export):
    pending = {"task_id": "t", "status": "pending", "params": {}}
    reading = read(export(pending, task("b", "canceled", q="x"), task(q="y")))
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"draft": 2}}
    assert labels_of(reading) == [("a", "scale", "y")]
    assert read(export(task(q=None), task("b", q="x"))).ledger.excluded == {"no_label": 1}


def test_several_fields_and_several_responses(export):
    path = export(task(q="x", r=["y", "z"]), task("b", q={"type": "category", "response": [["x"]]}))
    with pytest.raises(AnnotationError, match="several questions: q, r"):
        read(path)
    assert labels_of(read(path, question="q")) == [("a", "scale", "x"), ("b", "scale", "x")]
    assert labels_of(read(path, question="r=z")) == [("a", "scale", "yes")]
    assert labels_of(read(path, label="q")) == labels_of(read(path, question="q"))


def test_a_categorisation(export):
    entry = task() | {"response": {"category": "red"}}
    assert labels_of(read(export(entry))) == [("a", "scale", "red")]


@pytest.mark.parametrize("annotations", [[{"left": 1, "label": "car"}], {"q": {"boxes": []}}, {"q": [{"rank": 1}]}])
def test_marks_are_no_classes(export, annotations):
    reading = read(export(task() | {"response": {"annotations": annotations}}))
    assert reading.ledger.excluded == {"region": 1} and "parts of items" in reading.refusal


def test_a_task_done_again_counts_once(export):
    late = task(q="late") | {"completed_at": "2026-01-06T12:00:00Z"}
    reading = read(export(late, task(q="early")))
    assert labels_of(reading) == [("a", "scale", "late")] and reading.ledger.excluded == {"duplicate": 1}


def test_a_page_of_the_api(tmp_path):
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"docs": [task(q="x"), task("b", q="y")], "total": 2}), encoding="utf-8")
    reading = read(path)
    assert reading.format == "scale" and reading.ledger.kept == 2


def test_items_by_other_fields(export):
    path = export(task(q="x") | {"metadata": {"item": "m"}})
    assert labels_of(read(path, item="task_id"))[0][0] == "t-a"
    assert labels_of(read(path, item="metadata.item"))[0][0] == "m"
    assert labels_of(read(export(task(None, q="x"))))[0][0] == "t-None"


@pytest.mark.parametrize(
    ("entry", "options", "sentence"),
    [
        (task(q="x"), {"item": "ref"}, "Field 'ref' is not in .*It has: task_id, status"),
        (task(q="x"), {"worker": "w"}, "so --worker w has no meaning"),
        (task(q="x") | {"unique_id": None, "task_id": None}, {}, "row 1 has no task_id"),
        (task(q="x") | {"response": 3}, {"format": "scale"}, "row 1: response has no annotations by field"),
        (task(q="x") | {"threads": [3]}, {}, "row 1: threads is not a list of objects"),
        (task(q="x") | {"threads": [{"turns": 3}]}, {}, "row 1: turns is not a list of objects"),
        (task(q="x") | {"unique_id": []}, {}, "row 1: unique_id is a list"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, entry, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        read(export(entry), **options)


def test_plain_answers_to_tasks_are_not_claimed(export):
    assert recognise(open_document(export({"task_id": 1, "worker_id": 2, "response": "x", "status": "done"}))) is None


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def broken(draw, value):
    """A copy in which some entries are gone or are something else."""
    value = deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        holder = value
        while holder:
            key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
            if isinstance(holder[key], dict | list) and holder[key] and draw(st.integers(0, 3)):
                holder = holder[key]
                continue
            if draw(st.booleans()):
                del holder[key]
            else:
                holder[key] = draw(JUNK)
            break
    return value


@settings(max_examples=200)
@given(data=st.data())
def test_whatever_is_broken_gives_one_of_our_errors(data, tmp_path_factory):
    """Missing keys and values of other kinds are rows with a reason or one sentence, and every row is accounted for."""
    name = data.draw(st.sampled_from(["task.json", "genai_task.json"]))
    value = open_document(SAMPLES / name).value
    value = data.draw(broken(value if isinstance(value, list) else [value]))
    recognise(Records("odd.json", value))
    path = tmp_path_factory.mktemp("broken") / "odd.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        ledger = read(path, format="scale").ledger
    except ManyhandsError as error:
        assert 10 < len(str(error)) < 2000
    else:
        assert ledger.rows_read == ledger.kept + sum(ledger.excluded.values())


@given(JUNK)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None
