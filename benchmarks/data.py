"""The crowd that every speed is measured on: five labels per item, sqrt(n) workers of very unequal activity.

Rows come in random order as ready-made integer codes, so that what is timed is aggregation and not parsing.
"""

from __future__ import annotations

import numpy as np

LABELS_PER_ITEM = 5


def make_triples(n_labels: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(item, worker, label) codes; a tenth of the workers answer at random."""
    rng = np.random.default_rng(seed)
    n_items, n_workers = n_labels // LABELS_PER_ITEM, int(np.sqrt(n_labels))
    truth = rng.integers(0, n_classes, n_items, dtype=np.int32)
    activity = 1.0 / (np.arange(n_workers) + 2.7)
    edges = np.cumsum(activity / activity.sum())
    right = rng.uniform(0.6, 0.95, n_workers)
    right[rng.random(n_workers) < 0.1] = 1.0 / n_classes

    item = np.repeat(np.arange(n_items, dtype=np.int32), LABELS_PER_ITEM)
    rng.shuffle(item)
    worker = np.minimum(np.searchsorted(edges, rng.random(len(item))), n_workers - 1).astype(np.int32)
    label = truth[item]
    wrong = rng.random(len(item)) > right[worker]
    label[wrong] = (label[wrong] + rng.integers(1, n_classes, wrong.sum(), dtype=np.int32)) % n_classes
    return item, worker, label
