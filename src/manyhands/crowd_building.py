"""Building of annotations: from codes, from three columns, from a matrix, and from probabilities of judges."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.crowd_triples import CrowdTriples
from manyhands.encoding import Values, as_column, as_ids, encode
from manyhands.exceptions import CrowdWarning
from manyhands.item_order import Order
from manyhands.label_matrix import encode_matrix
from manyhands.label_probabilities import check_probabilities
from manyhands.label_weights import check_weights, sort_weighted
from manyhands.repeated_pairs import check_policy, drop_repeats, has_repeats
from manyhands.repeated_weights import one_weight_each, share_votes
from manyhands.sorting import sort_triples
from manyhands.validation import check_same_length

ROLES = ("item", "worker", "label")

Array = npt.NDArray[np.float64]


class CrowdBuilder(CrowdTriples):
    """Constructors of `Annotations`, which is the class to use."""

    @classmethod
    def _from_codes(
        cls,
        codes: Sequence[npt.NDArray[Any]],
        ids: Sequence[npt.NDArray[Any]],
        weight: Array | None = None,
        **known: Order | None,
    ) -> Self:
        """Build without checks from codes that are in range and from ids that are not written to elsewhere.

        `_sorting_order` may be passed where it is known, so that it need not be computed.
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
        check_policy(duplicates)
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
        built = cls._from_codes(codes, ids)
        if duplicates == "all" or not has_repeats(built.item, built.worker):
            return built
        codes = tuple(encode(column, *known)[0] for column, *known in zip(columns.values(), ids, ROLES))  # were sorted
        if duplicates == "share":
            return cls._from_weighted(codes, ids, np.ones(len(codes[0])), duplicates)
        (item, worker, label), note = drop_repeats(codes, ids, duplicates)
        warnings.warn(f"repeated_labels: {note}", CrowdWarning, stacklevel=2)
        if classes is None:  # those of the labels that count
            used, place = np.unique(label, return_inverse=True)
            ids, label = (*ids[:2], ids[2][used]), place.astype(np.int32)
        return cls._from_codes((item, worker, label), ids)

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
            return cls._from_codes(codes, ids, weight=weight)
        keep = one_weight_each(codes, weight, (len(ids[1]), len(ids[2])), duplicates)
        return cls._from_codes([column[keep] for column in codes], ids, weight=weight[keep])

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
        return cls._from_codes(codes, ids)
