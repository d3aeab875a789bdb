"""Assignments as the API of MTurk lists them, whose XML must not do harm."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broken_exports import broken_json, check_broken, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records
from manyhands.io.formats import mturk


def assignment(at, answer, **more):
    """One assignment of the API, with a question form's answers."""
    xml = (
        f'<?xml version="1.0" encoding="UTF-8"?><QuestionFormAnswers xmlns="http://x/y">{answer}</QuestionFormAnswers>'
    )
    fixed = {"AssignmentId": f"A{at}", "WorkerId": f"w{at}", "HITId": "H1", "AssignmentStatus": "Approved"}
    return fixed | {"SubmitTime": "2026-01-05 09:00:08-08:00", "Answer": xml} | more


def form(question, *parts, tag="FreeText"):
    inside = "".join(f"<{tag}>{part}</{tag}>" for part in parts)
    return f"<Answer><QuestionIdentifier>{question}</QuestionIdentifier>{inside}</Answer>"


def test_the_api(tmp_path):
    both = [assignment(1, form("sentiment", "a &amp; b")), assignment(2, form("sentiment", "c"))]
    late = assignment(3, form("sentiment", "d"), AssignmentStatus="Rejected")
    result = quiet_read(write_json(tmp_path / "a.json", {"NumResults": 3, "Assignments": [*both, late]}))
    assert (result.format, result.question) == ("mturk-api", "sentiment")
    assert result.ledger.as_dict() == {"rows_read": 3, "kept": 2, "excluded": {"rejected": 1}}
    assert triples(result) == [("H1", "w1", "a & b"), ("H1", "w2", "c")]
    assert "one item may be in several HITs" in result.notes["item_is_hit"]
    for other in ([{"Assignments": both}, {"Assignments": [late]}], [*both, late]):
        assert triples(quiet_read(write_json(tmp_path / "b.json", other))) == triples(result)
    assert triples(quiet_read(tmp_path / "b.json", item="AssignmentId"))[0] == ("A1", "w1", "a & b")
    with pytest.raises(
        AnnotationError, match=r"no assignment has 'Input'\. Name one of these with `item=`: Answer, Assig"
    ):
        quiet_read(tmp_path / "b.json", item="Input")
    with pytest.raises(AnnotationError, match="mturk-api has its workers in WorkerId"):
        quiet_read(tmp_path / "b.json", worker="someone")


def test_answers_of_the_api_in_all_encodings(tmp_path):
    told = json.dumps([{"sentiment": {"label": "bad"}}])
    given = form("topic", "red", "blue", tag="SelectionIdentifier") + form("taskAnswers", told)
    given += form("mood.good", "true") + form("mood.bad", "false")
    path = write_json(tmp_path / "a.json", {"Assignments": [assignment(1, given), assignment(2, "", Answer=None)]})
    assert quiet_read(path, question="topic", combinations=True).annotations.classes.tolist() == ["blue + red"]
    assert triples(quiet_read(path, question="sentiment")) == [("H1", "w1", "bad")]
    result = quiet_read(path, question="mood")
    assert triples(result) == [("H1", "w1", "good")]
    assert result.ledger.excluded == {"no_label": 1}


BOMB = '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><QuestionFormAnswers>&b;</QuestionFormAnswers>'
OUTSIDE = '<!DOCTYPE b [<!ENTITY x SYSTEM "file:///etc/passwd">]><QuestionFormAnswers>&x;</QuestionFormAnswers>'


@pytest.mark.parametrize(
    ("xml", "told"),
    [
        (BOMB, "assignment A7: Answer declares a document type or entities"),
        (OUTSIDE, "assignment A7: Answer declares a document type or entities"),
        ('<!DOCTYPE b SYSTEM "http://x/y.dtd"><Q/>', "declares a document type or entities"),
        ("<QuestionFormAnswers><Answer>", "assignment A7: Answer is not complete XML"),
        ("", "is not complete XML"),
        ("\x00", "is not complete XML"),
        (7, "assignment A7: Answer is not text"),
    ],
)
def test_xml_that_is_refused(tmp_path, xml, told):
    path = write_json(tmp_path / "a.json", {"Assignments": [assignment(7, "", Answer=xml)]})
    with pytest.raises(AnnotationError, match=told):
        quiet_read(path)


def test_deep_xml_is_no_trouble(tmp_path):
    deep = "<a>" * 100_000 + "</a>" * 100_000
    path = write_json(tmp_path / "a.json", {"Assignments": [assignment(1, form("q", "a") + deep)]})
    assert triples(quiet_read(path)) == [("H1", "w1", "a")]


def test_a_response_without_assignments(tmp_path):
    with pytest.raises(AnnotationError, match="holds no answers"):
        quiet_read(write_json(tmp_path / "a.json", {"Assignments": []}))
    with pytest.raises(AnnotationError, match="assignment 2 is not an object"):
        quiet_read(write_json(tmp_path / "b.json", {"Assignments": [assignment(1, ""), 3]}))
    with pytest.raises(AnnotationError, match="not a list of assignments as the API of MTurk returns it"):
        quiet_read(write_json(tmp_path / "c.json", {"a": 1}), format="mturk-api")


def test_other_files_are_not_claimed():
    for value in ([], {}, [[]], 3, None, {"Assignments": 3}, {"Assignments": [{}]}, [{"WorkerId": 1}], [{}, 3]):
        assert mturk.recognise(Records("x", value)) is None


@given(data=st.data())
@settings(max_examples=60)
def test_broken_responses_give_sentences(data, tmp_path_factory):
    answers = form("q", "a") + form("t", "b", "c", tag="SelectionIdentifier")
    good = [{"Assignments": [assignment(1, answers), assignment(2, answers)]}, {"Assignments": [assignment(3, "")]}]
    path = write_json(tmp_path_factory.getbasetemp() / "broken-api.json", data.draw(broken_json(good)))
    check_broken(path, question="q", format=data.draw(st.sampled_from([None, "mturk-api"])))
