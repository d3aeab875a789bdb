"""Pseudo-annotations compared with a plain loop over pairs."""

import numpy as np
import pytest
import torch
from hypothesis import given

from manyhands import Annotations
from manyhands.classifiers import self_crowd
from manyhands.classifiers.self_crowd import predict_pseudo_annotations
from reference.slow_selection import slow_pseudo_annotations
from strategies import annotations, seeds


@pytest.mark.parametrize("numbers", [1, 40, 1 << 21])
@given(annotations(n_classes=3), seeds())
def test_pseudo_annotations_equal_the_reference(numbers, votes, seed):
    """For any size of blocks: every pair without a label of a worker with labels, its most likely label and entropy."""
    rng = np.random.default_rng(seed)
    workers = np.unique(votes.worker).astype(np.intp)
    held = votes.keep(rng.random(votes.n_annotations) < 0.5)
    table = torch.tensor(rng.normal(size=(votes.n_items, 3, len(workers)))).log_softmax(1).float()
    kept, self_crowd._BLOCK_NUMBERS = self_crowd._BLOCK_NUMBERS, numbers
    try:
        found = [*predict_pseudo_annotations(lambda item: table[torch.from_numpy(item)], workers, 3, [held, votes])]
    finally:
        self_crowd._BLOCK_NUMBERS = kept
    pairs = set(zip(votes.item.tolist(), votes.worker.tolist()))
    expected = slow_pseudo_annotations(table.double().tolist(), votes.n_items, workers.tolist(), pairs)
    rows = [
        (part.first + i, int(workers[w]), int(part.label[i, w]), float(part.entropy[i, w]))
        for part in found
        for i, w in zip(*np.nonzero(np.isfinite(part.entropy)))
    ]
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    np.testing.assert_allclose([row[3] for row in rows], [row[3] for row in expected], rtol=1e-5, atol=1e-6)


def test_the_first_label_of_a_tie_is_taken():
    log_proba = torch.tensor([0.2, 0.4, 0.4]).log().view(1, 3, 1)
    votes = Annotations(*np.zeros((3, 0), int), item_ids=[0], worker_ids=[0], classes=[0, 1, 2])
    (found,) = predict_pseudo_annotations(lambda item: log_proba, np.array([0]), 3, [votes])
    assert found.label.tolist() == [[1]]
