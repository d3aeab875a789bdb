"""How the checks fit and compare."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning, ManyhandsError
from manyhands.validation import Constraint, Folder, NoneOr, Number

CLOSE = 1e-6  # EM stops near its optimum, and where it stops may depend on the order of a sum
OF_ITEMS = ("posterior_", "labels_", "tied_", "unlabelled_", "item_ids_")
OF_WORKERS = ("worker_accuracy_", "worker_ids_")
RESULTS = (*OF_ITEMS, *OF_WORKERS, "classes_", "n_iter_", "converged_", "history_", "notes_")


def copy_of(aggregator: Any, /, **changes: Any) -> Any:
    """A fresh estimator with the same parameters, these changes, and a seed where none was given."""
    parameters = aggregator.get_params(deep=False)
    if parameters.get("random_state", 0) is None:
        parameters["random_state"] = 0
    return type(aggregator)(**(parameters | changes))


def quietly(call: Callable[[], Any]) -> Any:
    """What the call returns; a warning of ours is fine, any other is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdWarning)
        return call()


def fit(aggregator: Aggregator, votes: Annotations, gold: Mapping[Any, Any] | None = None) -> Any:
    """A fitted copy; Any, because every method has results of its own."""
    return quietly(lambda: copy_of(aggregator).fit(votes, gold))


def n_classes_for(aggregator: Aggregator, wanted: int) -> int:
    """The wanted number of classes, or two for a method that refuses more with an error of ours."""
    votes = Annotations.from_matrix(np.repeat(np.arange(6)[:, None] % 3, 3, axis=1))
    try:
        fit(aggregator, votes)
    except ManyhandsError:
        return min(wanted, 2)
    return wanted


def results_of(fitted: Any) -> dict[str, Any]:
    return {name: v for name, v in vars(fitted).items() if name.endswith("_") and not name.startswith("_")}


def assert_same_results(one: Aggregator, other: Aggregator, what: str) -> None:
    assert results_of(one).keys() == results_of(other).keys(), (
        f"{what}: {results_of(one).keys() ^ results_of(other).keys()}"
    )
    for name, value in results_of(one).items():
        assert_equal(getattr(other, name), value, f"{what}, in {name}")


def assert_equal(found: Any, expected: Any, what: str) -> None:
    equal = np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected
    assert equal, f"{what}: {found!r} is not {expected!r}"


def assert_close(found: Any, expected: Any, what: str, tolerance: float = CLOSE) -> None:
    assert np.shape(found) == np.shape(expected), f"{what}: shapes {np.shape(found)} and {np.shape(expected)}"
    difference = float(np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0))
    assert difference <= tolerance, f"{what}: by {difference:.3g}"


def assert_probabilities(array: npt.NDArray[np.float64], tolerance: float = 1e-9) -> None:
    assert np.all(np.isfinite(array)), "there are probabilities that are not finite"
    assert np.all((array >= 0) & (array <= 1 + tolerance)), "there are probabilities outside [0, 1]"
    assert_close(array.sum(axis=-1), np.ones(array.shape[:-1]), "probabilities do not sum to 1", tolerance)


def assert_renamed(
    aggregator: Aggregator,
    votes: Annotations,
    *,
    items: npt.ArrayLike | None = None,
    workers: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
) -> None:
    """Fit with everything in another order under other names, and put the results back into the old order."""
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
    clear = ~old.tied_[i]
    assert_close(new.posterior_, old.posterior_[i][:, k], "names show in the posterior")
    assert_close(new.worker_accuracy_, old.worker_accuracy_[w], "names show in worker_accuracy_")
    new_labels = np.array([int(value[1:]) for value in new.labels_.tolist()])
    old_values = votes.classes[k][new_labels]
    assert_equal(old_values[clear], old.labels_[i][clear], "names show in the labels")
    if hasattr(old, "confusion_") and hasattr(new, "confusion_"):
        assert_close(new.confusion_, old.confusion_[w][:, k][:, :, k], "names show in confusion_")
    if hasattr(old, "difficulty_") and hasattr(new, "difficulty_"):
        assert_close(new.difficulty_, old.difficulty_[i], "names show in difficulty_", 1e-4)


def error_of(call: Callable[[], Any], kind: type[Exception], what: str = "this") -> Exception:
    """The error of this kind that the call raises."""
    try:
        quietly(call)
    except kind as error:
        return error
    raise AssertionError(f"{what} should raise {kind.__name__}")


def bad_values(constraint: Constraint) -> list[Any]:
    """Values that no reading of the constraint allows."""
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
    """For each numeric parameter, a legal value that is not the present one."""
    candidates = (0.25, 0.75, 3, 2)
    return {
        name: next(value for value in candidates if constraint.allows(value) and value != method.get_params()[name])
        for name, constraint in method._constraints.items()
        if isinstance(constraint, Number)
    }
