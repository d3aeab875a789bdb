"""Values as JSON can hold them."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

_NOT_PLAIN = re.compile(r"[^\n -~]+")


def to_json_value(value: Any) -> Any:
    """NumPy's values as Python's; what is not a number is null, an infinity is a word, anything else its repr."""
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
    """A value as indented JSON, in which whatever a terminal might obey is spelled out.

    A file's name need not be text: half a surrogate pair is spelled out, too.
    """
    text = json.dumps(to_json_value(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _NOT_PLAIN.sub(_escape, text).encode()


def _escape(found: re.Match[str]) -> str:
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in found[0])
