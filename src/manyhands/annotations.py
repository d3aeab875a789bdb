"""Annotations: who said what about which item, as read-only sparse triples.

The triples are kept sorted by item, then worker, then label, so the order in which they were given
never shows in any result. Codes are int32; the caller's own values live in `item_ids`, `worker_ids`
and `classes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.encoding import Values, as_ids, encode
from manyhands.exceptions import AnnotationError
from manyhands.validation import check_codes, check_same_length

Codes = npt.NDArray[np.int32]

_CHUNK = 1 << 20  # annotations unpacked at a time, so that a large build needs little extra memory


class Groups(NamedTuple):
    """Positions of the annotations, group after group: `order[start[g]:start[g + 1]]` are those of group g."""

    start: npt.NDArray[np.int64]
    order: npt.NDArray[np.intp]


class Annotations:
    """Immutable crowd labels: sparse (item, worker, label) triples that stand where `y` stands.

    `len(annotations)` is the number of items and `annotations[rows]` selects items, so scikit-learn's
    `train_test_split`, `cross_val_predict` and `GridSearchCV(cv=KFold(...))` take it as `y`.

    Parameters
    ----------
    item, worker, label : arrays of codes, one entry per annotation
    item_ids, worker_ids, classes : the caller's own values; code c stands for entry c

    Attributes
    ----------
    item, worker, label : (n_annotations,) int32, read-only, sorted by item
    item_ids, worker_ids, classes : read-only arrays
    by_item, by_worker : `Groups`, built on first use

    Examples
    --------
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["ann", "bob", "ann"], ["cat", "dog", "cat"])
    >>> votes
    Annotations(3 labels on 2 items by 2 workers, 2 classes)
    >>> votes.classes[votes.label].tolist()
    ['cat', 'dog', 'cat']
    >>> votes[[1]].item_ids.tolist()
    ['b']
    """

    def __init__(
        self,
        item: npt.ArrayLike,
        worker: npt.ArrayLike,
        label: npt.ArrayLike,
        *,
        item_ids: Values,
        worker_ids: Values,
        classes: Values,
    ) -> None:
        self.item_ids = _frozen(as_ids(item_ids, "item"))
        self.worker_ids = _frozen(as_ids(worker_ids, "worker"))
        self.classes = _frozen(as_ids(classes, "class"))
        sizes = self.n_items, self.n_workers, self.n_classes
        columns = [check_codes(codes, size, role) for codes, size, role in zip((item, worker, label), sizes, _ROLES)]
        check_same_length(dict(zip(_ROLES, columns)))
        self.item, self.worker, self.label = map(_frozen, _sorted_triples(columns, self.n_workers, self.n_classes))

    @classmethod
    def from_triples(
        cls,
        items: Values,
        workers: Values,
        labels: Values,
        *,
        item_ids: Values | None = None,
        worker_ids: Values | None = None,
        classes: Values | None = None,
    ) -> Annotations:
        """Build from three columns of any hashable values.

        Without `item_ids`, `worker_ids` or `classes` these are the values that occur, sorted. With them, the
        order is the caller's (so that item i is row i of X), and values that never occur are legal: items
        and workers without labels, classes nobody chose. Values that compare equal are one value.
        """
        check_same_length({"items": items, "workers": workers, "labels": labels})
        item, item_ids = encode(items, item_ids, "item")
        worker, worker_ids = encode(workers, worker_ids, "worker")
        label, classes = encode(labels, classes, "label")
        return cls(item, worker, label, item_ids=item_ids, worker_ids=worker_ids, classes=classes)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        missing: Hashable = -1,
        item_ids: Values | None = None,
        worker_ids: Values | None = None,
        classes: Values | None = None,
    ) -> Annotations:
        """Build from an items x workers matrix in which `missing` (or NaN, or None) means no label.

        >>> Annotations.from_matrix([[0, 1, -1], [-1, -1, -1]])
        Annotations(2 labels on 2 items by 3 workers, 2 classes)
        """
        matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise AnnotationError(f"A label matrix is items x workers; this one has {matrix.ndim} dimension(s).")
        present = (matrix != missing) & (matrix == matrix)  # NaN differs from itself
        if matrix.dtype == object:
            present &= np.array([[value is not None for value in row] for row in matrix]).reshape(matrix.shape)
        item, worker = np.nonzero(present)
        label, classes = encode(matrix[item, worker], classes, "label")
        return cls(
            item,
            worker,
            label,
            item_ids=np.arange(matrix.shape[0]) if item_ids is None else item_ids,
            worker_ids=np.arange(matrix.shape[1]) if worker_ids is None else worker_ids,
            classes=classes,
        )

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_workers(self) -> int:
        return len(self.worker_ids)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        return len(self.item)

    @property
    def shape(self) -> tuple[int]:
        """`(n_items,)`: scikit-learn asks what stands in the place of `y` for its shape."""
        return (self.n_items,)

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_annotations} labels on {self.n_items} items "
            f"by {self.n_workers} workers, {self.n_classes} classes)"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        fields = ("item_ids", "worker_ids", "classes", "item", "worker", "label")
        return all(np.array_equal(getattr(self, f), getattr(other, f)) for f in fields)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and arrays have no cheap hash

    @cached_property
    def by_item(self) -> Groups:
        """Annotations grouped by item; they are stored in this order already."""
        return Groups(_starts(self.item, self.n_items), np.arange(self.n_annotations))

    @cached_property
    def by_worker(self) -> Groups:
        """Annotations grouped by worker, items ascending within a worker."""
        return Groups(_starts(self.worker, self.n_workers), np.argsort(self.worker, kind="stable"))

    @cached_property
    def n_labels(self) -> npt.NDArray[np.int64]:
        """(n_items,) how many labels each item has."""
        return _frozen(np.bincount(self.item, minlength=self.n_items))

    def __getitem__(self, rows: Any) -> Annotations:
        """The items `rows`, in that order, lined up with `X[rows]`; workers and classes stay as they are."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # scikit-learn writes array[rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_items)[rows])
        begin = self.by_item.start[chosen]
        size = self.by_item.start[chosen + 1] - begin
        item = np.repeat(np.arange(len(chosen)), size)
        position = np.arange(len(item)) - np.repeat(np.cumsum(size) - size - begin, size)
        return Annotations(
            item,
            self.worker[position],
            self.label[position],
            item_ids=self.item_ids[chosen],
            worker_ids=self.worker_ids,
            classes=self.classes,
        )

    def keep(self, which: npt.NDArray[Any]) -> Annotations:
        """Only the annotations at the positions or under the mask `which`; all items, workers and classes stay."""
        return self._with(self.item[which], self.worker[which], self.label[which])

    def with_more(self, item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike) -> Annotations:
        """A new object with further annotations, given as codes; this one never changes."""
        old, new = (self.item, self.worker, self.label), (item, worker, label)
        return self._with(*(np.concatenate([a, np.atleast_1d(b)]) for a, b in zip(old, new)))

    def unanswered(self, block_size: int = 1024) -> Iterator[tuple[Codes, Codes]]:
        """Stream the (item, worker) pairs without a label, `block_size` items at a time."""
        for first in range(0, self.n_items, block_size):
            last = min(first + block_size, self.n_items)
            open_pair = np.ones((last - first, self.n_workers), bool)
            begin, end = self.by_item.start[[first, last]]
            open_pair[self.item[begin:end] - first, self.worker[begin:end]] = False
            item, worker = np.nonzero(open_pair)
            yield (item + first).astype(np.int32), worker.astype(np.int32)

    def _with(self, item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike) -> Annotations:
        ids = {"item_ids": self.item_ids, "worker_ids": self.worker_ids, "classes": self.classes}
        return Annotations(item, worker, label, **ids)


_ROLES = ("item", "worker", "label")


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


def _starts(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """Where each group begins when the codes are sorted, and where the last one ends."""
    start = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_groups), out=start[1:])
    return start


def _sorted_triples(triples: Sequence[npt.NDArray[Any]], n_workers: int, n_classes: int) -> tuple[Codes, Codes, Codes]:
    """Sort by item, worker, label: one 64-bit key per annotation is sorted in place and taken apart again."""
    item, worker, label = triples
    label_bits, worker_bits = n_classes.bit_length(), n_workers.bit_length()
    if int(item.max(initial=0)).bit_length() + worker_bits + label_bits > 63:
        order = np.lexsort((label, worker, item))
        return item[order].astype(np.int32), worker[order].astype(np.int32), label[order].astype(np.int32)
    key = item.astype(np.int64)
    key <<= worker_bits
    key |= worker
    key <<= label_bits
    key |= label
    if not np.all(key[1:] >= key[:-1]):
        key.sort()
    columns = np.empty(len(key), np.int32), np.empty(len(key), np.int32), np.empty(len(key), np.int32)
    for first in range(0, len(key), _CHUNK):
        part = slice(first, first + _CHUNK)
        columns[0][part] = key[part] >> (worker_bits + label_bits)
        columns[1][part] = (key[part] >> label_bits) & ((1 << worker_bits) - 1)
        columns[2][part] = key[part] & ((1 << label_bits) - 1)
    return columns
