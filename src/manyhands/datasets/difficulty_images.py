"""Difficulty EM's crowds on images: two digits that are hard to tell apart, harder where a network is unsure.

The images come from the folder in MANYHANDS_DATA. That network is cross-fitted on the truth of all items of both
digits, those to test on included: it is a property of the simulated crowd, and no method sees it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.loading import load
from manyhands.datasets.simulated import as_dataset
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate import make_nonstructural, make_structural
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

_TESTED = 0.25  # share of the items
_FOLDS = 5
_PASSES = 3  # after so many a network is right in nine of ten cases, and unsure of many


def make_difficulty_images(
    labels: str = "structural", digits: Sequence[int] = (4, 9), random_state: Seed = None
) -> CrowdDataset:
    """Two digits of USPS as images (1, 16, 16) with pixels from 0 to 1, labelled by five workers as in difficulty EM.

    Parameters
    ----------
    labels : {"structural", "non-structural"}
        The first are right with sigma(ability * (p - 1/2)^2), where p is what a network says of an item that it was not
        trained on, though it was on others, which may be tested on; the second are wrong by chance. See
        `simulate.make_structural` and `simulate.make_nonstructural`.
    digits : the digit of class 0 and that of class 1
    random_state : int, Generator or None
        Decides which quarter of the items is tested on, and how workers err.

    Returns
    -------
    CrowdDataset
        For structural labels `extra` has the planted `difficulty` and `expertise`.
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
        crowd = make_structural(y[train], _seen_by_network(X, y)[train], random_state=rng)
    else:
        crowd = make_nonstructural(y[train], random_state=rng)
    names = (str(digits[0]), str(digits[1]))
    description = f"USPS, {names[0]} against {names[1]}, with {labels} labels of a simulated crowd."
    return as_dataset("usps", description, crowd, crowd.annotations, X[train], y[train], X[test], y[test], names)


def _are_two_digits(digits: Any) -> bool:
    digit = Number(whole=True, least=0, most=9)
    values = digits.tolist() if isinstance(digits, np.ndarray) else digits
    if not isinstance(values, Sequence) or len(values) != 2:
        return False
    return all(digit.allows(value) for value in values) and values[0] != values[1]


def _pair(digits: Sequence[int]) -> tuple[Array, Array]:
    """Images of two digits, and their codes 0 and 1."""
    data = load("usps")
    assert data.X is not None
    assert data.y_true is not None
    rows = np.flatnonzero(np.isin(data.y_true, digits))
    images = data.X[rows].astype(np.float32).reshape(-1, 1, 16, 16) / np.float32(255)
    return images, (data.y_true[rows] == digits[1]).astype(np.int64)


def _seen_by_network(X: Array, y: Array) -> Array:
    """(n_items,) p(class 1) by a perceptron that was trained for a few passes on the truth of other items."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neural_network import MLPClassifier

    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that it is not finished is the point
        network = MLPClassifier((64,), max_iter=_PASSES, random_state=0)
        p = cross_val_predict(network, X.reshape(len(X), -1), y, cv=folds, method="predict_proba")
    return np.asarray(p[:, 1], np.float64)
