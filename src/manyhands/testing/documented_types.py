"""What a documented type and default must contain: the words of a constraint, and the value in the signature."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from manyhands.options import Options
from manyhands.validation import (
    Boolean,
    Constraint,
    Device,
    Folder,
    FractionOrCount,
    LayerSizes,
    NameOr,
    NoneOr,
    Number,
    OneOf,
    Probabilities,
    RandomState,
)


def is_default(text: str, default: Any) -> bool:
    """Compare a documented default with the default in the signature.

    Parameters
    ----------
    text : str
        What is written after ``default=``.
    default : object
        The default in the signature.

    Returns
    -------
    bool
        Whether the text is the repr of the default, a literal equal to it (``1e-3`` for 0.001), the name of a function
        or class, or the constructor of a group of options with all its defaults.

    Examples
    --------
    >>> is_default("1e-3", 0.001), is_default("1", True), is_default('"mlp"', "mlp")
    (True, False, True)
    """
    if text == repr(default) or text == getattr(default, "__name__", None):
        return True
    if text == f"{type(default).__name__}()":
        return True
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    same_kind = isinstance(value, bool) == isinstance(default, bool)
    return bool(same_kind and type(value == default) is bool and value == default)


def missing_from_type(text: str, constraint: Constraint) -> list[str]:
    """List the words that a documented type must contain because of a constraint, and does not.

    Parameters
    ----------
    text : str
        The documented type.
    constraint : Constraint
        The constraint of the parameter.

    Returns
    -------
    list of str
        ``int`` or ``float`` for numbers, ``bool`` for switches, each allowed value of a choice; those that are missing.

    Examples
    --------
    >>> missing_from_type('{"a", "b"}', OneOf(("a", "b", None)))
    ['None']
    """
    return [words[0] for words in _words_of(constraint) if not any(_contains(text, word) for word in words)]


def _words_of(constraint: Constraint) -> Iterator[tuple[str, ...]]:
    """For each word that a type must contain, the ways to write it."""
    if isinstance(constraint, NoneOr):
        yield ("None",)
        yield from _words_of(constraint.other)
    elif isinstance(constraint, Options):
        yield (constraint.group.__name__,)
        yield from [("None",)] if constraint.optional else []
    elif isinstance(constraint, Number):
        yield ("int",) if constraint.whole else ("float",)
    elif isinstance(constraint, FractionOrCount):
        yield from (("int",), ("float",))
    elif isinstance(constraint, Device):
        yield ("str",)
    elif isinstance(constraint, Folder):
        yield ("None",)
    elif isinstance(constraint, Boolean):
        yield ("bool",)
    elif isinstance(constraint, LayerSizes):
        yield ("tuple of int",)
    elif isinstance(constraint, RandomState):
        yield from (("int",), ("Generator",), ("None",))
    elif isinstance(constraint, OneOf):
        yield from (_spellings(value) for value in constraint.values)
    elif isinstance(constraint, Probabilities):
        yield from (_spellings(value) for value in constraint.names)
    elif isinstance(constraint, NameOr):  # the names of all aggregators are too many for a type
        yield from ((*_spellings(value), "str") for value in constraint.names)


def _spellings(value: Any) -> tuple[str, ...]:
    """The ways to write a value in a type; `bool` stands for True and False."""
    if isinstance(value, str):
        return f'"{value}"', f"'{value}'"
    return (repr(value), "bool") if isinstance(value, bool) else (repr(value),)


def _contains(text: str, word: str) -> bool:
    """Whether the text contains the word, and not only as a part of a longer one; it may follow a dotted module."""
    before = r"(?<!\w)" if word[0].isalpha() else r"(?<![\w.])"
    return re.search(rf"{before}{re.escape(word)}(?!\w)", text) is not None
