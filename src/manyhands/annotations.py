"""Annotations: the labels that workers gave to items, as immutable sparse triples.

Items are in the order of their first appearance, workers and classes are sorted. Fits run in the order of sorted ids,
so that results of an item never depend on the order in which the triples were given. Codes are int32; the caller's own
values are in `item_ids`, `worker_ids` and `classes`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from manyhands.crowd_building import ROLES, CrowdBuilder
from manyhands.encoding import Values, as_ids, refuse_repeats
from manyhands.exceptions import AnnotationError
from manyhands.grouping import Groups as Groups
from manyhands.grouping import positions_of, reorder_groups
from manyhands.id_matching import find_rows
from manyhands.item_order import inverse
from manyhands.label_weights import check_weights, pair_of_label, strongest_of
from manyhands.validation import check_codes, check_same_length


class Annotations(CrowdBuilder):
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
    weight : array-like of shape (n_annotations,), default=None
        Weight of each label, above 0: a label of weight w counts as w labels. None and weights that are all 1 are the
        same. Methods that do not take weights refuse them.

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
    weight : ndarray of shape (n_annotations,) or None
        Weight of each label; None where all are 1. Read-only.

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
        weight: npt.ArrayLike | None = None,
    ) -> None:
        ids = as_ids(item_ids, "item"), as_ids(worker_ids, "worker"), as_ids(classes, "class")
        refuse_repeats(ids[1].tolist(), "worker")
        refuse_repeats(ids[2].tolist(), "class")  # items may repeat: resampling draws some of them twice
        columns = [check_codes(codes, len(i), role) for codes, i, role in zip((item, worker, label), ids, ROLES)]
        check_same_length(dict(zip(ROLES, columns)))
        self._set(columns, ids, weight=None if weight is None else check_weights(weight, len(columns[0])))

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
        return Annotations._from_codes(codes, ids, weight=self._weight_at(position)).marked_like(self)

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
        return self._with(*codes, weight=self._weight_at(which))

    def strongest_labels(self) -> Annotations:
        """Keep the label with the largest weight of each worker on each item, without its weight.

        Returns
        -------
        Annotations
            Labels without weights, for methods that do not take them; this object where there are none. Of equal
            weights, the first class is kept.

        Examples
        --------
        >>> votes = Annotations.from_triples("aa", ["gpt", "gpt"], ["no", "yes"], weights=[0.3, 0.7])
        >>> votes.strongest_labels().label.tolist()
        [1]
        """
        if self.weight is None:
            return self
        at = strongest_of(pair_of_label(self.item, self.worker), self.weight)
        return self._with(self.item[at], self.worker[at], self.label[at])

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
        made = Annotations._from_codes(codes, (np.array(item_ids), self.worker_ids, self.classes), weight=self.weight)
        return made.marked_like(self)

    def with_more(
        self, item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike, weight: npt.ArrayLike | None = None
    ) -> Annotations:
        """Append annotations, given as codes; returns a new object.

        Parameters
        ----------
        item : int or array-like of int
            Item codes.
        worker : int or array-like of int
            Worker codes.
        label : int or array-like of int
            Class codes.
        weight : float or array-like of float, default=None
            Weights; None is 1 each.

        Returns
        -------
        Annotations
        """
        sizes = self.n_items, self.n_workers, self.n_classes
        new = [check_codes(np.atleast_1d(c), n, role) for c, n, role in zip((item, worker, label), sizes, ROLES)]
        check_same_length(dict(zip(ROLES, new)))
        joined = map(np.append, (self.item, self.worker, self.label), new)
        if weight is None and self.weight is None:
            return self._with(*joined)
        added = check_weights(np.ones(len(new[0])) if weight is None else np.atleast_1d(weight), len(new[0]))
        before = np.ones(self.n_annotations) if self.weight is None else self.weight
        return self._with(*joined, weight=np.append(before, added))

    def _weight_at(self, which: Any) -> npt.NDArray[np.float64] | None:
        """The weights of some labels."""
        return None if self.weight is None else self.weight[which]

    def _with(self, *codes: npt.NDArray[Any], weight: npt.NDArray[np.float64] | None = None) -> Annotations:
        """The same items, workers and classes with other triples."""
        known = {name: vars(self)[name] for name in ("_sorting_order",) if name in vars(self)}
        ids = self.item_ids, self.worker_ids, self.classes
        return Annotations._from_codes(codes, ids, weight=weight, **known).marked_like(self)

    def _with_sorted_items(self) -> Annotations:
        """The same labels with the items in the order of their sorted ids, in which all fits run."""
        order = self._sorting_order
        if order is None:
            return self
        if self.weight is not None:
            codes = inverse(order)[self.item], self.worker, self.label
            ids = self.item_ids[order], self.worker_ids, self.classes
            return Annotations._from_codes(codes, ids, weight=self.weight, _sorting_order=None).marked_like(self)
        triples = reorder_groups(self.start, order, (self.worker, self.label))  # sorted within items already
        ids = self.item_ids[order], self.worker_ids, self.classes
        new = Annotations.__new__(Annotations)
        new.__setstate__(dict(zip(self._fields, (*triples, *ids))))
        vars(new)["_sorting_order"] = None
        return new.marked_like(self)
