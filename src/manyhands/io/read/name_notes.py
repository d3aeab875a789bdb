"""Notes on items that look alike, numbers in two notations, and classes that may mean a missing label.

Spellings of classes and workers are compared in `cleaning`.
"""

from __future__ import annotations

import re
import shlex
from decimal import Decimal, InvalidOperation
from typing import Any

from manyhands.annotations import Annotations
from manyhands.io.messages import find_look_alikes, listed, look_alike_note

_MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "nil", "-", "?")  # texts that often mean a missing label
_SHEET_ERRORS = ("#n/a", "#ref!", "#value!", "#name?", "#div/0!", "#num!", "#null!")  # errors of a spreadsheet
_MONTH = "jan|feb|m[aä]r|mrz|apr|may|mai|jun|jul|aug|sep|o[ck]t|nov|de[cz]"
_DATE = re.compile(rf"\d{{1,2}}[.\- ]+({_MONTH})\.?|({_MONTH})[.\- ]+\d{{1,2}}", re.IGNORECASE)
_FORMULA = re.compile(r"=\s*[A-Za-z$+(-].*[()$0-9]")


def notes_on_names(annotations: Annotations) -> dict[str, str]:
    """Return notes on items that look alike, numbers in two notations, and classes that may mean a missing label.

    Parameters
    ----------
    annotations : Annotations
        The labels that were read.

    Returns
    -------
    dict of str to str
        ``look_alike_ids``, ``look_alike_numbers``, ``class_like_formula``, ``class_like_date`` and
        ``class_like_missing``, each if there are such names.
    """
    notes = {}
    items, classes = _texts(annotations.item_ids.tolist()), _texts(annotations.classes.tolist())
    pairs = [] if "".join(items).isascii() else find_look_alikes(items)
    if pairs:
        notes["look_alike_ids"] = look_alike_note(pairs)
    folded: dict[Decimal, list[str]] = {}
    for name in classes:
        number = _as_number(name)
        if number is not None:
            folded.setdefault(number, []).append(name)
    alike = [" and ".join(map(repr, names)) for names in folded.values() if len(names) > 1]
    if alike:
        notes["look_alike_numbers"] = (
            f"Some classes are the same number in another notation, and were kept apart: {listed(alike)}. "
            f"--map FILE with columns from,to renames them (in Python: label_map)."
        )
    formulas = [name for name in classes if _FORMULA.fullmatch(name.strip())]
    if formulas:
        notes["class_like_formula"] = (
            f"{_kept_as_classes(formulas[:3])}: formulas of a spreadsheet instead of their results. "
            f"Save the table with values."
        )
    dates = [name for name in classes if _DATE.fullmatch(name.strip())]
    if dates:
        notes["class_like_date"] = (
            f"{_kept_as_classes(dates[:3])}. A spreadsheet turns labels such as 1-2 into dates; if it did so here, "
            f"--map FILE with columns from,to renames them."
        )
    missing_words = [name for name in classes if may_mean_missing(name)]
    if missing_words:
        remedy = "add " + " ".join(f"--missing {shlex.quote(name.strip())}" for name in missing_words)
        notes["class_like_missing"] = (
            f"{_kept_as_classes(missing_words)}. If that means that there is no label, {remedy}."
        )
    return notes


def may_mean_missing(name: str) -> bool:
    """Whether a class may mean that there is no label.

    Parameters
    ----------
    name : str
        The class.

    Returns
    -------
    bool

    Examples
    --------
    >>> may_mean_missing("N/A"), may_mean_missing("no")
    (True, False)
    """
    return name.strip().casefold() in _MISSING_WORDS + _SHEET_ERRORS


def _as_number(name: str) -> Decimal | None:
    """Return the number that a class is, in whatever notation, also with a decimal comma; None if it is none."""
    try:
        number = Decimal(name.strip().replace(",", ".", 1))  # a float would be the same for different long numbers
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _texts(values: list[Any]) -> list[str]:
    """Return the values that are text: all of them, unless another type was asked for."""
    return values if set(map(type, values)) <= {str} else [value for value in values if isinstance(value, str)]


def _kept_as_classes(names: list[str]) -> str:
    """Return the sentence about classes that may mean a missing label."""
    names_text = " and ".join(map(repr, names))
    return f"{names_text} was kept as a class" if len(names) == 1 else f"{names_text} were kept as classes"
