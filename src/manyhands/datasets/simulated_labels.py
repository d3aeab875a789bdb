"""Simulated labels on given items, and a simulated crowd with features as a `CrowdDataset`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.simulate import Crowd, make_crowd
from manyhands.simulate.workers import Accuracy


def worker_options(
    kind: str,
    accuracy: Accuracy,
    spread: float,
    bad: str,
    bad_share: float,
    target: int | None,
    activity: str | Array,
) -> dict[str, Any]:
    """Return the parameters of `manyhands.simulate.make_crowd` that describe the workers.

    Parameters
    ----------
    kind : str
        How the workers err.
    accuracy : float, (float, float) or array
        Accuracy of the workers.
    spread : float
        Standard deviation of the workers around one accuracy.
    bad : str
        What the bad workers do.
    bad_share : float
        Share of bad workers.
    target : int or None
        Class for "constant" and "targeted" workers.
    activity : str or array
        How labels are distributed over workers.

    Returns
    -------
    dict of str to object
        The parameters by name.
    """
    return {
        "kind": kind,
        "accuracy": accuracy,
        "spread": spread,
        "bad": bad,
        "bad_share": bad_share,
        "target": target,
        "activity": activity,
    }


def label_items(
    y: Array, n_workers: int, labels_per_item: float, rng: np.random.Generator, workers: dict[str, Any]
) -> tuple[Crowd, Annotations]:
    """Simulate labels for items of given truth.

    `make_crowd` draws the truth of its items, so a crowd with more items is simulated, and each given item becomes the
    next simulated one of its class.

    Parameters
    ----------
    y : ndarray of int, shape (n_items,)
        Class of each item.
    n_workers : int
        Number of workers.
    labels_per_item : float
        Mean number of labels of an item.
    rng : numpy.random.Generator
        Source of randomness.
    workers : dict of str to object
        Parameters of the workers, see `worker_options`.

    Returns
    -------
    crowd : Crowd
        The simulated crowd, with the truth about its workers.
    annotations : Annotations
        Its labels of the given items.
    """
    n_of_class = np.bincount(y)
    shares = n_of_class / len(y)
    n_simulated = len(y) + int(5 * np.sqrt(len(y) * len(shares))) + 5
    while True:
        crowd = make_crowd(
            n_simulated, n_workers, len(shares), labels_per_item, class_shares=shares, random_state=rng, **workers
        )
        if np.all(np.bincount(crowd.truth, minlength=len(shares)) >= n_of_class):
            break
        n_simulated *= 2  # less than once in a million draws
    planted = np.argsort(crowd.truth, kind="stable")
    start = np.searchsorted(crowd.truth[planted], np.arange(len(shares)))
    nth = np.empty(len(y), np.int64)  # number of items of the same class before an item
    nth[np.argsort(y, kind="stable")] = np.arange(len(y)) - np.repeat(np.cumsum(n_of_class) - n_of_class, n_of_class)
    chosen = crowd.annotations[planted[start[y] + nth]]
    return crowd, Annotations(
        chosen.item,
        chosen.worker,
        chosen.label,
        item_ids=np.arange(len(y)),
        worker_ids=chosen.worker_ids,
        classes=chosen.classes,
    )


def as_dataset(
    name: str,
    description: str,
    crowd: Crowd,
    annotations: Annotations,
    X: Array,
    y: Array,
    X_test: Array,
    y_test: Array,
    class_names: tuple[str, ...] | None,
) -> CrowdDataset:
    """Return a simulated crowd with features as a data set.

    Parameters
    ----------
    name : str
        Name of the data set.
    description : str
        One sentence.
    crowd : Crowd
        The simulated crowd, for the truth about its workers.
    annotations : Annotations
        Its labels of the items in `X`.
    X : ndarray of shape (n_items, ...)
        Features.
    y : ndarray of shape (n_items,)
        Classes.
    X_test : ndarray of shape (n_test, ...)
        Features of test items.
    y_test : ndarray of shape (n_test,)
        Their classes.
    class_names : tuple of str or None
        Names of the classes.

    Returns
    -------
    CrowdDataset
        `extra` has ``is_bad`` and ``confusion``, and ``difficulty`` and ``expertise`` if the crowd has them.
    """
    planted = {name: getattr(crowd, name) for name in ("difficulty", "expertise") if getattr(crowd, name) is not None}
    return CrowdDataset(
        name,
        annotations.classes,
        description,
        annotations,
        _as_truth(y),
        X,
        X_test=X_test,
        y_test=_as_truth(y_test),
        class_names=class_names,
        extra=MappingProxyType({"is_bad": crowd.is_bad, "confusion": crowd.confusion} | planted),
    )


def _as_truth(y: Array) -> Array:
    """Return integer classes as int64."""
    return y if y.dtype == object else y.astype(np.int64)
