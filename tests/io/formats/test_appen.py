"""Appen: answers that are not marked as such, judgements that were not trusted, test questions."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broken_exports import check_broken_table, quiet_read, triples
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Table
from manyhands.io.formats import appen
from manyhands.io.judgements import ColumnOptions
from manyhands.io.reading import read_annotations

SAMPLES = Path(__file__).parents[2] / "samples" / "appen"


def report(*rows, names):
    whole = ["_unit_id", "_worker_id", *names]
    return pl.DataFrame(list(rows), schema=dict.fromkeys(whole, pl.String), orient="row")


def judgements(frame, **options):
    return appen.read(Table("x", frame, frame.columns), "appen", ColumnOptions(**options))


def test_the_full_report():
    result = quiet_read(SAMPLES / "full.csv")
    assert result.format == "appen"
    assert result.ledger.as_dict() == {"rows_read": 3, "kept": 2, "excluded": {"tainted": 1}}
    assert triples(result) == [("7001", "30001", "negative"), ("7002", "30001", "neutral")]
    assert result.annotations.worker_ids.tolist() == ["30001", "30002"]
    assert result.columns == {
        "item": "_unit_id",
        "worker": "_worker_id",
        "label": "sentiment",
        "time": "_created_at",
        "gold": "sentiment_gold",
        "working_time": "_started_at to _created_at",
    }


def test_all_allowed_answers_of_a_test_question_are_gold():
    frame = pl.read_csv(SAMPLES / "full.csv", infer_schema=False)
    assert judgements(frame).gold == {"sentiment": {"7002": ("positive", "neutral")}}
    assert judgements(frame, item="item_id").gold == {"sentiment": {"gold-7": ("positive", "neutral")}}
    not_golden = frame.with_columns(_golden=pl.lit("false"))
    assert judgements(not_golden).gold == {}


def test_a_single_allowed_answer_reaches_the_reading():
    frame = pl.read_csv(SAMPLES / "full.csv", infer_schema=False)
    frame = frame.with_columns(sentiment_gold=pl.col("sentiment_gold").str.replace("\nneutral", "\r\n"))
    assert quiet_read(frame).gold == {"7002": "positive"}


def test_where_workers_were_is_not_copied_and_that_is_said():
    result = quiet_read(SAMPLES / "full.csv")
    assert result.notes["personal_data"].startswith("_ip, _city, _region, _country hold personal data of the workers")
    assert not any(place in repr(result) for place in ("203.0.113", "London", "Albany"))
    assert quiet_read(report(("1", "w", "a"), ("1", "v", "b"), names=["q"])).notes == {}


def test_an_aggregated_report_is_refused_with_its_ledger():
    result = quiet_read(SAMPLES / "aggregated.csv")
    assert result.ledger.as_dict() == {"rows_read": 1, "kept": 0, "excluded": {"aggregated": 1}}
    with pytest.raises(AnnotationError, match=r"Appen has aggregated already.*Download the full report"):
        read_annotations(SAMPLES / "aggregated.csv")


def test_a_report_without_workers_is_refused():
    frame = report(("1", "w", "0.9", "a"), names=["_trust", "q"]).rename({"_worker_id": "person"})
    result = quiet_read(frame)
    assert result.ledger.as_dict() == {"rows_read": 1, "kept": 0, "excluded": {"no_worker": 1}}
    assert "has no column _worker_id" in result.refusal
    assert triples(quiet_read(frame, worker="person", label="q")) == [("1", "w", "a")]


def test_answers_are_what_differs_within_a_unit():
    rows = [("1", "w", "a", "text 1"), ("1", "v", "b", "text 1"), ("2", "w", "a", "text 2")]
    result = quiet_read(report(*rows, names=["q", "text"]))
    assert (result.question, result.ledger.kept) == ("q", 3)


def test_an_answer_that_some_leave_open_differs_too():
    result = quiet_read(report(("1", "w", "a", "t"), ("1", "v", "", "t"), names=["q", "text"]))
    assert (result.question, result.ledger.excluded) == ("q", {"no_label": 1})


def test_answers_are_what_has_gold_beside_it():
    result = quiet_read(report(("1", "w", "a", "t", ""), ("2", "w", "b", "u", "b"), names=["q", "text", "q_gold"]))
    assert (result.question, result.gold) == ("q", {"2": "b"})


def test_several_answers_are_asked_about():
    rows = [("1", "w", "a", "x"), ("1", "v", "b", "y")]
    table = report(*rows, names=["q", "comment"])
    with pytest.raises(AnnotationError, match="several questions: q, comment"):
        quiet_read(table)
    assert triples(quiet_read(table, question="q")) == [("1", "v", "b"), ("1", "w", "a")]
    assert quiet_read(table, label="q").questions == {"q": 2}


def test_no_column_shows_that_it_is_an_answer():
    table = report(("1", "w", "a", "x"), ("2", "w", "b", "y"), names=["q", "text"])
    with pytest.raises(AnnotationError, match=r"does not show which columns are answers.*`label=`; it has: q, text"):
        quiet_read(table)
    assert triples(quiet_read(table, label="q")) == [("1", "w", "a"), ("2", "w", "b")]
    assert triples(quiet_read(table, question="q=a")) == [("1", "w", "yes"), ("2", "w", "no")]


def test_several_choices_only_where_some_answer_has_several_lines():
    table = report(("1", "w", "a\nb"), ("1", "v", "a\r\nb\r\n"), ("1", "u", "a"), ("2", "u", ""), names=["q"])
    with pytest.raises(AnnotationError, match="have several choices"):
        quiet_read(table)
    result = quiet_read(table, combinations=True)
    assert triples(result) == [("1", "u", "a"), ("1", "v", "a + b"), ("1", "w", "a + b")]
    assert result.ledger.excluded == {"no_label": 1}
    assert judgements(report(("1", "w", "a b"), ("1", "v", "c"), names=["q"])).answers["q"].dtype == pl.String


def test_the_later_of_two_judgements_by_month_day_and_year():
    rows = [("1", "w", "12/5/2025 09:00:00", "new"), ("1", "w", "2/11/2025 09:00:00", "old")]
    result = quiet_read(report(*rows, names=["_created_at", "q"]))
    assert triples(result) == [("1", "w", "new")]
    assert result.ledger.excluded == {"duplicate": 1}


def test_statistics_and_gold_are_no_answers():
    names = ["q", "q_gold", "q_gold_reason", "q:confidence"]
    rows = [("1", "w", "a", "a", "", "0.1"), ("1", "v", "b", "a", "why", "0.2")]
    assert quiet_read(report(*rows, names=names)).questions == {"q": 2}


def test_other_files_are_not_claimed():
    for header in (["_unit_id", "label"], ["unit_id", "_worker_id"], ["_worker_id", "_trust"]):
        assert appen.recognise(Table("x", pl.DataFrame({name: ["a"] for name in header}), header)) is None


@pytest.mark.parametrize("name", ["full.csv", "aggregated.csv"])
@given(data=st.data())
@settings(max_examples=60)
def test_broken_reports_give_sentences(name, data, tmp_path_factory):
    check_broken_table(data, SAMPLES / name, tmp_path_factory.getbasetemp(), "appen")
