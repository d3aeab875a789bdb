"""The members of a NeuCrowd: what each holds out, what that decides, and their mean prediction."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, MajorityVote
from manyhands.classifiers.network import check_training_data
from manyhands.exceptions import ParameterError
from manyhands.features import as_rows
from manyhands.nn.backbones import probabilities
from manyhands.representation import neucrowd
from manyhands.representation.neucrowd_training import MemberTraining
from manyhands.testing.crowds import feature_crowd
from small_neucrowd import quick

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def training_sets(monkeypatch):
    """The training set of each member, in the order in which they are made."""
    found = []
    original = MemberTraining.__init__

    def remember(self, options, training_set, *others):
        found.append(training_set)
        original(self, options, training_set, *others)

    monkeypatch.setattr(MemberTraining, "__init__", remember)
    return found


def test_each_member_holds_out_items_of_its_own(training_sets):
    """Every labelled item is held out by one member, with all its labels; gold items by none."""
    X, votes, truth = feature_crowd(3, n_items=60)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    quick(members=4, patience=3, max_epochs=2).fit(X, votes, gold)
    left = [set(training_set.context.heldout.item.tolist()) for training_set in training_sets]
    assert sorted(item for items in left for item in items) == list(range(1, 60))
    for training_set, items in zip(training_sets, left):
        assert not items & set(training_set.context.annotations.item.tolist())
        assert 0 in training_set.items and not items & set(training_set.items.tolist())


def test_held_out_labels_do_not_change_the_member(training_sets):
    """Other labels there change the held-out log-likelihood, and not the network of that member."""
    X, votes, _ = feature_crowd(3, n_items=60, accuracy=0.7)
    settings = {"members": 3, "patience": 3, "max_epochs": 1, "safety": None}
    one = quick(**settings).fit(X, votes)
    away = np.isin(votes.item, training_sets[1].context.heldout.item)
    label = np.where(away, (votes.label + 1) % 3, votes.label)
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    other = quick(**settings).fit(X, Annotations(votes.item, votes.worker, label, **ids))
    same = [
        all(torch.equal(a, b) for a, b in zip(mine.inputs.embedder.parameters(), theirs.inputs.embedder.parameters()))
        for mine, theirs in zip(one.module_.networks, other.module_.networks)
    ]
    assert same[1] and not same[0] and not same[2]
    assert one.history_[-1]["heldout"] != other.history_[-1]["heldout"]


def test_a_single_member_holds_out_whole_items():
    """The given share of items, each with all of its labels."""
    X, votes, _ = feature_crowd(3, n_items=60)
    model = quick(patience=5, validation=0.2)
    kept, left = model._hold_out(check_training_data(model, X, votes, None), 0.2, np.random.default_rng(0))
    assert np.count_nonzero(left.n_labels) == 12 and np.count_nonzero(kept.n_labels) == 48
    assert not np.any((left.n_labels > 0) & (kept.n_labels > 0))
    assert "heldout" in model.fit(X, votes).history_[1]


def test_few_items_are_not_held_out():
    """Where folds would have fewer than five items, all members train on all of them."""
    X, votes, _ = feature_crowd(2, n_items=12)
    assert "heldout" not in quick(members=4, patience=3, max_epochs=2).fit(X, votes).history_[-1]


def test_the_embedding_is_divided_among_the_members():
    """7 numbers of 3 members: three, two and two of them."""
    X, votes, _ = feature_crowd(3)
    model = quick(members=3, embedding_size=7, max_epochs=2).fit(X, votes)
    parts = [network.inputs.embedder(torch.from_numpy(X).float()).detach() for network in model.module_.networks]
    assert [part.shape[1] for part in parts] == [3, 2, 2]
    np.testing.assert_allclose(model.transform(X), torch.hstack(parts).numpy(), atol=1e-6)


def test_more_members_than_numbers_are_refused():
    """One sentence says which of both to change."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match=r"embedding_size 3 .*4 members"):
        quick(members=4, embedding_size=3).fit(X, votes)


def test_predictions_are_the_mean_of_the_members():
    """Each has a regression of its own, with a common C."""
    X, votes, _ = feature_crowd(3, accuracy=0.8)
    model = quick(members=3, patience=3).fit(X, votes)
    rows = as_rows(X)
    each = [probabilities(network, rows) for network in model.module_.networks]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), atol=1e-6)


@pytest.mark.parametrize("share, n_left", [(0.2, 12), (0.34, 20), (0.5, 30)])
def test_the_held_out_share_is_one_of_equal_parts(share, n_left):
    """Of 60 items a fifth, a third and a half."""
    X, votes, _ = feature_crowd(3, n_items=60)
    model = quick(patience=5)
    left = model._hold_out(check_training_data(model, X, votes, None), share, np.random.default_rng(0))[1]
    assert np.count_nonzero(left.n_labels) == n_left


@pytest.mark.parametrize("change", [{"validation": 0.0}, {"patience": None}])
def test_nothing_is_held_out_without_early_stopping(change, training_sets):
    """All members then train on all items."""
    X, votes, _ = feature_crowd(3, n_items=60)
    model = quick(**{"members": 2, "patience": 3, "max_epochs": 2} | change).fit(X, votes)
    assert "heldout" not in model.history_[-1]
    assert [len(training_set.items) for training_set in training_sets] == [60, 60]


def test_items_of_known_class_do_not_make_folds():
    """With gold for nearly all items, too few remain to hold any out."""
    X, votes, truth = feature_crowd(3, n_items=60)
    gold = {votes.item_ids[i]: votes.classes[truth[i]] for i in range(57)}
    assert "heldout" not in quick(members=5, patience=3, max_epochs=2).fit(X, votes, gold).history_[-1]


def test_early_stopping_uses_every_held_out_label_once(training_sets):
    """The mean over labels, not over members, which hold out unequal numbers of them."""
    X, votes, _ = feature_crowd(3, n_items=61, accuracy=0.6)
    model = quick(members=4, patience=3, max_epochs=1).fit(X, votes)
    sizes = [training_set.context.heldout.n_annotations for training_set in training_sets]
    assert len(set(sizes)) > 1 and sum(sizes) == votes.n_annotations
    found = [
        training_set.heldout_log_likelihood(n.inputs.embedder)
        for training_set, n in zip(training_sets, model.module_.networks)
    ]
    assert model.history_[1]["heldout"] == pytest.approx(np.average(found, weights=sizes), rel=1e-9)


@pytest.mark.parametrize("members", [1, 3])
def test_held_out_items_choose_c(members, training_sets, monkeypatch):
    """By the items that each member held out; without any, by five-fold cross-validation."""
    seen = []
    original = neucrowd.choose_C
    monkeypatch.setattr(neucrowd, "choose_C", lambda s, *others: seen.append(s) or original(s, *others))
    X, votes, _ = feature_crowd(3, n_items=60)
    quick(members=members, patience=3, max_epochs=1, validation=0.2).fit(X, votes)
    heldout = [set(split.test.tolist()) for split in seen[0]]
    assert heldout == [set(training_set.context.heldout.item.tolist()) for training_set in training_sets]
    quick(members=members, max_epochs=1).fit(X, votes)
    assert len(seen[1]) == 5 * members and all(len(split.test) == 12 for split in seen[1])


def test_results_use_all_labels():
    """The posterior, confidence and classes of the regression are from all labels, whatever was held out."""
    X, votes, _ = feature_crowd(3, n_items=60, accuracy=0.7)
    for members in (1, 3):
        model = quick(members=members, patience=3, max_epochs=1, validation=0.5).fit(X, votes)
        np.testing.assert_array_equal(model.posterior_, MajorityVote().fit(votes).posterior_)
        assert np.isfinite(model.confidence_).all()


def test_safety_is_a_share_of_the_members():
    """Between 0 and 1, in steps of one member."""
    X, votes, _ = feature_crowd(3, n_items=60, accuracy=0.6)
    found = quick(members=4, patience=3, max_epochs=3).fit(X, votes).safe_
    assert np.allclose(found * 4, np.round(found * 4)) and found.max() <= 1 and 0 < found.mean() < 1
