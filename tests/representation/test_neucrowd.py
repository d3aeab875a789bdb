"""NeuCrowd: the anchor, the loss, what each switch changes, safe items, members, and the classifier behind it."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from manyhands import Annotations, NeuCrowd, load_model
from manyhands.exceptions import ParameterError
from manyhands.nn.networks import probabilities
from manyhands.representation import neucrowd_epochs
from manyhands.representation.neucrowd_epochs import robust_anchor
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import feature_crowd
from manyhands.testing.learners import QUICK, blurred

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = QUICK | {"batches_per_epoch": 4, "max_epochs": 8, "labels": "majority-vote", "random_state": 0}


def quick(**changes):
    """A small learner with a seed: a single member, trained to the end, unless it is told otherwise."""
    return NeuCrowd(**(SMALL | {"members": 1, "patience": None} | changes))


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
    """The sum of A F over that of A; over their number; or the sum itself, against plain sums."""
    points = torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0]])
    trust = torch.tensor([1.0, 0.5, 0.25])
    total = [1.0 * 1 + 0.25 * 4, 0.5 * 2 + 0.25 * 4]
    for kind, divisor in (("weighted", 1.75), ("mean", 3.0), ("sum", 1.0)):
        expected = [value / divisor for value in total]
        np.testing.assert_allclose(robust_anchor(points, trust, kind).numpy(), expected, rtol=1e-6)


def test_the_anchor_does_not_change_with_the_scale_of_trust():
    """All trusted half as much, it stays; one anchor is itself; the surest dominate; without trust all are alike."""
    points, trust = torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), torch.linspace(0.1, 1, 9)
    anchor = robust_anchor(points, trust, "weighted")
    torch.testing.assert_close(robust_anchor(points, trust / 2, "weighted"), anchor)
    torch.testing.assert_close(robust_anchor(points[:1], trust[:1], "weighted"), points[0])
    sure = torch.where(torch.arange(9) == 4, 1.0, 1e-4)
    assert (robust_anchor(points, sure, "weighted") - points[4]).abs().max() < 0.01
    torch.testing.assert_close(robust_anchor(points, torch.zeros(9), "weighted"), points.mean(0))


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize("weighting", ["inside", "outside"])
def test_the_loss_by_hand(monkeypatch, robust, weighting):
    """-log of the positive's share, with the batch's anchor or each tuplet's own, against a plain loop."""
    seen = []
    original = neucrowd_epochs.Member._losses

    def remember(self, embedding, trust):
        found = original(self, embedding, trust)
        seen.append([part.detach().double().numpy() for part in (embedding, trust, found)])
        return found

    monkeypatch.setattr(neucrowd_epochs.Member, "_losses", remember)
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    quick(robust_anchor=robust, weighting=weighting, scale=3.0, offset=0.5, max_epochs=2).fit(X, votes)
    for embedding, trust, found in seen[-2:]:
        common = sum(a * e for a, e in zip(trust[:, 0], embedding[:, 0])) / trust[:, 0].sum()
        for tuplet, sure, loss in zip(embedding, trust, found):
            anchor = common if robust else tuplet[0]
            closeness = [0.5 - np.sqrt(((e - anchor) ** 2).sum()) for e in tuplet[1:]]
            if weighting == "inside":
                strength = [np.exp(3 * a * r) for a, r in zip(sure[1:], closeness)]
            else:
                strength = [max(a, 1e-12) * np.exp(3 * r) for a, r in zip(sure[1:], closeness)]
            assert loss == pytest.approx(-np.log(strength[0] / sum(strength)), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("switch", ["safety", "sampler"])
def test_a_switch_changes_nothing_before_the_second_epoch(switch):
    """Safe items and hard tuplets begin with the second epoch; the first is the same with and without, to the bit."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.6)
    X = blurred(X, 1.5)
    base = {"safety": True, "sampler": True, "hidden": (8,), "dropout": 0.3}
    with_it, without = (quick(**base | {switch: on}).fit(X, votes) for on in (True, False))
    assert losses(with_it)[0] == losses(without)[0]
    assert losses(with_it)[1:] != losses(without)[1:]


def test_losses_of_both_networks_are_in_the_history():
    """Each epoch has the embedding's loss, the sampling network's and the share of safe items; and not what is off."""
    X, votes, _ = feature_crowd(2)
    full = quick(sampler=True).fit(X, votes)
    assert all(epoch.keys() == {"loss", "sampler", "safe"} for epoch in full.history_)
    assert full.history_[0]["safe"] == 1 and len(full.samplers_) == 1
    bare = quick(safety=False, robust_anchor=False, sampler=False).fit(X, votes)
    assert all(epoch.keys() == {"loss"} for epoch in bare.history_) and bare.samplers_ == []


@pytest.mark.parametrize("n_tuple", [3, 5, 12])
def test_the_loss_falls(n_tuple):
    """With tuplets of any size, and both networks learn: the sampling network's error falls as well."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    model = quick(n_tuple=n_tuple, sampler=True, max_epochs=15).fit(X, votes)
    assert np.mean(losses(model)[-3:]) < 0.5 * losses(model)[0]
    errors = [epoch["sampler"] for epoch in model.history_]
    assert np.mean(errors[-3:]) < 0.5 * errors[0]


def test_a_robust_anchor_lowers_the_loss():
    """After equally many epochs the loss is below that of tuplets with anchors of their own, as in the paper."""
    X, votes, _ = feature_crowd(2, n_items=120, accuracy=0.8)
    X = blurred(X, 1.0)
    own, robust = (quick(robust_anchor=on, safety=False, sampler=False).fit(X, votes) for on in (False, True))
    assert np.mean(losses(robust)[-3:]) < np.mean(losses(own)[-3:])


def test_items_with_the_wrong_class_are_not_safe():
    """Of planted items with a wrong majority four in five are unsafe, and nine in ten of the others are safe."""
    X, votes, planted = two_clouds()
    model = quick(max_epochs=5, n_neighbors=8).fit(X, votes)
    assert np.mean(model.safe_[planted] == 0) >= 0.8
    assert np.mean(model.safe_[~planted] == 1) >= 0.9


def test_unsafe_items_are_hardly_drawn(monkeypatch):
    """From the second epoch on the pool has the safe items and the share of others that is asked for."""
    sizes = []
    original = neucrowd_epochs.Pool.of.__func__
    monkeypatch.setattr(
        neucrowd_epochs.Pool,
        "of",
        classmethod(
            lambda cls, code, chosen: sizes.append((len(code), int(chosen.sum()))) or original(cls, code, chosen)
        ),
    )
    X, votes, _ = two_clouds()
    model = quick(max_epochs=4, n_neighbors=8, unsafe_share=0.0).fit(X, votes)
    assert sizes[0] == (200, 200) and len(sizes) == 4
    for (_, chosen), epoch in zip(sizes[1:], model.history_[1:]):
        assert chosen == pytest.approx(200 * epoch["safe"], abs=0.01)


def test_hard_tuplets_are_chosen_from_all_candidates(monkeypatch):
    """Once it knows something, the sampling network sees every candidate and hands back a batch of them."""
    asked = []
    original = neucrowd_epochs.TupletSampler.hardest

    def remember(self, x, tuplets, n_wanted):
        found = original(self, x, tuplets, n_wanted)
        asked.append((len(tuplets), len(found), len(np.unique(found))))
        return found

    monkeypatch.setattr(neucrowd_epochs.TupletSampler, "hardest", remember)
    X, votes, _ = feature_crowd(3)
    quick(sampler=True, hard_rate=7, batch_size=16, max_epochs=3).fit(X, votes)
    assert asked == [(7 * 16, 16, 16)] * (2 * SMALL["batches_per_epoch"])


@pytest.fixture
def lessons(monkeypatch):
    """What each member learns from, in the order in which they are made."""
    found = []
    original = neucrowd_epochs.Member.__init__

    def remember(self, method, lesson, *others):
        found.append(lesson)
        original(self, method, lesson, *others)

    monkeypatch.setattr(neucrowd_epochs.Member, "__init__", remember)
    return found


def test_each_member_leaves_out_items_of_its_own(lessons):
    """Every labelled item is left out by one member, with all its labels; gold items by none."""
    X, votes, truth = feature_crowd(3, n_items=60)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    quick(members=4, patience=3, max_epochs=2).fit(X, votes, gold)
    left = [set(lesson.bench.heldout.item.tolist()) for lesson in lessons]
    assert sorted(item for items in left for item in items) == list(range(1, 60))
    for lesson, items in zip(lessons, left):
        assert not items & set(lesson.bench.annotations.item.tolist())
        assert 0 in lesson.items and not items & set(lesson.items.tolist())


def test_what_a_member_leaves_out_does_not_teach_it(lessons):
    """Other labels there change what the stop rule sees, and not the network of that member."""
    X, votes, _ = feature_crowd(3, n_items=60, accuracy=0.7)
    one = quick(members=3, patience=3, max_epochs=1).fit(X, votes)
    away = np.isin(votes.item, lessons[1].bench.heldout.item)
    label = np.where(away, (votes.label + 1) % 3, votes.label)
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    other = quick(members=3, patience=3, max_epochs=1).fit(X, Annotations(votes.item, votes.worker, label, **ids))
    same = [
        all(torch.equal(a, b) for a, b in zip(mine.seen.embedder.parameters(), theirs.seen.embedder.parameters()))
        for mine, theirs in zip(one.module_.networks, other.module_.networks)
    ]
    assert same[1] and not same[0] and not same[2]
    assert one.history_[0]["heldout"] != other.history_[0]["heldout"]


def test_a_single_member_holds_out_whole_items():
    """The share of items that is asked for, each with all of its labels."""
    X, votes, _ = feature_crowd(3, n_items=60)
    model = quick(patience=5, validation=0.2)
    kept, left = model._hold_out(model._task(X, votes, None), 0.2, np.random.default_rng(0))
    assert np.count_nonzero(left.n_labels) == 12 and np.count_nonzero(kept.n_labels) == 48
    assert not np.any((left.n_labels > 0) & (kept.n_labels > 0))
    assert "heldout" in model.fit(X, votes).history_[0]


def test_few_items_are_not_left_out():
    """Where folds would be of fewer than five items, all members learn from all of them."""
    X, votes, _ = feature_crowd(2, n_items=12)
    assert "heldout" not in quick(members=4, patience=3, max_epochs=2).fit(X, votes).history_[0]


def test_the_embedding_is_shared_out_among_the_members():
    """7 numbers of 3 members: three, two and two of them."""
    X, votes, _ = feature_crowd(3)
    model = quick(members=3, embedding_size=7, max_epochs=2).fit(X, votes)
    parts = [network.seen.embedder(torch.from_numpy(X).float()).detach() for network in model.module_.networks]
    assert [part.shape[1] for part in parts] == [3, 2, 2]
    np.testing.assert_allclose(model.transform(X), torch.hstack(parts).numpy(), atol=1e-6)


def test_more_members_than_numbers_are_refused():
    """One sentence says which of both to change."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match=r"embedding_size 3 .*4 members"):
        quick(members=4, embedding_size=3).fit(X, votes)


def test_predictions_are_the_mean_of_the_members():
    """Each classifies by a regression of its own, with the C that they share."""
    X, votes, _ = feature_crowd(3, accuracy=0.8)
    model = quick(members=3, patience=3).fit(X, votes)
    rows = model._like_fitted(X)
    each = [probabilities(network, rows) for network in model.module_.networks]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), atol=1e-6)


@pytest.mark.parametrize("skip", [False, True])
def test_the_classifier_is_a_logistic_regression(skip):
    """As scikit-learn's on what it sees: the embedding, and beside it the features with as much variance."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.8)
    X = blurred(X, 1.0)
    model = quick(skip=skip, soft=False).fit(X, votes)
    seen = model.transform(X)
    if skip:
        ratio = np.sqrt(seen.var(axis=0).sum() / X.var(axis=0).sum())
        seen = np.hstack([seen, ratio * X])
    scaled = seen / np.sqrt(seen.var(axis=0).sum())
    target = np.searchsorted(model.classes_, model.aggregator_.labels_)
    theirs = LogisticRegression(C=model.C_, tol=1e-8, max_iter=5000).fit(scaled, target)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(scaled), atol=1e-3)


def test_soft_targets_are_what_the_aggregator_believes():
    """With votes split two to one, the regression answers with shares rather than with certainty."""
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0))
    soft, hard = (quick(soft=on, batches_per_epoch=1, max_epochs=1).fit(X, votes) for on in (True, False))
    assert soft.predict_proba(X[:1])[0, 0] == pytest.approx(2 / 3, abs=0.05)
    assert hard.predict_proba(X[:1])[0, 0] > 0.9


def test_many_classes_and_few_labels():
    """Four classes with 60 of 100 labels missing are told apart far better than by chance."""
    crowd = make_crowd(160, 8, 4, accuracy=0.8, random_state=0)
    rng = np.random.default_rng(0)
    X = np.eye(4)[crowd.truth].repeat(3, axis=1) * 2 + rng.normal(0, 1, (160, 12))
    kept = np.sort(rng.permutation(crowd.annotations.n_annotations)[: round(0.4 * crowd.annotations.n_annotations)])
    model = quick(members=2, patience=3, sampler=True).fit(X, crowd.annotations.keep(kept))
    assert np.mean(model.predict(X) == model.classes_[crowd.truth]) > 0.45


def test_the_papers_settings():
    """They differ from the defaults, take changes, and can be fitted."""
    published = NeuCrowd.as_published(max_epochs=1, batches_per_epoch=2, random_state=0)
    assert (published.members, published.soft, published.skip, published.sampler) == (1, False, False, True)
    assert published.safety and published.robust_anchor and published.n_tuple == 5
    X, votes, _ = feature_crowd(2)
    assert published.fit_transform(X, votes).shape == (votes.n_items, 32)
    moved = NeuCrowd.as_published(optimizer="adadelta", activation="sigmoid", **SMALL).fit_transform(X, votes)
    assert np.all((moved > 0) & (moved < 1))


def test_a_saved_model_embeds_and_predicts_the_same(tmp_path):
    """Both faces of it, and its results, come back from the folder."""
    X, votes, _ = feature_crowd(3)
    model = quick(members=2, sampler=True).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.safe_, model.safe_)
    np.testing.assert_array_equal(again.confidence_, model.confidence_)
    assert again.C_ == model.C_ and not hasattr(again, "samplers_")
