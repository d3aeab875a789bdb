"""Dawid-Skene as a step of a loop, beside its slow twin; what is kept between rounds; the way back from embeddings."""

import numpy as np
import pytest
import torch

from manyhands import Annotations
from manyhands.classifiers.iced.autoencoder import Decoder
from manyhands.classifiers.iced.posterior_state import Belief, log_shares
from manyhands.classifiers.iced.truth_inference import ShrunkConfusions, infer_truth
from manyhands.testing.small_crowds import easy_crowd, with_silence
from reference.slow_synthesis import slow_hard_em

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("prior", ["uniform", "estimated"])
def test_hard_em_is_the_slow_one(prior):
    """By counting the most probable classes."""
    votes, _ = easy_crowd(3, n_items=40, n_workers=7, per_item=7, accuracy=0.6)
    matrix = votes.label.reshape(40, 7).tolist()
    found = infer_truth(votes, None, ShrunkConfusions(0.1), prior, hard=True)
    answer, confusion = slow_hard_em(matrix, 3, 0.1, prior)
    assert found.posterior.argmax(axis=1).tolist() == answer
    np.testing.assert_allclose(found.confusion, confusion)


def test_evidence_is_one_more_voice():
    """What is known beside the labels settles a split vote; gold is stronger. Where it says nothing, it is nothing."""
    votes = Annotations.from_matrix(np.repeat([[0, 0], [1, 1], [0, 1]], [9, 9, 2], axis=0))
    evidence = np.log(np.repeat([[0.5, 0.5], [0.1, 0.9]], [18, 2], axis=0))
    gold = np.full(20, -1, np.int32)
    gold[19] = 0
    expected = np.repeat([0, 1, 1, 0], [9, 9, 1, 1]).tolist()
    for is_hard in (False, True):
        found = infer_truth(votes, gold, ShrunkConfusions(0.5), "uniform", hard=is_hard, evidence=evidence).posterior
        assert found.argmax(axis=1).tolist() == expected and found[19, 0] == pytest.approx(1)
    silent = infer_truth(votes, None, ShrunkConfusions(0.5), "uniform", evidence=np.zeros((20, 2)))
    np.testing.assert_allclose(
        silent.posterior, infer_truth(votes, None, ShrunkConfusions(0.5), "uniform").posterior, atol=1e-3
    )


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_class_that_gold_alone_names_is_one_of_them(is_hard):
    """It is as likely as the others, where the prior is uniform, and gold of it is what it is."""
    votes = with_silence(Annotations.from_matrix(np.repeat([[0, 0], [1, 1]], [5, 5], axis=0), classes=[0, 1, "rare"]))
    gold = np.full(11, -1, np.int32)
    gold[0] = 2
    found = infer_truth(votes, gold, ShrunkConfusions(0.1), "uniform", hard=is_hard).posterior
    np.testing.assert_allclose(found[[0, 10]], [[0, 0, 1], [1 / 3, 1 / 3, 1 / 3]])


def test_hard_em_starts_with_all_that_is_known():
    """Two workers of three are always wrong. Evidence outweighs them at the start, gold outweighs wrong evidence."""
    truth = np.arange(20) % 2
    votes = Annotations.from_matrix(np.stack([1 - truth, 1 - truth, truth], axis=1))
    seen = np.where(np.arange(20) < 2, 1 - truth, truth)  # the first two look like the other class
    evidence = np.log(np.where(np.eye(2)[seen] > 0, 0.9, 0.1))
    gold = np.where(np.arange(20) < 2, truth, -1).astype(np.int32)
    found = infer_truth(votes, gold, ShrunkConfusions(0.1), "uniform", hard=True, evidence=evidence)
    np.testing.assert_array_equal(found.posterior.argmax(axis=1), truth)
    np.testing.assert_allclose(found.confusion[:, 0, 0], np.array([0.1, 0.1, 10.1]) / 10.2)
    np.testing.assert_array_equal(
        infer_truth(votes, None, ShrunkConfusions(0.1), "uniform", hard=True).posterior.argmax(axis=1), 1 - truth
    )


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_class_nobody_named_where_nobody_can_be_checked(is_hard):
    """A label is half of what is believed, and no class is as improbable as to overflow."""
    votes = Annotations.from_matrix([[0], [0], [1]], classes=[0, 1, "never"])
    found = infer_truth(votes, None, ShrunkConfusions(0.01), "uniform", hard=is_hard)
    np.testing.assert_allclose(found.posterior, [[0.75, 0.25, 0], [0.75, 0.25, 0], [0.25, 0.75, 0]])
    assert np.isfinite(found.confusion).all()


def test_shrinkage_draws_workers_to_the_crowd():
    """With much of it all workers are alike, with none each is his own; rows always sum to 1."""
    counts = np.array([[[8.0, 2.0], [1.0, 9.0]], [[0.0, 0.0], [5.0, 5.0]]])
    own, drawn, alike = (np.exp(ShrunkConfusions(0.01, s).solve(counts, None).log_confusion) for s in (0, 5, 1e6))
    np.testing.assert_allclose(own[0, 0], [8.01 / 10.02, 2.01 / 10.02])
    crowd = np.array([8.5, 2.5]) / 11
    np.testing.assert_allclose(drawn[1, 0], (5 * crowd + 0.01) / 5.02)
    np.testing.assert_allclose(alike[0], alike[1], atol=1e-4)
    np.testing.assert_allclose(drawn.sum(axis=2), 1)


def test_belief_begins_with_the_vote():
    """Shares of the classes by the vote, nothing learnt unless there was a warm-up, and a fixed first round."""
    votes = with_silence(Annotations.from_matrix([[0, 0], [0, 0], [1, 1]]))
    belief = Belief(votes, None, np.arange(3), taught=False)
    assert belief.answer(np.arange(3)).tolist() == [0, 0, 1]
    assert belief.is_new and not belief.has_taught
    np.testing.assert_allclose(belief.log_real.exp(), [3 / 5, 2 / 5], rtol=1e-6)
    assert Belief(votes, None, np.arange(3), taught=True).has_taught
    belief.keep(first=np.full((4, 2), 0.5), log_learnt=log_shares(np.eye(2)))
    assert not belief.is_new and belief.has_taught


def test_a_decoder_gives_rows_of_x():
    """Of their shape, by layers that mirror those of the network."""
    decoder = Decoder(3, (7, 5), (1, 4, 2))
    assert decoder(torch.zeros(6, 3)).shape == (6, 1, 4, 2)
    sizes = [layer.out_features for layer in decoder.layers if isinstance(layer, torch.nn.Linear)]
    assert sizes == [5, 7, 8]
