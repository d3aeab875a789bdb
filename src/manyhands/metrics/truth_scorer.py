"""A scorer for scikit-learn's searches and cross-validation that compares predictions with the truth by item id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from manyhands.encoding import as_column, as_ids
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.metrics.truth import accuracy, balanced_accuracy, macro_f1
from manyhands.spelling import suggest

_METRICS = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy, "macro_f1": macro_f1}


@dataclass(frozen=True)
class TruthScorer:
    """Scores a fitted estimator against the truth; made by `truth_scorer`.

    Parameters
    ----------
    truth : dict
        True class of each item by its id.
    metric : callable
        Function of true classes and predicted classes; higher is better.
    """

    truth: dict[Any, Any] = field(repr=False)
    metric: Callable[[Any, Any], float]

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Score predictions of the items of one split.

        Parameters
        ----------
        estimator : estimator
            A fitted aggregator, or a classifier or pipeline with features.
        X : array-like or Annotations
            Features of the items; for an aggregator their annotations.
        y : Annotations or None, default=None
            Annotations of the items, which have their ids; None for an aggregator.

        Returns
        -------
        float
            The metric over the items whose truth is known.

        Raises
        ------
        AnnotationError
            If neither X nor y are annotations, or if no item has a truth.
        """
        labels = X if y is None else y
        if not hasattr(type(labels), "by_item"):
            raise AnnotationError(
                f"The scorer finds items by the ids of Annotations, which are the y of a classifier and the X of an "
                f"aggregator. Got {type(labels).__name__}."
            )
        items = labels.item_ids.tolist()
        known = [row for row, item in enumerate(items) if item in self.truth]
        if not known:
            raise AnnotationError(
                f"No item of this split has a truth: its items are such as {_first(items)}, those with a truth such as "
                f"{_first(self.truth)}. Ids must be equal, text or numbers in both."
            )
        predicted = estimator.predict(X)[known]
        return float(self.metric([self.truth[items[row]] for row in known], predicted))


def truth_scorer(truth: Any, *, item_ids: Any = None, metric: str | Callable[[Any, Any], float] = "accuracy") -> Any:
    """Make a scorer for `GridSearchCV` and `cross_val_score` that compares predictions with the truth by item id.

    By default these functions of scikit-learn call the estimator's own `score`, the likelihood of held-out labels,
    which needs no truth. Where the truth of some items is known, pass ``scoring=truth_scorer(truth)``. The truth is
    used to score, never to fit; to report an accuracy of the chosen setting, keep other items aside.

    Parameters
    ----------
    truth : mapping, pandas.Series or array-like of shape (n_items,)
        True class by item id; of a Series, the index has the ids. Items without truth are allowed and do not count.
    item_ids : array-like of shape (n_items,) or None, default=None
        Ids of the items where `truth` is an array, such as ``annotations.item_ids``; None otherwise.
    metric : {"accuracy", "balanced_accuracy", "macro_f1"} or callable, default="accuracy"
        What is computed. A callable takes true classes and predicted classes; higher must be better.

    Returns
    -------
    TruthScorer
        A callable ``scorer(estimator, X, y)``. With an aggregator, X are the annotations and there is no y.

    Raises
    ------
    ParameterError
        If there is no such metric.
    AlignmentError
        If there are ids without truth, or a truth without ids.

    Examples
    --------
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from manyhands import DawidSkene
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(random_state=0)
    >>> scorer = truth_scorer(crowd.truth, item_ids=crowd.annotations.item_ids)
    >>> scores = cross_val_score(DawidSkene(), crowd.annotations, scoring=scorer, cv=KFold(3))
    >>> scores.shape
    (3,)
    """
    if isinstance(metric, str):
        if metric not in _METRICS:
            raise ParameterError(f"There is no metric called {metric!r}.{suggest(metric, _METRICS)}")
        metric = _METRICS[metric]
    elif not callable(metric):
        raise ParameterError(f"metric must be a name or a function of truth and predictions. Got {metric!r}.")
    return TruthScorer(_by_id(truth, item_ids), metric)


def _by_id(truth: Any, item_ids: Any) -> dict[Any, Any]:
    """Return the truth as a dict, whatever it came as."""
    if item_ids is not None:
        columns = {"ids": as_column(item_ids, "item ids"), "true classes": as_column(truth, "truth")}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise AlignmentError(f"There are {' but '.join(f'{n} {name}' for name, n in lengths.items())}.")
        ids, values = (as_ids(column, name).tolist() for name, column in columns.items())
        return dict(zip(ids, values, strict=True))
    if isinstance(truth, Mapping):
        return dict(truth)
    if hasattr(truth, "index") and hasattr(truth, "to_dict"):  # a pandas Series
        return dict(truth.to_dict())
    raise AlignmentError(
        "The truth must name its items: give a mapping {item: class}, a Series with ids as its index, or "
        "item_ids=annotations.item_ids beside an array."
    )


def _first(ids: Iterable[Any]) -> str:
    return ", ".join(repr(value) for value, _ in zip(ids, range(3), strict=False)) or "none"
