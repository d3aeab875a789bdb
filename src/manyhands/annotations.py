"""Annotations: the labels that workers gave to items, as immutable sparse triples.

Items are in the order of their first appearance, workers and classes are sorted. Fits run in the order of sorted ids,
so that results of an item never depend on the order in which the triples were given. Codes are int32; the caller's own
values are in `item_ids`, `worker_ids` and `classes`.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.encoding import (
    Codes,
    Groups,
    Order,
    Values,
    as_column,
    as_ids,
    encode,
    find_rows,
    inverse,
    positions_of,
    refuse_repeats,
    reorder_groups,
    sort_triples,
    sorting_order,
    starts,
    starts_of_sorted,
    unlabelled_pairs,
)
from manyhands._core.html_tables import facts, page, table
from manyhands._core.patterns import places_of
from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning, ParameterError
from manyhands.validation import check_codes, check_same_length

ROLES = ("item", "worker", "label")
_FIRST = 5  # labels that a notebook shows, which give an impression


class Annotations:
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

    _fields: ClassVar[tuple[str, ...]] = ("item", "worker", "label", "item_ids", "worker_ids", "classes")

    item: Codes
    worker: Codes
    label: Codes
    item_ids: npt.NDArray[Any]
    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    weight: Array | None = None
    # library of the data frame that the labels were read from; tables of results come back as its frames
    frame_library: str | None = None
    is_ordered: bool = False  # whether the classes are in the order of their grades, from low to high

    # ---- Construction: from codes, from three columns, from a matrix, and from probabilities of judges.

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
        weights: Values | None = None,
    ) -> Self:
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
        duplicates : {"last", "first", "all", "share", "error"}, default="last"
            Which label counts where a worker labels an item several times; "share" makes the labels one vote with a
            share for each class, "error" refuses them. With weights, labels of different classes are no repeats.
        weights : sequence of shape (n_annotations,), default=None
            Weight of each label, such as the probability that a judge gives it; labels of weight 0 are left out.

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
        >>> from manyhands import Annotations
        >>> Annotations.from_triples([7, 7], ["ann", "bob"], ["yes", "no"], item_ids=[7, 8])
        Annotations(2 labels on 2 items by 2 workers, 2 classes)
        >>> Annotations.from_triples([8, 7, 7], ["ann", "ann", "bob"], ["yes", "yes", "no"]).item_ids.tolist()
        [8, 7]
        """
        check_duplicates(duplicates)
        given = {"items": items, "workers": workers, "labels": labels}
        columns = {name: as_column(values, name) for name, values in given.items()}
        check_same_length(columns)
        coded = [
            encode(column, given_ids, role, by_appearance=role == "item")
            for column, given_ids, role in zip(columns.values(), (item_ids, worker_ids, classes), ROLES)
        ]
        codes, ids = zip(*coded)
        if weights is not None:
            return cls._from_weighted(codes, ids, check_weights(weights, len(codes[0]), above=-1.0), duplicates)
        built = cls.from_codes(codes, ids)
        if duplicates == "all" or not has_repeats(built.item, built.worker):
            return built
        codes = tuple(encode(column, *form)[0] for column, *form in zip(columns.values(), ids, ROLES))  # were sorted
        if duplicates == "share":
            return cls._from_weighted(codes, ids, np.ones(len(codes[0])), duplicates)
        (item, worker, label), note = drop_repeats(codes, ids, duplicates)
        warnings.warn(f"repeated_labels: {note}", CrowdWarning, stacklevel=2)
        if classes is None:  # those of the labels that count
            used, place = np.unique(label, return_inverse=True)
            ids, label = (*ids[:2], ids[2][used]), place.astype(np.int32)
        return cls.from_codes((item, worker, label), ids)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        missing: Hashable = -1,
        item_ids: Values | None = None,
        worker_ids: Values | None = None,
        classes: Values | None = None,
    ) -> Self:
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
        >>> from manyhands import Annotations
        >>> Annotations.from_matrix([[0, 1, -1], [-1, -1, -1]])
        Annotations(2 labels on 2 items by 3 workers, 2 classes)
        """
        codes, ids = encode_matrix(matrix, missing, item_ids, worker_ids, classes)
        return cls.from_codes(codes, ids)

    @classmethod
    def from_label_probs(
        cls,
        items: Values,
        workers: Values,
        probs: Any,
        classes: Values,
        *,
        item_ids: Values | None = None,
        worker_ids: Values | None = None,
    ) -> Self:
        """Build from the probabilities that judges give to each class, such as those of a language model.

        A row is one vote that is divided among the classes; with several rows for one worker and item, each is
        averaged into one vote.

        Parameters
        ----------
        items : sequence of shape (n_rows,)
            Item of each row.
        workers : sequence of shape (n_rows,)
            Worker of each row.
        probs : array-like of shape (n_rows, n_classes)
            Probability of each class; rows sum to 1, up to two percent.
        classes : sequence of shape (n_classes,)
            The classes, in the order of the columns.
        item_ids : sequence, default=None
            All items in the order of the caller; by default the values that occur, in the order of appearance.
        worker_ids : sequence, default=None
            All workers in the order of the caller; by default the values that occur, sorted.

        Returns
        -------
        Annotations

        Raises
        ------
        AlignmentError
            Where there is not one row for each item and worker, or not one column for each class.
        AnnotationError
            Where probabilities are negative, not finite, or do not sum to 1.

        Examples
        --------
        >>> from manyhands import Annotations
        >>> judged = Annotations.from_label_probs([7, 8], ["gpt", "gpt"], [[0.9, 0.1], [0.0, 1.0]], ["no", "yes"])
        >>> judged.weight.tolist()
        [0.9, 0.1, 1.0]
        """
        given = as_column(items, "items"), as_column(workers, "workers")
        names = as_ids(classes, "class")
        table = check_probabilities(probs, (len(given[0]), len(names)))
        row, label = np.nonzero(table)
        items, workers = ([column[at] for at in row.tolist()] for column in given)
        return cls.from_triples(
            items,
            workers,
            names[label],
            item_ids=item_ids,
            worker_ids=worker_ids,
            classes=classes,
            duplicates="share",
            weights=table[row, label],
        )

    @classmethod
    def _from_weighted(
        cls, codes: Sequence[npt.NDArray[Any]], ids: Sequence[npt.NDArray[Any]], weight: Array, duplicates: str
    ) -> Self:
        """Build from weighted rows: those of weight 0 are left out, repeats are treated as `duplicates` says."""
        used = weight > 0
        codes, weight = [column[used] for column in codes], weight[used]
        if duplicates == "share":
            codes, weight, _ = share_votes(codes, weight, len(ids[2]))
            return cls.from_codes(codes, ids, weight=weight)
        keep = one_weight_each(codes, weight, (len(ids[1]), len(ids[2])), duplicates)
        return cls.from_codes([column[keep] for column in codes], ids, weight=weight[keep])

    @classmethod
    def from_codes(
        cls,
        codes: Sequence[npt.NDArray[Any]],
        ids: Sequence[npt.NDArray[Any]],
        weight: Array | None = None,
        **known: Order | None,
    ) -> Self:
        """Build without checks from codes that are in range and from ids that are not written to elsewhere.

        Parameters
        ----------
        codes : sequence of three ndarrays of shape (n_annotations,)
            Item, worker and class code of each annotation.
        ids : sequence of three ndarrays
            Ids of the items and of the workers, and the classes.
        weight : ndarray of shape (n_annotations,) or None, default=None
            Weight of each annotation.
        **known : ndarray of shape (n_items,) or None
            `sorting_order` where it is known, so that it need not be computed.

        Returns
        -------
        Annotations
            The annotations.
        """
        new = cls.__new__(cls)
        new._set(codes, ids, reuse=True, weight=weight)
        vars(new).update(known)
        return new

    def _set(
        self,
        codes: Sequence[npt.NDArray[Any]],
        ids: Sequence[npt.NDArray[Any]],
        *,
        reuse: bool = False,
        weight: Array | None = None,
    ) -> None:
        """Sort the triples and set all fields; with `reuse` the given code arrays may be overwritten."""
        if weight is not None:
            codes, weight = sort_weighted(codes, weight)
        if weight is not None:
            self.__setstate__(dict(zip(self._fields, (*codes, *ids))) | {"weight": weight})
            return
        triples = sort_triples(codes, len(ids[1]), len(ids[2]), reuse=reuse)
        self.__setstate__(dict(zip(self._fields, (*triples, *ids))))

    # ---- Views: sizes, and the labels by item and by worker.

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

    @cached_property
    def start(self) -> npt.NDArray[np.int64]:
        """Where each item's annotations begin, shape (n_items + 1,): those of item i are at `start[i]:start[i + 1]`."""
        return _frozen(starts_of_sorted(self.item, self.n_items))

    @cached_property
    def by_item(self) -> Groups:
        """Annotations grouped by item; they are stored in this order already."""
        return Groups(self.start, _frozen(np.arange(self.n_annotations)))

    @cached_property
    def by_worker(self) -> Groups:
        """Annotations grouped by worker, items ascending within a worker."""
        order = np.argsort(self.worker, kind="stable")
        return Groups(_frozen(starts(self.worker, self.n_workers)), _frozen(order))

    @cached_property
    def n_labels(self) -> npt.NDArray[np.int64]:
        """Number of labels of each item, shape (n_items,)."""
        return _frozen(np.diff(self.start))

    @cached_property
    def n_voters(self) -> npt.NDArray[np.int64]:
        """Number of votes of each item, shape (n_items,): its labels, or its workers where labels have weights."""
        if self.weight is None:
            return self.n_labels
        first = np.flatnonzero(np.diff(pair_of_label(self.item, self.worker), prepend=-1))
        return _frozen(np.bincount(self.item[first], minlength=self.n_items))

    @cached_property
    def worker_volume(self) -> npt.NDArray[Any]:
        """Number of labels of each worker, shape (n_workers,); the sum of their weights where they have some."""
        return _frozen(np.bincount(self.worker, weights=self.weight, minlength=self.n_workers))

    @cached_property
    def sorting_order(self) -> Order | None:
        """Positions of the items in the order of their sorted ids; None where the ids are sorted already."""
        return sorting_order(self.item_ids)

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

    # ---- Choosing: other items, other labels, another order; every method returns a new object.

    def __getitem__(self, rows: Any) -> Annotations:
        """Select items, in the given order and aligned with `X[rows]`; all workers and classes stay."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # scikit-learn writes array[rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_items)[rows])
        if chosen.ndim > 1:
            raise AnnotationError("Rows must be one-dimensional: a slice, positions or a mask with an entry per item.")
        item, position = positions_of(self.start, chosen)
        codes = item, self.worker[position], self.label[position]
        ids = self.item_ids[chosen], self.worker_ids, self.classes
        return Annotations.from_codes(codes, ids, weight=self._weight_at(position)).marked_like(self)

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

    def without_workers(self, workers: Any) -> Annotations:
        """Leave out workers and their labels; all items and classes stay.

        Parameters
        ----------
        workers : object or sequence of object
            Ids, or patterns such as ``"gpt-*"``.

        Returns
        -------
        Annotations
            Without these workers; items that only they labelled have no label.

        Raises
        ------
        ParameterError
            If no worker is called or matches one of them.

        Examples
        --------
        >>> votes = Annotations.from_triples("aab", ["ann", "gpt-4", "gpt-5"], ["no", "yes", "yes"])
        >>> votes.without_workers("gpt-*")
        Annotations(1 labels on 2 items by 1 workers, 2 classes)
        """
        return self._select_workers(~places_of(self.worker_ids.tolist(), workers, "worker"))

    def only_workers(self, workers: Any) -> Annotations:
        """Leave out all other workers and their labels; all items and classes stay.

        Parameters
        ----------
        workers : object or sequence of object
            Ids, or patterns such as ``"gpt-*"``.

        Returns
        -------
        Annotations
            With these workers alone.

        Raises
        ------
        ParameterError
            If no worker is called or matches one of them.

        Examples
        --------
        >>> votes = Annotations.from_triples("aab", ["ann", "gpt-4", "gpt-5"], ["no", "yes", "yes"])
        >>> votes.only_workers("gpt-*").worker_ids.tolist()
        ['gpt-4', 'gpt-5']
        """
        return self._select_workers(places_of(self.worker_ids.tolist(), workers, "worker"))

    def without_items(self, items: Any) -> Annotations:
        """Leave out items and their labels; all workers and classes stay.

        Parameters
        ----------
        items : object or sequence of object
            Ids, or patterns such as ``"test-*"``.

        Returns
        -------
        Annotations
            Without these items.

        Raises
        ------
        ParameterError
            If no item is called or matches one of them.

        Examples
        --------
        >>> votes = Annotations.from_triples(["a", "b"], ["ann", "ann"], ["yes", "no"])
        >>> votes.without_items("a").item_ids.tolist()
        ['b']
        """
        return self[~places_of(self.item_ids.tolist(), items, "item")]

    def only_items(self, items: Any) -> Annotations:
        """Leave out all other items and their labels; all workers and classes stay.

        Parameters
        ----------
        items : object or sequence of object
            Ids, or patterns such as ``"test-*"``.

        Returns
        -------
        Annotations
            With these items alone, in their order here.

        Raises
        ------
        ParameterError
            If no item is called or matches one of them.

        Examples
        --------
        >>> votes = Annotations.from_triples(["a", "b"], ["ann", "ann"], ["yes", "no"])
        >>> votes.only_items("a").item_ids.tolist()
        ['a']
        """
        return self[places_of(self.item_ids.tolist(), items, "item")]

    def _select_workers(self, stays: npt.NDArray[np.bool_]) -> Annotations:
        """Keep some workers with their labels.

        Shapes: stays (n_workers,).
        """
        kept = stays[self.worker]
        codes = self.item[kept], (np.cumsum(stays, dtype=np.int32) - 1)[self.worker[kept]], self.label[kept]
        ids = self.item_ids, self.worker_ids[stays], self.classes
        return Annotations.from_codes(codes, ids, weight=self._weight_at(kept)).marked_like(self)

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
        made = Annotations.from_codes(codes, (np.array(item_ids), self.worker_ids, self.classes), weight=self.weight)
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
        cached = {name: vars(self)[name] for name in ("sorting_order",) if name in vars(self)}
        ids = self.item_ids, self.worker_ids, self.classes
        return Annotations.from_codes(codes, ids, weight=weight, **cached).marked_like(self)

    def with_sorted_items(self) -> Annotations:
        """Return the same labels with the items in the order of their sorted ids, in which all fits run.

        Returns
        -------
        Annotations
            These annotations themselves where their items are sorted already.
        """
        return self if self.sorting_order is None else self._sorted_items

    @cached_property
    def _sorted_items(self) -> Annotations:
        """The labels of `with_sorted_items`, which a fit and its scorecards read."""
        order = self.sorting_order
        assert order is not None
        if self.weight is not None:
            codes = inverse(order)[self.item], self.worker, self.label
            ids = self.item_ids[order], self.worker_ids, self.classes
            return Annotations.from_codes(codes, ids, weight=self.weight, sorting_order=None).marked_like(self)
        triples = reorder_groups(self.start, order, (self.worker, self.label))  # sorted within items already
        ids = self.item_ids[order], self.worker_ids, self.classes
        new = Annotations.__new__(Annotations)
        new.__setstate__(dict(zip(self._fields, (*triples, *ids))))
        vars(new)["sorting_order"] = None
        return new.marked_like(self)

    # ---- What is noted about the labels: the library of their data frame, and ordered classes.

    def with_frame_library(self, frame_library: str | None) -> Self:
        """Return the same arrays with a note of the library of the data frame that they were read from.

        Parameters
        ----------
        frame_library : {"pandas", "polars", "pyarrow"} or None
            The library; None changes nothing.

        Returns
        -------
        Self
            A new object with the same arrays, or this one.
        """
        return self if frame_library is None else self._marked(frame_library, self.is_ordered)

    def marked_like(self, other: Annotations) -> Self:
        """Return the same arrays with what is noted about another object: data frame library, order of classes.

        Parameters
        ----------
        other : Annotations
            The object from which these arrays come.

        Returns
        -------
        Self
            A new object with the same arrays, or this one.
        """
        if other.frame_library is None and not other.is_ordered:
            return self
        return self._marked(other.frame_library, other.is_ordered)

    def with_ordered_classes(self) -> Self:
        """Return the same arrays with the note that the classes are in the order of their grades, from low to high.

        Returns
        -------
        Self
            A new object with the same arrays.
        """
        return self._marked(self.frame_library, True)

    def _marked(self, frame_library: str | None, is_ordered: bool) -> Self:
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))  # with what was computed from the arrays already
        vars(new).update({"frame_library": frame_library, "is_ordered": is_ordered})
        return new

    # ---- Equality by value, pickles, and what is refused: changes, and conversion to an array.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        if not all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self._fields):
            return False
        if self.weight is None or other.weight is None:
            return self.weight is None and other.weight is None
        return np.array_equal(self.weight, other.weight)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as Python sets it: equality is by value, arrays have no cheap hash

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        state = {name: getattr(self, name) for name in self._fields}  # cached properties are computed again
        return state if self.weight is None else state | {"weight": self.weight}

    def __setstate__(self, state: dict[str, npt.NDArray[Any]]) -> None:
        vars(self).update({name: _frozen(array) for name, array in state.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable, so {name!r} cannot be set; build new ones.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable, so {name!r} cannot be deleted.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refused, because NumPy would otherwise treat the annotations of each item as a nested sequence."""
        raise AnnotationError(
            "Annotations are sparse triples, not an array: use their item, worker and label, or pass cv=KFold(...) "
            "where scikit-learn wants to stratify."
        )

    # ---- What is shown.

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_annotations} labels on {self.n_items} items "
            f"by {self.n_workers} workers, {self.n_classes} classes)"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the size, the classes and the first labels."""
        return _html_of(self)


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only."""
    array.setflags(write=False)
    return array


def _html_of(annotations: Annotations) -> str:
    """Return annotations as HTML: their size, the classes, and the first labels."""
    a, per_item = annotations, annotations.n_labels
    count = np.bincount(a.label, minlength=a.n_classes)
    shares = ((str(a.classes[k]), count[k], count[k] / max(a.n_annotations, 1)) for k in range(a.n_classes))
    n_shown = min(_FIRST, a.n_annotations)
    codes = zip(a.item[:n_shown], a.worker[:n_shown], a.label[:n_shown], strict=True)
    labels = ((str(a.item_ids[i]), str(a.worker_ids[w]), str(a.classes[k])) for i, w, k in codes)
    counts = {
        "labels": a.n_annotations,
        "items": a.n_items,
        "workers": a.n_workers,
        "labels per item": f"{per_item.min()} to {per_item.max()}, mean {per_item.mean():.1f}" if a.n_items else None,
    }
    first = table(["item", "worker", "label"], labels, n_shown, "First labels")
    return page(
        "Annotations", facts(counts), table(["class", "labels", "share"], shares, a.n_classes, "Classes"), first
    )


# ----------------------------------------------------------------------------------------------------
# Items x workers matrices of labels, in all the forms in which people have them.


def encode_matrix(
    matrix: Any, missing: Hashable, item_ids: Values | None, worker_ids: Values | None, classes: Values | None
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Convert a matrix of items x workers into codes.

    Shapes: matrix (n_items, n_workers); item_ids (n_items,); worker_ids (n_workers,); returns codes (n_annotations,).
    """
    array = as_matrix(matrix)
    item, worker = np.nonzero(is_present(array, missing))
    label, class_ids = encode(array[item, worker], classes, "label")
    row_ids = ids_of_axis(item_ids, array.shape[0], "item")
    column_ids = ids_of_axis(worker_ids, array.shape[1], "worker")
    return [item, worker, label], [row_ids, column_ids, class_ids]


def as_matrix(matrix: Any) -> npt.NDArray[Any]:
    """Convert a table of items x workers into an array in which every label keeps its value.

    Shapes: matrix (n_items, n_workers); returns (n_items, n_workers).
    """
    try:
        array = np.asarray(matrix)
        if array.dtype.kind in "US" and not isinstance(matrix, np.ndarray):
            array = np.array(matrix, object)  # NumPy would turn -1 among strings into "-1"
    except ValueError:
        raise AnnotationError("A label matrix needs rows of equal length.") from None
    if array.ndim != 2:
        raise AnnotationError(f"A label matrix is items x workers; this one has {array.ndim} dimension(s).")
    if isinstance(matrix, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(matrix)] = None
    return array


def ids_of_axis(ids: Values | None, size: int, role: str) -> npt.NDArray[Any]:
    """Names of the rows or columns of a matrix.

    Shapes: returns (size,).
    """
    names = np.arange(size) if ids is None else as_ids(ids, role)
    if len(names) != size:
        raise AlignmentError(f"The matrix has {size} {role}s, but {len(names)} {role}_ids were given.")
    refuse_repeats(names.tolist(), role)
    return names


def is_present(matrix: npt.NDArray[Any], missing: Hashable) -> npt.NDArray[np.bool_]:
    """Whether each cell of a label matrix holds a label.

    Shapes: matrix (n_items, n_workers); returns (n_items, n_workers).
    """
    present: npt.NDArray[np.bool_] = (matrix != missing) & (matrix == matrix)  # NaN differs from itself
    if matrix.dtype == object:
        present &= np.array([[value is not None for value in row] for row in matrix]).reshape(matrix.shape)
    return present


# ----------------------------------------------------------------------------------------------------
# Weights of labels: probabilities of a judge, or the shares of repeated answers.
#
# A label of weight w counts as w labels: its log-likelihood is multiplied by w in the E step, and it adds w to the
# counts of the M step. Labels of one worker on one item whose weights sum to 1 are one vote that is divided among the
# classes.


def check_weights(weights: Any, n_labels: int, *, above: float = 0.0) -> Array:
    """Return weights as an array of floats, one for each label.

    Shapes: weights (n_labels,); returns (n_labels,).
    """
    try:
        array = np.array(list(weights) if not hasattr(weights, "__len__") else weights, np.float64)
    except (TypeError, ValueError):
        raise AnnotationError("Weights of labels must be numbers, one for each label.") from None
    if array.shape != (n_labels,):
        raise AlignmentError(f"There are {n_labels} labels, but weights of shape {array.shape}: give one for each.")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array > above) & (array >= 0)))
    if len(wrong):
        least = "above 0" if above >= 0 else "at least 0"
        raise AnnotationError(
            f"Row {wrong[0]}: the weight of a label is {array[wrong[0]]:g}, but weights must be finite and {least}; "
            f"{len(wrong)} such row(s)."
        )
    return array


def sort_weighted(triples: Sequence[npt.NDArray[Any]], weight: Array) -> tuple[list[Codes], Array | None]:
    """Sort by item, worker, label, then weight; weights that are all 1 are dropped.

    Examples
    --------
    >>> codes, weight = sort_weighted([np.array([1, 0]), np.array([0, 0]), np.array([0, 1])], np.array([1.0, 0.5]))
    >>> codes[0].tolist(), weight.tolist()
    ([0, 1], [0.5, 1.0])

    Shapes: triples (n,); weight (n,); returns triples (n,); returns weight (n,).
    """
    item, worker, label = triples
    order = np.lexsort((weight, label, worker, item))
    columns = [column[order].astype(np.int32, copy=False) for column in triples]
    return columns, None if bool(np.all(weight == 1.0)) else weight[order]


def pair_of_label(item: Codes, worker: Codes) -> npt.NDArray[np.int64]:
    """Number the pairs of item and worker, which are sorted, from 0.

    Examples
    --------
    >>> pair_of_label(np.array([0, 0, 0, 1]), np.array([0, 0, 2, 2])).tolist()
    [0, 0, 1, 2]

    Shapes: item (n,); worker (n,); returns (n,).
    """
    is_new = np.ones(len(item), bool)
    is_new[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    return np.cumsum(is_new) - 1


def strongest_of(pair: npt.NDArray[np.int64], weight: Array) -> npt.NDArray[np.int64]:
    """Return the position of the label with the largest weight of each pair; among equal ones the first.

    Examples
    --------
    >>> strongest_of(np.array([0, 0, 1]), np.array([0.2, 0.8, 1.0])).tolist()
    [1, 2]

    Shapes: pair (n,); weight (n,); returns (n_pairs,).
    """
    order = np.lexsort((np.arange(len(pair)), -weight, pair))
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    return np.asarray(order[first])


# ----------------------------------------------------------------------------------------------------
# Probabilities that judges give to classes: their check.

_ROUNDING = 0.02  # by which rounded probabilities may differ from a sum of 1


def check_probabilities(probs: Any, shape: tuple[int, int]) -> Array:
    """Return probabilities of judges, rows scaled to sum to 1.

    Shapes: probs (n_rows, n_classes); returns (n_rows, n_classes).
    """
    try:
        table = np.array(probs, np.float64)
    except (TypeError, ValueError):
        raise AnnotationError("Probabilities must be a table of numbers: a column for each class.") from None
    if table.shape != shape:
        raise AlignmentError(
            f"Probabilities of shape {table.shape} do not fit {shape[0]} rows and {shape[1]} classes: give one row for "
            f"each item and worker, and one column for each class."
        )
    total = table.sum(axis=1)
    wrong = np.flatnonzero(~(np.isfinite(total) & (table >= 0).all(axis=1) & (np.abs(total - 1.0) <= _ROUNDING)))
    if len(wrong):
        row = ", ".join(f"{p:g}" for p in table[wrong[0]][:8])
        raise AnnotationError(
            f"Row {wrong[0]}: the probabilities are {row}; they must be at least 0 and sum to 1. {len(wrong)} such "
            f"row(s)."
        )
    return np.asarray(table / total[:, None])


# ----------------------------------------------------------------------------------------------------
# Repeated (item, worker) pairs: the rule for which label counts, and the search for them, fast for long tables.

RowOrder = npt.NDArray[np.int64]

# Which label counts if a worker labelled an item several times.
DUPLICATES = ("last", "first", "all", "share", "error")
_CHUNK = 1 << 16  # keys compared at a time: few enough to stay in the cache


def check_duplicates(duplicates: str) -> None:
    """Refuse a rule for repeated labels that does not exist."""
    if duplicates not in DUPLICATES:
        raise ParameterError(f"`duplicates` is {duplicates!r}; allowed are {', '.join(DUPLICATES)}.")


def has_repeats(item: Codes, worker: Codes) -> bool:
    """Return whether a pair occurs twice.

    Shapes: item (n,); worker (n,).
    """
    for begin in range(0, len(item) - 1, _CHUNK):
        part = slice(begin, begin + _CHUNK + 1)
        same = worker[part][1:] == worker[part][:-1]
        if same.any() and bool((same & (item[part][1:] == item[part][:-1])).any()):
            return True
    return False


def drop_repeats(
    codes: Sequence[Codes], ids: Sequence[npt.NDArray[Any]], duplicates: str
) -> tuple[Sequence[Codes], str]:
    """Leave out labels on items that the same worker labelled more than once.

    Shapes: codes (n,).
    """
    item, worker, _ = codes
    keep = keep_one(item, worker, len(ids[1]), which="first" if duplicates == "error" else duplicates)
    n_left_out = len(keep) - int(np.count_nonzero(keep))
    if duplicates == "error":
        row = int(np.argmin(keep))
        who, what = ids[1][worker[row]], ids[0][item[row]]
        raise AnnotationError(
            f"Row {row}: worker {who!r} labels item {what!r} again; {n_left_out} such row(s). Remove them, or choose "
            f"with duplicates='last', 'first', 'share' or 'all'."
        )
    note = (
        f"{n_left_out} label(s) on items that the same worker labelled more than once were left out; the {duplicates} "
        f"of each counts. Choose otherwise with duplicates='all', 'first', 'last', 'share' or 'error'."
    )
    return [column[keep] for column in codes], note


def keep_one(
    item: Codes, worker: Codes, n_workers: int, order: RowOrder | None = None, which: str = "last"
) -> npt.NDArray[np.bool_]:
    """Select one row of each (item, worker) pair.

    Examples
    --------
    >>> keep_one(np.array([0, 1, 0], np.int32), np.array([5, 5, 5], np.int32), 6).tolist()
    [False, True, True]
    """
    keep = np.ones(len(item), bool)
    item_bits, worker_bits, age_bits = (
        max(int(largest), 0).bit_length() for largest in (item.max(initial=0), n_workers - 1, len(item) - 1)
    )
    if item_bits + worker_bits + age_bits > 63:
        keep[_repeats_of_wide(item, worker, order, which)] = False
        return keep
    key = _join(item, worker, order, worker_bits, age_bits)
    key.sort()  # brings the rows of a pair together, oldest first
    for begin in range(0, len(key) - 1, _CHUNK):
        part = key[begin : begin + _CHUNK + 1]
        again = np.flatnonzero((part[1:] ^ part[:-1]) < 1 << age_bits)
        if len(again):
            age = part[again if which == "last" else again + 1] & ((1 << age_bits) - 1)
            keep[age if order is None else order[age]] = False
    return keep


def _join(item: Codes, worker: Codes, order: RowOrder | None, worker_bits: int, age_bits: int) -> npt.NDArray[np.int64]:
    """Return item, worker and age of each row as one integer, in the order of age."""
    key = np.empty(len(item), np.int64)
    for begin in range(0, len(key), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        rows = part if order is None else order[part]
        key[part] = item[rows]
        key[part] <<= worker_bits
        key[part] |= worker[rows]
        key[part] <<= age_bits
        key[part] |= np.arange(begin, begin + len(key[part]))
    return key


def _repeats_of_wide(item: Codes, worker: Codes, order: RowOrder | None, which: str) -> npt.NDArray[np.int64]:
    """Return the rows not to keep, if item, worker and age do not fit into one integer."""
    rows = np.arange(len(item)) if order is None else order
    rows = rows[np.lexsort((worker[rows], item[rows]))]  # stable: the oldest of a pair comes first
    again = (item[rows[1:]] == item[rows[:-1]]) & (worker[rows[1:]] == worker[rows[:-1]])
    return rows[:-1][again] if which == "last" else rows[1:][again]


# ----------------------------------------------------------------------------------------------------
# Repeated answers with weights: as shares of one vote, or one row of each label.


def share_votes(codes: Sequence[Codes], weight: Array, n_classes: int) -> tuple[list[Codes], Array, int]:
    """Make the answers of one worker on one item one vote: each class gets its share of their weights.

    A worker with one answer on an item keeps its weight.

    Examples
    --------
    >>> answers = np.array([0, 0, 0]), np.array([0, 0, 0]), np.array([1, 1, 0])
    >>> codes, weight, n_shared = share_votes(answers, np.ones(3), 2)
    >>> codes[2].tolist(), weight.round(3).tolist(), n_shared
    ([0, 1], [0.333, 0.667], 3)

    Shapes: codes (n,); weight (n,).
    """
    order = np.lexsort((weight, codes[2], codes[1], codes[0]))
    item, worker, label = (column[order] for column in codes)
    weight = weight[order]
    pair = pair_of_label(item, worker)
    n_answers = np.bincount(pair)
    total = np.where(n_answers > 1, np.bincount(pair, weights=weight), 1.0)
    cell = pair * np.int64(n_classes) + label
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    share = np.add.reduceat(weight, first) / total[pair[first]] if len(first) else weight
    return [column[first] for column in (item, worker, label)], share, int(n_answers[n_answers > 1].sum())


def one_weight_each(
    codes: Sequence[Codes], weight: Array, sizes: tuple[int, int], duplicates: str
) -> npt.NDArray[np.bool_]:
    """Select one row of each item, worker and label, where a weighted label is given more than once.

    Shapes: codes (n,); weight (n,); returns (n,).
    """
    if duplicates == "all":
        return np.ones(len(weight), bool)
    item, worker, label = codes
    n_workers, n_classes = sizes
    source: Any = worker.astype(np.int64) * n_classes + label
    keep = keep_one(item, source, n_workers * n_classes, which="first" if duplicates == "error" else duplicates)
    if duplicates == "error" and not keep.all():
        raise AnnotationError(
            f"Row {int(np.argmin(keep))}: the same worker gives the same label to the same item again; "
            f"{int((~keep).sum())} such row(s). Choose with duplicates='last', 'first', 'all' or 'share'."
        )
    return keep
