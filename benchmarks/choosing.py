"""What choosing guesses costs beside training on them, and the memory of it: `python benchmarks/choosing.py`.

One round of Self-Crowd with a warm start, on a drawn crowd of 2.5 labels per item; every round adds 1.8 % of all pairs.
Seconds are processor seconds of one thread in one run, so that the ratio holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import resource
import time
from unittest.mock import patch

import numpy as np

from manyhands import Annotations, SelfCrowd
from manyhands.classifiers.noise_layer import NoiseLayerClassifier
from manyhands.classifiers.trace_reg import TraceReg


def make_crowd(n_items: int, n_workers: int, n_classes: int) -> tuple[np.ndarray, Annotations]:
    """Gaussian classes, and workers who are right in seven of ten cases."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, n_items)
    X = (rng.normal(0, 1, (n_classes, 20))[truth] + rng.normal(size=(n_items, 20))).astype(np.float32)
    n = round(2.5 * n_items)
    item, worker = rng.integers(0, n_items, n), rng.integers(0, n_workers, n)
    label = np.where(rng.random(n) < 0.7, truth[item], rng.integers(0, n_classes, n))
    ids = {"item_ids": np.arange(n_items), "worker_ids": np.arange(n_workers), "classes": np.arange(n_classes)}
    return X, Annotations(item, worker, label, **ids)


def timed(seconds: list[float], function):  # type: ignore[no-untyped-def]
    """The function, and the processor seconds of every call in the list."""

    def call(*arguments, **others):  # type: ignore[no-untyped-def]
        began = time.process_time()
        found = function(*arguments, **others)
        seconds.append(time.process_time() - began)
        return found

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--base", default="crowd-layer")
    given = parser.parse_args()
    X, votes = make_crowd(given.items, given.workers, given.classes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    choosing: list[float] = []
    training: list[float] = []
    peaks: list[float] = []

    def choose(self, *arguments):  # type: ignore[no-untyped-def]
        found = chosen(self, *arguments)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return found

    chosen = timed(choosing, SelfCrowd._choose)
    model = SelfCrowd(base=given.base, rounds=1, max_epochs=2, warm_start=True, batch_size=256, random_state=0)
    with (
        patch.object(SelfCrowd, "_choose", choose),
        patch.object(NoiseLayerClassifier, "_learn_layers", timed(training, NoiseLayerClassifier._learn_layers)),
        patch.object(TraceReg, "_learn_layers", timed(training, TraceReg._learn_layers)),
    ):
        model.fit(X, votes)
    n_pairs = given.items * given.workers
    print(f"{n_pairs:,} pairs, {given.classes} classes, base {given.base}")
    print(
        f"choosing {model.rounds_[1]['n_selected']:,.0f} of them: {choosing[0]:.1f} s, up to {peaks[0] - before:.0f} MB"
    )
    epochs = sum(epoch["round"] == 1 for epoch in model.history_)
    print(f"training on them, {epochs} epochs from the network before: {training[1]:.1f} s")


if __name__ == "__main__":
    main()
