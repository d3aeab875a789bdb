"""Cross-validation splits of annotations: folds of labels for aggregators, folds of items for classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.feature_names import feature_names_of
from manyhands.features import DatasetRows, Index, Rows, as_rows, check_rows
from manyhands.heldout import split_labels
from manyhands.row_matching import match_rows
from manyhands.row_order import RowGetter


@dataclass(frozen=True, eq=False)
class Fold:
    """One cross-validation split: the arguments of `fit` and those of `score`.

    Attributes
    ----------
    training : tuple
        Positional arguments of `fit`: ``(annotations,)`` for an aggregator, ``(X, annotations)`` for a classifier.
    heldout : tuple
        Positional arguments of `score`, in the same form.
    gold : dict
        Known class of each gold item in the training part.
    heldout_gold : dict
        Known class of held-out gold items, by their row in the held-out part; only for classifiers.
    """

    training: tuple[Any, ...]
    heldout: tuple[Any, ...]
    gold: dict[Any, Any]
    heldout_gold: dict[int, Any] = field(default_factory=dict)

    @property
    def n_heldout(self) -> int:
        """Number of held-out annotations and gold classes."""
        return int(self.heldout[-1].n_annotations) + len(self.heldout_gold)


def make_folds(
    annotations: Annotations,
    X: Any,
    gold: Mapping[Any, Any],
    n_folds: int,
    rng: np.random.Generator,
    ids: Any = None,
) -> list[Fold]:
    """Return the splits of labels or, with features, of items; the items are in the order of sorted ids.

    Parameters
    ----------
    annotations : Annotations
        Labels of the crowd.
    X : array-like, sparse matrix or None
        Features, one row per item; None splits the labels.
    gold : mapping of item to class
        Known classes.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Generator that assigns items to folds.
    ids : sequence of shape (n_rows,), str or None, default=None
        Item id of each row of X, or the column that has them.

    Returns
    -------
    list of Fold
        At least two.

    Raises
    ------
    AnnotationError
        Where there are too few annotations for two folds.
    """
    if X is None:
        folds = list(label_folds(annotations._with_sorted_items(), n_folds, gold))
    else:
        matched = match_rows(X, annotations, ids)
        X, annotations, rows = matched.X, matched.annotations, as_rows(matched.X)
        order = np.arange(len(rows)) if matched.order is None else matched.order
        check_rows(rows, annotations.n_items)
        order = order if annotations._sorting_order is None else order[annotations._sorting_order]
        frame = X if feature_names_of(X) is not None else None
        if not np.array_equal(order, np.arange(len(rows))):
            X = _subset(rows, order, frame)
            frame, rows = None if frame is None else X, as_rows(X)
        folds = list(item_folds(rows, annotations._with_sorted_items(), n_folds, gold, rng, frame))
    if len(folds) < 2:
        raise AnnotationError(
            f"{annotations.n_annotations} label(s) on {annotations.n_items} item(s) are too few to hold some out."
        )
    return folds


def label_folds(annotations: Annotations, n_folds: int, gold: Mapping[Any, Any]) -> Iterator[Fold]:
    """Splits for aggregators: each annotation is held out once, the other labels of its item are training data.

    The folds are those of `manyhands.heldout.split_labels`: they depend on the pattern of the labels alone and use no
    random numbers.

    Parameters
    ----------
    annotations : Annotations
        Labels of the crowd.
    n_folds : int
        Number of folds.
    gold : mapping of item to class
        Known classes; every fold keeps all of them, because every fold keeps all items.

    Yields
    ------
    Fold
        Folds with at least one held-out and one training annotation.
    """
    fold = split_labels(annotations, n_folds)
    for f in range(n_folds):
        if 0 < np.sum(fold == f) < len(fold):
            yield Fold((annotations.keep(fold != f),), (annotations.keep(fold == f),), dict(gold))


def item_folds(
    rows: Rows,
    annotations: Annotations,
    n_folds: int,
    gold: Mapping[Any, Any],
    rng: np.random.Generator,
    frame: Any = None,
) -> Iterator[Fold]:
    """Splits for classifiers: each item with labels or gold is held out once, with all its annotations and its gold.

    Other items are in the training part of every fold, for methods that use unlabelled features.

    Parameters
    ----------
    rows : Rows
        Features, one row per item.
    annotations : Annotations
        Labels of the crowd.
    n_folds : int
        Number of folds.
    gold : mapping of item to class
        Known classes; a fold keeps those of its training items.
    rng : numpy.random.Generator
        Generator that assigns items to folds.
    frame : data frame or None, default=None
        The frame that the rows were read from, where its columns have names: both parts of a fold keep them.

    Yields
    ------
    Fold
        Folds whose training part has at least one annotation.
    """
    is_gold = np.array([item in gold for item in annotations.item_ids.tolist()], bool)
    labelled = rng.permutation(np.flatnonzero((annotations.n_labels > 0) | is_gold))
    for fold in range(min(n_folds, len(labelled))):
        heldout = np.sort(labelled[fold::n_folds])
        rest = np.setdiff1d(np.arange(annotations.n_items), heldout)
        if annotations.n_labels[rest].any():
            kept = set(annotations.item_ids[rest].tolist()) if gold else set()
            known = {item: value for item, value in gold.items() if item in kept}
            training, test = _subset(rows, rest, frame), _subset(rows, heldout, frame)
            items = annotations.item_ids[heldout].tolist()
            hidden = {row: gold[item] for row, item in enumerate(items) if item in gold}
            yield Fold((training, annotations[rest]), (test, annotations[heldout]), known, hidden)


def _subset(rows: Rows, index: Index, frame: Any) -> Any:
    """Return these rows of the features, in the form in which they were given."""
    if frame is not None:
        return frame.iloc[index] if hasattr(frame, "iloc") else frame[index]  # pandas takes rows by position so
    return RowGetter(rows.getter, index) if isinstance(rows, DatasetRows) else rows.whole()[index]
