"""Simulated crowds on the data sets of scikit-learn: nothing to download.

These functions add features and a test set to `manyhands.simulate.make_crowd`, which simulates the workers.
"""

from __future__ import annotations

from typing import Any

from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.simulated_labels import as_dataset, label_items, worker_options
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
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
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
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
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
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
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
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
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("breast_cancer", n_workers, labels_per_item, test_size, random_state, workers)


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
    crowd, annotations = label_items(y, n_workers, labels_per_item, rng, workers)
    class_names = tuple(map(str, bunch.target_names))
    description = f"scikit-learn's {name.replace('_', ' ')} with a simulated crowd."
    return as_dataset(name, description, crowd, annotations, X, y, X_test, y_test, class_names)
