"""Leave-one-out posterior and accuracy: numbers computed by hand."""

import numpy as np
import pytest

from manyhands import Annotations, registry
from manyhands.scorecards import accuracy as accuracy_module
from manyhands.scorecards import score_workers
from manyhands.scorecards.accuracy import leave_one_out_posterior
from manyhands.simulate import make_crowd, one_coin

pytestmark = pytest.mark.fast

NO_MEMBERS = np.zeros(2, bool)


def test_own_label_is_removed_from_the_posterior():
    """Ann (.8) labels 0 and Bob (.6) 1: without Ann the odds are .4 to .6, without Bob .8 to .2; 2% are uniform."""
    votes = Annotations.from_matrix([[0, 1]])
    posterior = np.array([[0.8 * 0.4, 0.2 * 0.6]]) / 0.44
    loo = leave_one_out_posterior(votes, posterior, one_coin([0.8, 0.6], 2), 1.0, NO_MEMBERS, None)
    np.testing.assert_allclose(loo.truth, [[0.98 * 0.4 + 0.01, 0.98 * 0.6 + 0.01], [0.98 * 0.8 + 0.01, 0.206]])
    np.testing.assert_allclose(loo.p_right, [0.402, 0.206])


def test_a_tempered_label_is_removed_with_its_exponent():
    """With exponent 1/2, half of a log-likelihood is removed."""
    votes = Annotations.from_matrix([[0, 1]])
    posterior = np.array([[0.8 * 0.4, 0.2 * 0.6]]) ** 0.5
    loo = leave_one_out_posterior(votes, posterior / posterior.sum(), one_coin([0.8, 0.6], 2), 0.5, NO_MEMBERS, None)
    others = np.sqrt([0.4, 0.6])
    np.testing.assert_allclose(loo.truth[0], 0.98 * others / others.sum() + 0.01)


def test_repeated_labels_share_one_weight_and_are_removed_together():
    """Ann labels 0 twice: the two labels share a weight of 1, and neither is evidence for the other."""
    votes = Annotations.from_triples([0, 0, 0], ["ann", "ann", "bob"], [0, 0, 1], duplicates="all")
    posterior = np.array([[0.8 * 0.8 * 0.4, 0.2 * 0.2 * 0.6]])
    loo = leave_one_out_posterior(votes, posterior / posterior.sum(), one_coin([0.8, 0.6], 2), 1.0, NO_MEMBERS, None)
    np.testing.assert_allclose(loo.truth[0], [0.402, 0.598])
    assert loo.weight.tolist() == [0.5, 0.5, 1.0]
    assert loo.n_others.tolist() == [1, 1, 2] and loo.n_equal.tolist() == [0, 0, 0]


def test_the_label_of_a_colluding_group_is_removed_for_its_members():
    """A group of three counts as one label 0, which is removed also for the member who labelled 1.

    A group without a most frequent label adds nothing, and items that only the group labelled cannot be checked.
    """
    votes = Annotations.from_matrix([[0, 0, 1, 1], [0, 1, -1, 1], [0, 0, 1, -1]])
    members, confusion = np.array([True, True, True, False]), one_coin([0.8, 0.8, 0.8, 0.6], 2)
    posterior = np.array([[0.8 * 0.4 / 0.44, 0.2 * 0.6 / 0.44], [0.4, 0.6], [0.8, 0.2]])
    loo = leave_one_out_posterior(votes, posterior, confusion, 1.0, members, None)
    np.testing.assert_allclose(loo.truth[[0, 1, 2, 4, 5]], np.tile([0.402, 0.598], (5, 1)))
    np.testing.assert_allclose(loo.truth[3], [0.794, 0.206])
    assert loo.weight.tolist() == [1] * 7 + [0] * 3


def test_likelihood_of_known_truth_is_binomial():
    """Eight right of ten on gold: 8 log a + 2 log(1 - a), up to a constant."""
    votes = Annotations.from_matrix(np.array([[0]] * 8 + [[1]] * 2))
    gold = np.zeros(10, np.int32)
    loo = leave_one_out_posterior(votes, np.full((10, 2), 0.5), one_coin([0.7], 2), 1.0, NO_MEMBERS[:1], gold)
    grid, found = (
        accuracy_module._GRID,
        accuracy_module._log_likelihood(accuracy_module.right_histogram(loo), 2, 1.0)[0],
    )
    wanted = 8 * np.log(grid) + 2 * np.log(1 - grid)
    middle = (grid > 0.3) & (grid < 0.95)
    difference = (found - wanted)[middle]
    assert np.ptp(difference) < 0.02 and grid[found.argmax()] == pytest.approx(0.8, abs=0.01)


def test_uncertain_truth_widens_the_interval_and_does_not_lower_the_estimate():
    """Agreement .6 with a certain truth is accuracy .6; with a leave-one-out posterior of .7 it is about .75."""
    votes = Annotations.from_matrix(np.array([[0]] * 24 + [[1]] * 16))
    gold = np.zeros(40, np.int32)
    confusion = one_coin([0.7], 2)
    sure = leave_one_out_posterior(votes, np.full((40, 2), 0.5), confusion, 1.0, NO_MEMBERS[:1], gold)
    unsure = type(sure)(votes, 0.7 * sure.truth + 0.3 * sure.truth[:, ::-1], sure.weight, sure.n_others, sure.n_equal)
    one, other = (accuracy_module.estimate_accuracy(loo, 1.0) for loo in (sure, unsure))
    assert (other.high - other.low)[0] > 1.3 * (one.high - one.low)[0]
    assert one.mean[0] == pytest.approx(0.6, abs=0.03) and other.mean[0] == pytest.approx(0.72, abs=0.06)


def test_workers_with_equal_histograms_are_estimated_together(monkeypatch):
    """The results equal those of separate estimates."""
    votes = Annotations.from_triples(np.arange(600) // 3, range(600), np.tile([0, 0, 1, 1, 1, 1], 100))
    posterior = np.tile([[0.7, 0.3], [0.1, 0.9]], (100, 1))
    apart = score_workers(votes, posterior)
    monkeypatch.setattr(accuracy_module, "_MANY_WORKERS", 10)
    together = score_workers(votes, posterior)
    for name in ("accuracy", "accuracy_low", "accuracy_high"):
        np.testing.assert_allclose(getattr(together, name), getattr(apart, name), atol=1e-9)


def test_a_released_posterior_of_another_sharpness_gives_the_same_reports():
    """A method may raise its posterior to a power; what a worker's labels are removed from is that of the tables."""
    crowd = make_crowd(200, 12, 3, 5, random_state=0)
    model = registry.create("pooled-dawid-skene").fit(crowd.annotations)
    settings = {"confusion": model.confusion_, "tempering_exponent": model.tempering_exponent_, "verbose": 0}
    sharp, flat = model.posterior_**2, model.posterior_**0.5
    cards = [
        score_workers(crowd.annotations, p / p.sum(axis=1, keepdims=True), **settings)
        for p in (model.posterior_, sharp, flat)
    ]
    for other in cards[1:]:
        np.testing.assert_allclose(other.accuracy, cards[0].accuracy, atol=0.01)
        assert other.alerts == cards[0].alerts
