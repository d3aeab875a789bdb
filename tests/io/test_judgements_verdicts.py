"""Pairwise verdicts in tables: the order of presentation, what labels name, the ledger, and what is refused."""

from pathlib import Path

import polars as pl
import pytest

import manyhands as mh
from manyhands.cli.printing import in_options
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io import read_export
from manyhands.io.stream.ingest import stream_to_codes

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")]

SAMPLE = Path(__file__).parents[1] / "samples" / "long" / "verdicts.csv"
TWICE = [("a", "j", "ab", "1"), ("a", "j", "ba", "2")]


def frame(rows, order="order"):
    """A table of verdicts."""
    return pl.DataFrame(rows, schema=["item", "worker", order, "label"], orient="row")


def labels_of(reading):
    """The labels in the order of the annotations."""
    return reading.annotations.classes[reading.annotations.label].tolist()


def test_labels_of_the_sample_name_answers_after_reading():
    """The judge of places has named A in both orders: answer A, then answer B; ties stay; every row counts."""
    with pytest.warns(CrowdWarning, match="changed with the order"):
        reading = read_export(SAMPLE, verdicts="position")
    votes = reading.annotations
    own = [votes.classes[k] for k, w in zip(votes.label, votes.worker) if votes.worker_ids[w] == "first-place"]
    assert own == ["A", "B"] * 12 and votes.classes.tolist() == ["A", "B", "tie"]
    assert reading.ledger.as_dict() == {"rows_read": 94, "kept": 94, "excluded": {}}
    assert reading.columns["presentation_order"] == "swapped"
    bias = reading.position_bias
    assert (bias["first-place"].flip_rate, bias["first-place"].first_share) == (1, 1)
    assert (bias["careful"].n_flips, bias["careful"].n_pairs, bias["usual"].n_pairs) == (1, 12, 10)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("order", ("ab", "ba")),
        ("Order", (" AB", "BA ")),
        ("order", ("0", "1")),
        ("position", ("1", "2")),
        ("swapped", ("false", "true")),
        ("swapped", (False, True)),
        ("order", ("original", "swapped")),
        ("presentation_order", (1, 2)),
        ("is_swapped", (0, 1)),
    ],
)
def test_words_of_the_two_orders(order, words):
    """A label that names the place is turned in the second order; one that names the answer is not."""
    rows = frame([("a", "j", words[0], "A"), ("a", "j", words[1], "A"), ("b", "j", words[0], "B")], order)
    place, answer = (read_export(rows, verdicts=word) for word in ("position", "answer"))
    assert labels_of(place) == ["A", "B", "B"] and place.position_bias["j"].n_first == 2
    assert labels_of(answer) == ["A", "A", "B"] and answer.position_bias["j"].n_first == 1


def test_a_second_order_is_no_repeated_answer():
    """Only the repeated verdict in the same order is; the later one counts, or the first, or it is refused."""
    rows = frame([*TWICE, ("a", "j", "ba", "1"), ("b", "j", "ab", None)])
    last = read_export(rows, verdicts="answer")
    assert last.ledger.as_dict() == {"rows_read": 4, "kept": 2, "excluded": {"no_label": 1, "duplicate": 1}}
    assert labels_of(last) == ["1", "1"] and last.position_bias["j"].n_flips == 0
    first = read_export(rows, verdicts="answer", duplicates="first")
    assert labels_of(first) == ["1", "2"] and first.position_bias["j"].n_flips == 1
    assert read_export(rows, verdicts="answer", duplicates="all").ledger.kept == 3
    shared = read_export(rows, verdicts="answer", duplicates="share")
    assert shared.annotations.weight.tolist() == pytest.approx([2 / 3, 1 / 3]) and shared.ledger.kept == 3
    with pytest.raises(AnnotationError, match="row 3 after the header: worker 'j' labels item 'a' again"):
        read_export(rows, verdicts="answer", duplicates="error")


def test_labels_that_can_only_be_places_need_no_option():
    """First and second name places; the classes then name answers by their place in the original order."""
    reading = read_export(frame([("a", "j", "ab", "first"), ("a", "j", "ba", "second"), ("b", "j", "ba", "tie")]))
    assert labels_of(reading) == ["first", "first", "tie"] and reading.position_bias["j"].n_flips == 0


def test_spellings_of_a_place_are_turned_too():
    """The most frequent spelling of the other place is used; the spellings stay apart, with a note."""
    rows = frame([*[("a", f"j{k}", "ab", "B") for k in range(2)], ("a", "j", "ab", "b"), ("b", "j", "ba", " a")])
    reading = read_export(rows, verdicts="position")
    assert reading.annotations.classes.tolist() == ["B", "b"] and labels_of(reading)[-1] == "B"
    assert reading.position_bias["j"].n_first == 1


def test_an_order_of_weighted_labels_is_noted():
    """Labels with weights cannot be kept apart by order; numbers in a column called order may be anything."""
    rows = frame([("a", "j", "ab", "1"), ("a", "j", "ba", "2")]).with_columns(p=pl.lit("0.5"))
    assert "order_unused" in read_export(rows, weight="p").notes
    assert not read_export(rows.with_columns(order=pl.Series(["1", "2"])), weight="p").notes


def test_a_map_of_labels_applies_after_the_turn():
    """Renamed answers keep their places; a class that the map empties is no label."""
    rows = frame([*TWICE, ("b", "j", "ba", "tie")])
    reading = read_export(rows, verdicts="position", label_map={"1": "base", "2": "new", "tie": ""})
    assert labels_of(reading) == ["base", "base"] and reading.ledger.excluded == {"no_label": 1}
    assert reading.position_bias["j"].first_share == 0.5


def test_names_of_models_have_flips_and_no_places():
    """Which of two names is shown first in the original order is not known."""
    rows = frame([("a", "j", "ab", "gpt"), ("a", "j", "ba", "llama"), ("b", "j", "ba", "gpt")])
    reading = read_export(rows, verdicts="answer")
    assert reading.position_bias["j"].flip_rate == 1 and reading.position_bias["j"].n_verdicts == 0
    assert "shown first" not in reading.notes["both_orders"]


def test_one_order_only_is_noted():
    """Nothing can be said of flips; the first-position share is that of the first answer."""
    reading = read_export(frame([("a", "j", "ab", "1"), ("b", "j", "ab", "2")]), verdicts="answer")
    assert reading.position_bias["j"].n_pairs == 0 and "in the other order too" in reading.notes["one_order"]


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "j", "1", "1"), ("b", "j", "2", "2"), ("c", "j", "3", "1")],  # the order of the tasks
        [("a", "j", "1", "1"), ("b", "j", "2", "2")],  # nobody was asked twice
        [("a", "j", "1", "cat"), ("a", "j", "2", "dog")],  # no names of two answers
    ],
)
def test_numbers_that_may_be_anything_are_left_alone(rows):
    """An ordinary crowd with a column called order or position is read as before."""
    reading = read_export(frame(rows))
    assert not reading.position_bias and "presentation_order" not in reading.columns
    assert reading.ledger.kept == len(rows) - (rows[0][3] == "cat")


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (TWICE, {}, "Say what a label names: `verdicts=answer`"),
        ([("a", "j", "1", "1"), ("a", "j", "2", "2")], {}, "presentation in 'order' [(]1 and 2[)]"),
        ([*TWICE, ("b", "j", "ca", "1")], {}, "one of two values, .* but 'order' has ab, ba, ca"),
        ([("a", "j", str(k), "1") for k in range(3)], {"verdicts": "answer"}, "but 'order' has 0, 1, 2"),
        ([("a", "j", "1", "1")], {"verdicts": "answer"}, "but 'order' has 1[.]"),
        ([*TWICE, ("b", "j", " ", "1")], {"verdicts": "answer"}, "row 3 after the header: .* is blank"),
        (
            [("a", "j", "ab", "gpt"), ("a", "j", "ba", "x")],
            {"verdicts": "position"},
            "gpt, x[)] do not name two places",
        ),
    ],
)
def test_what_is_refused(rows, options, words):
    """One sentence: what, where, what to do."""
    with pytest.raises(AnnotationError, match=words):
        read_export(frame(rows), **options)


def test_options_without_a_meaning_are_refused():
    """No such column, two of them, no table with rows of judgements, an unknown word, weights."""
    table = frame([("a", "j", "ab", "1")])
    with pytest.raises(AnnotationError, match=r"no column with the presentation order of pairs .* It has: item"):
        read_export(table.drop("order"), verdicts="answer")
    with pytest.raises(AnnotationError, match="two columns of the presentation order, 'order' and 'swapped'"):
        read_export(table.with_columns(swapped=pl.lit("true")), verdicts="answer")
    with pytest.raises(AnnotationError, match="was read as wide, which has no order of presentation"):
        read_export(pl.DataFrame({"item": ["a"], "ann": ["1"], "bob": ["2"]}), format="wide", verdicts="answer")
    with pytest.raises(ParameterError, match="`verdicts` is 'places'"):
        read_export(table, verdicts="places")
    with pytest.raises(ParameterError, match="leave out `weight`"):
        read_export(table.with_columns(p=pl.lit("0.5")), verdicts="answer", weight="p")
    message = "Say what: `verdicts=answer`, or `verdicts=position`."
    assert in_options(message) == "Say what: --verdicts answer, or --verdicts position."


def test_several_files_are_one_job(tmp_path):
    """The two orders of a pair may be in two files."""
    for at, row in enumerate(TWICE):
        frame([row]).write_csv(tmp_path / f"{at}.csv")
    reading = read_export([tmp_path / "0.csv", tmp_path / "1.csv"], verdicts="answer")
    assert reading.position_bias["j"].flip_rate == 1 and reading.ledger.kept == 2


def test_a_file_read_in_parts_is_refused(tmp_path):
    """The second order would be dropped as a repeated answer."""
    path = tmp_path / "x.csv"
    frame([("a", "j", "ab", "first"), ("a", "j", "ba", "second")]).write_csv(path)
    with pytest.raises(AnnotationError, match="not kept apart where a file is read in parts"):
        stream_to_codes([path], cache=tmp_path / "codes")


def test_a_table_in_python_becomes_labels_of_both_orders():
    """`read_annotations` on a data frame, then a fit; a frame passed to `fit` says what is missing."""
    rows = [(f"p{i}", judge, order, label) for i in range(6) for judge, verdicts in
            (("content", "AB"), ("place", "AA")) for order, label in zip(("ab", "ba"), verdicts)]  # fmt: skip
    votes = mh.read_annotations(frame(rows), verdicts="position")
    model = mh.OrderConsistencyVote().fit(votes)
    assert model.labels_.tolist() == ["A"] * 6 and model.flip_rate_.tolist() == [0, 1]
    with pytest.raises(AnnotationError, match="`verdicts=answer`"):
        mh.OrderConsistencyVote().fit(frame(rows))
