"""Position bias of judges who compare two answers: how their verdicts depend on the order of presentation.

    first-position share   share of verdicts for one of the two answers that name the one shown first; 0.5 is no bias
    flip rate              share of pairs seen in both orders on which the verdict changes with the order

Both are measured without any truth: whatever the better answer is, it does not change with the order. They say how much
a judge follows the content, not whether they judge it rightly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.encoding import Values, as_column, encode
from manyhands.exceptions import ParameterError
from manyhands.metrics.vote_patterns import wilson
from manyhands.validation import check_same_length


@dataclass(frozen=True)
class PositionBias:
    """How the verdicts of one judge depend on the order of presentation.

    Intervals are 95% intervals by Wilson's formula. That of the first-position share takes verdicts as independent: it
    is wider than necessary for a judge who saw pairs in both orders and answers consistently.

    Attributes
    ----------
    n_verdicts : int, default=0
        Number of verdicts for one of the two answers, whose place is known; ties are left out.
    n_first : int, default=0
        Number of these that name the answer shown first.
    n_pairs : int, default=0
        Number of pairs seen in both orders.
    n_flips : float, default=0.0
        Number of these on which the verdict differs between the orders; a share of a pair with several verdicts.
    """

    n_verdicts: int = 0
    n_first: int = 0
    n_pairs: int = 0
    n_flips: float = 0.0

    @property
    def first_share(self) -> float:
        """Share of verdicts that name the answer shown first; NaN without verdicts."""
        return self.n_first / self.n_verdicts if self.n_verdicts else float("nan")

    @property
    def first_share_interval(self) -> tuple[float, float]:
        """The 95% interval of the first-position share."""
        return _interval(self.n_first, self.n_verdicts)

    @property
    def flip_rate(self) -> float:
        """Share of pairs seen in both orders on which the verdict changes; NaN without such pairs."""
        return self.n_flips / self.n_pairs if self.n_pairs else float("nan")

    @property
    def flip_rate_interval(self) -> tuple[float, float]:
        """The 95% interval of the flip rate."""
        return _interval(self.n_flips, self.n_pairs)


def position_bias(
    items: Values, workers: Values, labels: Values, swapped: Values, *, answers: Sequence[Any] | None = None
) -> dict[Any, PositionBias]:
    """Measure how the verdicts of each judge depend on the order of presentation.

    Parameters
    ----------
    items : sequence of shape (n_verdicts,)
        Pair of answers of each verdict.
    workers : sequence of shape (n_verdicts,)
        Judge of each verdict.
    labels : sequence of shape (n_verdicts,)
        The verdicts. They name answers, whatever their place: "1" is the same answer in both orders. Any others than
        the two answers, such as "tie", are verdicts without a place.
    swapped : sequence of bool of shape (n_verdicts,)
        Whether the second answer was shown first.
    answers : sequence of two labels, default=None
        The answer that is shown first in the original order, and the other one. None recognises 1 and 2, 0 and 1, A and
        B, "first" and "second", "left" and "right", also after a word, such as "model_a" and "model_b". Where nothing
        is recognised, first-position shares are unknown; flip rates are not affected.

    Returns
    -------
    dict of worker to PositionBias
        Counts, shares and intervals of every judge.

    Raises
    ------
    AnnotationError
        If a value is missing.
    AlignmentError
        If the columns differ in length.
    ParameterError
        If `answers` does not hold two labels, or `swapped` holds anything but truth values.

    Examples
    --------
    >>> from manyhands.metrics import position_bias
    >>> found = position_bias([1, 1, 2, 2], ["gpt"] * 4, ["A", "A", "A", "B"], [False, True, False, True])
    >>> found["gpt"].flip_rate, found["gpt"].first_share
    (0.5, 0.75)
    """
    given = {"items": items, "workers": workers, "labels": labels, "swapped": swapped}
    columns = {name: as_column(values, name) for name, values in given.items()}
    check_same_length(columns)
    if not all(isinstance(value, bool | np.bool_) for value in columns["swapped"]):
        raise ParameterError("`swapped` must hold True where the second answer was shown first, and False elsewhere.")
    if answers is not None and (isinstance(answers, str) or len(answers) != 2 or answers[0] == answers[1]):
        raise ParameterError(f"`answers` is {answers!r}; it must name the two answers, the one shown first in order.")
    item, _ = encode(columns["items"], None, "item", by_appearance=True)
    worker, worker_ids = encode(columns["workers"], None, "worker")
    label, classes = encode(columns["labels"], None, "label")
    values = classes.tolist()
    named = recognise_answers(values) if answers is None else {answers[0]: 0, answers[1]: 1}
    turned = np.array(columns["swapped"], bool)
    place = np.full(len(label), NO_PLACE, np.int8)
    for name, at in named.items():
        is_named = label == (values.index(name) if name in values else -1)
        place[is_named] = np.where(turned[is_named], 1 - at, at)
    counts = count_positions(item, worker, label, turned, place, len(worker_ids))
    return dict(zip(worker_ids.tolist(), counts))


NO_PLACE = -1  # of a tie, or where it is unknown which label is which answer


def count_positions(
    item: npt.NDArray[Any],
    worker: npt.NDArray[Any],
    label: npt.NDArray[Any],
    swapped: npt.NDArray[np.bool_],
    place: npt.NDArray[np.int8],
    n_workers: int,
) -> list[PositionBias]:
    """Count the verdicts of each worker by place and by agreement of the orders, from codes.

    `place` is 0 for a verdict that names the answer shown first, 1 for the other one, and -1 for any other. Several
    verdicts on one pair in one order, such as runs, count as one pair, by the share of verdicts that differ.

    Shapes: item, worker, label, swapped, place (n_verdicts,).
    """
    n_verdicts = np.bincount(worker[place != NO_PLACE], minlength=n_workers)
    n_first = np.bincount(worker[place == 0], minlength=n_workers)
    n_pairs, n_flips = _count_flips(item, worker, label, swapped, n_workers)
    columns = n_verdicts.tolist(), n_first.tolist(), n_pairs.tolist(), n_flips.tolist()
    return [PositionBias(*counts) for counts in zip(*columns)]


def _count_flips(
    item: npt.NDArray[Any],
    worker: npt.NDArray[Any],
    label: npt.NDArray[Any],
    swapped: npt.NDArray[np.bool_],
    n_workers: int,
) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the number of pairs that each worker saw in both orders, and of those with different verdicts.

    Shapes: item, worker, label, swapped (n_verdicts,); both (n_workers,).
    """
    codes, of_label = np.unique(item.astype(np.int64) * n_workers + worker, return_inverse=True)  # one per judged pair
    answers, of_answer = np.unique(of_label * (int(label.max(initial=0)) + 1) + label, return_inverse=True)
    in_order = [np.bincount(of_answer[swapped == turned], minlength=len(answers)) for turned in (False, True)]
    total = [np.bincount(of_label[swapped == turned], minlength=len(codes)) for turned in (False, True)]
    judged_pair = answers // (int(label.max(initial=0)) + 1)
    equal = np.bincount(judged_pair, (in_order[0] * in_order[1]).astype(float), len(codes))
    both = total[0] * total[1]
    seen = np.flatnonzero(both)
    of_worker = (codes[seen] % n_workers).astype(np.int64)
    n_flips: Array = np.bincount(of_worker, 1 - equal[seen] / both[seen], n_workers).astype(float)
    return np.bincount(of_worker, minlength=n_workers), n_flips


def _interval(count: float, total: int) -> tuple[float, float]:
    """Return the 95% interval of a share."""
    low, high = wilson(count, total)
    return float(low), float(high)


# ----------------------------------------------------------------------------------------------------
# Which labels name the two answers, and which of them is shown first in the original order.

_PAIRS = (("1", "2"), ("0", "1"), ("a", "b"), ("first", "second"), ("left", "right"))
# A word before the name ends in a separator, so that "club" is not an answer b; digits need none: "answer1".
_NAME = re.compile(r"(?:(.*)[\W_])?(a|b|first|second|left|right)|(.*?)[\W_]*([012])", re.DOTALL)


def recognise_answers(classes: Iterable[Any]) -> dict[Any, int]:
    """Return the labels that name the first answer (0) and the second one (1); none if they are not recognised.

    Labels that differ in case, outer space or brackets name the same answer.

    Examples
    --------
    >>> recognise_answers(["tie", "model_b", "model_a"]), recognise_answers([2, 1]), recognise_answers(["gpt", "llama"])
    ({'model_b': 1, 'model_a': 0}, {2: 1, 1: 0}, {})
    """
    named: dict[tuple[str, str], list[Any]] = {}
    for value in classes:
        match = _NAME.fullmatch(str(value).casefold().strip("[](){}<>\"'. \t"))
        if match is not None:
            named.setdefault((match[1] or match[3] or "", match[2] or match[4]), []).append(value)
    pairs = [
        dict.fromkeys(named[before, other], 1) | dict.fromkeys(named[before, one], 0)
        for before in dict.fromkeys(before for before, _ in named)
        for one, other in _PAIRS
        if (before, one) in named and (before, other) in named
    ]
    return pairs[0] if len(pairs) == 1 else {}


def columns_of(biases: Mapping[Any, PositionBias], workers: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return counts, shares and intervals as columns, for workers in the given order; NaN where there are none."""
    rows = [biases.get(worker, PositionBias()) for worker in workers]
    flips, first = [one.flip_rate_interval for one in rows], [one.first_share_interval for one in rows]
    has_pairs = np.array([one.n_pairs > 0 for one in rows], bool)
    has_verdicts = np.array([one.n_verdicts > 0 for one in rows], bool)
    columns = {
        "flip_rate": ([one.flip_rate for one in rows], has_pairs),
        "flip_rate_low": ([low for low, _ in flips], has_pairs),
        "flip_rate_high": ([high for _, high in flips], has_pairs),
        "first_share": ([one.first_share for one in rows], has_verdicts),
        "first_share_low": ([low for low, _ in first], has_verdicts),
        "first_share_high": ([high for _, high in first], has_verdicts),
    }
    counts: dict[str, npt.NDArray[Any]] = {"n_pairs": np.array([one.n_pairs for one in rows], np.int64)}
    shares = {
        name: np.where(has_value, np.array(values, float), np.nan) for name, (values, has_value) in columns.items()
    }
    return counts | shares
