"""Colluding groups: found where they were planted, nowhere else, and then collapsed."""

import numpy as np
import pytest
from hypothesis import given

from manyhands import Annotations
from manyhands.em import collusion
from manyhands.em.collusion import collapse_groups, find_colluding_groups
from manyhands.simulate import make_crowd
from strategies import annotations, triples_of


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("bad_share", [0.3, 0.5])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_shared_answers_are_found(n_classes, bad_share, seed):
    """Exactly the planted group, with perfect agreement where much less was expected."""
    crowd = make_crowd(n_classes=n_classes, bad="colluding", bad_share=bad_share, random_state=seed)
    group = find_colluding_groups(crowd.annotations)
    assert np.mean(group.members == crowd.is_bad) > 0.95
    assert group.agreement > 0.97 and group.expected < 0.75 and group.z > 10


def test_members_with_few_labels_are_found_too():
    """Some workers have far more labels than others; members with few are found through those with many."""
    crowd = make_crowd(bad="colluding", bad_share=0.3, activity="zipf", random_state=0)
    np.testing.assert_array_equal(find_colluding_groups(crowd.annotations).members, crowd.is_bad)


@pytest.mark.parametrize("bad", ["random", "constant", "inverted", "careless"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_independent_bad_workers_are_no_group(n_classes, bad):
    """Spammers of one class agree perfectly, but their label distribution explains it."""
    crowd = make_crowd(n_classes=n_classes, bad=bad, bad_share=0.5, random_state=0)
    assert find_colluding_groups(crowd.annotations) is None


def test_a_preferred_class_explains_any_amount_of_agreement():
    """More than ten thousand pairs of equal labels are no more evidence than a few, also with few labels per worker."""
    crowd = make_crowd(2000, 400, 4, labels_per_item=10, bad="constant", bad_share=0.4, random_state=0)
    assert find_colluding_groups(crowd.annotations) is None


@pytest.mark.parametrize("kind", ["honest", "confusion", "glad", "difficulty"])
def test_independent_workers_are_no_group(kind):
    """Not even where hard items make all of them err together."""
    for seed in range(3):
        assert (
            find_colluding_groups(make_crowd(kind=kind, n_classes=4, spread=0.1, random_state=seed).annotations) is None
        )


def test_experts_are_no_group():
    """They agree with one another, but also with all others."""
    accuracy = np.where(np.arange(40) < 12, 0.97, 0.6)
    for seed in range(3):
        assert find_colluding_groups(make_crowd(accuracy=accuracy, random_state=seed).annotations) is None


def test_names_and_order_do_not_matter():
    """Workers, items and classes under other codes: the same group, the same figures."""
    crowd = make_crowd(n_classes=3, bad="colluding", bad_share=0.3, random_state=3)
    votes, rng = crowd.annotations, np.random.default_rng(0)
    item, worker, label = (rng.permutation(n) for n in (votes.n_items, votes.n_workers, votes.n_classes))
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    other = Annotations(item[votes.item], worker[votes.worker], label[votes.label], **ids)
    before, after = find_colluding_groups(votes), find_colluding_groups(other)
    np.testing.assert_array_equal(after.members[worker], before.members)
    assert [after.agreement, after.expected, after.z] == pytest.approx([before.agreement, before.expected, before.z])
    collapsed, renamed = collapse_groups(votes, before.members), collapse_groups(other, after.members)
    outside = ~before.members[collapsed.worker]
    expected = zip(item[collapsed.item].tolist(), label[collapsed.label].tolist(), outside.tolist())
    found = zip(renamed.item.tolist(), renamed.label.tolist(), (~after.members[renamed.worker]).tolist())
    assert sorted(expected) == sorted(found)


def test_a_sample_of_pairs_is_enough(monkeypatch):
    """With fewer items and fewer labels of each the group is still found, the same in every run."""
    monkeypatch.setattr(collusion, "_MAX_PAIRS", 20_000)
    crowd = make_crowd(150, 60, labels_per_item=60, bad="colluding", bad_share=0.3, random_state=0)
    pairs = collusion.label_pairs(crowd.annotations)
    assert 15_000 < len(pairs.a) <= 20_000 and np.bincount(pairs.item).max() == 30
    group = find_colluding_groups(crowd.annotations)
    np.testing.assert_array_equal(group.members, crowd.is_bad)
    assert find_colluding_groups(crowd.annotations).z == group.z


def test_pairs_are_those_of_a_loop():
    """Items with two labels are left out, and so are two labels of one worker."""
    item, worker, label = [0, 0, 1, 1, 1, 3, 3, 3], [0, 1, 0, 2, 4, 1, 1, 2], [0, 1, 0, 0, 1, 1, 0, 1]
    votes = Annotations(item, worker, label, item_ids=range(4), worker_ids=range(5), classes=range(2))
    pairs = collusion.label_pairs(votes)
    who = pairs.workers[pairs.worker]
    assert list(zip(who[pairs.a].tolist(), who[pairs.b].tolist())) == [(0, 2), (0, 4), (2, 4), (1, 2), (1, 2)]
    assert pairs.equal.tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (1, 40), (40, 1), (40, 2), (3, 5)])
def test_too_few_labels_give_no_group(shape):
    """One worker, one item, two labels per item, no labels at all: no group."""
    assert find_colluding_groups(Annotations.from_matrix(np.zeros(shape, int))) is None


@given(annotations(max_workers=8, max_labels=60))
def test_small_crowds_pass(votes):
    """Repeated pairs, workers without labels, a single class: no group, no warning, no error."""
    assert find_colluding_groups(votes) is None


def test_a_group_is_collapsed_into_one_vote():
    """The plurality by the member with the most labels; nothing where the group is split; others are unchanged."""
    votes = Annotations.from_matrix(
        [
            #  outsiders | group
            [0, 1, 2, 2, 1],  # two against one
            [0, 1, 2, 1, -1],  # split
            [0, 1, -1, 0, -1],  # one member alone
            [0, 1, -1, -1, -1],  # nobody
            [0, 1, 0, 1, 2],  # split three ways
        ]
    )
    collapsed = collapse_groups(votes, np.array([False, False, True, True, True]))
    outsiders = [(i, w, w) for i in range(5) for w in range(2)]
    assert triples_of(collapsed) == sorted([*outsiders, (0, 3, 2), (2, 3, 0)])
    for ids in ("item_ids", "worker_ids", "classes"):
        np.testing.assert_array_equal(getattr(collapsed, ids), getattr(votes, ids))


@given(annotations())
def test_an_empty_group_changes_nothing(votes):
    """An empty group changes nothing, and a group of one keeps at most one label per item."""
    assert collapse_groups(votes, np.zeros(votes.n_workers, bool)) == votes
    first = np.arange(votes.n_workers) == 0
    collapsed = collapse_groups(votes, first)
    said = {(i, k) for i, w, k in triples_of(votes) if w == 0}
    assert {(i, k) for i, w, k in triples_of(collapsed) if w == 0} <= said
    assert np.sum(collapsed.worker != 0) == np.sum(votes.worker != 0)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_good_workers_beside_spammers_are_no_group(n_classes):
    """Perfect workers agree fully; so, nearly, do spammers of one class, and they are no reference."""
    rng = np.random.default_rng(0)
    truth, item = rng.integers(0, n_classes, 400), np.repeat(np.arange(400), 7)
    worker = np.concatenate([rng.choice(30, 7, replace=False) for _ in range(400)])
    lazy = np.where(rng.random(len(item)) < 0.7, 0, rng.integers(0, n_classes, len(item)))
    votes = Annotations.from_triples(item, worker, np.where(worker < 15, truth[item], lazy))
    assert find_colluding_groups(votes) is None


def test_random_workers_are_no_reference():
    """Seven of ten answer at random; their agreement is chance, and no evidence against the others."""
    options = {"labels_per_item": 5, "accuracy": 0.95, "bad": "random", "bad_share": 0.7}
    crowds = [make_crowd(400, 40, 4, random_state=seed, **options) for seed in range(9100, 9120)]
    assert all(find_colluding_groups(crowd.annotations) is None for crowd in crowds)
