"""Imbalanced and sparse crowds: long-tailed classes, few labels per item, workers as heterogeneous as LabelMe's.

shares of K classes   ratio ** (-k / (K - 1)),  k = 0 .. K - 1:  the first is `ratio` times the last
workers               accuracies N(.69, .18) clipped to [.2, .98], as of LabelMe's 59; a random confusion matrix each
activity              very unequal, a Dirichlet draw
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.class_balance import share_out
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate.crowds import Crowd, label_items
from manyhands.simulate.feature_crowds import FeatureCrowd
from manyhands.simulate.workers import random_confusion
from manyhands.validation import Boolean, Constraint, Number, RandomState, check_parameters

Array = npt.NDArray[np.float64]

_ACCURACY = (0.69, 0.18)  # mean and standard deviation of LabelMe's workers
_WITHIN = (0.2, 0.98)
_WHOLE = Number(whole=True, least=1)


def long_tail_shares(n_classes: int, ratio: float = 10.0) -> Array:
    """Share of each class in a long-tailed distribution.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    ratio : float, default=10.0
        Size of the first class divided by that of the last; sizes in between form a geometric sequence.

    Returns
    -------
    ndarray of shape (n_classes,)
        The shares, descending; they sum to 1.

    Examples
    --------
    >>> (long_tail_shares(3, 100) / long_tail_shares(3, 100)[-1]).round(6).tolist()
    [100.0, 10.0, 1.0]
    """
    constraints: dict[str, Constraint] = {"n_classes": Number(whole=True, least=2), "ratio": Number(least=1)}
    check_parameters("a long tail", {"n_classes": n_classes, "ratio": ratio}, constraints)
    share = float(ratio) ** (-np.arange(n_classes) / (n_classes - 1))
    return np.asarray(share / share.sum())


def class_sizes(n: int, share: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Distribute items over classes in proportion to their shares, with at least one item for each class.

    Parameters
    ----------
    n : int
        Number of items, at least that of the classes.
    share : array-like of shape (n_classes,)
        Share of each class; need not sum to 1.

    Returns
    -------
    ndarray of int of shape (n_classes,)
        Number of items of each class; they sum to n.

    Examples
    --------
    >>> class_sizes(110, [10, 1]).tolist()
    [100, 10]
    """
    if n < np.size(share):
        raise ParameterError(f"{n} items are too few for {np.size(share)} classes; every class needs at least one.")
    return share_out(n, share)


def label_sparsely(
    truth: npt.ArrayLike,
    n_classes: int,
    n_workers: int = 59,
    labels_per_item: float = 2.5,
    random_state: Seed = None,
) -> Crowd:
    """Simulate few labels per item, by workers with accuracies and activities like those of LabelMe.

    Accuracies are drawn from N(.69, .18) clipped to [.2, .98], each worker has a random confusion matrix around the
    one-coin model, and activities are a Dirichlet draw.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    n_classes : int
        Number of classes.
    n_workers : int, default=59
        Number of workers.
    labels_per_item : float, default=2.5
        Mean number of labels of an item.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices.

    Examples
    --------
    >>> crowd = label_sparsely([0, 1, 2, 0] * 25, 3, random_state=0)
    >>> crowd.annotations
    Annotations(250 labels on 100 items by 59 workers, 3 classes)
    """
    constraints: dict[str, Constraint] = {"n_workers": _WHOLE, "random_state": RandomState()}
    check_parameters("label_sparsely", {"n_workers": n_workers, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    accuracy = np.clip(rng.normal(*_ACCURACY, n_workers), *_WITHIN)
    confusion = random_confusion(accuracy, n_classes, random_state=rng)
    return label_items(truth, confusion, labels_per_item, activity="dirichlet", random_state=rng)


def make_long_tail(
    n_items: int = 1000,
    n_classes: int = 8,
    ratio: float = 10.0,
    n_workers: int = 59,
    labels_per_item: float = 2.5,
    *,
    n_features: int = 10,
    separation: float = 0.8,
    n_test: int = 1000,
    balanced_test: bool = True,
    random_state: Seed = None,
) -> FeatureCrowd:
    """Simulate an imbalanced and sparse crowd on overlapping Gaussian classes.

    Parameters
    ----------
    n_items : int, default=1000
        Number of items.
    n_classes : int, default=8
        Number of classes.
    ratio : float, default=10.0
        Size of class 0 divided by that of the last class; sizes in between form a geometric sequence.
    n_workers : int, default=59
        Number of workers.
    labels_per_item : float, default=2.5
        Mean number of labels of an item; 2.5 gives two labels to half of the items and three to the others.
    n_features : int, default=10
        Number of features.
    separation : float, default=0.8
        Standard deviation of the class centres in each dimension; that of the items around their centre is 1.
    n_test : int, default=1000
        Number of test items.
    balanced_test : bool, default=True
        Whether the test set has equally many items of each class, or the class shares of the training set.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    FeatureCrowd
        Features, labels and test set.

    Examples
    --------
    >>> data = make_long_tail(1100, 2, labels_per_item=2.5, random_state=0)
    >>> np.bincount(data.crowd.truth).tolist(), np.bincount(data.truth_test).tolist()
    ([1000, 100], [500, 500])
    >>> data.crowd.annotations
    Annotations(2750 labels on 1100 items by 59 workers, 2 classes)
    """
    given: dict[str, Any] = {"n_items": n_items, "n_features": n_features, "separation": separation}
    given |= {"n_test": n_test, "balanced_test": balanced_test, "random_state": random_state}
    constraints: dict[str, Constraint] = {"n_items": _WHOLE, "n_features": _WHOLE, "separation": Number(above=0)}
    constraints |= {"n_test": _WHOLE, "balanced_test": Boolean(), "random_state": RandomState()}
    check_parameters("make_long_tail", given, constraints)
    share = long_tail_shares(n_classes, ratio)
    rng = make_generator(random_state)
    classes = np.arange(n_classes, dtype=np.int32)
    truth = rng.permutation(np.repeat(classes, class_sizes(n_items, share)))
    truth_test = np.repeat(classes, class_sizes(n_test, np.ones(n_classes) if balanced_test else share))
    centre = rng.normal(0, separation, (n_classes, n_features))
    X, X_test = (centre[codes] + rng.normal(size=(len(codes), n_features)) for codes in (truth, truth_test))
    crowd = label_sparsely(truth, n_classes, n_workers, labels_per_item, rng)
    return FeatureCrowd(X, crowd, X_test, truth_test)
