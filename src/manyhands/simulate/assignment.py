"""Who labels what: every item gets its number of labels, a worker at most once per item, some workers far busier.

The workers of an item are the first distinct ones of an endless row of draws in proportion to their activity.
All items draw at once, and only the few repeats are drawn again, so time and memory grow with the labels alone.
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

_ROUNDS = 16  # repeats drawn again this often; what is left then (nearly dense or very skewed) is settled one by one
_BLOCK = 1 << 20  # pairs held at once when repeats are settled item by item


def assign(
    n_items: int,
    n_workers: int,
    labels_per_item: float | npt.NDArray[np.integer],
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> tuple[Codes, Codes]:
    """Draw (item, worker) pairs, sorted by item, in which no pair stands twice.

    Parameters
    ----------
    n_items, n_workers : int
    labels_per_item : a number, or one whole number for each item
        2.5 gives two labels to some items and three to the others, 2.5 on average.
    activity : {"uniform", "zipf", "dirichlet"} or one positive weight for each worker
        Zipf's weights are 1 / (rank + 2.7), worker 0 being the busiest; Dirichlet's are one draw with parameter 0.6.
    random_state : int, Generator or None

    Returns
    -------
    item, worker : (n_annotations,) int32

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
        key = np.arange(n_items * n_workers)  # dense: everybody labels everything
    else:
        key = np.repeat(np.arange(n_items) * n_workers, n_labels)
        key += _draw_workers(len(key), share, rng)
        key.sort()
        _redraw_repeats(key, share, rng)
    item, worker = np.divmod(key, n_workers)
    return item.astype(np.int32), worker.astype(np.int32)


def activity_shares(activity: str | Array, n_workers: int, random_state: Seed = None) -> Array:
    """(n_workers,) what part of the labels each worker gives in the long run.

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
    """Remove a share of the annotations, drawn uniformly; items, workers and classes all stay.

    With `keep_one` every item keeps at least one of its labels, as in the removal study of CrowdInG; then less than
    `share` is removed where that many cannot be spared. Self-Crowd's study removes without it.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1, 0], [1, 1, 0, 1]])
    >>> thin(votes, 0.5, random_state=0)
    Annotations(4 labels on 2 items by 4 workers, 2 classes)
    >>> thin(votes, 1.0, random_state=0).n_labels.tolist()
    [1, 1]
    """
    check_annotations(annotations)
    constraints: dict[str, Constraint] = {"share": Number(least=0, most=1), "random_state": RandomState()}
    check_parameters("thin", {"share": share, "random_state": random_state}, constraints)
    order = make_generator(random_state).permutation(annotations.n_annotations)
    if keep_one:  # the first annotation of each item, in random order, is out of reach
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
    """(n_items,) how many labels each item is to get."""
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
            f"{n_workers} workers who answer once each. Lower labels_per_item or raise n_workers."
        )
    return n_labels


def _given_shares(weight: Array, n_workers: int) -> Array:
    if weight.shape != (n_workers,) or not (np.all(np.isfinite(weight)) and np.all(weight > 0)):
        raise ParameterError(
            f"activity must be one of {', '.join(ACTIVITIES)} or a positive weight for each of the {n_workers} workers."
        )
    return weight / weight.sum()


def _draw_workers(n: int, share: Array, rng: np.random.Generator) -> npt.NDArray[np.integer]:
    """N workers in proportion to their shares, repeats allowed."""
    if share.min() == share.max():
        return rng.integers(len(share), size=n)
    drawn = np.searchsorted(np.cumsum(share), rng.random(n), side="right")
    return np.minimum(drawn, len(share) - 1)  # the last cumulative share may fall short of 1 by rounding


def _redraw_repeats(key: Keys, share: Array, rng: np.random.Generator) -> None:
    """Make sorted keys `item * n_workers + worker` distinct in place, drawing again only where a pair repeats."""
    n_workers = len(share)
    touched = np.unique(key[_repeats(key)] // n_workers)
    if len(touched) == 0:
        return
    inside = np.zeros(int(touched[-1]) + 2, bool)  # one more, so that all later items read False
    inside[touched] = True
    where = np.flatnonzero(inside[np.minimum(key // n_workers, touched[-1] + 1)])
    part = key[where]
    for _ in range(_ROUNDS):
        again = _repeats(part)
        if len(again) == 0:
            break
        part[again] += _draw_workers(len(again), share, rng) - part[again] % n_workers
        part.sort()
    _settle(part, _repeats(part), share, rng)
    key[where] = part


def _repeats(key: Keys) -> npt.NDArray[np.intp]:
    return np.flatnonzero(key[1:] == key[:-1]) + 1


def _settle(key: Keys, again: npt.NDArray[np.intp], share: Array, rng: np.random.Generator) -> None:
    """Replace the repeats for good, a block of items at a time.

    Of workers who ring like independent Poisson clocks with their shares as rates, the first to ring are
    distributed as further distinct draws would be, however long those would take.
    """
    n_workers = len(share)
    item = key[again] // n_workers
    items = np.unique(item)
    step = max(1, _BLOCK // n_workers)
    for first in range(0, len(items), step):
        block = items[first : first + step]
        ring = rng.exponential(size=(len(block), n_workers)) / share
        held = key[np.isin(key // n_workers, block)]
        ring[np.searchsorted(block, held // n_workers), held % n_workers] = np.inf
        sooner = np.argsort(ring, axis=1)  # (block, n_workers)
        mine = again[np.isin(item, block)]
        row = np.searchsorted(block, key[mine] // n_workers)
        nth = np.arange(len(row)) - np.searchsorted(row, row)  # the item's first repeat, its second, ...
        key[mine] = block[row] * n_workers + sooner[row, nth]
    key.sort()
