"""Simulated crowds on the data sets of scikit-learn, and on generated blobs: nothing to download.

These functions add features and a test set to `manyhands.simulate.make_crowd`, which simulates the workers.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate import Crowd, make_crowd, make_truth
from manyhands.simulate.workers import Accuracy
from manyhands.validation import Constraint, Number, RandomState, check_parameters


def make_digits(
    n_workers: int = 40,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's handwritten digits: 1797 items, 64 features, 10 classes.

    Parameters
    ----------
    n_workers : int, default=40
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> make_digits(random_state=0)
    CrowdDataset('digits': 4041 labels on 1347 items by 40 workers, 10 classes; X 1347 x 64; X_test 450 x 64;
    extra: is_bad, confusion)
    """
    workers = _worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("digits", n_workers, labels_per_item, test_size, random_state, workers)


def make_iris(
    n_workers: int = 10,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's iris: 150 items, 4 features, 3 classes.

    Parameters
    ----------
    n_workers : int, default=10
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> data = make_iris(random_state=0)
    >>> data.annotations.n_workers
    10
    """
    workers = _worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("iris", n_workers, labels_per_item, test_size, random_state, workers)


def make_wine(
    n_workers: int = 10,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's wine: 178 items, 13 features, 3 classes.

    Parameters
    ----------
    n_workers : int, default=10
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> data = make_wine(random_state=0)
    >>> data.annotations.n_workers
    10
    """
    workers = _worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("wine", n_workers, labels_per_item, test_size, random_state, workers)


def make_breast_cancer(
    n_workers: int = 20,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's breast cancer: 569 items, 30 features, 2 classes.

    Parameters
    ----------
    n_workers : int, default=20
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> data = make_breast_cancer(random_state=0)
    >>> data.annotations.n_workers
    20
    """
    workers = _worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("breast_cancer", n_workers, labels_per_item, test_size, random_state, workers)


def make_blobs(
    n_items: int = 400,
    n_workers: int = 40,
    n_classes: int = 3,
    labels_per_item: float = 3,
    *,
    n_features: int = 2,
    separation: float = 3.0,
    n_test: int = 200,
    class_shares: npt.ArrayLike | None = None,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on Gaussian blobs of standard deviation 1.

    Parameters
    ----------
    n_items : int, default=400
        Number of items with annotations.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=3
        Number of classes, one blob each.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    n_features : int, default=2
        Number of features.
    separation : float, default=3.0
        Standard deviation of the centres of the blobs.
    n_test : int, default=200
        Number of test items, which have no annotations.
    class_shares : array of shape (n_classes,) or None, default=None
        Shares of the classes, also among test items; None for equal shares.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of features and crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Examples
    --------
    >>> make_blobs(100, 10, random_state=0)
    CrowdDataset('blobs': 300 labels on 100 items by 10 workers, 3 classes; X 100 x 2; X_test 200 x 2;
    extra: is_bad, confusion)
    """
    workers = _worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    whole = Number(whole=True, least=1)
    given = {"n_features": n_features, "separation": separation, "n_test": n_test, "random_state": random_state}
    constraints: dict[str, Constraint] = {"n_features": whole, "separation": Number(least=0)}
    constraints |= {"n_test": whole, "random_state": RandomState()}
    check_parameters("make_blobs", given, constraints)
    rng = make_generator(random_state)
    crowd = make_crowd(
        n_items, n_workers, n_classes, labels_per_item, class_shares=class_shares, random_state=rng, **workers
    )
    y_test = make_truth(n_test, n_classes if class_shares is None else class_shares, rng)
    centre = rng.normal(0, separation, (n_classes, n_features))
    X, X_test = (centre[y] + rng.normal(size=(len(y), n_features)) for y in (crowd.truth, y_test))
    return as_dataset("blobs", "Gaussian blobs.", crowd, crowd.annotations, X, crowd.truth, X_test, y_test, None)


def _worker_options(
    kind: str,
    accuracy: Accuracy,
    spread: float,
    bad: str,
    bad_share: float,
    target: int | None,
    activity: str | Array,
) -> dict[str, Any]:
    """Return the parameters of `manyhands.simulate.make_crowd` that describe the workers."""
    return {
        "kind": kind,
        "accuracy": accuracy,
        "spread": spread,
        "bad": bad,
        "bad_share": bad_share,
        "target": target,
        "activity": activity,
    }


def _on_bundled(
    name: str, n_workers: int, labels_per_item: float, test_size: float, random_state: Seed, workers: dict[str, Any]
) -> CrowdDataset:
    """Simulate a crowd on a data set of scikit-learn."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    constraints: dict[str, Constraint] = {"test_size": Number(above=0, most=0.9), "random_state": RandomState()}
    check_parameters(f"make_{name}", {"test_size": test_size, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    bunch = getattr(datasets, f"load_{name}")()
    seed = int(rng.integers(2**31))
    try:
        X, X_test, y, y_test = train_test_split(
            bunch.data, bunch.target, test_size=test_size, stratify=bunch.target, random_state=seed
        )
    except ValueError:
        raise ParameterError(
            f"With test_size={test_size} some class would have no item left for the crowd or for testing."
        ) from None
    crowd, annotations = _label_items(y, n_workers, labels_per_item, rng, workers)
    class_names = tuple(map(str, bunch.target_names))
    description = f"scikit-learn's {name.replace('_', ' ')} with a simulated crowd."
    return as_dataset(name, description, crowd, annotations, X, y, X_test, y_test, class_names)


def _label_items(
    y: Array, n_workers: int, labels_per_item: float, rng: np.random.Generator, workers: dict[str, Any]
) -> tuple[Crowd, Annotations]:
    """Simulate labels for items of given truth.

    `make_crowd` draws the truth of its items, so a crowd with more items is simulated, and each given item becomes the
    next simulated one of its class.
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
