"""Survey sheets: a row per worker, a column per item."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broken_exports import ANY_JSON, quiet_read, triples
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records
from manyhands.io.formats import survey


@pytest.fixture
def sheet(tmp_path):
    def write(text):
        path = tmp_path / "x.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


FORM = """Timestamp,Email Address,Is it a cat?,And this?,Comments
2026/01/05 9:00:00 AM GMT+1,a@x.org,yes,no,fun
2026/01/05 9:10:00 AM GMT+1,b@x.org,yes,,
2026/01/05 9:20:00 AM GMT+1,c@x.org,no,no,
"""


def test_a_form_of_google(sheet):
    reading = quiet_read(sheet(FORM))
    assert reading.format == "survey" and reading.question == "label"
    assert reading.ledger.as_dict() == {"rows_read": 6, "kept": 5, "excluded": {"no_label": 1}}
    assert triples(reading) == [
        ("And this?", "a@x.org", "no"),
        ("And this?", "c@x.org", "no"),
        ("Is it a cat?", "a@x.org", "yes"),
        ("Is it a cat?", "b@x.org", "yes"),
        ("Is it a cat?", "c@x.org", "no"),
    ]
    assert reading.columns == {
        "item": "a column each",
        "worker": "Email Address",
        "label": "a cell for each of 2 items",
        "time": "Timestamp",
    }
    assert reading.notes["columns_left_out"].startswith("Not taken for items: Comments.")


def test_time_decides_between_two_answers_of_a_person(sheet):
    rows = "timestamp,name,p1,p2\n2026-01-05 10:00,ann,x,y\n2026-01-05 09:00,ann,y,y\n2026-01-05 09:30,bob,x,x\n\n"
    reading = quiet_read(sheet(rows))
    assert triples(reading)[0] == ("p1", "ann", "x")
    assert reading.ledger.as_dict() == {"rows_read": 7, "kept": 4, "excluded": {"duplicate": 2, "blank": 1}}


@pytest.mark.parametrize("name", ["Worker", "annotator", "rater_id", "Name", "participant", "e-mail", "Username"])
def test_names_of_people(sheet, name):
    reading = quiet_read(sheet(f"{name},first,second\nann,1,2\nbob,2,-1\n"))
    assert reading.format == "survey" and "-1 is no label" in reading.columns["label"]
    assert reading.ledger.kept == 3


def test_the_user_says_so(sheet):
    path = sheet("id,q1,q2\n1,x,y\n2,y,y\n")
    assert quiet_read(path).format == "wide"
    assert quiet_read(path, format="survey").annotations.worker_ids.tolist() == ["1", "2"]
    path = sheet("when,who,p1,p2\n1,ann,x,y\n2,bob,y,y\n")
    reading = quiet_read(path, format="survey", worker="who", item="p1, p2")
    assert reading.annotations.item_ids.tolist() == ["p1", "p2"] and reading.ledger.kept == 4


def test_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"worker": "ann", "p1": 1, "p2": 2}\n{"worker": "bob", "p1": 2, "p2": null}\n')
    assert triples(quiet_read(path)) == [("p1", "ann", "1"), ("p1", "bob", "2"), ("p2", "ann", "2")]


@pytest.mark.parametrize(
    "text",
    [
        "worker,url,tag\nann,u1,x\nbob,u2,y\n",  # nothing in common
        "worker,first,second\nann,x,x\nann,x,y\nann,y,x\nbob,x,x\n",  # a row is no person
        "worker,item,second\nann,x,x\nbob,x,x\n",  # an item's column
        "worker,rating,second\nann,x,x\nbob,x,x\n",  # a label's column
    ],
)
def test_tables_of_another_kind(sheet, text):
    with pytest.raises(AnnotationError, match=r"Columns? for the"):
        quiet_read(sheet(text))


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("worker,p\n,x\n", {}, r"x\.csv, line 2: the worker \(worker\) is blank"),
        ("worker,comment\nann,x\n", {}, "none of them holds the labels of an item"),
        ("worker,p,p\nann,x,y\n", {}, "several columns for the items p"),
        ("worker,p\nann,x\n", {"label": "p"}, '`label="p"` has no meaning'),
        ("worker,p\nann,x\n", {"item": "q"}, "Column 'q' is not in"),
    ],
)
def test_what_is_refused(sheet, text, options, said):
    with pytest.raises(AnnotationError, match=said):
        quiet_read(sheet(text), format="survey", **options)


@given(st.lists(st.dictionaries(st.sampled_from(["worker", "timestamp", "a", "b"]), ANY_JSON), max_size=3))
def test_any_json_is_looked_at_without_harm(value):
    assert survey.recognise(Records("x", value)) in (None, "survey")
