"""Model selection without ground truth: methods ranked by the likelihood of held-out annotations (`compare`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core.arrays import Array
from manyhands._core.progress import report, showing
from manyhands._core.randomness import Seed, make_generator, seed_unset
from manyhands.annotations import Annotations
from manyhands.estimator import panels_of
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.features import DatasetRows, Index, RowGetter, Rows, as_rows, check_rows, feature_names_of, match_rows
from manyhands.frames import make_frame
from manyhands.heldout import COMMON, OWN, split_labels
from manyhands.validation import Constraint, Number, RandomState, check_annotations, check_parameters

# ----------------------------------------------------------------------------------------------------
# `Comparison`: methods ranked by the likelihood of held-out annotations, as text, rows, a data frame and HTML.


@dataclass(frozen=True, eq=False)
class Comparison:
    """Cross-validated log-likelihood of held-out annotations for several methods; higher is better.

    Made by `compare`. Printing it shows the methods in order of rank.

    Parameters
    ----------
    names : tuple of str
        The methods in the order in which they were given; parameters are part of the name.
    scores : ndarray of shape (n_methods, n_folds)
        Mean log-likelihood of the held-out annotations of each fold.
    n_heldout : ndarray of shape (n_folds,)
        Number of held-out annotations of each fold; of a comparison of classifiers, gold classes are among them.
    estimators : tuple of estimators
        Unfitted copies of the methods.
    kinds : tuple of str
        Likelihood by which each method is scored, its `score_kind`: "own", or "confusion matrices" (the common
        recipe).
    frame_library : {"pandas", "polars", "pyarrow"} or None, default=None
        Library of the data frame that the annotations came from, which `to_frame` returns.

    Attributes
    ----------
    mean : ndarray of shape (n_methods,)
        Mean log-likelihood over all annotations, each of which is held out once.
    standard_error : ndarray of shape (n_methods,)
        Standard error of `mean`, estimated from the folds.
    difference_to_best : ndarray of shape (n_methods,)
        Mean of the best method minus that of this one; 0 for the best.
    difference_standard_error : ndarray of shape (n_methods,)
        Standard error of `difference_to_best`. Both methods are scored on the same folds (a paired comparison), so it
        is usually smaller than `standard_error`.
    rank : ndarray of shape (n_methods,)
        1 is the best; equal scores keep the order in which the methods were given.
    best : str
        Name of the best method.
    best_estimator : estimator
        Unfitted copy of the best method.
    """

    names: tuple[str, ...]
    scores: Array
    n_heldout: npt.NDArray[np.int64]
    estimators: tuple[Any, ...] = field(repr=False)
    kinds: tuple[str, ...]
    frame_library: str | None = None

    @property
    def mean(self) -> Array:
        """Mean log-likelihood over all held-out annotations, shape (n_methods,)."""
        return np.asarray(self.scores @ self.n_heldout / self.n_heldout.sum())

    @property
    def standard_error(self) -> Array:
        """Standard error of `mean` from the folds, shape (n_methods,)."""
        return _standard_error(self.scores)

    @property
    def difference_to_best(self) -> Array:
        """Mean of the best method minus that of each method, shape (n_methods,)."""
        return np.asarray(self.mean.max() - self.mean)

    @property
    def difference_standard_error(self) -> Array:
        """Standard error of `difference_to_best`, paired over folds, shape (n_methods,)."""
        return _standard_error(self.scores - self.scores[self._best])

    @property
    def rank(self) -> npt.NDArray[np.int64]:
        """Rank of each method, 1 is the best, shape (n_methods,)."""
        rank = np.empty(len(self.names), np.int64)
        rank[np.argsort(-self.mean, kind="stable")] = np.arange(1, len(self.names) + 1)
        return rank

    @property
    def best(self) -> str:
        """Name of the best method."""
        return self.names[self._best]

    @property
    def best_estimator(self) -> Any:
        """Unfitted copy of the best method."""
        return copy_unfitted(self.estimators[self._best])

    @property
    def _best(self) -> int:
        return int(self.mean.argmax())

    def table(self) -> list[dict[str, Any]]:
        """Return one row per method, the best first.

        Returns
        -------
        list of dict
            Keys ``method``, ``rank``, ``heldout_log_likelihood`` (the `mean`), ``standard_error``,
            ``difference_to_best``, ``difference_standard_error`` and ``likelihood`` (one of `kinds`).
        """
        columns = {
            "rank": self.rank,
            "heldout_log_likelihood": self.mean,
            "standard_error": self.standard_error,
            "difference_to_best": self.difference_to_best,
            "difference_standard_error": self.difference_standard_error,
        }
        rows = [
            {"method": name} | {column: values[m].item() for column, values in columns.items()} | {"likelihood": kind}
            for m, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
        ]
        return sorted(rows, key=lambda row: row["rank"])

    def to_frame(self, library: str | None = None) -> Any:
        """Return `table` as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"} or None, default=None
            Kind of data frame; None for that of the frame which the annotations came from, and polars otherwise.

        Returns
        -------
        polars.DataFrame, pandas.DataFrame or pyarrow.Table
            One row per method, the best first; with pandas the methods are the index.
        """
        rows = self.table()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return make_frame(columns, library or self.frame_library, "method")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the panel of methods of the HTML report."""
        return panels_of("comparison", self)

    def __repr__(self) -> str:
        width = max(map(len, self.names))
        lines = [
            f"Mean log-likelihood of {self.n_heldout.sum()} labels, each held out once in {len(self.n_heldout)} folds"
        ]
        for row in self.table():
            difference = f"{row['difference_to_best']:.4f} ± {row['difference_standard_error']:.4f} below the best"
            score = f"{row['heldout_log_likelihood']:8.4f} ± {row['standard_error']:.4f}"
            remark = "best" if row["rank"] == 1 else difference
            remark += ", own likelihood" if row["likelihood"] == OWN else ""
            lines.append(f"{row['rank']:>3}  {row['method']:<{width}}  {score}  {remark}")
        return "\n".join(lines)


def copy_unfitted(estimator: Any) -> Any:
    """Return an unfitted estimator with the same parameters."""
    from sklearn.base import clone

    return clone(estimator)


def _standard_error(scores: Array) -> Array:
    """Return the standard error of the mean over folds, shape (n_methods,)."""
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]))


# ----------------------------------------------------------------------------------------------------
# Cross-validation splits of annotations: folds of labels for aggregators, folds of items for classifiers.


@dataclass(frozen=True, eq=False)
class Fold:
    """One cross-validation split: the arguments of `fit` and those of `score`."""

    # positional arguments of `fit`: ``(annotations,)`` for an aggregator, ``(X, annotations)`` for a classifier
    training: tuple[Any, ...]
    heldout: tuple[Any, ...]  # positional arguments of `score`, in the same form
    gold: dict[Any, Any]  # known class of each gold item in the training part
    # known class of held-out gold items, by their row in the held-out part; only for classifiers
    heldout_gold: dict[int, Any] = field(default_factory=dict)

    @property
    def n_heldout(self) -> int:
        """Number of held-out annotations and gold classes."""
        return int(self.heldout[-1].n_annotations) + len(self.heldout_gold)


def make_folds(
    annotations: Annotations,
    X: Any,
    gold: Mapping[Any, Any],
    n_folds: int,
    rng: np.random.Generator,
    ids: Any = None,
) -> list[Fold]:
    """Return the splits of labels or, with features, of items; the items are in the order of sorted ids.

    Shapes: ids (n_rows,).
    """
    if X is None:
        folds = list(label_folds(annotations.with_sorted_items(), n_folds, gold))
    else:
        matched = match_rows(X, annotations, ids)
        X, annotations, rows = matched.X, matched.annotations, as_rows(matched.X)
        order = np.arange(len(rows)) if matched.order is None else matched.order
        check_rows(rows, annotations.n_items)
        order = order if annotations.sorting_order is None else order[annotations.sorting_order]
        frame = X if feature_names_of(X) is not None else None
        if not np.array_equal(order, np.arange(len(rows))):
            X = _subset(rows, order, frame)
            frame, rows = None if frame is None else X, as_rows(X)
        folds = list(item_folds(rows, annotations.with_sorted_items(), n_folds, gold, rng, frame))
    if len(folds) < 2:
        raise AnnotationError(
            f"{annotations.n_annotations} label(s) on {annotations.n_items} item(s) are too few to hold some out."
        )
    return folds


def label_folds(annotations: Annotations, n_folds: int, gold: Mapping[Any, Any]) -> Iterator[Fold]:
    """Splits for aggregators: each annotation is held out once, the other labels of its item are training data.

    The folds are those of `manyhands.heldout.split_labels`: they depend on the pattern of the labels alone and use no
    random numbers.
    """
    fold = split_labels(annotations, n_folds)
    for f in range(n_folds):
        if 0 < np.sum(fold == f) < len(fold):
            yield Fold((annotations.keep(fold != f),), (annotations.keep(fold == f),), dict(gold))


def item_folds(
    rows: Rows,
    annotations: Annotations,
    n_folds: int,
    gold: Mapping[Any, Any],
    rng: np.random.Generator,
    frame: Any = None,
) -> Iterator[Fold]:
    """Splits for classifiers: each item with labels or gold is held out once, with all its annotations and its gold.

    Other items are in the training part of every fold, for methods that use unlabelled features.
    """
    is_gold = np.array([item in gold for item in annotations.item_ids.tolist()], bool)
    labelled = rng.permutation(np.flatnonzero((annotations.n_labels > 0) | is_gold))
    for fold in range(min(n_folds, len(labelled))):
        heldout = np.sort(labelled[fold::n_folds])
        rest = np.setdiff1d(np.arange(annotations.n_items), heldout)
        if annotations.n_labels[rest].any():
            kept = set(annotations.item_ids[rest].tolist()) if gold else set()
            gold_of_items = {item: value for item, value in gold.items() if item in kept}
            training, test = _subset(rows, rest, frame), _subset(rows, heldout, frame)
            items = annotations.item_ids[heldout].tolist()
            hidden = {row: gold[item] for row, item in enumerate(items) if item in gold}
            yield Fold((training, annotations[rest]), (test, annotations[heldout]), gold_of_items, hidden)


def _subset(rows: Rows, index: Index, frame: Any) -> Any:
    """Return these rows of the features, in the form in which they were given."""
    if frame is not None:
        return frame.iloc[index] if hasattr(frame, "iloc") else frame[index]  # pandas takes rows by position so
    return RowGetter(rows.getter, index) if isinstance(rows, DatasetRows) else rows.whole()[index]


# ----------------------------------------------------------------------------------------------------
# Compare methods and settings by cross-validation, without ground truth.
#
# The criterion is the mean log-likelihood of held-out annotations (`score` of every method). It has two forms, which
# are not comparable with each other, so a comparison is among aggregators or among classifiers:
#
#     aggregators   folds of annotations: p(label | the other labels of the item, the worker's confusion matrix)
#     classifiers   folds of items: p(label | the features of the item, the worker's confusion matrix)
#
# A method whose noise depends on the item is scored by its own p(label | ...) (`score_kind` is "own").

Method = str | tuple[str, Mapping[str, Any]] | Any


def compare(
    methods: Sequence[Method],
    annotations: Annotations | Any,
    X: Any = None,
    *,
    gold: Mapping[Any, Any] | None = None,
    n_folds: int = 5,
    random_state: Seed = 0,
    ids: Any = None,
    verbose: int = 1,
) -> Comparison:
    """Rank methods by the cross-validated log-likelihood of held-out annotations; no ground truth is needed.

    Every method is fitted once per fold on the same training part and scored by its `score` on the held-out part.
    ``compare(methods, annotations)`` compares aggregators, ``compare(methods, annotations, X)`` compares classifiers.
    `manyhands aggregate --compare` and `manyhands train --choose` call this function.

    Use it to choose a method or its settings for one data set. Differences below two standard errors
    (`Comparison.difference_standard_error`) are not evidence for either method. A high likelihood of labels is not the
    same as a high accuracy: where ground truth is available, compare by that.

    Parameters
    ----------
    methods : sequence of str, (str, dict) or estimator
        Registry names, pairs of a name and its parameters, or estimators. All are aggregators if `X` is None, and all
        classifiers (or pipelines that end in one) otherwise.
    annotations : Annotations or data frame
        Labels of the crowd. A frame is read as `manyhands.read_annotations` reads it.
    X : array-like, sparse matrix or None, default=None
        Features as for `fit`, matched with items as there; None compares aggregators.
    gold : mapping of item to class or None, default=None
        Known classes, given to every fit. Gold items are held out as all others; with features, the known class of a
        held-out item counts as one more label, with the likelihood p(k | x). Aggregators keep all gold in every fold.
    n_folds : int, default=5
        Number of folds. Folds that would be empty are left out.
    random_state : int, Generator or None, default=0
        Seed of the folds of items, and of every method whose own `random_state` is None. Folds of annotations (for
        aggregators) are not random.
    ids : sequence of shape (n_rows,) or str, default=None
        Item id of each row of X, or the name of the column that has them, as in `fit`.
    verbose : {0, 1}, default=1
        1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

    Returns
    -------
    Comparison
        Scores per fold, means, standard errors and ranks.

    Raises
    ------
    ParameterError
        If a method is unknown, given twice, of the other kind, or has a likelihood that is not finite.
    AnnotationError
        If there are too few annotations for two folds.

    Examples
    --------
    >>> from manyhands import Annotations
    >>> votes = Annotations.from_matrix([[0, 0, 1, 1, 0], [1, 1, 0, 0, 1]] * 10)  # two workers invert all labels
    >>> found = compare(["majority-vote", ("one-coin", {"max_iter": 50})], votes, n_folds=2)
    >>> found.names
    ('majority-vote', 'one-coin(max_iter=50)')
    >>> found.scores.shape  # methods, folds
    (2, 2)
    """
    limits: dict[str, Constraint] = {"n_folds": Number(whole=True, least=2), "random_state": RandomState()}
    check_parameters("compare", {"n_folds": n_folds, "random_state": random_state}, limits)
    _check_order(annotations, X)
    annotations = check_annotations(annotations, takes_weights=X is None)
    estimators = _make_all(methods, with_features=X is not None)
    rng = make_generator(random_state)
    folds = make_folds(annotations, X, gold or {}, n_folds, rng, ids)
    seeds = rng.integers(2**31, size=len(folds)).tolist()
    with showing(verbose):
        scores, kinds = _score_all(estimators, folds, seeds)
    n_heldout = np.array([fold.n_heldout for fold in folds])
    library = annotations.frame_library
    return Comparison(tuple(estimators), scores, n_heldout, tuple(estimators.values()), tuple(kinds), library)


def _score_all(estimators: Mapping[str, Any], folds: Sequence[Fold], seeds: Sequence[int]) -> tuple[Array, list[str]]:
    """Return the score of every method in every fold, and the kind of likelihood of each method."""
    scores, kinds = np.empty((len(estimators), len(folds))), []
    report(0, scores.size, f"comparing {len(estimators)} methods")
    for m, (name, estimator) in enumerate(estimators.items()):
        for f, fold in enumerate(folds):
            scores[m, f], kind = _score(estimator, fold, seeds[f])
            report(m * len(folds) + f + 1, scores.size, f"comparing {len(estimators)} methods")
        if not np.isfinite(scores[m]).all():
            raise ParameterError(f"{name} gives held-out labels no finite likelihood, so it cannot be compared.")
        kinds.append(kind)
    return scores, kinds


def _check_order(annotations: Any, X: Any) -> None:
    """Refuse features in the place of the annotations, which is the order of `fit`."""
    if isinstance(X, Annotations) and not isinstance(annotations, Annotations):
        raise ParameterError("compare takes the annotations before the features: compare(methods, annotations, X).")


def _score(estimator: Any, fold: Fold, seed: int) -> tuple[float, str]:
    """Fit a copy on the training part; return the mean log-likelihood of the held-out part and its kind."""
    model = seed_unset(copy_unfitted(estimator), make_generator(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # notes on a part of the labels are not about all of them
        model.fit(*fold.training, **_gold_arguments(model, fold.gold))
        score = _mean_with_gold(model, fold)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return score, getattr(last, "score_kind", COMMON)


def _mean_with_gold(model: Any, fold: Fold) -> float:
    """Return the mean over held-out labels and gold classes, whose likelihood is p(k | x)."""
    n_labels, heldout_gold = fold.heldout[-1].n_annotations, fold.heldout_gold
    total = float(model.score(*fold.heldout)) * n_labels if n_labels else 0.0
    if heldout_gold:
        classes = model.classes_.tolist()
        column = [classes.index(value) for value in heldout_gold.values()]
        proba = model.predict_proba(fold.heldout[0])[list(heldout_gold), column]
        total += float(np.log((proba + 0.01 / len(classes)) / 1.01).sum())  # smoothed as the truth is in `score`
    return total / (n_labels + len(heldout_gold))


def _gold_arguments(model: Any, gold: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `fit` that pass gold on; in a pipeline, to every step of ours."""
    if not gold:
        return {}
    if not hasattr(model, "steps"):
        return {"gold": gold}
    ours = [name for name, step in model.steps if type(step).__module__.partition(".")[0] == "manyhands"]
    return {f"{name}__gold": gold for name in ours}


def _make_all(methods: Sequence[Method], *, with_features: bool) -> dict[str, Any]:
    """Return name -> estimator of every method, all of the kind that suits the data."""
    if isinstance(methods, str) or not methods:
        raise ParameterError(f"compare takes a list of methods; got {methods!r}.")
    made: dict[str, Any] = {}
    for method in methods:
        name, estimator = _make_one(method, "classifier" if with_features else "aggregator")
        if name in made:
            raise ParameterError(f"{name} is given twice; leave one out, or give them different parameters.")
        _check_kind(name, estimator, with_features)
        made[name] = estimator
    return made


def _make_one(method: Method, kind: str) -> tuple[str, Any]:
    """Return the shown name and the estimator of one method; a name that no method has is refused."""
    named = method[0] if isinstance(method, tuple) and method else method
    if isinstance(named, str) and named not in registry.names():
        registry.check_name(named, kind)
    if isinstance(method, str):
        return method, registry.create(method)
    if isinstance(method, tuple) and len(method) == 2 and isinstance(method[0], str):
        name, parameters = method
        estimator = registry.create(name).set_params(**parameters)
        shown = ", ".join(f"{parameter}={value!r}" for parameter, value in parameters.items())
        return (f"{name}({shown})" if shown else name), estimator
    if hasattr(method, "fit") and hasattr(method, "get_params") and not isinstance(method, type):
        return " ".join(repr(method).split()), method
    raise ParameterError(f"A method is a name, a pair of name and parameters, or an estimator; got {method!r}.")


def _check_kind(name: str, estimator: Any, with_features: bool) -> None:
    """Refuse aggregators where there are features, classifiers where there are none, and what predicts no labels."""
    if not hasattr(estimator, "score"):
        raise ParameterError(
            f"{name} predicts no labels; put a classifier after it: make_pipeline({name}, TwoStage())."
        )
    aggregates = hasattr(estimator, "fit_predict") and not hasattr(estimator, "named_steps")
    if aggregates and with_features:
        raise ParameterError(
            f"{name} does not use features, so its score is not comparable with that of a classifier: leave X out, or "
            f"compare two-stage with this aggregator."
        )
    if not aggregates and not with_features:
        raise ParameterError(f"{name} learns from features: give X.")


__all__ = ["Comparison", "compare"]
