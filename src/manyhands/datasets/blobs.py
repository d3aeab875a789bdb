"""Simulated crowds on Gaussian blobs: nothing to download."""

from __future__ import annotations

import numpy.typing as npt

from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.simulated_labels import as_dataset, worker_options
from manyhands.randomness import Seed, make_generator
from manyhands.simulate import make_crowd, make_truth
from manyhands.simulate.workers import Accuracy
from manyhands.validation import Constraint, Number, RandomState, check_parameters


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
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
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
