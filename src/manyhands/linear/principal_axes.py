"""Standardised rows along their principal axes, in which Newton steps by conjugate gradients are short; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyhands.em.kernels import Array
from manyhands.linear.standardise import moments

_MOST_AXES = 2048  # to turn more features (or rows, if these are fewer) would take longer than it saves


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """A ridge is the same in all directions, so a regression on turned rows is the same as on the rows before."""

    X: Any  # (n_rows, n_axes); a scipy matrix is only scaled
    mean: Array  # (n_features,) what was taken from the features as given
    spread: Array  # (n_features,) by what they were then divided
    axes: Array | None  # (n_features, n_axes), orthonormal; None where X is not turned
    variance: float  # of all features together, after that

    def in_raw_features(self, weights: Array) -> Array:
        """(n_features + 1, n_columns) the same scores from rows as they were given, the intercept last."""
        along = weights[:-1] if self.axes is None else self.axes @ weights[:-1]
        coef = along / self.spread[:, None]
        return np.vstack([coef, weights[-1] - self.mean @ coef])


def turn(X: Any, *, standardise: bool = True) -> PrincipalAxes:
    """Rows (at least one) centred, divided by their features' spreads if so wished, and turned.

    There are never more axes than rows. A scipy matrix is neither centred nor turned, and stays sparse.
    """
    mean, variance = moments(X)
    spread = np.sqrt(np.where(variance > 0, variance, 1.0)) if standardise else np.ones_like(mean)
    total = float((variance / spread**2).sum())
    if hasattr(X, "tocsr"):
        from scipy.sparse import diags_array

        return PrincipalAxes((X @ diags_array(1 / spread)).tocsr(), np.zeros_like(mean), spread, None, total)
    scaled = (X - mean) / spread
    if min(scaled.shape) > _MOST_AXES:
        return PrincipalAxes(scaled, mean, spread, None, total)
    axes = np.linalg.qr(scaled.T)[0] if scaled.shape[0] < scaled.shape[1] else np.eye(scaled.shape[1])
    within = scaled @ axes
    turned = np.linalg.eigh(within.T @ within)[1]
    return PrincipalAxes(within @ turned, mean, spread, axes @ turned, total)
