"""Classifiers and representation learners: seeds, robustness to spammers, accepted and refused inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError, AnnotationError, NotFittedError
from manyhands.testing.assertions import assert_equal, error_of, quietly
from manyhands.testing.learners import (
    NamedColumns,
    RowGetter,
    accuracy,
    brief_copy,
    fit_briefly,
    fit_quickly,
    global_states,
    is_network,
    output,
    quick_copy,
    with_spammer,
)
from manyhands.testing.small_crowds import arrays_of, degenerate_crowds, feature_crowd, features_of


def check_same_seed_gives_same_result(method: BaseEstimator) -> None:
    """The same seed gives bit-identical results; for networks, another seed gives another initialisation.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    one, again = fit_briefly(method, X, votes), fit_briefly(method, X, votes)
    assert_equal(output(again, X), output(one, X), "the same seed gives another result")
    assert_equal(again.posterior_, one.posterior_, "the same seed gives another posterior")
    if is_network(one):
        other = fit_briefly(method, X, votes, random_state=1)
        assert not np.array_equal(output(other, X), output(one, X)), "another seed changes nothing"


def check_global_generators_are_not_used(method: BaseEstimator) -> None:
    """`fit`, prediction and `score` neither read nor advance the global generators of numpy, random and torch.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    fit_briefly(method, X, votes)  # so that all imports are done
    before = global_states()
    fitted = fit_briefly(method, X, votes)
    output(fitted, X)
    if hasattr(fitted, "score"):
        fitted.score(X, votes)
    assert global_states() == before, "a global generator was used"


def check_one_spammer_hardly_lowers_accuracy(method: BaseEstimator) -> None:
    """With a worker who labels every item at random, at least 90% of new items are right.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = accuracy(fit_quickly(method, X, with_spammer(votes)), X, 3)
    assert found >= 0.9, f"with one spammer, the accuracy on new items is only {found:.2f}"


def check_random_workers_have_the_lowest_accuracy(method: BaseEstimator) -> None:
    """`worker_accuracy_` of a spammer with random labels is below that of every other worker.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = fit_quickly(method, X, with_spammer(votes)).worker_accuracy_
    assert found[-1] < found[:-1].min(), "a spammer has a higher accuracy than an honest worker"


def check_sparse_features_equal_dense_features(method: BaseEstimator) -> None:
    """A sparse matrix gives the same results as the dense array, in training and in prediction.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    from scipy.sparse import csr_array

    X, votes, _ = feature_crowd(3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    dense, sparse = fit_briefly(method, X, votes), fit_briefly(method, csr_array(X), votes)
    difference = np.abs(output(sparse, csr_array(X)) - output(dense, X)).max()
    bound = 0.0 if is_network(dense) else 1e-3  # networks convert to dense rows; solvers sum in another order
    assert difference <= bound, f"results of sparse and dense features differ by {difference:.3g}"


def check_row_getter_equals_array(method: BaseEstimator) -> None:
    """An object with a length that returns single rows gives the same results as the array.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    X = X.astype(np.float32)
    array, getter = fit_briefly(method, X, votes), fit_briefly(method, RowGetter(X), votes)
    assert_equal(output(getter, RowGetter(X)), output(array, X), "results of a row getter and of the array differ")


def check_degenerate_crowds_give_finite_results(method: BaseEstimator) -> None:
    """One item, one worker, one class, one label each, an unused class: results are finite, with no foreign warning.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    for name, votes in degenerate_crowds(3).items():
        X = features_of(np.arange(votes.n_items) % 3)
        fitted = fit_briefly(method, X, votes)
        assert np.isfinite(fitted.posterior_).all() and np.isfinite(output(fitted, X)).all(), name


def check_inputs_are_not_modified(method: BaseEstimator) -> None:
    """Neither X, nor the annotations, nor gold, nor the constructor parameters are changed by any call.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, truth = feature_crowd(3)
    X.setflags(write=False)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    before = X.copy(), [array.copy() for array in arrays_of(votes)], dict(gold)
    fitted: Any = brief_copy(method)
    given = fitted.get_params(deep=False)
    quietly(lambda: fitted.fit(X, votes, gold))
    output(fitted, X)
    if hasattr(fitted, "score"):
        fitted.score(X, votes)
    assert_equal(X, before[0], "X was changed")
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(votes), before[1])), "the annotations were changed"
    assert gold == before[2], "the gold was changed"
    assert all(given[n] is v for n, v in fitted.get_params(deep=False).items()), "fit overwrote a parameter"


def check_columns_in_another_order_are_refused(method: BaseEstimator) -> None:
    """Column names are learned by `fit`; other names and another order are refused, and a fit without forgets them.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(2)
    names = [f"column {j}" for j in range(X.shape[1])]
    plain, fitted = fit_briefly(method, X, votes), fit_briefly(method, NamedColumns(names, X), votes)
    assert not hasattr(plain, "feature_names_in_"), "an array gave column names"
    assert plain.n_features_in_ == fitted.n_features_in_ == len(names), "n_features_in_ is not the number of columns"
    assert list(fitted.feature_names_in_) == names, "feature_names_in_ are not the columns of the data frame"
    assert_equal(output(fitted, NamedColumns(names, X)), output(plain, X), "column names change the result")
    for other in (names[::-1], [*names[:-1], "other"]):
        table = NamedColumns(other, X)
        error_of(lambda: output(fitted, table), AlignmentError, "other columns")  # noqa: B023
        if hasattr(fitted, "score"):
            error_of(lambda: fitted.score(table, votes), AlignmentError, "other columns in score")  # noqa: B023
    quietly(lambda: fitted.fit(X, votes))
    assert not hasattr(fitted, "feature_names_in_"), "a second fit without names keeps those of the first"


def check_invalid_features_are_refused(method: BaseEstimator) -> None:
    """NaN, text, a wrong number of rows or features, no X and no annotations raise the documented errors.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(2)
    hole = X.copy()
    hole[3, 1] = np.nan
    for bad in (hole, X[:-1], X[:, 0], X.astype(str), X.astype(object), X[:, :0], np.where(X > 9, X, np.inf)):
        error_of(lambda: fit_quickly(method, bad, votes), AlignmentError, "invalid features")  # noqa: B023
    error_of(lambda: fit_quickly(method, X, votes.label), AnnotationError, "labels without workers")  # type: ignore[arg-type]
    error_of(lambda: output(quick_copy(method), X), NotFittedError, "prediction before fit")
    fitted = fit_briefly(method, X, votes)
    for bad in (X[:, 1:], hole):
        error_of(lambda: output(fitted, bad), AlignmentError, "invalid features in prediction")  # noqa: B023
    if hasattr(fitted, "score"):
        error_of(lambda: fitted.score(X[:-1], votes), AlignmentError, "too few rows in score")
