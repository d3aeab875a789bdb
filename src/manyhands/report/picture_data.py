"""`Picture`: an SVG element that remembers what it was drawn from, so that other libraries can draw the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")


class Picture(str):
    """An SVG element together with its data.

    Parameters
    ----------
    svg : str
        The element.
    kind : str
        Name of the function that drew it, such as "columns".
    data : mapping of str to object
        Arguments of this function by name, defaults included.
    """

    kind: str
    data: Mapping[str, Any]

    def __new__(cls, svg: str, kind: str, data: Mapping[str, Any]) -> Picture:
        """Make a text that carries its kind and its data."""
        made = super().__new__(cls, svg)
        made.kind, made.data = kind, data
        return made


def picture(draw: Callable[P, str]) -> Callable[P, Picture]:
    """Let a function that draws SVG return a `Picture`.

    Parameters
    ----------
    draw : callable
        A function that returns an SVG element.

    Returns
    -------
    callable
        The same function; what it returns has the arguments of the call.
    """
    signature = inspect.signature(draw)

    @wraps(draw)
    def drawn(*given: P.args, **named: P.kwargs) -> Picture:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        return Picture(draw(*given, **named), draw.__name__, dict(bound.arguments))

    return drawn
