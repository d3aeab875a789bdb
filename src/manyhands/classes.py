"""Classes: how often each occurs (balance), and the order of grades from low to high.

The order of grades is given, or it follows from the classes themselves:

    numbers, as numbers or text      "2" precedes "10"
    text with a number in one place  "grade 2" precedes "grade 10", "1 - bad" precedes "2 - fair"
    words of a known scale           "strongly disagree" precedes "disagree"

Alphabetical order is never used.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Codes
from manyhands._core.neighbours import Counts
from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError, UnorderedClassesError

# ----------------------------------------------------------------------------------------------------
# Class balance: the imbalance ratio, counts in proportion to class shares, and probabilities under another class prior.

Shares = npt.NDArray[np.float64]
_LEAST_SHARE = 1e-12  # of a class that no training item has; any value that avoids a division by 0


def imbalance(counts: npt.ArrayLike) -> float:
    """Imbalance ratio R = (largest - smallest) / total of class counts.

    Examples
    --------
    >>> imbalance([3, 1, 0])
    0.75

    Shapes: counts (n_classes,).
    """
    n_of_class = np.asarray(counts, np.float64)
    total = n_of_class.sum()
    return float((n_of_class.max() - n_of_class.min()) / total) if total > 0 else float("nan")


def shift_prior(proba: npt.ArrayLike, shares: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> Shares:
    """Class probabilities for data whose class frequencies differ from those of the training data.

        p'(k | x) = p(k | x) prior_k / shares_k / sum_c p(c | x) prior_c / shares_c

    This is Bayes' rule with another prior, if p(x | k) is the same in both data sets.

    Examples
    --------
    >>> shift_prior([[0.75, 0.25]], shares=[0.75, 0.25]).tolist()
    [[0.5, 0.5]]
    >>> shift_prior([[0.5, 0.5]], shares=[0.5, 0.5], prior=[3, 1]).tolist()
    [[0.75, 0.25]]

    Shapes: proba (n_items, n_classes); shares (n_classes,); prior (n_classes,); returns (n_items, n_classes).
    """
    p, before = np.asarray(proba, np.float64), np.asarray(shares, np.float64)
    wanted = np.ones(p.shape[1]) if prior is None else np.asarray(prior, np.float64)
    wanted = wanted / wanted.sum()
    ratio = wanted / np.maximum(before / before.sum(), _LEAST_SHARE)
    shifted = p * (ratio / ratio.max())  # the largest ratio is 1, so that no product overflows
    total = shifted.sum(axis=1, keepdims=True)
    return np.where(total > 0, shifted / np.where(total > 0, total, 1.0), wanted)


def estimated_shares(posterior: Shares) -> Shares:
    """Class frequencies of training items by the posterior of a method, at least half an item of each class (Jeffreys).

    Shapes: posterior (n_items, n_classes); returns (n_classes,).
    """
    return np.maximum(posterior.mean(axis=0), 0.5 / len(posterior))


def up_to_largest(counts: npt.ArrayLike) -> Counts:
    """How many items each class lacks to be as frequent as the most frequent one.

    Examples
    --------
    >>> up_to_largest([5, 2, 0]).tolist()
    [0, 3, 5]

    Shapes: counts (n_classes,); returns (n_classes,).
    """
    n_of_class = np.asarray(counts, np.int64)
    return n_of_class.max(initial=0) - n_of_class


def share_out(total: int, weight: npt.ArrayLike, available: npt.ArrayLike | None = None) -> Counts:
    """Integers in proportion to weights, by the largest remainder method.

    Every positive weight gets at least one, if `total` allows; a weight of 0 gets nothing, whatever is available.

    Examples
    --------
    >>> share_out(110, [10, 1]).tolist(), share_out(5, [1000, 1, 1]).tolist()
    ([100, 10], [3, 1, 1])

    Shapes: weight (n,); available (n,); returns (n,).
    """
    weight = np.asarray(weight, np.float64)
    stock = np.where(weight > 0, total if available is None else np.asarray(available, np.int64), 0)
    total = int(min(total, stock.sum()))
    share = np.zeros(len(weight))
    is_open = stock > 0
    while is_open.any():
        left = total - share[~is_open].sum()
        share[is_open] = left * weight[is_open] / weight[is_open].sum()
        full = is_open & (share > stock)
        if not full.any():
            break
        share[full] = stock[full]
        is_open &= ~full
    quotas = np.floor(share + 1e-9).astype(np.int64)  # 1e-9: a whole share may be computed as a little less
    by_fraction = np.argsort(quotas - share, kind="stable")  # largest fractions first; whole shares are not rounded up
    room = by_fraction[(quotas < stock)[by_fraction]]
    quotas[room[: total - int(quotas.sum())]] += 1
    for starved in np.flatnonzero((quotas == 0) & (stock > 0)):
        if quotas.max() > 1:
            quotas[quotas.argmax()] -= 1
            quotas[starved] = 1
    return quotas


# ----------------------------------------------------------------------------------------------------
# The order of classes: given, by numbers, or by the words of a known scale; the numbers that grades stand for.


# Words of usual rating scales, from low to high; words of one entry mean the same.
KNOWN_SCALES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (
        ("strongly disagree",),
        ("disagree",),
        ("somewhat disagree", "slightly disagree"),
        ("neutral", "neither agree nor disagree", "undecided", "neither"),
        ("somewhat agree", "slightly agree"),
        ("agree",),
        ("strongly agree",),
    ),
    (
        ("very negative", "strongly negative"),
        ("negative",),
        ("slightly negative", "somewhat negative"),
        ("neutral",),
        ("slightly positive", "somewhat positive"),
        ("positive",),
        ("very positive", "strongly positive"),
    ),
    (
        ("very dissatisfied",),
        ("dissatisfied",),
        ("neutral", "neither satisfied nor dissatisfied"),
        ("satisfied",),
        ("very satisfied",),
    ),
    (("very poor",), ("poor",), ("fair",), ("good",), ("very good",), ("excellent",), ("perfect",)),
    (("very bad",), ("bad",), ("fair", "ok", "okay", "average"), ("good",), ("very good",), ("excellent",)),
    (("never",), ("rarely", "seldom"), ("sometimes", "occasionally"), ("often",), ("very often",), ("always",)),
    (("none",), ("very low",), ("low",), ("medium", "moderate"), ("high",), ("very high",)),
    (("none", "not at all"), ("mild", "slightly"), ("moderate", "moderately"), ("severe", "very"), ("extremely",)),
    (
        ("not relevant", "irrelevant", "non-relevant", "nonrelevant"),
        ("marginally relevant", "partially relevant", "somewhat relevant"),
        ("relevant",),
        ("highly relevant", "very relevant"),
        ("perfectly relevant",),
    ),
    (("very unlikely",), ("unlikely",), ("neutral", "possible"), ("likely",), ("very likely",)),
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_FEWEST, _MOST = 3, 11  # grades of a scale that is recognised: two classes need no order, 0 to 10 has eleven
_MOST_FROM_ZERO = 5  # grades of a scale that begins with 0; with more, numbers are often codes of classes


def order_codes(classes: Sequence[Any], order: Sequence[Any] | None = None) -> Codes:
    """Codes of the classes from the lowest grade to the highest.

    Examples
    --------
    >>> order_codes(["10", "2", "1"]).tolist()
    [2, 1, 0]
    >>> order_codes(["bad", "good", "ok"], order=["bad", "ok", "good"]).tolist()
    [0, 2, 1]

    Shapes: classes (n_classes,); returns (n_classes,).
    """
    names = list(classes)
    if order is None:
        keys = natural_keys(names)
        if keys is None:
            raise UnorderedClassesError(
                f"The classes {_listed(names)} have no known order; name them from low to high: `order=`."
            )
        return np.argsort(keys, kind="stable")
    grades = _as_grades(names, order)
    twice = [grade for at, grade in enumerate(grades) if grade in grades[:at]]
    if twice:
        raise ParameterError(f"The order of the classes names {_listed(twice[:1])} twice; name each class once.")
    lacking = [name for name in names if name not in grades]
    if lacking:
        raise ParameterError(
            f"The order of the classes lacks {_listed(lacking)}; name all {len(names)} classes, from low to high."
        )
    code_of = {name: code for code, name in enumerate(names)}
    return np.array([code_of[grade] for grade in grades if grade in code_of], np.int64)


def order_annotations(annotations: Annotations, order: Sequence[Any] | None = None) -> Annotations:
    """The same labels with the classes in the order of their grades, and a note that they are ordered.

    Every method then gives the median and the expected value too, and `OrdinalDawidSkene` needs no `order`.

    Examples
    --------
    >>> votes = Annotations.from_matrix([["ok", "bad"], ["good", "ok"]])
    >>> order_annotations(votes, ["bad", "ok", "good"]).classes.tolist()
    ['bad', 'ok', 'good']
    """
    names = annotations.classes.tolist()
    codes = order_codes(names, order)
    grades = [names[code] for code in codes] if order is None else _as_grades(names, order)
    place = {grade: code for code, grade in enumerate(grades)}
    new_code = np.array([place[name] for name in names], np.int64)
    recoded = Annotations(
        annotations.item,
        annotations.worker,
        new_code[annotations.label] if len(names) else annotations.label,
        item_ids=annotations.item_ids,
        worker_ids=annotations.worker_ids,
        classes=grades,
        weight=annotations.weight,
    )
    return recoded.marked_like(annotations).with_ordered_classes()


def grade_values(ordered: Sequence[Any]) -> Array:
    """The numbers that grades stand for: their own if all are different numbers, otherwise their ranks from 1.

    Examples
    --------
    >>> grade_values(["0", "1", "10"]).tolist(), grade_values(["bad", "ok", "good"]).tolist()
    ([0.0, 1.0, 10.0], [1.0, 2.0, 3.0])

    Shapes: ordered (n_classes,); returns (n_classes,).
    """
    keys = _numbers(list(ordered)) or _embedded_numbers(list(ordered))
    if keys is not None and all(low < high for low, high in pairwise(keys)):
        return np.array(keys, float)
    return np.arange(1.0, len(ordered) + 1.0)


def natural_keys(classes: Sequence[Any]) -> list[float] | None:
    """Numbers by which the classes can be sorted, or None where they have no order of their own.

    Shapes: classes (n_classes,).
    """
    names = list(classes)
    return _numbers(names) or _embedded_numbers(names) or _scale_places(names)


def looks_ordered(classes: Sequence[Any]) -> bool:
    """Whether the classes look like the grades of a rating scale.

    Examples
    --------
    >>> looks_ordered(["1", "2", "3", "4", "5"]), looks_ordered(["cat", "dog", "owl"]), looks_ordered(range(10))
    (True, False, False)

    Shapes: classes (n_classes,).
    """
    names = list(classes)
    if not _FEWEST <= len(names) <= _MOST:
        return False
    keys = _numbers(names) or _embedded_numbers(names)
    if keys is None:
        return _scale_places(names) is not None
    low, high = min(keys), max(keys)
    if sorted(keys) != [low + step for step in range(len(keys))]:  # a grade of a rating may have no label
        return set(keys) <= set(range(1, 6)) or (len(keys) > _FEWEST and set(keys) <= set(range(1, 11)))
    return low == 1 or low == -high or (low == 0 and (len(keys) <= _MOST_FROM_ZERO or high == 10))


def _numbers(names: list[Any]) -> list[float] | None:
    """Every class as a number; None where one is none, or where two are the same number."""
    return _distinct([_as_number(name) for name in names])


def _embedded_numbers(names: list[Any]) -> list[float] | None:
    """The number in the text of each class: at its beginning, or elsewhere with the same text around it."""
    if not all(isinstance(name, str) for name in names):
        return None
    matches = [_NUMBER.match(name.strip()) for name in names]
    if all(matches):
        return _distinct([float(match.group()) for match in matches if match])
    parts = [re.split(r"(\d+)", name) for name in names]  # before, number, after
    if any(len(part) != 3 for part in parts) or len({(part[0], part[2]) for part in parts}) > 1:
        return None
    return _distinct([float(part[1]) for part in parts])


def _scale_places(names: list[Any]) -> list[float] | None:
    """The place of each class on a known scale; None if no scale has all of them."""
    if not all(isinstance(name, str) for name in names):
        return None
    folded = [" ".join(normalize("NFKC", name).casefold().replace("_", " ").split()) for name in names]
    for scale in KNOWN_SCALES:
        place_of = {word: float(place) for place, words in enumerate(scale) for word in words}
        places = _distinct([place_of.get(name) for name in folded])
        if places is not None:
            return places
    return None


def _as_grades(names: list[Any], order: Sequence[Any]) -> list[Any]:
    """The given order with text replaced by the class of that text: 1,2,3 also names the integers 1, 2, 3."""
    by_text: dict[str, Any] = {str(name): name for name in names}
    return [
        by_text.get(grade, grade) if isinstance(grade, str) and grade not in names else grade for grade in list(order)
    ]


def _as_number(value: Any) -> float | None:
    """A finite number, or text that can be read as one; "1_0" is none, although Python reads it as ten."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | str):
        return None
    if isinstance(value, str) and "_" in value:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _distinct(keys: Sequence[float | None]) -> list[float] | None:
    values = [key for key in keys if key is not None]
    return values if values and len(values) == len(keys) == len(set(values)) else None


def _listed(names: list[Any]) -> str:
    """A few names for a message."""
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
