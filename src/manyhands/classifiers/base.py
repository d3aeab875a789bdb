"""The base of all methods with features: the door of `fit` and what it stores; then prediction and score."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.aggregation.base import PRIOR_ACCURACY, Aggregator, Gold
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import has_no_redundancy
from manyhands.em.kernels import Array, em_pass, pack
from manyhands.em.priors import gold_codes, gold_offset
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError, CrowdWarning
from manyhands.features import Rows, as_rows, check_rows
from manyhands.heldout import align, class_shares, predictive_log_likelihood, worker_confusions
from manyhands.noise import safe_log
from manyhands.randomness import seed_unset
from manyhands.validation import NameOr, check_annotations

# What a parameter that names an aggregator may be.
AGGREGATOR = NameOr(tuple(registry.names("aggregator")), "fit_predict", "an aggregator")


@dataclass(frozen=True)
class TrainingData:
    """What a method learns from; everything in it was checked."""

    rows: Rows
    annotations: Annotations
    gold: Gold
    worker_features: Array | None = None  # (n_workers, n) what is known of the workers beside their labels


@dataclass(frozen=True)
class FitResult:
    """What a method found; the base stores it.

    Without a posterior of its own, that of an item is what the classifier says of x, times what each worker's
    label then says, with confusion matrices from the classifier's own view of the training items.
    """

    module: Any  # what `_proba` asks
    history: list[dict[str, float]] = field(default_factory=list)
    posterior: Array | None = None  # (n_items, n_classes), of the training items
    results: Mapping[str, Any] = field(default_factory=dict)  # attributes of the method's own, each ending in _
    notes: Mapping[str, str] = field(default_factory=dict)


class FeatureMethod(BaseEstimator, ABC):
    """What learns from features and a crowd's labels: the door of `fit`, and the one place that stores results.

    Attributes
    ----------
    classes_, worker_ids_ : as in the annotations
    worker_accuracy_ : (n_workers,) expected share of right labels, drawn toward 0.7 by one label
    posterior_ : (n_items, n_classes) of the training items; rows sum to 1
    history_ : one dict per epoch, the mean of each loss and "heldout" where labels were held out
    module_ : what was trained
    notes_ : what the data do not allow to conclude, by code; each was raised as a CrowdWarning
    """

    _fit_takes: ClassVar[str] = "(X, annotations)"

    classes_: npt.NDArray[Any]
    worker_ids_: npt.NDArray[Any]
    worker_accuracy_: Array
    posterior_: Array
    history_: list[dict[str, float]]
    module_: Any
    notes_: dict[str, str]
    _row_shape: tuple[int, ...]

    def fit(self, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Self:
        """Learn from features and labels; row i of X is item i of the annotations.

        Parameters
        ----------
        X : array, mapped file, sparse matrix, images (n, channels, height, width), tensor, or a getter of rows
        annotations : the crowd's labels; items without any are legal
        gold : {item: class} where the truth is known; what workers said on gold items counts as ever
        """
        return self._fit(self._training_data(X, annotations, gold))

    def _training_data(self, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None) -> TrainingData:
        """What `fit` was given, checked."""
        self._check_parameters()
        check_annotations(annotations)
        rows = as_rows(X)
        check_rows(rows, annotations.n_items)
        return TrainingData(rows, annotations, gold_codes(gold, annotations.item_ids, annotations.classes))

    def _fit(self, data: TrainingData) -> Self:
        self._store(data, self._learn(data))
        for code_word, sentence in self.notes_.items():
            # It is the caller of `fit` who is told.
            warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=3)
        return self

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write what was fitted as JSON and safetensors; `manyhands.load_model` reads it in any process."""
        from manyhands.persistence.models import save_model

        self._check_fitted()
        save_model(self, folder, force=force)

    @abstractmethod
    def _learn(self, data: TrainingData) -> FitResult:
        """What the method learns from a checked task."""

    def _like_fitted(self, X: Any) -> Rows:
        """The rows of X, if they have the shape of those that `fit` saw."""
        self._check_fitted()
        rows = as_rows(X)
        if rows.shape != self._row_shape:
            raise AlignmentError(
                f"A row of X has shape {rows.shape}, but this {type(self).__name__} was fitted with {self._row_shape}."
            )
        return rows

    def _store(self, data: TrainingData, learned: FitResult) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a second fit forgets the first
        assert learned.posterior is not None
        self._row_shape = data.rows.shape
        self.classes_, self.worker_ids_ = data.annotations.classes, data.annotations.worker_ids
        self.module_, self.history_, self.posterior_ = learned.module, learned.history, learned.posterior
        self.worker_accuracy_ = expected_accuracy(data.annotations, learned.posterior)
        for name, value in learned.results.items():
            setattr(self, name, value)
        self.notes_ = _notes(data) | dict(learned.notes)


class CrowdClassifier(FeatureMethod):
    """A classifier of features that learns from a crowd's labels.

    A method implements `_learn` and `_proba`; a network method derives from `NetworkClassifier` instead. Results are
    those of `FeatureMethod`: the posterior is that given features and labels, `module_` the network or the classifier
    of scikit-learn.
    """

    _for_each_class: ClassVar[tuple[str, ...]] = ()  # results of a number for each class, without which nothing is said
    _confusions: Array  # (n_workers + 1, n_classes, n_classes) for `score`
    _shares: Array  # (n_classes,) for `score`

    def predict_proba(self, X: Any) -> Array:
        """(n_rows, n_classes) the probability of each class, given the features alone."""
        rows = self._like_fitted(X)
        if len(rows) == 0:
            return np.zeros((0, len(self.classes_)))
        return self._proba(self.module_, rows)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """(n_rows,) the most probable class, in the caller's own values."""
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def score(self, X: Any, annotations: Annotations) -> float:
        """Mean log-likelihood of held-out annotations; no truth is needed.

        The same recipe for every method, so that scores compare: worker confusions from the training posterior, shrunk
        toward the crowd's, then log sum_k p(k | x) confusion[worker, k, label]. Labels are of items as frequent as in
        training, and so is p(k | x) here, even where `predict_proba` is about another world.
        """
        self._check_fitted()
        check_annotations(annotations)
        aligned = align(annotations, self.worker_ids_, self.classes_, type(self).__name__)
        proba = self.predict_proba(X)
        if len(proba) != annotations.n_items:
            raise AlignmentError(
                f"X has {len(proba)} rows, but the annotations have {annotations.n_items} items; row i must be item i."
            )
        believed = self._as_frequent_as_in_training(proba)
        return predictive_log_likelihood(believed, self._confusions, self._shares, aligned)

    def _as_frequent_as_in_training(self, proba: Array) -> Array:
        """What `predict_proba` would be in a world where classes are as frequent as in training: mostly, what it is."""
        return proba

    @abstractmethod
    def _proba(self, module: Any, rows: Rows) -> Array:
        """(n_rows, n_classes) what the module says of these rows."""

    def _store(self, data: TrainingData, learned: FitResult) -> None:
        if learned.posterior is None:
            proba = self._proba(learned.module, data.rows)
            learned = replace(learned, posterior=combine(proba, data.annotations, data.gold))
        super()._store(data, learned)
        self._confusions = worker_confusions(data.annotations, self.posterior_)
        self._shares = class_shares(data.annotations, self.posterior_)


def _notes(data: TrainingData) -> dict[str, str]:
    """What the crowd does not allow to conclude, whatever the method."""
    annotations, notes = data.annotations, {}
    if has_no_redundancy(annotations, data.gold):
        notes["no_redundancy"] = "No item has two labels; what is said of workers rests on the features alone."
    if annotations.n_annotations > 1 and annotations.label.min() == annotations.label.max():
        notes["single_class"] = "Every label names the same class, so that no other can be learnt."
    return notes


def infer_truth(aggregator: Any, data: TrainingData, annotations: Annotations, rng: np.random.Generator) -> Aggregator:
    """An aggregator, by its name or as an instance that stays as it is, fitted to these annotations and the gold."""
    seed = int(rng.integers(2**31))
    if isinstance(aggregator, str):
        first = registry.create_seeded(aggregator, seed)
    else:
        first = seed_unset(type(aggregator)(**aggregator.get_params(deep=False)), np.random.default_rng(seed))
    gold = None
    if data.gold is not None:
        known = np.flatnonzero(data.gold >= 0)
        gold = dict(zip(annotations.item_ids[known].tolist(), annotations.classes[data.gold[known]].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # its notes become the method's, and are raised once
        fitted: Aggregator = first.fit(annotations, gold)
    return fitted


def combine(proba: Array, annotations: Annotations, gold: Gold) -> Array:
    """(n_items, n_classes) p(k | x, labels) ~ p(k | x) prod_w confusion[w, k, label_w], with gold where it is known.

    The confusion matrices are those that the classifier's own view of the items implies, shrunk toward the crowd's.
    """
    log_table = np.log(worker_confusions(annotations, proba))[:-1]
    offset, known = safe_log(proba), gold_offset(gold, annotations.n_classes)
    offset = offset if known is None else offset + known
    nothing = np.zeros(annotations.n_classes)
    found = em_pass(pack(annotations), log_table, nothing, offset, want_posterior=True)
    assert found.posterior is not None
    return found.posterior


def expected_accuracy(annotations: Annotations, posterior: Array) -> Array:
    """(n_workers,) expected share of right labels, drawn toward 0.7 by one label."""
    n_workers = annotations.n_workers
    p_right = posterior[annotations.item, annotations.label]
    right = np.bincount(annotations.worker, weights=p_right, minlength=n_workers)
    return (right + PRIOR_ACCURACY) / (np.bincount(annotations.worker, minlength=n_workers) + 1.0)
