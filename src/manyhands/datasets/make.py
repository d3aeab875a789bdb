"""Simulated crowds with features and a test set; the workers are those of `manyhands.simulate.make_crowd`.

The file: crowds on scikit-learn's data sets and on blobs, which need no download; what all of them share; images of
graded difficulty and imbalanced crowds, whose features come from the folder in MANYHANDS_DATA.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import AnyArray
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.datasets.local import CrowdDataset, load
from manyhands.datasets.remote import fetch
from manyhands.exceptions import ParameterError
from manyhands.simulate import (
    ICED_SETTINGS,
    Crowd,
    class_sizes,
    label_sparsely,
    long_tail_shares,
    make_crowd,
    make_iced,
    make_nonstructural,
    make_structural,
    make_truth,
)
from manyhands.simulate.workers import Accuracy
from manyhands.validation import Boolean, Constraint, NoneOr, Number, OneOf, RandomState, check_parameters

# ----------------------------------------------------------------------------------------------------
# Simulated crowds on the data sets that scikit-learn brings.


def make_digits(
    n_workers: int = 40,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | AnyArray = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's handwritten digits: 1797 items, 64 features, 10 classes.

    Parameters
    ----------
    n_workers : int, default=40
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> make_digits(random_state=0)
    CrowdDataset('digits': 4041 labels on 1347 items by 40 workers, 10 classes; X 1347 x 64; X_test 450 x 64;
    extra: is_bad, confusion)
    """
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("digits", n_workers, labels_per_item, test_size, random_state, workers)


def make_iris(
    n_workers: int = 10,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | AnyArray = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's iris: 150 items, 4 features, 3 classes.

    Parameters
    ----------
    n_workers : int, default=10
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> data = make_iris(random_state=0)
    >>> data.annotations.n_workers
    10
    """
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("iris", n_workers, labels_per_item, test_size, random_state, workers)


def make_wine(
    n_workers: int = 10,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | AnyArray = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's wine: 178 items, 13 features, 3 classes.

    Parameters
    ----------
    n_workers : int, default=10
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> data = make_wine(random_state=0)
    >>> data.annotations.n_workers
    10
    """
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("wine", n_workers, labels_per_item, test_size, random_state, workers)


def make_breast_cancer(
    n_workers: int = 20,
    labels_per_item: float = 3,
    *,
    test_size: float = 0.25,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | AnyArray = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on scikit-learn's breast cancer: 569 items, 30 features, 2 classes.

    Parameters
    ----------
    n_workers : int, default=20
        Number of workers.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    test_size : float, default=0.25
        Share of the items without annotations, returned as `X_test` and `y_test`.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of the split and of the crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the split leaves a class without items.

    Examples
    --------
    >>> data = make_breast_cancer(random_state=0)
    >>> data.annotations.n_workers
    20
    """
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    return _on_bundled("breast_cancer", n_workers, labels_per_item, test_size, random_state, workers)


def _on_bundled(
    name: str, n_workers: int, labels_per_item: float, test_size: float, random_state: Seed, workers: dict[str, Any]
) -> CrowdDataset:
    """Simulate a crowd on a data set of scikit-learn."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    constraints: dict[str, Constraint] = {"test_size": Number(above=0, most=0.9), "random_state": RandomState()}
    check_parameters(f"make_{name}", {"test_size": test_size, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    bunch = getattr(datasets, f"load_{name}")()
    seed = int(rng.integers(2**31))
    try:
        X, X_test, y, y_test = train_test_split(
            bunch.data, bunch.target, test_size=test_size, stratify=bunch.target, random_state=seed
        )
    except ValueError:
        raise ParameterError(
            f"With test_size={test_size} some class would have no item left for the crowd or for testing."
        ) from None
    crowd, annotations = label_items(y, n_workers, labels_per_item, rng, workers)
    class_names = tuple(map(str, bunch.target_names))
    description = f"scikit-learn's {name.replace('_', ' ')} with a simulated crowd."
    return as_dataset(name, description, crowd, annotations, X, y, X_test, y_test, class_names)


# ----------------------------------------------------------------------------------------------------
# Simulated crowds on Gaussian blobs.


def make_blobs(
    n_items: int = 400,
    n_workers: int = 40,
    n_classes: int = 3,
    labels_per_item: float = 3,
    *,
    n_features: int = 2,
    separation: float = 3.0,
    n_test: int = 200,
    class_shares: npt.ArrayLike | None = None,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | AnyArray = "uniform",
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate a crowd on Gaussian blobs of standard deviation 1.

    Parameters
    ----------
    n_items : int, default=400
        Number of items with annotations.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=3
        Number of classes, one blob each.
    labels_per_item : float, default=3
        Mean number of labels of an item.
    n_features : int, default=2
        Number of features.
    separation : float, default=3.0
        Standard deviation of the centres of the blobs.
    n_test : int, default=200
        Number of test items, which have no annotations.
    class_shares : array of shape (n_classes,) or None, default=None
        Shares of the classes, also among test items; None for equal shares.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        How the workers err; see `manyhands.simulate.make_crowd`.
    accuracy : float, (float, float) or array of shape (n_workers,), default=0.8
        Accuracy of the workers: one for all, the range of a uniform distribution, or one for each.
    spread : float, default=0.0
        Standard deviation of the workers around one accuracy.
    bad : str, default="random"
        What the bad workers do, such as "random", "constant", "inverted" or "colluding".
    bad_share : float, default=0.0
        Share of bad workers.
    target : int or None, default=None
        Class for "constant" and "targeted" workers.
    activity : {"uniform", "zipf", "dirichlet"} or array of shape (n_workers,), default="uniform"
        How labels are distributed over workers.
    random_state : int, Generator or None, default=None
        Seed of features and crowd.

    Returns
    -------
    CrowdDataset
        `extra` holds the truth about the workers: ``is_bad`` and ``confusion`` (None if no confusion matrix describes
        them).

    Examples
    --------
    >>> make_blobs(100, 10, random_state=0)
    CrowdDataset('blobs': 300 labels on 100 items by 10 workers, 3 classes; X 100 x 2; X_test 200 x 2;
    extra: is_bad, confusion)
    """
    workers = worker_options(kind, accuracy, spread, bad, bad_share, target, activity)
    whole = Number(whole=True, least=1)
    given = {"n_features": n_features, "separation": separation, "n_test": n_test, "random_state": random_state}
    constraints: dict[str, Constraint] = {"n_features": whole, "separation": Number(least=0)}
    constraints |= {"n_test": whole, "random_state": RandomState()}
    check_parameters("make_blobs", given, constraints)
    rng = make_generator(random_state)
    crowd = make_crowd(
        n_items, n_workers, n_classes, labels_per_item, class_shares=class_shares, random_state=rng, **workers
    )
    y_test = make_truth(n_test, n_classes if class_shares is None else class_shares, rng)
    centre = rng.normal(0, separation, (n_classes, n_features))
    X, X_test = (centre[y] + rng.normal(size=(len(y), n_features)) for y in (crowd.truth, y_test))
    return as_dataset("blobs", "Gaussian blobs.", crowd, crowd.annotations, X, crowd.truth, X_test, y_test, None)


# ----------------------------------------------------------------------------------------------------
# Simulated labels on given items, and a simulated crowd with features as a `CrowdDataset`.


def worker_options(
    kind: str,
    accuracy: Accuracy,
    spread: float,
    bad: str,
    bad_share: float,
    target: int | None,
    activity: str | AnyArray,
) -> dict[str, Any]:
    """Return the parameters of `manyhands.simulate.make_crowd` that describe the workers."""
    return {
        "kind": kind,
        "accuracy": accuracy,
        "spread": spread,
        "bad": bad,
        "bad_share": bad_share,
        "target": target,
        "activity": activity,
    }


def label_items(
    y: AnyArray, n_workers: int, labels_per_item: float, rng: np.random.Generator, workers: dict[str, Any]
) -> tuple[Crowd, Annotations]:
    """Simulate labels for items of given truth.

    `make_crowd` draws the truth of its items, so a crowd with more items is simulated, and each given item becomes the
    next simulated one of its class.

    Parameters
    ----------
    y : ndarray of int, shape (n_items,)
        Class of each item.
    n_workers : int
        Number of workers.
    labels_per_item : float
        Mean number of labels of an item.
    rng : numpy.random.Generator
        Source of randomness.
    workers : dict of str to object
        Parameters of the workers, see `worker_options`.

    Returns
    -------
    crowd : Crowd
        The simulated crowd, with the truth about its workers.
    annotations : Annotations
        Its labels of the given items.
    """
    n_of_class = np.bincount(y)
    shares = n_of_class / len(y)
    n_simulated = len(y) + int(5 * np.sqrt(len(y) * len(shares))) + 5
    while True:
        crowd = make_crowd(
            n_simulated, n_workers, len(shares), labels_per_item, class_shares=shares, random_state=rng, **workers
        )
        if np.all(np.bincount(crowd.truth, minlength=len(shares)) >= n_of_class):
            break
        n_simulated *= 2  # less than once in a million draws
    planted = np.argsort(crowd.truth, kind="stable")
    start = np.searchsorted(crowd.truth[planted], np.arange(len(shares)))
    nth = np.empty(len(y), np.int64)  # number of items of the same class before an item
    nth[np.argsort(y, kind="stable")] = np.arange(len(y)) - np.repeat(np.cumsum(n_of_class) - n_of_class, n_of_class)
    chosen = crowd.annotations[planted[start[y] + nth]]
    return crowd, Annotations(
        chosen.item,
        chosen.worker,
        chosen.label,
        item_ids=np.arange(len(y)),
        worker_ids=chosen.worker_ids,
        classes=chosen.classes,
    )


def as_dataset(
    name: str,
    description: str,
    crowd: Crowd,
    annotations: Annotations,
    X: AnyArray,
    y: AnyArray,
    X_test: AnyArray,
    y_test: AnyArray,
    class_names: tuple[str, ...] | None,
) -> CrowdDataset:
    """Return a simulated crowd with features as a data set.

    Shapes: X (n_items, ...); y (n_items,); X_test (n_test, ...); y_test (n_test,).
    """
    planted = {name: getattr(crowd, name) for name in ("difficulty", "expertise") if getattr(crowd, name) is not None}
    return CrowdDataset(
        name,
        annotations.classes,
        description,
        annotations,
        _as_truth(y),
        X,
        X_test=X_test,
        y_test=_as_truth(y_test),
        class_names=class_names,
        extra=MappingProxyType({"is_bad": crowd.is_bad, "confusion": crowd.confusion} | planted),
    )


def _as_truth(y: AnyArray) -> AnyArray:
    """Return integer classes as int64."""
    return y if y.dtype == object else y.astype(np.int64)


# ----------------------------------------------------------------------------------------------------
# Crowds of the Difficulty EM paper on images: two digits that are hard to distinguish, with item difficulties.
#
# The images come from the folder in MANYHANDS_DATA. The difficulty of an item is computed by a network that is
# cross-fitted on the truth of all items of both digits, test items included: it is a property of the simulated crowd,
# and no method sees it.

_TEST_SHARE = 0.25  # share of test items
_FOLDS = 5  # of the cross-fitting
_PASSES = 3  # epochs; the network is then right in nine of ten cases, and uncertain about many items


def make_difficulty_images(
    labels: str = "structural", digits: Sequence[int] = (4, 9), random_state: Seed = None
) -> CrowdDataset:
    """Simulate five workers on images of two digits of USPS, as in the Difficulty EM paper.

    Parameters
    ----------
    labels : {"structural", "non-structural"}, default="structural"
        Structural labels are right with probability sigma(ability * (p - 1/2)^2), where p is the probability of class 1
        predicted by a network that was not trained on the item (but on other items, test items included).
        Non-structural labels are wrong independently of the item. See `simulate.make_structural` and
        `simulate.make_nonstructural`.
    digits : sequence of two int, default=(4, 9)
        Digit of class 0 and digit of class 1.
    random_state : int, Generator or None, default=None
        Decides which quarter of the items is the test set, and the errors of the workers.

    Returns
    -------
    CrowdDataset
        Images of shape (1, 16, 16) with pixels from 0 to 1. For structural labels `extra` has the true ``difficulty``
        and ``expertise``.

    Raises
    ------
    ParameterError
        If `digits` are not two different digits.
    AnnotationError
        If MANYHANDS_DATA has no usps.

    Examples
    --------
    >>> data = make_difficulty_images("structural", random_state=0)  # doctest: +SKIP
    """
    constraints: dict[str, Constraint] = {
        "labels": OneOf(("structural", "non-structural")),
        "random_state": RandomState(),
    }
    check_parameters("make_difficulty_images", {"labels": labels, "random_state": random_state}, constraints)
    if not _are_two_digits(digits):
        raise ParameterError(f"digits must be two different digits, such as (4, 9). Got {digits!r}.")
    rng = make_generator(random_state)
    X, y = _images_of_digits(digits)
    order = rng.permutation(len(y))
    test, train = np.split(order, [round(_TEST_SHARE * len(y))])
    if labels == "structural":
        crowd = make_structural(y[train], _predicted_probability(X, y)[train], random_state=rng)
    else:
        crowd = make_nonstructural(y[train], random_state=rng)
    names = (str(digits[0]), str(digits[1]))
    description = f"USPS, {names[0]} against {names[1]}, with {labels} labels of a simulated crowd."
    return as_dataset("usps", description, crowd, crowd.annotations, X[train], y[train], X[test], y[test], names)


def _are_two_digits(digits: Any) -> bool:
    """Whether these are two different digits."""
    digit = Number(whole=True, least=0, most=9)
    values = digits.tolist() if isinstance(digits, np.ndarray) else digits
    if not isinstance(values, Sequence) or len(values) != 2:
        return False
    return all(digit.allows(value) for value in values) and values[0] != values[1]


def _images_of_digits(digits: Sequence[int]) -> tuple[AnyArray, AnyArray]:
    """Return images of two digits, and their codes 0 and 1."""
    data = load("usps")
    assert data.X is not None
    assert data.y_true is not None
    rows = np.flatnonzero(np.isin(data.y_true, digits))
    images = data.X[rows].astype(np.float32).reshape(-1, 1, 16, 16) / np.float32(255)
    return images, (data.y_true[rows] == digits[1]).astype(np.int64)


def _predicted_probability(X: AnyArray, y: AnyArray) -> AnyArray:
    """Return (n_items,) p(class 1) by a perceptron that was trained for a few epochs on the truth of other items."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neural_network import MLPClassifier

    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is intended
        network = MLPClassifier((64,), max_iter=_PASSES, random_state=0)
        p = cross_val_predict(network, X.reshape(len(X), -1), y, cv=folds, method="predict_proba")
    return np.asarray(p[:, 1], np.float64)


# ----------------------------------------------------------------------------------------------------
# Imbalanced simulated crowds on real features: the three data sets of ICED, and a long tail of any other.
#
# The features come from the folder in MANYHANDS_DATA; only ICED's Gisette is generated.

Index = npt.NDArray[np.intp]
_TEST_ITEMS = {"gisette": 1400, "usps": 332, "gsad": 1170}  # items in the paper's test sets, half of each class

# Setting -> data set, majority class, minority class. The paper does not name the classes, but their sizes: of all
# digits only 6 has the 668 + 166 items of the majority class, and of all gases only ethylene has 2341 + 585. The
# minority class is one that is hard to distinguish from it: 0, the other digit of a single loop, and acetaldehyde
# (C2H4O), the gas whose molecule is most similar to ethylene (C2H4).
_PAIRS = {"usps": ("usps", 6, 0), "gsad": ("gas_drift", 1, 3)}

# Gisette has 5000 features, half of which are not informative by design; the others are largely redundant.
_N_FEATURES, _N_INFORMATIVE = 5000, 50


def make_iced_features(
    setting: str = "usps",
    random_state: Seed = None,
    error: Sequence[float] | None = None,
    n_features: int | None = None,
    real: bool = False,
) -> CrowdDataset:
    """Simulate the crowds of the ICED paper: ten items of class 0 to one of class 1, and a balanced test set.

    Parameters
    ----------
    setting : {"usps", "gsad", "gisette"}, default="usps"
        usps: digit 6 against 0, pixels from 0 to 1; 668 + 66 training items and 166 test items of each class, as in the
        paper. gsad: ethylene against acetaldehyde, 128 features standardised by the training items; the available half
        of the data gives 1331 + 133 and 333 of each, in the paper's ratios. gisette: a substitute generated by
        scikit-learn's `make_classification` with 5000 standardised features, half of them not informative; 2800 + 280
        items and 700 of each.
    random_state : int, Generator or None, default=None
        Decides which items are used, the split, and the errors of the workers: see `simulate.make_iced`.
    error : (float, float) or None, default=None
        Range of the workers' error rates; None for that of the setting.
    n_features : int or None, default=None
        Number of generated features of gisette, at least 100; None for Gisette's 5000. Half of them are not
        informative, whatever the number.
    real : bool, default=False
        Whether the items of gisette are those of the real set, standardised, which `fetch_gisette` downloads or has in
        its cache, in place of generated ones.

    Returns
    -------
    CrowdDataset
        The data set.

    Raises
    ------
    ParameterError
        If the setting is unknown, or a number of features is given for real data.
    AnnotationError
        If MANYHANDS_DATA lacks the features.
    DownloadError
        If Gisette is neither in the cache nor can be downloaded.

    Examples
    --------
    >>> make_iced_features("gisette", random_state=0).annotations.n_classes  # doctest: +SKIP
    2
    """
    constraints: dict[str, Constraint] = {"setting": OneOf(tuple(ICED_SETTINGS)), "random_state": RandomState()}
    constraints["n_features"] = NoneOr(Number(whole=True, least=2 * _N_INFORMATIVE))
    constraints["real"] = Boolean()
    given = {"setting": setting, "random_state": random_state, "n_features": n_features, "real": real}
    check_parameters("make_iced_features", given, constraints)
    if n_features is not None and setting != "gisette":
        raise ParameterError(f"Only the features of gisette are generated; n_features cannot be set for {setting}.")
    if real and (setting != "gisette" or n_features is not None):
        raise ParameterError("real is for gisette, whose items are generated otherwise, and has all its features.")
    rng = make_generator(random_state)
    if setting == "gisette":
        X, y, names = _real_gisette() if real else _generated(n_features or _N_FEATURES, rng)
    else:
        X, y, names = _classes_of(setting)
    train, test = _split(y, setting, rng)
    crowd = make_iced(setting, y[train], rng, error)
    X_train, X_test = (X[train], X[test]) if setting == "usps" else _standardised(X[train], X[test])
    description = f"ICED's {setting}, ten items of one class to one of the other, with a simulated crowd."
    return as_dataset(
        f"iced-{setting}", description, crowd, crowd.annotations, X_train, y[train], X_test, y[test], names
    )


def _classes_of(setting: str) -> tuple[AnyArray, AnyArray, tuple[str, str]]:
    """Return the items of two classes of a real data set, coded 0 for the majority and 1 for the minority class."""
    name, large, small = _PAIRS[setting]
    data = load(name)
    assert data.X is not None
    assert data.y_true is not None
    rows = np.flatnonzero(np.isin(data.y_true, [large, small]))
    names = data.class_names or tuple(map(str, data.classes.tolist()))
    return _as_floats(data.X[rows]), (data.y_true[rows] == small).astype(np.int64), (names[large], names[small])


def _real_gisette() -> tuple[AnyArray, AnyArray, None]:
    """Return all items of Gisette, those for testing too; the paper does not say which class is the minority."""
    data = fetch("gisette")
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y_true, data.y_test])
    return X.astype(np.float32), y.astype(np.int64), None


def _generated(n_features: int, rng: np.random.Generator) -> tuple[AnyArray, AnyArray, None]:
    """Generate as many items of two classes as Gisette's training and test sets have together."""
    from sklearn.datasets import make_classification

    large, small = (n + _TEST_ITEMS["gisette"] // 2 for n in ICED_SETTINGS["gisette"].n_of_class)
    X, y = make_classification(
        large + small,
        n_features,
        n_informative=_N_INFORMATIVE,
        n_redundant=n_features // 2 - _N_INFORMATIVE,
        n_clusters_per_class=2,
        weights=[large / (large + small)],
        flip_y=0,
        random_state=int(rng.integers(2**31)),
    )
    return X.astype(np.float32), y.astype(np.int64), None


def _split(y: AnyArray, setting: str, rng: np.random.Generator) -> tuple[Index, Index]:
    """Return training and test rows in the paper's ratios, as many as the majority class allows."""
    wanted, n_tested = np.array(ICED_SETTINGS[setting].n_of_class), _TEST_ITEMS[setting] // 2
    rows = [rng.permutation(np.flatnonzero(y == k)) for k in (0, 1)]
    scale = min(1.0, len(rows[0]) / (wanted[0] + n_tested))
    n_test = round(scale * n_tested)
    n_large = min(round(scale * wanted[0]), len(rows[0]) - n_test)
    n_train = (n_large, round(n_large * wanted[1] / wanted[0]))
    train = np.concatenate([of_class[:n] for of_class, n in zip(rows, n_train)])
    test = np.concatenate([of_class[n : n + n_test] for of_class, n in zip(rows, n_train)])
    return rng.permutation(train), np.sort(test)


def make_long_tail_on(
    name: str,
    n_items: int | None = None,
    ratio: float = 10.0,
    n_workers: int = 59,
    labels_per_item: float = 2.5,
    *,
    features: str | None = None,
    balanced_test: bool = True,
    random_state: Seed = None,
) -> CrowdDataset:
    """Simulate an imbalanced and sparse crowd on the features and the truth of a real data set.

    Items are selected so that the largest class has `ratio` times as many items as the smallest, with the same factor
    from each class to the next; the order of the classes is random. Validation items are used for training, too. Test
    items are those of the data set, or a quarter of each class if it has none. Pixels are divided by 255, all other
    features are left as they are. Workers are those of `simulate.label_sparsely`; a real crowd of the data set is not
    used.

    Parameters
    ----------
    name : str
        A data set with features and truth, such as "usps" or "labelme"; see `load`.
    n_items : int or None, default=None
        Number of training items; None for as many as possible.
    ratio : float, default=10.0
        Size of the largest class divided by that of the smallest.
    n_workers : int, default=59
        Number of workers.
    labels_per_item : float, default=2.5
        Mean number of labels of an item.
    features : str or None, default=None
        Which features, as in `load`.
    balanced_test : bool, default=True
        Test on equally many items of each class; otherwise on the same long tail.
    random_state : int, Generator or None, default=None
        Seed of all random choices.

    Returns
    -------
    CrowdDataset
        The data set.

    Raises
    ------
    ParameterError
        If the data set has no features with truth, or too few items.

    Examples
    --------
    >>> make_long_tail_on("usps", ratio=10, random_state=0)  # doctest: +SKIP
    """
    constraints: dict[str, Constraint] = {"n_items": NoneOr(Number(whole=True, least=1)), "balanced_test": Boolean()}
    given = {"n_items": n_items, "balanced_test": balanced_test, "random_state": random_state}
    check_parameters("make_long_tail_on", given, constraints | {"random_state": RandomState()})
    rng = make_generator(random_state)
    data = load(name, features=features)
    (X, y), (X_test, y_test) = _parts(data, rng)
    share = rng.permutation(long_tail_shares(len(data.classes), ratio))
    train = rng.permutation(_in_shares(y, share, n_items, data.name, rng))
    test = np.sort(_in_shares(y_test, np.ones(len(share)) if balanced_test else share, None, data.name, rng))
    crowd = label_sparsely(y[train], len(share), n_workers, labels_per_item, rng)
    votes = crowd.annotations
    annotations = Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=votes.item_ids,
        worker_ids=votes.worker_ids,
        classes=data.classes,
    )
    truth, truth_test = data.classes[y[train]], data.classes[y_test[test]]
    description = f"A long tail of {data.name} with a simulated crowd."
    return as_dataset(
        data.name, description, crowd, annotations, X[train], truth, X_test[test], truth_test, data.class_names
    )


def _parts(data: CrowdDataset, rng: np.random.Generator) -> tuple[tuple[AnyArray, Index], tuple[AnyArray, Index]]:
    """Return rows and class codes of the training set and of the test set."""
    has_truth = data.has_truth
    if data.X is None or data.y_true is None or not has_truth.any():
        raise ParameterError(f"The data set {data.name} has no features with truth to simulate a crowd on; usps has.")
    code_of = {value: code for code, value in enumerate(data.classes.tolist())}

    def part(X: AnyArray, y: AnyArray) -> tuple[AnyArray, Index]:
        return _as_floats(X), np.array([code_of[value] for value in y.tolist()], np.intp)

    X, y = part(data.X[has_truth], data.y_true[has_truth])
    if data.X_valid is not None and data.y_valid is not None:
        more, codes = part(data.X_valid, data.y_valid)
        X, y = np.concatenate([X, more]), np.concatenate([y, codes])
    if data.X_test is not None and data.y_test is not None:
        return (X, y), part(data.X_test, data.y_test)
    rows = [rng.permutation(np.flatnonzero(y == k)) for k in range(len(code_of))]
    test = np.concatenate([of_class[: len(of_class) // 4] for of_class in rows])
    rest = np.concatenate([of_class[len(of_class) // 4 :] for of_class in rows])
    return (X[rest], y[rest]), (X[test], y[test])


def _in_shares(y: Index, share: AnyArray, n_items: int | None, name: str, rng: np.random.Generator) -> Index:
    """Return rows in which classes have these shares: as many as possible, or as were asked for."""
    rows = [rng.permutation(np.flatnonzero(y == k)) for k in range(len(share))]
    there = np.array([len(of_class) for of_class in rows])
    most = int(np.min(there / share) * share.sum())
    if most < len(share):
        raise ParameterError(f"The data set {name} has too few items of class {int(there.argmin())} for a long tail.")
    sizes = class_sizes(most if n_items is None else n_items, share)
    if n_items is None:
        sizes = np.minimum(sizes, there)  # rounding may exceed the available items by one
    if np.any(sizes > there):
        raise ParameterError(f"The data set {name} has no {n_items} items with such a long tail; at most about {most}.")
    return np.concatenate([of_class[:n] for of_class, n in zip(rows, sizes)])


def _as_floats(X: AnyArray) -> AnyArray:
    """Return single precision; pixels from 0 to 1."""
    return X.astype(np.float32) / np.float32(255) if X.dtype == np.uint8 else X.astype(np.float32)


def _standardised(X: AnyArray, X_test: AnyArray) -> tuple[Any, Any]:
    """Standardise by the mean and standard deviation of the training items."""
    mean, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    return tuple(((rows - mean) / spread).astype(np.float32) for rows in (X, X_test))
