"""`estimate_accuracy`: intervals that cover, and no number without answers."""

import numpy as np
import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError
from manyhands.simulate import make_crowd
from manyhands.trust import Answers, Drawing, combine_answers, finite_interval
from manyhands.trust.calibration import expected_accuracy, prediction_powered, stratified_interval


def test_without_answers_there_is_no_number():
    found = mh.trust.estimate_accuracy(dict.fromkeys(range(10_000), "a"))
    assert found.value is None and found.method == "none"
    assert (found.needed[0.05], found.needed[0.02]) == (240, 1333)
    assert "240 random answers tell it within 5 points, 1333 within 2" in str(found)


def test_few_answers_give_an_exact_interval_also_per_class():
    labels = {item: "a" if item < 60 else "b" for item in range(100)}
    answers = {item: "a" for item in range(0, 100, 4)}
    found = mh.trust.estimate_accuracy(labels, mh.trust.Answers(answers, "random"))
    assert found.value == 15 / 25 and (found.low, found.high) == finite_interval(15, 25, 100)
    assert found.classes["a"] == (1.0, *finite_interval(15, 15, 60), 15)
    assert found.classes["b"] == (0.0, *finite_interval(0, 10, 40), 10)
    assert found.as_dict()["classes"]["b"]["n_answers"] == 10


def test_gold_of_the_fit_is_not_counted_as_right():
    """The estimate of a model that has the answers as gold is that of a model without them."""
    crowd = make_crowd(n_items=200, n_workers=8, n_classes=3, accuracy=0.6, random_state=0)
    truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    answers = mh.trust.Answers(dict(list(truth.items())[:40]), "random")
    blind = mh.MajorityVote().fit(crowd.annotations)
    seen = mh.MajorityVote().fit(crowd.annotations, dict(answers.values))
    assert mh.trust.estimate_accuracy(seen, answers).value == mh.trust.estimate_accuracy(blind, answers).value < 1
    calibrated = mh.calibrate(blind, answers)
    heldout = calibrated.calibration_.heldout
    expected = np.mean([heldout[item] == label for item, label in answers.values.items()])
    assert mh.trust.estimate_accuracy(calibrated, answers).value == pytest.approx(expected)


def test_prediction_powered_intervals_cover_and_are_narrower():
    """By simulation: a confidence that predicts errors without being calibrated."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0, 1, 2000)
    right = (rng.random(2000) < 0.4 + 0.55 * confidence).astype(float)
    covered, width, exact = [], [], []
    for _ in range(400):
        rows = rng.permutation(2000)[:120]
        value, low, high = prediction_powered(right[rows], confidence[rows], confidence, 0.95)
        covered.append(low <= right.mean() <= high)
        width.append(high - low)
        plain = finite_interval(int(right[rows].sum()), 120, 2000)
        exact.append(plain[1] - plain[0])
        assert low <= value <= high
    assert np.mean(covered) >= 0.92 and np.mean(width) < np.mean(exact)


def test_stratified_answers_cover():
    """Random and contested answers together: the estimate is unbiased, by simulation."""
    rng = np.random.default_rng(1)
    name = np.where(np.arange(500) < 100, "hard", "easy")
    right = rng.random(500) < np.where(name == "hard", 0.4, 0.95)
    labels = dict.fromkeys(range(500), "a")
    truth = {item: "a" if right[item] else "b" for item in range(500)}
    covered, values = [], []
    for _ in range(300):
        order = rng.permutation(500)
        random = order[:40].tolist()
        more = [item for item in rng.permutation(100).tolist() if item not in random][:20]
        sampled = dict.fromkeys(random, "random") | dict.fromkeys(more, "contested")
        answers = mh.trust.Answers(
            {item: truth[item] for item in sampled}, sampled, {item: name[item] for item in sampled},
            {"hard": 100, "easy": 400}, 500,
        )  # fmt: skip
        found = mh.trust.estimate_accuracy(labels, answers)
        assert found.method == "stratified"
        covered.append(found.low <= right.mean() <= found.high)
        values.append(found.value)
    assert np.mean(values) == pytest.approx(right.mean(), abs=0.01) and np.mean(covered) >= 0.93


def test_bad_answers_are_refused():
    labels = dict.fromkeys(range(20), "a")
    with pytest.raises(AnnotationError, match="contested"):
        mh.trust.estimate_accuracy(labels, mh.trust.Answers({1: "a"}, "contested"))
    with pytest.raises(AnnotationError, match="no label, such as 99"):
        mh.trust.estimate_accuracy(labels, mh.trust.Answers({99: "a"}, "random"))


def drawn(items, n, truth, name, rng):
    """Answers to n random ones of the first items."""
    rows = rng.permutation(items)[:n].tolist()
    drawing = Drawing(frozenset(range(items)), name=name)
    return Answers({row: truth[row] for row in rows}, "random", drawings=(drawing,))


def test_nothing_is_said_of_items_that_could_not_be_drawn():
    """Sixty new items, all wrong, change nothing: the estimate is about the hundred that were there."""
    labels = {item: "a" if item < 60 else "b" for item in range(160)}
    answers = drawn(100, 25, dict.fromkeys(range(160), "a"), "mon", np.random.default_rng(0))
    n_right = sum(labels[item] == "a" for item in answers.values)
    found = mh.trust.estimate_accuracy(labels, answers)
    assert (found.low, found.high) == finite_interval(n_right, 25, 100) and found.method == "exact"
    assert found.n_covered == 100 and found.n_items == 160 and found.strata == {"mon": (100, 25)}
    assert "This is about 100 of 160 items; of the other 60" in str(found) and found.as_dict()["n_covered"] == 100


def test_answers_of_two_days_cover_the_accuracy_of_all_items_that_could_be_drawn():
    """By simulation: labels of the second day are worse and were asked about less, so that a plain mean is biased."""
    rng = np.random.default_rng(1)
    right = np.r_[rng.random(300) < 0.9, rng.random(300) < 0.4, np.zeros(50, bool)]
    truth = {row: "a" if one else "b" for row, one in enumerate(right)}
    labels = dict.fromkeys(range(650), "a")
    covered, value, plain = [], [], []
    for _ in range(300):
        both = combine_answers([drawn(300, 60, truth, "mon", rng), drawn(600, 40, truth, "wed", rng)])
        found = mh.trust.estimate_accuracy(labels, both)
        covered.append(found.low <= right[:600].mean() <= found.high)
        value.append(found.value)
        plain.append(np.mean([label == "a" for label in both.values.values()]))
    assert found.method == "stratified" and found.n_covered == 600
    assert np.mean(covered) >= 0.93
    assert abs(np.mean(value) - right[:600].mean()) < 0.01 < 0.1 < np.mean(plain) - right[:600].mean()


def test_one_stratum_has_the_exact_interval_and_an_unknown_one_widens_it():
    assert stratified_interval([(15, 25, 100)]) == pytest.approx((0.6, *finite_interval(15, 25, 100)))
    value, low, high = stratified_interval([(15, 25, 100), (0, 0, 100)])
    one = finite_interval(15, 25, 100)
    assert (value, low, high) == pytest.approx((0.6, one[0] / 2, one[1] / 2 + 0.5))


def test_weighted_answers_move_the_interval_of_the_calibration():
    """A stratum with half as many answers per item counts twice; equal weights change nothing."""
    gap = np.r_[np.full(20, 0.1), np.full(20, -0.3)]
    confidence = np.full(100, 0.7)
    assert expected_accuracy(confidence, gap, 0.9, np.ones(40)) == expected_accuracy(confidence, gap, 0.9)
    _, low, high = expected_accuracy(confidence, gap, 0.9, np.repeat([4 / 3, 2 / 3], 20) * 0.9)
    assert (low + high) / 2 == pytest.approx(0.7 + (2 * 0.1 - 0.3) / 3)
