"""Ordinal Dawid-Skene: bias and spread of workers, median and expected value, the order of the classes."""

import numpy as np
import pytest

from manyhands import Annotations, OrdinalDawidSkene
from manyhands.em.decisions import bias_and_spread
from manyhands.exceptions import ManyhandsError
from manyhands.simulate import label_items, make_ordinal_crowd, make_truth, ordinal_confusion


def planted():
    """Twelve workers, one of whom grades a step too high, one too low, and one with a large spread."""
    bias = np.zeros(12)
    spread = np.full(12, 0.5)
    bias[0], bias[1], spread[2] = 0.9, -0.9, 1.6
    confusion = ordinal_confusion(bias, spread, 5)
    return label_items(make_truth(600, 5, 1), confusion, 6, random_state=2)


def test_planted_bias_and_spread_are_recovered():
    """As mean and standard deviation of label minus truth, within what 300 labels allow."""
    crowd = planted()
    model = OrdinalDawidSkene().fit(crowd.annotations)
    bias, spread = bias_and_spread(crowd.confusion, np.full(5, 0.2), np.arange(5.0))
    np.testing.assert_allclose(model.bias_, bias, atol=0.2)
    np.testing.assert_allclose(model.spread_, spread, atol=0.25)
    assert model.bias_.argmax() == 0 and model.bias_.argmin() == 1 and model.spread_.argmax() == 2


def test_bias_and_spread_equal_a_loop():
    """Mean and standard deviation over truth and label."""
    rng = np.random.default_rng(0)
    confusion, prior, rank = rng.dirichlet(np.ones(4), (3, 4)), rng.dirichlet(np.ones(4)), np.array([2.0, 0, 1, 3])
    bias, spread = bias_and_spread(confusion, prior, rank)
    for w in range(3):
        cells = [(prior[t] * confusion[w, t, k], rank[k] - rank[t]) for t in range(4) for k in range(4)]
        mean = sum(p * error for p, error in cells)
        assert bias[w] == pytest.approx(mean)
        assert spread[w] ** 2 == pytest.approx(sum(p * (error - mean) ** 2 for p, error in cells))


def test_median_and_expected_value_belong_to_the_posterior():
    """The median is a class, the expected value a number between the grades; the mode stays in `labels_`."""
    crowd = make_ordinal_crowd(80, 10, random_state=0)
    votes = Annotations.from_triples(
        crowd.annotations.item, crowd.annotations.worker, [str(2 * k) for k in crowd.annotations.label]
    )
    model = OrdinalDawidSkene().fit(votes)
    assert model.order_.tolist() == ["0", "2", "4", "6", "8"]
    assert model.grade_values_.tolist() == [0, 2, 4, 6, 8]
    np.testing.assert_allclose(model.expected_, model.posterior_ @ [0, 2, 4, 6, 8])
    below = model.posterior_.cumsum(axis=1)
    assert model.median_.tolist() == model.classes_[(below < 0.5).sum(axis=1)].tolist()
    assert model.labels_.tolist() == model.classes_[model.posterior_.argmax(axis=1)].tolist()


def test_ten_follows_two():
    """Numbers as text are ordered as numbers, although `classes_` stay sorted as text."""
    crowd = make_ordinal_crowd(100, 12, 4, random_state=1)
    names = np.array(["1", "2", "10", "20"])
    votes = Annotations.from_triples(crowd.annotations.item, crowd.annotations.worker, names[crowd.annotations.label])
    model, same = OrdinalDawidSkene().fit(votes), OrdinalDawidSkene().fit(crowd.annotations)
    assert model.classes_.tolist() == ["1", "10", "2", "20"] and model.order_.tolist() == names.tolist()
    assert model.labels_.tolist() == names[same.labels_].tolist()
    np.testing.assert_allclose(model.bias_, same.bias_, atol=1e-6)


def test_the_reversed_order_mirrors_the_results():
    """The same labels and confusion matrices, and biases with the other sign."""
    votes = planted().annotations
    model, mirror = OrdinalDawidSkene().fit(votes), OrdinalDawidSkene(order=[4, 3, 2, 1, 0]).fit(votes)
    np.testing.assert_allclose(mirror.posterior_, model.posterior_, atol=1e-5)
    np.testing.assert_allclose(mirror.confusion_, model.confusion_, atol=1e-5)
    np.testing.assert_allclose(mirror.bias_, -model.bias_, atol=1e-5)
    np.testing.assert_allclose(mirror.spread_, model.spread_, atol=1e-5)
    assert mirror.median_.tolist() == model.median_.tolist()
    np.testing.assert_allclose(mirror.expected_, 5 - model.expected_, atol=1e-4)  # ranks from 1, as 4 precedes 0


def test_biases_are_corrected():
    """The median is closer to the truth than the mean of the labels, where workers have large biases."""
    crowd = make_ordinal_crowd(300, 12, bias_sd=0.9, spread=0.5, random_state=5)
    model = OrdinalDawidSkene().fit(crowd.annotations)
    mean = np.bincount(crowd.annotations.item, crowd.annotations.label) / crowd.annotations.n_labels
    of_mean = np.abs(np.floor(mean + 0.5) - crowd.truth).mean()
    assert np.abs(model.median_ - crowd.truth).mean() < 0.8 * of_mean


def test_workers_who_do_not_look_are_recognised():
    """Random and constant labels have a large share of spam, others a small one."""
    confusion = ordinal_confusion(np.zeros(14), np.full(14, 0.6), 5)
    confusion[0] = 0.2
    confusion[1] = np.eye(5)[3]
    crowd = label_items(make_truth(500, 5, 4), confusion, 6, random_state=4)
    share = OrdinalDawidSkene().fit(crowd.annotations).spam_share_
    assert share[:2].min() > 0.4 > 2 * share[2:].max()


def test_two_classes_need_no_order():
    """The order of two classes does not change the result."""
    votes = Annotations.from_triples("aabbccdd", "uvuvuvuv", ["no", "no", "yes", "yes", "no", "no", "yes", "yes"])
    model, other = OrdinalDawidSkene().fit(votes), OrdinalDawidSkene(order=["yes", "no"]).fit(votes)
    assert model.labels_.tolist() == other.labels_.tolist() == ["no", "yes", "no", "yes"]
    np.testing.assert_allclose(model.posterior_, other.posterior_, atol=1e-9)


def test_an_invalid_order_is_one_sentence():
    """Classes without an order, an incomplete one, and one that is no list."""
    votes = Annotations.from_matrix([["bad", "good"], ["fine", "fine"], ["bad", "bad"]])
    for order, message in (
        (None, "'bad', 'fine', 'good' have no known order"),
        (["bad", "good"], "lacks 'fine'"),
        (["bad", "bad", "fine", "good"], "names 'bad' twice"),
        ("bad,fine,good", "`order`"),
    ):
        with pytest.raises(ManyhandsError, match=message):
            OrdinalDawidSkene(order=order).fit(votes)
    assert OrdinalDawidSkene(order=["bad", "fine", "good"]).fit(votes).labels_[2] == "bad"


def test_an_item_without_labels_has_no_grade():
    """None as median, NaN as expected value, the class prior as posterior."""
    votes = Annotations.from_matrix([[1, 1, 2], [2, 3, 3], [-1, -1, -1], [3, 3, 3]])
    model = OrdinalDawidSkene().fit(votes)
    assert model.median_[2] is None and np.isnan(model.expected_[2])
    np.testing.assert_allclose(model.posterior_[2], model.class_prior_)
