"""Python and NumPy values as JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

_NOT_PLAIN = re.compile(r"[^\n -~]+")


def to_json_value(value: Any) -> Any:
    """Return a value that JSON can represent.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    object
        NumPy values as Python values, NaN as None, an infinity as text, any other object as its repr.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {str(name): to_json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def to_json(value: Any) -> bytes:
    """Return a value as indented JSON, with control characters escaped.

    Parameters
    ----------
    value : object
        Any value; file names may contain an unpaired surrogate, which is escaped too.

    Returns
    -------
    bytes
        JSON in UTF-8.
    """
    text = json.dumps(to_json_value(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _NOT_PLAIN.sub(_escape, text).encode()


def _escape(found: re.Match[str]) -> str:
    """Escape the characters that are not printable."""
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in found[0])
