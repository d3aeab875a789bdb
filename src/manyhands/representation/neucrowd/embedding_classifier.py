"""Methods of a classifier whose `module_` is an ensemble of `linear_head.EmbeddingClassifier`: `transform`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.em.kernels import Array
from manyhands.representation.base import embed


def transform(self: CrowdClassifier, X: Any) -> Array:
    """Return the embedding of each row.

    Parameters
    ----------
    self : CrowdClassifier
        The classifier.
    X : array-like of shape (n_rows, ...)
        Features, of the same shape per row as in `fit`.

    Returns
    -------
    ndarray of shape (n_rows, embedding size of the chosen setting)
    """
    self._check_fitted()
    networks = self.module_.networks
    size = sum(network.head.in_features - network.inputs.n_features for network in networks)
    return embed(self, [network.inputs.embedder for network in networks], size, X)


def fit_transform(
    self: CrowdClassifier,
    X: Any,
    annotations: Annotations | Any,
    gold: Mapping[Any, Any] | None = None,
    *,
    ids: Any = None,
    verbose: int = 1,
) -> Array:
    """Learn an embedding, and return that of each training row.

    Parameters
    ----------
    self : CrowdClassifier
        The classifier.
    X : array-like of shape (n_items, ...)
        Features, matched with items as in `fit`.
    annotations : Annotations or data frame
        The crowd's labels.
    gold : mapping of item id to class, default=None
        Known classes of some items.
    ids : sequence of shape (n_rows,) or str, default=None
        Item id of each row of X, or the name of the column that has them.
    verbose : {0, 1}, default=1
        1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

    Returns
    -------
    ndarray of shape (n_rows, embedding size of the chosen setting)
        In the order of the rows of X.
    """
    return transform(self.fit(X, annotations, gold, ids=ids, verbose=verbose), X)
