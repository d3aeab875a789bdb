"""What the checks are made of: comparisons of fits, small simulated crowds, and fits of a tenth of a second."""

from __future__ import annotations

import pickle
import random
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.estimator import BaseEstimator, with_nested_options
from manyhands.exceptions import CrowdWarning, ManyhandsError
from manyhands.validation import Constraint, Folder, NoneOr, Number

# ----------------------------------------------------------------------------------------------------
# Fitting and comparing estimators in the checks.

CLOSE = 1e-6  # EM stops near its optimum, at a point that may depend on the order of summation
OF_ITEMS = ("posterior_", "labels_", "tied_", "unlabelled_", "item_ids_")
OF_WORKERS = ("worker_accuracy_", "worker_ids_")
RESULTS = (*OF_ITEMS, *OF_WORKERS, "classes_", "n_iter_", "converged_", "history_", "notes_")


def copy_of(aggregator: Any, /, **changes: Any) -> Any:
    """Copy an estimator without its fitted attributes."""
    parameters = aggregator.get_params(deep=False)
    if parameters.get("random_state", 0) is None:
        parameters["random_state"] = 0
    own = {name: value for name, value in changes.items() if "__" not in name}
    nested = {name: value for name, value in changes.items() if "__" in name}
    return type(aggregator)(**(parameters | own)).set_params(**nested)


def quietly(call: Callable[[], Any]) -> Any:
    """Call a function with every warning turned into an error, except CrowdWarning, which is ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdWarning)
        return call()


def fit(aggregator: Aggregator, votes: Annotations, gold: Mapping[Any, Any] | None = None) -> Any:
    """Fit a copy of an aggregator."""
    return quietly(lambda: copy_of(aggregator).fit(votes, gold))


def n_classes_for(aggregator: Aggregator, wanted: int) -> int:
    """Number of classes to test an aggregator with."""
    votes = Annotations.from_matrix(np.repeat(np.arange(6)[:, None] % 3, 3, axis=1))
    try:
        fit(aggregator, votes)
    except ManyhandsError:
        return min(wanted, 2)
    return wanted


def results_of(fitted: Any) -> dict[str, Any]:
    """Collect the fitted attributes of an estimator."""
    return {name: v for name, v in vars(fitted).items() if name.endswith("_") and not name.startswith("_")}


def assert_same_results(one: Aggregator, other: Aggregator, what: str) -> None:
    """Assert that two aggregators have bit-identical fitted attributes."""
    assert results_of(one).keys() == results_of(other).keys(), (
        f"{what}: {results_of(one).keys() ^ results_of(other).keys()}"
    )
    for name, value in results_of(one).items():
        assert_equal(getattr(other, name), value, f"{what}, in {name}")


def assert_equal(actual: Any, expected: Any, what: str) -> None:
    """Assert that two values or arrays are equal."""
    if isinstance(expected, np.ndarray):
        equal = np.array_equal(actual, expected, equal_nan=expected.dtype.kind == "f")
    else:
        equal = actual == expected
    assert equal, f"{what}: {actual!r} is not {expected!r}"


def assert_close(actual: Any, expected: Any, what: str, tolerance: float = CLOSE) -> None:
    """Assert that two arrays have the same shape and differ by at most a tolerance."""
    assert np.shape(actual) == np.shape(expected), f"{what}: shapes {np.shape(actual)} and {np.shape(expected)}"
    difference = float(np.max(np.abs(np.asarray(actual) - np.asarray(expected)), initial=0.0))
    assert difference <= tolerance, f"{what}: by {difference:.3g}"


def assert_probabilities(array: npt.NDArray[np.float64], tolerance: float = 1e-9) -> None:
    """Assert that an array is finite, in [0, 1], and sums to 1 over its last axis."""
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

    Shapes: items (n_items,); workers (n_workers,); classes (n_classes,).
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
    """Call a function that must raise an error."""
    try:
        quietly(call)
    except kind as error:
        return error
    raise AssertionError(f"{what} should raise {kind.__name__}")


def bad_values(constraint: Constraint) -> list[Any]:
    """List values that a constraint forbids."""
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
    """Find another allowed value for each numeric parameter."""
    candidates = (0.25, 0.75, 3, 2)
    present, constraints = with_nested_options(method.get_params(deep=False), method._constraints)
    return {
        name: next(value for value in candidates if constraint.allows(value) and value != present[name])
        for name, constraint in constraints.items()
        if isinstance(constraint, Number)
    }


# ----------------------------------------------------------------------------------------------------
# Small simulated crowds for the checks.

Truth = npt.NDArray[np.int64]


def easy_crowd(
    n_classes: int,
    *,
    n_items: int = 60,
    n_workers: int = 10,
    per_item: int = 5,
    accuracy: float = 0.85,
    n_spammers: int = 0,
    seed: int = 0,
) -> tuple[Annotations, Truth]:
    """Simulate one-coin workers of equal accuracy.

    Shapes: returns truth (n_items,).
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_items) % n_classes)
    item = np.repeat(np.arange(n_items), per_item)
    worker = rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item].ravel()
    right = rng.random(len(item)) < np.where(worker < n_spammers, 1 / n_classes, accuracy)
    wrong = (truth[item] + rng.integers(1, max(n_classes, 2), len(item))) % n_classes
    label = np.where(right, truth[item], wrong)
    return crowd_from_codes(item, worker, label, n_items=n_items, n_workers=n_workers, n_classes=n_classes), truth


def feature_crowd(
    n_classes: int, *, n_items: int = 60, n_features: int = 4, seed: int = 0, **others: Any
) -> tuple[npt.NDArray[np.float64], Annotations, Truth]:
    """Simulate features of well separated classes, with the labels of `easy_crowd`.

    Shapes: returns X (n_items, n_features); returns truth (n_items,).
    """
    votes, truth = easy_crowd(n_classes, n_items=n_items, seed=seed, **others)
    return features_of(truth, n_features, seed), votes, truth


def features_of(truth: Truth, n_features: int = 4, seed: int = 0) -> npt.NDArray[np.float64]:
    """Draw features around the centre of each item's class.

    Shapes: truth (n_items,); returns (n_items, n_features).
    """
    centre = np.random.default_rng(99).normal(0, 2.5, (64, n_features))
    return centre[truth] + np.random.default_rng(seed + 1).normal(0, 0.5, (len(truth), n_features))


def hard_crowd(n_classes: int) -> Annotations:
    """Simulate few labels of low accuracy, so that EM converges slowly and restarts have different optima."""
    return easy_crowd(n_classes, n_items=50, n_workers=14, per_item=3, accuracy=0.55, seed=5)[0]


def degenerate_crowds(n_classes: int) -> dict[str, Annotations]:
    """List degenerate crowds: a single item, worker, class or label, ties, unused classes, disconnected parts."""
    pairs = np.arange(12)
    label = pairs % n_classes
    return {
        "one label": Annotations.from_triples(["i"], ["w"], ["k"]),
        "one item": Annotations.from_triples(["i"] * 3, ["a", "b", "c"], ["k", "k", "l"]),
        "one item and one class": Annotations.from_triples(["i"] * 3, ["a", "b", "c"], ["k"] * 3),
        "one worker": Annotations.from_triples(pairs, ["w"] * 12, label),
        "one class": Annotations.from_matrix(np.zeros((4, 3), int)),
        "one class of two in use": Annotations.from_matrix(np.zeros((4, 3), int), classes=[0, 1]),
        "one label per item": Annotations.from_triples(pairs, pairs, label),
        "an unused class": Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [0] * 4, classes=range(n_classes)),
        "a tie": Annotations.from_matrix([[0, 1], [1, 0]]),
        "a worker and an item without labels": Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]]),
        "two disconnected crowds": Annotations.from_triples(
            np.repeat(np.arange(8), 2), np.arange(16) % 2 + 2 * (np.arange(16) // 8), np.repeat(np.arange(8) % 2, 2)
        ),
    }


def with_unlabelled(votes: Annotations) -> Annotations:
    """Add an item and a worker without labels."""
    return Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=[*votes.item_ids.tolist(), "silent item"],
        worker_ids=[*votes.worker_ids.tolist(), "silent worker"],
        classes=votes.classes,
    )


def crowd_from_codes(
    item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike, *, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    """Build annotations from codes, with text as ids and classes.

    Shapes: item (n_annotations,); worker (n_annotations,); label (n_annotations,).
    """
    return Annotations(
        item,
        worker,
        label,
        item_ids=[f"item {i:04d}" for i in range(n_items)],
        worker_ids=[f"worker {w:04d}" for w in range(n_workers)],
        classes=[f"class {k:02d}" for k in range(n_classes)],
    )


def columns_of(votes: Annotations) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """List the three columns of annotations."""
    return [(votes.item_ids, votes.item), (votes.worker_ids, votes.worker), (votes.classes, votes.label)]


def arrays_of(votes: Annotations) -> list[npt.NDArray[Any]]:
    """List all arrays of annotations, to test whether they were modified."""
    return [votes.item, votes.worker, votes.label, votes.item_ids, votes.worker_ids, votes.classes]


# ----------------------------------------------------------------------------------------------------
# Fast training of classifiers and representation learners, and their predictions.

M = TypeVar("M", bound=BaseEstimator)

# A network that fits the data of the checks in a tenth of a second; each method uses the parameters that it has.
QUICK = {"hidden": (8,), "dropout": 0.0, "learning_rate": 0.03, "batch_size": 16, "max_epochs": 25}
_FEW_ROUNDS = {"rounds": 2, "members": 2, "generator_epochs": 2, "discriminator_epochs": 1, "adversarial_epochs": 2}
_FEW_ROUNDS |= {"generator__epochs": 2, "discriminator__epochs": 1, "adversarial__epochs": 2}  # in groups of options
_LITTLE_WORK = {
    "tuplets__batches_per_epoch": 1,
    "search": None,
    "warm_up": 1,
    "labels": "majority-vote",
    "aggregator": "dawid-skene",
}
EPOCHS = 7  # more than the five of a warm-up, so that every phase of a training is reached


def quick_copy(method: M, /, **changes: Any) -> M:
    """Copy an estimator with parameters for fast training."""
    small = known_to(method, QUICK | _FEW_ROUNDS | _LITTLE_WORK)
    if not isinstance(getattr(method, "warm_up", None), int):  # of ICED, a group of options
        small.pop("warm_up", None)
    groups = {name.partition("__")[0] for name in changes if "__" in name}
    small = {name: value for name, value in small.items() if value is not None or name not in groups}
    copy: M = copy_of(method, **(small | changes))
    return copy


def brief_copy(method: M, /, **changes: Any) -> M:
    """Copy an estimator for training of a few epochs, for checks that do not depend on the accuracy reached."""
    return quick_copy(method, **(known_to(method, {"max_epochs": EPOCHS}) | changes))


def known_to(method: BaseEstimator, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Select the parameters that an estimator has."""
    return {name: value for name, value in parameters.items() if name in method.get_params()}


def fit_quickly(
    method: BaseEstimator, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """Fit the copy made by `quick_copy`."""
    copy: Any = quick_copy(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def fit_briefly(
    method: BaseEstimator, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """Fit the copy made by `brief_copy`."""
    copy: Any = brief_copy(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def output(fitted: Any, X: Any) -> npt.NDArray[np.float64]:
    """Predict with a fitted estimator of either family.

    Shapes: returns (n_rows, n_outputs).
    """
    values: npt.NDArray[np.float64] = (
        fitted.predict_proba(X) if hasattr(fitted, "predict_proba") else fitted.transform(X)
    )
    return values


def is_network(fitted: Any) -> bool:
    """Whether a fitted estimator contains a torch module."""
    return hasattr(fitted.module_, "state_dict")


def accuracy(fitted: Any, X: Any, n_classes: int, noise: float = 0.0) -> float:
    """Accuracy on new items.

    Parameters
    ----------
    fitted : BaseEstimator
        A fitted estimator; for a representation learner, logistic regression is trained on the embedding.
    X : array-like
        Features of the training items.
    n_classes : int
        Number of classes.
    noise : float, default=0.0
        Standard deviation of the noise added to the new features.

    Returns
    -------
    float
        Share of right predictions on 300 items.
    """
    truth = np.arange(300) % n_classes
    fresh = add_noise(features_of(truth, seed=7), noise, seed=8)
    if hasattr(fitted, "predict"):
        return float(np.mean(fitted.predict(fresh) == fitted.classes_[truth]))
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(fitted.transform(X), fitted.posterior_.argmax(axis=1))
    return float(np.mean(model.predict(fitted.transform(fresh)) == truth))


def add_noise(X: npt.NDArray[np.float64], noise: float, seed: int = 5) -> npt.NDArray[np.float64]:
    """Add normal noise to features, so that classes overlap.

    Shapes: X (n_items, n_features); returns (n_items, n_features).
    """
    return X + np.random.default_rng(seed).normal(0, 1, X.shape) * noise


class RowGetter:
    """An object that returns single rows, as a torch Dataset does.

    Shapes: rows (n_items, n_features).
    """

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: int) -> npt.NDArray[Any]:
        if not isinstance(i, int):
            raise TypeError("rows are returned one at a time")
        return np.asarray(self._rows[i])


class NamedColumns:
    """A table with named columns that has what all data frames have in common; no library is needed.

    Shapes: values (n_items, n_columns).
    """

    def __init__(self, columns: list[str], values: npt.NDArray[Any]) -> None:
        self.columns = columns
        self._values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""
        return self._values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._values, dtype)


def linear(n_features: int, n_outputs: int) -> Any:
    """Build a linear network, as an example of a backbone given by a user."""
    from manyhands.nn.backbones import mlp

    return mlp((n_features, n_outputs))


def with_spammer(votes: Annotations) -> Annotations:
    """Add a worker who labels every item at random."""
    wider = with_unlabelled(votes)[: votes.n_items]
    label = np.random.default_rng(4).integers(0, votes.n_classes, votes.n_items)
    return wider.with_more(np.arange(votes.n_items), np.full(votes.n_items, votes.n_workers), label)


def global_states() -> list[bytes]:
    """Serialise the states of the global random generators."""
    torch: Any = sys.modules.get("torch")
    states = [pickle.dumps(random.getstate()), pickle.dumps(np.random.get_state())]  # noqa: NPY002
    return states + ([] if torch is None else [torch.get_rng_state().numpy().tobytes()])
