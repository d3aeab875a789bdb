"""Annotations: who said what about which item, as read-only sparse triples.

The triples are kept sorted by item, then worker, then label, so the order in which they were given
never shows in any result. Codes are int32; the caller's own values live in `item_ids`, `worker_ids`
and `classes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt

from manyhands.encoding import Values, as_column, as_ids, encode, refuse_repeats
from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.sorting import Codes, sort_triples
from manyhands.validation import check_codes, check_same_length

_STRETCH = 1 << 20  # annotations looked at together, so that large crowds need little extra memory


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
    item_ids, worker_ids, classes : the caller's own values; code c stands for entry c. Only items may repeat

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

    item: Codes
    worker: Codes
    label: Codes
    item_ids: npt.NDArray[Any]
    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]

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
        ids = as_ids(item_ids, "item"), as_ids(worker_ids, "worker"), as_ids(classes, "class")
        refuse_repeats(ids[1].tolist(), "worker")
        refuse_repeats(ids[2].tolist(), "class")  # items may repeat: resampling draws some of them twice
        columns = [check_codes(codes, len(i), role) for codes, i, role in zip((item, worker, label), ids, _ROLES)]
        check_same_length(dict(zip(_ROLES, columns)))
        self._set(columns, ids)

    @classmethod
    def _trusted(cls, codes: Sequence[npt.NDArray[Any]], ids: Sequence[npt.NDArray[Any]]) -> Self:
        """Build from codes that are in range by construction and ids that nobody else writes to; nothing is checked."""
        new = cls.__new__(cls)
        new._set(codes, ids, reuse=True)
        return new

    def _set(self, codes: Sequence[npt.NDArray[Any]], ids: Sequence[npt.NDArray[Any]], *, reuse: bool = False) -> None:
        triples = sort_triples(codes, len(ids[1]), len(ids[2]), reuse=reuse)
        self.__setstate__(dict(zip(_FIELDS, (*triples, *ids))))

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
        """Build from three columns of any hashable values: lists, arrays, columns of data frames, generators.

        Without `item_ids`, `worker_ids` or `classes` these are the values that occur, sorted. With them, the
        order is the caller's (so that item i is row i of X), and values that never occur are legal: items
        and workers without labels, classes nobody chose. Values that compare equal are one value.
        """
        given = {"items": items, "workers": workers, "labels": labels}
        columns = {name: as_column(values, name) for name, values in given.items()}
        check_same_length(columns)
        coded = map(encode, columns.values(), (item_ids, worker_ids, classes), _ROLES)
        codes, ids = zip(*coded)
        return cls._trusted(codes, ids)

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
        matrix = _as_matrix(matrix)
        present = (matrix != missing) & (matrix == matrix)  # NaN differs from itself
        if matrix.dtype == object:
            present &= np.array([[value is not None for value in row] for row in matrix]).reshape(matrix.shape)
        item, worker = np.nonzero(present)
        label, classes = encode(matrix[item, worker], classes, "label")
        item_ids = _ids_of_axis(item_ids, matrix.shape[0], "item")
        worker_ids = _ids_of_axis(worker_ids, matrix.shape[1], "worker")
        return cls._trusted((item, worker, label), (item_ids, worker_ids, classes))

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
        return all(np.array_equal(getattr(self, f), getattr(other, f)) for f in _FIELDS)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and arrays have no cheap hash

    def __setstate__(self, state: dict[str, npt.NDArray[Any]]) -> None:
        vars(self).update({name: _frozen(array) for name, array in state.items()})

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in _FIELDS}  # what is built on first use is built again

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Annotations never change, so {name!r} cannot be set; build new ones.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Annotations never change, so {name!r} cannot be deleted.")

    @cached_property
    def start(self) -> npt.NDArray[np.int64]:
        """(n_items + 1,) where each item's annotations begin: those of item i are at `start[i]:start[i + 1]`."""
        return _frozen(_starts_of_sorted(self.item, self.n_items))

    @cached_property
    def by_item(self) -> Groups:
        """Annotations grouped by item; they are stored in this order already."""
        return Groups(self.start, _frozen(np.arange(self.n_annotations)))

    @cached_property
    def by_worker(self) -> Groups:
        """Annotations grouped by worker, items ascending within a worker."""
        order = np.argsort(self.worker, kind="stable")
        return Groups(_frozen(_starts(self.worker, self.n_workers)), _frozen(order))

    @cached_property
    def n_labels(self) -> npt.NDArray[np.int64]:
        """(n_items,) how many labels each item has."""
        return _frozen(np.diff(self.start))

    def __getitem__(self, rows: Any) -> Annotations:
        """The items `rows`, in that order, lined up with `X[rows]`; workers and classes stay as they are."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # scikit-learn writes array[rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_items)[rows])
        if chosen.ndim > 1:
            raise AnnotationError("Rows must be one-dimensional: a slice, positions or a mask with an entry per item.")
        begin = self.start[chosen]
        size = self.start[chosen + 1] - begin
        item = np.repeat(np.arange(len(chosen)), size)
        position = np.arange(len(item)) - np.repeat(np.cumsum(size) - size - begin, size)
        codes = item, self.worker[position], self.label[position]
        return Annotations._trusted(codes, (self.item_ids[chosen], self.worker_ids, self.classes))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refused: NumPy would otherwise take the annotations of each item for a row, and look for ever deeper ones."""
        raise AnnotationError(
            "Annotations are sparse triples, not an array: use their item, worker and label, or pass cv=KFold(...) "
            "where scikit-learn wants to stratify."
        )

    def keep(self, which: npt.NDArray[Any]) -> Annotations:
        """Only the annotations at the positions or under the mask `which`; all items, workers and classes stay."""
        codes = self.item[which], self.worker[which], self.label[which]
        if codes[0].ndim != 1:
            raise AnnotationError(
                "Annotations to keep must be one-dimensional: positions, or a mask with an entry each."
            )
        return self._with(*codes)

    def with_more(self, item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike) -> Annotations:
        """A new object with further annotations, given as codes; this one never changes."""
        sizes = self.n_items, self.n_workers, self.n_classes
        new = [check_codes(np.atleast_1d(c), n, role) for c, n, role in zip((item, worker, label), sizes, _ROLES)]
        check_same_length(dict(zip(_ROLES, new)))
        return self._with(*map(np.append, (self.item, self.worker, self.label), new))

    def unanswered(self, block_size: int = 1024) -> Iterator[tuple[Codes, Codes]]:
        """Stream the (item, worker) pairs without a label, `block_size` items at a time."""
        for first in range(0, self.n_items, block_size):
            last = min(first + block_size, self.n_items)
            open_pair = np.ones((last - first, self.n_workers), bool)
            begin, end = self.start[[first, last]]
            open_pair[self.item[begin:end] - first, self.worker[begin:end]] = False
            item, worker = np.nonzero(open_pair)
            yield (item + first).astype(np.int32), worker.astype(np.int32)

    def _with(self, *codes: npt.NDArray[Any]) -> Annotations:
        return Annotations._trusted(codes, (self.item_ids, self.worker_ids, self.classes))


_ROLES = ("item", "worker", "label")
_FIELDS = ("item", "worker", "label", "item_ids", "worker_ids", "classes")


def _as_matrix(matrix: Any) -> npt.NDArray[Any]:
    """Any items x workers table as an array in which every label is still what it was."""
    try:
        array = np.asarray(matrix)
        if array.dtype.kind in "US" and not isinstance(matrix, np.ndarray):
            array = np.array(matrix, object)  # NumPy would turn -1 beside text into the text "-1"
    except ValueError:
        raise AnnotationError("A label matrix needs rows of equal length.") from None
    if array.ndim != 2:
        raise AnnotationError(f"A label matrix is items x workers; this one has {array.ndim} dimension(s).")
    if isinstance(matrix, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(matrix)] = None
    return array


def _ids_of_axis(ids: Values | None, size: int, role: str) -> npt.NDArray[Any]:
    """The names of a matrix's rows or columns: given, one for each, or their numbers."""
    names = np.arange(size) if ids is None else as_ids(ids, role)
    if len(names) != size:
        raise AlignmentError(f"The matrix has {size} {role}s, but {len(names)} {role}_ids were given.")
    refuse_repeats(names.tolist(), role)
    return names


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


def _starts_of_sorted(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """The same as `_starts`, a stretch at a time: `bincount` would copy all codes into 64 bits."""
    size = np.zeros(n_groups + 1, np.int64)
    for first in range(0, len(codes), _STRETCH):
        part = codes[first : first + _STRETCH]
        low, high = int(part[0]), int(part[-1])
        size[low + 1 : high + 2] += np.bincount(part - low, minlength=high - low + 1)
    return np.cumsum(size, out=size)


def _starts(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """Where each group begins when the codes are sorted, and where the last one ends."""
    start = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_groups), out=start[1:])
    return start
