"""Fitting and comparing estimators in the checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning, ManyhandsError
from manyhands.options import with_nested_options
from manyhands.validation import Constraint, Folder, NoneOr, Number

CLOSE = 1e-6  # EM stops near its optimum, at a point that may depend on the order of summation
OF_ITEMS = ("posterior_", "labels_", "tied_", "unlabelled_", "item_ids_")
OF_WORKERS = ("worker_accuracy_", "worker_ids_")
RESULTS = (*OF_ITEMS, *OF_WORKERS, "classes_", "n_iter_", "converged_", "history_", "notes_")


def copy_of(aggregator: Any, /, **changes: Any) -> Any:
    """Copy an estimator without its fitted attributes.

    Parameters
    ----------
    aggregator : BaseEstimator
        The estimator.
    **changes : object
        Parameters with other values; `group__option` for one of a group of options.

    Returns
    -------
    BaseEstimator
        A new estimator with the same parameters and these changes; `random_state` is 0 where it was None.
    """
    parameters = aggregator.get_params(deep=False)
    if parameters.get("random_state", 0) is None:
        parameters["random_state"] = 0
    own = {name: value for name, value in changes.items() if "__" not in name}
    nested = {name: value for name, value in changes.items() if "__" in name}
    return type(aggregator)(**(parameters | own)).set_params(**nested)


def quietly(call: Callable[[], Any]) -> Any:
    """Call a function with every warning turned into an error, except CrowdWarning, which is ignored.

    Parameters
    ----------
    call : callable
        A function without arguments.

    Returns
    -------
    object
        What the function returns.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdWarning)
        return call()


def fit(aggregator: Aggregator, votes: Annotations, gold: Mapping[Any, Any] | None = None) -> Any:
    """Fit a copy of an aggregator.

    Parameters
    ----------
    aggregator : Aggregator
        The aggregator.
    votes : Annotations
        The crowd's labels.
    gold : dict, default=None
        ``{item: class}`` where the truth is known.

    Returns
    -------
    Aggregator
        The fitted copy; typed as Any, because every method has attributes of its own.
    """
    return quietly(lambda: copy_of(aggregator).fit(votes, gold))


def n_classes_for(aggregator: Aggregator, wanted: int) -> int:
    """Number of classes to test an aggregator with.

    Parameters
    ----------
    aggregator : Aggregator
        The aggregator.
    wanted : int
        Number of classes for methods that accept any number.

    Returns
    -------
    int
        `wanted`, or at most 2 for a method that refuses more with a ManyhandsError.
    """
    votes = Annotations.from_matrix(np.repeat(np.arange(6)[:, None] % 3, 3, axis=1))
    try:
        fit(aggregator, votes)
    except ManyhandsError:
        return min(wanted, 2)
    return wanted


def results_of(fitted: Any) -> dict[str, Any]:
    """Collect the fitted attributes of an estimator.

    Parameters
    ----------
    fitted : BaseEstimator
        A fitted estimator.

    Returns
    -------
    dict
        The attributes whose names end in `_`.
    """
    return {name: v for name, v in vars(fitted).items() if name.endswith("_") and not name.startswith("_")}


def assert_same_results(one: Aggregator, other: Aggregator, what: str) -> None:
    """Assert that two aggregators have bit-identical fitted attributes.

    Parameters
    ----------
    one : Aggregator
        A fitted aggregator.
    other : Aggregator
        Another fitted aggregator.
    what : str
        Beginning of the error message.
    """
    assert results_of(one).keys() == results_of(other).keys(), (
        f"{what}: {results_of(one).keys() ^ results_of(other).keys()}"
    )
    for name, value in results_of(one).items():
        assert_equal(getattr(other, name), value, f"{what}, in {name}")


def assert_equal(found: Any, expected: Any, what: str) -> None:
    """Assert that two values or arrays are equal.

    Parameters
    ----------
    found : object
        The value to test.
    expected : object
        The expected value; an array is compared element by element, and NaN equals NaN.
    what : str
        Beginning of the error message.
    """
    if isinstance(expected, np.ndarray):
        equal = np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")
    else:
        equal = found == expected
    assert equal, f"{what}: {found!r} is not {expected!r}"


def assert_close(found: Any, expected: Any, what: str, tolerance: float = CLOSE) -> None:
    """Assert that two arrays have the same shape and differ by at most a tolerance.

    Parameters
    ----------
    found : array-like
        The array to test.
    expected : array-like
        The expected array.
    what : str
        Beginning of the error message.
    tolerance : float, default=1e-6
        Largest absolute difference.
    """
    assert np.shape(found) == np.shape(expected), f"{what}: shapes {np.shape(found)} and {np.shape(expected)}"
    difference = float(np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0))
    assert difference <= tolerance, f"{what}: by {difference:.3g}"


def assert_probabilities(array: npt.NDArray[np.float64], tolerance: float = 1e-9) -> None:
    """Assert that an array is finite, in [0, 1], and sums to 1 over its last axis.

    Parameters
    ----------
    array : ndarray
        The probabilities.
    tolerance : float, default=1e-9
        Largest deviation of a sum from 1.
    """
    assert np.all(np.isfinite(array)), "there are probabilities that are not finite"
    assert np.all((array >= 0) & (array <= 1 + tolerance)), "there are probabilities outside [0, 1]"
    assert_close(array.sum(axis=-1), np.ones(array.shape[:-1]), "probabilities do not sum to 1", tolerance)


def assert_invariant_to_names(
    aggregator: Aggregator,
    votes: Annotations,
    *,
    items: npt.ArrayLike | None = None,
    workers: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
) -> None:
    """Assert that results do not depend on the names and the order of items, workers and classes.

    Parameters
    ----------
    aggregator : Aggregator
        The aggregator; copies of it are fitted.
    votes : Annotations
        The crowd's labels.
    items : array-like of int of shape (n_items,), default=None
        Permutation of the items; unchanged if None.
    workers : array-like of int of shape (n_workers,), default=None
        Permutation of the workers; unchanged if None.
    classes : array-like of int of shape (n_classes,), default=None
        Permutation of the classes; unchanged if None.
    """
    i, w, k = (
        np.arange(n) if order is None else np.asarray(order)
        for order, n in zip((items, workers, classes), (votes.n_items, votes.n_workers, votes.n_classes))
    )
    renamed = Annotations(
        np.argsort(i)[votes.item],
        np.argsort(w)[votes.worker],
        np.argsort(k)[votes.label],
        item_ids=[f"i{n}" for n in range(votes.n_items)],
        worker_ids=[f"w{n}" for n in range(votes.n_workers)],
        classes=[f"k{n}" for n in range(votes.n_classes)],
    )
    old, new = fit(aggregator, votes), fit(aggregator, renamed)
    not_tied = ~old.tied_[i]
    assert_close(new.posterior_, old.posterior_[i][:, k], "the posterior depends on names or order")
    assert_close(new.worker_accuracy_, old.worker_accuracy_[w], "worker_accuracy_ depends on names or order")
    new_labels = np.array([int(value[1:]) for value in new.labels_.tolist()])
    old_values = votes.classes[k][new_labels]
    assert_equal(old_values[not_tied], old.labels_[i][not_tied], "labels depend on names or order")
    if hasattr(old, "confusion_") and hasattr(new, "confusion_"):
        assert_close(new.confusion_, old.confusion_[w][:, k][:, :, k], "confusion_ depends on names or order")
    if hasattr(old, "difficulty_") and hasattr(new, "difficulty_"):
        assert_close(new.difficulty_, old.difficulty_[i], "difficulty_ depends on names or order", 1e-4)


def error_of(call: Callable[[], Any], kind: type[Exception], what: str = "this") -> Exception:
    """Call a function that must raise an error.

    Parameters
    ----------
    call : callable
        A function without arguments.
    kind : type
        Class of the expected error.
    what : str, default="this"
        Subject of the message if no such error is raised.

    Returns
    -------
    Exception
        The error.
    """
    try:
        quietly(call)
    except kind as error:
        return error
    raise AssertionError(f"{what} should raise {kind.__name__}")


def bad_values(constraint: Constraint) -> list[Any]:
    """List values that a constraint forbids.

    Parameters
    ----------
    constraint : Constraint
        The constraint of a parameter.

    Returns
    -------
    list
        Forbidden values.
    """
    bad: list[Any] = [object(), *([] if isinstance(constraint, Folder) else ["no such value"])]
    constraint = constraint.other if isinstance(constraint, NoneOr) else constraint
    if isinstance(constraint, Number):
        bad += [float("nan"), float("inf"), True, [1]]
        bad += [constraint.least - 1] if constraint.least is not None else []
        bad += [constraint.above] if constraint.above is not None else []
        bad += [constraint.most + 1] if constraint.most is not None else []
        bad += [1.5] if constraint.whole else []
    return bad


def other_values(method: Any) -> dict[str, Any]:
    """Find another allowed value for each numeric parameter.

    Parameters
    ----------
    method : BaseEstimator
        An estimator.

    Returns
    -------
    dict
        A value that differs from the present one, for each parameter with a Number constraint; options of groups are
        named `group__option`.
    """
    candidates = (0.25, 0.75, 3, 2)
    present, constraints = with_nested_options(method.get_params(deep=False), method._constraints)
    return {
        name: next(value for value in candidates if constraint.allows(value) and value != present[name])
        for name, constraint in constraints.items()
        if isinstance(constraint, Number)
    }
