"""Time and memory of selecting pseudo-annotations, against training on them: `python benchmarks/choosing.py`.

One round of Self-Crowd with a warm start, on a simulated crowd of 2.5 labels per item; every round adds 1.8 % of all
pairs. Seconds are CPU seconds of one thread in one run, so that the ratio holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import resource
import time
from unittest.mock import patch

import numpy as np

from manyhands import Annotations, SelfCrowd
from manyhands.classifiers.noise_layer import NoiseModel
from manyhands.classifiers.trace_reg import TraceRegularisedNoise


def make_crowd(n_items: int, n_workers: int, n_classes: int) -> tuple[np.ndarray, Annotations]:
    """Gaussian classes, and workers with an accuracy of 0.7."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, n_items)
    X = (rng.normal(0, 1, (n_classes, 20))[truth] + rng.normal(size=(n_items, 20))).astype(np.float32)
    n = round(2.5 * n_items)
    item, worker = rng.integers(0, n_items, n), rng.integers(0, n_workers, n)
    label = np.where(rng.random(n) < 0.7, truth[item], rng.integers(0, n_classes, n))
    ids = {"item_ids": np.arange(n_items), "worker_ids": np.arange(n_workers), "classes": np.arange(n_classes)}
    return X, Annotations(item, worker, label, **ids)


def timed(seconds: list[float], function):  # type: ignore[no-untyped-def]
    """The function, which appends the CPU seconds of every call to the list."""

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
    selecting: list[float] = []
    training: list[float] = []
    peaks: list[float] = []

    def select(self, *arguments):  # type: ignore[no-untyped-def]
        found = timed_select(self, *arguments)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return found

    timed_select = timed(selecting, SelfCrowd._select)
    model = SelfCrowd.plus(base=given.base, rounds=1, max_epochs=2, warm_start=True, batch_size=256, random_state=0)
    with (
        patch.object(SelfCrowd, "_select", select),
        patch.object(NoiseModel, "train", timed(training, NoiseModel.train)),
        patch.object(TraceRegularisedNoise, "train", timed(training, TraceRegularisedNoise.train)),
    ):
        model.fit(X, votes)
    n_pairs = given.items * given.workers
    print(f"{n_pairs:,} pairs, {given.classes} classes, base {given.base}")
    n_selected = model.rounds_[1]["n_selected"]
    print(f"selecting {n_selected:,.0f} of them: {selecting[0]:.1f} s, up to {peaks[0] - before:.0f} MB")
    epochs = sum(epoch["round"] == 1 for epoch in model.history_)
    print(f"training on them, {epochs} epochs from the network before: {training[1]:.1f} s")


if __name__ == "__main__":
    main()
