"""What a method with features learns from (`TrainingData`), and what it returns (`FitResult`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyhands.aggregation.base import Gold
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array
from manyhands.em.priors import gold_codes
from manyhands.estimator import BaseEstimator
from manyhands.feature_names import Names, feature_names_of
from manyhands.features import Rows
from manyhands.row_matching import match_rows
from manyhands.row_order import reordered
from manyhands.validation import check_annotations


@dataclass(frozen=True)
class TrainingData:
    """Validated input of `fit`.

    Attributes
    ----------
    rows : Rows
        Features of the items; row i belongs to item i.
    annotations : Annotations
        The crowd's labels, with the items in the order of their sorted ids.
    gold : ndarray of shape (n_items,) or None
        Code of the known class of each item, -1 where it is unknown; None without gold.
    worker_features : ndarray of shape (n_workers, n_worker_features) or None
        Features of the workers, for the methods that use them.
    feature_names : ndarray of str of shape (n_features,) or None
        Names of the columns of X; None where X is no data frame with string names.
    given : Annotations or None
        The crowd's labels, with the items in the order of the caller, in which results are returned; None for that of
        `annotations`.
    id_column : str or None
        The column of X that had the ids of the items.
    """

    rows: Rows
    annotations: Annotations
    gold: Gold
    worker_features: Array | None = None
    feature_names: Names | None = None
    given: Annotations | None = None
    id_column: str | None = None

    @property
    def n_training_items(self) -> int:
        """Number of items that have a label or gold."""
        labelled = self.annotations.n_labels > 0
        return int(np.count_nonzero(labelled if self.gold is None else labelled | (self.gold >= 0)))


@dataclass(frozen=True)
class FitResult:
    """What `_learn` returns; the base class turns it into fitted attributes.

    Attributes
    ----------
    module : object
        The trained model: a torch module or a scikit-learn classifier.
    history : list of dict
        One dict per epoch or EM iteration.
    posterior : ndarray of shape (n_items, n_classes) or None
        Posterior of the training items given features and labels. None: the base computes it from the classifier's
        probabilities and the confusion matrices that they imply.
    results : mapping of str to object
        Further fitted attributes; each name ends in an underscore.
    notes : mapping of str to str
        What the data do not allow to conclude, by code; each becomes a `CrowdWarning`.
    noise_layer : object or None
        The trained noise layer, if its label noise depends on the features of the item: `score` uses it.
    """

    module: Any
    history: list[dict[str, float]] = field(default_factory=list)
    posterior: Array | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    noise_layer: Any = None


def check_training_data(
    method: BaseEstimator, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None, ids: Any = None
) -> TrainingData:
    """Validate the parameters of a method and the arguments of its `fit`, and sort the items by their ids.

    Parameters
    ----------
    method : BaseEstimator
        The estimator to be fitted.
    X : array-like, sparse matrix, tensor or row getter
        Features; `manyhands.row_matching` says which row belongs to which item.
    annotations : Annotations
        The crowd's labels.
    gold : mapping of item id to class, or None
        Known classes.
    ids : sequence of shape (n_rows,), str or None, default=None
        Item id of each row of X, or the column that has them.

    Returns
    -------
    TrainingData
        The same as arrays and codes.
    """
    method._check_parameters()
    annotations = check_annotations(annotations, who=type(method).__name__)
    matched = match_rows(X, annotations, ids)
    names, rows = feature_names_of(matched.X), matched.rows()
    in_order = matched.annotations._with_sorted_items()
    rows = reordered(rows, matched.annotations._sorting_order)
    known = gold_codes(gold, in_order.item_ids, in_order.classes)
    return TrainingData(
        rows, in_order, known, feature_names=names, given=matched.annotations, id_column=matched.id_column
    )
