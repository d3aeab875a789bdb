"""Seconds per epoch of the network methods, with and without a layer per worker, as JSON.

    python benchmarks/learning.py [threads]

10,000 items x 512 features, 5 labels per item, 8 classes, a perceptron of 128 hidden units, batches of 512 items; the
least of 15 epochs, at 100, 1,000 and 10,000 workers. Methods take turns, so that a busy machine slows them all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

from manyhands import Annotations
from manyhands.nn.backbones import mlp
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.inputs import ArrayRows
from manyhands.nn.losses import negative_log_likelihood
from manyhands.nn.networks import as_tensor
from manyhands.nn.noise_layers import Confusion, CrowdLogits
from manyhands.nn.train import descend, train

N_ITEMS, N_FEATURES, N_CLASSES, PER_ITEM, BATCH, N_EPOCHS = 10_000, 512, 8, 5, 512, 15


def main(threads: int) -> dict[str, dict[str, float]]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    return {f"{n_workers} workers": _measure(n_workers) for n_workers in (100, 1000, 10_000)}


def _measure(n_workers: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    rows = ArrayRows(rng.normal(size=(N_ITEMS, N_FEATURES)).astype(np.float32))
    item = np.repeat(np.arange(N_ITEMS), PER_ITEM)
    ids = {"item_ids": np.arange(N_ITEMS), "worker_ids": np.arange(n_workers), "classes": np.arange(N_CLASSES)}
    label = rng.integers(0, N_CLASSES, len(item))
    votes = Annotations(item, rng.integers(0, n_workers, len(item)), label, **ids)
    batches = AnnotationBatches(votes, BATCH, rng)
    epochs = {
        "network alone": _epoch(rows, batches, None),
        "crowd layer, mw": _epoch(rows, batches, CrowdLogits(n_workers, N_CLASSES, "mw")),
        "crowd layer, vw": _epoch(rows, batches, CrowdLogits(n_workers, N_CLASSES, "vw")),
        "confusion, softmax": _epoch(rows, batches, Confusion(n_workers, N_CLASSES, "softmax")),
        "confusion, softplus": _epoch(rows, batches, Confusion(n_workers, N_CLASSES, "softplus", None)),
    }
    least = dict.fromkeys(epochs, float("inf"))
    for _ in range(N_EPOCHS):
        for name, epoch in epochs.items():
            start = time.perf_counter()
            epoch()
            least[name] = min(least[name], time.perf_counter() - start)
    return {name: round(seconds, 4) for name, seconds in least.items()}


def _epoch(rows: ArrayRows, batches: AnnotationBatches, noise: torch.nn.Module | None) -> Callable[[], object]:
    network = mlp((N_FEATURES, 128, N_CLASSES))
    modules = [network] if noise is None else [network, noise]
    optimizer = torch.optim.Adam([p for module in modules for p in module.parameters()])
    truth = torch.randint(N_CLASSES, (N_ITEMS,))

    def step(batch: Batch) -> torch.Tensor:
        logits = network(as_tensor(rows, batch.item, "cpu"))
        if noise is None:
            return descend(optimizer, F.cross_entropy(logits, truth[batch.item]))
        return descend(optimizer, negative_log_likelihood(noise(logits.log_softmax(1), batch)))

    return lambda: train(step, batches, max_epochs=1)


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2), indent=1))
