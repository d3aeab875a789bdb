"""Compare methods and settings by cross-validation, without ground truth.

The criterion is the mean log-likelihood of held-out annotations (`score` of every method). It has two forms, which are
not comparable with each other, so a comparison is among aggregators or among classifiers:

    aggregators   folds of annotations: p(label | the other labels of the item, the worker's confusion matrix)
    classifiers   folds of items: p(label | the features of the item, the worker's confusion matrix)

A method whose noise depends on the item is scored by its own p(label | ...) (`score_kind` is "own").
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.heldout import COMMON
from manyhands.model_selection.comparison_result import Comparison as Comparison
from manyhands.model_selection.comparison_result import copy_unfitted
from manyhands.model_selection.folds import Fold, make_folds
from manyhands.progress import report
from manyhands.progress_display import showing
from manyhands.randomness import Seed, make_generator, seed_unset
from manyhands.validation import Constraint, Number, RandomState, check_annotations, check_parameters

Array = npt.NDArray[np.float64]
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
    n_labels, known = fold.heldout[-1].n_annotations, fold.heldout_gold
    total = float(model.score(*fold.heldout)) * n_labels if n_labels else 0.0
    if known:
        classes = model.classes_.tolist()
        column = [classes.index(value) for value in known.values()]
        proba = model.predict_proba(fold.heldout[0])[list(known), column]
        total += float(np.log((proba + 0.01 / len(classes)) / 1.01).sum())  # smoothed as the truth is in `score`
    return total / (n_labels + len(known))


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
