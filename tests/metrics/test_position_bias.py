"""Position bias of judges: shares and flips by hand and by a slow twin, intervals, names of answers, bad input."""

import math

import numpy as np
import pytest

from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.metrics import PositionBias, position_bias
from manyhands.metrics.position_bias import columns_of, recognise_answers


def slow_position_bias(items, workers, labels, swapped, answers):
    """Counts of each judge by loops over verdicts and over pairs of verdicts."""
    found = {}
    for judge in dict.fromkeys(workers):
        own = [row for row in zip(items, workers, labels, swapped) if row[1] == judge]
        placed = [(label, turned) for _, _, label, turned in own if label in answers]
        first = sum(label == answers[1 if turned else 0] for label, turned in placed)
        n_pairs, n_flips = 0, 0.0
        for item in {row[0] for row in own}:
            one, other = ([row[2] for row in own if row[0] == item and row[3] == turned] for turned in (False, True))
            if one and other:
                n_pairs += 1
                n_flips += sum(a != b for a in one for b in other) / (len(one) * len(other))
        found[judge] = (len(placed), first, n_pairs, pytest.approx(n_flips))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_slow_twin(seed):
    """Ties, one order only, several verdicts in one order, judges without pairs."""
    rng = np.random.default_rng(seed)
    n = 300
    items, workers = rng.integers(25, size=n).tolist(), rng.choice(list("abcdef"), n).tolist()
    labels, swapped = rng.choice(["A", "B", "tie"], n).tolist(), (rng.random(n) < 0.3).tolist()
    items += [99, 99]
    workers += ["once", "twice"]
    labels += ["A", "tie"]
    swapped += [True, False]
    found = position_bias(items, workers, labels, swapped)
    expected = slow_position_bias(items, workers, labels, swapped, ("A", "B"))
    assert {judge: (one.n_verdicts, one.n_first, one.n_pairs, one.n_flips) for judge, one in found.items()} == expected
    assert found["twice"].n_verdicts == 0 and math.isnan(found["twice"].first_share)


def test_a_judge_of_content_and_a_judge_of_position():
    """No flips and a share of one half; all flips and a share of 1 or, for the last place, of 0."""
    items, turned = [1, 1, 2, 2] * 3, [False, True] * 6
    labels = [1, 1, 2, 2, 1, 2, 1, 2, 2, 1, 2, 1]
    found = position_bias(items, ["content"] * 4 + ["first"] * 4 + ["last"] * 4, labels, turned)
    assert [(one.flip_rate, one.first_share) for one in found.values()] == [(0, 0.5), (1, 1), (1, 0)]


def test_an_interval_covers_the_rate_of_a_simulated_judge():
    """At least 93 of 100 intervals of the flip rate, and of the share for a judge who saw one order of each pair."""
    rng = np.random.default_rng(0)
    covered = np.zeros(2)
    for _ in range(100):
        n = 60
        first = np.where(rng.random((n, 2)) < 0.8, 0, 1)  # place that is named: the first in 80% of cases
        labels = np.column_stack([first[:, 0], 1 - first[:, 1]]).ravel()
        both = position_bias(np.repeat(np.arange(n), 2), ["j"] * 2 * n, labels, np.tile([False, True], n))["j"]
        once = position_bias(np.arange(n), ["j"] * n, first[:, 0], np.zeros(n, bool))["j"]
        low, high = both.flip_rate_interval
        covered[0] += low <= 0.8**2 + 0.2**2 <= high
        low, high = once.first_share_interval
        covered[1] += low <= 0.8 <= high
    assert covered.min() >= 93


@pytest.mark.parametrize(
    ("classes", "pair"),
    [
        (["1", "2"], ("1", "2")),
        ([0, 1], (0, 1)),
        (["B", "A", "C"], ("A", "B")),
        (["[[B]]", "[[A]]"], ("[[A]]", "[[B]]")),
        (["Answer 2", "Answer 1", "tie"], ("Answer 1", "Answer 2")),
        (["answer1", "answer2"], ("answer1", "answer2")),
        (["model_b", "model_a", "tie (bothbad)"], ("model_a", "model_b")),
        (["second", "first", "equal"], ("first", "second")),
        (["0", "1", "2"], None),  # 1 may be the first or the second answer
        (["club", "cab"], None),
        (["gpt-4", "llama"], None),
        (["1", "tie"], None),
    ],
)
def test_names_of_the_two_answers(classes, pair):
    """The one that is first in the original order comes first; anything ambiguous is not recognised."""
    assert recognise_answers(classes) == ({} if pair is None else {pair[0]: 0, pair[1]: 1})


def test_spellings_of_one_answer():
    """Case, outer space and brackets do not matter."""
    assert recognise_answers(["b", "A", "a ", "[[B]]", "tie"]) == {"A": 0, "a ": 0, "b": 1, "[[B]]": 1}


def test_unrecognised_answers_leave_the_flip_rate():
    """Names of models say nothing about places, unless the caller does."""
    columns = [1, 1], ["j", "j"], ["gpt", "llama"], [False, True]
    unknown, known = position_bias(*columns)["j"], position_bias(*columns, answers=("gpt", "llama"))["j"]
    assert unknown.flip_rate == known.flip_rate == 1 and unknown.n_verdicts == 0 and known.first_share == 1


def test_columns_have_nan_where_nothing_is_known():
    """A worker without verdicts, and one without pairs."""
    table = columns_of({"a": PositionBias(10, 5, 0, 0), "b": PositionBias(10, 10, 5, 5)}, ["b", "none", "a"])
    assert table["n_pairs"].tolist() == [5, 0, 0]
    np.testing.assert_array_equal(table["flip_rate"], [1, np.nan, np.nan])
    np.testing.assert_array_equal(table["first_share"], [1, np.nan, 0.5])
    assert table["first_share_low"][2] < 0.5 < table["first_share_high"][2]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"swapped": ["ab", "ba"]}, ParameterError, "`swapped` must hold True"),
        ({"answers": "AB"}, ParameterError, "`answers` is 'AB'"),
        ({"answers": ("A",)}, ParameterError, "two answers"),
        ({"labels": ["A"]}, AlignmentError, "1 labels"),
        ({"labels": ["A", None]}, AnnotationError, "label"),
    ],
)
def test_bad_input_is_refused(change, error, words):
    """One sentence that names the argument."""
    given = {"items": [1, 1], "workers": ["j", "j"], "labels": ["A", "B"], "swapped": [False, True]} | change
    with pytest.raises(error, match=words):
        position_bias(**given)
