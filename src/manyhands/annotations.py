"""Annotations: the labels that workers gave to items, as immutable sparse triples.

Items are in the order of their first appearance, workers and classes are sorted. Fits run in the order of sorted ids,
so that results of an item never depend on the order in which the triples were given. Codes are int32; the caller's own
values are in `item_ids`, `worker_ids` and `classes`.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from manyhands.crowd_triples import CrowdTriples
from manyhands.encoding import Values, as_column, as_ids, encode, refuse_repeats
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.grouping import Groups as Groups
from manyhands.grouping import positions_of, reorder_groups
from manyhands.id_matching import find_rows
from manyhands.item_order import Order
from manyhands.label_matrix import encode_matrix
from manyhands.repeated_pairs import check_policy, drop_repeats, has_repeats
from manyhands.sorting import sort_triples
from manyhands.validation import check_codes, check_same_length


class Annotations(CrowdTriples):
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
    def _from_codes(
        cls, codes: Sequence[npt.NDArray[Any]], ids: Sequence[npt.NDArray[Any]], **known: Order | None
    ) -> Self:
        """Build without checks from codes that are in range and from ids that are not written to elsewhere.

        `_sorting_order` may be passed where it is known, so that it need not be computed.
        """
        new = cls.__new__(cls)
        new._set(codes, ids, reuse=True)
        vars(new).update(known)
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
        duplicates: str = "last",
    ) -> Annotations:
        """Build from three columns of any hashable values.

        Values that compare equal are one value. Where a worker labels an item twice, the last label counts, as it does
        for `manyhands.read_annotations`.

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
            default the values that occur, in the order of their first appearance.
        worker_ids : sequence, default=None
            All workers in the order of the caller; by default the values that occur, sorted.
        classes : sequence, default=None
            All classes in the order of the caller, used or not; by default the labels that occur, sorted.
        duplicates : {"last", "first", "all", "error"}, default="last"
            Which label counts where a worker labels an item several times; "error" refuses such triples.

        Returns
        -------
        Annotations

        Raises
        ------
        AnnotationError
            Where a value is missing, not hashable, or not among the given ids; for repeated labels on request.
        ParameterError
            Where `duplicates` is none of the above.

        Warns
        -----
        CrowdWarning
            ``repeated_labels``, with their number, where labels were left out.

        Examples
        --------
        >>> Annotations.from_triples([7, 7], ["ann", "bob"], ["yes", "no"], item_ids=[7, 8])
        Annotations(2 labels on 2 items by 2 workers, 2 classes)
        >>> Annotations.from_triples([8, 7, 7], ["ann", "ann", "bob"], ["yes", "yes", "no"]).item_ids.tolist()
        [8, 7]
        """
        check_policy(duplicates)
        given = {"items": items, "workers": workers, "labels": labels}
        columns = {name: as_column(values, name) for name, values in given.items()}
        check_same_length(columns)
        coded = [
            encode(column, given_ids, role, by_appearance=role == "item")
            for column, given_ids, role in zip(columns.values(), (item_ids, worker_ids, classes), _ROLES)
        ]
        codes, ids = zip(*coded)
        built = cls._from_codes(codes, ids)
        if duplicates == "all" or not has_repeats(built.item, built.worker):
            return built
        codes = tuple(encode(column, *known)[0] for column, *known in zip(columns.values(), ids, _ROLES))  # were sorted
        (item, worker, label), note = drop_repeats(codes, ids, duplicates)
        warnings.warn(f"repeated_labels: {note}", CrowdWarning, stacklevel=2)
        if classes is None:  # those of the labels that count
            used, place = np.unique(label, return_inverse=True)
            ids, label = (*ids[:2], ids[2][used]), place.astype(np.int32)
        return cls._from_codes((item, worker, label), ids)

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
        return Annotations._from_codes(codes, ids).marked_like(self)

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

    def for_rows(self, ids: Values) -> Annotations:
        """Put the items into the order of the rows of a table; rows without labels become items without labels.

        Use it before `GridSearchCV`, `cross_val_score` or a pipeline, which split X and y by place:
        ``search.fit(frame, annotations.for_rows(frame.index))``.

        Parameters
        ----------
        ids : sequence of shape (n_rows,)
            Item of each row. Numbers and text that read the same match, if nothing matches as it is.

        Returns
        -------
        Annotations
            With the ids as `item_ids`; all workers and classes stay.

        Raises
        ------
        AlignmentError
            Where an id occurs twice, or an item has no row.

        Examples
        --------
        >>> votes = Annotations.from_triples(["b", "a"], ["ann", "ann"], ["yes", "no"])
        >>> votes.for_rows(["a", "b", "c"]).item_ids.tolist()
        ['a', 'b', 'c']
        """
        refuse_repeats(self.item_ids.tolist(), "item")
        rows, item_ids = find_rows(ids, self.item_ids)
        codes = rows.astype(np.int32)[self.item], self.worker, self.label
        made = Annotations._from_codes(codes, (np.array(item_ids), self.worker_ids, self.classes))
        return made.marked_like(self)

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

    def _with(self, *codes: npt.NDArray[Any]) -> Annotations:
        """The same items, workers and classes with other triples."""
        known = {name: vars(self)[name] for name in ("_sorting_order",) if name in vars(self)}
        ids = self.item_ids, self.worker_ids, self.classes
        return Annotations._from_codes(codes, ids, **known).marked_like(self)

    def _with_sorted_items(self) -> Annotations:
        """The same labels with the items in the order of their sorted ids, in which all fits run."""
        order = self._sorting_order
        if order is None:
            return self
        triples = reorder_groups(self.start, order, (self.worker, self.label))  # sorted within items already
        ids = self.item_ids[order], self.worker_ids, self.classes
        new = Annotations.__new__(Annotations)
        new.__setstate__(dict(zip(self._fields, (*triples, *ids))))
        vars(new)["_sorting_order"] = None
        return new.marked_like(self)


_ROLES = ("item", "worker", "label")
