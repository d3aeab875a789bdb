"""From a fit's result to fitted attributes: what classifiers and representation learners share."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.aggregation.base import PRIOR_ACCURACY, Aggregator, Gold
from manyhands.annotations import Annotations
from manyhands.classifiers.network import NetworkMethod, train_network
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData
from manyhands.em.confusion_em import has_no_redundancy
from manyhands.em.e_step import posterior_given
from manyhands.em.kernels import Array
from manyhands.exceptions import AlignmentError, CrowdWarning
from manyhands.feature_names import Names, check_feature_names, feature_names_of, warn_of_missing_names
from manyhands.features import Rows, as_rows
from manyhands.heldout import worker_confusions
from manyhands.noise import safe_log
from manyhands.progress_display import showing
from manyhands.randomness import make_generator, seed_unset
from manyhands.result_rows import restore_rows
from manyhands.row_matching import id_column_of, match_rows, without_column
from manyhands.row_order import reordered
from manyhands.validation import NameOr, check_annotations

# What a parameter that names an aggregator may be.
AGGREGATOR = NameOr(tuple(registry.names("aggregator")), "fit_predict", "an aggregator")


class FeatureMethod(NetworkMethod, Protocol):
    """What `fit_method` asks of an estimator with features."""

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
    _id_column: str | None

    def _trains_network(self) -> bool: ...

    def _store(self, data: TrainingData, result: FitResult) -> None: ...

    def _check_fitted(self) -> None: ...


def fit_method(method: FeatureMethod, data: TrainingData, verbose: int = 1) -> None:
    """Let a method learn from validated data, store its results and issue its notes as warnings.

    Call it from `fit` itself: the warnings point at the caller of `fit`. Results have the items in the order of
    `data.given`, or of `data.annotations` where it is None.

    Parameters
    ----------
    method : FeatureMethod
        The estimator.
    data : TrainingData
        Its validated input.
    verbose : {0, 1}, default=1
        Whether progress is shown.
    """
    with showing(verbose):
        if method._trains_network():
            result = train_network(method, data)
        else:
            rng = make_generator(getattr(method, "random_state", None))
            result = method._learn(TrainingContext(data, data.annotations, None, rng))
        method._store(data, result)
    if data.given is not None:
        restore_rows(method, data.given, data.annotations)
    for code, sentence in method.notes_.items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=3)


def store_results(method: FeatureMethod, data: TrainingData, result: FitResult) -> None:
    """Set the fitted attributes of a method; those of an earlier fit are removed first.

    Parameters
    ----------
    method : FeatureMethod
        The estimator.
    data : TrainingData
        What it was fitted to.
    result : FitResult
        What it learned, with a posterior.
    """
    for name in [name for name in vars(method) if name.endswith("_")]:
        delattr(method, name)
    assert result.posterior is not None
    store_features(method, data.rows.shape, data.feature_names)
    method._id_column = data.id_column
    method.classes_, method.worker_ids_ = data.annotations.classes, data.annotations.worker_ids
    method.module_, method.history_, method.posterior_ = result.module, result.history, result.posterior
    method.worker_accuracy_ = expected_accuracy(data.annotations, result.posterior)
    for name, value in result.results.items():
        setattr(method, name, value)
    method.notes_ = _notes(data) | dict(result.notes)


def store_features(method: FeatureMethod, row_shape: tuple[int, ...], names: Names | None) -> None:
    """Set what later calls compare X with: the shape of a row, the number of columns and their names.

    Parameters
    ----------
    method : FeatureMethod
        The estimator.
    row_shape : tuple of int
        Shape of one row. `n_features_in_` is set only where it has one axis: an image has pixels, not columns.
    names : ndarray of str of shape (n_features,) or None
        Column names; `feature_names_in_` is set only where there are any.
    """
    method._row_shape = row_shape
    if len(row_shape) == 1:
        method.n_features_in_ = row_shape[0]
    if names is not None:
        method.feature_names_in_ = names


def rows_as_fitted(method: FeatureMethod, X: Any) -> Rows:
    """Return the rows of X, or refuse them if their columns or their shape are not those that `fit` saw.

    Parameters
    ----------
    method : FeatureMethod
        A fitted estimator.
    X : array-like, sparse matrix, tensor or row getter
        Features of new items.

    Returns
    -------
    Rows

    Raises
    ------
    AlignmentError
        If the names of the columns, their order or the shape of a row differ.

    Warns
    -----
    CrowdWarning
        If only one of X and the X of `fit` has column names.
    """
    method._check_fitted()
    name, fitted = type(method).__name__, getattr(method, "feature_names_in_", None)
    X, given = _without_ids(method, X, fitted)
    check_feature_names(name, fitted, given)
    rows = as_rows(X)
    if rows.shape != method._row_shape:
        raise AlignmentError(f"A row of X has shape {rows.shape}, but this {name} was fitted with {method._row_shape}.")
    warn_of_missing_names(name, fitted, given)
    return rows


def rows_and_labels(method: FeatureMethod, X: Any, annotations: Any) -> tuple[Rows, Annotations]:
    """Return the rows of X as `rows_as_fitted` does, matched with the items of annotations.

    Parameters
    ----------
    method : FeatureMethod
        A fitted estimator.
    X : array-like, sparse matrix, tensor or row getter
        Features of items.
    annotations : Annotations or data frame
        Their labels.

    Returns
    -------
    rows : Rows
        One row per item.
    annotations : Annotations
        The labels of these items.
    """
    matched = match_rows(X, check_annotations(annotations))
    return reordered(rows_as_fitted(method, matched.X), matched.order), matched.annotations


def _without_ids(method: FeatureMethod, X: Any, fitted: Names | None) -> tuple[Any, Names | None]:
    """Return X without a column of ids that `fit` did not use as a feature, and the names of its columns."""
    column = getattr(method, "_id_column", None) or id_column_of(X)
    given = feature_names_of(X)
    if column is None or given is None or fitted is None or column in fitted or column not in given:
        return X, given
    X = without_column(X, column)
    return X, feature_names_of(X)


def infer_truth(aggregator: Any, data: TrainingData, annotations: Annotations, rng: np.random.Generator) -> Aggregator:
    """Fit an aggregator to annotations and gold.

    Parameters
    ----------
    aggregator : str or Aggregator
        A name of the registry, or an instance, which stays as it is.
    data : TrainingData
        Its gold is used.
    annotations : Annotations
        The labels to aggregate.
    rng : numpy.random.Generator
        Seeds an aggregator that has no seed of its own.

    Returns
    -------
    Aggregator
        The fitted aggregator.
    """
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
        warnings.simplefilter("ignore", CrowdWarning)  # its notes become the method's, which warns once
        fitted: Aggregator = first.fit(annotations, gold)
    return fitted


def combine(proba: Array, annotations: Annotations, gold: Gold) -> Array:
    """Return the posterior given features and labels: p(k | x, labels) ~ p(k | x) prod_w confusion[w, k, label_w].

    Parameters
    ----------
    proba : ndarray of shape (n_items, n_classes)
        The classifier's p(k | x).
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,) or None
        Known classes, which override everything else.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        The posterior. The confusion matrices are those that the classifier's probabilities imply, shrunk toward the
        mean confusion matrix of the crowd.
    """
    log_confusion = np.log(worker_confusions(annotations, proba))[:-1]
    return posterior_given(annotations, log_confusion, safe_log(proba), gold)[0]


def expected_accuracy(annotations: Annotations, posterior: Array) -> Array:
    """Return the expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the items.

    Returns
    -------
    ndarray of shape (n_workers,)
    """
    n_workers = annotations.n_workers
    p_correct = posterior[annotations.item, annotations.label]
    correct = np.bincount(annotations.worker, weights=p_correct, minlength=n_workers)
    return (correct + PRIOR_ACCURACY) / (np.bincount(annotations.worker, minlength=n_workers) + 1.0)


def _notes(data: TrainingData) -> dict[str, str]:
    """What the labels do not allow to conclude, whatever the method."""
    annotations, notes = data.annotations, {}
    if has_no_redundancy(annotations, data.gold):
        notes["no_redundancy"] = "No item has two labels; the workers' accuracies rest on the features alone."
    if annotations.n_annotations > 1 and annotations.label.min() == annotations.label.max():
        notes["single_class"] = "All labels are of one class, so that no other class can be learned."
    return notes
