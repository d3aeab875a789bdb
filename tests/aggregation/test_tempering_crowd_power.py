"""The power learnt across crowds: labels stay, confidence falls, independent errors are left alone."""

import warnings

import numpy as np
import pytest

import manyhands as mh
from manyhands.aggregation.pooled import fit_one_accuracy
from manyhands.aggregation.tempering import CROWD_POWER, FLOOR, blended_power, choose_exponent, raise_to
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.simulate import make_crowd


def fit(annotations, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return mh.PooledDawidSkene(**parameters).fit(annotations)


def dependent_crowd():
    """Workers of accuracy .9 who guess on the same third of the items."""
    rng = np.random.default_rng(3)
    truth, is_hard = rng.integers(2, size=400), rng.random(400) < 0.35
    p_right = np.where(is_hard, 0.5, 0.9)[:, None]
    return Annotations.from_matrix(np.where(rng.random((400, 8)) < p_right, truth[:, None], 1 - truth[:, None])), truth


def test_raise_to_is_that_of_a_plain_loop():
    rows = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    raised = raise_to(rows, 0.5)
    for row, result in zip(rows, raised):
        scores = [(p + FLOOR) ** 0.5 for p in row]
        np.testing.assert_allclose(result, [s / sum(scores) for s in scores], rtol=1e-12)
    assert raise_to(rows, 1.0) is rows


@pytest.mark.parametrize(("independence", "expected"), [(-5.0, 0.64), (0.0, 0.64), (1.0, 0.8), (2.0, 1.0), (9.0, 1.0)])
def test_blend(independence, expected):
    assert blended_power(0.64, independence) == pytest.approx(expected)


def test_labels_stay_and_confidence_falls():
    votes, _ = dependent_crowd()
    plain, tempered = fit(votes, temper="none"), fit(votes)
    assert plain.crowd_power_ == 1.0 and tempered.crowd_power_ == CROWD_POWER
    assert np.array_equal(plain.labels_, tempered.labels_)
    np.testing.assert_allclose(tempered.posterior_, raise_to(plain.posterior_, CROWD_POWER), rtol=1e-12)
    assert tempered.posterior_.max(axis=1).mean() < plain.posterior_.max(axis=1).mean()


def test_a_power_of_ones_own():
    votes, _ = dependent_crowd()
    assert fit(votes, temper=0.3).crowd_power_ == 0.3


def test_independent_errors_are_blended_towards_one():
    crowd = make_crowd(
        n_items=1500, n_workers=40, labels_per_item=6, n_classes=4, accuracy=0.7, spread=0.05, random_state=0
    )
    assert fit(crowd.annotations).crowd_power_ > 0.8


def test_independence_is_negative_where_errors_are_shared():
    votes, _ = dependent_crowd()
    assert choose_exponent(votes, None, fit_one_accuracy, 5).independence < -2


def test_the_held_out_score_does_not_change():
    """The power says how far to trust the consensus; the likelihood of labels is that of the model."""
    votes, _ = dependent_crowd()
    assert fit(votes).score(votes) == fit(votes, temper="none", overrule="always").score(votes)


def test_items_without_labels_keep_the_class_shares():
    votes, _ = dependent_crowd()
    some = Annotations(
        votes.item, votes.worker, votes.label,
        item_ids=[*range(400), "extra"], worker_ids=votes.worker_ids, classes=votes.classes,
    )  # fmt: skip
    np.testing.assert_array_equal(fit(some).posterior_[-1], fit(some, temper="none").posterior_[-1])


@pytest.mark.parametrize("temper", ["some", 0, -1.0, True, None])
def test_bad_power_is_one_sentence(temper):
    with pytest.raises(ParameterError, match="temper"):
        fit(Annotations.from_matrix([[0, 1]]), temper=temper)
