"""Assignment of workers to items: a given number of labels per item, each worker at most once, unequal activity.

The workers of an item are drawn without replacement, with probabilities proportional to their activity. All items are
drawn at once, and only repeated pairs are drawn again, so time and memory are proportional to the number of labels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.sorting import Codes
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_annotations, check_parameters

Array = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]

ACTIVITIES = ("uniform", "zipf", "dirichlet")

_ROUNDS = 16  # redraws of repeated pairs; the rest (nearly dense or very skewed) is drawn exactly, item by item
_BLOCK = 1 << 20  # pairs held at a time in the exact draw


def assign(
    n_items: int,
    n_workers: int,
    labels_per_item: float | npt.NDArray[np.integer],
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> tuple[Codes, Codes]:
    """Draw distinct pairs (item, worker), sorted by item.

    Parameters
    ----------
    n_items : int
        Number of items.
    n_workers : int
        Number of workers.
    labels_per_item : float or ndarray of int of shape (n_items,)
        Number of labels of every item, or of each item. A fraction is the mean: 2.5 gives two labels to half of the
        items and three to the others.
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,), default="uniform"
        How labels are distributed over workers, or one positive weight for each worker. Zipf's weights are
        1 / (rank + 2.7), where worker 0 is the most active; Dirichlet's are one draw with parameter 0.6.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    item : ndarray of int32 of shape (n_annotations,)
        Item of each annotation, ascending.
    worker : ndarray of int32 of shape (n_annotations,)
        Worker of each annotation.

    Examples
    --------
    >>> item, worker = assign(3, 10, 2, random_state=0)
    >>> item.tolist()
    [0, 0, 1, 1, 2, 2]
    >>> len(set(zip(item.tolist(), worker.tolist())))
    6
    """
    whole = Number(whole=True, least=1)
    checked = {"n_items": n_items, "n_workers": n_workers, "random_state": random_state}
    check_parameters("assign", checked, {"n_items": whole, "n_workers": whole, "random_state": RandomState()})
    rng = make_generator(random_state)
    n_labels = _labels_of_each(labels_per_item, n_items, n_workers, rng)
    share = activity_shares(activity, n_workers, rng)
    if n_labels.min() == n_workers:
        key = np.arange(n_items * n_workers)  # dense: every worker labels every item
    else:
        key = np.repeat(np.arange(n_items) * n_workers, n_labels)
        key += _draw_workers(len(key), share, rng)
        key.sort()
        _redraw_repeats(key, share, rng)
    item, worker = np.divmod(key, n_workers)
    return item.astype(np.int32), worker.astype(np.int32)


def activity_shares(activity: str | Array, n_workers: int, random_state: Seed = None) -> Array:
    """Expected share of the labels that each worker gives.

    Parameters
    ----------
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,)
        Distribution of activity as in :func:`assign`, or one positive weight for each worker.
    n_workers : int
        Number of workers.
    random_state : int, Generator or None, default=None
        Seed or generator for "dirichlet".

    Returns
    -------
    ndarray of shape (n_workers,)
        The shares, which sum to 1.

    Examples
    --------
    >>> activity_shares("zipf", 3).round(3).tolist()
    [0.41, 0.323, 0.266]
    """
    if not isinstance(activity, str):
        return _given_shares(np.asarray(activity, float), n_workers)
    check_parameters("the crowd", {"activity": activity}, {"activity": OneOf(ACTIVITIES)})
    if activity == "uniform":
        return np.full(n_workers, 1 / n_workers)
    if activity == "dirichlet":
        return make_generator(random_state).dirichlet(np.full(n_workers, 0.6))
    weight = 1 / (np.arange(1, n_workers + 1) + 2.7)
    return weight / weight.sum()


def thin(annotations: Annotations, share: float, keep_one: bool = True, random_state: Seed = None) -> Annotations:
    """Remove a random share of the annotations; items, workers and classes are kept.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    share : float
        Share of the annotations to remove, between 0 and 1.
    keep_one : bool, default=True
        Whether every item keeps at least one of its labels, as in the sparsity study of CrowdInG; then fewer are
        removed where `share` would need more. The study of Self-Crowd corresponds to False.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Annotations
        The remaining annotations.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1, 0], [1, 1, 0, 1]])
    >>> thin(votes, 0.5, random_state=0)
    Annotations(4 labels on 2 items by 4 workers, 2 classes)
    >>> thin(votes, 1.0, random_state=0).n_labels.tolist()
    [1, 1]
    """
    annotations = check_annotations(annotations)
    constraints: dict[str, Constraint] = {"share": Number(least=0, most=1), "random_state": RandomState()}
    check_parameters("thin", {"share": share, "random_state": random_state}, constraints)
    order = make_generator(random_state).permutation(annotations.n_annotations)
    if keep_one:  # the first annotation of each item, in random order, is kept
        first = np.unique(annotations.item[order], return_index=True)[1]
        spared = np.zeros(len(order), bool)
        spared[first] = True
        order = order[~spared]
    keep = np.ones(annotations.n_annotations, bool)
    keep[order[: round(share * annotations.n_annotations)]] = False
    return annotations.keep(keep)


def _labels_of_each(
    labels_per_item: float | npt.NDArray[np.integer], n_items: int, n_workers: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """(n_items,) number of labels of each item."""
    if isinstance(labels_per_item, np.ndarray):
        if labels_per_item.shape != (n_items,) or labels_per_item.dtype.kind not in "iu":
            raise ParameterError(
                f"labels_per_item must be a number or {n_items} whole numbers, one for each item; "
                f"got {labels_per_item.dtype} of shape {labels_per_item.shape}."
            )
        n_labels = labels_per_item.astype(np.int64)
    else:
        limits = Number(above=0, most=n_workers)
        check_parameters("the crowd", {"labels_per_item": labels_per_item}, {"labels_per_item": limits})
        base = int(labels_per_item)
        n_labels = np.full(n_items, base)
        n_labels[rng.permutation(n_items)[: round((labels_per_item - base) * n_items)]] += 1
    if n_labels.min() < 0 or n_labels.max() > n_workers:
        raise ParameterError(
            f"An item cannot get {n_labels.min() if n_labels.min() < 0 else n_labels.max()} labels from "
            f"{n_workers} workers who label it once each. Lower labels_per_item or raise n_workers."
        )
    return n_labels


def _given_shares(weight: Array, n_workers: int) -> Array:
    """Normalise the caller's weights."""
    if weight.shape != (n_workers,) or not (np.all(np.isfinite(weight)) and np.all(weight > 0)):
        raise ParameterError(
            f"activity must be one of {', '.join(ACTIVITIES)} or a positive weight for each of the {n_workers} workers."
        )
    return weight / weight.sum()


def _draw_workers(n: int, share: Array, rng: np.random.Generator) -> npt.NDArray[np.integer]:
    """Draw n workers with these probabilities, with replacement."""
    if share.min() == share.max():
        return rng.integers(len(share), size=n)
    drawn = np.searchsorted(np.cumsum(share), rng.random(n), side="right")
    return np.minimum(drawn, len(share) - 1)  # rounding may leave the last cumulative share below 1


def _redraw_repeats(key: Keys, share: Array, rng: np.random.Generator) -> None:
    """Make sorted keys `item * n_workers + worker` distinct in place, redrawing only repeated pairs."""
    n_workers = len(share)
    affected = np.unique(key[_repeats(key)] // n_workers)
    if len(affected) == 0:
        return
    is_affected = np.zeros(int(affected[-1]) + 2, bool)  # the last entry stands for all later items
    is_affected[affected] = True
    where = np.flatnonzero(is_affected[np.minimum(key // n_workers, affected[-1] + 1)])
    part = key[where]
    for _ in range(_ROUNDS):
        again = _repeats(part)
        if len(again) == 0:
            break
        part[again] += _draw_workers(len(again), share, rng) - part[again] % n_workers
        part.sort()
    _draw_exactly(part, _repeats(part), share, rng)
    key[where] = part


def _repeats(key: Keys) -> npt.NDArray[np.intp]:
    """Positions in sorted keys that equal their predecessor."""
    return np.flatnonzero(key[1:] == key[:-1]) + 1


def _draw_exactly(key: Keys, again: npt.NDArray[np.intp], share: Array, rng: np.random.Generator) -> None:
    """Replace the repeated pairs by exact draws without replacement, a block of items at a time.

    The order of independent exponential times with the shares as rates is distributed as successive draws without
    replacement, so the workers with the smallest times are the next distinct draws.
    """
    n_workers = len(share)
    item = key[again] // n_workers
    items = np.unique(item)
    step = max(1, _BLOCK // n_workers)
    for first in range(0, len(items), step):
        block = items[first : first + step]
        time = rng.exponential(size=(len(block), n_workers)) / share
        held = key[np.isin(key // n_workers, block)]
        time[np.searchsorted(block, held // n_workers), held % n_workers] = np.inf
        by_time = np.argsort(time, axis=1)  # (block, n_workers)
        mine = again[np.isin(item, block)]
        row = np.searchsorted(block, key[mine] // n_workers)
        nth = np.arange(len(row)) - np.searchsorted(row, row)  # the item's first repeat, its second, ...
        key[mine] = block[row] * n_workers + by_time[row, nth]
    key.sort()
