"""Lists that rows store beside their metrics, by hand."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.exceptions import ParameterError
from manyhands.reproduce import runner
from manyhands.reproduce.cells import SERIES_NAMES, Cell, Part, is_series, make_part, roc_curve, run_cell, series_of
from manyhands.reproduce.parsing import parse_table
from measuring import BLOBS, LINEAR, SKENE, small_table

VOTES = Annotations.from_matrix([[0, 1], [0, 0], [1, 1], [0, 1]])
TABLE = """
title = "t"
paper = "p"
number = "n"
{more}
[[datasets]]
name = "blobs"
make = "make_blobs"
[[rows]]
name = "vote"
method = "majority-vote"
"""


class Fitted:
    """A method that is fitted, as far as series go."""

    classes_ = np.array([0, 1])

    def __init__(self, **attributes):
        self.posterior_ = np.array([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        vars(self).update(attributes)


def part(truth, **more):
    return Part(None, VOTES, None if truth is None else np.array(truth), **more)


def slow_rate(inside, score, false_rate):
    """The highest point of the curve at this rate, between the corners that thresholds give."""
    corners = [(0.0, 0.0)]
    for threshold in sorted(set(score), reverse=True):
        taken = score >= threshold
        corners.append(((taken & ~inside).sum() / (~inside).sum(), (taken & inside).sum() / inside.sum()))
    heights = []
    for (x0, y0), (x1, y1) in pairwise(corners):
        if x0 <= false_rate <= x1:
            heights.append(y1 if x0 == x1 else y0 + (false_rate - x0) / (x1 - x0) * (y1 - y0))
    return max(heights)


def test_a_curve_at_every_false_positive_rate():
    """Ties are straight lines, and vertical parts count with their upper end."""
    rng = np.random.default_rng(3)
    for n in (5, 40):
        inside, score = np.arange(n) % 3 == 0, rng.integers(0, 6, n) / 5
        wanted = [slow_rate(inside, score, rate) for rate in np.arange(101) / 100]
        assert roc_curve(inside, score) == pytest.approx(wanted, abs=1e-9)
    perfect = roc_curve(np.array([True, False]), np.array([0.9, 0.1]))
    assert perfect == pytest.approx(np.ones(101))


def test_series_of_labels_of_two_classes():
    """Items of unknown truth do not count; without truth, or with three classes, there is no curve."""
    found = series_of(Fitted(), part([0, 0, 1, -1]), ["roc"])["roc"]
    assert len(found) == 101 and found == [1.0] * 101
    assert series_of(Fitted(), part(None), ["roc"]) == {"roc": None}
    assert series_of(Fitted(), part([0, 0, 0, -1]), ["roc"]) == {"roc": None}
    assert series_of(Fitted(classes_=np.arange(3)), part([0, 1, 1, 0]), ["roc"]) == {"roc": None}


def test_estimates_come_before_what_was_simulated():
    """Half of the list each."""
    there = part(None, planted={"expertise": np.array([[0.9, 0.8], [0.7, 0.6]]), "difficulty": np.arange(4.0)})
    model = Fitted(expertise_=np.array([[0.1, 0.2], [0.3, 0.4]]), difficulty_=np.arange(4.0) * 2)
    found = series_of(model, there, ["expertise", "difficulty"])
    assert found["expertise"] == [0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6]
    assert found["difficulty"] == [0, 2, 4, 6, 0, 1, 2, 3]
    assert series_of(model, part(None), ["expertise", "difficulty"]) == {"expertise": None, "difficulty": None}


def test_shares_and_recalls_of_classes():
    """Of the truth, the annotations and the posterior; the recall is of the test items."""
    names = ["shares.truth", "shares.annotations", "shares.posterior", "recall", "class_shares"]
    tested = part([0, 1, 1, -1], X_test=np.zeros((4, 1)), y_test=np.array([0, 0, 0, 0]))
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.1, 0.9]])
    model = Fitted(predict_proba=lambda X: proba, class_shares_=np.array([[0.5, 0.5], [0.25, 0.75]]))
    found = series_of(model, tested, names)
    assert found["shares.truth"] == [0.333333, 0.666667] and found["shares.annotations"] == [0.5, 0.5]
    assert found["shares.posterior"] == pytest.approx([0.575, 0.425]) and found["recall"] == [0.75, None]
    assert found["class_shares"] == [[0.5, 0.5], [0.25, 0.75]]
    nothing = series_of(Fitted(), part(None), names)
    assert [nothing[name] for name in ("shares.truth", "recall", "class_shares")] == [None] * 3


def test_what_a_method_notes_in_training():
    """Every epoch or round that has the entry, and those between; lists stay lists."""
    history = [{"warm_up": 1.0}, {"loss": 2.0}, {"loss": float("nan")}, {"other": 3.0}, {"loss": 1.0}, {"end": 0.0}]
    rounds = [{"n": 1, "shares": [0.1, 0.9]}, {"n": np.int64(2), "shares": [0.2, 0.8]}]
    model = Fitted(history_=history, rounds_=rounds, name_="text", large_=np.zeros(30_000), cube_=np.zeros((2, 2, 2)))
    names = ["history.loss", "history.no", "rounds.n", "rounds.shares", "fitted.posterior", "fitted.name"]
    found = series_of(model, part(None), [*names, "fitted.large", "fitted.cube", "fitted.no"])
    assert found["history.loss"] == [2.0, None, None, 1.0] and found["history.no"] is None
    assert found["rounds.n"] == [1.0, 2.0] and found["rounds.shares"] == [[0.1, 0.9], [0.2, 0.8]]
    assert found["fitted.posterior"] == model.posterior_.tolist()
    assert [found[f"fitted.{name}"] for name in ("name", "large", "cube", "no")] == [None] * 4
    aggregator = Fitted(history_=np.array([1.0, 2.0]))  # values of the objective, without names
    assert series_of(aggregator, part(None), ["history.loss"]) == {"history.loss": None}


def test_a_cell_gives_what_its_table_lists():
    """And nothing more."""
    table = small_table([LINEAR], series=("recall", "shares.truth", "rounds.n"))
    found = run_cell(Cell(table, BLOBS, LINEAR, 1000))
    truth = make_part(BLOBS, 1000).y_train
    assert set(found.series) == {"recall", "shares.truth", "rounds.n"} and found.series["rounds.n"] is None
    assert found.series["shares.truth"] == pytest.approx([(truth == 0).mean(), (truth == 1).mean()], abs=1e-6)
    assert np.mean(found.series["recall"]) == pytest.approx(found.metrics["balanced_accuracy"], abs=1e-6)
    assert run_cell(Cell(small_table([LINEAR]), BLOBS, LINEAR, 1000)).series == {}


def test_a_row_is_measured_again_for_a_new_series(tmp_path):
    """Once; a table without series leaves such rows alone."""
    path = tmp_path / "own-small.jsonl"
    plain, more = (small_table([SKENE], [BLOBS], seeds=1, series=series) for series in ((), ("roc", "rounds.n")))
    for table, lines in ((plain, 1), (more, 2), (more, 2), (plain, 2), (replace(more, series=("roc",)), 2)):
        runner.run(table, tmp_path, jobs=1, quick=True)
        assert len(path.read_text().splitlines()) == lines
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["key"] == second["key"] and "series" not in first
    assert len(second["series"]["roc"]) == 101 and second["series"]["rounds.n"] is None


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('series = ["rok"]', "there is no series 'rok'; the nearest is 'roc'"),
        ('series = ["history."]', "there is no series 'history.'; the nearest is"),
        ('series = ["roc", "roc"]', "series has roc twice"),
        ('series = "roc"', "series must be a list"),
        ("choose_folds = 1", "choose_folds must be"),
    ],
)
def test_a_name_that_is_none_is_refused(more, problem):
    """Before anything is measured."""
    with pytest.raises(ParameterError, match=problem):
        parse_table(TABLE.format(more=more), "own/t")


def test_names_of_series():
    """All of them may be listed."""
    assert all(map(is_series, [*SERIES_NAMES, "history.loss", "rounds.heldout", "fitted.difficulty"]))
    table = parse_table(TABLE.format(more='series = ["roc", "rounds.n"]\nchoose_folds = 2'), "own/t")
    assert table.series == ("roc", "rounds.n") and table.choose_folds == 2
