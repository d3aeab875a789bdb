"""A crowd with known truth and known workers, and its simplest simulation: labels drawn from confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate.assignment import assign
from manyhands.simulate.label_draws import draw_labels
from manyhands.sorting import Codes
from manyhands.validation import Constraint, Number, RandomState, check_parameters

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Crowd:
    """Simulated crowd labels with the truth and the workers behind them.

    Attributes
    ----------
    annotations : Annotations
        The crowd's labels.
    truth : ndarray of int32 of shape (n_items,)
        True class of each item.
    confusion : ndarray of shape (n_workers, n_classes, n_classes) or None
        Confusion matrices [worker, truth, label]; None where labels depend on more of an item than its truth.
    is_bad : ndarray of bool of shape (n_workers,)
        Which workers are bad: spammers, adversarial or colluding workers and others.
    difficulty : ndarray of shape (n_items,) or None, default=None
        Difficulty of each item, larger is harder; None where the model has none.
    expertise : ndarray of shape (n_workers, n_classes) or None, default=None
        Accuracy of each worker on the easiest items of each class; None where the model has none.
    """

    annotations: Annotations
    truth: Codes
    confusion: Array | None
    is_bad: npt.NDArray[np.bool_]
    difficulty: Array | None = None
    expertise: Array | None = None


def make_truth(n_items: int, classes: int | npt.ArrayLike, random_state: Seed = None) -> Codes:
    """Draw the true class of every item.

    Parameters
    ----------
    n_items : int
        Number of items.
    classes : int or array-like of shape (n_classes,)
        Number of equally frequent classes, or the share of each class; shares need not sum to 1.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of int32 of shape (n_items,)
        The class codes.

    Examples
    --------
    >>> make_truth(5, 2, random_state=0).tolist()
    [1, 1, 1, 0, 0]
    >>> np.bincount(make_truth(1000, [10, 1], random_state=0)).tolist()
    [908, 92]
    """
    constraints: dict[str, Constraint] = {"n_items": Number(whole=True, least=1), "random_state": RandomState()}
    check_parameters("make_truth", {"n_items": n_items, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    if np.ndim(classes) == 0:
        check_parameters("make_truth", {"classes": classes}, {"classes": Number(whole=True, least=1)})
        return rng.integers(int(np.asarray(classes)), size=n_items).astype(np.int32)
    share = np.asarray(classes, float)
    if share.ndim != 1 or not np.all(share >= 0) or not 0 < share.sum() < np.inf:
        raise ParameterError(
            f"Class shares must be numbers at least 0, one for each class and not all 0. Got {classes!r}."
        )
    return rng.choice(len(share), n_items, p=share / share.sum()).astype(np.int32)


def label_items(
    truth: npt.ArrayLike,
    confusion: Array,
    labels_per_item: float | npt.NDArray[np.integer] | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> Crowd:
    """Simulate labels of workers with given confusion matrices on items with given truth.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].
    labels_per_item : float or ndarray of int of shape (n_items,), default=None
        Number of labels of every item, or of each item, as in :func:`assign`; every worker labels every item if None.
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,), default="uniform"
        How labels are distributed over workers, as in :func:`assign`.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices; no worker is bad.

    Examples
    --------
    >>> from manyhands.simulate import one_coin
    >>> crowd = label_items([0, 1, 1], one_coin([1.0, 1.0, 0.9], 2), labels_per_item=2, random_state=0)
    >>> crowd.annotations
    Annotations(6 labels on 3 items by 3 workers, 2 classes)
    """
    check_parameters("label_items", {"random_state": random_state}, {"random_state": RandomState()})
    rng = make_generator(random_state)
    n_workers, n_classes = confusion.shape[:2]
    codes = check_truth(truth, n_classes)
    n_each = n_workers if labels_per_item is None else labels_per_item
    item, worker = assign(len(codes), n_workers, n_each, activity, rng)
    label = draw_labels(confusion, worker, codes[item], rng)
    annotations = make_annotations(item, worker, label, len(codes), n_workers, n_classes)
    return Crowd(annotations, codes, confusion, np.zeros(n_workers, bool))


def check_truth(truth: npt.ArrayLike, n_classes: int) -> Codes:
    """Convert the truth to class codes.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of int32 of shape (n_items,)
        The codes.

    Raises
    ------
    ParameterError
        If there is no item, or a value that is no class code.
    """
    codes = np.asarray(truth)
    is_valid = codes.ndim == 1 and codes.size > 0 and codes.dtype.kind in "iu"
    if not is_valid or codes.min() < 0 or codes.max() >= n_classes:
        raise ParameterError(
            f"truth must be one class code from 0 to {n_classes - 1} for each item, and at least one item."
        )
    return codes.astype(np.int32)


def make_annotations(
    item: Codes, worker: Codes, label: Codes, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    """Build annotations whose ids are their codes.

    Parameters
    ----------
    item : ndarray of int of shape (n_annotations,)
        Item codes.
    worker : ndarray of int of shape (n_annotations,)
        Worker codes.
    label : ndarray of int of shape (n_annotations,)
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
    ids = {"item_ids": np.arange(n_items), "worker_ids": np.arange(n_workers), "classes": np.arange(n_classes)}
    return Annotations(item, worker, label, **ids)
