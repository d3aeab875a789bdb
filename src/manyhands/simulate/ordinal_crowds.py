"""Crowds with ordered classes: the label of a worker is the grade of a noisy perception of the truth.

label  =  the grade nearest to  truth + bias[w] + spread[w] * standard normal noise
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate.crowds import Crowd, label_items, make_truth
from manyhands.validation import Constraint, Number, RandomState, check_parameters

Array = npt.NDArray[np.float64]

_CONSTRAINTS: dict[str, Constraint] = {
    "n_items": Number(whole=True, least=1),
    "n_workers": Number(whole=True, least=1),
    "n_classes": Number(whole=True, least=2),
    "bias_sd": Number(least=0),
    "spread": Number(above=0),
    "spread_sd": Number(least=0),
    "random_state": RandomState(),
}


def ordinal_confusion(bias: npt.ArrayLike, spread: npt.ArrayLike, n_classes: int) -> Array:
    """Confusion matrices of workers with a bias and a spread, in steps of the scale.

    p(label <= l | truth t)  =  Phi((l + 1/2 - t - bias) / spread)

    Parameters
    ----------
    bias : array-like of shape (n_workers,)
        Mean error of each worker's perception; above 0 they grade too high.
    spread : array-like of shape (n_workers,)
        Standard deviation of it, above 0.
    n_classes : int
        Number of grades.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Indexed [worker, truth, label]; rows sum to 1.

    Raises
    ------
    ParameterError
        If a spread is not above 0.

    Examples
    --------
    >>> ordinal_confusion([0.0], [0.5], 3).round(2)[0].tolist()
    [[0.84, 0.16, 0.0], [0.16, 0.68, 0.16], [0.0, 0.16, 0.84]]
    """
    from scipy.special import ndtr

    shift, scale = np.asarray(bias, float), np.asarray(spread, float)
    if not np.all(np.isfinite(shift)) or not np.all((scale > 0) & np.isfinite(scale)):
        raise ParameterError("bias must hold numbers and spread numbers above 0, one of each for every worker.")
    truth, threshold = np.arange(n_classes), np.arange(n_classes - 1) + 0.5
    below = ndtr((threshold - truth[:, None] - shift[:, None, None]) / scale[:, None, None])
    return np.diff(below, axis=2, prepend=0.0, append=1.0)


def make_ordinal_crowd(
    n_items: int = 500,
    n_workers: int = 40,
    n_classes: int = 5,
    labels_per_item: float = 5,
    *,
    bias_sd: float = 0.4,
    spread: float = 0.7,
    spread_sd: float = 0.3,
    random_state: Seed = None,
) -> Crowd:
    """Simulate workers with different biases and spreads on an ordered scale.

    Parameters
    ----------
    n_items : int, default=500
        Number of items; all grades are equally frequent.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=5
        Number of grades.
    labels_per_item : float, default=5
        Mean number of labels of an item, as in :func:`assign`.
    bias_sd : float, default=0.4
        Standard deviation of the workers' biases around 0, in steps of the scale.
    spread : float, default=0.7
        Median of the workers' spreads, in steps of the scale.
    spread_sd : float, default=0.3
        Standard deviation of the logarithm of the spreads.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices; no worker is bad.

    Examples
    --------
    >>> make_ordinal_crowd(100, 10, random_state=0).annotations
    Annotations(500 labels on 100 items by 10 workers, 5 classes)
    """
    given = {
        "n_items": n_items,
        "n_workers": n_workers,
        "n_classes": n_classes,
        "bias_sd": bias_sd,
        "spread": spread,
        "spread_sd": spread_sd,
        "random_state": random_state,
    }
    check_parameters("make_ordinal_crowd", given, _CONSTRAINTS)
    rng = make_generator(random_state)
    bias = rng.normal(0.0, bias_sd, n_workers)
    scale = spread * np.exp(rng.normal(0.0, spread_sd, n_workers))
    truth = make_truth(n_items, n_classes, rng)
    return label_items(truth, ordinal_confusion(bias, scale, n_classes), labels_per_item, random_state=rng)
