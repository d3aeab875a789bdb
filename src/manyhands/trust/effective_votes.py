"""Effective number of votes: how many independent votes the correlated votes of a group are worth.

Kish's formula: k votes whose errors have the mean correlation r are worth k / (1 + (k - 1) r) independent ones. An
error is a label that differs from the reference: a known answer, else the class that a one-coin model gives to the item
from the labels of the reference workers, without the two labels that are compared. That reference is wrong with a
probability q, which would make independent workers seem to err together. So rates are corrected, with errors spread
over the other K - 1 classes: a label with error rate p differs from the reference with probability
(1 - q) p + q (1 - p / (K - 1)), and two labels that are both wrong with probability c both differ from it with
probability (1 - q) c + q (1 - (p + p' - c) / (K - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.metrics.bootstrap import Bootstrap
from manyhands.trust.reference_labels import Codes, fit_reference, label_pairs
from manyhands.validation import check_annotations, check_known

ALL = "all workers"
HUMANS = "humans"
_FEWEST = 3  # workers that can decide a reference
_WORST = 0.3  # probability of being wrong from which on a reference is not used
_DEVIATION = 0.02  # least standard deviation of a worker's errors; those of perfect workers cannot be correlated
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EffectiveVotes:
    """What the votes of one group of workers are worth.

    Attributes
    ----------
    group : str
        Name of the group.
    n_workers : int
        Workers of the group that have labels.
    n_items : int
        Items with at least one label of the group.
    votes : float
        Mean number of labels of the group per item.
    correlation : float
        Mean correlation of errors; NaN if no two workers can be compared.
    correlation_low : float
        Lower end of its 95% interval, over items.
    correlation_high : float
        Upper end.
    effective_votes : float
        Mean over items of k / (1 + (k - 1) r), with r = 0 where the correlation is negative.
    low : float
        Lower end of its 95% interval.
    high : float
        Upper end.
    reference : str
        What labels were compared with.
    n_pairs : int
        Pairs of labels that were compared.
    """

    group: str
    n_workers: int
    n_items: int
    votes: float
    correlation: float
    correlation_low: float
    correlation_high: float
    effective_votes: float
    low: float
    high: float
    reference: str
    n_pairs: int

    def __str__(self) -> str:
        if np.isnan(self.correlation):
            return f"{self.group}: no two workers can be compared with a third, so the worth of their votes is unknown."
        return (
            f"{self.group}: {self.votes:.3g} votes per item are worth {self.effective_votes:.2g} independent ones "
            f"(95% interval {self.low:.2g} to {self.high:.2g})."
        )


def effective_votes(
    annotations: Annotations,
    groups: Mapping[str, Iterable[Any]] | None = None,
    *,
    reference: str | None = HUMANS,
    answers: Mapping[Any, Any] | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> list[EffectiveVotes]:
    """Compute how many independent votes the votes of each group of workers are worth.

    Without answers, errors that the compared workers share with the reference cannot be seen. The figure is then an
    upper bound, in particular where the reference is the group itself.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    groups : mapping of str to iterable of worker ids, or None, default=None
        Workers whose errors may be correlated, such as the people and each family of machines; None puts all workers
        into one group.
    reference : str or None, default="humans"
        Group that decides the reference of the other groups. Its own workers, and those of all groups if there is no
        such group, are compared with the rest of their group; if fewer than three workers would decide, all do.
    answers : mapping of item to class or None, default=None
        Known answers; they replace the reference, and only their items are used.
    n_bootstrap : int, default=1000
        Resamples of the items for the intervals; 0 for none.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    list of EffectiveVotes
        One per group.

    Raises
    ------
    ParameterError
        If a group names an unknown worker, or a worker is in two groups.

    References
    ----------
    L. Kish. Survey Sampling. Wiley, 1965.

    Examples
    --------
    >>> import manyhands as mh
    >>> rows = [(i, w, int(i % 5 == 0)) for i in range(40) for w in ("model", "copy")]
    >>> rows += [(i, w, int(i % 10 == 3 + j)) for i in range(40) for j, w in enumerate("abc")]
    >>> votes = mh.Annotations.from_triples(*zip(*rows))
    >>> machines, humans = effective_votes(votes, {"machines": ["model", "copy"], "humans": "abc"})
    >>> machines.votes, round(machines.effective_votes, 1), machines.reference
    (2.0, 1.0, 'humans')
    """
    annotations = check_annotations(annotations)
    bootstrap = Bootstrap(n_bootstrap, 0.95, random_state)
    bootstrap.check("effective_votes")
    group_of, names = _numbered(annotations, groups)
    known = None if answers is None else _known(annotations, answers)
    labelled = np.bincount(annotations.worker, minlength=annotations.n_workers) > 0
    found = []
    for at, name in enumerate(names):
        decides, told = group_of == (names.index(reference) if reference in names else at), reference
        if (decides & labelled).sum() < _FEWEST:  # the accuracies of two workers cannot be estimated from their labels
            decides, told = labelled, ALL
        elif decides[group_of == at].all():
            told = "the same group"
        pairs = _compare(annotations, group_of == at, decides, known)
        told = str(told) if known is None else "known answers"
        found.append(_measure(annotations, name, group_of == at, pairs, told, bootstrap))
    return found


def _numbered(
    annotations: Annotations, groups: Mapping[str, Iterable[Any]] | None
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the number of each worker's group, -1 for none, and the names of the groups."""
    workers = annotations.worker_ids.tolist()
    if groups is None:
        return np.zeros(len(workers), np.int64), [ALL]
    code = {worker: at for at, worker in enumerate(workers)}
    group_of = np.full(len(workers), -1)
    for number, (name, members) in enumerate(groups.items()):
        chosen = list(members)
        unknown = next((worker for worker in chosen if worker not in code), None)
        if unknown is not None:
            raise ParameterError(f"The group {name!r} names {unknown!r}, who is not a worker of these annotations.")
        at = [code[worker] for worker in chosen]
        twice = next((worker for worker, c in zip(chosen, at) if group_of[c] not in (-1, number)), None)
        if twice is not None:
            raise ParameterError(f"The worker {twice!r} is in two groups.")
        group_of[at] = number
    return group_of, list(groups)


def _known(annotations: Annotations, answers: Mapping[Any, Any]) -> npt.NDArray[np.int64]:
    """Return the code of the known class of each item, -1 where it is not known."""
    check_known(answers, annotations.item_ids.tolist(), "Items of answers are", "Name items of the annotations.")
    class_of = {name: code for code, name in enumerate(annotations.classes.tolist())}
    # A known class that nobody chose is a reference that every label differs from.
    codes = [class_of.get(answers[i], len(class_of)) if i in answers else -1 for i in annotations.item_ids.tolist()]
    return np.array(codes, np.int64)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of labels on one item, compared with a reference that is wrong with probability q."""

    item: Codes
    workers: tuple[Codes, Codes]
    differs: tuple[Array, Array]
    q: Array


def _compare(
    annotations: Annotations,
    is_member: npt.NDArray[np.bool_],
    decides: npt.NDArray[np.bool_],
    known: npt.NDArray[np.int64] | None,
) -> _Pairs:
    """Compare every two labels of a group on one item with the reference of the item."""
    a, b = label_pairs(annotations, is_member[annotations.worker])
    label: Codes
    if known is not None:
        label, q = known[annotations.item[a]], np.zeros(len(a))
    else:
        label, q = fit_reference(annotations, decides[annotations.worker]).of_pairs(annotations, a, b)
    keep = (label >= 0) & (q <= _WORST)
    a, b, label, q = a[keep], b[keep], label[keep], q[keep]
    differs = ((annotations.label[a] != label).astype(float), (annotations.label[b] != label).astype(float))
    return _Pairs(annotations.item[a], (annotations.worker[a], annotations.worker[b]), differs, q)


def _measure(
    annotations: Annotations,
    name: str,
    is_member: npt.NDArray[np.bool_],
    pairs: _Pairs,
    reference: str,
    bootstrap: Bootstrap,
) -> EffectiveVotes:
    """Measure one group."""
    inside = is_member[annotations.worker]
    size = np.bincount(annotations.item[inside], minlength=annotations.n_items)
    used = size > 0
    product, scale = (sums[used] for sums in _by_item(pairs, annotations))

    def statistics(weights: Array) -> Array:
        """Return correlation and effective votes of each resample of the items."""
        with np.errstate(invalid="ignore", divide="ignore"):
            r = (weights @ product) / (weights @ scale)
        r = np.where(np.isfinite(r), np.minimum(r, 1), np.nan)
        return np.stack([r, _worth(size[used], weights, r)], axis=1)

    count = np.ones(int(used.sum()), np.int64)
    r, worth = statistics(count[None].astype(float))[0].tolist() if len(count) else (math.nan, math.nan)
    low, high = bootstrap.interval(statistics, count, 4) if len(count) else (np.full(2, np.nan), np.full(2, np.nan))
    return EffectiveVotes(
        name,
        n_workers=len(np.unique(annotations.worker[inside])),
        n_items=len(count),
        votes=float(size[used].mean()) if len(count) else 0.0,
        correlation=r,
        correlation_low=float(low[0]),
        correlation_high=float(high[0]),
        effective_votes=worth,
        low=float(low[1]),
        high=float(high[1]),
        reference=reference,
        n_pairs=len(pairs.item),
    )


def _by_item(pairs: _Pairs, annotations: Annotations) -> tuple[Array, ...]:
    """Return, for each item, the sum over pairs of the covariance of errors, and of their standard deviations."""
    others = max(annotations.n_classes - 1, 1)
    above, below = np.zeros(annotations.n_workers), np.zeros(annotations.n_workers)
    for worker, differs in zip(pairs.workers, pairs.differs):
        above += np.bincount(worker, differs - pairs.q, annotations.n_workers)
        below += np.bincount(worker, 1 - pairs.q - pairs.q / others, annotations.n_workers)
    rate = np.clip(np.divide(above, below, out=np.zeros_like(above), where=below > 0), 0, 1)
    p, p_other = rate[pairs.workers[0]], rate[pairs.workers[1]]
    kept = 1 - pairs.q - pairs.q / others
    errs, other_errs = ((differs - pairs.q) / kept for differs in pairs.differs)
    both = pairs.differs[0] * pairs.differs[1] - pairs.q * (1 - (p + p_other) / others)
    both = both / (1 - pairs.q + pairs.q / others)
    covariance = both - p * other_errs - p_other * errs + p * p_other  # (e - p)(e' - p') if the reference is right
    deviation = np.maximum(np.sqrt(rate * (1 - rate)), _DEVIATION)
    scale = deviation[pairs.workers[0]] * deviation[pairs.workers[1]]
    return tuple(np.bincount(pairs.item, values, annotations.n_items).astype(float) for values in (covariance, scale))


def _worth(size: npt.NDArray[np.int64], weights: Array, correlation: Array) -> Array:
    """Return the mean over items of k / (1 + (k - 1) r) for each resample, by the sizes that occur."""
    sizes, at = np.unique(size, return_inverse=True)
    share = np.stack([weights[:, at == code].sum(axis=1) for code in range(len(sizes))], axis=1)
    r = np.maximum(correlation, 0)[:, None]
    worth = sizes / (1 + (sizes - 1) * r)
    return np.asarray((share * worth).sum(axis=1) / share.sum(axis=1))
