"""Small simulated crowds for the checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations

Truth = npt.NDArray[np.int64]


def easy_crowd(
    n_classes: int,
    *,
    n_items: int = 60,
    n_workers: int = 10,
    per_item: int = 5,
    accuracy: float = 0.85,
    n_guessing: int = 0,
    seed: int = 0,
) -> tuple[Annotations, Truth]:
    """Workers who are right with one probability and err evenly, the first `n_guessing` of whom only guess."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_items) % n_classes)
    item = np.repeat(np.arange(n_items), per_item)
    worker = rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item].ravel()
    right = rng.random(len(item)) < np.where(worker < n_guessing, 1 / n_classes, accuracy)
    wrong = (truth[item] + rng.integers(1, max(n_classes, 2), len(item))) % n_classes
    label = np.where(right, truth[item], wrong)
    return coded(item, worker, label, n_items=n_items, n_workers=n_workers, n_classes=n_classes), truth


def feature_crowd(
    n_classes: int, *, n_items: int = 60, n_features: int = 4, seed: int = 0, **others: Any
) -> tuple[npt.NDArray[np.float64], Annotations, Truth]:
    """Well separated classes in a few features, with the labels of `easy_crowd`."""
    votes, truth = easy_crowd(n_classes, n_items=n_items, seed=seed, **others)
    return features_of(truth, n_features, seed), votes, truth


def features_of(truth: Truth, n_features: int = 4, seed: int = 0) -> npt.NDArray[np.float64]:
    """Rows around a centre for each class; the centres depend on nothing but the numbers of the classes."""
    centre = np.random.default_rng(99).normal(0, 2.5, (64, n_features))
    return centre[truth] + np.random.default_rng(seed + 1).normal(0, 0.5, (len(truth), n_features))


def hard_crowd(n_classes: int) -> Annotations:
    """Few labels of little worth, so that starts end in different places and EM takes its time."""
    return easy_crowd(n_classes, n_items=50, n_workers=14, per_item=3, accuracy=0.55, seed=5)[0]


def thin_crowds(n_classes: int) -> dict[str, Annotations]:
    """The smallest crowds there are, by name."""
    pairs = np.arange(12)
    label = pairs % n_classes
    return {
        "one label": Annotations.from_triples(["i"], ["w"], ["k"]),
        "one item": Annotations.from_triples(["i"] * 3, ["a", "b", "c"], ["k", "k", "l"]),
        "one item and one class": Annotations.from_triples(["i"] * 3, ["a", "b", "c"], ["k"] * 3),
        "one worker": Annotations.from_triples(pairs, ["w"] * 12, label),
        "one class": Annotations.from_matrix(np.zeros((4, 3), int)),
        "one class of two in use": Annotations.from_matrix(np.zeros((4, 3), int), classes=[0, 1]),
        "one label per item": Annotations.from_triples(pairs, pairs, label),
        "a class nobody chose": Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [0] * 4, classes=range(n_classes)),
        "a tie": Annotations.from_matrix([[0, 1], [1, 0]]),
        "a silent worker and item": Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]]),
        "two crowds without contact": Annotations.from_triples(
            np.repeat(np.arange(8), 2), np.arange(16) % 2 + 2 * (np.arange(16) // 8), np.repeat(np.arange(8) % 2, 2)
        ),
    }


def with_silence(votes: Annotations) -> Annotations:
    """The same labels with one more item and one more worker, about whom nothing is known."""
    return Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=[*votes.item_ids.tolist(), "silent item"],
        worker_ids=[*votes.worker_ids.tolist(), "silent worker"],
        classes=votes.classes,
    )


def coded(
    item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike, *, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    return Annotations(
        item,
        worker,
        label,
        item_ids=[f"item {i:04d}" for i in range(n_items)],
        worker_ids=[f"worker {w:04d}" for w in range(n_workers)],
        classes=[f"class {k:02d}" for k in range(n_classes)],
    )


def columns_of(votes: Annotations) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    return [(votes.item_ids, votes.item), (votes.worker_ids, votes.worker), (votes.classes, votes.label)]


def arrays_of(votes: Annotations) -> list[npt.NDArray[Any]]:
    return [votes.item, votes.worker, votes.label, votes.item_ids, votes.worker_ids, votes.classes]
