"""Copies: planted pairs and triples are found, honest workers are not, and one label of a group counts."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.em import copies
from manyhands.em.collusion import label_pairs, without_copies
from manyhands.em.copies import find_copies, find_group_and_copies
from manyhands.simulate import make_crowd
from reference.slow_copies import common_items, log_ratio, p_equal


def with_copies(votes, source, rate=1.0, n_copies=1, seed=0):
    """The crowd and workers who repeat the labels of `source` at this rate, and answer at random otherwise."""
    rng, names = np.random.default_rng(seed), [f"copy {c}" for c in range(n_copies)]
    rows = np.flatnonzero(votes.worker == source)
    item, worker, label = (votes.item, votes.worker, votes.label)
    for c in range(n_copies):
        own = rng.integers(votes.n_classes, size=len(rows))
        item, worker = np.append(item, votes.item[rows]), np.append(worker, np.full(len(rows), votes.n_workers + c))
        label = np.append(label, np.where(rng.random(len(rows)) < rate, votes.label[rows], own))
    workers = [*votes.worker_ids.tolist(), *names]
    return Annotations(item, worker, label, item_ids=votes.item_ids, worker_ids=workers, classes=votes.classes)


@pytest.mark.parametrize(
    ("n_workers", "n_classes", "rate", "n_copies"), [(8, 2, 1.0, 1), (12, 4, 0.9, 1), (20, 3, 1.0, 2), (40, 5, 1.0, 2)]
)
def test_copies_are_found_and_nobody_else(n_workers, n_classes, rate, n_copies):
    """A pair or a triple: one group, which has exactly the source and the copies."""
    for seed in range(2):
        crowd = make_crowd(
            300, n_workers, n_classes, labels_per_item=5, accuracy=0.75, spread=0.08, random_state=seed
        ).annotations
        source = int(np.argsort(np.bincount(crowd.worker))[-2])
        _, found = find_group_and_copies(with_copies(crowd, source, rate, n_copies, seed))
        expected = [source, *range(n_workers, n_workers + n_copies)]
        assert [sorted(group) for group in found.groups()] == [expected]


HONEST = {
    "few classes": {"n_classes": 2, "accuracy": 0.7},
    "high skill": {"n_classes": 2, "accuracy": 0.95, "spread": 0.04},
    "hard items": {"n_classes": 2, "kind": "glad"},
    "shared confusions": {"n_classes": 4, "kind": "confusion"},
    "small": {"n_workers": 8, "n_classes": 2, "accuracy": 0.75, "spread": 0.1},
}


@pytest.mark.parametrize("settings", HONEST.values(), ids=HONEST)
def test_honest_workers_are_no_copies(settings):
    """Benchmarks/copies.py counts the pairs of many more crowds."""
    for seed in range(3):
        settings = {"n_items": 300, "n_workers": 20, "labels_per_item": 5, "random_state": seed} | settings
        assert not find_copies(make_crowd(**settings).annotations)


def test_a_pair_that_agrees_on_155_of_160_items():
    """Two workers of accuracy .74 among eleven others, two classes: the group, and the figures of the pair."""
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=160)
    accuracy = np.append(0.74, rng.uniform(0.6, 0.85, 11))
    matrix = np.where(rng.random((160, 12)) < accuracy, truth[:, None], 1 - truth[:, None])
    matrix[rng.random((160, 12)) < 0.5] = -1
    matrix[:, 0] = np.where(rng.random(160) < 0.74, truth, 1 - truth)
    copy = matrix[:, 0].copy()
    copy[rng.permutation(160)[:5]] ^= 1
    found = find_copies(Annotations.from_matrix(np.column_stack([matrix, copy])))
    assert found.groups() in ([[0, 12]], [[12, 0]])
    assert abs(found.n_equal[0] - 155) <= 1 and found.n_expected[0] < 130


def test_pairs_of_workers_by_plain_loops():
    """Common and equal items, by counting in a table and by sorting; L(c) and p_i of the first pair."""
    crowd = make_crowd(120, 9, 3, labels_per_item=5, accuracy=0.9, random_state=1).annotations
    pairs = label_pairs(crowd)
    expected = {
        pair: labels
        for pair, labels in common_items(crowd).items()
        if len(labels) >= copies.MIN_COMMON
        and sum(a == b for a, b in labels) >= copies.MIN_AGREEMENT * len(labels)
    }  # fmt: skip
    assert len(expected) > 5
    for limit in (copies._MAX_CELLS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(copies, "_MAX_CELLS", limit)
            couples = copies.agreeing_couples(pairs)
        assert list(zip(couples.x.tolist(), couples.y.tolist())) == sorted(expected)
        for pair, n_common, n_equal in zip(sorted(expected), couples.n_common, couples.n_equal):
            assert (n_common, n_equal) == (len(expected[pair]), sum(a == b for a, b in expected[pair]))
    p = np.random.default_rng(0).uniform(0.1, 0.9, len(couples.row))
    equal = pairs.equal[couples.row]
    found = copies.log_ratios(p, equal, couples.which, len(couples.x), [0.3, 0.9])
    for c in range(len(couples.x)):
        mine = couples.which == c
        np.testing.assert_allclose(found[:, c], [log_ratio(p[mine], equal[mine], rate) for rate in (0.3, 0.9)])


def test_expected_agreement_by_plain_loops():
    """The truth without the groups of both workers, and the larger of the two directions."""
    votes = make_crowd(60, 7, 3, labels_per_item=5, accuracy=0.7, random_state=2).annotations
    pairs, group = label_pairs(votes), np.array([0, 0, 2, 3, 4, 5, 6])
    crowd = copies._Crowd(pairs, group, np.array([0, 1, 4]))
    item = int(np.flatnonzero(np.bincount(pairs.item[pairs.worker <= 1]) == 2)[0])  # both members labelled it
    rows = np.flatnonzero(pairs.item[pairs.a] == item)
    members = [r for r in range(len(pairs.item)) if pairs.item[r] == item and pairs.worker[r] <= 1]
    log_prior = crowd.score[item] - sum(
        crowd.part[r] for r in range(len(pairs.item)) if pairs.item[r] == item and r != members[1]
    )
    np.testing.assert_array_equal(crowd.part[members[0]], crowd.part[members[1]])  # one vote
    for row, found in zip(rows, crowd.p_equal(rows)):
        a, b = pairs.a[row], pairs.b[row]
        own = {group[pairs.worker[a]], group[pairs.worker[b]]}
        others = {
            group[pairs.worker[r]]: crowd.part[r]
            for r in range(len(pairs.item))
            if pairs.item[r] == item and group[pairs.worker[r]] not in own
        }
        tables = crowd.tables[pairs.worker[a]], crowd.tables[pairs.worker[b]]
        expected = p_equal(log_prior, list(others.values()), *tables, pairs.label[a], pairs.label[b])
        assert found == pytest.approx(expected)


def test_names_and_order_do_not_matter():
    """Workers, items and classes under other codes: the same groups."""
    votes = with_copies(make_crowd(200, 12, 3, labels_per_item=6, accuracy=0.7, random_state=4).annotations, 3, 0.9)
    rng = np.random.default_rng(0)
    item, worker, label = (rng.permutation(n) for n in (votes.n_items, votes.n_workers, votes.n_classes))
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    other = Annotations(item[votes.item], worker[votes.worker], label[votes.label], **ids)
    before, after = find_copies(votes), find_copies(other)
    assert len(before.groups()) == 1
    assert [sorted(worker[group].tolist()) for group in before.groups()] == [sorted(g) for g in after.groups()]
    assert after.n_expected == pytest.approx(before.n_expected)


def test_one_worker_of_a_group_counts_on_each_item():
    """The one with the lowest rank who labelled the item; a worker whom the fit did not see counts."""
    votes = Annotations.from_matrix([[0, 1, 1, 0], [-1, 0, 1, 1], [1, -1, 0, 0]])
    counted = without_copies(votes, np.array([0, 0, 0]), np.array([2, 1, 3]))
    assert list(zip(counted.item, counted.worker)) == [(0, 1), (0, 3), (1, 1), (1, 3), (2, 0), (2, 3)]
    assert without_copies(votes, np.full(3, -1), np.zeros(3, int)) is votes


def test_a_crowd_that_is_too_small_or_excluded():
    """Four workers, no third label, and members of a colluding group: no copies."""
    votes = with_copies(make_crowd(200, 12, 3, labels_per_item=6, accuracy=0.7, random_state=4).annotations, 3)
    assert find_copies(votes).members[[3, 12]].all()
    excluded = np.arange(13) == 12
    assert not find_copies(votes, excluded)
    assert not find_copies(votes.keep((votes.worker < 3) | (votes.worker == 12)))
    assert not find_copies(Annotations.from_triples([], [], []))


def test_different_answers_of_one_worker_are_no_evidence():
    """A worker who gave both labels to every item agrees with everybody; the copy of another one is found."""
    crowd = make_crowd(200, 12, 2, labels_per_item=6, accuracy=0.7, random_state=4).annotations
    votes = with_copies(crowd, 3)
    items = np.repeat(np.arange(200), 2)
    both = votes.with_more(items, np.full(400, 5), np.tile([0, 1], 200))
    assert [sorted(group) for group in find_copies(both).groups()] == [[3, 12]]
