"""Simulated crowds on data that every scikit-learn brings along, and on generated blobs: nothing to download.

These functions add features and a split for testing to `manyhands.simulate.make_crowd`, which knows the workers.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate import Crowd, make_crowd, make_truth
from manyhands.validation import Constraint, Number, RandomState, check_parameters


def make_digits(
    n_workers: int = 40,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    random_state: Seed = None,
    **workers: Any,
) -> CrowdDataset:
    """A simulated crowd on scikit-learn's handwritten digits: 1797 items, 64 features, 10 classes.

    Parameters
    ----------
    n_workers : int
    labels_per_item : float, the mean number of labels of an item
    test_size : float, the share of the items put aside without annotations, as `X_test` and `y_test`
    random_state : int, Generator or None
    **workers : `accuracy`, `spread`, `kind`, `bad`, `bad_share`, `target`, `activity`
        How the workers err, as in `manyhands.simulate.make_crowd`.

    Returns
    -------
    CrowdDataset
        `extra` holds what was planted: `is_bad` and `confusion` of each worker (None where no table tells it).

    Examples
    --------
    >>> make_digits(random_state=0)
    CrowdDataset('digits': 4041 labels on 1347 items by 40 workers, 10 classes; X 1347 x 64; X_test 450 x 64;
    extra: is_bad, confusion)
    """
    return _on_bundled("digits", n_workers, labels_per_item, test_size, random_state, workers)


def make_iris(
    n_workers: int = 10,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    random_state: Seed = None,
    **workers: Any,
) -> CrowdDataset:
    """A simulated crowd on scikit-learn's iris: 150 items, 4 features, 3 classes.

    Parameters are those of `make_digits`.
    """
    return _on_bundled("iris", n_workers, labels_per_item, test_size, random_state, workers)


def make_wine(
    n_workers: int = 10,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    random_state: Seed = None,
    **workers: Any,
) -> CrowdDataset:
    """A simulated crowd on scikit-learn's wine: 178 items, 13 features, 3 classes.

    Parameters are those of `make_digits`.
    """
    return _on_bundled("wine", n_workers, labels_per_item, test_size, random_state, workers)


def make_breast_cancer(
    n_workers: int = 20,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    random_state: Seed = None,
    **workers: Any,
) -> CrowdDataset:
    """A simulated crowd on scikit-learn's breast cancer: 569 items, 30 features, 2 classes.

    Parameters are those of `make_digits`.
    """
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
    random_state: Seed = None,
    **workers: Any,
) -> CrowdDataset:
    """A simulated crowd on Gaussian blobs of width 1; `separation` is the standard deviation of their centres.

    `class_shares` is another of the **workers parameters here, for classes of unequal size; test items follow it too.

    >>> make_blobs(100, 10, random_state=0)
    CrowdDataset('blobs': 300 labels on 100 items by 10 workers, 3 classes; X 100 x 2; X_test 200 x 2;
    extra: is_bad, confusion)
    """
    whole = Number(whole=True, least=1)
    given = {"n_features": n_features, "separation": separation, "n_test": n_test, "random_state": random_state}
    constraints: dict[str, Constraint] = {"n_features": whole, "separation": Number(least=0)}
    constraints |= {"n_test": whole, "random_state": RandomState()}
    check_parameters("make_blobs", given, constraints)
    rng = make_generator(random_state)
    crowd = make_crowd(n_items, n_workers, n_classes, labels_per_item, random_state=rng, **workers)
    shares = workers.get("class_shares")
    y_test = make_truth(n_test, n_classes if shares is None else shares, rng)
    centre = rng.normal(0, separation, (n_classes, n_features))
    X, X_test = (centre[y] + rng.normal(size=(len(y), n_features)) for y in (crowd.truth, y_test))
    return as_dataset("blobs", "Gaussian blobs.", crowd, crowd.annotations, X, crowd.truth, X_test, y_test, None)


def _on_bundled(
    name: str, n_workers: int, labels_per_item: float, test_size: float, random_state: Seed, workers: dict[str, Any]
) -> CrowdDataset:
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
    """Labels for items of given truth.

    `make_crowd` plants its own truth, so a crowd with items to spare is made, and each of ours becomes the next
    planted one of its class.
    """
    n_of_class = np.bincount(y)
    shares = n_of_class / len(y)
    n_planted = len(y) + int(5 * np.sqrt(len(y) * len(shares))) + 5
    while True:
        crowd = make_crowd(
            n_planted, n_workers, len(shares), labels_per_item, class_shares=shares, random_state=rng, **workers
        )
        if np.all(np.bincount(crowd.truth, minlength=len(shares)) >= n_of_class):
            break
        n_planted *= 2  # not once in a million draws
    planted = np.argsort(crowd.truth, kind="stable")
    start = np.searchsorted(crowd.truth[planted], np.arange(len(shares)))
    nth = np.empty(len(y), np.int64)  # how many of its class come before an item
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
    """A simulated crowd with features; what was planted is in `extra`."""
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
    return y if y.dtype == object else y.astype(np.int64)
