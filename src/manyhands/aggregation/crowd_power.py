"""The power of the posterior that was learnt across crowds with known truth.

    q_k  ~  (p_k + 0.001) ^ power

Held-out labels show how much workers err together as far as other labels reveal it. They cannot show an error that the
whole crowd shares, so that the posterior stays too confident: on 17 real crowds the power with the best log loss has
the median 0.64. It is the default. Where held-out labels show that workers err independently, it is blended with 1.
"""

from __future__ import annotations

import numpy as np

from manyhands import elementary
from manyhands.em.kernels import Array

# Median of the crowds' MAP powers under log power ~ N(log .64, .6^2): benchmarks/crowd_power.py --write.
CROWD_POWER = 0.64
FLOOR = 0.001  # added to every probability, so that a certain error costs a finite log loss
FULL_INDEPENDENCE = 2.0  # standard errors by which independent errors must predict held-out labels better


def blended_power(power: float, independence: float) -> float:
    """The power learnt across crowds, closer to 1 the more clearly the errors of this crowd are independent.

    Parameters
    ----------
    power : float
        Power learnt across crowds.
    independence : float
        Mean held-out log-likelihood at exponent 1 minus that at .6, in standard errors.

    Returns
    -------
    float
        power ^ (1 - b) with b = independence / 2 between 0 and 1.

    Examples
    --------
    >>> blended_power(0.64, -3.0), round(blended_power(0.64, 1.0), 3), blended_power(0.64, 5.0)
    (0.64, 0.8, 1.0)
    """
    blend = min(max(independence / FULL_INDEPENDENCE, 0.0), 1.0)
    if blend in (0.0, 1.0):
        return power if blend == 0.0 else 1.0
    return float(elementary.exp((1.0 - blend) * elementary.log(power)))


def raise_to(posterior: Array, power: float) -> Array:
    """The posterior raised to a power; which class is most probable stays.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    power : float
        1 leaves the posterior as it is.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1.

    Examples
    --------
    >>> raise_to(np.array([[0.8, 0.2]]), 0.5).round(3).tolist()
    [[0.666, 0.334]]
    """
    if power == 1.0:
        return posterior
    raised = elementary.exp(power * elementary.log(posterior + FLOOR))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
