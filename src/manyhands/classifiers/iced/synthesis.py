"""Synthetic items of small classes: points between like items in an embedding, and the labels a crowd would give them.

    z' = z_i + delta (z_r - z_i),   r one of the k nearest candidates of the same class
    what worker w says of z' is what w says of the k nearest real items; nothing, where w labelled none of them

Plain functions of arrays. Nothing here is as large as items x workers: the work grows with the labels.

References
----------
W. Wang et al., Learning from imbalanced crowdsourced labeled data, SDM.
N. Chawla, K. Bowyer, L. Hall and W. Kegelmeyer (2002), SMOTE: synthetic minority over-sampling technique, JAIR 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.class_balance import up_to_largest
from manyhands.neighbours import nearest, nearest_others

Points = npt.NDArray[np.float32]  # (n, n_dimensions)
Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

MOST_CANDIDATES = 5_000  # of a class, and real items among which neighbours are sought; of more, a random choice
SIZES = ("fixed", "repeat", "balance")
DELTA_RULES = ("intent", "paper", "smote")
LABEL_RULES = ("mode", "sample")


class Triples(NamedTuple):
    """Labels of synthetic points: point `point[a]` is called `label[a]` by `worker[a]`."""

    point: npt.NDArray[np.int64]
    worker: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]


class Synthetic(NamedTuple):
    """Synthetic items, their labels, and how many were made of the candidates of each class."""

    points: Points  # (n_points, n_dimensions)
    labels: Triples
    n_of_class: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Recipe:
    """How synthetic items are made: the parameters of `step_lengths`, `nearest` and `synthetic_labels`."""

    delta: str = "intent"
    noise: float = 0.2
    k: int = 5
    labels: str = "mode"

    def make(
        self,
        annotations: Annotations,
        embedding: Points,
        certainty: Array,
        candidates: Sequence[Places],
        n_wanted: npt.NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Synthetic:
        """`n_wanted[c]` items of each class c, made from the items `candidates[c]`; `embedding` is of all items.

        The items nearest to a point are sought among those with a label.
        """
        made = [
            synthetic_points(embedding[c], certainty[c], n, rng, k=self.k, rule=self.delta, noise=self.noise)
            for c, n in zip(candidates, n_wanted.tolist())
        ]
        points = np.concatenate([embedding[:0], *made])
        labelled = np.flatnonzero(annotations.n_labels)
        known = labelled[some(len(labelled), MOST_CANDIDATES, rng)]
        neighbours = known[nearest(embedding[known], points, self.k)]
        labels = synthetic_labels(annotations, neighbours, self.labels, rng)
        return Synthetic(points, labels, np.array([*map(len, made)], np.int64))


def nothing_made(embedding: Points, n_classes: int) -> Synthetic:
    """No synthetic items of any class."""
    nobody = np.zeros(0, np.int64)
    return Synthetic(embedding[:0], Triples(nobody, nobody, nobody), np.zeros(n_classes, np.int64))


def plan(
    size: str,
    items: Places,
    answer: npt.NDArray[Any],
    by_vote: npt.NDArray[Any],
    said: npt.NDArray[Any] | None = None,
) -> tuple[list[Places], npt.NDArray[np.int64]]:
    """For each class its candidates, and how many synthetic items are to be made of them.

    Parameters
    ----------
    size : as in `numbers_wanted`
    items, answer : (n,) the items that are known of, and their classes by now
    by_vote : (n_classes,) how many there were of each class by the vote
    said : (n_items,) if given, candidates are those of which this says so too, wherever they are two at least
    """
    n_classes = len(by_vote)
    candidates = [items[answer == k] for k in range(n_classes)]
    if said is not None:
        agreed = [own[said[own] == k] for k, own in enumerate(candidates)]
        candidates = [both if len(both) > 1 else own for both, own in zip(agreed, candidates)]
    n_candidates = np.array([*map(len, candidates)], np.int64)
    return candidates, numbers_wanted(size, by_vote, np.bincount(answer, minlength=n_classes), n_candidates)


def numbers_wanted(
    size: str, by_vote: npt.NDArray[Any], now: npt.NDArray[Any], n_candidates: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """(n_classes,) how many synthetic items of each class.

    Parameters
    ----------
    size : "balance" up to the largest class as they are now, "fixed" as they were by the vote; "repeat" of every
        candidate as many as the vote would need, rounded
    by_vote, now, n_candidates : (n_classes,) items of each class, and candidates

    >>> numbers_wanted("repeat", np.array([90, 10]), np.array([80, 20]), np.array([80, 15])).tolist()
    [0, 120]
    """
    if size == "repeat":
        repeats = np.rint(by_vote.max(initial=0) / np.maximum(by_vote, 1)) - 1
        return np.asarray(np.where(by_vote > 0, repeats * n_candidates, 0), np.int64)
    return up_to_largest(now if size == "balance" else by_vote)


def step_lengths(rule: str, certainty: Array, of_neighbour: Array, noise: float, rng: np.random.Generator) -> Array:
    """(n,) delta of each pair of an item and its neighbour, within 0 (the item) and 1 (the neighbour).

    Parameters
    ----------
    rule : "intent" S_r / (S_i + S_r), so that the point is near the more certain of the two, as the paper means it;
        "paper" S_i / (S_i + S_r), as it is printed, near the less certain; "smote" uniform
    certainty, of_neighbour : (n,) S_i and S_r, above 0
    noise : delta is moved by up to so much, evenly; equally certain pairs would all meet in the middle
    """
    if rule == "smote":
        return rng.random(len(certainty))
    pulled = of_neighbour if rule == "intent" else certainty
    moved = pulled / (certainty + of_neighbour) + rng.uniform(-noise, noise, len(certainty))
    return np.asarray(np.clip(moved, 0.0, 1.0))


def interpolate(point: Points, other: Points, delta: Array) -> Points:
    """(n, n_dimensions) from each point so far toward the other."""
    return np.asarray(point + delta[:, None].astype(point.dtype) * (other - point))


def synthetic_points(
    candidates: Points,
    certainty: Array,
    n_wanted: int,
    rng: np.random.Generator,
    *,
    k: int = 5,
    rule: str = "intent",
    noise: float = 0.2,
) -> Points:
    """(n_wanted, n_dimensions) points between candidates of one class, each of which begins about equally many.

    Of a single candidate, or none, nothing can be made: the result is then empty.
    """
    if len(candidates) < 2 or n_wanted <= 0:
        return candidates[:0]
    chosen = some(len(candidates), MOST_CANDIDATES, rng)
    candidates, certainty = candidates[chosen], certainty[chosen]
    neighbours = nearest_others(candidates, k)
    begin = np.resize(rng.permutation(len(candidates)), n_wanted)
    end = neighbours[begin, rng.integers(neighbours.shape[1], size=n_wanted)]
    delta = step_lengths(rule, certainty[begin], certainty[end], noise, rng)
    return interpolate(candidates[begin], candidates[end], delta)


def synthetic_labels(
    annotations: Annotations, neighbours: npt.NDArray[Any], rule: str, rng: np.random.Generator
) -> Triples:
    """What each worker would say of points whose nearest real items are `neighbours` (n_points, k), by item code.

    A worker who labelled c of the k items labels the point with probability c / k, so that points are labelled as
    sparsely as items are. He says what he said most often of them, of equals that of the nearest item ("mode"), or
    what he said of one of them ("sample").
    """
    k, n_workers, n_classes = neighbours.shape[1], annotations.n_workers, annotations.n_classes
    flat = neighbours.ravel()
    size = annotations.n_labels[flat]
    position = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - annotations.start[flat], size)
    point, rank = np.divmod(np.repeat(np.arange(len(flat)), size), max(k, 1))
    pair = point * n_workers + annotations.worker[position]
    entry = np.sort((pair * n_classes + annotations.label[position]) * max(k, 1) + rank)  # one key sorts fastest
    entry, rank = np.divmod(entry, max(k, 1))
    pair, label = np.divmod(entry, n_classes)
    first = np.flatnonzero(np.diff(pair, prepend=-1))  # where the labels of each pair of point and worker begin
    n_said = np.diff(first, append=len(pair))
    labels = rng.random(len(first)) * k < n_said
    if rule == "sample":
        said = label[first + (rng.random(len(first)) * n_said).astype(np.int64)]
    else:
        said = _most_frequent(entry, rank, first, n_classes, k)
    point, worker = np.divmod(pair[first], n_workers)
    return Triples(point[labels], worker[labels], said[labels])


def augment(annotations: Annotations, made: Synthetic) -> Annotations:
    """The annotations with the synthetic items behind the real ones; all are named by their numbers."""
    labels = made.labels
    return Annotations(
        np.concatenate([annotations.item, labels.point + annotations.n_items]),
        np.concatenate([annotations.worker, labels.worker]),
        np.concatenate([annotations.label, labels.label]),
        item_ids=np.arange(annotations.n_items + len(made.points)),
        worker_ids=np.arange(annotations.n_workers),
        classes=np.arange(annotations.n_classes),
    )


def some(n: int, most: int, rng: np.random.Generator) -> Places:
    """The numbers below n, or `most` of them at random, in their order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _most_frequent(
    entry: npt.NDArray[np.int64], rank: npt.NDArray[np.int64], first: npt.NDArray[np.intp], n_classes: int, k: int
) -> npt.NDArray[np.int64]:
    """(n_pairs,) the most frequent label of each pair; of equals the one first met, then the lower code.

    `entry` is pair * n_classes + label, sorted, then by rank; the labels of a pair begin at `first`.
    """
    run = np.flatnonzero(np.diff(entry, prepend=-1))  # where a pair's equal labels begin
    if len(run) == 0:
        return np.zeros(0, np.int64)
    times = np.diff(run, append=len(entry))
    worth = ((times * k) + (k - 1 - rank[run])) * n_classes + (n_classes - 1 - entry[run] % n_classes)
    best = np.maximum.reduceat(worth, np.searchsorted(run, first))
    return np.asarray(n_classes - 1 - best % n_classes)
