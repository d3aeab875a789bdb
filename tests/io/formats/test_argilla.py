"""Argilla: nested and flattened records, statuses, suggestions."""

import json
import warnings
from copy import deepcopy
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyhands.exceptions import AnnotationError, CrowdWarning, ManyhandsError
from manyhands.io.documents import Records, open_document
from manyhands.io.formats.argilla import recognise
from manyhands.io.reading import read as read_aloud

SAMPLES = Path(__file__).parents[2] / "samples" / "argilla"


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

    def write(*objects, name="records.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in objects), encoding="utf-8")
        return path

    return write


ANN, BO, CY = "1" * 8, "2" * 8, "3" * 8


def nested(item="a", **responses):
    return {"id": item, "fields": {"text": "t"}, "metadata": {"ref": 7}, "suggestions": {}, "responses": responses}


def said(value, user=ANN):
    return {"value": value, "user_id": user}


def flat(item="a", values=("x",), users=(ANN,), statuses=("submitted",), question="q"):
    lists = {"": values, ".users": users, ".status": statuses}
    return {"id": item, "text": "t"} | {f"{question}.responses{end}": list(given) for end, given in lists.items()}


def test_nested_records():
    reading = read(SAMPLES / "records_nested.json")
    assert reading.format == "argilla" and reading.question == "sentiment"
    assert reading.ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"prediction": 1, "no_label": 1}}
    assert [(item, label) for item, _, label in labels_of(reading)] == [("item-1", "negative"), ("item-1", "neutral")]
    assert [worker[:8] for worker in reading.annotations.worker_ids] == [ANN, BO, CY]
    assert "drafts" in reading.notes["no_status"]
    assert reading.columns["worker"] == "responses[].user_id"


def test_flat_records():
    reading = read(SAMPLES / "records_flat.jsonl")
    assert reading.ledger.as_dict() == {
        "rows_read": 4,
        "kept": 1,
        "excluded": {"prediction": 1, "draft": 1, "discarded": 1},
    }
    assert [label for _, _, label in labels_of(reading)] == ["negative"]
    assert "no_status" not in reading.notes


def test_a_user_has_one_row_for_all_questions(export):
    """The question that he did not answer is open; the other one counts."""
    path = export(nested(q=[said("x"), said("y", BO)], r=[said("z")]))
    with pytest.raises(AnnotationError, match="several questions: q, r"):
        read(path)
    reading = read(path, question="r")
    assert labels_of(reading) == [("a", ANN, "z")]
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"no_label": 1}}
    assert labels_of(read(path, label="r")) == [("a", ANN, "z")]
    with pytest.raises(AnnotationError, match="no question 's'"):
        read(path, label="s")


def test_a_user_who_answers_twice_has_two_rows(export):
    reading = read(export(nested(q=[said("x"), said("y")])))
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"duplicate": 1}}
    assert labels_of(reading) == [("a", ANN, "y")]


def test_statuses_that_differ_between_questions(export):
    both = flat(statuses=["draft"]) | flat(question="r")
    assert read(export(both), question="r").ledger.as_dict()["excluded"] == {"draft": 1}
    assert read(export(both), question="q").ledger.as_dict()["excluded"] == {"draft": 1, "no_label": 1}


def test_records_without_responses(export):
    """They are items to label; the first ones of a flat file have no keys at all for responses."""
    reading = read(export(nested(q=[]), nested("b"), nested("c", q=[said("x")])))
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"no_label": 2}}
    assert reading.annotations.item_ids.tolist() == ["a", "b", "c"]
    reading = read(export({"id": "b", "text": "t"}, flat()))
    assert reading.format == "argilla" and reading.ledger.excluded == {"no_label": 1}


def test_every_suggestion_is_a_prediction(export):
    entry = nested(q=[said("x")]) | {"suggestions": {"q": {"value": "x"}, "r": {"value": "y"}, "s": {"value": None}}}
    assert read(export(entry)).ledger.excluded == {"prediction": 2}
    assert read(export(flat() | {"q.suggestion": "x", "q.suggestion.score": 0.5})).ledger.excluded == {"prediction": 1}


def test_numbers_and_several_labels(export):
    assert labels_of(read(export(nested(q=[said(4), said(0, BO)])))) == [("a", ANN, "4"), ("a", BO, "0")]
    path = export(nested(q=[said(["x", "y"])]))
    assert labels_of(read(path, question="q=x")) == [("a", ANN, "yes")]


def test_rankings_are_no_classes(export):
    ranking = [{"value": "x", "rank": 1}, {"value": "y", "rank": 2}]
    reading = read(export(nested(q=[said(ranking)])))
    assert reading.ledger.excluded == {"region": 1} and "rankings" in reading.refusal
    reading = read(export(nested(q=[said(ranking)], r=[said("z")])))
    assert labels_of(reading) == [("a", ANN, "z")] and reading.notes["no_classes"].endswith("were not read: q.")


def test_responses_of_nobody_are_refused(export):
    reading = read(export(flat(users=[])))
    assert reading.ledger.excluded == {"no_worker": 1} and "whose responses" in reading.refusal
    reading = read(export(flat(values=["x", "y"], users=[ANN, None], statuses=["submitted"] * 2)))
    assert reading.ledger.as_dict()["excluded"] == {"no_worker": 1} and reading.refusal is None


def test_a_data_frame_or_parquet(tmp_path):
    """Data sets on the Hub are the flat form in Parquet, with lists in their cells."""
    frame = pl.DataFrame([flat(), flat("b", ["x", "y"], [ANN, BO], ["submitted", "draft"])])
    frame.write_parquet(tmp_path / "records.parquet")
    for given_as in (frame, tmp_path / "records.parquet"):
        reading = read(given_as)
        assert reading.format == "argilla"
        assert labels_of(reading) == [("a", ANN, "x"), ("b", ANN, "x")]
        assert reading.ledger.excluded == {"draft": 1}


def test_an_item_by_another_field(export):
    reading = read(export(nested(q=[said("x")])), item="metadata.ref")
    assert labels_of(reading) == [("7", ANN, "x")] and reading.columns["item"] == "metadata.ref"
    assert labels_of(read(export(flat(0) | {"_server_id": "s"})))[0][0] == "0"
    assert labels_of(read(export(flat(None) | {"_server_id": "s"})))[0][0] == "s"


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
        (nested(), {"worker": "x"}, "so --worker x has no meaning"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, entry, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        read(export(entry), **options)


def test_lists_that_became_other_text_are_refused(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,q.responses,q.responses.users\n1,['x'],['u']\n", encoding="utf-8")
    with pytest.raises(AnnotationError, match=r"row 1: q.responses is \"\['x'\]\", not a list"):
        read(path)


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
    name = data.draw(st.sampled_from(["records_nested.json", "records_flat.jsonl"]))
    value = open_document(SAMPLES / name).value
    value = data.draw(broken(value if isinstance(value, list) else [value]))
    recognise(Records("odd.json", value))
    path = tmp_path_factory.mktemp("broken") / "odd.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        ledger = read(path, format="argilla").ledger
    except ManyhandsError as error:
        assert 10 < len(str(error)) < 2000
    else:
        assert ledger.rows_read == ledger.kept + sum(ledger.excluded.values())


@given(JUNK)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None
