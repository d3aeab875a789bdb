"""Answers: known classes of some items, together with how these items were drawn.

Three words are kept apart. *Gold* is the known class of an item and enters a fit. *Answers* are gold together with how
the items were drawn, which decides what may be concluded from them. *Truth* only evaluates.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, ParameterError

CONTESTED, RANDOM, UNKNOWN = "contested", "random", "unknown"
SAMPLED = (CONTESTED, RANDOM, UNKNOWN)
_MAX_SHOWN = 3  # names in a message


@dataclass(frozen=True)
class Answers:
    """Known classes of some items, with how the items were drawn.

    Parameters
    ----------
    values : mapping of item to class
        The answers.
    sampled : {"random", "contested", "unknown"} or mapping of item to these, default="unknown"
        How an item was drawn: "random" from all labelled items, each with the same probability; "contested" from those
        on which methods disagree. Calibration, estimates of accuracy and guarantees need random answers.
    stratum : mapping of item to str, default={}
        Group of items from which an item was drawn.
    sizes : mapping of str to int, default={}
        Number of items of the data set in each stratum.
    n_items : int or None, default=None
        Number of items from which the sample was drawn, all strata together.
    fingerprint : str or None, default=None
        Fingerprint of the annotations that the items were drawn from (`fingerprint_of`); None is not checked.
    random_state : int or None, default=None
        Seed of the draw.

    Examples
    --------
    >>> answers = Answers({"a": "cat", "b": "dog"}, sampled="random")
    >>> len(answers), answers.kinds
    (2, {'random': 2})
    """

    values: Mapping[Any, Any]
    sampled: str | Mapping[Any, str] = UNKNOWN
    stratum: Mapping[Any, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    n_items: int | None = None
    fingerprint: str | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise ParameterError(f"Answers are a mapping of item to class, not {type(self.values).__name__}.")
        wrong = [kind for kind in set(self._kind_of_each()) if kind not in SAMPLED]
        if wrong:
            raise ParameterError(f"sampled is {wrong[0]!r}; it may be {', '.join(SAMPLED)}.")

    def __len__(self) -> int:
        return len(self.values)

    def _kind_of_each(self) -> list[str]:
        """How each item was drawn, in the order of `values`."""
        if isinstance(self.sampled, str):
            return [self.sampled] * len(self.values)
        return [self.sampled.get(item, UNKNOWN) for item in self.values]

    @property
    def kinds(self) -> dict[str, int]:
        """Number of answers of each kind of sample."""
        return dict(sorted(Counter(self._kind_of_each()).items()))

    def of_kind(self, kind: str) -> Answers:
        """Return the answers that were drawn in one way.

        Parameters
        ----------
        kind : {"random", "contested", "unknown"}
            How they were drawn.

        Returns
        -------
        Answers
            A part of these.
        """
        return self.part(item for item, one in zip(self.values, self._kind_of_each()) if one == kind)

    def part(self, items: Iterable[Any]) -> Answers:
        """Return the answers about some items.

        Parameters
        ----------
        items : iterable of items
            Answered items.

        Returns
        -------
        Answers
            A part of these.
        """
        kinds = dict(zip(self.values, self._kind_of_each()))
        chosen = {item: self.values[item] for item in items}
        strata = {item: self.stratum[item] for item in chosen if item in self.stratum}
        sampled = {item: kinds[item] for item in chosen}
        return Answers(chosen, sampled, strata, self.sizes, self.n_items, self.fingerprint, self.random_state)

    def weights(self) -> dict[Any, float]:
        """Number of items that each answer stands for, up to a factor.

        Answers that were all drawn alike without strata count equally, as do those drawn at random. Contested ones are
        weighted by the size of their stratum divided by its number of answers.

        Returns
        -------
        dict of item to float
            Mean 1.
        """
        kinds = set(self._kind_of_each())
        if kinds <= {RANDOM} or not all(item in self.stratum for item in self.values):
            return dict.fromkeys(self.values, 1.0)
        answered = Counter(self.stratum[item] for item in self.values)
        raw = {item: self.sizes[self.stratum[item]] / answered[self.stratum[item]] for item in self.values}
        mean = sum(raw.values()) / len(raw)
        return {item: weight / mean for item, weight in raw.items()}

    def codes(self, annotations: Annotations) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return positions of the items and codes of their classes, after checks.

        Parameters
        ----------
        annotations : Annotations
            The crowd's labels.

        Returns
        -------
        rows : ndarray of shape (n_answers,) of int64
            Positions of the items, ascending.
        classes : ndarray of shape (n_answers,) of int64
            Their class codes.

        Raises
        ------
        AnnotationError
            If the answers are of other annotations, name unknown items or classes, or there are none.
        """
        if not self.values:
            raise AnnotationError("There are no answers: fill in the column 'answer' of the questions.")
        if self.fingerprint is not None and self.fingerprint != fingerprint_of(annotations):
            raise AnnotationError(
                f"The answers belong to another export: the questions were drawn from labels with the fingerprint "
                f"{self.fingerprint}, these have {fingerprint_of(annotations)}. Use the export they were drawn from, "
                f"or use them as gold, which does not depend on how the items were drawn."
            )
        items = {item: row for row, item in enumerate(annotations.item_ids.tolist())}
        known = {label: code for code, label in enumerate(annotations.classes.tolist())}
        _refuse([item for item in self.values if item not in items], "item", annotations.item_ids.tolist())
        _refuse([v for v in self.values.values() if v not in known], "class", annotations.classes.tolist())
        pairs = sorted((items[item], known[label]) for item, label in self.values.items())
        rows, classes = zip(*pairs)
        return np.array(rows, np.int64), np.array(classes, np.int64)


def _refuse(unknown: list[Any], what: str, there_are: list[Any]) -> None:
    """Refuse answers about items or classes that the annotations do not have."""
    if not unknown:
        return
    shown = ", ".join(repr(value) for value in dict.fromkeys(unknown[:_MAX_SHOWN]))
    plural = {"item": "items", "class": "classes"}[what]
    examples = ", ".join(repr(value) for value in there_are[:_MAX_SHOWN])
    raise AnnotationError(
        f"{len(unknown)} of the answers name {plural} that the annotations do not have, such as {shown}; the "
        f"annotations have {plural} such as {examples}. Correct these answers or leave them empty."
    )


def as_answers(answers: Answers | Mapping[Any, Any]) -> Answers:
    """Return answers, of which a plain mapping does not say how its items were drawn.

    Parameters
    ----------
    answers : Answers or mapping of item to class
        Known classes.

    Returns
    -------
    Answers
        The same answers.

    Examples
    --------
    >>> as_answers({"a": "cat"}).kinds
    {'unknown': 1}
    """
    return answers if isinstance(answers, Answers) else Answers(answers)


def fingerprint_of(annotations: Annotations) -> str:
    """Return a short text that changes with the items, the classes and the labels of each item.

    Workers' names do not enter it, so pseudonyms change nothing; neither does the order of items.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    str
        Sixteen hexadecimal digits.

    Examples
    --------
    >>> votes = Annotations.from_triples(["a", "b"], ["ann", "bob"], ["x", "y"])
    >>> len(fingerprint_of(votes))
    16
    """
    items = [str(value) for value in annotations.item_ids.tolist()]
    classes = [str(value) for value in annotations.classes.tolist()]
    item_order, class_order = _ranks(items), _ranks(classes)
    pair = item_order[annotations.item] * max(len(classes), 1) + class_order[annotations.label]
    digest = hashlib.sha256()
    for part in (sorted(items), sorted(classes)):
        digest.update("\x00".join(part).encode("utf-8", "surrogatepass") + b"\x01")
    digest.update(np.sort(pair).astype("<i8").tobytes())
    return digest.hexdigest()[:16]


def _ranks(names: list[str]) -> npt.NDArray[np.int64]:
    """Position of each name in alphabetical order."""
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
