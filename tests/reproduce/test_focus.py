"""One row beside all others, by the metrics that it is to be shown by; and parameters that hold on one set alone."""

import math
from dataclasses import replace

import pytest
from scipy.stats import ttest_rel

from manyhands.exceptions import ParameterError
from manyhands.reproduce import pages
from manyhands.reproduce import pages as show
from manyhands.reproduce.cells import cells_of, check_methods, check_table, make_estimator
from manyhands.reproduce.parsing import parse_table
from manyhands.reproduce.records import Records
from manyhands.reproduce.verdicts import entries, half_width, pairs

TOML = """
title = "Ours beside theirs"
paper = "none"
number = "beyond the paper"
seeds = 4
metrics = ["accuracy", "macro_f1", "log_loss"]
points = true
focus = { row = "ours", metrics = ["accuracy", "macro_f1"] }
[[datasets]]
name = "crowd"
make = "make_crowd"
[[datasets]]
name = "large"
make = "make_crowd"
arguments = { n_items = 500 }
[[rows]]
name = "vote"
method = "majority-vote"
[[rows]]
name = "ours"
method = "dawid-skene"
parameters = { smoothing = 0.1 }
parameters_on = { large = { max_iter = 7 } }
[[rows]]
name = "one-coin"
method = "one-coin"
[[rows]]
name = "theirs"
why = "not ours"
"""
TABLE = parse_table(TOML, "own/focus")
VALUES = {"vote": [0.8, 0.82, 0.81, 0.85], "ours": [0.9, 0.95, 0.92, 0.93], "one-coin": [0.9, 0.9, 0.9, 0.97]}


def records():
    found = {}
    for cell in cells_of(TABLE):
        value = VALUES[cell.row.name][cell.seed - 1000]
        found[cell.key] = {
            "key": cell.key,
            "metrics": {"accuracy": value, "macro_f1": value / 2, "log_loss": 1 - value},
        }
    return Records(found)


def test_the_focus_is_held_against_each_of_the_others():
    """Two metrics, two sets, two other rows; the pair of others is not tested, so the correction is for eight."""
    found = pairs(TABLE, entries(TABLE, cells_of(TABLE), records()))
    assert {pair.row for pair in found} == {"ours"}
    assert [(p.metric, p.dataset, p.other) for p in found] == [
        (metric, name, other)
        for metric in ("accuracy", "macro_f1")
        for name in ("crowd", "large")
        for other in ("vote", "one-coin")
    ]
    first, smallest = found[0], min(pair.p for pair in found)
    assert first.difference == pytest.approx(100 * (3.7 - 3.28) / 4)
    assert first.p == pytest.approx(ttest_rel(VALUES["ours"], VALUES["vote"]).pvalue)
    assert min(pair.p_corrected for pair in found) == pytest.approx(8 * smallest)


def test_the_focus_may_be_held_against_some():
    """Those that were named before, so that the correction is for them alone."""
    table = replace(TABLE, focus={"row": "one-coin", "beside": ("ours",), "metrics": ("accuracy",)})
    found = pairs(table, entries(table, cells_of(table), records()))
    assert [(p.row, p.other, p.dataset) for p in found] == [
        ("one-coin", "ours", "crowd"),
        ("one-coin", "ours", "large"),
    ]
    assert found[0].p_corrected == pytest.approx(min(1, 2 * found[0].p))
    text = TOML.replace('row = "ours"', 'row = "ours", beside = ["vote"]')
    assert parse_table(text, "own/focus").focus["beside"] == ("vote",)


def test_the_interval_is_that_of_the_t_distribution():
    """Half of it; over folds it is wider by the overlap of the training parts."""
    differences = [a - b for a, b in zip(VALUES["ours"], VALUES["one-coin"])]
    low, high = ttest_rel(VALUES["ours"], VALUES["one-coin"]).confidence_interval(0.95)
    assert half_width(differences) == pytest.approx((high - low) / 2)
    assert half_width(differences, 0.25) == pytest.approx((high - low) / 2 * math.sqrt(4 * (0.25 + 0.25)))
    pair = pairs(TABLE, entries(TABLE, cells_of(TABLE), records()))[1]
    assert pair.interval == pytest.approx(100 * (high - low) / 2)


def test_the_page_shows_differences_with_intervals():
    """In a table of its own."""
    shown = pages.page(TABLE, cells_of(TABLE), records(), "manyhands reproduce")
    text = pages.to_markdown(shown)
    assert "## Ours minus each of the others" in text and "corrected for 8 pairs (Holm)" in text
    assert "| data set | metric | method | difference (95% interval) | p |" in text
    assert (
        "| crowd | accuracy | vote | 10.5 ± 3.3 | 0.0" in text
        and "| large | macro F1 | one-coin | 0.4 ± 3.0 | 1 |" in text
    )
    assert "Methods that differ" not in text
    assert all(
        ", accuracy: ours above vote" in message or ", macro F1: " in message for message in show.differing(shown)
    )
    assert show.differing(shown)


def test_nothing_is_compared_before_it_is_measured():
    """No empty table."""
    text = pages.to_markdown(pages.page(TABLE, cells_of(TABLE), Records(), "manyhands reproduce"))
    assert "minus each of the others" not in text


def test_parameters_of_one_set_hold_there_alone():
    """They are in the estimator and in the key; a mistake in them is found before any work."""
    here, there = (cell for cell in cells_of(TABLE, seeds=1) if cell.row.name == "ours")
    assert here.row.parameters == {"smoothing": 0.1} and there.row.parameters == {"smoothing": 0.1, "max_iter": 7}
    assert make_estimator(there.row, 0).max_iter == 7 and make_estimator(here.row, 0).max_iter == 1000
    table = parse_table(TOML.replace("max_iter = 7", "max_itr = 7"), "own/focus")
    with pytest.raises(ParameterError, match="no parameter of dawid-skene called 'max_itr'"):
        check_table(table)
    table = parse_table(TOML.replace("max_iter = 7", "max_iter = -7"), "own/focus")
    with pytest.raises(ParameterError, match="row 'ours': The parameter `max_iter`"):
        check_methods(cells_of(table, seeds=1))


def test_a_row_may_skip_a_set():
    """With a reason, which is shown where something was published; all else is measured."""
    text = TOML.replace(
        'method = "one-coin"', 'method = "one-coin"\nskip = { large = "too large" }\npublished = { large = 90 }'
    )
    table = parse_table(text, "own/focus")
    places = {(cell.row.name, cell.dataset.name) for cell in cells_of(table)}
    assert ("one-coin", "crowd") in places and ("one-coin", "large") not in places and len(places) == 5
    shown = pages.page(table, cells_of(table), Records(), "")
    (skipped,) = [e for e in shown["entries"] if e["why"]]
    assert (skipped["row"], skipped["dataset"], skipped["verdict"]) == ("one-coin", "large", "not measured")
    assert "- one-coin on large: too large" in pages.to_markdown(shown)


MISTAKES = {
    "a row that there is not": ('row = "ours"', 'row = "mine"', "focus: there is no row with a method called 'mine'"),
    "a row without a method": ('row = "ours"', 'row = "theirs"', "no row with a method called 'theirs'"),
    "a metric that is not measured": ('"macro_f1"] }', '"ece"] }', "no metric in this table called 'ece'"),
    "another row that there is not": (
        'row = "ours"',
        'row = "ours", beside = ["x"]',
        "no row with a method called 'x'",
    ),
    "an unknown key": ("focus = { row =", "focus = { rows =", "focus: row is missing"),
    "a set that there is not": (
        "{ large = {",
        "{ huge = {",
        "row 'ours': there is no data set of this table called 'huge'",
    ),
    "a skip of no set": ('method = "one-coin"', 'method = "one-coin"\nskip = { huge = "x" }', "called 'huge'"),
    "a skip without a reason": (
        'method = "one-coin"',
        'method = "one-coin"\nskip = { large = 3 }',
        "skip: large must be",
    ),
    "no parameters": ("{ large = { max_iter = 7 } }", "{ large = 7 }", "parameters_on: large must be keys with values"),
    "parameters without a method": (
        'why = "not ours"',
        'why = "n"\nparameters_on = { large = {} }',
        "belong to a method",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake):
    """Which table, which part, what would be right."""
    right, wrong, message = MISTAKES[mistake]
    assert right in TOML
    with pytest.raises(ParameterError, match="own/focus") as caught:
        parse_table(TOML.replace(right, wrong, 1), "own/focus")
    assert message in str(caught.value) and "\n" not in str(caught.value)
