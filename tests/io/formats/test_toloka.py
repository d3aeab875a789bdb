"""Toloka: tables with blank rows between pages, control tasks, and the parallel lists of its API."""

import copy
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broken_exports import broken_json, check_broken, check_broken_table, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records, Table
from manyhands.io.formats import toloka
from manyhands.io.judgements import ColumnOptions
from manyhands.io.reading import read_annotations

SAMPLES = Path(__file__).parents[2] / "samples" / "toloka"
API = json.loads((SAMPLES / "assignments_api.json").read_text(encoding="utf-8"))


def pool(*rows, names):
    whole = ["ASSIGNMENT:worker_id", *names]
    return pl.DataFrame(list(rows), schema=dict.fromkeys(whole, pl.String), orient="row")


def api(change):
    """The sample of the API after `change` was done to its only assignment."""
    value = copy.deepcopy(API)
    change(value["items"][0])
    return value


def test_assignments():
    result = quiet_read(SAMPLES / "assignments.tsv")
    assert result.format == "toloka"
    assert result.ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"rejected": 1, "blank": 1}}
    assert triples(result) == [("gold-7", "wk01", "positive"), ("item-1", "wk01", "negative")]
    assert result.annotations.worker_ids.tolist() == ["wk01", "wk02"]
    assert (result.gold, result.notes) == ({"gold-7": "positive"}, {})
    assert result.columns == {
        "item": "INPUT:item_id",
        "worker": "ASSIGNMENT:worker_id",
        "label": "OUTPUT:result",
        "time": "ASSIGNMENT:submitted",
        "gold": "GOLDEN:result",
        "working_time": "ASSIGNMENT:started to ASSIGNMENT:submitted",
    }


def test_an_aggregated_file_is_refused_with_its_ledger():
    result = quiet_read(SAMPLES / "aggregated.tsv")
    assert result.ledger.as_dict() == {"rows_read": 1, "kept": 0, "excluded": {"aggregated": 1}}
    assert result.annotations.item_ids.tolist() == ["item-1"]
    with pytest.raises(AnnotationError, match=r"that Toloka has aggregated already.*Download the assignments"):
        read_annotations(SAMPLES / "aggregated.tsv")


def test_a_file_without_workers_is_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("INPUT:url\tOUTPUT:result\nu1\tyes\n\t\nu2\tno\n", encoding="utf-8")
    result = quiet_read(path)
    assert result.ledger.as_dict() == {"rows_read": 3, "kept": 0, "excluded": {"no_worker": 2, "blank": 1}}
    assert "does not name the worker of each answer" in result.refusal
    assert "with the column ASSIGNMENT:worker_id ticked" in result.refusal
    path.write_text("INPUT:url\tOUTPUT:result\tperson\nu1\tyes\tann\n", encoding="utf-8")
    assert triples(quiet_read(path, worker="person")) == [("u1", "ann", "yes")]


@pytest.mark.parametrize(
    ("status", "excluded"),
    [
        ("APPROVED", {}),
        ("ACCEPTED", {}),
        ("submitted", {}),
        ("", {}),
        ("REJECTED", {"rejected": 1}),
        (" Rejected ", {"rejected": 1}),
        ("SKIPPED", {"skipped": 1}),
        ("EXPIRED", {"skipped": 1}),
        ("ACTIVE", {"draft": 1}),
    ],
)
def test_every_status_in_both_forms(status, excluded, tmp_path):
    table = pool(("w", "x", "a", status), names=["INPUT:id", "OUTPUT:q", "ASSIGNMENT:status"])
    assert quiet_read(table).ledger.excluded == excluded
    path = write_json(tmp_path / "a.json", api(lambda page: page.update(status=status)))
    assert quiet_read(path).ledger.excluded == {reason: 2 for reason in excluded}


def test_a_status_that_nobody_knows_is_counted_and_said(tmp_path):
    table = pool(("w", "x", "a", "ODD"), names=["INPUT:id", "OUTPUT:q", "ASSIGNMENT:status"])
    path = write_json(tmp_path / "a.json", api(lambda page: page.update(status="ODD")))
    for source, kept in ((table, 1), (path, 2)):
        result = quiet_read(source)
        assert result.ledger.kept == kept
        assert "The status ODD is unknown; answers with it were counted" in result.notes["unknown_status"]


def test_several_questions_are_asked_about_and_have_their_own_gold():
    names = ["INPUT:id", "OUTPUT:q", "OUTPUT:r", "GOLDEN:q", "GOLDEN:r"]
    table = pool(("w", "x", "a", "b", "", "c"), ("w", "y", "a", "b", "d", ""), names=names)
    with pytest.raises(AnnotationError, match="several questions: q, r"):
        quiet_read(table)
    assert quiet_read(table, question="r").gold == {"x": "c"}
    assert quiet_read(table, label="OUTPUT:q").gold == {"y": "d"}


def test_gold_of_what_was_not_asked_is_not_read():
    result = quiet_read(pool(("w", "x", "a", "c"), names=["INPUT:id", "OUTPUT:q", "GOLDEN:r"]))
    assert (result.gold, "gold" in result.columns) == ({}, False)


@pytest.mark.parametrize("column", ["ASSIGNMENT:submitted", "ASSIGNMENT:started"])
def test_the_later_answer_counts(column):
    rows = [("w", "x", "new", "2026-01-06T09:00:00.000"), ("w", "x", "old", "2026-01-05T09:00:00.000")]
    result = quiet_read(pool(*rows, names=["INPUT:id", "OUTPUT:q", column]))
    assert (triples(result), result.columns["time"]) == ([("x", "w", "new")], column)


def test_which_column_is_the_item(tmp_path):
    names = ["INPUT:left", "INPUT:right", "OUTPUT:q", "ASSIGNMENT:task_id"]
    table = pool(("w", "l", "r", "a", "T1"), ("w", "l", "s", "a", "T2"), ("w", "m", "r", "a", "T3"), names=names)
    with pytest.raises(AnnotationError, match=r"any of INPUT:left, INPUT:right .* or add `item=.ASSIGNMENT:task_id.`"):
        quiet_read(table)
    assert quiet_read(table, item="ASSIGNMENT:task_id").annotations.item_ids.tolist() == ["T1", "T2", "T3"]
    assert quiet_read(table, item="left").annotations.item_ids.tolist() == ["l", "m"]
    without = table.drop("INPUT:left", "INPUT:right")
    assert quiet_read(without).columns["item"] == "ASSIGNMENT:task_id"


def test_blank_rows_do_not_spoil_the_choice_of_the_item(tmp_path):
    path = tmp_path / "a.tsv"
    head = "INPUT:url\tINPUT:colour\tOUTPUT:q\tASSIGNMENT:worker_id\n"
    path.write_text(head + "u1\tred\ta\tw\n\t\t\t\nu2\tred\tb\tw\n", encoding="utf-8")
    result = quiet_read(path)
    assert result.columns["item"] == "INPUT:url (it determines every other INPUT:* column)"
    assert result.ledger.as_dict() == {"rows_read": 3, "kept": 2, "excluded": {"blank": 1}}


def test_tasks_without_answers_are_no_assignments():
    with pytest.raises(AnnotationError, match=r"has no OUTPUT:\* column, so no answers"):
        quiet_read(pool(("w", "x", "a"), names=["INPUT:id", "GOLDEN:q"]))


def test_the_api(tmp_path):
    result = quiet_read(SAMPLES / "assignments_api.json")
    assert result.format == "toloka-api"
    assert result.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
    assert triples(result) == [("gold-7", "wk01", "positive"), ("item-1", "wk01", "negative")]
    assert result.gold == {"gold-7": "positive"}
    assert result.columns["item"] == "input_values.item_id"
    for value in ([API], API["items"]):
        assert triples(quiet_read(write_json(tmp_path / "a.json", value))) == triples(result)
    by_task = quiet_read(SAMPLES / "assignments_api.json", item="task_id")
    assert by_task.annotations.item_ids.tolist() == ["T-1", "T-7"]
    assert by_task.gold == {"T-7": "positive"}
    with pytest.raises(AnnotationError, match="toloka-api has its workers in user_id"):
        quiet_read(SAMPLES / "assignments_api.json", worker="someone")


def test_answers_of_the_api_are_text_numbers_or_several_choices(tmp_path):
    def change(page):
        page["solutions"] = [{"output_values": {"result": ["b", "a"], "n": 3}}, {"output_values": {"n": False}}]

    path = write_json(tmp_path / "a.json", api(change))
    assert triples(quiet_read(path, label="n")) == [("gold-7", "wk01", "false"), ("item-1", "wk01", "3")]
    result = quiet_read(path, question="result", combinations=True)
    assert triples(result) == [("item-1", "wk01", "a + b")]
    assert result.ledger.excluded == {"no_label": 1}


def test_several_known_solutions_are_all_allowed(tmp_path):
    def change(page):
        known = page["tasks"][1]["known_solutions"]
        known += [{"output_values": {"result": "neutral"}}, copy.deepcopy(known[0])]

    path = write_json(tmp_path / "a.json", api(change))
    document = Records("a.json", json.loads(path.read_text(encoding="utf-8")))
    assert toloka.read(document, "toloka-api", ColumnOptions()).gold == {"result": {"gold-7": ("positive", "neutral")}}


def test_a_page_that_was_skipped_has_no_solutions(tmp_path):
    path = write_json(
        tmp_path / "a.json", [*API["items"], api(lambda page: page.update(status="SKIPPED", solutions=None))]
    )
    assert quiet_read(path).ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"skipped": 2}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda page: page["solutions"].pop(), r"assignment S-1: 2 task\(s\), but 1 solution\(s\)"),
        (lambda page: page.update(solutions=None), r"2 task\(s\), but 0 solution"),
        (lambda page: page.update(solutions="x"), "its tasks and solutions are not both lists"),
        (lambda page: page["tasks"].__setitem__(0, 3), "assignment S-1, tasks: 3 where an object should be"),
        (lambda page: page.update(user_id=["w"]), "assignment S-1: a list where a text should be"),
        (lambda page: page["tasks"][1].update(known_solutions=3), "known_solutions: 3 where a list should be"),
        (lambda page: page["tasks"][0].update(input_values="x"), "input_values: 'x' where an object should be"),
        (lambda page: page["solutions"][0].update(output_values=[1]), "output_values: a list where an object"),
    ],
)
def test_pages_that_are_broken(change, told, tmp_path):
    with pytest.raises(AnnotationError, match=told):
        quiet_read(write_json(tmp_path / "a.json", api(change)))


def test_values_that_are_too_deep(tmp_path):
    deep = '{"a":' * 300 + "1" + "}" * 300
    (tmp_path / "a.json").write_text(json.dumps(API).replace('"negative"', deep), encoding="utf-8")
    with pytest.raises(AnnotationError, match=r"assignment S-1: .* cannot be written as JSON"):
        quiet_read(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps(API).replace('"wk01"', "[" * 1000 + "]" * 1000), encoding="utf-8")
    with pytest.raises(AnnotationError, match="assignment S-1: a list where a text should be"):
        quiet_read(tmp_path / "a.json")


def test_other_files_are_not_claimed():
    for header in (["INPUT:x", "label"], ["OUTPUT:x", "worker"], ["input", "output"]):
        table = Table("x", pl.DataFrame({name: ["a"] for name in header}), header)
        assert toloka.recognise(table) is None
    for value in ([], {}, 3, None, [[]], {"items": []}, {"items": [3]}, {"items": [{"tasks": 3}]}, [{"tasks": []}]):
        assert toloka.recognise(Records("x", value)) is None
    with pytest.raises(AnnotationError, match="not a list of assignments as Toloka's API returns it"):
        toloka.read(Records("x", [{"tasks": []}]), "toloka-api", ColumnOptions())


@pytest.mark.parametrize("name", ["assignments.tsv", "aggregated.tsv"])
@given(data=st.data())
@settings(max_examples=60)
def test_broken_tables_give_sentences(name, data, tmp_path_factory):
    check_broken_table(data, SAMPLES / name, tmp_path_factory.getbasetemp(), "toloka")


@given(value=broken_json(API), format_name=st.sampled_from([None, "toloka-api"]))
@settings(max_examples=100)
def test_broken_responses_give_sentences(value, format_name, tmp_path_factory):
    path = write_json(tmp_path_factory.getbasetemp() / "broken-toloka.json", value)
    check_broken(path, format=format_name)
