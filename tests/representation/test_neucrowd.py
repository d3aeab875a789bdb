"""NeuCrowd: the anchor, the loss, the effect of each part, safe items, members, and the classifier."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from torch import nn

from manyhands import Annotations, NeuCrowd, load_model, registry
from manyhands.nn.losses import tuplet_losses
from manyhands.representation import neucrowd_training
from manyhands.representation.neucrowd_training import (
    HeldoutSearch,
    LogisticHead,
    MemberTraining,
    Pool,
    SafetyAwareSampling,
    TupletLoss,
    robust_anchor,
)
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import add_noise, feature_crowd
from small_neucrowd import SMALL, quick

pytestmark = pytest.mark.usefixtures("one_thread")


def losses(model):
    """The loss of each epoch."""
    return [epoch["loss"] for epoch in model.history_]


def two_clouds(n_items=200, wrong=0.1, seed=0):
    """Two separated classes; of some items most labels are wrong, by a bare majority."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_items) % 2
    X = rng.normal(0, 1, (n_items, 4)) + 6 * truth[:, None]
    planted = np.zeros(n_items, bool)
    planted[rng.permutation(n_items)[: round(wrong * n_items)]] = True
    right = np.where(planted, 2, 5)  # of five labels
    labels = np.where(np.arange(5) < right[:, None], truth[:, None], 1 - truth[:, None])
    return X, Annotations.from_matrix(labels), planted


def test_the_anchor_is_where_the_formula_puts_it():
    """The sum of A F divided by the sum of A, by their number, or not at all, against plain sums."""
    points = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
    confidence = torch.tensor([1.0, 0.5, 0.25])
    total = [1.0 * 1 + 0.25 * 4, 0.5 * 2 + 0.25 * 4]
    for kind, divisor in (("weighted", 1.75), ("mean", 3.0), ("sum", 1.0)):
        expected = [value / divisor for value in total]
        np.testing.assert_allclose(robust_anchor(points, confidence, kind).numpy(), expected, rtol=1e-6)


def test_the_anchor_does_not_change_with_the_scale_of_confidence():
    """Half the confidence gives the same; one anchor is itself; confident ones dominate; zeros are equal weights."""
    points, confidence = torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), torch.linspace(0.1, 1, 9)
    anchor = robust_anchor(points, confidence, "weighted")
    torch.testing.assert_close(robust_anchor(points, confidence / 2, "weighted"), anchor)
    torch.testing.assert_close(robust_anchor(points[:1], confidence[:1], "weighted"), points[0])
    sure = torch.where(torch.arange(9) == 4, 1.0, 1e-4)
    assert (robust_anchor(points, sure, "weighted") - points[4]).abs().max() < 0.01
    torch.testing.assert_close(robust_anchor(points, torch.zeros(9), "weighted"), points.mean(0))


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize("weighting", ["inside", "outside"])
def test_the_loss_by_hand(monkeypatch, robust, weighting):
    """-log of the positive's share, with the batch's anchor or each tuplet's own, against a plain loop."""
    seen = []
    original = MemberTraining._losses

    def remember(self, embedding, weight, anchor):
        found = original(self, embedding, weight, anchor)
        seen.append([part.detach().double().numpy() for part in (embedding, weight, found)])
        return found

    monkeypatch.setattr(MemberTraining, "_losses", remember)
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    loss = TupletLoss(3.0, 0.5, weighting)
    quick(anchor="weighted" if robust else None, loss=loss, max_epochs=2).fit(X, votes)
    for embedding, weight, found in seen[-2:]:
        common = sum(a * e for a, e in zip(weight[:, 0], embedding[:, 0])) / weight[:, 0].sum()
        for tuplet, own, loss in zip(embedding, weight, found):
            anchor = common if robust else tuplet[0]
            closeness = [0.5 - np.sqrt(((e - anchor) ** 2).sum()) for e in tuplet[1:]]
            if weighting == "inside":
                strength = [np.exp(3 * a * r) for a, r in zip(own[1:], closeness)]
            else:
                strength = [max(a, 1e-12) * np.exp(3 * r) for a, r in zip(own[1:], closeness)]
            assert loss == pytest.approx(-np.log(strength[0] / sum(strength)), rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("part", [{"safety": None}, {"sampler": False}])
@pytest.mark.parametrize("warm_up", [1, 3])
def test_a_part_changes_nothing_during_the_warm_up(part, warm_up):
    """Safe items and hard tuplets start after it; its epochs are the same with and without, to the bit."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.6)
    X = add_noise(X, 1.5)
    base = {"sampler": True, "hidden": (8,), "dropout": 0.3, "warm_up": warm_up, "max_epochs": 2}
    with_it, without = (quick(**base | change).fit(X, votes) for change in ({}, part))
    assert len(with_it.history_) == warm_up + 2
    assert losses(with_it)[:warm_up] == losses(without)[:warm_up]
    assert losses(with_it)[warm_up:] != losses(without)[warm_up:]


def test_losses_of_both_networks_are_in_the_history():
    """Each epoch has the embedding's loss, the sampling network's and the share of safe items, of the parts in use."""
    X, votes, _ = feature_crowd(2)
    full = quick(sampler=True).fit(X, votes)
    assert all(epoch.keys() == {"loss", "sampler", "safe"} for epoch in full.history_)
    assert full.history_[0]["safe"] == 1 and len(full.samplers_) == 1
    bare = quick(safety=None, anchor=None).fit(X, votes)
    assert all(epoch.keys() == {"loss"} for epoch in bare.history_) and bare.samplers_ == []


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 5, 12])
def test_the_loss_falls(size):
    """With tuplets of any size."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    settings = {"hidden": (32,), "learning_rate": 0.01, "batch_size": 64, "safety": None}
    model = quick(tuplets__size=size, **settings, max_epochs=15).fit(add_noise(X, 4.0), votes)
    assert np.mean(losses(model)[-3:]) < 0.7 * np.mean(losses(model)[:3])


@pytest.mark.slow
def test_the_sampling_network_learns_which_tuplets_are_hard():
    """Its error falls, and it predicts the order of fresh losses: it would not if it predicted the mean."""
    X, votes, _ = feature_crowd(2, n_items=120, accuracy=0.8)
    X = add_noise(X, 1.5)
    settings = {"sampler": True, "safety": None, "anchor": None, "tuplets__hard_rate": 1, "hidden": (32,)}
    model = quick(**settings, batch_size=128, learning_rate=0.01, max_epochs=40).fit(X, votes)
    errors = [epoch["sampler"] for epoch in model.history_]
    assert np.mean(errors[-3:]) < 0.5 * np.mean(errors[:3])
    code = np.searchsorted(model.classes_, model.aggregator_.labels_)
    tuplets = Pool.of(code, np.ones(120, bool)).draw(0, 400, 3, np.random.default_rng(1))
    embedding, weight = torch.from_numpy(model.transform(X)), torch.from_numpy(model.confidence_)
    similarity = 1 - (embedding[tuplets[:, 1:]] - embedding[tuplets[:, :1]]).norm(dim=2)
    expected = tuplet_losses(similarity, weight[tuplets[:, 1:]], 2.0, inside=True)
    with torch.no_grad():
        predicted = model.samplers_[0](torch.from_numpy(X).float(), tuplets)
    assert spearmanr(predicted, expected).statistic > 0.5


@pytest.mark.slow
def test_a_robust_anchor_lowers_the_loss():
    """After equally many epochs the loss is below that of tuplets with anchors of their own, as in the paper."""
    X, votes, _ = feature_crowd(2, n_items=120, accuracy=0.8)
    X = add_noise(X, 1.0)
    own, robust = (quick(anchor=anchor, safety=None).fit(X, votes) for anchor in (None, "weighted"))
    assert np.mean(losses(robust)[-3:]) < np.mean(losses(own)[-3:])


@pytest.mark.slow
def test_items_with_the_wrong_class_are_not_safe():
    """Of planted items with a wrong majority four in five are unsafe, and nine in ten of the others are safe."""
    X, votes, planted = two_clouds()
    model = quick(max_epochs=5, safety__n_neighbors=8).fit(X, votes)
    assert np.mean(model.safe_[planted] == 0) >= 0.8
    assert np.mean(model.safe_[~planted] == 1) >= 0.9


def test_few_unsafe_items_are_drawn(monkeypatch):
    """After the warm-up the pool has the safe items and the share of others that is asked for."""
    sizes = []
    original = neucrowd_training.Pool.of.__func__
    monkeypatch.setattr(
        neucrowd_training.Pool,
        "of",
        classmethod(
            lambda cls, code, chosen: sizes.append((len(code), int(chosen.sum()))) or original(cls, code, chosen)
        ),
    )
    X, votes, _ = two_clouds()
    model = quick(max_epochs=3, safety=SafetyAwareSampling(n_neighbors=8, unsafe_share=0.0)).fit(X, votes)
    assert sizes[0] == (200, 200) and len(sizes) == 4
    for (_, chosen), epoch in zip(sizes[1:], model.history_[1:]):
        assert chosen == pytest.approx(200 * epoch["safe"], abs=0.01)


def test_hard_tuplets_are_chosen_from_all_candidates(monkeypatch):
    """Once it is trained, the sampling network sees every candidate and selects a mini-batch of them."""
    asked = []
    original = neucrowd_training.TupletSampler.hardest

    def remember(self, x, tuplets, n_wanted):
        found = original(self, x, tuplets, n_wanted)
        asked.append((len(tuplets), len(found), len(np.unique(found))))
        return found

    monkeypatch.setattr(neucrowd_training.TupletSampler, "hardest", remember)
    X, votes, _ = feature_crowd(3)
    quick(sampler=True, tuplets__hard_rate=7, batch_size=16, max_epochs=2).fit(X, votes)
    assert asked == [(7 * 16, 16, 16)] * (2 * SMALL["tuplets"].batches_per_epoch)


@pytest.mark.slow
@pytest.mark.parametrize("skip", [False, True])
def test_the_classifier_is_a_logistic_regression(skip):
    """As scikit-learn's on the same inputs: the embedding, and the features scaled to the same variance."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.8)
    X = add_noise(X, 1.0)
    model = quick(head=LogisticHead(skip=skip)).fit(X, votes)
    seen = model.transform(X)
    if skip:
        ratio = np.sqrt(seen.var(axis=0).sum() / X.var(axis=0).sum())
        seen = np.hstack([seen, ratio * X])
    scaled = seen / np.sqrt(seen.var(axis=0).sum())
    target = np.searchsorted(model.classes_, model.aggregator_.labels_)
    theirs = LogisticRegression(C=model.C_, tol=1e-8, max_iter=5000).fit(scaled, target)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(scaled), atol=1e-3)


def test_soft_targets_are_the_posterior_of_the_aggregator():
    """With votes split two to one, the regression predicts vote shares rather than certainty."""
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0))
    soft, hard = (
        quick(head__soft_targets=on, tuplets__batches_per_epoch=1, max_epochs=1).fit(X, votes) for on in (True, False)
    )
    assert soft.predict_proba(X[:1])[0, 0] == pytest.approx(2 / 3, abs=0.05)
    assert hard.predict_proba(X[:1])[0, 0] > 0.9


def test_many_classes_and_few_labels():
    """Four classes with 60 of 100 labels missing are predicted far better than by chance."""
    crowd = make_crowd(160, 8, 4, accuracy=0.8, random_state=0)
    rng = np.random.default_rng(0)
    X = np.eye(4)[crowd.truth].repeat(3, axis=1) * 2 + rng.normal(0, 1, (160, 12))
    kept = np.sort(rng.permutation(crowd.annotations.n_annotations)[: round(0.4 * crowd.annotations.n_annotations)])
    model = quick(members=2, patience=3, sampler=True).fit(X, crowd.annotations.keep(kept))
    assert np.mean(model.predict(X) == model.classes_[crowd.truth]) > 0.45


def test_the_name_of_the_paper_gives_the_paper():
    """One embedding, all three parts, hard targets, a search; `plus` differs, and takes changes."""
    published = NeuCrowd()
    assert (published.members, published.head, published.sampler) == (1, LogisticHead(), True)
    assert (published.safety, published.anchor, published.tuplets.size) == (SafetyAwareSampling(), "weighted", 5)
    assert (published.search, published.head.grid, published.labels) == (HeldoutSearch(), "decades", "majority-vote")
    assert (published.activation, published.anchor_space) == ("relu", "embedding")
    ours = NeuCrowd.plus(embedding_size=10, head__skip=False)
    assert (ours.members, ours.head, ours.sampler) == (5, LogisticHead(soft_targets=True, grid="fine"), False)
    assert (ours.embedding_size, ours.patience, ours.labels) == (10, 5, registry.DEFAULT)
    assert (ours.activation, ours.search, ours.warm_up) == ("tanh", None, 1)
    X, votes, _ = feature_crowd(2)
    moved = NeuCrowd(**SMALL | {"activation": "sigmoid"}, optimizer="adadelta").fit_transform(X, votes)
    assert np.all((moved > 0) & (moved < 1))


def test_a_saved_model_embeds_and_predicts_the_same(tmp_path):
    """Embedding, predictions and results are those of the saved model."""
    X, votes, _ = feature_crowd(3)
    model = quick(members=2, sampler=True).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.safe_, model.safe_)
    np.testing.assert_array_equal(again.confidence_, model.confidence_)
    assert again.C_ == model.C_ and not hasattr(again, "samplers_")


@pytest.mark.parametrize(
    "change",
    [
        {"safety__margin": 2.0},
        {"safety__rival": "strongest"},
        {"safety__n_neighbors": 2},
        {"safety__unsafe_share": 0.5},
        {"confidence__shrink": True},
        {"anchor": "mean"},
        {"weight_decay": 0.1},
        {"loss__scale": 4.0},
        {"confidence__kind": "mle"},
        {"tuplets__hard_rate": 2},
        {"optimizer": "adadelta"},
        {"warm_up": 0},
        {"anchor_space": "features"},
        {"activation": "relu"},
        {"activation": "sigmoid"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_reaches_the_training(change):
    """It changes the embedding."""
    X, votes, _ = feature_crowd(3, n_items=90, accuracy=0.5)
    X = add_noise(X, 2.0)
    settings = {"max_epochs": 3, "safety__n_neighbors": 9, "learning_rate": 0.01}
    plain, changed = (quick(**settings | more).fit_transform(X, votes) for more in ({}, change))
    assert not np.array_equal(plain, changed)


def test_neighbours_pool_and_optimizer_by_default(monkeypatch):
    """Neighbours by the square root of the batch size; a class smaller than a tuplet keeps all; Adadelta's rho."""
    asked = []
    original_safe, original_pool = neucrowd_training.safe_items, neucrowd_training.choose_pool

    def safe(embedding, code, confidence, k, **others):
        asked.append(k)
        return original_safe(embedding, code, confidence, k, **others)

    def pool(code, safe, share, least, rng):
        asked.append(least)
        return original_pool(code, safe, share, least, rng)

    monkeypatch.setattr(neucrowd_training, "safe_items", safe)
    monkeypatch.setattr(neucrowd_training, "choose_pool", pool)
    X, votes, _ = feature_crowd(2)
    quick(batch_size=26, tuplets__size=7, max_epochs=1).fit(X, votes)
    assert asked == [5, 7, 5]  # once in training, and once for safe_
    made = []
    original = torch.optim.Adadelta
    monkeypatch.setattr(torch.optim, "Adadelta", lambda *a, **others: made.append(others) or original(*a, **others))
    quick(optimizer="adadelta", max_epochs=1, learning_rate=0.5).fit(X, votes)
    assert made == [{"lr": 0.5, "weight_decay": 8e-3, "rho": 0.95, "eps": 1e-8}]


def test_embeddings_are_bounded_except_with_relu():
    """tanh and sigmoid also follow the embedding, with dropout; nothing follows the last layer with relu."""
    X, votes, _ = feature_crowd(2)
    for activation, low, high in (("tanh", -1, 1), ("sigmoid", 0, 1)):
        model = quick(activation=activation, dropout=0.3).fit(X, votes)
        found = model.transform(X)
        assert found.min() >= low and found.max() <= high
        assert isinstance(model.module_.networks[0].inputs.embedder[-1], nn.Dropout)
    free = quick(activation="relu").fit(X, votes).transform(X)
    assert free.min() < 0 and free.max() > 1
