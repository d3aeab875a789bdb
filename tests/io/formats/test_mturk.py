"""Amazon Mechanical Turk: four ways to write an answer, HITs of several items, and which column is the item."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broken_exports import check_broken_table, quiet_read, triples
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Table
from manyhands.io.formats import mturk

SAMPLES = Path(__file__).parents[2] / "samples" / "mturk"


def batch(*rows, **columns):
    """Results of a batch; each row is (worker, cells...) below the columns that are given as `Input.x` etc."""
    names = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", *columns.pop("names")]
    whole = [(f"H{at}", f"A{at}", row[0], "Approved", *row[1:]) for at, row in enumerate(rows)]
    return pl.DataFrame(whole, schema=dict.fromkeys(names, pl.String), orient="row")


def test_the_batch_keeps_the_later_of_two_answers_and_no_rejected_ones():
    result = quiet_read(SAMPLES / "batch_results.csv")
    assert result.format == "mturk"
    assert result.ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"rejected": 1, "duplicate": 1}}
    assert triples(result) == [("item-1", "WKR_A", "neutral"), ("item-1", "WKR_B", "neutral")]
    assert result.annotations.worker_ids.tolist() == ["WKR_A", "WKR_B", "WKR_C"]
    assert result.columns == {
        "item": "Input.item_id",
        "worker": "WorkerId",
        "label": "Answer.sentiment.label",
        "time": "SubmitTime",
        "working_time": "WorkTimeInSeconds",
    }
    assert (result.question, result.gold, result.notes) == ("sentiment", {}, {})


def test_the_later_answer_is_later_in_time_not_in_the_file():
    table = pl.read_csv(SAMPLES / "batch_results.csv", infer_schema=False).reverse()
    assert triples(quiet_read(table)) == triples(quiet_read(SAMPLES / "batch_results.csv"))


def test_a_column_for_each_choice():
    result = quiet_read(SAMPLES / "batch_results_radio.csv")
    assert result.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert triples(result) == [("item-2", "WKR_A", "pos")]
    assert result.columns["label"] == "Answer.optradio.* (true for what was chosen)"


def test_answers_in_json():
    path = SAMPLES / "batch_results_taskanswers.csv"
    with pytest.raises(AnnotationError, match=r"several questions: sentiment, confident\. Pick one with `question=`"):
        quiet_read(path)
    result = quiet_read(path, question="sentiment")
    assert result.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert triples(result) == [("item-1", "WKR_A", "negative")]
    assert triples(quiet_read(path, question="confident")) == [("item-1", "WKR_A", "yes")]
    assert quiet_read(path, label="Answer.sentiment").columns["label"] == "Answer.taskAnswers[].sentiment"


def test_a_hit_of_two_items():
    result = quiet_read(SAMPLES / "batch_results_multi.csv")
    assert result.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
    assert triples(result) == [("item-1", "WKR_A", "negative"), ("item-2", "WKR_A", "positive")]
    assert result.columns["item"] == "Input.id1 to Input.id2"
    assert result.columns["label"] == "Answer.q1 to Answer.q2"


def test_the_number_ten_comes_after_two_and_each_answer_stays_with_its_item():
    numbers = [10, 1, 2, *range(3, 10)]
    names = [f"Input.id{n}" for n in numbers] + [f"Answer.q_{n:02d}.label" for n in reversed(numbers)]
    row = ("w", *(f"i{n}" for n in numbers), *(f"L{n}" for n in reversed(numbers)))
    result = quiet_read(batch(row, names=names))
    assert triples(result) == sorted((f"i{n}", "w", f"L{n}") for n in numbers)
    assert (result.question, result.columns["item"]) == ("q", "Input.id1 to Input.id10")


def test_several_items_with_choices_in_columns_and_in_json():
    names = ["Input.id1", "Input.id2", "Answer.q1.a", "Answer.q1.b", "Answer.q2.a", "Answer.q2.b"]
    rows = [("w", "x", "y", "true", "false", "true", "true"), ("v", "x", "y", "false", "true", "false", "false")]
    result = quiet_read(batch(*rows, names=names), combinations=True)
    assert triples(result) == [("x", "v", "b"), ("x", "w", "a"), ("y", "w", "a + b")]
    assert result.ledger.excluded == {"no_label": 1}
    told = json.dumps([{"q1": {"label": "a"}, "q2": {"label": "b"}}])
    result = quiet_read(batch(("w", "x", "y", told), names=["Input.id1", "Input.id2", "Answer.taskAnswers"]))
    assert triples(result) == [("x", "w", "a"), ("y", "w", "b")]


def test_a_place_where_no_item_was_shown_is_blank():
    names = ["Input.id1", "Input.id2", "Answer.q1", "Answer.q2"]
    result = quiet_read(batch(("w", "x", "y", "a", "b"), ("w", "z", "", "a", ""), names=names))
    assert result.ledger.as_dict() == {"rows_read": 4, "kept": 3, "excluded": {"blank": 1}}
    assert result.annotations.item_ids.tolist() == ["x", "y", "z"]


def test_what_was_asked_of_the_whole_hit_is_left_out_and_said():
    names = ["Input.id1", "Input.id2", "Answer.q1", "Answer.q2", "Answer.comment"]
    result = quiet_read(batch(("w", "x", "y", "a", "b", "hello"), names=names))
    assert result.question == "q"
    assert result.notes["whole_hit_answers"].startswith("Answer.comment is about a whole HIT")


@pytest.mark.parametrize(
    ("names", "lonely"),
    [
        (["Input.id1", "Input.id2", "Input.id3", "Answer.q1", "Answer.q2"], "Input.id3 has no partner"),
        (["Input.id1", "Input.id2", "Answer.q1", "Answer.q2", "Answer.q3"], "Answer.q3 has no partner"),
    ],
)
def test_a_number_without_a_partner(names, lonely):
    table = batch(("w", *"abcde"), names=names)
    with pytest.raises(AnnotationError, match=lonely):
        quiet_read(table)
    assert quiet_read(table, item="Input.id1", question="q1").ledger.kept == 1


def test_questions_in_numbers_about_one_item():
    with pytest.raises(AnnotationError, match="several questions: q1, q2"):
        quiet_read(batch(("w", "x", "a", "b"), names=["Input.url", "Answer.q1", "Answer.q2"]))
    names = ["Input.item_id", "Input.option1", "Input.option2", "Answer.q1", "Answer.q2"]
    assert triples(quiet_read(batch(("w", "x", "o", "p", "a", "b"), names=names), question="q2")) == [("x", "w", "b")]


@pytest.mark.parametrize(("whole", "single"), [("question", "sentence"), ("doc_id", "id")])
def test_what_all_items_share_does_not_make_them_one(whole, single):
    names = [f"Input.{whole}", f"Input.{single}1", f"Input.{single}2", "Answer.q1", "Answer.q2"]
    result = quiet_read(batch(("w", "Funny?", "x", "y", "a", "b"), names=names))
    assert triples(result) == [("x", "w", "a"), ("y", "w", "b")]


def test_several_choices_are_a_list():
    names = ["Input.id", "Answer.topic.red", "Answer.topic.blue"]
    rows = [("w", "x", "true", "true"), ("v", "x", "True", "false"), ("u", "x", "false", "")]
    result = quiet_read(batch(*rows, names=names), question="topic=blue")
    assert triples(result) == [("x", "v", "no"), ("x", "w", "yes")]
    assert result.ledger.excluded == {"no_label": 1}


def test_endings_that_are_no_choices():
    names = ["Input.id", "Answer.toxic.label", "Answer.toxic.sure"]
    result = quiet_read(batch(("w", "x", "false", "true"), names=names), question="toxic")
    assert triples(result) == [("x", "w", "false")]
    assert triples(quiet_read(batch(("w", "x", "true"), names=["Input.id", "Answer.agree.on"]))) == [("x", "w", "true")]
    listed = quiet_read(batch(("w", "x", '["a","b"]'), names=["Input.id", "Answer.t.labels"]), combinations=True)
    assert triples(listed) == [("x", "w", "a + b")]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ({"label": "a"}, "a"),
        ({"label": 3}, "3"),
        ({"labels": ["a"]}, "a"),
        ({"labels": ["b", "a"]}, "a + b"),
        ({"a": True, "b": False}, "a"),
        ({"a": True, "b": True}, "a + b"),
        ({"on": True}, "true"),
        ({"on": False}, "false"),
        ("a", "a"),
        (2.5, "2.5"),
        (True, "true"),
        (["a"], "a"),
        ({"x": {"y": 1}}, '{"x":{"y":1}}'),
    ],
)
def test_what_a_json_answer_may_be(value, label):
    cell = json.dumps([{"q": value}])
    table = batch(("w", "x", cell), names=["Input.id", "Answer.taskAnswers"])
    assert triples(quiet_read(table, combinations=True)) == [("x", "w", label)]


@pytest.mark.parametrize("value", [None, "", {}, {"a": False, "b": False}, {"labels": []}, []])
def test_json_that_answers_nothing(value):
    cells = [json.dumps([{"q": value}]), json.dumps([{"q": {"a": True, "b": False}}]), ""]
    table = batch(*((f"w{at}", "x", cell) for at, cell in enumerate(cells)), names=["Input.id", "Answer.taskAnswers"])
    kept = {"rows_read": 3, "kept": 1, "excluded": {"no_label": 2}}
    assert quiet_read(table).ledger.as_dict() == kept


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ('[{"q": {"label"', r"row 1 after the header \(assignment A0\): taskAnswers is not JSON"),
        ("3", "taskAnswers is not an object of questions"),
        ('[{"q": "a"}, {"q": "b"}]', "taskAnswers answers 'q' twice"),
        ('[{"q": ' + '{"a":' * 300 + "1" + "}" * 300 + "}]", r"row 1 .*taskAnswers: .* cannot be written as JSON"),
    ],
)
def test_json_that_is_broken(cell, told):
    with pytest.raises(AnnotationError, match=told):
        quiet_read(batch(("w", "x", cell), names=["Input.id", "Answer.taskAnswers"]))


def test_an_answer_by_the_same_name_twice_is_kept_apart():
    names = ["Input.id", "Answer.q", "Answer.q.label"]
    table = batch(("w", "x", "a", "b"), names=names)
    assert quiet_read(table, question="q.label").questions == {"q": 1, "q.label": 1}
    assert triples(quiet_read(table, label="Answer.q.label")) == [("x", "w", "b")]


def test_a_number_within_the_name():
    """Input.image1 belongs to Answer.image1_label."""
    numbers = range(1, 13)
    names = [f"Input.image{n}" for n in numbers] + [f"Answer.image{n}_label" for n in numbers]
    images, labels = [f"i{n}" for n in numbers], ["ab"[n % 2] for n in numbers]
    result = quiet_read(batch(("w", *images, *labels), names=names))
    assert result.ledger.as_dict() == {"rows_read": 12, "kept": 12, "excluded": {}}
    assert dict((item, label) for item, _, label in triples(result)) == dict(zip(images, labels))
    assert (result.question, result.columns["label"]) == ("image_label", "Answer.image1_label to Answer.image12_label")
    names = ["Input.image_1_url", "Input.image_2_url", "Answer.1_label", "Answer.2_label"]
    result = quiet_read(batch(("w", "x", "y", "a", "b"), names=names))
    assert triples(result) == [("x", "w", "a"), ("y", "w", "b")] and result.question == "label"


def test_a_number_within_the_name_may_mean_something_else():
    names = ["Input.id1", "Input.id2", "Answer.q1", "Answer.q2", "Answer.over18_too", "Answer.over21_too"]
    result = quiet_read(batch(("w", "x", "y", "a", "b", "1", "0"), names=names))
    assert triples(result) == [("x", "w", "a"), ("y", "w", "b")]
    assert "Answer.over18_too" in result.notes["whole_hit_answers"]


def test_numbered_questions_without_numbered_inputs():
    """They may be items; a question can be picked all the same."""
    table = batch(("w", "x", "a", "b"), names=["Input.page", "Answer.image1_label", "Answer.image2_label"])
    told = r"several questions: image1_label, image2_label\. Pick one .* 2 items per HIT, the batch lacks Input\.\*"
    with pytest.raises(AnnotationError, match=told):
        quiet_read(table)
    assert triples(quiet_read(table, question="image2_label")) == [("x", "w", "b")]


def test_the_line_of_an_assignment(tmp_path):
    """Also where a HIT is taken apart."""
    path = tmp_path / "x.csv"
    path.write_text("HITId,WorkerId,Input.id1,Input.id2,Answer.q1,Answer.q2\nH,w,x,y,a,b\nH,,x,y,a,b\n")
    with pytest.raises(AnnotationError, match=r"x\.csv, line 3: the worker"):
        quiet_read(path)


class TestItem:
    """Which of the uploaded columns is the item."""

    def test_the_user_names_it_with_or_without_the_prefix(self):
        table = batch(("w", "x", "y", "a"), names=["Input.id", "Input.url", "Answer.q"])
        for name in ("Input.url", "url", "URL"):
            assert quiet_read(table, item=name).columns["item"] == "Input.url"
        assert triples(quiet_read(table, item="HITId")) == [("H0", "w", "a")]
        with pytest.raises(AnnotationError, match="Column 'nothing' is not in"):
            quiet_read(table, item="nothing")

    def test_the_only_one(self):
        assert quiet_read(batch(("w", "x", "a"), names=["Input.url", "Answer.q"])).columns["item"] == "Input.url"

    def test_one_that_determines_the_others_is_said_to(self):
        rows = [("w", "red", "u1", "a"), ("w", "red", "u2", "a"), ("v", "blue", "u3", "a")]
        result = quiet_read(batch(*rows, names=["Input.colour", "Input.url", "Answer.q"]))
        assert result.columns["item"] == "Input.url (it determines every other Input.* column)"
        assert result.annotations.item_ids.tolist() == ["u1", "u2", "u3"]

    def test_none_determines_the_others(self):
        rows = [("w", "l1", "r1", "a"), ("w", "l1", "r2", "a"), ("w", "l2", "r1", "a")]
        table = batch(*rows, names=["Input.left", "Input.right", "Answer.q"])
        with pytest.raises(
            AnnotationError, match=r"any of Input.left, Input.right might name .* or add `item=.HITId.`"
        ):
            quiet_read(table)
        assert quiet_read(table, item="HITId").ledger.kept == 3

    def test_what_is_shown_is_not_the_name_of_all(self):
        """A document with several passages: the passage tells them apart."""
        rows = [("w", "d1", "p1", "a"), ("w", "d1", "p2", "a"), ("w", "d2", "p3", "a")]
        result = quiet_read(batch(*rows, names=["Input.document", "Input.passage", "Answer.q"]))
        assert result.annotations.item_ids.tolist() == ["p1", "p2", "p3"]

    def test_a_usual_name_with_one_value_tells_nothing_apart(self):
        rows = [("w", "Funny?", "u1", "a"), ("w", "Funny?", "u2", "a")]
        result = quiet_read(batch(*rows, names=["Input.question", "Input.url", "Answer.q"]))
        assert result.annotations.item_ids.tolist() == ["u1", "u2"]

    def test_a_usual_name_wins_but_what_varies_beside_it_is_said(self):
        rows = [("w", "x", "1", "a"), ("v", "x", "2", "a"), ("v", "y", "3", "a")]
        result = quiet_read(batch(*rows, names=["Input.item_id", "Input.seed", "Answer.q"]))
        assert result.columns["item"] == "Input.item_id"
        assert "Some values of Input.item_id come with different" in result.notes["item_varies"]

    def test_without_any_it_is_the_hit_with_a_note(self):
        result = quiet_read(batch(("w", "a"), names=["Answer.q"]))
        assert triples(result) == [("H0", "w", "a")]
        assert "one item may be in several HITs" in result.notes["item_is_hit"]


def test_gold_that_the_requester_uploaded():
    rows = [("w", "x", "a", "b"), ("w", "y", "", "b")]
    result = quiet_read(batch(*rows, names=["Input.id", "Input.gold", "Answer.q"]))
    assert (result.gold, result.columns["gold"]) == ({"x": "a"}, "Input.gold")
    rows = [("w", "x", "a", "b", "c")]
    several = quiet_read(batch(*rows, names=["Input.id", "Input.q_gold", "Answer.q", "Answer.r"]), question="q")
    assert several.gold == {"x": "a"}
    unclear = quiet_read(batch(*rows, names=["Input.id", "Input.gold", "Answer.q", "Answer.r"]), question="q")
    assert unclear.gold == {}


def test_gold_is_not_the_item():
    result = quiet_read(batch(("w", "a", "u1", "b"), names=["Input.gold", "Input.url", "Answer.q"]))
    assert triples(result) == [("u1", "w", "b")]


def test_wishes_for_worker_and_label():
    table = batch(("w", "x", "a", "b"), names=["Input.id", "Answer.q", "Answer.r"])
    assert triples(quiet_read(table, label="Answer.r", worker="AssignmentId")) == [("x", "A0", "b")]
    with pytest.raises(AnnotationError, match=r"no answers called 'Answer\.z'\. It has: q, r"):
        quiet_read(table, label="Answer.z")


def test_a_table_without_answers_or_workers():
    with pytest.raises(AnnotationError, match=r"has no Answer\.\* column"):
        quiet_read(batch(("w", "x"), names=["Input.id"]), format="mturk")
    with pytest.raises(AnnotationError, match="Column 'WorkerId' is not in"):
        quiet_read(batch(("w", "x"), names=["Answer.q"]).drop("WorkerId"), format="mturk")


def test_other_files_are_not_claimed():
    text = {"WorkerId": ["w"], "Answer.q": ["a"]}
    assert mturk.recognise(Table("x", pl.DataFrame(text), list(text))) is None


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.csv")))
@given(data=st.data())
@settings(max_examples=60)
def test_broken_batches_give_sentences(name, data, tmp_path_factory):
    check_broken_table(data, SAMPLES / name, tmp_path_factory.getbasetemp(), "mturk")
