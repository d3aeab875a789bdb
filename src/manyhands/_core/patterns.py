"""Ids that are named, one by one or by a pattern such as ``gpt-*``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.spelling import did_you_mean
from manyhands.exceptions import ParameterError

_WILD = frozenset("*?[")  # letters that make a name a pattern


def places_of(ids: Sequence[Any], names: Any, role: str) -> npt.NDArray[np.bool_]:
    """Return which ids are named: as they are, by text that reads the same, or by a pattern.

    Examples
    --------
    >>> places_of(["gpt-4", "gpt-5", "ann"], ["gpt-*"], "worker").tolist()
    [True, True, False]

    Shapes: ids (n,); returns (n,).
    """
    texts = [str(value) for value in ids]
    place: dict[str, list[int]] = {}
    for at, text in enumerate(texts):
        place.setdefault(text, []).append(at)
    mask = np.zeros(len(texts), bool)
    for name in [names] if isinstance(names, str) or not isinstance(names, Iterable) else names:
        places = place.get(str(name)) or _matching(texts, str(name))
        if not places:
            what = "matches" if _WILD & set(str(name)) else "is called"
            raise ParameterError(f"No {role} {what} {str(name)!r}.{did_you_mean(name, texts)}")
        mask[places] = True
    return mask


def _matching(texts: Sequence[str], pattern: str) -> list[int]:
    """Return the places of the texts that match a pattern; none if it is a plain name."""
    if not _WILD & set(pattern):
        return []
    matches = re.compile(translate(pattern)).match  # one compiled pattern for all texts, upper and lower case apart
    return [at for at, text in enumerate(texts) if matches(text)]
