"""From columns of items, workers, labels and ground truth to Annotations and an aligned `y_true`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.datasets.crowd_dataset import NO_TRUTH
from manyhands.datasets.files import Column
from manyhands.encoding import encode
from manyhands.exceptions import AlignmentError, AnnotationError

DUPLICATES = ("last", "all")


def build(
    columns: list[Column], truth: list[Column] | None, item_ids: Column | None, duplicates: str, where: str
) -> tuple[Annotations, Column | None, npt.NDArray[np.intp]]:
    """Build annotations and aligned ground truth.

    Items are `item_ids`, or those that occur in labels or truth, sorted; classes are those that occur in either.

    Parameters
    ----------
    columns : list of three ndarrays of shape (n_rows,)
        Items, workers and labels.
    truth : list of two ndarrays or None
        Items and their classes.
    item_ids : ndarray of shape (n_items,) or None
        All items in the order of the features; None for those that occur.
    duplicates : {"last", "all"}
        Which labels to keep if a worker labelled an item several times.
    where : str
        Name of the data set, for error messages.

    Returns
    -------
    annotations : Annotations
        The labels.
    y_true : ndarray of shape (n_items,) or None
        The class of each item, with the mark for unknown ones; None without truth.
    rows : ndarray of int, shape (n_annotations,)
        Row of the table of each annotation.

    Raises
    ------
    AlignmentError
        If labels or truth have items that the features lack.
    AnnotationError
        If labels are numbers and truth is text, or the reverse.
    """
    items, workers, labels = columns
    in_truth = [np.zeros(0, items.dtype), np.zeros(0, labels.dtype)] if truth is None else truth
    if item_ids is None:
        item_ids = encode(_joined(items, in_truth[0], where), None, "item")[1]
    classes = encode(_joined(labels, in_truth[1], where), None, "label")[1]
    try:
        item = encode(items, item_ids, "item")[0]
        known = encode(in_truth[0], item_ids, "item")[0]
    except AnnotationError as error:
        raise AlignmentError(f"{where} has items that its features lack: {error}") from None
    worker, worker_ids = encode(workers, None, "worker")
    label = encode(labels, classes, "label")[0]
    rows = _chosen_rows(item, worker, label, len(worker_ids), duplicates)
    annotations = Annotations(
        item[rows], worker[rows], label[rows], item_ids=item_ids, worker_ids=worker_ids, classes=classes
    )
    return annotations, None if truth is None else _aligned(known, in_truth[1], len(item_ids)), rows


def _joined(values: Column, others: Column, where: str) -> Column:
    """Concatenate values of labels and truth, which must have one type."""
    if len(others) and values.dtype != others.dtype:
        raise AnnotationError(f"Labels and truth of {where} do not match: one is numbers, the other is text.")
    return np.concatenate([values, others.astype(values.dtype)])


def _chosen_rows(
    item: npt.NDArray[np.int32],
    worker: npt.NDArray[np.int32],
    label: npt.NDArray[np.int32],
    n_workers: int,
    duplicates: str,
) -> npt.NDArray[np.intp]:
    """Return the rows to keep, in the order in which Annotations stores them."""
    if duplicates == "all":
        return np.lexsort((label, worker, item))
    pair = item.astype(np.int64) * n_workers + worker
    _, from_the_end = np.unique(pair[::-1], return_index=True)  # the first from the end is the last
    return len(pair) - 1 - from_the_end


def _aligned(item: npt.NDArray[np.int32], classes: Column, n_items: int) -> Column:
    """Return the class of each item, with the mark for unknown ones; if an item occurs twice, the last row counts."""
    if classes.dtype == object:
        y_true: Column = np.full(n_items, None, object)
    else:
        y_true = np.full(n_items, NO_TRUTH, np.int64)
    y_true[item] = classes
    return y_true
