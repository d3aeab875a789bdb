"""Mini-batches contain every label once, together with its item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.nn.batches import AnnotationBatches
from reference.slow_networks import slow_batch
from strategies import annotations, triples_of

pytestmark = pytest.mark.fast


@given(annotations(), st.integers(1, 5), st.booleans())
def test_batches_equal_the_reference(votes, size, shuffle):
    """Every item with a label comes once, with the labels that a loop over all triples finds for it."""
    batches = AnnotationBatches(votes, size, np.random.default_rng(0) if shuffle else None)
    seen = []
    for batch in batches:
        found = list(zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist()))
        assert found == slow_batch(triples_of(votes), batch.item.tolist())
        seen += batch.item.tolist()
    assert sorted(seen) == sorted({item for item, _, _ in triples_of(votes)})
    assert len(batches) == sum(1 for _ in batches)


def test_no_batch_has_a_single_item_if_it_can_be_avoided(votes):
    """A single item that is left over joins the last mini-batch; items without labels are included on request."""
    sizes = [len(batch.item) for batch in AnnotationBatches(votes, 2, items=np.arange(3))]
    assert sizes == [3]
    assert [len(batch.item) for batch in AnnotationBatches(votes[np.arange(12) % 3], 5)] == [5, 3]


def test_each_epoch_has_a_new_order(votes):
    """The same seed gives the same epochs."""
    votes = votes[np.arange(60) % 3]

    def orders():
        batches = AnnotationBatches(votes, 10, np.random.default_rng(3))
        return [np.concatenate([batch.item for batch in batches]).tolist() for _ in range(2)]

    first, again = orders(), orders()
    assert first == again and first[0] != first[1]


@pytest.mark.parametrize("items", [np.zeros(0, int), None])
def test_no_items_give_no_batches(votes, items):
    """No items, or no labels on any of them."""
    unlabelled = votes.keep(np.zeros(votes.n_annotations, bool))
    batches = AnnotationBatches(unlabelled if items is None else votes, 4, items=items)
    assert list(batches) == [] and len(batches) == 0
