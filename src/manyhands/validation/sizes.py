"""Sizes in bytes as people write them: "4GB", "500 MB", "1.5GiB"."""

from __future__ import annotations

import math
import re

from manyhands.exceptions import ParameterError

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}{end}": 1000**n for n, letter in enumerate("KMGT", 1) for end in ("", "B")}
_UNITS |= {f"{letter}I{end}": 1024**n for n, letter in enumerate("KMGT", 1) for end in ("", "B")}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")
_LARGEST = 1 << 62  # bytes


def parse_size(given: str | int, what: str) -> int:
    """Return a size in bytes.

    Parameters
    ----------
    given : str or int
        Bytes as a whole number, or text with a unit: B, KB, MB, GB, TB are powers of 1000, KiB to TiB powers of 1024;
        the final B and upper or lower case do not matter.
    what : str
        Name of the option, for the error message.

    Returns
    -------
    int
        Bytes, at least 1.

    Raises
    ------
    ParameterError
        If it is not a size.

    Examples
    --------
    >>> parse_size("4GB", "--max-memory"), parse_size("1.5 GiB", "--max-memory")
    (4000000000, 1610612736)
    """
    found = _SIZE.fullmatch(str(given)) if isinstance(given, str | int) and not isinstance(given, bool) else None
    unit = None if found is None else _UNITS.get(found[2].upper())
    if found is None or unit is None:
        raise ParameterError(f"{what} is {given!r}; it must be a size such as 4GB, 500MB or 1.5GiB.")
    size = float(found[1]) * unit
    if not math.isfinite(size) or not 1 <= size < _LARGEST:
        raise ParameterError(f"{what} is {given!r}; it must be at least one byte and below {_LARGEST:.0e} bytes.")
    return int(size)


def show_size(n_bytes: float) -> str:
    """Return a size for people, in powers of 1000, so that it can be typed as an option.

    Parameters
    ----------
    n_bytes : float
        Bytes.

    Returns
    -------
    str
        Three digits and a unit.

    Examples
    --------
    >>> show_size(1_234_000_000), show_size(48_500_000), show_size(12)
    ('1.23 GB', '48.5 MB', '12 bytes')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.3g} {unit}" if n_bytes < 999.5 * factor else f"{n_bytes / factor:.0f} {unit}"
    return f"{n_bytes:.0f} bytes"
