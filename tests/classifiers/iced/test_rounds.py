"""What ICED does between the network's steps, beside plain sums: shares, shifts, held-out labels, candidates."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from manyhands import ICED
from manyhands.classifiers.iced import rounds as iced_rounds
from manyhands.classifiers.iced.posterior_state import log_shares
from manyhands.heldout import worker_confusions
from manyhands.testing.learners import QUICK, known_to
from manyhands.testing.small_crowds import feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")

FAST = known_to(ICED(), QUICK) | {"max_epochs": 1, "pretrain_epochs": 1, "warm_up_epochs": 1, "patience": None}
FAST |= {"embedding_size": 5, "random_state": 0}


@pytest.fixture
def fitted(monkeypatch):
    """A function: fit an ICED with these settings to a small crowd; the model, its rounds and its warm-up."""
    seen = {}
    for kind in (iced_rounds.Rounds, iced_rounds.WarmUp):

        def noted(self, *arguments, init=kind.__init__, **others):
            init(self, *arguments, **others)
            seen[type(self)] = self

        monkeypatch.setattr(kind, "__init__", noted)

    def fit(gold=None, **settings):
        X, votes, _ = feature_crowd(3, n_items=40, n_workers=6, per_item=3, accuracy=0.6)
        if gold is not None:
            gold = {votes.item_ids[i]: votes.classes[k] for i, k in gold.items()}
        model = ICED(**(FAST | settings)).fit(X, votes, gold)
        return model, seen[iced_rounds.Rounds], seen[iced_rounds.WarmUp]

    return fit


def normalised(weight):
    """Rows that sum to 1."""
    return [w / math.fsum(weight) for w in weight]


# Shares and shifts


@pytest.mark.parametrize("balanced", [True, False])
def test_the_shift_leads_to_the_world_of_the_items(fitted, balanced, monkeypatch):
    """p(k | x) real_k / learnt_k, where a balanced loss has learnt of equal shares; synthetic items are not seen."""
    _, rounds, _ = fitted(balanced_loss=balanced, synthesis=True)
    real, learnt = [0.7, 0.2, 0.1], [0.5, 0.3, 0.2]
    rounds.belief.keep(log_real=np.log(real), log_learnt=np.log(learnt))
    odds = [r / (1 if balanced else q) for r, q in zip(real, learnt)]
    np.testing.assert_allclose(rounds.shift().exp(), odds, rtol=1e-6)
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    votes, points = rounds.context.annotations, proba.astype(np.float32)
    made = rounds.recipe.make(votes, points, np.ones(40), [np.arange(40)], np.array([7]), rounds.context.rng)
    asked = {}
    monkeypatch.setattr(iced_rounds, "infer_truth", lambda *a, **k: asked.update(k, prior=a[3]))
    rounds.infer(iced_rounds.augment(votes, made), torch.from_numpy(np.log(proba)))
    expected = [normalised([p * o for p, o in zip(row, odds)]) for row in proba.tolist()]
    np.testing.assert_allclose(np.exp(asked["evidence"][:40]), expected, rtol=1e-5)
    assert asked["prior"] == "uniform" and not asked["evidence"][40:].any() and len(asked["evidence"]) == 47


@pytest.mark.parametrize("soft", [True, False])
def test_shares_are_of_real_items_and_of_all_that_is_learnt(fitted, soft):
    """By the posterior among the real ones; by the targets, synthetic ones included, for the network."""
    _, rounds, _ = fitted(synthesis=True, soft=soft, size="repeat", candidates="all")
    batches = list(rounds)
    item = np.concatenate([batch.item for batch in batches])
    assert (item >= 40).any() and len(set(item.tolist())) == len(item)
    learnt = log_shares(rounds.target.double().numpy()[item])
    np.testing.assert_allclose(rounds.belief.log_learnt, learnt, atol=1e-5)
    np.testing.assert_allclose(rounds.belief.log_real, log_shares(rounds.belief.posterior.numpy()), atol=1e-6)
    assert np.abs(rounds.belief.log_real.numpy() - learnt).max() > 0.01


@pytest.mark.parametrize("balanced", [True, False])
def test_the_warm_up_learns_the_vote_less_its_shares(fitted, balanced):
    """-log softmax(F(x) + log shares)[vote], with one item more of each class; without the shares in a plain loss."""
    _, rounds, warm_up = fitted(balanced_loss=balanced, max_epochs=0)
    vote = warm_up.target.argmax(1).tolist()
    share = [(vote.count(k) + 1) / 43 for k in range(3)]
    batch = next(iter(rounds.context.batches()))
    with torch.no_grad():
        logits = warm_up.network(rounds.context.x(batch)).tolist()
    loss = []
    for item, row in zip(batch.item.tolist(), logits):
        proba = normalised([math.exp(f) * (s if balanced else 1) for f, s in zip(row, share)])
        loss.append(-math.log(proba[vote[item]]))
    assert float(warm_up.step(batch)["warm_up"]) == pytest.approx(math.fsum(loss) / len(loss), rel=1e-4)


# What is told of a round


@pytest.mark.parametrize("balanced", [True, False])
def test_held_out_labels_are_foretold_as_in_a_slow_loop(fitted, balanced):
    """log sum_k p(k | x) confusion[worker, k, label], p of the items' world, confusions of the training labels."""
    model, rounds, _ = fitted(balanced_loss=balanced, patience=5, validation=0.3, synthesis=True)
    context, shift = rounds.context, rounds.shift().exp().tolist()
    confusion = worker_confusions(context.annotations, rounds.belief.posterior.numpy()).tolist()
    proba = rounds.network.look(context.data.rows)[1].exp().tolist()
    held, total = context.heldout, []
    for i, w, label in zip(held.item.tolist(), held.worker.tolist(), held.label.tolist()):
        believed = normalised([p * s for p, s in zip(proba[i], shift)])
        total.append(math.log(math.fsum(b * confusion[w][k][label] for k, b in enumerate(believed))))
    assert len(total) == 36
    assert model.history_[-1]["heldout"] == pytest.approx(math.fsum(total) / len(total), rel=1e-4)


def test_agreement_is_that_of_two_posteriors(fitted):
    """What is believed before a round, and after it."""
    _, rounds, _ = fitted()
    turned = np.roll(rounds.belief.posterior.numpy(), 1, axis=1)
    turned[:25] = rounds.belief.posterior.numpy()[:25]
    rounds.belief.keep(posterior=turned)
    before = turned.argmax(axis=1)
    next(iter(rounds))
    expected = np.mean(before == rounds.belief.posterior.numpy().argmax(axis=1))
    assert rounds.figures["agreement"] == pytest.approx(expected) and 0.4 < expected < 0.9


# What is synthesised from


def asked_of_recipe(rounds, said):
    """With what the recipe is called, where the network says this of the items."""
    rounds.recipe = SimpleNamespace(make=lambda *arguments: arguments)
    log_proba = torch.from_numpy(np.log(np.full((40, 3), 0.1) + 0.7 * np.eye(3)[said]))
    annotations = rounds.context.data.annotations
    _, _, certainty, candidates, n_wanted, _ = rounds.synthesise(annotations, torch.zeros(40, 5), log_proba)
    return certainty, [own.tolist() for own in candidates], n_wanted.tolist()


def test_candidates_are_those_of_which_the_network_says_so_too(fitted):
    """Or all that are inferred to be of the class; without synthesis there are none."""
    answer, said = np.repeat([0, 1, 2], [20, 12, 8]), np.arange(40) % 3
    for candidates in ("agree", "all"):
        _, rounds, _ = fitted(synthesis=True, decoder="latent", candidates=candidates, size="balance")
        rounds.belief.keep(posterior=np.eye(3)[answer])
        _, found, n_wanted = asked_of_recipe(rounds, said)
        agrees = (said == answer) | (candidates == "all")
        assert found == [np.flatnonzero((answer == k) & agrees).tolist() for k in range(3)]
        assert n_wanted == [0, 8, 12]
    _, rounds, _ = fitted()
    made = rounds.synthesise(rounds.context.annotations, torch.zeros(40, 5), torch.zeros(40, 3))
    assert made.points.shape == (0, 5) and made.n_of_class.tolist() == [0, 0, 0] and len(made.labels.point) == 0


def test_gold_is_certain_when_items_are_synthesised(fitted):
    """So that what is made lies near it."""
    _, rounds, _ = fitted(synthesis=True, decoder="latent", gold={3: 0, 7: 1})
    certainty, _, _ = asked_of_recipe(rounds, np.zeros(40, int))
    assert np.flatnonzero(certainty > 99.9).tolist() == [3, 7]


def test_one_adam_from_the_warm_up_to_the_last_round(monkeypatch, fitted):
    """With what it remembers of the gradients; the autoencoder and the decoder have their own."""
    used = {}
    train = iced_rounds.TrainingContext.train

    def noted(self, step, modules, optimizers, *, name="training", **others):
        used[name] = optimizers["adam"]
        return train(self, step, modules, optimizers, name=name, **others)

    monkeypatch.setattr(iced_rounds.TrainingContext, "train", noted)
    _, rounds, _ = fitted(synthesis=True)
    warm_ups = [adam for name, adam in used.items() if name.startswith("warm-up")]
    assert len(warm_ups) > 1 and all(adam is used["training"] for adam in warm_ups)
    assert used["autoencoder"] is not used["training"] is not rounds.refit
