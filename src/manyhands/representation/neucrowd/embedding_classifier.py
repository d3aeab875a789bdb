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
    self: CrowdClassifier, X: Any, annotations: Annotations | Any, gold: Mapping[Any, Any] | None = None
) -> Array:
    """Learn an embedding, and return that of each training row.

    Parameters
    ----------
    self : CrowdClassifier
        The classifier.
    X : array-like of shape (n_items, ...)
        Features; row i belongs to item i of the annotations.
    annotations : Annotations or data frame
        The crowd's labels.
    gold : mapping of item id to class, default=None
        Known classes of some items.

    Returns
    -------
    ndarray of shape (n_items, embedding size of the chosen setting)
    """
    return transform(self.fit(X, annotations, gold), X)
