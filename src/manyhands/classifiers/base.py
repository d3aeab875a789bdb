"""The bases of methods with features: `fit` checks its input, lets the method learn, and stores its results.

`FeatureMethod` is what classifiers and representation learners have in common, `fit` and `save`; `CrowdClassifier` adds
prediction and the held-out score.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.progress import showing
from manyhands._core.randomness import make_generator
from manyhands.aggregation.base import expected_accuracy
from manyhands.annotations import Annotations
from manyhands.classes import estimated_shares, shift_prior
from manyhands.classifiers.network import (
    EVALUATED_ROWS,
    FitResult,
    NetworkOptions,
    TrainingContext,
    TrainingData,
    check_training_data,
    combine,
    new_backbone,
    rows_as_fitted,
    train_network,
)
from manyhands.em.e_step import has_no_redundancy
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError, CrowdWarning
from manyhands.features import Names, Rows, match_rows, restore_rows
from manyhands.heldout import (
    COMMON,
    OWN,
    align,
    class_shares,
    hold_out,
    known_workers,
    label_log_likelihoods,
    mean_score,
    worker_confusions,
)
from manyhands.validation import check_annotations

if TYPE_CHECKING:
    from torch import nn


class FeatureMethod(BaseEstimator, ABC):
    """What learns from features and a crowd's labels: a classifier or a representation learner.

    A method implements `_learn(context) -> FitResult` and `_new_module`. The defaults of the other hooks are those of a
    method that trains one network with the options of `NetworkOptions`; a method without a network overrides
    `_trains_network`. What `posterior_`, `history_` and `module_` are is documented by the base of each family.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
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
    _for_each_class: ClassVar[tuple[str, ...]] = ()  # attributes with one number per class, needed after `load_model`

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
        gold: Mapping[Any, Any] | Sequence[Any] | None = None,
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
        gold : mapping of item id to class or sequence of shape (n_items,), default=None
            Known classes of some items, or the class of each item of the annotations, None where it is not known. The
            labels on gold items count as all others do.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them. Rows that no item has are items without
            labels, and follow the others in `posterior_`; an item without a row is an error.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        self
        """
        return self._fit(check_training_data(self, X, annotations, gold, ids), verbose)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a method that learns from features: rows of any shape, also sparse, and annotations."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        inputs = tags.input_tags
        inputs.two_d_array = inputs.three_d_array = inputs.sparse = True
        return tags

    def _fit(self, data: TrainingData, verbose: int = 1) -> Self:
        """Learn from validated data.

        The warnings point at the caller of the caller: a public `fit` calls this itself, all others silence them
        (`PriorAdjusted`). Results have the items in the order of `data.given`, or of `data.annotations` where it is
        None.
        """
        with showing(verbose):
            if self._trains_network():
                result = train_network(self, data)
            else:
                rng = make_generator(getattr(self, "random_state", None))
                result = self._learn(TrainingContext(data, data.annotations, None, rng))
            self._store(data, result)
        if data.given is not None:
            restore_rows(self, data.given, data.annotations)
        for code, sentence in self.notes_.items():
            warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=3)
        return self

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the fitted method to a folder as JSON and safetensors; `manyhands.load_model` reads it.

        Parameters
        ----------
        folder : str or Path
            The folder to write.
        force : bool, default=False
            Replace the folder if it exists.
        """
        from manyhands.persistence import save_model

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
        """Split into labels to learn from and a random share of them that is held out, or None."""
        return hold_out(data.annotations, share, rng)

    @abstractmethod
    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return an untrained `module_`, for a fit and for `load_model`."""

    def _store(self, data: TrainingData, result: FitResult) -> None:
        """Set the fitted attributes; those of an earlier fit are removed first."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        assert result.posterior is not None
        self._row_shape, self._id_column = data.rows.shape, data.id_column
        if len(data.rows.shape) == 1:
            self.n_features_in_ = data.rows.shape[0]
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        self.classes_, self.worker_ids_ = data.annotations.classes, data.annotations.worker_ids
        self.module_, self.history_, self.posterior_ = result.module, result.history, result.posterior
        self.worker_accuracy_ = expected_accuracy(data.annotations, result.posterior)
        for name, value in result.results.items():
            setattr(self, name, value)
        self.notes_ = _notes_on(data) | dict(result.notes)


class CrowdClassifier(FeatureMethod):
    """Classifier of features that learns from a crowd's labels.

    A method implements `_learn(context) -> FitResult`. The defaults of the other hooks are those of a method that
    trains one network with the options of `NetworkOptions`; a method without a network overrides `_trains_network`
    and `_proba`. `fit` is that of all methods that learn from features.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean of each loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to logits.
    """

    _confusions: Array  # (n_workers + 1, n_classes, n_classes) for `score`; the last is that of an unseen worker
    _shares: Array  # (n_classes,) for `score`
    _noise_layer: Any = None  # a noise layer that depends on the features, for `score`

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a method that predicts classes."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags()
        return tags

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

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return an untrained `module_`, for a fit and for `load_model`."""
        return new_backbone(NetworkOptions.of(self), row_shape, n_classes)

    def _proba(self, module: Any, rows: Rows) -> Array:
        """Return p(k | x) of these rows by a trained module, (n_rows, n_classes)."""
        from manyhands.nn.backbones import probabilities

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
        has_model = known_workers(self._confusions)[annotations.worker]
        labels, log_label = annotations.keep(has_model), common.copy()
        by_layer = self._noise_layer is not None
        log_label[has_model] = (
            _layer_log_likelihoods(self, rows, labels) if by_layer else self.module_.label_log_likelihoods(rows, labels)
        )
        return log_label

    def _store(self, data: TrainingData, result: FitResult) -> None:
        if result.posterior is None:
            proba = self._proba(result.module, data.rows)
            result = replace(result, posterior=combine(proba, data.annotations, data.gold))
        super()._store(data, result)
        self._noise_layer = result.noise_layer
        self._confusions = worker_confusions(data.annotations, self.posterior_)
        self._shares = class_shares(data.annotations, self.posterior_)


def _layer_log_likelihoods(method: Any, rows: Rows, annotations: Annotations) -> Array:
    """Return log p(label | x, worker) of labels by the noise layer of a fitted method that has a `noise_model()`.

    Shapes: returns (n_annotations,).
    """
    import torch

    from manyhands.nn.backbones import as_tensor
    from manyhands.nn.batches import AnnotationBatches

    model, network, layer = method.noise_model(), method.module_.eval(), method._noise_layer.eval()
    device, blocks = next(layer.parameters()).device, [np.zeros(0)]
    with torch.no_grad():
        for batch in AnnotationBatches(annotations, EVALUATED_ROWS, device=device):
            x = as_tensor(rows, batch.item, device)
            log_label = model.log_label(layer, network(x).log_softmax(1), x, batch)
            blocks.append(log_label.cpu().double().numpy())
    return np.concatenate(blocks)


def _notes_on(data: TrainingData) -> dict[str, str]:
    """What the labels do not allow to conclude, whatever the method."""
    annotations, notes = data.annotations, {}
    if has_no_redundancy(annotations, data.gold):
        notes["no_redundancy"] = "No item has two labels; the workers' accuracies rest on the features alone."
    if annotations.n_annotations > 1 and annotations.label.min() == annotations.label.max():
        notes["single_class"] = "All labels are of one class, so that no other class can be learned."
    return notes
