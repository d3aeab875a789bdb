"""Prodigy: choices and single labels, sessions as workers, reviewers."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from broken_exports import ANY_JSON, broken_entries, check_broken, lines_writer, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records
from manyhands.io.formats.prodigy import recognise

SAMPLES = Path(__file__).parents[2] / "samples" / "prodigy"


@pytest.fixture
def export(tmp_path):
    return lines_writer(tmp_path, "answers.jsonl")


def choice(item=1, worker="news-ann", accept=("POS",), **more):
    options = [{"id": "NEG"}, {"id": "POS"}]
    marks = {"_input_hash": item, "_task_hash": 0, "_annotator_id": worker, "_session_id": worker}
    return {"text": f"text {item}", "options": options, "accept": list(accept), "answer": "accept"} | marks | more


def binary(label="POS", answer="accept", **more):
    return {"label": label, "answer": answer, "_input_hash": 1, "_annotator_id": "ann", "_session_id": "s"} | more


def test_choices():
    reading = quiet_read(SAMPLES / "choice.jsonl")
    assert reading.format == "prodigy"
    assert reading.ledger.as_dict() == {
        "rows_read": 5,
        "kept": 2,
        "excluded": {"skipped": 1, "rejected": 1, "duplicate": 1},
    }
    assert triples(reading) == [("111", "ann", "POS"), ("111", "bob", "POS")]
    assert reading.annotations.item_ids.tolist() == ["111", "112"]
    assert reading.columns["item"] == "_input_hash"
    assert "'news-'" in reading.notes["worker_prefix"] and "'news-'" in reading.columns["worker"]


def test_a_label_that_is_turned_down():
    reading = quiet_read(SAMPLES / "binary.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert triples(reading) == [("112", "ann", "not POS")]
    assert reading.question == "POS"


def test_the_later_answer_counts_whatever_its_place(export):
    early, late = choice(accept=["NEG"], _timestamp=1767603600), choice(accept=["POS"], _timestamp=1767603600.5)
    assert triples(quiet_read(export(late, early))) == [("1", "ann", "POS")]


def test_every_label_of_a_binary_file_is_a_question(export):
    """A row about another label does not leave this one open, so it is not a row of this question at all."""
    path = export(binary("POS"), binary("NEG", "reject"), binary("NEG", "ignore", _input_hash=2))
    with pytest.raises(AnnotationError, match=r"several questions: POS, NEG. Pick one with `question=`"):
        quiet_read(path)
    with pytest.raises(AnnotationError, match=r"no question 'NEUTRAL'. It has: POS, NEG"):
        quiet_read(path, question="NEUTRAL")
    reading = quiet_read(path, question="NEG")
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"skipped": 1}}
    assert triples(reading) == [("1", "ann", "not NEG")]
    assert triples(quiet_read(path, question="NEG=not NEG")) == [("1", "ann", "yes")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["news-ann", "news-bob"], ["ann", "bob"]),
        (["news-ann", "sport-bob"], ["news-ann", "sport-bob"]),
        (["news-", "news-bob"], ["news-", "news-bob"]),
        (["ann", "bob"], ["ann", "bob"]),
        (["2026-01-05_10-00-00", "2026-01-06_10-00-00"], ["2026-01-05_10-00-00", "2026-01-06_10-00-00"]),
        (["news-ann"], ["ann"]),
    ],
)
def test_the_data_set_is_left_out_of_workers_names(export, names, expected):
    reading = quiet_read(export(*(choice(worker=name) for name in names)))
    assert reading.annotations.worker_ids.tolist() == expected
    assert ("worker_prefix" in reading.notes) == (names != expected)


def test_a_single_worker_keeps_a_hyphen_that_is_his_own(export):
    """The session of this worker does not begin alike, so the hyphen is not Prodigy's."""
    assert quiet_read(export(choice(worker="mary-jane", _session_id="news-1"))).annotations.worker_ids == ["mary-jane"]


def test_sessions_without_a_name_may_be_phantoms(export):
    path = export(choice(worker="news-2026-01-05_10-00-00"), choice(worker="news-2026-01-06_10-00-00"), choice())
    assert quiet_read(path).notes["unnamed_sessions"].startswith("2 of 3 worker(s) are sessions without a name")
    assert "unnamed_sessions" not in quiet_read(SAMPLES / "choice.jsonl").notes


def test_the_session_names_the_worker_where_nothing_else_does(export):
    assert quiet_read(export(choice(worker=None, _session_id="news-bob"))).annotations.worker_ids == ["bob"]


def test_answers_of_nobody_are_refused(export):
    path = export(choice(worker=None), choice(worker=None, answer="ignore"))
    reading = quiet_read(path)
    assert reading.ledger.excluded == {"skipped": 1, "no_worker": 1}
    assert "?session=NAME" in reading.refusal
    reading = quiet_read(export(choice(worker=None), choice(worker="news-ann", item=2)))
    assert reading.ledger.excluded == {"no_worker": 1} and reading.refusal is None


def test_a_reviewers_answer_is_gold_and_no_workers(export):
    review = choice(accept=["NEG"], worker="news-boss", versions=[{"accept": ["POS"], "sessions": ["news-ann"]}])
    reading = quiet_read(export(choice(), review))
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"gold_account": 1}}
    assert reading.gold == {"1": "NEG"} and reading.annotations.worker_ids.tolist() == ["ann"]
    assert "reviewed" in reading.notes


def test_several_choices_and_none(export):
    path = export(choice(accept=["NEG", "POS"]), choice(item=2, accept=[]))
    reading = quiet_read(path, question="accept=NEG")
    assert triples(reading) == [("1", "ann", "yes")]
    assert reading.ledger.excluded == {"no_label": 1}
    assert reading.notes["nothing_chosen"].startswith("1 answer(s)")


def test_spans_are_no_classes(export):
    spans = {
        "spans": [{"start": 0, "end": 2, "label": "ORG"}],
        "answer": "accept",
        "_input_hash": 1,
        "_session_id": "a",
    }
    reading = quiet_read(export(spans))
    assert reading.ledger.excluded == {"region": 1} and "spans" in reading.refusal
    reading = quiet_read(export(choice(), {"html": "<b>", "_view_id": "html", "answer": "accept", "_input_hash": 2}))
    assert reading.ledger.excluded == {"no_label": 1} and "html" in reading.notes["other_views"]


def test_another_field_for_the_item_or_worker(export):
    path = export(choice(meta={"id": 7, "who": "x"}))
    reading = quiet_read(path, item="meta.id", worker="meta.who")
    assert triples(reading) == [("7", "x", "POS")] and reading.columns["item"] == "meta.id"
    assert triples(quiet_read(path, item="text"))[0][0] == "text 1"
    assert triples(quiet_read(export(choice() | {"a.b": "dotted"}), item="a.b"))[0][0] == "dotted"


@pytest.mark.parametrize(
    ("objects", "options", "sentence"),
    [
        ([choice()], {"item": "ref"}, "Field 'ref' is not in .*`item=`"),
        ([choice()], {"worker": "ref"}, "Field 'ref' is not in .*`worker=`"),
        ([choice()], {"label": "x"}, 'so `label="x"` has no meaning'),
        ([choice(), choice(item=None)], {}, "row 2 has no _input_hash.*`item=.text.`"),
        ([choice(answer="maybe")], {}, "row 1: answer is 'maybe', not accept, reject or ignore"),
        ([choice(item={"a": 1})], {}, "row 1: _input_hash is an object, not text or a number"),
        ([choice(accept=[["POS"]])], {}, "row 1: a choice in accept is a list"),
        ([choice(), 3], {}, "row 2: not an object"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, objects, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        quiet_read(export(*objects), **options)


def test_unreadable_times_are_noted(export):
    reading = quiet_read(export(choice(_timestamp="soon"), choice(item=2, _timestamp=None)))
    assert reading.ledger.kept == 2 and "1 time(s) could not be read" in reading.notes["unparsed_times"]


def test_batches_of_single_workers_speak_of_the_same_people(export):
    """A file of one worker leaves out the data set as a file of several does."""
    paths = [export(choice(worker=name), name=f"{name}.jsonl") for name in ("news-ann", "news-bob")]
    reading = quiet_read([*paths, export(choice(2), choice(2, worker="news-bob"), name="both.jsonl")])
    assert reading.annotations.worker_ids.tolist() == ["ann", "bob"] and reading.ledger.kept == 4


@settings(max_examples=200)
@given(entries=broken_entries(SAMPLES / "choice.jsonl", SAMPLES / "binary.jsonl"))
def test_whatever_is_broken_gives_one_of_our_errors(entries, tmp_path_factory):
    recognise(Records("odd.json", entries))
    check_broken(write_json(tmp_path_factory.getbasetemp() / "broken-prodigy.json", entries), format="prodigy")


@given(ANY_JSON)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None
