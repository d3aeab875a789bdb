"""Agreement and Cohen's kappa of every two workers on the items that both labelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.kernels import sums_by
from manyhands.exceptions import LimitError
from manyhands.metrics.vote_patterns import Array, Positions, WorkerLabels, gather_worker_labels
from manyhands.metrics.weighted_kappa import WEIGHTS, grade_scales
from manyhands.validation import Number, as_annotations, check_parameters

_MAX_LABEL_PAIRS = 100_000_000  # about twenty seconds
_CHUNK = 1 << 21  # pairs of labels held at a time

_CONSTRAINTS = {"min_shared": Number(whole=True, least=1), "max_pairs": Number(whole=True, least=1)}


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of pairs of workers; one entry per pair, sorted by the codes of the two workers.

    Attributes
    ----------
    a : ndarray of int of shape (n_pairs,)
        Code of the first worker, whose id is ``annotations.worker_ids[a]``.
    b : ndarray of int of shape (n_pairs,)
        Code of the second worker; larger than `a`.
    n_shared : ndarray of int of shape (n_pairs,)
        Number of items that both labelled.
    agreement : ndarray of shape (n_pairs,)
        Share of these on which both labels are equal.
    kappa : ndarray of shape (n_pairs,)
        Cohen's kappa; NaN where both used one and the same class only.
    n_left_out : int
        Number of further pairs with enough shared items, beyond `max_pairs`.
    linear_kappa : ndarray of shape (n_pairs,) or None, default=None
        Cohen's kappa with linear weights; None without `order`.
    quadratic_kappa : ndarray of shape (n_pairs,) or None, default=None
        Cohen's kappa with quadratic weights; None without `order`.
    """

    a: Positions
    b: Positions
    n_shared: Positions
    agreement: Array
    kappa: Array
    n_left_out: int
    linear_kappa: Array | None = None
    quadratic_kappa: Array | None = None


def pair_agreement(
    annotations: Annotations | Any,
    min_shared: int = 5,
    max_pairs: int = 100_000,
    order: Sequence[Any] | None = None,
) -> PairAgreement:
    """Agreement of every two workers who share items: as a share, and corrected for chance as Cohen's kappa.

    Pairs of labels are processed for a few workers at a time, and only pairs of workers with a common item are stored.
    An item with m labels has m (m - 1) / 2 pairs of labels.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    min_shared : int, default=5
        Smallest number of shared items.
    max_pairs : int, default=100000
        Largest number of pairs to return: those with most shared items, and among equal numbers the first.
    order : sequence or None, default=None
        The classes from low to high, for weighted kappa; None has it for ordered annotations only.

    Returns
    -------
    PairAgreement
        One entry per pair.

    Raises
    ------
    LimitError
        If there are more than a hundred million pairs of labels.

    References
    ----------
    Cohen (1960), "A coefficient of agreement for nominal scales".
    Cohen (1968), "Weighted kappa: nominal scale agreement with provision for scaled disagreement or partial credit".

    Examples
    --------
    >>> pairs = pair_agreement(Annotations.from_matrix([[0, 0], [1, 1], [0, 1], [1, 0]]), min_shared=1)
    >>> pairs.n_shared.tolist(), pairs.agreement.tolist(), pairs.kappa.tolist()
    ([4], [0.5], [0.0])
    """
    check_parameters("pair_agreement", {"min_shared": min_shared, "max_pairs": max_pairs}, _CONSTRAINTS)
    annotations = as_annotations(annotations)
    triples = gather_worker_labels(annotations)
    is_ordered = order is not None or annotations.is_ordered
    scales = [grade_scales(annotations, weights, order) for weights in WEIGHTS] if is_ordered else []
    found, n_found = _empty(len(scales)), 0
    for first, second in _label_pairs(triples, annotations.n_items):
        more = _compare(triples, first, second, annotations, min_shared, scales)
        n_found += len(more[0])
        found = _most_shared([np.append(old, new) for old, new in zip(found, more)], max_pairs)
    pair, n_shared, agreement, kappa, *weighted = found
    a, b = np.divmod(pair.astype(np.int64), max(annotations.n_workers, 1))
    return PairAgreement(a, b, n_shared.astype(np.int64), agreement, kappa, n_found - len(pair), *weighted)


def _label_pairs(triples: WorkerLabels, n_items: int) -> Iterator[tuple[Positions, Positions]]:
    """Positions of two labels of an item, in chunks; the first label is by the worker with the lower code.

    All pairs of a worker with later ones are in one chunk, so that no state is kept between chunks.
    """
    end = np.cumsum(np.bincount(triples.item, minlength=n_items))[triples.item]
    n_after = end - 1 - np.arange(len(end))  # labels of one item are sorted by worker
    n_pairs = int(n_after.sum())
    if n_pairs > _MAX_LABEL_PAIRS:
        raise LimitError(
            f"There are {n_pairs} pairs of labels, more than {_MAX_LABEL_PAIRS}; use a part of the items, "
            f"annotations[rows]."
        )
    order = np.argsort(triples.worker, kind="stable")
    last_of_worker = np.flatnonzero(np.diff(triples.worker[order], append=-1))
    done = np.cumsum(n_after[order])[last_of_worker]  # cumulative number of pairs, by worker
    begin = 0
    while begin < len(order):
        n_before = done[np.searchsorted(last_of_worker, begin) - 1] if begin else 0
        nth = max(np.searchsorted(done, n_before + _CHUNK, side="right") - 1, np.searchsorted(last_of_worker, begin))
        part = order[begin : last_of_worker[nth] + 1]
        begin = int(last_of_worker[nth]) + 1
        first = np.repeat(part, n_after[part])
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(n_after[part]) - n_after[part], n_after[part])
        yield first, second


def _compare(
    triples: WorkerLabels,
    first: Positions,
    second: Positions,
    annotations: Annotations,
    min_shared: int,
    scales: list[Array],
) -> list[npt.NDArray[Any]]:
    """For each pair of workers among these pairs of labels: key, items shared, agreement, kappa, weighted kappas."""
    others = triples.worker[first] != triples.worker[second]  # not the parts of one split vote
    first, second = first[others], second[others]
    key, pair = np.unique(triples.worker[first] * annotations.n_workers + triples.worker[second], return_inverse=True)
    weight = triples.share[first] * triples.share[second]
    n_shared = np.rint(sums_by(pair, weight, len(key)))
    enough = n_shared >= min_shared
    kept = enough[pair]
    pair, weight = (np.cumsum(enough) - 1)[pair[kept]], weight[kept]
    label_a, label_b = triples.label[first[kept]], triples.label[second[kept]]
    key, n_shared = key[enough], n_shared[enough]
    agreement = sums_by(pair, weight * (label_a == label_b), len(key)) / n_shared
    chance = _chance(pair, weight, label_a, label_b, annotations.n_classes, len(key)) / n_shared**2
    defined = chance < 1 - 1e-12
    kappa = np.divide(agreement - chance, 1 - chance, out=np.full(len(key), np.nan), where=defined)
    weighted = [_weighted(pair, weight, label_a, label_b, scale, n_shared) for scale in scales]
    return [key, n_shared, agreement, kappa, *weighted]


def _weighted(
    pair: Positions, weight: Array, label_a: Positions, label_b: Positions, scales: Array, n_shared: Array
) -> Array:
    """(n_pairs,) weighted kappa: 1 - observed / expected sum of squared differences on the scales."""
    observed, expected = np.zeros(len(n_shared)), np.zeros(len(n_shared))
    for scale in scales.T:
        a, b = scale[label_a], scale[label_b]
        sum_a, sum_b, squares, products = (
            sums_by(pair, weight * values, len(n_shared)) for values in (a, b, a * a + b * b, a * b)
        )
        observed += squares - 2 * products
        expected += squares - 2 * sum_a * sum_b / n_shared
    undefined = np.full(len(n_shared), np.nan)
    return 1 - np.divide(observed, expected, out=undefined, where=expected > 1e-9 * n_shared)


def _chance(
    pair: Positions, weight: Array, label_a: Positions, label_b: Positions, n_classes: int, n_pairs: int
) -> Array:
    """(n_pairs,) the sum over classes of the product of the two workers' label counts."""
    cells = [np.unique(pair * n_classes + label, return_inverse=True) for label in (label_a, label_b)]
    named = [sums_by(where, weight, len(cell)) for cell, where in cells]
    both, in_a, in_b = np.intersect1d(cells[0][0], cells[1][0], assume_unique=True, return_indices=True)
    return sums_by(both // max(n_classes, 1), named[0][in_a] * named[1][in_b], n_pairs)


def _most_shared(found: list[npt.NDArray[Any]], max_pairs: int) -> list[npt.NDArray[Any]]:
    """The pairs with most shared items, in the order of their keys."""
    if len(found[0]) <= max_pairs:
        return found
    kept = np.sort(np.argsort(-found[1].astype(float), kind="stable")[:max_pairs])
    return [values[kept] for values in found]


def _empty(n_weighted: int) -> list[npt.NDArray[Any]]:
    return [np.zeros(0, np.int64), *(np.zeros(0) for _ in range(3 + n_weighted))]
