"""What everything that learns from features promises: seeds, robustness, the inputs it takes and those it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError, AnnotationError, NotFittedError
from manyhands.testing.assertions import assert_equal, error_of, quietly
from manyhands.testing.learners import (
    Getter,
    accuracy,
    brief,
    briefly,
    global_states,
    is_network,
    learn,
    output,
    quick,
    with_spammer,
)
from manyhands.testing.small_crowds import arrays_of, feature_crowd, features_of, thin_crowds


def check_same_seed_same_result(method: BaseEstimator) -> None:
    """The same seed gives the same bits; where there is a network, another seed gives another start."""
    X, votes, _ = feature_crowd(3)
    one, again = briefly(method, X, votes), briefly(method, X, votes)
    assert_equal(output(again, X), output(one, X), "the same seed gives another result")
    assert_equal(again.posterior_, one.posterior_, "the same seed gives another posterior")
    if is_network(one):
        other = briefly(method, X, votes, random_state=1)
        assert not np.array_equal(output(other, X), output(one, X)), "another seed changes nothing"


def check_global_generators_stay_as_they_were(method: BaseEstimator) -> None:
    """`fit` neither reads nor moves the global generators of numpy, of random and of torch."""
    X, votes, _ = feature_crowd(3)
    briefly(method, X, votes)  # whatever it imports is imported by now
    before = global_states()
    fitted = briefly(method, X, votes)
    output(fitted, X)
    if hasattr(fitted, "score"):
        fitted.score(X, votes)
    assert global_states() == before, "a global generator was used"


def check_a_spammer_does_little_harm(method: BaseEstimator) -> None:
    """A worker who labels every item at random leaves nearly all new items right."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = accuracy(learn(method, X, with_spammer(votes)), X, 3)
    assert found >= 0.9, f"with one spammer, only {found:.2f} of new items are right"


def check_bad_workers_are_seen(method: BaseEstimator) -> None:
    """`worker_accuracy_` puts a worker who guesses below every other."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = learn(method, X, with_spammer(votes)).worker_accuracy_
    assert found[-1] < found[:-1].min(), "a worker who guesses is trusted more than one who knows"


def check_sparse_rows_are_dense_rows(method: BaseEstimator) -> None:
    """A scipy matrix gives what the same numbers give as an array, when it learns and when it is asked."""
    from scipy.sparse import csr_array

    X, votes, _ = feature_crowd(3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    dense, sparse = briefly(method, X, votes), briefly(method, csr_array(X), votes)
    difference = np.abs(output(sparse, csr_array(X)) - output(dense, X)).max()
    bound = 0.0 if is_network(dense) else 1e-3  # networks read dense rows; solvers sum in another order
    assert difference <= bound, f"sparse rows are not read as dense ones, by {difference:.3g}"


def check_a_getter_of_rows_is_an_array(method: BaseEstimator) -> None:
    """Something with a length that hands out rows gives what the array gives."""
    X, votes, _ = feature_crowd(3)
    X = X.astype(np.float32)
    array, getter = briefly(method, X, votes), briefly(method, Getter(X), votes)
    assert_equal(output(getter, Getter(X)), output(array, X), "a getter is not read as the array")


def check_thin_crowds_are_survived(method: BaseEstimator) -> None:
    """One item, one worker, one class, one label each, a class nobody chose: no NaN, and no warning but our own."""
    for name, votes in thin_crowds(3).items():
        X = features_of(np.arange(votes.n_items) % 3)
        fitted = briefly(method, X, votes)
        assert np.isfinite(fitted.posterior_).all() and np.isfinite(output(fitted, X)).all(), name


def check_inputs_stay_as_they_were(method: BaseEstimator) -> None:
    """Neither X, nor the annotations, nor gold, nor the constructor parameters are changed by any call."""
    X, votes, truth = feature_crowd(3)
    X.setflags(write=False)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    before = X.copy(), [array.copy() for array in arrays_of(votes)], dict(gold)
    fitted: Any = brief(method)
    given = fitted.get_params(deep=False)
    quietly(lambda: fitted.fit(X, votes, gold))
    output(fitted, X)
    if hasattr(fitted, "score"):
        fitted.score(X, votes)
    assert_equal(X, before[0], "X was changed")
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(votes), before[1])), "the annotations were changed"
    assert gold == before[2], "the gold was changed"
    assert all(given[n] is v for n, v in fitted.get_params(deep=False).items()), "fit overwrote a parameter"


def check_bad_rows_are_refused(method: BaseEstimator) -> None:
    """NaN, text, the wrong number of rows or of features, no X and no crowd are refused with errors of ours."""
    X, votes, _ = feature_crowd(2)
    hole = X.copy()
    hole[3, 1] = np.nan
    for bad in (hole, X[:-1], X[:, 0], X.astype(str), X.astype(object), X[:, :0], np.where(X > 9, X, np.inf)):
        error_of(lambda: learn(method, bad, votes), AlignmentError, "bad rows")  # noqa: B023
    error_of(lambda: learn(method, X, votes.label), AnnotationError, "labels without workers")  # type: ignore[arg-type]
    error_of(lambda: output(quick(method), X), NotFittedError, "asking before fit")
    fitted = briefly(method, X, votes)
    for bad in (X[:, 1:], hole):
        error_of(lambda: output(fitted, bad), AlignmentError, "bad rows after fit")  # noqa: B023
    if hasattr(fitted, "score"):
        error_of(lambda: fitted.score(X[:-1], votes), AlignmentError, "too few rows at score")
