"""Time and memory of an epoch of CrowdInG's adversarial training, against one of the crowd layer.

`python benchmarks/generating.py`: a simulated crowd of 2.5 labels per item. Seconds are CPU seconds of one run, so that
the ratio holds on a busy machine too; memory is the peak above that before the fits.
"""

from __future__ import annotations

import argparse
import resource
import time

from choosing import make_crowd

from manyhands import CrowdInG
from manyhands.classifiers import CrowdLayer


def seconds(method, X, votes) -> float:  # type: ignore[no-untyped-def]
    began = time.process_time()
    method.fit(X, votes)
    return time.process_time() - began


def epoch_of_a_layer(X, votes, **parameters) -> float:  # type: ignore[no-untyped-def]
    one, three = (seconds(CrowdLayer(max_epochs=n, **parameters), X, votes) for n in (1, 3))
    return (three - one) / 2


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--classes", type=int, default=10)
    given = parser.parse_args()
    X, votes = make_crowd(given.items, given.workers, given.classes)
    shared = {"patience": None, "random_state": 0}
    seconds(CrowdLayer(max_epochs=1, **shared), X[:1000], votes[:1000])  # imports and caches
    before = peak()
    layer = epoch_of_a_layer(X, votes, **shared)
    as_large = epoch_of_a_layer(X, votes, batch_size=256, **shared)
    few = {
        "pretraining": "crowd-layer",
        "members": 1,
        "max_epochs": 1,
        "generator__epochs": 0,
        "discriminator__epochs": 0,
    }
    start = seconds(CrowdInG.plus(**few, **shared, adversarial__epochs=1), X, votes)
    game = (seconds(CrowdInG.plus(**few, **shared, adversarial__epochs=3), X, votes) - start) / 2
    print(f"{given.items:,} items, {given.workers:,} workers, {given.classes} classes, {votes.n_annotations:,} labels")
    print(f"an epoch of the crowd layer {layer:.2f} s ({as_large:.2f} s in batches of 256, as below)")
    print(
        f"an epoch of the adversarial training {game:.2f} s: "
        f"{game / layer:.1f} times as long ({game / as_large:.1f} times)"
    )
    print(f"peak memory {peak() - before:.0f} MB above the start")


if __name__ == "__main__":
    main()
