"""exp, log, log gamma and related functions with the same bits on every machine.

NumPy and the C library have different implementations for each instruction set, which differ in the last bit, and EM
can turn a last bit into another label near a saddle point. These functions use only additions, multiplications,
divisions and integer operations, which IEEE 754 defines to the last bit: in C where it was built, otherwise the same
steps in NumPy.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.exceptions import ParameterError

# ----------------------------------------------------------------------------------------------------
# Loading of the compiled C modules, where they were built and are wanted.


def load(name: str) -> Any:
    """Import a C module of the package.

    Parameters
    ----------
    name : str
        Name of the module, such as "_fused".

    Returns
    -------
    module or None
        None without a compiler at install time, or with the environment variable MANYHANDS_PLAIN set. Where
        MANYHANDS_SIMD names an instruction set, a module that has several uses that one.

    Raises
    ------
    ParameterError
        Where MANYHANDS_SIMD names an instruction set that this CPU or build does not have.
    """
    if os.environ.get("MANYHANDS_PLAIN"):
        return None
    module = None
    with suppress(ImportError):
        module = import_module(f"manyhands.{name}")
    wanted = os.environ.get("MANYHANDS_SIMD", "")
    if module is not None and wanted and hasattr(module, "instruction_sets"):
        _use(module, wanted)
    return module


def _use(module: Any, wanted: str) -> None:
    """Select the instruction set of a module, or raise an error that lists those available."""
    available = module.instruction_sets()
    if wanted not in available:
        raise ParameterError(
            f"MANYHANDS_SIMD is {wanted!r}, but this CPU and build have {', '.join(available)}. "
            f"Set it to one of these, or unset it."
        )
    module.use(wanted)


# ----------------------------------------------------------------------------------------------------
# Elementary functions, compiled or in NumPy.

_fused = load("_fused")
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TO_INTEGER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer
_CHUNK = 1 << 14  # numbers; a chunk and its intermediate results fit in the cache


def exp(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Exponential of each number.

    Examples
    --------
    >>> exp([0.0, -1000.0]).tolist()
    [1.0, 0.0]
    """
    return _apply("exp", _plain_exp, x, out)


def log(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Natural logarithm of each number.

    Examples
    --------
    >>> log([1.0, 0.0]).tolist()
    [0.0, -inf]
    """
    return _apply("log", _plain_log, x, out)


def gammaln(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Logarithm of the gamma function of each positive number.

    Examples
    --------
    >>> gammaln([1.0, 5.0]).round(6).tolist()
    [0.0, 3.178054]
    """
    return _apply("gammaln", _plain_gammaln, x, out)


def digamma(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Derivative of `gammaln` at each positive number.

    Examples
    --------
    >>> digamma([1.0, 5.0]).round(6).tolist()
    [-0.577216, 1.506118]
    """
    return _apply("digamma", _plain_digamma, x, out)


def trigamma(x: npt.ArrayLike, out: Array | None = None) -> Any:
    """Second derivative of `gammaln` at each positive number, to nine digits.

    Examples
    --------
    >>> trigamma([1.0, 5.0]).round(6).tolist()
    [1.644934, 0.221323]
    """
    return _apply("trigamma", _plain_trigamma, x, out)


def log1p(x: Array) -> Array:
    """log(1 + x) for x >= 0, accurate where x is small."""
    total = 1.0 + x
    result: Array = log(total)
    result += (x - (total - 1.0)) / total  # correction of the rounding error of the sum
    return result


def logaddexp(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """log(e^a + e^b) without overflow."""
    high, low = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(invalid="ignore"):  # minus infinity twice
        gap = low - high
    gap = np.where(np.isnan(gap), 0.0, gap)
    return high + log1p(exp(gap))


def softplus(x: Array) -> Array:
    """log(1 + e^x) without overflow, which is -log sigmoid(-x)."""
    tail: Array = exp(-np.abs(x))
    tail = log1p(tail)
    tail += np.maximum(x, 0.0)
    return tail


def tanh_over(x: Array) -> Array:
    """tanh(x) / x for x >= 0; 1 at 0."""
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
    if out is not None and not np.shares_memory(to, result) and to.size:
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


def _plain_gammaln(x: Array) -> Array:
    """The steps of gammaln_of in _elementary.h."""
    is_small = x < 8.0
    b, z = np.where(is_small, x, 1.0), np.where(is_small, x + 8.0, x)
    w = 1.0 / z
    w2 = w * w
    p = ((b * (b + 1.0)) * ((b + 2.0) * (b + 3.0))) * (((b + 4.0) * (b + 5.0)) * ((b + 6.0) * (b + 7.0)))
    tail = 0.0008417508417508417 + w2 * (
        -0.0019175269175269176 + w2 * (0.00641025641025641 + w2 * -0.029550653594771242)
    )
    tail = 0.0007936507936507937 + w2 * (-0.0005952380952380953 + w2 * tail)
    series = w * (0.08333333333333333 + w2 * (-0.002777777777777778 + w2 * tail))
    result = (z - 0.5) * (_plain_log(z) - 1.0) + (0.41893853320467274 + series)
    result -= np.where(is_small, _plain_log(p), 0.0)
    return np.where(x > 0.0, result, np.nan)


def _plain_digamma(x: Array) -> Array:
    """The steps of digamma_of in _elementary.h."""
    is_small = x < 8.0
    b, z = np.where(is_small, x, 1.0), np.where(is_small, x + 8.0, x)
    w = 1.0 / z
    w2 = w * w
    p, q = b, np.ones_like(b)
    for i in range(1, 8):
        factor = b + i
        q = q * factor + p
        p = p * factor
    tail = 0.021092796092796094 - w2 * (0.08333333333333333 - w2 * 0.4432598039215686)
    tail = 0.004166666666666667 - w2 * (0.007575757575757576 - w2 * tail)
    series = w2 * (0.08333333333333333 - w2 * (0.008333333333333333 - w2 * (0.003968253968253968 - w2 * tail)))
    result = _plain_log(z) - (0.5 * w + series)
    result -= np.where(is_small, q / p, 0.0)
    return np.where(x > 0.0, result, np.nan)


def _plain_trigamma(x: Array) -> Array:
    """The steps of trigamma_of in _elementary.h."""
    is_small = x < 8.0
    b, z = np.where(is_small, x, 1.0), np.where(is_small, x + 8.0, x)
    w = 1.0 / z
    w2 = w * w
    p, q, r = b, np.ones_like(b), np.zeros_like(b)
    for i in range(1, 8):
        factor = b + i
        r = r * factor + 2.0 * q
        q = q * factor + p
        p = p * factor
    tail = 0.023809523809523808 - w2 * (0.03333333333333333 - w2 * 0.07575757575757576)
    series = w * w2 * (0.16666666666666666 - w2 * (0.03333333333333333 - w2 * tail))
    result = w + (0.5 * w2 + series)
    result += np.where(is_small, (q / p) * (q / p) - r / p, 0.0)
    return np.where(x > 0.0, result, np.nan)
