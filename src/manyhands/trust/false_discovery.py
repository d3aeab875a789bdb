"""False discovery rate of several tests that may depend on each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def benjamini_yekutieli(p_values: npt.ArrayLike, level: float = 0.05) -> npt.NDArray[np.bool_]:
    """Return which hypotheses are rejected, at a false discovery rate that holds under any dependence.

    With the p-values in ascending order, all up to the largest k with p_(k) <= k * level / (m * (1 + 1/2 + ... + 1/m))
    are rejected.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        One per hypothesis.
    level : float, default=0.05
        Bound of the false discovery rate.

    Returns
    -------
    ndarray of bool of shape (m,)
        True where the hypothesis is rejected.

    References
    ----------
    Y. Benjamini and D. Yekutieli. The control of the false discovery rate in multiple testing under dependency. Annals
    of Statistics 29(4), 2001.

    Examples
    --------
    >>> benjamini_yekutieli([0.001, 0.2, 0.01]).tolist()
    [True, False, True]
    """
    p = np.asarray(p_values, float)
    m = len(p)
    if not m:
        return np.zeros(0, bool)
    order = np.argsort(p, kind="stable")
    bounds = np.arange(1, m + 1) * level / (m * (1 / np.arange(1, m + 1)).sum())
    below = np.flatnonzero(p[order] <= bounds)
    rejected = np.zeros(m, bool)
    rejected[order[: below[-1] + 1 if len(below) else 0]] = True
    return rejected
