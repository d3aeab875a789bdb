"""Synthetic items of minority classes (section 2.3 of the paper): how many, from which candidates, and where they lie.

    z' = z_i + delta (z_r - z_i),   r one of the k nearest candidates of the same class

Functions of arrays. Nothing here has the size items x workers: time and memory grow with the number of labels.

References
----------
W. Wang, G. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM.
N. Chawla, K. Bowyer, L. Hall and W. Kegelmeyer (2002), SMOTE: synthetic minority over-sampling technique, JAIR 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.class_balance import up_to_largest
from manyhands.classifiers.iced.options import Synthesis
from manyhands.classifiers.iced.synthetic_labels import SyntheticLabels, synthetic_labels
from manyhands.neighbours import nearest, nearest_others

Points = npt.NDArray[np.float32]  # (n, n_dimensions)
Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MAX_CANDIDATES = 5_000  # per class, and real items among which neighbours are searched; a random subset of more


class SyntheticItems(NamedTuple):
    """Synthetic items and their labels.

    Attributes
    ----------
    points : ndarray of float32, shape (n_points, n_dimensions)
        Embeddings.
    labels : SyntheticLabels
        Labels of the workers.
    n_of_class : ndarray of int, shape (n_classes,)
        Number of items generated from the candidates of each class.
    """

    points: Points
    labels: SyntheticLabels
    n_of_class: npt.NDArray[np.int64]


def synthesise(
    options: Synthesis,
    annotations: Annotations,
    embedding: Points,
    certainty: Array,
    candidates: Sequence[Indices],
    n_wanted: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> SyntheticItems:
    """Generate synthetic items of each class, with labels.

    Parameters
    ----------
    options : Synthesis
        How they are generated.
    annotations : Annotations
        Labels of the real items. The nearest real items of a point are searched among those with a label.
    embedding : ndarray of float32, shape (n_items, n_dimensions)
        Embeddings of all real items.
    certainty : ndarray of shape (n_items,)
        Label certainty of all real items.
    candidates : sequence of ndarray of int
        For each class, the items between which points are interpolated.
    n_wanted : ndarray of int, shape (n_classes,)
        Number of points of each class.
    rng : numpy.random.Generator
        Draws pairs, positions and labels.

    Returns
    -------
    SyntheticItems
    """
    k, rule, noise = options.n_neighbors, options.delta, options.delta_noise
    made = [
        synthetic_points(embedding[c], certainty[c], n, rng, k=k, rule=rule, noise=noise)
        for c, n in zip(candidates, n_wanted.tolist())
    ]
    points = np.concatenate([embedding[:0], *made])
    labelled = np.flatnonzero(annotations.n_labels)
    known = labelled[random_subset(len(labelled), MAX_CANDIDATES, rng)]
    neighbours = known[nearest(embedding[known], points, k)]
    labels = synthetic_labels(annotations, neighbours, options.labels, rng)
    return SyntheticItems(points, labels, np.array([*map(len, made)], np.int64))


def no_synthetic_items(embedding: Points, n_classes: int) -> SyntheticItems:
    """Return an empty set of synthetic items.

    Parameters
    ----------
    embedding : ndarray of float32, shape (n_items, n_dimensions)
        Determines the number of dimensions.
    n_classes : int
        Number of classes.

    Returns
    -------
    SyntheticItems
    """
    empty = np.zeros(0, np.int64)
    return SyntheticItems(embedding[:0], SyntheticLabels(empty, empty, empty), np.zeros(n_classes, np.int64))


def synthesis_plan(
    size: str,
    items: Indices,
    inferred: npt.NDArray[Any],
    n_at_first: npt.NDArray[Any],
    predicted: npt.NDArray[Any] | None = None,
) -> tuple[list[Indices], npt.NDArray[np.int64]]:
    """Return the candidates of each class and the number of synthetic items to generate from them.

    Parameters
    ----------
    size : {"repeat", "fixed", "balance"}
        As in `synthesis_counts`.
    items : ndarray of int, shape (n,)
        Items with a label or gold.
    inferred : ndarray of int, shape (n,)
        Their classes by the last truth inference.
    n_at_first : ndarray of int, shape (n_classes,)
        Number of items of each class by the labels of the first synthesis.
    predicted : ndarray of int, shape (n_items,), default=None
        Classes predicted by the network. If given, candidates are the items on which both agree, in every class in
        which at least two items do.

    Returns
    -------
    candidates : list of ndarray of int
        For each class, the candidates.
    n_wanted : ndarray of int, shape (n_classes,)
        Number of synthetic items of each class.
    """
    n_classes = len(n_at_first)
    candidates = [items[inferred == k] for k in range(n_classes)]
    if predicted is not None:
        agreed = [own[predicted[own] == k] for k, own in enumerate(candidates)]
        candidates = [both if len(both) > 1 else own for both, own in zip(agreed, candidates)]
    n_candidates = np.array([*map(len, candidates)], np.int64)
    n_inferred = np.bincount(inferred, minlength=n_classes)
    return candidates, synthesis_counts(size, n_at_first, n_inferred, n_candidates)


def synthesis_counts(
    size: str, n_at_first: npt.NDArray[Any], n_inferred: npt.NDArray[Any], n_candidates: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return the number of synthetic items of each class.

    Parameters
    ----------
    size : {"repeat", "fixed", "balance"}
        "repeat": R = round(largest / own) - 1 per candidate, by the labels of the first synthesis; "fixed": what each
        class lacks to the largest one by these labels; "balance": by the labels inferred last.
    n_at_first : ndarray of int, shape (n_classes,)
        Items of each class by the labels of the first synthesis.
    n_inferred : ndarray of int, shape (n_classes,)
        Items of each class by the last truth inference.
    n_candidates : ndarray of int, shape (n_classes,)
        Candidates of each class.

    Returns
    -------
    ndarray of int, shape (n_classes,)

    Examples
    --------
    >>> synthesis_counts("repeat", np.array([90, 10]), np.array([80, 20]), np.array([80, 15])).tolist()
    [0, 120]
    """
    if size == "repeat":
        repeats = np.rint(n_at_first.max(initial=0) / np.maximum(n_at_first, 1)) - 1
        return np.asarray(np.where(n_at_first > 0, repeats * n_candidates, 0), np.int64)
    return up_to_largest(n_inferred if size == "balance" else n_at_first)


def interpolation_weights(
    rule: str, certainty: Array, of_neighbour: Array, noise: float, rng: np.random.Generator
) -> Array:
    """Return delta of each pair of an item i and its neighbour r, between 0 (the item) and 1 (the neighbour).

    Parameters
    ----------
    rule : {"intent", "paper", "smote"}
        "intent": S_r / (S_i + S_r), near the more certain of the two, as the text of the paper describes it. "paper":
        S_i / (S_i + S_r), as Eq. 2.5 is printed, near the less certain. "smote": uniform.
    certainty : ndarray of shape (n,)
        S_i, above 0.
    of_neighbour : ndarray of shape (n,)
        S_r, above 0.
    noise : float
        Half width of uniform noise; without it all pairs of equally certain items would give their midpoint.
    rng : numpy.random.Generator
        Draws the noise.

    Returns
    -------
    ndarray of shape (n,)
    """
    if rule == "smote":
        return rng.random(len(certainty))
    attracting = of_neighbour if rule == "intent" else certainty
    moved = attracting / (certainty + of_neighbour) + rng.uniform(-noise, noise, len(certainty))
    return np.asarray(np.clip(moved, 0.0, 1.0))


def interpolate(point: Points, other: Points, delta: Array) -> Points:
    """Return point + delta (other - point) for each row, of shape (n, n_dimensions)."""
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
    """Return points between candidates of one class; each candidate starts about equally many of them.

    Parameters
    ----------
    candidates : ndarray of float32, shape (n, n_dimensions)
        Embeddings of the candidates.
    certainty : ndarray of shape (n,)
        Their label certainty.
    n_wanted : int
        Number of points.
    rng : numpy.random.Generator
        Draws pairs and positions.
    k : int, default=5
        Number of nearest candidates among which the other end is drawn.
    rule : {"intent", "paper", "smote"}, default="intent"
        As in `interpolation_weights`.
    noise : float, default=0.2
        As in `interpolation_weights`.

    Returns
    -------
    ndarray of float32, shape (n_wanted, n_dimensions)
        Empty with fewer than two candidates.
    """
    if len(candidates) < 2 or n_wanted <= 0:
        return candidates[:0]
    chosen = random_subset(len(candidates), MAX_CANDIDATES, rng)
    candidates, certainty = candidates[chosen], certainty[chosen]
    neighbours = nearest_others(candidates, k)
    begin = np.resize(rng.permutation(len(candidates)), n_wanted)
    end = neighbours[begin, rng.integers(neighbours.shape[1], size=n_wanted)]
    delta = interpolation_weights(rule, certainty[begin], certainty[end], noise, rng)
    return interpolate(candidates[begin], candidates[end], delta)


def augment(annotations: Annotations, made: SyntheticItems) -> Annotations:
    """Append synthetic items and their labels to the real ones.

    Parameters
    ----------
    annotations : Annotations
        Labels of the real items.
    made : SyntheticItems
        Synthetic items; point i becomes item n_items + i.

    Returns
    -------
    Annotations
        With codes as ids of items, workers and classes.
    """
    labels = made.labels
    return Annotations(
        np.concatenate([annotations.item, labels.point + annotations.n_items]),
        np.concatenate([annotations.worker, labels.worker]),
        np.concatenate([annotations.label, labels.label]),
        item_ids=np.arange(annotations.n_items + len(made.points)),
        worker_ids=np.arange(annotations.n_workers),
        classes=np.arange(annotations.n_classes),
    )


def random_subset(n: int, most: int, rng: np.random.Generator) -> Indices:
    """Return the numbers below n, or `most` of them at random, in increasing order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
