"""Exchangeable workers: found exactly, and fitted as one without a difference in the result."""

import warnings

import numpy as np
import pytest

from manyhands import Annotations, PooledDawidSkene
from manyhands.aggregation import pooled
from manyhands.em.collusion import exchangeable_workers, merge_workers
from manyhands.exceptions import CrowdWarning
from manyhands.simulate import make_crowd


def one_label_each(n_labels=1000, n_classes=3, per_item=5, seed=0):
    rng = np.random.default_rng(seed)
    item = np.arange(n_labels) // per_item
    truth = rng.integers(n_classes, size=item[-1] + 1)
    label = np.where(rng.random(n_labels) < 0.7, truth[item], rng.integers(n_classes, size=n_labels))
    ids = {"item_ids": np.arange(len(truth)), "worker_ids": np.arange(n_labels), "classes": np.arange(n_classes)}
    return Annotations(item, np.arange(n_labels), label, **ids)


def test_groups_of_workers_with_one_label():
    """With one label each, the group of a worker follows from their label and the other labels of the item."""
    votes = one_label_each()
    group = exchangeable_workers(votes)
    pattern = [tuple(sorted(votes[i].label.tolist())) for i in range(len(votes))]
    wanted = [(pattern[i], k) for i, k in zip(votes.item.tolist(), votes.label.tolist())]
    number = {key: code for code, key in enumerate(dict.fromkeys(wanted))}  # by the worker who shows it first
    assert group.tolist() == [number[key] for key in wanted]


def test_gold_separates_workers():
    """Two items alike in their labels differ if the class of one is known."""
    votes = Annotations.from_triples("aaabbbccc", range(9), "001001001")
    assert exchangeable_workers(votes).tolist() == [0, 0, 1] * 3
    known = exchangeable_workers(votes, np.array([-1, 1, -1], np.int32))
    assert known.tolist() == [0, 0, 1, 2, 2, 3, 0, 0, 1]


def test_ordinary_crowds_have_no_groups():
    """Many labels each, or few on random items: all workers differ, and nothing changes."""
    assert exchangeable_workers(make_crowd(random_state=0).annotations) is None
    assert exchangeable_workers(make_crowd(300, 300, labels_per_item=3, random_state=0).annotations) is None


def test_merging_keeps_all_labels():
    """Only the names of the workers change."""
    votes = one_label_each(50)
    merged = merge_workers(votes, np.zeros(50, np.int64))
    assert merged.n_workers == 1
    assert sorted(zip(merged.item.tolist(), merged.label.tolist())) == sorted(
        zip(votes.item.tolist(), votes.label.tolist())
    )


@pytest.mark.parametrize("n_classes", [2, 12])
@pytest.mark.parametrize("n_gold", [0, 8])
def test_two_passes_over_groups_are_two_passes_over_workers(monkeypatch, n_classes, n_gold):
    """Matrices, types, prior and objective agree with a fit of every single worker."""
    votes = one_label_each(400, n_classes)
    gold = np.where(np.arange(len(votes)) < n_gold, np.arange(len(votes)) % n_classes, -1).astype(np.int32)
    merged = pooled.fit_pooled(votes, gold, 2, 0.0, prior_strength=0.03)
    monkeypatch.setattr(pooled, "exchangeable_workers", lambda annotations, gold: None)
    plain = pooled.fit_pooled(votes, gold, 2, 0.0, prior_strength=0.03)
    for name in ("confusion", "p_type", "unseen_worker", "log_prior"):
        np.testing.assert_allclose(getattr(merged, name), getattr(plain, name), rtol=1e-9, atol=1e-12)
    assert merged.table.history == pytest.approx(plain.table.history, rel=1e-10)
    assert merged.confusion.shape == (400, n_classes, n_classes)


def test_a_whole_fit_over_groups_has_the_labels_of_one_over_workers(monkeypatch):
    """EM takes other extrapolations, and ends at the same optimum within its tolerance."""
    votes = one_label_each(300, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        merged = PooledDawidSkene(calibrate=False).fit(votes)
        monkeypatch.setattr(pooled, "exchangeable_workers", lambda annotations, gold: None)
        plain = PooledDawidSkene(calibrate=False).fit(votes)
    np.testing.assert_allclose(merged.posterior_, plain.posterior_, atol=0.02)
    assert np.array_equal(merged.labels_, plain.labels_)
