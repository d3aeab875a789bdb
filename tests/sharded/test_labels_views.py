"""What a fit does to the labels of a shard first, beside plain loops."""

from collections import Counter

import numpy as np
import pytest

from manyhands.em.collusion import collapse_groups
from manyhands.sharded import labels
from manyhands.sharded.labels import InMemoryShards, View, annotations_of, item_pieces, packed_of
from manyhands.testing.crowds import easy_crowd

VOTES = easy_crowd(3, n_items=80, seed=3)[0]
MEMBERS = np.isin(np.arange(VOTES.n_workers), [2, 3, 5])


def triples_of(packed):
    """(item, worker, label) of all labels, item after item."""
    rows = zip(packed.start, packed.start[1:])
    return [(i, *divmod(int(c), packed.n_classes)) for i, (a, b) in enumerate(rows) for c in packed.code[a:b]]


def collapsed_by_loop(triples, representative):
    """The same labels with the most frequent label of the members as that of the representative."""
    found = [triple for triple in triples if not MEMBERS[triple[1]]]
    for item in {item for item, *_ in triples}:
        votes = Counter(label for i, worker, label in triples if i == item and MEMBERS[worker]).most_common()
        if votes and (len(votes) == 1 or votes[0][1] > votes[1][1]):
            found.append((item, representative, votes[0][0]))
    return sorted(found)


@pytest.mark.parametrize("representative", [2, 5])
def test_a_group_is_one_voter_in_every_shard(representative):
    """The representative is the one of the whole crowd, whoever labels most in a shard."""
    shards = InMemoryShards.from_annotations(VOTES, 4)
    view = View(VOTES.n_workers, MEMBERS, representative)
    for number in range(4):
        packed = shards.shard(number).packed
        assert triples_of(view(packed)) == collapsed_by_loop(triples_of(packed), representative)
    whole = packed_of(collapse_groups(annotations_of(shards.packed), MEMBERS, representative))
    together = np.concatenate([view(shards.shard(number).packed).code for number in range(4)])
    assert together.tolist() == whole.code.tolist()


def test_merged_workers_keep_their_labels_and_items():
    """Only the worker of a label changes; after a group was collapsed too."""
    packed = InMemoryShards.from_annotations(VOTES, 1).packed
    group = np.arange(VOTES.n_workers) % 3
    merged = View(3, group=group)(packed)
    assert merged.n_workers == 3
    assert triples_of(merged) == [(i, group[w], k) for i, w, k in triples_of(packed)]
    both = View(3, MEMBERS, 5, group)(packed)
    assert triples_of(both) == [(i, group[w], k) for i, w, k in collapsed_by_loop(triples_of(packed), 5)]


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_pieces_are_all_items_in_order(monkeypatch, at_once):
    """Without gap or overlap, with items that have no labels."""
    monkeypatch.setattr(labels, "_LABELS_AT_ONCE", at_once)
    packed = packed_of(VOTES.keep(VOTES.item % 5 > 0))
    found, edge = [], 0
    for first, last, part in item_pieces(packed):
        assert first == edge < last and part.n_items == last - first
        found += [(first + i, w, k) for i, w, k in triples_of(part)]
        edge = last
    assert found == triples_of(packed) and edge == packed.n_items
