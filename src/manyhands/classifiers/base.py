"""The base of all classifiers: `fit` validates, lets the method learn and stores; then prediction and score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.class_balance import estimated_shares, shift_prior
from manyhands.classifiers.fitting import combine, fit_method, rows_as_fitted, store_results
from manyhands.classifiers.network import default_hold_out, new_backbone
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData, check_training_data
from manyhands.em.kernels import Array
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError
from manyhands.feature_names import Names
from manyhands.features import Rows
from manyhands.heldout import (
    COMMON,
    OWN,
    align,
    class_shares,
    known_workers,
    label_log_likelihoods,
    mean_score,
    worker_confusions,
)
from manyhands.row_matching import match_rows
from manyhands.validation import check_annotations

if TYPE_CHECKING:
    from torch import nn


class CrowdClassifier(BaseEstimator, ABC):
    """Classifier of features that learns from a crowd's labels.

    A method implements `_learn(context) -> FitResult`. The defaults of the other hooks are those of a method that
    trains one network with the options of `NetworkOptions`; a method without a network overrides `_trains_network`
    and `_proba`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per epoch or iteration: the mean of each loss, and "heldout" where labels were held out.
    module_ : object
        The trained network or scikit-learn classifier.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.
    """

    _fit_takes: ClassVar[str] = "(X, annotations)"
    # Attributes with a row per item, and fitted estimators that have some; a method with more of them adds their names.
    _of_items: ClassVar[tuple[str, ...]] = ("posterior_",)
    _for_each_class: ClassVar[tuple[str, ...]] = ()  # attributes with one number per class, needed to predict

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
    _confusions: Array  # (n_workers + 1, n_classes, n_classes) for `score`; the last is that of an unseen worker
    _shares: Array  # (n_classes,) for `score`
    _noise_layer: Any = None  # a noise layer that depends on the features, for `score`

    def fit(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Self:
        """Learn from features and labels.

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

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities given the features alone.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Features, of the same shape per row as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        rows = rows_as_fitted(self, X)
        if len(rows) == 0:
            return np.zeros((0, len(self.classes_)))
        return self._proba(self.module_, rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Features, of the same shape per row as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes in the caller's own values.
        """
        return self.classes_[self._decide(self.predict_proba(X))]

    def score(self, X: Any, annotations: Annotations | Any, *, ids: Any = None) -> float:
        """Return the mean log-likelihood of held-out annotations; no truth is needed.

        The mean of `score_labels`; `score_kind` says which likelihood a label has.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features of the held-out items.
        annotations : Annotations or data frame
            Labels of these items.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them, as in `fit`.

        Returns
        -------
        float
            The higher, the better; NaN without labels.
        """
        return mean_score(self.score_labels(X, annotations, ids=ids))

    def score_labels(self, X: Any, annotations: Annotations | Any, *, ids: Any = None) -> Array:
        """Return the log-likelihood of each held-out label given the features of its item.

        A method whose noise depends on the item (difficulty, instance-dependent noise) has a likelihood of its own,
        p(label | x, worker). For all others it is log sum_k p(k | x) confusion[worker, k, label], with confusion
        matrices from the training posterior, shrunk toward the mean confusion matrix of the crowd; so it is for workers
        of whom a method with a likelihood of its own has no model. Both sum to 1 over the labels, so that scores are
        comparable. p(k | x) is taken under the class frequencies of the training items, even where `predict_proba`
        assumes a uniform class prior.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features of the held-out items.
        annotations : Annotations or data frame
            Labels of these items.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them, as in `fit`.

        Returns
        -------
        ndarray of shape (n_annotations,)
            In the order of the annotations.
        """
        self._check_fitted()
        matched = match_rows(X, check_annotations(annotations), ids)
        aligned = align(matched.annotations, self.worker_ids_, self.classes_, type(self).__name__)
        proba = self.predict_proba(matched.X)
        if matched.order is not None:
            proba = proba[matched.order]
        if len(proba) != aligned.n_items:
            raise AlignmentError(
                f"X has {len(proba)} rows, but the annotations have {aligned.n_items} items; row i must be item i."
            )
        proba = self._training_prior_proba(proba)
        common = label_log_likelihoods(proba, self._confusions, self._shares, aligned)
        if aligned.n_annotations == 0 or not self._has_own_likelihood():
            return common
        return self._own_log_likelihoods(matched.rows(), proba, aligned, common)

    @property
    def score_kind(self) -> str:
        """Likelihood of a label in `score`: "own" (of the method), or "confusion matrices" (the common recipe)."""
        self._check_fitted()
        return OWN if self._has_own_likelihood() else COMMON

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
        return new_backbone(NetworkOptions.of(self), row_shape, n_classes)

    def _proba(self, module: Any, rows: Rows) -> Array:
        """Return p(k | x) of these rows by a trained module, (n_rows, n_classes)."""
        from manyhands.nn.inference import probabilities

        return probabilities(module, rows)

    def _decide(self, proba: Array) -> npt.NDArray[np.intp]:
        """Return the codes of the predicted classes, (n_rows,), given p(k | x)."""
        return np.asarray(proba.argmax(axis=1))

    def _training_prior_proba(self, proba: Array) -> Array:
        """Return `predict_proba` under the class frequencies of the training items, where it assumes other ones."""
        return proba

    def _uniform_prior_proba(self, proba: Array) -> Array:
        """Return `predict_proba` for equally frequent classes; unchanged where the method assumes them already."""
        return shift_prior(proba, estimated_shares(self.posterior_))

    def _has_own_likelihood(self) -> bool:
        """Whether the fitted method has a likelihood of labels that depends on the item beyond p(k | x)."""
        return self._noise_layer is not None or hasattr(self.module_, "label_log_likelihoods")

    def _own_log_likelihoods(self, rows: Rows, proba: Array, annotations: Annotations, common: Array) -> Array:
        """Return log p(label | x, worker) of aligned labels by the method, (n_annotations,).

        `proba` is p(k | x); `common` is the common recipe, for labels of workers of whom the method has no model.
        """
        from manyhands.classifiers.noise_layer import layer_log_likelihoods

        known = known_workers(self._confusions)[annotations.worker]
        labels, found = annotations.keep(known), common.copy()
        by_layer = self._noise_layer is not None
        found[known] = (
            layer_log_likelihoods(self, rows, labels) if by_layer else self.module_.label_log_likelihoods(rows, labels)
        )
        return found

    def _store(self, data: TrainingData, result: FitResult) -> None:
        if result.posterior is None:
            proba = self._proba(result.module, data.rows)
            result = replace(result, posterior=combine(proba, data.annotations, data.gold))
        store_results(self, data, result)
        self._noise_layer = result.noise_layer
        self._confusions = worker_confusions(data.annotations, self.posterior_)
        self._shares = class_shares(data.annotations, self.posterior_)
