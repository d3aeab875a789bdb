"""Truth inference against plain loops; the state between rounds; the decoder."""

import numpy as np
import pytest
import torch

from manyhands import Annotations
from manyhands.classifiers.iced import Decoder, PosteriorState, ShrunkConfusions, infer_true_labels, log_class_shares
from manyhands.testing.crowds import easy_crowd, with_unlabelled
from reference.slow_synthesis import slow_hard_em

pytestmark = [pytest.mark.fast, pytest.mark.usefixtures("one_thread")]


PRIORS = ("uniform", "estimated", "uniform-start")


def noisy_matrix():
    """Labels of five workers on 60 and 6 items, 35% of which are wrong: the prior then decides many items."""
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1], [60, 6])
    return np.where(rng.random((66, 5)) < 0.35, 1 - truth[:, None], truth[:, None])


@pytest.mark.parametrize("prior", PRIORS)
def test_hard_em_is_the_slow_one(prior):
    """By counting the most probable classes; on three classes, and on two imbalanced ones."""
    votes, _ = easy_crowd(3, n_items=40, n_workers=7, per_item=7, accuracy=0.6)
    for matrix, n_classes in ((votes.label.reshape(40, 7), 3), (noisy_matrix(), 2)):
        crowd = Annotations.from_matrix(matrix, classes=range(n_classes))
        found = infer_true_labels(crowd, None, ShrunkConfusions(0.1), prior, hard=True)
        answer, confusion = slow_hard_em(matrix.tolist(), n_classes, 0.1, prior)
        assert found.posterior.argmax(axis=1).tolist() == answer
        np.testing.assert_allclose(found.confusion, confusion)


@pytest.mark.parametrize("is_hard", [True, False])
def test_the_three_priors_differ_where_classes_are_imbalanced(is_hard):
    """A fixed uniform prior finds more items of the small class than one that is estimated, from any start."""
    votes = Annotations.from_matrix(noisy_matrix())
    n_small = {
        prior: infer_true_labels(votes, None, ShrunkConfusions(0.1), prior, hard=is_hard).posterior[:, 1].sum()
        for prior in PRIORS
    }
    assert n_small["uniform"] > n_small["estimated"] + 1
    assert n_small["uniform"] != n_small["uniform-start"]


def test_a_uniform_start_of_soft_em_ends_at_an_optimum_of_the_estimated_prior():
    """One more EM pass, with the prior estimated, changes nothing; the prior is not the uniform one."""
    matrix = noisy_matrix()
    found = infer_true_labels(Annotations.from_matrix(matrix), None, ShrunkConfusions(0.1), "uniform-start")
    prior = (found.posterior.sum(axis=0) + 0.1) / (len(matrix) + 0.2)
    proba = np.array([[p * np.prod(found.confusion[range(5), k, row]) for k, p in enumerate(prior)] for row in matrix])
    np.testing.assert_allclose(found.posterior, proba / proba.sum(axis=1, keepdims=True), atol=0.01)
    assert abs(prior[1] - 0.5) > 0.02


def test_class_probabilities_act_as_a_prior_of_each_item():
    """They decide a split vote; gold overrides them; uniform ones change nothing."""
    votes = Annotations.from_matrix(np.repeat([[0, 0], [1, 1], [0, 1]], [9, 9, 2], axis=0))
    log_proba = np.log(np.repeat([[0.5, 0.5], [0.1, 0.9]], [18, 2], axis=0))
    gold = np.full(20, -1, np.int32)
    gold[19] = 0
    expected = np.repeat([0, 1, 1, 0], [9, 9, 1, 1]).tolist()
    for is_hard in (False, True):
        found = infer_true_labels(
            votes, gold, ShrunkConfusions(0.5), "uniform", hard=is_hard, log_class_proba=log_proba
        ).posterior
        assert found.argmax(axis=1).tolist() == expected and found[19, 0] == pytest.approx(1)
    uniform = infer_true_labels(votes, None, ShrunkConfusions(0.5), "uniform", log_class_proba=np.zeros((20, 2)))
    np.testing.assert_allclose(
        uniform.posterior, infer_true_labels(votes, None, ShrunkConfusions(0.5), "uniform").posterior, atol=1e-3
    )


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_class_that_only_gold_has_is_part_of_a_uniform_prior(is_hard):
    """With a uniform prior it is as probable as the others, and its gold items keep their class."""
    votes = with_unlabelled(
        Annotations.from_matrix(np.repeat([[0, 0], [1, 1]], [5, 5], axis=0), classes=[0, 1, "rare"])
    )
    gold = np.full(11, -1, np.int32)
    gold[0] = 2
    found = infer_true_labels(votes, gold, ShrunkConfusions(0.1), "uniform", hard=is_hard).posterior
    np.testing.assert_allclose(found[[0, 10]], [[0, 0, 1], [1 / 3, 1 / 3, 1 / 3]])


def test_hard_em_starts_from_labels_class_probabilities_and_gold():
    """Two of three workers are always wrong. Class probabilities outweigh them at the start, gold outweighs both."""
    truth = np.arange(20) % 2
    votes = Annotations.from_matrix(np.stack([1 - truth, 1 - truth, truth], axis=1))
    predicted = np.where(np.arange(20) < 2, 1 - truth, truth)  # wrong for the first two
    log_proba = np.log(np.where(np.eye(2)[predicted] > 0, 0.9, 0.1))
    gold = np.where(np.arange(20) < 2, truth, -1).astype(np.int32)
    found = infer_true_labels(votes, gold, ShrunkConfusions(0.1), "uniform", hard=True, log_class_proba=log_proba)
    np.testing.assert_array_equal(found.posterior.argmax(axis=1), truth)
    np.testing.assert_allclose(found.confusion[:, 0, 0], np.array([0.1, 0.1, 10.1]) / 10.2)
    np.testing.assert_array_equal(
        infer_true_labels(votes, None, ShrunkConfusions(0.1), "uniform", hard=True).posterior.argmax(axis=1), 1 - truth
    )


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_class_without_labels_where_no_item_has_two_labels(is_hard):
    """The posterior is half the label, half uniform over the classes with labels; no overflow."""
    votes = Annotations.from_matrix([[0], [0], [1]], classes=[0, 1, "never"])
    found = infer_true_labels(votes, None, ShrunkConfusions(0.01), "uniform", hard=is_hard)
    np.testing.assert_allclose(found.posterior, [[0.75, 0.25, 0], [0.75, 0.25, 0], [0.25, 0.75, 0]])
    assert np.isfinite(found.confusion).all()


def test_shrinkage_draws_workers_to_the_crowd():
    """With strong shrinkage all workers are equal, with none each has their own counts; rows sum to 1."""
    counts = np.array([[[8.0, 2.0], [1.0, 9.0]], [[0.0, 0.0], [5.0, 5.0]]])
    own, drawn, alike = (np.exp(ShrunkConfusions(0.01, s).solve(counts, None).log_confusion) for s in (0, 5, 1e6))
    np.testing.assert_allclose(own[0, 0], [8.01 / 10.02, 2.01 / 10.02])
    crowd = np.array([8.5, 2.5]) / 11
    np.testing.assert_allclose(drawn[1, 0], (5 * crowd + 0.01) / 5.02)
    np.testing.assert_allclose(alike[0], alike[1], atol=1e-4)
    np.testing.assert_allclose(drawn.sum(axis=2), 1)


def test_the_state_starts_with_the_vote():
    """Class shares by the vote, an untrained network unless there was a warm-up, no first round yet."""
    votes = with_unlabelled(Annotations.from_matrix([[0, 0], [0, 0], [1, 1]]))
    state = PosteriorState(votes, None, np.arange(3), network_trained=False)
    assert state.most_probable(np.arange(3)).tolist() == [0, 0, 1]
    assert state.before_first_round and not state.network_trained
    np.testing.assert_allclose(state.log_prior.exp(), [3 / 5, 2 / 5], rtol=1e-6)
    assert PosteriorState(votes, None, np.arange(3), network_trained=True).network_trained
    state.update(first_posterior=np.full((4, 2), 0.5), log_training_prior=log_class_shares(np.eye(2)))
    assert not state.before_first_round and state.network_trained


def test_a_decoder_gives_rows_of_x():
    """Of their shape, by the layers of the network in reverse order."""
    decoder = Decoder(3, (7, 5), (1, 4, 2))
    assert decoder(torch.zeros(6, 3)).shape == (6, 1, 4, 2)
    sizes = [layer.out_features for layer in decoder.layers if isinstance(layer, torch.nn.Linear)]
    assert sizes == [5, 7, 8]
