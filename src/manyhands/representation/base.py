"""The base of all representation learners: `fit` validates, lets the method learn and stores; `transform` embeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.fitting import AGGREGATOR, FeatureMethod, fit_method, rows_as_fitted, store_results
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, default_hold_out, new_backbone
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData, check_training_data
from manyhands.em.kernels import Array
from manyhands.estimator import BaseEstimator
from manyhands.feature_names import Names
from manyhands.validation import Constraint, Number

if TYPE_CHECKING:
    from torch import nn

# What the parameters of every representation learner may be.
REPRESENTATION_CONSTRAINTS: dict[str, Constraint] = NETWORK_CONSTRAINTS | {
    "labels": AGGREGATOR,
    "embedding_size": Number(whole=True, least=1),
}


class Embedder(Protocol):
    """What every registered representation has: the learners below, and `NeuCrowd`, which also classifies."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters by name."""

    def fit(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Self:
        """Learn an embedding from features and labels."""

    def transform(self, X: Any) -> Array:
        """Return the embedding of each row."""

    def fit_transform(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Array:
        """Learn an embedding, and return that of each training row."""


class RepresentationLearner(BaseEstimator, ABC):
    """Network from features to embeddings in which items of one class are near each other.

    A method implements `_learn(context) -> FitResult`, whose module is the network, and has at least the parameters of
    `REPRESENTATION_CONSTRAINTS`.

    Attributes
    ----------
    aggregator_ : Aggregator
        The aggregator that gave items their classes, fitted to all labels; not kept by `save`.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items by the aggregator; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to embeddings.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS
    _fit_takes: ClassVar[str] = "(X, annotations)"
    _of_items: ClassVar[tuple[str, ...]] = ("posterior_", "aggregator_")  # attributes with a row per item
    _for_each_class: ClassVar[tuple[str, ...]] = ()  # attributes with one number per class, needed to embed

    embedding_size: int
    classes_: npt.NDArray[Any]
    worker_ids_: npt.NDArray[Any]
    worker_accuracy_: Array
    posterior_: Array
    history_: list[dict[str, float]]
    module_: Any
    notes_: dict[str, str]
    n_features_in_: int
    feature_names_in_: Names
    _row_shape: tuple[int, ...]
    _id_column: str | None = None  # the column of X in `fit` that had the ids of the items

    def fit(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Self:
        """Learn an embedding from features and labels.

        Parameters
        ----------
        X : array-like, sparse matrix, memory map, images, tensor or row getter, shape (n_items, ...)
            Features. Rows are matched with items by `ids`, or by the index or an id column of a data frame; row i of
            anything else is item i of the annotations, which is the order of first appearance in the file.
        annotations : Annotations or data frame
            The crowd's labels; items without labels are allowed. A frame is read as `manyhands.read_annotations` does.
        gold : mapping of item id to class, default=None
            Known classes of some items. The labels on gold items count as all others do.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them. Rows that no item has are items without
            labels, and follow the others in `posterior_`; an item without a row is an error.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        self
        """
        fit_method(self, check_training_data(self, X, annotations, gold, ids), verbose)
        return self

    def transform(self, X: Any) -> Array:
        """Return the embedding of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Features, of the same shape per row as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, embedding_size)
        """
        self._check_fitted()
        return embed(self, [self.module_], self.embedding_size, X)

    def fit_transform(
        self,
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
        ndarray of shape (n_rows, embedding_size)
            In the order of the rows of X.
        """
        return self.fit(X, annotations, gold, ids=ids, verbose=verbose).transform(X)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the fitted method to a folder as JSON and safetensors; `manyhands.load_model` reads it.

        Parameters
        ----------
        folder : str or Path
            The folder to write.
        force : bool, default=False
            Replace the folder if it exists.
        """
        from manyhands.persistence.models import save_model

        self._check_fitted()
        save_model(self, folder, force=force)

    @abstractmethod
    def _learn(self, context: TrainingContext) -> FitResult:
        """Learn from the data of the context, which are validated."""

    def _trains_network(self) -> bool:
        """Whether `_learn` needs a context with a device, held-out labels and seeded torch generators."""
        return True

    def _uses_heldout(self) -> bool:
        """Whether held-out labels decide anything, such as when to stop."""
        return NetworkOptions.of(self).patience is not None

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Split into labels to learn from and held-out labels, or None."""
        return default_hold_out(data, share, rng)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return an untrained `module_`, for a fit and for `load_model`."""
        return new_backbone(NetworkOptions.of(self), row_shape, self.embedding_size)

    def _store(self, data: TrainingData, result: FitResult) -> None:
        store_results(self, data, result)


def embed(method: FeatureMethod, networks: Sequence[nn.Module], embedding_size: int, X: Any) -> Array:
    """Return the outputs of networks side by side.

    Parameters
    ----------
    method : FeatureMethod
        A fitted estimator; rows of X must have the shape that it was fitted with.
    networks : sequence of torch.nn.Module
        Networks from features to parts of the embedding.
    embedding_size : int
        Size of the whole embedding.
    X : array-like of shape (n_rows, ...)
        Features.

    Returns
    -------
    ndarray of shape (n_rows, embedding_size)
    """
    from manyhands.nn.inference import outputs

    rows = rows_as_fitted(method, X)
    if len(rows) == 0:
        return np.zeros((0, embedding_size))
    return np.hstack([outputs(network, rows).numpy() for network in networks])
