"""Batches hold every label once, beside its item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.nn.batches import AnnotationBatches
from reference.slow_networks import slow_batch
from strategies import annotations, triples_of


@given(annotations(), st.integers(1, 5), st.booleans())
def test_batches_are_their_slow_twin(votes, size, shuffle):
    """Every item with a label comes once, with the labels that a loop over all triples finds on it."""
    batches = AnnotationBatches(votes, size, np.random.default_rng(0) if shuffle else None)
    seen = []
    for batch in batches:
        found = list(zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist()))
        assert found == slow_batch(triples_of(votes), batch.item.tolist())
        seen += batch.item.tolist()
    assert sorted(seen) == sorted({item for item, _, _ in triples_of(votes)})
    assert len(batches) == sum(1 for _ in batches)


def test_no_batch_has_one_item_unless_it_must(votes):
    """A last item alone joins the batch before it; asked for, items without labels are there too."""
    sizes = [len(batch.item) for batch in AnnotationBatches(votes, 2, items=np.arange(3))]
    assert sizes == [3]
    assert [len(batch.item) for batch in AnnotationBatches(votes[np.arange(12) % 3], 5)] == [5, 3]


def test_each_epoch_has_another_order(votes):
    """The generator moves on, and the same seed gives the same epochs."""
    votes = votes[np.arange(60) % 3]

    def orders():
        batches = AnnotationBatches(votes, 10, np.random.default_rng(3))
        return [np.concatenate([batch.item for batch in batches]).tolist() for _ in range(2)]

    first, again = orders(), orders()
    assert first == again and first[0] != first[1]


@pytest.mark.parametrize("items", [np.zeros(0, int), None])
def test_nothing_to_walk_through(votes, items):
    """No items, or no labels on any, are no batches."""
    silent = votes.keep(np.zeros(votes.n_annotations, bool))
    batches = AnnotationBatches(silent if items is None else votes, 4, items=items)
    assert list(batches) == [] and len(batches) == 0
