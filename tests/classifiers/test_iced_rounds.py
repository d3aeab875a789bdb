"""The rounds of ICED against plain sums: class shares, shifts, held-out log-likelihood, candidates."""

import math

import numpy as np
import pytest
import torch

from manyhands import ICED
from manyhands.classifiers import iced
from manyhands.classifiers.iced import Synthesis, WarmUp, log_class_shares
from manyhands.heldout import worker_confusions
from manyhands.testing.crowds import QUICK, feature_crowd, known_to

pytestmark = pytest.mark.usefixtures("one_thread")

FAST = known_to(ICED(), QUICK) | {"max_epochs": 1, "warm_up": WarmUp(epochs=1), "patience": None}
FAST |= {"embedding_size": 5, "random_state": 0}
SYNTHESIS = Synthesis(pretrain_epochs=1)
LATENT = Synthesis(decoder="latent")


@pytest.fixture
def fitted(monkeypatch):
    """A function: fit an ICED with these settings to a small crowd; the model, its rounds and its warm-up."""
    seen = {}
    for kind in (iced.Rounds, iced.WarmUpTraining):

        def noted(self, *arguments, init=kind.__init__, **others):
            init(self, *arguments, **others)
            seen[type(self)] = self

        monkeypatch.setattr(kind, "__init__", noted)

    def fit(gold=None, **settings):
        X, votes, _ = feature_crowd(3, n_items=40, n_workers=6, per_item=3, accuracy=0.6)
        if gold is not None:
            gold = {votes.item_ids[i]: votes.classes[k] for i, k in gold.items()}
        model = ICED.plus(**(FAST | settings)).fit(X, votes, gold)
        return model, seen[iced.Rounds], seen[iced.WarmUpTraining]

    return fit


def round_of(loop):
    """Run lines 3 and 4 of Algorithm 1; the mini-batches of line 5."""
    annotations = loop.context.annotations
    embedding, log_proba = loop.network.embed_and_classify(loop.context.data.rows)
    synthetic = loop.synthesise(annotations, embedding, log_proba)
    labels = iced.augment(annotations, synthetic)
    loop.update(labels, synthetic, loop.infer(labels, log_proba), log_proba)
    return loop.batches(labels)


def normalised(weight):
    """Rows that sum to 1."""
    return [w / math.fsum(weight) for w in weight]


# Shares and shifts


@pytest.mark.parametrize("balanced", [True, False])
def test_the_shift_leads_to_the_class_shares_of_the_items(fitted, balanced, monkeypatch):
    """p(k | x) prior_k / training_prior_k; a balanced loss has a uniform training prior; not for synthetic items."""
    _, loop, _ = fitted(balanced_loss=balanced, synthesis=SYNTHESIS)
    real, learnt = [0.7, 0.2, 0.1], [0.5, 0.3, 0.2]
    loop.state.update(log_prior=np.log(real), log_training_prior=np.log(learnt))
    odds = [r / (1 if balanced else q) for r, q in zip(real, learnt)]
    np.testing.assert_allclose(loop.log_shift().exp(), odds, rtol=1e-6)
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    votes, points = loop.context.annotations, proba.astype(np.float32)
    made = iced.synthesise(Synthesis(), votes, points, np.ones(40), [np.arange(40)], np.array([7]), loop.context.rng)
    asked = {}
    monkeypatch.setattr(iced, "infer_true_labels", lambda *a, **k: asked.update(k, prior=a[3]))
    loop.infer(iced.augment(votes, made), torch.from_numpy(np.log(proba)))
    expected = [normalised([p * o for p, o in zip(row, odds)]) for row in proba.tolist()]
    np.testing.assert_allclose(np.exp(asked["log_class_proba"][:40]), expected, rtol=1e-5)
    assert (
        asked["prior"] == "uniform" and not asked["log_class_proba"][40:].any() and len(asked["log_class_proba"]) == 47
    )


@pytest.mark.parametrize("soft", [True, False])
def test_shares_of_real_items_and_of_the_training_set(fitted, soft):
    """By the posterior among the real ones; by the targets, synthetic ones included, for the network."""
    _, loop, _ = fitted(soft_targets=soft, synthesis=Synthesis(size="repeat", candidates="all", pretrain_epochs=1))
    item = np.concatenate([batch.item for batch in round_of(loop)])
    assert (item >= 40).any() and len(set(item.tolist())) == len(item)
    learnt = log_class_shares(loop.target.double().numpy()[item])
    np.testing.assert_allclose(loop.state.log_training_prior, learnt, atol=1e-5)
    np.testing.assert_allclose(loop.state.log_prior, log_class_shares(loop.state.posterior.numpy()), atol=1e-6)
    assert np.abs(loop.state.log_prior.numpy() - learnt).max() > 0.01


@pytest.mark.parametrize("balanced", [True, False])
def test_the_warm_up_learns_the_vote_without_its_shares(fitted, balanced):
    """-log softmax(F(x) + log shares)[vote], with one item more of each class; without the shares in a plain loss."""
    _, loop, training = fitted(balanced_loss=balanced, max_epochs=0)
    vote = training.target.argmax(1).tolist()
    share = [(vote.count(k) + 1) / 43 for k in range(3)]
    batch = next(iter(loop.context.batches()))
    with torch.no_grad():
        logits = training.network(loop.context.x(batch)).tolist()
    loss = []
    for item, row in zip(batch.item.tolist(), logits):
        proba = normalised([math.exp(f) * (s if balanced else 1) for f, s in zip(row, share)])
        loss.append(-math.log(proba[vote[item]]))
    assert float(training.step(batch)["warm_up"]) == pytest.approx(math.fsum(loss) / len(loss), rel=1e-4)


# Metrics of a round


@pytest.mark.parametrize("balanced", [True, False])
def test_the_heldout_log_likelihood_is_that_of_a_slow_loop(fitted, balanced):
    """Mean of log sum_k p(k | x) confusion[worker, k, label], p under the items' class shares."""
    model, loop, _ = fitted(balanced_loss=balanced, patience=5, validation=0.3, synthesis=SYNTHESIS)
    context, shift = loop.context, loop.log_shift().exp().tolist()
    confusion = worker_confusions(context.annotations, loop.state.posterior.numpy()).tolist()
    proba = loop.network.embed_and_classify(context.data.rows)[1].exp().tolist()
    held, total = context.heldout, []
    for i, w, label in zip(held.item.tolist(), held.worker.tolist(), held.label.tolist()):
        posterior = normalised([p * s for p, s in zip(proba[i], shift)])
        total.append(math.log(math.fsum(b * confusion[w][k][label] for k, b in enumerate(posterior))))
    assert len(total) == 36
    assert model.history_[-1]["heldout"] == pytest.approx(math.fsum(total) / len(total), rel=1e-4)


def test_agreement_is_that_of_two_posteriors(fitted):
    """The posterior before a round, and after it."""
    _, loop, _ = fitted()
    turned = np.roll(loop.state.posterior.numpy(), 1, axis=1)
    turned[:25] = loop.state.posterior.numpy()[:25]
    loop.state.update(posterior=turned)
    before = turned.argmax(axis=1)
    round_of(loop)
    expected = np.mean(before == loop.state.posterior.numpy().argmax(axis=1))
    assert loop.metrics["agreement"] == pytest.approx(expected) and 0.4 < expected < 0.9


# Inputs of the synthesis


def synthesis_inputs(monkeypatch, loop, predicted):
    """The arguments of the synthesis, where the network predicts these classes."""
    log_proba = torch.from_numpy(np.log(np.full((40, 3), 0.1) + 0.7 * np.eye(3)[predicted]))
    annotations = loop.context.data.annotations
    with monkeypatch.context() as patch:
        patch.setattr(iced, "synthesise", lambda *arguments: arguments)
        _, _, _, certainty, candidates, n_wanted, _ = loop.synthesise(annotations, torch.zeros(40, 5), log_proba)
    return certainty, [own.tolist() for own in candidates], n_wanted.tolist()


def test_candidates_are_items_on_which_the_network_agrees(fitted, monkeypatch):
    """Or all items inferred to be of the class; without synthesis there are none."""
    inferred, predicted = np.repeat([0, 1, 2], [20, 12, 8]), np.arange(40) % 3
    for candidates in ("agree", "all"):
        _, loop, _ = fitted(synthesis=Synthesis(decoder="latent", candidates=candidates, size="balance"))
        loop.state.update(posterior=np.eye(3)[inferred])
        _, found, n_wanted = synthesis_inputs(monkeypatch, loop, predicted)
        agrees = (predicted == inferred) | (candidates == "all")
        assert found == [np.flatnonzero((inferred == k) & agrees).tolist() for k in range(3)]
        assert n_wanted == [0, 8, 12]
    _, loop, _ = fitted()
    made = loop.synthesise(loop.context.annotations, torch.zeros(40, 5), torch.zeros(40, 3))
    assert made.points.shape == (0, 5) and made.n_of_class.tolist() == [0, 0, 0] and len(made.labels.point) == 0


def test_gold_is_certain_when_items_are_synthesised(fitted, monkeypatch):
    """So that synthetic items lie near it."""
    _, loop, _ = fitted(synthesis=LATENT, gold={3: 0, 7: 1})
    certainty, _, _ = synthesis_inputs(monkeypatch, loop, np.zeros(40, int))
    assert np.flatnonzero(certainty > 99.9).tolist() == [3, 7]


def test_one_adam_from_the_warm_up_to_the_last_round(monkeypatch, fitted):
    """With its moments of the gradients; the autoencoder and the decoder have their own."""
    used = {}
    epochs = iced.TrainingContext.epochs

    def noted(self, modules, optimizers, *, name="training", **others):
        used[name] = optimizers["adam"]
        return epochs(self, modules, optimizers, name=name, **others)

    monkeypatch.setattr(iced.TrainingContext, "epochs", noted)
    _, loop, _ = fitted(synthesis=SYNTHESIS)
    warm_ups = [adam for name, adam in used.items() if name.startswith("warm-up")]
    assert len(warm_ups) > 1 and all(adam is used["training"] for adam in warm_ups)
    assert used["autoencoder"] is not used["training"] is not loop.decoder_optimizer
