"""Fixed difficulty EM without features: its E step by hand, its limit (Dawid-Skene), and its difficulty."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from manyhands import GLAD, Annotations, VoteDifficultyEM
from manyhands.em.ability import p_right
from manyhands.em.confusion_em import fit_confusion_em
from manyhands.em.noise import pseudo_count_matrix
from manyhands.em.priors import class_prior
from manyhands.simulate import make_crowd
from reference import slow_difficulty as slow


def test_a_weighted_vote_by_hand():
    """Two classes, three workers: abilities from the vote shares, easiness from the shrunk ones."""
    votes = Annotations.from_matrix([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    model = VoteDifficultyEM(floor=0.0).fit(votes)
    share = np.array([2 / 3, 0, 1, 1 / 3])  # of class 1
    shrunk = (3 * share + 0.5) / 4
    np.testing.assert_allclose(model.difficulty_, 1 - 4 * (shrunk - 0.5) ** 2)
    labels = np.array([[1, 0, 1, 0], [1, 0, 1, 1], [0, 0, 1, 0]])  # by worker
    sensitivity = ((labels * share).sum(1) + 1) / (share.sum() + 1.5)
    specificity = (((1 - labels) * (1 - share)).sum(1) + 1) / ((1 - share).sum() + 1.5)
    np.testing.assert_allclose(model.expertise_, np.column_stack([specificity, sensitivity]))
    triples = list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    d, alike = (1 - model.difficulty_) / 4, np.ones((3, 2, 2))
    posterior, evidence = slow.posterior_from_joint(np.full((4, 2), np.log(0.5)), triples, model.ability_, alike, d)
    np.testing.assert_allclose(model.posterior_, posterior)
    assert model.log_likelihood_ == pytest.approx(evidence)


class Weighted:
    """Confusion matrices with the same pseudo-counts."""

    pseudo = pseudo_count_matrix(3, 1.0, 0.5)

    def solve(self, counts, previous):
        smoothed = counts + self.pseudo
        return np.log(smoothed) - np.log(smoothed.sum(axis=2, keepdims=True))

    def log_confusion(self, params):
        return params

    def log_penalty(self, params):
        return float((self.pseudo * params).sum())


def test_equal_difficulties_are_dawid_skene():
    """With the same pseudo-counts in every cell, the same objective and the same posterior."""
    crowd = make_crowd(150, 8, 3, 6, accuracy=0.75, random_state=0)
    ours = VoteDifficultyEM(difficulty="constant", errors="free", tol=0, max_iter=3000).fit(crowd.annotations)
    theirs = fit_confusion_em(crowd.annotations, Weighted(), class_prior("uniform", 3, 0.01), max_iter=3000, tol=0)
    np.testing.assert_allclose(ours.posterior_, theirs.final.posterior, atol=1e-7)
    np.testing.assert_allclose(ours.expertise_, np.einsum("wcc->wc", np.exp(theirs.log_confusion)), atol=1e-7)


@pytest.mark.parametrize("parameters", [{}, {"floor": 0.0}, {"difficulty": "posterior", "tol": 1e-3}])
def test_planted_difficulty_is_ranked(parameters):
    """Estimated difficulties correlate with the planted ones, with eight labels on each item."""
    crowd = make_crowd(400, 12, 4, 8, kind="difficulty", accuracy=0.95, random_state=1)
    model = VoteDifficultyEM(**parameters).fit(crowd.annotations)
    assert spearmanr(model.difficulty_, crowd.difficulty).statistic > 0.4
    right = crowd.annotations.label == crowd.truth[crowd.annotations.item]
    assert spearmanr(model.item_accuracy_, np.bincount(crowd.annotations.item, weights=right)).statistic > 0.2


def test_a_new_item_is_as_hard_as_its_votes_are_split():
    """Items of `fit` keep their difficulty; an unseen worker has the mean ability."""
    crowd = make_crowd(100, 6, 2, 6, accuracy=0.8, random_state=0)
    model = VoteDifficultyEM(floor=0.0).fit(crowd.annotations)
    proba = model.predict_proba(Annotations.from_triples(["new"], ["unseen"], [1]))
    ability = model.ability_.mean(axis=0)
    right = p_right(ability, 0.0625, 2)  # one vote and a shrunk share of 3/4
    odds = right[1] / (1 - right[0])
    assert proba[0, 1] == pytest.approx(odds / (1 + odds))


def test_item_accuracy_of_glad():
    """item_accuracy_ is the mean of the model's own probabilities."""
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [-1, -1, -1]])
    model = GLAD().fit(votes)
    chance = 1 / (1 + np.exp(-model.ability_[None, :] / model.difficulty_[:, None]))
    np.testing.assert_allclose(model.item_accuracy_[:2], chance[:2].mean(axis=1))
    assert model.item_accuracy_[2] == pytest.approx(1 / (1 + np.exp(-model.ability_.mean() / model.difficulty_[2])))
