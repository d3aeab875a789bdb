"""exp, log and log gamma are right to the last digits, and the same to the last bit wherever they are computed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, gammaln, polygamma

from manyhands._core import elementary
from manyhands.em import kernels

EDGES = [0.0, -0.0, 1.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308, math.inf]
NUMBERS = np.concatenate(
    [
        np.random.default_rng(0).uniform(-720, 720, 3000),
        np.random.default_rng(1).normal(size=3000),
        [*EDGES, *(-x for x in EDGES), -708.0, -708.5, 709.0, 709.5, math.nan],
    ]
)


def _ulps(found, expected):
    """The distance in units of the last place of the expected numbers."""
    return np.abs(found - expected) / np.spacing(np.abs(expected))


def test_exp_is_within_two_ulps():
    """Compared with Python's own function, which is within one; 0 and infinity beyond the range."""
    found = elementary.exp(NUMBERS)
    inside = (NUMBERS >= -708) & (NUMBERS <= 709)
    assert _ulps(found[inside], np.array([math.exp(x) for x in NUMBERS[inside]])).max() <= 2
    assert np.all(found[NUMBERS < -708] == 0)
    assert np.all(found[NUMBERS > 709] == np.inf)
    assert np.all(np.isnan(found) == np.isnan(NUMBERS))


def test_log_is_within_two_ulps():
    """From the smallest number to the largest; minus infinity at 0, not a number below."""
    x = np.concatenate([np.abs(NUMBERS), elementary.exp(NUMBERS)])
    x = x[np.isfinite(x) & (x > 0)]
    assert _ulps(elementary.log(x), np.array([math.log(y) for y in x])).max() <= 2
    np.testing.assert_array_equal(elementary.log([0.0, -0.0, 1.0, math.inf]), [-math.inf, -math.inf, 0.0, math.inf])
    assert np.all(np.isnan(elementary.log([-1.0, -math.inf, math.nan])))


def test_log_gamma_and_its_derivatives(either_path):
    """Beside SciPy's, from the smallest parameter of a prior to the largest count; not a number from 0 down."""
    x = np.concatenate([np.logspace(-9, 8, 20001), np.linspace(0.01, 12, 20001)])
    for function, expected, digits in (
        (elementary.gammaln, gammaln(x), 1e-14),
        (elementary.digamma, digamma(x), 1e-14),
        (elementary.trigamma, polygamma(1, x), 1e-9),
    ):
        assert np.max(np.abs(function(x) - expected) / np.maximum(np.abs(expected), 1.0)) < digits
        assert np.all(np.isnan(function(np.array([0.0, -1.5, math.nan]))))


@pytest.mark.skipif(kernels._fused is None, reason="the compiled pass was not built")
@pytest.mark.parametrize("function", ["exp", "log", "gammaln", "digamma", "trigamma"])
def test_all_paths_give_the_same_bits(function, monkeypatch):
    """Every instruction set of the compiled form, and the plain one."""
    before, found = kernels._fused.instruction_set(), []
    try:
        for name in kernels._fused.instruction_sets():
            kernels._fused.use(name)
            found.append(getattr(elementary, function)(NUMBERS))
    finally:
        kernels._fused.use(before)
    monkeypatch.setattr(elementary, "_fused", None)
    found.append(getattr(elementary, function)(NUMBERS))
    bits = [np.where(np.isnan(one), np.nan, one).tobytes() for one in found]
    assert all(one == bits[0] for one in bits)


def test_shape_and_layout_stay(either_path):
    """Transposed, empty and strided arrays, single numbers, and an array that is written to itself."""
    table = np.random.default_rng(0).uniform(0.1, 2, (3, 4, 5)).transpose(0, 2, 1)
    found = elementary.log(table)
    assert found.strides == np.log(table).strides
    np.testing.assert_allclose(found, np.log(table), rtol=1e-15)
    np.testing.assert_allclose(elementary.exp(table[::2, 1:]), np.exp(table[::2, 1:]), rtol=1e-15)
    assert elementary.exp(np.zeros((0, 3))).shape == (0, 3)
    assert elementary.log(1.0) == 0.0 and isinstance(elementary.log(1), float)
    own = np.array([0.0, 1.0])
    assert elementary.exp(own, out=own) is own
    np.testing.assert_allclose(own, [1.0, math.e], rtol=1e-15)
    with pytest.raises(ValueError, match="contiguous"):
        elementary.exp(np.zeros(3), out=np.zeros(6)[::2])


@given(a=st.floats(-800, 800), b=st.floats(-800, 800))
def test_relatives_of_exp_and_log(a, b):
    """log(1 + x), the sum in log space, softplus and tanh(x) / x beside NumPy's or Python's."""
    one, other = np.array([a]), np.array([b])
    assert elementary.logaddexp(one, other)[0] == pytest.approx(np.logaddexp(a, b), rel=1e-14, abs=1e-300)
    assert elementary.softplus(one)[0] == pytest.approx(np.logaddexp(0.0, a), rel=1e-14, abs=1e-300)
    assert elementary.log1p(np.abs(one))[0] == pytest.approx(math.log1p(abs(a)), rel=1e-14)
    small = abs(a) / 400
    expected = math.tanh(small) / small if small else 1.0
    assert elementary.tanh_over(np.array([small]))[0] == pytest.approx(expected, rel=1e-12)


def test_nothing_plus_nothing_is_nothing():
    """Minus infinity twice stays minus infinity."""
    assert elementary.logaddexp([-math.inf, 0.0], [-math.inf, -math.inf]).tolist() == [-math.inf, 0.0]
