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
    n_spammers: int = 0,
    seed: int = 0,
) -> tuple[Annotations, Truth]:
    """Simulate one-coin workers of equal accuracy.

    Parameters
    ----------
    n_classes : int
        Number of classes, of equal size.
    n_items : int, default=60
        Number of items.
    n_workers : int, default=10
        Number of workers.
    per_item : int, default=5
        Number of labels of each item.
    accuracy : float, default=0.85
        Accuracy of the workers.
    n_spammers : int, default=0
        Number of workers, the first ones, whose labels are random.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    votes : Annotations
        The labels.
    truth : ndarray of int of shape (n_items,)
        True class codes.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_items) % n_classes)
    item = np.repeat(np.arange(n_items), per_item)
    worker = rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item].ravel()
    right = rng.random(len(item)) < np.where(worker < n_spammers, 1 / n_classes, accuracy)
    wrong = (truth[item] + rng.integers(1, max(n_classes, 2), len(item))) % n_classes
    label = np.where(right, truth[item], wrong)
    return crowd_from_codes(item, worker, label, n_items=n_items, n_workers=n_workers, n_classes=n_classes), truth


def feature_crowd(
    n_classes: int, *, n_items: int = 60, n_features: int = 4, seed: int = 0, **others: Any
) -> tuple[npt.NDArray[np.float64], Annotations, Truth]:
    """Simulate features of well separated classes, with the labels of `easy_crowd`.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    n_items : int, default=60
        Number of items.
    n_features : int, default=4
        Number of features.
    seed : int, default=0
        Seed of features and labels.
    **others : object
        Further parameters of `easy_crowd`.

    Returns
    -------
    X : ndarray of shape (n_items, n_features)
        Features.
    votes : Annotations
        The labels.
    truth : ndarray of int of shape (n_items,)
        True class codes.
    """
    votes, truth = easy_crowd(n_classes, n_items=n_items, seed=seed, **others)
    return features_of(truth, n_features, seed), votes, truth


def features_of(truth: Truth, n_features: int = 4, seed: int = 0) -> npt.NDArray[np.float64]:
    """Draw features around the centre of each item's class.

    Parameters
    ----------
    truth : ndarray of int of shape (n_items,)
        True class codes; the centres depend on these only, not on the seed.
    n_features : int, default=4
        Number of features.
    seed : int, default=0
        Seed of the deviations from the centres.

    Returns
    -------
    ndarray of shape (n_items, n_features)
        Features.
    """
    centre = np.random.default_rng(99).normal(0, 2.5, (64, n_features))
    return centre[truth] + np.random.default_rng(seed + 1).normal(0, 0.5, (len(truth), n_features))


def hard_crowd(n_classes: int) -> Annotations:
    """Simulate few labels of low accuracy, so that EM converges slowly and restarts have different optima.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    Annotations
        The labels.
    """
    return easy_crowd(n_classes, n_items=50, n_workers=14, per_item=3, accuracy=0.55, seed=5)[0]


def degenerate_crowds(n_classes: int) -> dict[str, Annotations]:
    """List degenerate crowds: a single item, worker, class or label, ties, unused classes, disconnected parts.

    Parameters
    ----------
    n_classes : int
        Number of classes where the crowd allows several.

    Returns
    -------
    dict of str to Annotations
        The crowds by name.
    """
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
        "an unused class": Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [0] * 4, classes=range(n_classes)),
        "a tie": Annotations.from_matrix([[0, 1], [1, 0]]),
        "a worker and an item without labels": Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]]),
        "two disconnected crowds": Annotations.from_triples(
            np.repeat(np.arange(8), 2), np.arange(16) % 2 + 2 * (np.arange(16) // 8), np.repeat(np.arange(8) % 2, 2)
        ),
    }


def with_unlabelled(votes: Annotations) -> Annotations:
    """Add an item and a worker without labels.

    Parameters
    ----------
    votes : Annotations
        The crowd's labels.

    Returns
    -------
    Annotations
        The same labels, with one more item and one more worker at the end.
    """
    return Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=[*votes.item_ids.tolist(), "silent item"],
        worker_ids=[*votes.worker_ids.tolist(), "silent worker"],
        classes=votes.classes,
    )


def crowd_from_codes(
    item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike, *, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    """Build annotations from codes, with text as ids and classes.

    Parameters
    ----------
    item : array-like of int of shape (n_annotations,)
        Item codes.
    worker : array-like of int of shape (n_annotations,)
        Worker codes.
    label : array-like of int of shape (n_annotations,)
        Class codes.
    n_items : int
        Number of items.
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.

    Returns
    -------
    Annotations
        The annotations.
    """
    return Annotations(
        item,
        worker,
        label,
        item_ids=[f"item {i:04d}" for i in range(n_items)],
        worker_ids=[f"worker {w:04d}" for w in range(n_workers)],
        classes=[f"class {k:02d}" for k in range(n_classes)],
    )


def columns_of(votes: Annotations) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """List the three columns of annotations.

    Parameters
    ----------
    votes : Annotations
        The crowd's labels.

    Returns
    -------
    list of tuple of (ids, codes)
        Items, workers and labels.
    """
    return [(votes.item_ids, votes.item), (votes.worker_ids, votes.worker), (votes.classes, votes.label)]


def arrays_of(votes: Annotations) -> list[npt.NDArray[Any]]:
    """List all arrays of annotations, to test whether they were modified.

    Parameters
    ----------
    votes : Annotations
        The crowd's labels.

    Returns
    -------
    list of ndarray
        Codes and ids.
    """
    return [votes.item, votes.worker, votes.label, votes.item_ids, votes.worker_ids, votes.classes]
