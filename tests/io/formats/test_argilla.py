"""Argilla: nested and flattened records, statuses, suggestions."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings

from broken_exports import ANY_JSON, broken_entries, check_broken, lines_writer, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records
from manyhands.io.formats import argilla
from manyhands.io.formats.argilla import recognise
from manyhands.io.judgements import ColumnOptions

SAMPLES = Path(__file__).parents[2] / "samples" / "argilla"


@pytest.fixture
def export(tmp_path):
    return lines_writer(tmp_path, "records.jsonl")


ANN, BO, CY = "1" * 8, "2" * 8, "3" * 8


def nested(item="a", **responses):
    return {"id": item, "fields": {"text": "t"}, "metadata": {"ref": 7}, "suggestions": {}, "responses": responses}


def said(value, user=ANN):
    return {"value": value, "user_id": user}


def flat(item="a", values=("x",), users=(ANN,), statuses=("submitted",), question="q"):
    lists = {"": values, ".users": users, ".status": statuses}
    return {"id": item, "text": "t"} | {f"{question}.responses{end}": list(given) for end, given in lists.items()}


def test_nested_records():
    reading = quiet_read(SAMPLES / "records_nested.json")
    assert reading.format == "argilla" and reading.question == "sentiment"
    assert reading.ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"prediction": 1, "no_label": 1}}
    assert [(item, label) for item, _, label in triples(reading)] == [("item-1", "negative"), ("item-1", "neutral")]
    assert [worker[:8] for worker in reading.annotations.worker_ids] == [ANN, BO, CY]
    assert "drafts" in reading.notes["no_status"]
    assert reading.columns["worker"] == "responses[].user_id"


def test_flat_records():
    reading = quiet_read(SAMPLES / "records_flat.jsonl")
    assert reading.ledger.as_dict() == {
        "rows_read": 4,
        "kept": 1,
        "excluded": {"prediction": 1, "draft": 1, "discarded": 1},
    }
    assert [label for _, _, label in triples(reading)] == ["negative"]
    assert "no_status" not in reading.notes


def test_a_user_has_one_row_for_all_questions(export):
    """The question without an answer is open; the other one counts."""
    path = export(nested(q=[said("x"), said("y", BO)], r=[said("z")]))
    with pytest.raises(AnnotationError, match="several questions: q, r"):
        quiet_read(path)
    reading = quiet_read(path, question="r")
    assert triples(reading) == [("a", ANN, "z")]
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"no_label": 1}}
    assert triples(quiet_read(path, label="r")) == [("a", ANN, "z")]
    with pytest.raises(AnnotationError, match="no question 's'"):
        quiet_read(path, label="s")


def test_a_user_who_answers_twice_has_two_rows(export):
    reading = quiet_read(export(nested(q=[said("x"), said("y")])))
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"duplicate": 1}}
    assert triples(reading) == [("a", ANN, "y")]


def test_statuses_that_differ_between_questions(export):
    """The status of the question that is meant decides, and a user has one row."""
    both = flat(statuses=["draft"]) | flat(question="r")
    path = export(both)
    assert quiet_read(path, question="r").ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert quiet_read(path, label="q").ledger.as_dict() == {"rows_read": 1, "kept": 0, "excluded": {"draft": 1}}
    assert quiet_read(path, question="r").questions == {"q": 1, "r": 1}


def test_who_only_began_another_question_has_not_come_to_this_one(export):
    """Who submitted answers to others alone has left it open. The item stays."""
    entry = flat(values=["x", "y"], users=[ANN, BO], statuses=["draft", "submitted"]) | flat(question="r", users=[CY])
    reading = quiet_read(export(entry), question="r")
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"no_label": 1}}
    assert reading.annotations.worker_ids.tolist() == [BO, CY]
    begun = flat("b", statuses=["draft"]) | {"r.responses": [], "r.responses.users": [], "r.responses.status": []}
    reading = quiet_read(export(entry, begun), question="r")
    assert reading.annotations.item_ids.tolist() == ["a", "b"] and reading.ledger.excluded == {"no_label": 2}


def test_records_without_responses(export):
    """They are items to label; the first ones of a flat file have no keys at all for responses."""
    reading = quiet_read(export(nested(q=[]), nested("b"), nested("c", q=[said("x")])))
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"no_label": 2}}
    assert reading.annotations.item_ids.tolist() == ["a", "b", "c"]
    reading = quiet_read(export({"id": "b", "text": "t"}, flat()))
    assert reading.format == "argilla" and reading.ledger.excluded == {"no_label": 1}


def test_every_suggestion_is_a_prediction(export):
    entry = nested(q=[said("x")]) | {"suggestions": {"q": {"value": "x"}, "r": {"value": "y"}, "s": {"value": None}}}
    assert quiet_read(export(entry)).ledger.excluded == {"prediction": 1}
    both = nested(q=[said("x")], r=[said("z")]) | {"suggestions": {"q": {"value": ["x", "y"]}, "r": {"value": "y"}}}
    for question in ("q", "r"):
        ledger = quiet_read(export(both), question=question).ledger
        assert ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"prediction": 1}}
    rows = argilla.read(Records("x", [both]), "argilla", ColumnOptions())
    assert {name: column.to_list() for name, column in rows.answers.items()} == {
        "q": [["x"], ["x", "y"], None],
        "r": ["z", None, "y"],
    }
    assert quiet_read(export(flat() | {"q.suggestion": "x", "q.suggestion.score": 0.5})).ledger.excluded == {
        "prediction": 1
    }


def test_numbers_and_several_labels(export):
    assert triples(quiet_read(export(nested(q=[said(4), said(0, BO)])))) == [("a", ANN, "4"), ("a", BO, "0")]
    path = export(nested(q=[said(["x", "y"])]))
    assert triples(quiet_read(path, question="q=x")) == [("a", ANN, "yes")]


def test_rankings_are_no_classes(export):
    ranking = [{"value": "x", "rank": 1}, {"value": "y", "rank": 2}]
    reading = quiet_read(export(nested(q=[said(ranking)])))
    assert reading.ledger.excluded == {"region": 1} and "rankings" in reading.refusal
    reading = quiet_read(export(nested(q=[said(ranking)], r=[said("z")])))
    assert (
        triples(reading) == [("a", ANN, "z")]
        and "also has rankings (q), which were not read" in reading.notes["not_read"]
    )


def test_responses_of_nobody_are_refused(export):
    reading = quiet_read(export(flat(users=[])))
    assert reading.ledger.excluded == {"no_worker": 1} and "does not name the users" in reading.refusal
    reading = quiet_read(export(flat(values=["x", "y"], users=[ANN, None], statuses=["submitted"] * 2)))
    assert reading.ledger.as_dict()["excluded"] == {"no_worker": 1} and reading.refusal is None


def test_a_data_frame_or_parquet(tmp_path):
    """Data sets on the Hub are the flat form in Parquet, with lists in their cells."""
    frame = pl.DataFrame([flat(), flat("b", ["x", "y"], [ANN, BO], ["submitted", "draft"])])
    frame.write_parquet(tmp_path / "records.parquet")
    for given_as in (frame, tmp_path / "records.parquet"):
        reading = quiet_read(given_as)
        assert reading.format == "argilla"
        assert triples(reading) == [("a", ANN, "x"), ("b", ANN, "x")]
        assert reading.ledger.excluded == {"draft": 1}


def test_an_item_by_another_field(export):
    reading = quiet_read(export(nested(q=[said("x")])), item="metadata.ref")
    assert triples(reading) == [("7", ANN, "x")] and reading.columns["item"] == "metadata.ref"
    assert triples(quiet_read(export(flat(0) | {"_server_id": "s"})))[0][0] == "0"
    assert triples(quiet_read(export(flat(None) | {"_server_id": "s"})))[0][0] == "s"


@pytest.mark.parametrize(
    ("entry", "options", "sentence"),
    [
        (flat(users=[ANN, BO]), {}, "q.responses has 1 entries, but q.responses.users has 2"),
        (flat(statuses=["submitted"] * 3), {}, "q.responses has 1 entries, but q.responses.status has 3"),
        (flat(statuses=["lost"]), {}, "row 1: the status of a response is 'lost'"),
        (flat(statuses=[["draft"]]), {}, "row 1: the status of a response"),
        (flat() | {"q.responses": 3}, {}, "row 1: q.responses is not a list"),
        (flat(users=[{}]), {}, "row 1: user_id is an object"),
        (flat(None), {}, "row 1 has no id"),
        (nested(q=["x"]), {}, "row 1: a response to 'q' is not an object"),
        (nested(q="x"), {}, r"row 1: responses\.q is not a list"),
        (nested(), {"item": "ref"}, "Field 'ref' is not in .*It has: id, fields, metadata"),
        (nested(), {"worker": "x"}, 'so `worker="x"` has no meaning'),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, entry, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        quiet_read(export(entry), **options)


def test_lists_that_became_other_text_are_refused(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,q.responses,q.responses.users\n1,['x'],['u']\n", encoding="utf-8")
    with pytest.raises(AnnotationError, match=r"row 1: q.responses is \"\['x'\]\", not a list"):
        quiet_read(path)


@settings(max_examples=200)
@given(entries=broken_entries(SAMPLES / "records_nested.json", SAMPLES / "records_flat.jsonl"))
def test_whatever_is_broken_gives_one_of_our_errors(entries, tmp_path_factory):
    recognise(Records("odd.json", entries))
    check_broken(write_json(tmp_path_factory.getbasetemp() / "broken-argilla.json", entries), format="argilla")


@given(ANY_JSON)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None
