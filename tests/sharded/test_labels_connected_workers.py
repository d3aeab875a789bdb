"""Groups of workers that are connected by common items, shard by shard."""

import numpy as np
import pytest

from manyhands.annotations import Annotations
from manyhands.io.write.results import count_components
from manyhands.sharded.labels import InMemoryShards, join_by_items, join_groups, no_groups


def plain_groups(annotations):
    """By joining sets until nothing changes."""
    groups = [{worker} for worker in range(annotations.n_workers)]
    for item in range(annotations.n_items):
        own = set(annotations.worker[annotations.start[item] : annotations.start[item + 1]].tolist())
        touched = [group for group in groups if group & own]
        groups = [group for group in groups if not group & own] + ([set().union(*touched)] if touched else [])
    return {frozenset(group) for group in groups}


def as_sets(groups):
    """Numbers of groups as sets of workers."""
    return {frozenset(np.flatnonzero(groups == number).tolist()) for number in np.unique(groups)}


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_shards", [1, 4, 256])
def test_they_are_those_of_all_items_at_once(seed, n_shards):
    """Against a plain loop, however the items lie in shards."""
    rng = np.random.default_rng(seed)
    n_items, n_workers = int(rng.integers(1, 40)), int(rng.integers(1, 30))
    n_labels = int(rng.integers(1, 50))
    worker = rng.integers(0, n_workers, n_labels)
    item = 2 * rng.integers(0, n_items, n_labels) + worker % 2  # two halves that never meet
    crowd = Annotations.from_triples(item, worker, rng.integers(0, 2, n_labels))
    shards = InMemoryShards.from_annotations(crowd, n_shards=n_shards)
    found = no_groups(crowd.n_workers)
    for number in range(n_shards):
        found = join_groups(found, join_by_items(no_groups(crowd.n_workers), shards.shard(number).packed))
    assert as_sets(found) == plain_groups(crowd)
    assert len(np.unique(found)) == count_components(crowd)


def test_items_without_labels_join_nobody():
    """At the beginning, in the middle and at the end."""
    shards = InMemoryShards.from_annotations(Annotations.from_matrix([[0, -1], [-1, 0], [1, -1]], missing=-1))
    start = np.array([0, 0, 1, 1, 2, 3, 3])
    code = np.array([0, 2, 1], np.int32)
    packed = type(shards.packed)(code, None, start, 2, 2)
    assert join_by_items(no_groups(2), packed).tolist() == [0, 1]
