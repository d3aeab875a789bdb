"""Crowds of the Difficulty EM paper on images: two digits that are hard to distinguish, with item difficulties.

The images come from the folder in MANYHANDS_DATA. The difficulty of an item is computed by a network that is
cross-fitted on the truth of all items of both digits, test items included: it is a property of the simulated crowd,
and no method sees it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.loading import load
from manyhands.datasets.simulated_labels import as_dataset
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate import make_nonstructural, make_structural
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

_TESTED = 0.25  # share of test items
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
    X, y = _pair(digits)
    order = rng.permutation(len(y))
    test, train = np.split(order, [round(_TESTED * len(y))])
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


def _pair(digits: Sequence[int]) -> tuple[Array, Array]:
    """Return images of two digits, and their codes 0 and 1."""
    data = load("usps")
    assert data.X is not None
    assert data.y_true is not None
    rows = np.flatnonzero(np.isin(data.y_true, digits))
    images = data.X[rows].astype(np.float32).reshape(-1, 1, 16, 16) / np.float32(255)
    return images, (data.y_true[rows] == digits[1]).astype(np.int64)


def _predicted_probability(X: Array, y: Array) -> Array:
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
