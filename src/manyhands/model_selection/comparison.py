"""Choose among methods and settings without any truth: by how well each foretells labels that it has not seen.

The one recipe is `score`: the mean log-likelihood of held-out annotations. Its two forms do not compare, so that
classifiers are held against classifiers and aggregators against aggregators:

    classifiers   folds of items: p(k | x) of an item without any label foretells what workers say of it
    aggregators   folds of labels: an item's other labels foretell the one held out
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.features import DatasetRows, Index, Rows, as_rows, check_rows
from manyhands.heldout import split_labels
from manyhands.progress import report
from manyhands.randomness import Seed, make_generator, seed_unset
from manyhands.validation import Constraint, Number, RandomState, check_annotations, check_parameters

Array = npt.NDArray[np.float64]
Method = str | tuple[str, Mapping[str, Any]] | Any


@dataclass(frozen=True, eq=False)
class Comparison:
    """How well each method foretells held-out labels; higher is better.

    Attributes
    ----------
    names : the methods, as they were given
    scores : (n_methods, n_folds) mean log-likelihood of the labels of each fold
    n_heldout : (n_folds,) how many labels that were
    mean : (n_methods,) over all labels, each of which is held out once
    standard_error : (n_methods,) of the mean, from the folds
    behind, behind_error : (n_methods,) distance to the best, and its standard error; folds are shared, so it is smaller
    rank : (n_methods,) 1 is the best; equal scores keep the order in which the methods were given
    best : the name of the best
    best_estimator : the best, not fitted
    """

    names: tuple[str, ...]
    scores: Array
    n_heldout: npt.NDArray[np.int64]
    _estimators: tuple[Any, ...] = field(repr=False)

    @property
    def mean(self) -> Array:
        return np.asarray(self.scores @ self.n_heldout / self.n_heldout.sum())

    @property
    def standard_error(self) -> Array:
        return _standard_error(self.scores)

    @property
    def behind(self) -> Array:
        return np.asarray(self.mean.max() - self.mean)

    @property
    def behind_error(self) -> Array:
        return _standard_error(self.scores - self.scores[self._best])

    @property
    def rank(self) -> npt.NDArray[np.int64]:
        place = np.empty(len(self.names), np.int64)
        place[np.argsort(-self.mean, kind="stable")] = np.arange(1, len(self.names) + 1)
        return place

    @property
    def best(self) -> str:
        return self.names[self._best]

    @property
    def best_estimator(self) -> Any:
        return _copy(self._estimators[self._best])

    @property
    def _best(self) -> int:
        return int(self.mean.argmax())

    def table(self) -> list[dict[str, Any]]:
        """One row per method, the best first."""
        columns = {
            "rank": self.rank,
            "mean": self.mean,
            "standard_error": self.standard_error,
            "behind": self.behind,
            "behind_error": self.behind_error,
        }
        rows = [
            {"method": name} | {column: values[m].item() for column, values in columns.items()}
            for m, name in enumerate(self.names)
        ]
        return sorted(rows, key=lambda row: row["rank"])

    def __repr__(self) -> str:
        width = max(map(len, self.names))
        lines = [
            f"Mean log-likelihood of {self.n_heldout.sum()} labels, each held out once in {len(self.n_heldout)} folds"
        ]
        for row in self.table():
            behind = "best" if row["rank"] == 1 else f"{row['behind']:.4f} ± {row['behind_error']:.4f} behind"
            said = f"{row['mean']:8.4f} ± {row['standard_error']:.4f}"
            lines.append(f"{row['rank']:>3}  {row['method']:<{width}}  {said}  {behind}")
        return "\n".join(lines)


def compare(
    methods: Sequence[Method], X: Any, annotations: Annotations, *, n_folds: int = 5, random_state: Seed = None
) -> Comparison:
    """Score methods by the labels that they foretell, on the same folds; no truth is needed.

    Parameters
    ----------
    methods : names, (name, parameters) pairs, or estimators of one kind: classifiers, or aggregators where X is None
    X : features as for `fit`, or None
    annotations : the crowd's labels
    n_folds : into how many parts items (classifiers) or labels (aggregators) fall, each of which is held out once
    random_state : seed of the folds of items, and of every method that has no seed of its own. The folds of labels are
        those of `heldout.split_labels`, which draws nothing

    Examples
    --------
    >>> from manyhands import Annotations
    >>> votes = Annotations.from_matrix([[0, 0, 1, 1, 0], [1, 1, 0, 0, 1]] * 10)  # two workers have it upside down
    >>> compare(["majority-vote", ("one-coin", {"max_iter": 50})], None, votes, n_folds=2).names
    ('majority-vote', 'one-coin(max_iter=50)')
    """
    limits: dict[str, Constraint] = {"n_folds": Number(whole=True, least=2), "random_state": RandomState()}
    check_parameters("compare", {"n_folds": n_folds, "random_state": random_state}, limits)
    check_annotations(annotations)
    made = _made(methods, with_features=X is not None)
    rng = make_generator(random_state)
    if X is None:
        splits = list(_label_splits(annotations, n_folds))
    else:
        rows = as_rows(X)
        check_rows(rows, annotations.n_items)
        splits = list(_item_splits(rows, annotations, n_folds, rng))
    if len(splits) < 2:
        raise AnnotationError(
            f"{annotations.n_annotations} label(s) on {annotations.n_items} item(s) are too few to hold some out."
        )
    seeds = rng.integers(2**31, size=len(splits)).tolist()
    scores = np.empty((len(made), len(splits)))
    for m, (name, estimator) in enumerate(made.items()):
        for f, (training, heldout) in enumerate(splits):
            scores[m, f] = _score(estimator, training, heldout, seeds[f])
            report(m * len(splits) + f + 1, scores.size, f"comparing {len(made)} methods")
        if not np.isfinite(scores[m]).all():
            raise ParameterError(f"{name} gives no finite likelihood to held-out labels, so it cannot be compared.")
    n_heldout = np.array([heldout[-1].n_annotations for _, heldout in splits])
    return Comparison(tuple(made), scores, n_heldout, tuple(made.values()))


def _score(estimator: Any, training: tuple[Any, ...], heldout: tuple[Any, ...], seed: int) -> float:
    model = seed_unset(_copy(estimator), make_generator(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # a part of the crowd says less than all of it
        return float(model.fit(*training).score(*heldout))


def _item_splits(
    rows: Rows, annotations: Annotations, n_folds: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Labelled items fall into folds of equal size; items without labels are always there to learn from."""
    labelled = rng.permutation(np.flatnonzero(annotations.n_labels > 0))
    for fold in range(min(n_folds, len(labelled))):
        out = np.sort(labelled[fold::n_folds])
        rest = np.setdiff1d(np.arange(annotations.n_items), out)
        if annotations.n_labels[rest].any():
            yield (_part(rows, rest), annotations[rest]), (_part(rows, out), annotations[out])


def _label_splits(annotations: Annotations, n_folds: int) -> Iterator[tuple[tuple[Annotations], tuple[Annotations]]]:
    fold = split_labels(annotations, n_folds)
    for f in range(n_folds):
        if 0 < np.sum(fold == f) < len(fold):
            yield (annotations.keep(fold != f),), (annotations.keep(fold == f),)


def _part(rows: Rows, index: Index) -> Any:
    return _Part(rows.getter, index) if isinstance(rows, DatasetRows) else rows.whole()[index]


@dataclass(frozen=True, eq=False)
class _Part:
    """Some rows of what hands them out one by one."""

    getter: Any
    index: Index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, at: int) -> Any:
        return self.getter[int(self.index[at])]


def _made(methods: Sequence[Method], *, with_features: bool) -> dict[str, Any]:
    """Name -> estimator of every method, all of the kind that can use what there is."""
    if isinstance(methods, str) or not methods:
        raise ParameterError(f"compare takes a list of methods; got {methods!r}.")
    made: dict[str, Any] = {}
    for method in methods:
        name, estimator = _one(method)
        if name in made:
            raise ParameterError(f"{name} is there twice; compare it with something else.")
        _check_kind(name, estimator, with_features)
        made[name] = estimator
    return made


def _one(method: Method) -> tuple[str, Any]:
    if isinstance(method, str):
        return method, registry.create(method)
    if isinstance(method, tuple) and len(method) == 2 and isinstance(method[0], str):
        name, parameters = method
        estimator = registry.create(name).set_params(**parameters)
        said = ", ".join(f"{parameter}={value!r}" for parameter, value in parameters.items())
        return (f"{name}({said})" if said else name), estimator
    if hasattr(method, "fit") and hasattr(method, "get_params") and not isinstance(method, type):
        return " ".join(repr(method).split()), method
    raise ParameterError(f"A method is a name, a pair of name and parameters, or an estimator; got {method!r}.")


def _check_kind(name: str, estimator: Any, with_features: bool) -> None:
    if not hasattr(estimator, "score"):
        raise ParameterError(f"{name} learns no labels; put a classifier behind it: make_pipeline({name}, TwoStage()).")
    aggregates = hasattr(estimator, "fit_predict") and not hasattr(estimator, "named_steps")
    if aggregates and with_features:
        raise ParameterError(
            f"{name} does not look at features, so its score is not that of a classifier: set X=None, or compare "
            f"two-stage with this aggregator."
        )
    if not aggregates and not with_features:
        raise ParameterError(f"{name} learns from features: give X.")


def _copy(estimator: Any) -> Any:
    from sklearn.base import clone

    return clone(estimator)


def _standard_error(scores: Array) -> Array:
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]))
