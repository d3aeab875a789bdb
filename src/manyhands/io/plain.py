"""Values as JSON can hold them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def as_plain(value: Any) -> Any:
    """NumPy's values as Python's; what is not a number is null, an infinity is a word, anything else its repr."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {str(name): as_plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def to_json(value: Any) -> bytes:
    """A value as indented JSON. A file's name need not be text; half a surrogate pair is spelled out."""
    text = json.dumps(as_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode(errors="backslashreplace")
