"""Sizes as people write them."""

import pytest

from manyhands.exceptions import ParameterError
from manyhands.validation import parse_size, show_size

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("given", "n_bytes"),
    [
        ("4GB", 4 * 10**9),
        ("500 MB", 500 * 10**6),
        ("1.5GiB", 3 << 29),
        ("1.5 gib", 3 << 29),
        ("2g", 2 * 10**9),
        ("2Gi", 2 << 30),
        ("64k", 64_000),
        (" 7 ", 7),
        ("7B", 7),
        (123456, 123456),
        (".5TB", 5 * 10**11),
        ("1.TB", 10**12),
    ],
)
def test_a_size_is_a_number_with_a_unit(given, n_bytes):
    """Powers of 1000, and of 1024 with an i; case and the final B do not matter."""
    assert parse_size(given, "--max-memory") == n_bytes


@pytest.mark.parametrize(
    "given", ["", "GB", "4 XB", "-1GB", "1e3", "4GBs", "4,5GB", "0", "0.1B", True, None, 1.5, "9" * 400]
)
def test_what_is_not_a_size_is_named(given):
    """With the option and an example."""
    with pytest.raises(ParameterError, match=r"--max-memory is .*; it must be "):
        parse_size(given, "--max-memory")


def test_a_shown_size_can_be_typed():
    """It is read back within its three digits."""
    for n_bytes in (1, 999, 1234, 48_500_000, 999_600_000, 4_000_000_000, 123_456_789_012, 10**15):
        shown = show_size(n_bytes).replace(" bytes", "")
        assert parse_size(shown, "x") == pytest.approx(n_bytes, rel=5e-3)
