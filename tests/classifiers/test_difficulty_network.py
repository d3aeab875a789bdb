"""Difficulty EM with a network: its EM state between epochs, against plain loops."""

import numpy as np
import pytest
import torch

from manyhands.classifiers import AggNet, DifficultyNetwork
from manyhands.classifiers.difficulty_em import DifficultyTerm
from manyhands.classifiers.difficulty_network import EMState
from manyhands.classifiers.network import TrainingContext, TrainingData
from manyhands.exceptions import CrowdWarning
from manyhands.features import as_rows
from manyhands.nn.batches import AnnotationBatches
from manyhands.simulate import make_difficulty_gaussians
from manyhands.testing.crowds import feature_crowd
from reference import slow_difficulty as slow

SMALL = {"hidden": (8,), "dropout": 0.0, "learning_rate": 0.03, "batch_size": 16, "max_epochs": 12, "random_state": 0}


def em_state(n_classes=3, **parameters):
    X, votes, _ = feature_crowd(n_classes, accuracy=0.7)
    method = DifficultyNetwork(**SMALL, **parameters)
    data = TrainingData(as_rows(X), votes, None)
    context = TrainingContext(data, votes, None, np.random.default_rng(0))
    proba = np.random.default_rng(1).dirichlet(np.ones(n_classes), votes.n_items)
    return EMState(context, method), votes, proba


@pytest.mark.parametrize("difficulty", ["classifier", "votes", "constant"])
def test_an_update_is_an_e_step_and_an_m_step_of_abilities(difficulty):
    """By plain loops; during the warm-up only the log-likelihood is recorded."""
    state, votes, proba = em_state(difficulty=difficulty, warm_up=1, floor=0.0)
    ability, before = state.workers().ability.copy(), state.posterior.numpy().copy()
    d = state.easiness(proba)
    triples = list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    posterior, evidence = slow.posterior_from_joint(np.log(proba), triples, ability, np.full((10, 3, 3), 0.5), d)
    state.update(proba)
    assert state.log_likelihoods().tolist() == [pytest.approx(evidence)]
    np.testing.assert_array_equal(state.posterior.numpy(), before)
    state.update(proba)
    np.testing.assert_allclose(state.posterior.numpy(), posterior, rtol=1e-9)
    assert np.array_equal(state.workers().ability, ability) == (difficulty == "votes")  # frozen there


@pytest.mark.parametrize("errors", ["uniform", "free"])
def test_held_out_labels_are_predicted_by_the_same_model(errors):
    """log p(label | truth) of the labels of a batch, by plain loops."""
    state, votes, proba = em_state(errors=errors, floor=0.2)
    batch = next(iter(AnnotationBatches(votes, 7)))
    found = state.log_column(batch, torch.from_numpy(proba[batch.item]))
    wrong = np.exp(state.log_wrong.numpy())
    for a, (row, w, label) in enumerate(zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist())):
        d = 0.2 * 0.25 + 0.8 * slow.easiness(proba[batch.item[row]])
        for c in range(3):
            expected = np.log(slow.chance(state.ability[w].tolist(), d, c, label, wrong[w], 3))
            assert float(found[a, c]) == pytest.approx(expected, rel=1e-5)


def test_held_out_scores_of_epochs_differ_where_items_have_one_label():
    """An item whose only label is held out has the mean difficulty; at chance, every epoch would have one score."""
    X, votes, _ = feature_crowd(2, n_items=120, accuracy=0.8)
    first = np.flatnonzero(np.diff(votes.item, prepend=-1))
    model = DifficultyNetwork(difficulty="votes", floor=0.0, patience=12, **SMALL)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model.fit(X, votes.keep(first))
    scores = np.array([entry["heldout"] for entry in model.history_])
    assert np.ptp(scores) > 1e-4


def test_items_without_labels_have_the_mean_difficulty():
    X, votes, _ = feature_crowd(2)
    some = votes.keep(votes.item > 1)
    model = DifficultyNetwork(difficulty="votes", floor=0.0, **SMALL | {"max_epochs": 2}).fit(X, some)
    assert model.difficulty_[:2] == pytest.approx([model.difficulty_[2:].mean()] * 2)


def test_equal_difficulties_give_aggnet():
    """The same targets from the first epoch on, up to the priors of the workers."""
    X, votes, _ = feature_crowd(3, n_items=150, accuracy=0.8, per_item=6)
    ours = DifficultyNetwork(difficulty="constant", warm_up=0, errors="free", right=0.1, wrong=0.2, **SMALL)
    theirs = AggNet(smoothing=0.1, **SMALL).fit(X, votes)
    ours.fit(X, votes)
    np.testing.assert_allclose(ours.posterior_, theirs.posterior_, atol=1e-4)
    np.testing.assert_allclose(ours.expertise_, np.einsum("wcc->wc", theirs.confusion_), atol=1e-4)


def test_difficulties_are_ranked_by_a_network():
    """On the paper's data; the log-likelihood is recorded after each epoch."""
    data = make_difficulty_gaussians()
    model = DifficultyNetwork(**(SMALL | {"max_epochs": 8, "batch_size": 64}), patience=None, floor=0.0)
    model.fit(data.X, data.crowd.annotations)
    rank = np.corrcoef(np.argsort(np.argsort(model.difficulty_)), np.argsort(np.argsort(data.crowd.difficulty)))[0, 1]
    assert rank > 0.6 and len(model.log_likelihood_) == 8 and np.isfinite(model.log_likelihood_).all()
    assert np.mean(model.predict(data.X_test) == data.truth_test) > 0.85


def batch_of(votes):
    return next(iter(AnnotationBatches(votes, 7)))


def test_votes_as_prior_of_a_network():
    """Algorithm 3: the posterior of an update does not depend on the network's probabilities."""
    settings = {"difficulty": "votes", "prior": "votes", "vote_smoothing": 0.0, "floor": 0.0, "warm_up": 0}
    state, votes, proba = em_state(2, **settings)
    other, _, _ = em_state(2, **settings)
    state.update(proba)
    other.update(proba[::-1].copy())
    np.testing.assert_array_equal(state.posterior.numpy(), other.posterior.numpy())
    label = np.full((votes.n_items, votes.n_workers), -1)
    label[votes.item, votes.worker] = votes.label
    share = [np.mean(row[row >= 0]) for row in label]
    np.testing.assert_allclose(state.by_votes, [(q - 0.5) ** 2 for q in share], atol=1e-12)


@pytest.mark.parametrize("update", ["mle", "map", "frozen"])
def test_a_gradient_step_of_abilities_is_that_of_the_mini_batch(update):
    """Slope of the expected log-likelihood by plain loops, scaled to all items; none before EM has begun."""
    state, votes, proba = em_state(floor=0.2, warm_up=0, ability_step="gradient", ability_update=update)
    batch, given = batch_of(votes), torch.from_numpy(proba)
    before = state.ability.clone()
    state.ascend(batch, given[batch.item])
    assert torch.equal(state.ability, before)
    state.update(proba)
    assert torch.equal(state.ability, before)  # no Newton steps either
    state.ability.mul_(1.5)
    before = state.ability.clone()
    slope = np.zeros(before.shape)
    for row, w, label in zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist()):
        i = batch.item[row]
        d = 0.2 * 0.25 + 0.8 * slow.easiness(proba[i])
        for c in range(3):
            right = slow.chance(before[w].tolist(), d, c, c, None, 3)
            slope[w, c] += float(state.posterior[i, c]) * ((label == c) - right) * d
    slope *= votes.n_items / 7
    if update == "map":
        slope -= before.numpy() - state.first.ability
    state.ascend(batch, given[batch.item])
    expected = before.numpy() + (0 if update == "frozen" else 0.01 * slope)
    np.testing.assert_allclose(state.ability.numpy(), np.clip(expected, 0, 100), atol=1e-9)


def test_the_loss_through_difficulty_has_the_gradient_of_the_regression():
    """By torch's own differentiation, against the formula of the classifier without a network."""
    state, votes, proba = em_state(floor=0.2, warm_up=0)
    batch = batch_of(votes)
    logits = torch.from_numpy(np.log(proba[batch.item])).requires_grad_()
    state.label_term(batch, logits.softmax(1)).backward()
    term = DifficultyTerm(votes, state.posterior.numpy(), state.workers(), 0.2)
    np.testing.assert_allclose(logits.grad.numpy(), term.slopes(proba).slope[batch.item] / 7, atol=1e-5)


def test_the_published_network_learns_the_papers_data():
    """Gradient steps of abilities and the gradient through difficulty: labels as good as those of the regression."""
    data = make_difficulty_gaussians()
    model = DifficultyNetwork(
        floor=0.0, difficulty_gradient=True, ability_step="gradient", random_state=0, max_epochs=20, patience=None
    ).fit(data.X, data.crowd.annotations)
    assert np.mean(model.posterior_.argmax(axis=1) == data.crowd.truth) > 0.88
