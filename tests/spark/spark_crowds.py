"""Crowds for the tests of Spark."""

import os
import signal
from collections import namedtuple
from contextlib import suppress
from pathlib import Path

import numpy as np

Crowd = namedtuple("Crowd", "items workers labels")


def crowd_of(n_items, n_workers=20, n_classes=3, per_item=5, seed=0):
    """Three columns of simulated labels, without repeats, in random order."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    workers = np.array([rng.permutation(n_workers)[:per_item] for _ in range(n_items)]).ravel()
    items = np.repeat(np.arange(n_items), per_item)
    skill = rng.uniform(0.5, 0.95, n_workers)[workers]
    labels = np.where(rng.random(len(items)) < skill, truth[items], rng.integers(n_classes, size=len(items)))
    order = rng.permutation(len(items))
    names = np.array([f"klass {k}" for k in range(n_classes)], object)
    return Crowd(
        [f"ïtem {i}" for i in items[order].tolist()],
        [f"w{w}" for w in workers[order].tolist()],
        names[labels[order]].tolist(),
    )


def frame_of(spark, crowd, schema="item string, worker string, label string"):
    """The columns as a DataFrame."""
    return spark.createDataFrame(list(zip(*crowd)), schema)


class Everything:
    """The task that returns a whole shard."""

    def __call__(self, shard):
        return shard.number, shard.packed.code.tolist(), shard.packed.start.tolist(), list(shard.item_ids())


class KillOnce:
    """A task that ends the executor it first runs on, with signal 9, before it runs on another one."""

    def __init__(self, task, marker):
        self.task, self.marker = task, marker

    def __call__(self, shard):
        try:
            with open(self.marker, "x"):
                pass
        except FileExistsError:
            return self.task(shard)
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(daemon[1]), signal.SIGKILL)  # the parent of Python's daemon is the executor
        return self.task(shard)


class Surroundings:
    """The task that returns where the package comes from, and what an executor has."""

    def __call__(self, shard):
        import manyhands
        from manyhands.em import kernels

        with suppress(ImportError):
            import scipy

            return type(manyhands.__loader__).__name__, kernels._fused is not None, scipy.__name__
        return type(manyhands.__loader__).__name__, kernels._fused is not None, "no scipy"
