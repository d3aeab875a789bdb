"""exp, log and related functions with the same bits on every machine.

NumPy and the C library have different implementations for each instruction set, which differ in the last bit, and EM
can turn a last bit into another label near a saddle point. These functions use only additions, multiplications,
divisions and integer operations, which IEEE 754 defines to the last bit: in C where it was built, otherwise the same
steps in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import compiled

_fused = compiled.load("_fused")

Array = npt.NDArray[np.float64]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TO_INTEGER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer
_CHUNK = 1 << 14  # numbers; a chunk and its intermediate results fit in the cache


def exp(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Exponential of each number.

    Parameters
    ----------
    x : array-like of float
        Below -708 the result is 0, above 709 infinity.
    out : ndarray of float64, default=None
        Contiguous array to write to, which may be `x` itself; None allocates a new one.

    Returns
    -------
    ndarray of float64, or a float where `x` is a number

    Examples
    --------
    >>> exp([0.0, -1000.0]).tolist()
    [1.0, 0.0]
    """
    return _apply("exp", _plain_exp, x, out)


def log(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Natural logarithm of each number.

    Parameters
    ----------
    x : array-like of float
        At 0 the result is minus infinity, below it NaN.
    out : ndarray of float64, default=None
        Contiguous array to write to, which may be `x` itself; None allocates a new one.

    Returns
    -------
    ndarray of float64, or a float where `x` is a number

    Examples
    --------
    >>> log([1.0, 0.0]).tolist()
    [0.0, -inf]
    """
    return _apply("log", _plain_log, x, out)


def log1p(x: Array) -> Array:
    """log(1 + x) for x >= 0, accurate where x is small.

    Parameters
    ----------
    x : ndarray of float64
        Numbers, at least 0.

    Returns
    -------
    ndarray of float64
    """
    total = 1.0 + x
    result: Array = log(total)
    result += (x - (total - 1.0)) / total  # correction of the rounding error of the sum
    return result


def logaddexp(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """log(e^a + e^b) without overflow.

    Parameters
    ----------
    a : array-like of float
        First logarithms.
    b : array-like of float
        Second logarithms, broadcast with the first.

    Returns
    -------
    ndarray of float64
    """
    high, low = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(invalid="ignore"):  # minus infinity twice
        gap = low - high
    gap = np.where(np.isnan(gap), 0.0, gap)
    return high + log1p(exp(gap))


def softplus(x: Array) -> Array:
    """log(1 + e^x) without overflow, which is -log sigmoid(-x).

    Parameters
    ----------
    x : ndarray of float64
        Numbers.

    Returns
    -------
    ndarray of float64
    """
    tail: Array = exp(-np.abs(x))
    tail = log1p(tail)
    tail += np.maximum(x, 0.0)
    return tail


def tanh_over(x: Array) -> Array:
    """tanh(x) / x for x >= 0; 1 at 0.

    Parameters
    ----------
    x : ndarray of float64
        Numbers, at least 0.

    Returns
    -------
    ndarray of float64
    """
    tail = exp(-2.0 * x)
    square = x * x
    series = 1.0 - square / 3.0 + square * square * (2.0 / 15.0 - square * (17.0 / 315.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x < 0.01, series, (1.0 - tail) / ((1.0 + tail) * x))


def _apply(name: str, plain: Any, x: npt.ArrayLike, out: Array | None) -> Any:
    """Apply a function to all numbers in their order in memory; the result has the same memory layout."""
    values = np.asarray(x, np.float64)
    result = np.empty_like(values) if out is None else out
    flat, to = values.ravel(order="K"), result.ravel(order="K")
    if not np.shares_memory(to, result) and to.size:
        raise ValueError("out must be contiguous")
    if _fused is not None:
        getattr(_fused, name)(flat, to)
    else:
        with np.errstate(all="ignore"):  # as in C
            for first in range(0, len(flat), _CHUNK):
                to[first : first + _CHUNK] = plain(flat[first : first + _CHUNK])
    return result if values.ndim else float(to[0])


def _plain_exp(x: Array) -> Array:
    """The steps of exp_of in _elementary.h."""
    bounded = np.minimum(np.maximum(x, -708.0), 709.0)
    shifted = bounded * 1.4426950408889634074 + _TO_INTEGER
    n = shifted - _TO_INTEGER
    r = (bounded - n * _LN2_HIGH) - n * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    a = (0.5000000000000001 + 0.16666666666666669 * r) + (0.04166666666662413 + 0.008333333333330062 * r) * r2
    b = (0.0013888888917213717 + 0.00019841269863053618 * r) + (
        2.4801521295954376e-05 + 2.7557268459997064e-06 * r
    ) * r2
    c = 2.7620088445409746e-07 + 2.510038549551032e-08 * r
    p = 1.0 + (r + r2 * (a + r4 * (b + r4 * c)))
    result = (p.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64)
    result[x < -708.0] = 0.0
    result[x > 709.0] = np.inf
    result[np.isnan(x)] = np.nan
    return result


def _plain_log(x: Array) -> Array:
    """The steps of log_of in _elementary.h."""
    is_small = x < np.finfo(np.float64).tiny
    bits = np.where(is_small, x * 2.0**54, x).view(np.int64)
    n = (bits >> 52 & 0xFFF).astype(np.float64)
    m = (bits & 0x000FFFFFFFFFFFFF | 0x3FF0000000000000).view(np.float64)
    is_large = m > 1.4142135623730951
    n += np.where(is_large, -1022.0, -1023.0)
    n += np.where(is_small, -54.0, 0.0)
    f = np.where(is_large, 0.5 * m, m) - 1.0
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    half = 0.5 * f * f
    a = (0.666666666666667 + 0.3999999999989945 * z) + (0.28571428626001427 + 0.22222211130560726 * z) * z2
    b = (0.18182889433757515 + 0.15331711346672997 * z) + 0.14616576421644387 * z2
    rest = z * (a + (z2 * z2) * b)
    result = n * _LN2_HIGH - ((half - (s * (half + rest) + n * _LN2_LOW)) - f)
    result = np.where(x > np.finfo(np.float64).max, x, result)
    result = np.where(x == 0.0, -np.inf, result)
    return np.where(x >= 0.0, result, np.nan)
