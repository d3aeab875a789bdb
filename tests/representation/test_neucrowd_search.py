"""What NeuCrowd chooses on held-out items, its warm-up, and the robust anchor of features."""

import numpy as np
import pytest
import torch

from manyhands import load_model
from manyhands.representation import NeuCrowd, neucrowd_training
from manyhands.representation.neucrowd import GRIDS, regressions
from manyhands.representation.neucrowd_training import HeldoutSearch, MemberTraining
from manyhands.testing.crowds import add_noise, feature_crowd
from small_neucrowd import quick

pytestmark = pytest.mark.usefixtures("one_thread")

SEARCH = {"search": HeldoutSearch(), "patience": 3, "max_epochs": 3, "embedding_size": 6, "validation": 0.2}


@pytest.fixture
def fits(monkeypatch):
    """The method, the context, the result and the score of each setting that was trained."""
    found, original = [], NeuCrowd._fit_setting

    def remember(method, context):
        result, score = original(method, context)
        found.append((method, context, result, score))
        return result, score

    monkeypatch.setattr(NeuCrowd, "_fit_setting", remember)
    return found


def noisy_crowd(n_items=60):
    """Three classes that overlap."""
    X, votes, _ = feature_crowd(3, n_items=n_items, accuracy=0.7)
    return add_noise(X, 2.0), votes


def test_four_settings_are_trained_on_the_same_items(fits):
    """As given; another learning rate; another eta; a larger embedding with more weight decay."""
    X, votes = noisy_crowd()
    quick(**SEARCH, learning_rate=0.01, weight_decay=0.004).fit(X, votes)
    found = [
        (context.options.learning_rate, method.loss.scale, sum(method._sizes()), context.options.weight_decay)
        for method, context, _, _ in fits
    ]
    assert found == [(0.01, 2.0, 6, 0.004), (0.02, 2.0, 6, 0.004), (0.01, 5.0, 6, 0.004), (0.01, 2.0, 12, 0.01)]
    heldout = [set(context.heldout.item.tolist()) for _, context, _, _ in fits]
    assert heldout == [heldout[0]] * 4 and len(heldout[0]) == 12


def test_the_setting_with_the_best_regression_on_held_out_items_is_kept(fits):
    """Its log-likelihood of the held-out classes, and C, by a plain loop over settings, decades and items."""
    X, votes = noisy_crowd()
    model = quick(**SEARCH, head__soft_targets=False, head__skip=False).fit(X, votes)
    target = np.eye(3)[np.searchsorted(model.classes_, model.aggregator_.labels_)]
    best = []
    for n, (_, context, result, _) in enumerate(fits):
        (network,) = result.module.networks
        with torch.no_grad():
            embedding = network.inputs.embedder.eval()(torch.from_numpy(X).float()).numpy()
        out = np.isin(np.arange(60), context.heldout.item)
        for C, weights in zip(GRIDS["decades"], regressions(embedding[~out], target[~out], GRIDS["decades"])):
            total = 0.0
            for row, wanted in zip(embedding[out], target[out]):
                scores = row @ weights[:-1] + weights[-1]
                total += max((wanted * (scores - np.log(np.exp(scores).sum()))).sum(), np.log(1e-6))
            best.append((total / 12, n, C))
    score, n, C = max(best)
    assert (model.best_setting_, model.C_) == (n, C) and len({found[0] for found in best}) > 9
    assert model.setting_ == model._settings()[n]
    assert fits[n][3] == pytest.approx(score, rel=1e-5)
    assert model.module_ is fits[n][2].module


def test_a_search_of_one_setting_is_none(fits):
    """The first setting draws what a fit without a search draws, to the bit."""
    X, votes = noisy_crowd()
    plain = quick(**SEARCH | {"search": None}).fit(X, votes)
    quick(**SEARCH).fit(X, votes)
    first = fits[1][2]
    assert first.history == plain.history_ and len(fits) == 5 and plain.best_setting_ == 0


@pytest.mark.parametrize("change", [{"validation": 0.0}, {"validation": 0.2, "n_items": 12}])
def test_without_held_out_items_the_parameters_are_used_as_given(change, fits):
    """There is nothing to choose by."""
    X, votes = noisy_crowd(change.pop("n_items", 60))
    model = quick(**SEARCH | change).fit(X, votes)
    assert len(fits) == 1 and model.best_setting_ == 0 and model.transform(X).shape[1] == 6


def test_a_larger_embedding_is_saved_and_loaded(tmp_path, monkeypatch):
    """The fourth setting has another size, which the parameters alone do not tell."""
    X, votes = noisy_crowd()
    model = quick(**SEARCH)
    original = NeuCrowd._fit_setting
    monkeypatch.setattr(
        NeuCrowd, "_fit_setting", lambda method, context: (original(method, context)[0], sum(method._sizes()))
    )
    model.fit(X, votes)
    assert model.best_setting_ == 3 and model.setting_.keys() == {"embedding_size", "weight_decay"}
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.transform(X).shape == (60, 12) and again.transform(X[:0]).shape == (0, 12)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert model.fit(X, votes).transform(X).shape == (60, 12)  # an earlier choice does not change the next fit


def test_epochs_of_the_warm_up_cannot_be_the_best(monkeypatch):
    """Held-out labels are scored after it only; it has no early stopping."""
    X, votes = noisy_crowd()
    model = quick(warm_up=4, patience=1, max_epochs=2, validation=0.2).fit(X, votes)
    assert ["heldout" in epoch for epoch in model.history_][:5] == [False] * 4 + [True]
    assert [epoch["safe"] for epoch in model.history_[:4]] == [1.0] * 4


@pytest.mark.parametrize("kind", ["weighted", "mean", "sum"])
def test_the_anchor_of_features_by_hand(kind, monkeypatch):
    """F of the weighted mean of the anchors' features, not the mean of their embeddings; against a plain loop."""
    seen = []
    original = MemberTraining._embed

    def remember(self, x, anchors, weight):
        self.embedder.eval()  # without dropout, so that a row has one embedding
        found = original(self, x, anchors, weight)
        mixed = sum(weight[j] * x[a] for j, a in enumerate(anchors))
        mixed = mixed / {"weighted": weight.sum(), "mean": len(anchors), "sum": 1}[kind]
        seen.append((found[1].detach(), self.embedder(mixed[None])[0].detach(), found[0].detach()[anchors].mean(0)))
        assert torch.allclose(found[0], self.embedder(x), atol=1e-5)
        return found

    monkeypatch.setattr(neucrowd_training.MemberTraining, "_embed", remember)
    X, votes = noisy_crowd()
    quick(anchor=kind, anchor_space="features", max_epochs=2, learning_rate=0.01).fit(X, votes)
    assert len(seen) == 12
    for found, expected, of_embeddings in seen:
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        assert not torch.allclose(found, of_embeddings, atol=1e-3)
