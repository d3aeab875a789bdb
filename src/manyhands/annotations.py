"""Annotations: the labels that workers gave to items, as immutable sparse triples.

The triples are kept sorted by item, then worker, then label, so results never depend on the order in which they were
given. Codes are int32; the caller's own values are in `item_ids`, `worker_ids` and `classes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from manyhands.encoding import Values, as_column, as_ids, encode, refuse_repeats
from manyhands.exceptions import AnnotationError
from manyhands.grouping import Groups as Groups
from manyhands.grouping import positions_of, starts, starts_of_sorted, unlabelled_pairs
from manyhands.immutable import ImmutableArrays, frozen
from manyhands.label_matrix import encode_matrix
from manyhands.sorting import Codes, sort_triples
from manyhands.validation import check_codes, check_same_length


class Annotations(ImmutableArrays):
    """Immutable crowd labels: sparse (item, worker, label) triples that are passed in the place of `y`.

    `len(annotations)` is the number of items and `annotations[rows]` selects items, so scikit-learn's
    `train_test_split`, `cross_val_predict` and `GridSearchCV(cv=KFold(...))` accept it as `y`. Most users build it with
    `from_triples` or `from_matrix`; the constructor takes codes. Counts (`n_items`, `n_workers`, `n_classes`,
    `n_annotations`, `n_labels`) and groupings (`start`, `by_item`, `by_worker`) are properties.

    Parameters
    ----------
    item : array-like of shape (n_annotations,) of int
        Item code of each annotation.
    worker : array-like of shape (n_annotations,) of int
        Worker code of each annotation.
    label : array-like of shape (n_annotations,) of int
        Class code of each annotation.
    item_ids : sequence of shape (n_items,)
        The caller's own items; code c stands for entry c. Items may repeat, as they do in a bootstrap sample.
    worker_ids : sequence of shape (n_workers,)
        The caller's own workers, each once.
    classes : sequence of shape (n_classes,)
        The caller's own classes, each once.

    Attributes
    ----------
    item : ndarray of shape (n_annotations,) of int32
        Item codes, ascending; read-only.
    worker : ndarray of shape (n_annotations,) of int32
        Worker codes; read-only.
    label : ndarray of shape (n_annotations,) of int32
        Class codes; read-only.
    item_ids : ndarray of shape (n_items,)
        The items; read-only.
    worker_ids : ndarray of shape (n_workers,)
        The workers; read-only.
    classes : ndarray of shape (n_classes,)
        The classes; read-only.

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

    _fields = ("item", "worker", "label", "item_ids", "worker_ids", "classes")

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
    def _from_codes(cls, codes: Sequence[npt.NDArray[Any]], ids: Sequence[npt.NDArray[Any]]) -> Self:
        """Build without checks from codes that are in range and from ids that are not written to elsewhere."""
        new = cls.__new__(cls)
        new._set(codes, ids, reuse=True)
        return new

    def _set(self, codes: Sequence[npt.NDArray[Any]], ids: Sequence[npt.NDArray[Any]], *, reuse: bool = False) -> None:
        """Sort the triples and set all fields; with `reuse` the given code arrays may be overwritten."""
        triples = sort_triples(codes, len(ids[1]), len(ids[2]), reuse=reuse)
        self.__setstate__(dict(zip(self._fields, (*triples, *ids))))

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

        Values that compare equal are one value.

        Parameters
        ----------
        items : sequence or iterable of shape (n_annotations,)
            Item of each annotation: a list, an array, a column of a data frame, a generator.
        workers : sequence or iterable of shape (n_annotations,)
            Worker of each annotation.
        labels : sequence or iterable of shape (n_annotations,)
            Label of each annotation.
        item_ids : sequence, default=None
            All items in the order of the caller, so that item i is row i of X; items without labels are allowed. By
            default the values that occur, sorted.
        worker_ids : sequence, default=None
            All workers in the order of the caller; by default the values that occur, sorted.
        classes : sequence, default=None
            All classes in the order of the caller, used or not; by default the labels that occur, sorted.

        Returns
        -------
        Annotations

        Raises
        ------
        AnnotationError
            Where a value is missing, not hashable, or not among the given ids.

        Examples
        --------
        >>> Annotations.from_triples([7, 7], ["ann", "bob"], ["yes", "no"], item_ids=[7, 8])
        Annotations(2 labels on 2 items by 2 workers, 2 classes)
        """
        given = {"items": items, "workers": workers, "labels": labels}
        columns = {name: as_column(values, name) for name, values in given.items()}
        check_same_length(columns)
        coded = map(encode, columns.values(), (item_ids, worker_ids, classes), _ROLES)
        codes, ids = zip(*coded)
        return cls._from_codes(codes, ids)

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
        """Build from a matrix of items x workers.

        Parameters
        ----------
        matrix : array-like of shape (n_items, n_workers)
            Labels.
        missing : hashable, default=-1
            Value of cells without a label; NaN and None also count as missing.
        item_ids : sequence of shape (n_items,), default=None
            Names of the rows; by default their numbers.
        worker_ids : sequence of shape (n_workers,), default=None
            Names of the columns; by default their numbers.
        classes : sequence, default=None
            All classes in the order of the caller, used or not; by default the labels that occur, sorted.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> Annotations.from_matrix([[0, 1, -1], [-1, -1, -1]])
        Annotations(2 labels on 2 items by 3 workers, 2 classes)
        """
        codes, ids = encode_matrix(matrix, missing, item_ids, worker_ids, classes)
        return cls._from_codes(codes, ids)

    @property
    def n_items(self) -> int:
        """Number of items, with or without labels."""
        return len(self.item_ids)

    @property
    def n_workers(self) -> int:
        """Number of workers, with or without labels."""
        return len(self.worker_ids)

    @property
    def n_classes(self) -> int:
        """Number of classes, used or not."""
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        """Number of labels."""
        return len(self.item)

    @property
    def shape(self) -> tuple[int]:
        """`(n_items,)`, which scikit-learn requires of `y`."""
        return (self.n_items,)

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_annotations} labels on {self.n_items} items "
            f"by {self.n_workers} workers, {self.n_classes} classes)"
        )

    @cached_property
    def start(self) -> npt.NDArray[np.int64]:
        """Where each item's annotations begin, shape (n_items + 1,): those of item i are at `start[i]:start[i + 1]`."""
        return frozen(starts_of_sorted(self.item, self.n_items))

    @cached_property
    def by_item(self) -> Groups:
        """Annotations grouped by item; they are stored in this order already."""
        return Groups(self.start, frozen(np.arange(self.n_annotations)))

    @cached_property
    def by_worker(self) -> Groups:
        """Annotations grouped by worker, items ascending within a worker."""
        order = np.argsort(self.worker, kind="stable")
        return Groups(frozen(starts(self.worker, self.n_workers)), frozen(order))

    @cached_property
    def n_labels(self) -> npt.NDArray[np.int64]:
        """Number of labels of each item, shape (n_items,)."""
        return frozen(np.diff(self.start))

    def __getitem__(self, rows: Any) -> Annotations:
        """Select items, in the given order and aligned with `X[rows]`; all workers and classes stay.

        Parameters
        ----------
        rows : slice, sequence of int or mask
            Positions of items, which may repeat, or a mask with an entry per item.

        Returns
        -------
        Annotations
        """
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # scikit-learn writes array[rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_items)[rows])
        if chosen.ndim > 1:
            raise AnnotationError("Rows must be one-dimensional: a slice, positions or a mask with an entry per item.")
        item, position = positions_of(self.start, chosen)
        codes = item, self.worker[position], self.label[position]
        ids = self.item_ids[chosen], self.worker_ids, self.classes
        return Annotations._from_codes(codes, ids).from_library(self.frame_library)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refused, because NumPy would otherwise treat the annotations of each item as a nested sequence."""
        raise AnnotationError(
            "Annotations are sparse triples, not an array: use their item, worker and label, or pass cv=KFold(...) "
            "where scikit-learn wants to stratify."
        )

    def keep(self, which: npt.NDArray[Any]) -> Annotations:
        """Select annotations; all items, workers and classes stay.

        Parameters
        ----------
        which : ndarray of int or bool
            Positions of annotations, or a mask with an entry per annotation.

        Returns
        -------
        Annotations
        """
        codes = self.item[which], self.worker[which], self.label[which]
        if codes[0].ndim != 1:
            raise AnnotationError(
                "Annotations to keep must be one-dimensional: positions, or a mask with an entry each."
            )
        return self._with(*codes)

    def with_more(self, item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike) -> Annotations:
        """Append annotations, given as codes; returns a new object.

        Parameters
        ----------
        item : int or array-like of int
            Item codes.
        worker : int or array-like of int
            Worker codes.
        label : int or array-like of int
            Class codes.

        Returns
        -------
        Annotations
        """
        sizes = self.n_items, self.n_workers, self.n_classes
        new = [check_codes(np.atleast_1d(c), n, role) for c, n, role in zip((item, worker, label), sizes, _ROLES)]
        check_same_length(dict(zip(_ROLES, new)))
        return self._with(*map(np.append, (self.item, self.worker, self.label), new))

    def unanswered(self, block_size: int = 1024) -> Iterator[tuple[Codes, Codes]]:
        """Iterate over the (item, worker) pairs without a label, in blocks of items.

        Parameters
        ----------
        block_size : int, default=1024
            Number of items per block.

        Yields
        ------
        item : ndarray of int32
            Item codes of the pairs.
        worker : ndarray of int32
            Worker codes of the pairs.
        """
        return unlabelled_pairs(self.start, self.item, self.worker, self.n_workers, block_size)

    def _with(self, *codes: npt.NDArray[Any]) -> Annotations:
        """The same items, workers and classes with other triples."""
        ids = self.item_ids, self.worker_ids, self.classes
        return Annotations._from_codes(codes, ids).from_library(self.frame_library)


_ROLES = ("item", "worker", "label")
