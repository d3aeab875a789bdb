"""Assignment: exact numbers of labels, distinct pairs, the given activity, and removal of labels."""

from __future__ import annotations

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.simulate import activity_shares, assign, make_crowd, thin


@pytest.mark.parametrize("activity", ["uniform", "zipf", "dirichlet"])
@pytest.mark.parametrize("labels_per_item", [1, 5, 19, 20])
def test_every_item_gets_its_labels_from_different_workers(activity, labels_per_item):
    """Each item has exactly the given number of labels, and (item, worker) pairs are distinct."""
    item, worker = assign(500, 20, labels_per_item, activity, random_state=0)
    assert np.bincount(item, minlength=500).tolist() == [labels_per_item] * 500
    assert len(np.unique(item.astype(np.int64) * 20 + worker)) == len(item)
    assert worker.min() >= 0 and worker.max() < 20
    assert item.dtype == worker.dtype == np.int32


def test_numbers_of_labels_may_differ_between_items():
    """One whole number per item is kept as given, zero included; a fraction is met on average."""
    n_labels = np.arange(8)
    item, worker = assign(8, 7, n_labels, "zipf", random_state=0)
    assert np.bincount(item, minlength=8).tolist() == n_labels.tolist()
    assert len(set(zip(item.tolist(), worker.tolist()))) == 28
    counts = np.bincount(assign(200, 30, 2.5, random_state=0)[0])
    assert counts.sum() == 500 and set(counts) == {2, 3}


def test_activity_follows_the_shares():
    """With many workers the observed share of each worker is the expected one; Zipf's first is the most active."""
    share = activity_shares("zipf", 200)
    _, worker = assign(20_000, 200, 3, "zipf", random_state=0)
    seen = np.bincount(worker, minlength=200) / len(worker)
    assert np.argmax(seen) == 0
    assert np.abs(seen - share).max() < 0.004  # three draws without repeats flatten the head a little
    assert np.isclose(share[0] / share[99], (100 + 2.7) / (1 + 2.7))
    assert activity_shares("dirichlet", 200, 0).max() > 3 / 200


def test_few_workers_are_drawn_as_one_after_the_other_without_repeats():
    """Pairs of workers have the frequencies of draws without replacement, also in the exact draw."""
    weight = np.array([1e-7, 0.2, 0.3, 0.5])
    share = weight / weight.sum()
    _, worker = assign(40_000, 4, 2, weight, random_state=0)
    pair = worker.reshape(-1, 2)
    for a, b in [(1, 2), (1, 3), (2, 3)]:
        expected = share[a] * share[b] * (1 / (1 - share[a]) + 1 / (1 - share[b]))
        assert abs(np.mean((pair == [a, b]).all(1)) - expected) < 5 * np.sqrt(expected / 40_000)
    _, worker = assign(40_000, 4, 3, weight, random_state=0)  # the fourth worker is met after ten million draws
    assert np.bincount(worker, minlength=4)[0] < 5
    _, worker = assign(2000, 4, np.tile([4, 3], 1000), weight, random_state=0)
    assert np.bincount(worker, minlength=4)[0] in range(1000, 1005)


def test_the_same_seed_gives_the_same_pairs():
    """An integer seed determines the result; another seed gives other pairs."""
    first, same, other = (assign(100, 30, 4, "dirichlet", seed) for seed in (3, 3, 4))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 5, 1),
        (5, 0, 1),
        (5, 5, 6),
        (5, 5, 0),
        (5, 5, -1),
        (5, 5, float("inf")),
        (5, 5, np.array([1, 2])),
        (5, 5, np.full(5, 1.5)),
        (5, 5, np.full(5, -1)),
        (5, 5, np.full(5, 6)),
        (5, 5, 2, "lazy"),
        (5, 5, 2, np.ones(4)),
        (5, 5, 2, np.zeros(5)),
        (5, 5, 2, "uniform", -1),
    ],
)
def test_impossible_assignments_are_refused(arguments):
    """An impossible assignment is an error, never an endless loop."""
    with pytest.raises(ParameterError, match=r"must be|cannot get"):
        assign(*arguments)


def test_thinning_removes_the_share_and_leaves_one():
    """Half of the labels are removed; with keep_one every item keeps a label; all ids are kept."""
    votes = make_crowd(300, 20, labels_per_item=2, random_state=0).annotations
    kept, free = thin(votes, 0.5, random_state=0), thin(votes, 0.5, keep_one=False, random_state=0)
    assert kept.n_annotations == free.n_annotations == 300
    assert kept.n_labels.min() == 1 and free.n_labels.min() == 0
    assert kept.n_items == 300 and kept.n_workers == 20
    pairs = set(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    assert set(zip(kept.item.tolist(), kept.worker.tolist(), kept.label.tolist())) <= pairs


def test_thinning_at_its_limits():
    """Share 0 changes nothing; share 1 leaves one label per item, or none."""
    votes = make_crowd(50, 9, labels_per_item=3, random_state=0).annotations
    assert thin(votes, 0.0, random_state=0) == votes
    assert thin(votes, 1.0, random_state=0).n_labels.tolist() == [1] * 50
    assert thin(votes, 1.0, keep_one=False, random_state=0).n_annotations == 0
    assert thin(votes, 0.4, random_state=1) != thin(votes, 0.4, random_state=2)
    with pytest.raises(ParameterError, match="`share` of thin must be"):
        thin(votes, 1.5)


def test_every_label_of_an_item_is_equally_likely_to_stay():
    """Which label is kept does not depend on the order of workers."""
    votes = make_crowd(4000, 4, labels_per_item=4, random_state=0).annotations
    stay = np.bincount(thin(votes, 1.0, random_state=0).worker, minlength=4) / 4000
    assert np.abs(stay - 0.25).max() < 0.03
