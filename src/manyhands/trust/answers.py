"""Answers: known classes of some items, together with how these items were drawn.

Three words are kept apart. *Gold* is the known class of an item and enters a fit. *Answers* are gold together with how
the items were drawn, which decides what may be concluded from them. *Truth* only evaluates.

A random sample of items remains one when labels are added. Items that were not there when it was drawn are a stratum of
their own, about which it says nothing. Samples that were drawn on several days divide the items into strata: those
that belong to the same drawings. Within a stratum, the answers of all drawings together are a random sample.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, ParameterError

CONTESTED, RANDOM, UNKNOWN = "contested", "random", "unknown"
SAMPLED = (CONTESTED, RANDOM, UNKNOWN)
_MAX_SHOWN = 3  # examples in a message
_MAX_NAMED = 10  # names in a message that is about them
NEW = "new"  # stratum of the items that could not be drawn


@dataclass(frozen=True)
class Drawing:
    """The items from which questions were drawn.

    Parameters
    ----------
    items : frozenset of items
        All items that could have been drawn.
    sampled : {"random", "contested"}, default="random"
        How they were drawn.
    classes : tuple or None, default=None
        Classes that could be answered; None is not checked.
    name : str, default="questions"
        What sentences call the drawing, such as the name of its file.

    Examples
    --------
    >>> len(Drawing(frozenset("abc")).items)
    3
    """

    items: frozenset[Any]
    sampled: str = RANDOM
    classes: tuple[Any, ...] | None = None
    name: str = "questions"


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
        Fingerprint of the annotations that the items were drawn from (`fingerprint_of`); None is not checked, nor is
        it if `drawings` say from which items they were drawn.
    random_state : int or None, default=None
        Seed of the draw.
    drawings : tuple of Drawing, default=()
        From which items the answered ones were drawn. Without them, random answers are taken for a sample of all items
        that have labels.

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
    drawings: tuple[Drawing, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise ParameterError(f"Answers are a mapping of item to class, not {type(self.values).__name__}.")
        wrong = [kind for kind in set(self._kind_of_each()) if kind not in SAMPLED]
        if wrong:
            raise ParameterError(f"sampled is {wrong[0]!r}; it may be {', '.join(SAMPLED)}.")
        drawings = [one for one in self.drawings if one.sampled == RANDOM]
        for item, kind in zip(self.values, self._kind_of_each()):
            if drawings and kind == RANDOM and not any(item in one.items for one in drawings):
                raise AnnotationError(
                    f"{str(item)!r} is answered as a random item, but is not among the items from which "
                    f"{_named([one.name for one in drawings])} was drawn. Remove this answer, or say that it was drawn "
                    f"otherwise (sampled='unknown')."
                )

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
        return replace(self, values=chosen, sampled=sampled, stratum=strata)

    def strata_of(self, items: Sequence[Any]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
        """Divide items into strata by the drawings of random answers to which they belong.

        Parameters
        ----------
        items : sequence of items
            Items of the data set.

        Returns
        -------
        names : tuple of str
            Names of the strata: those of their drawings.
        codes : ndarray of shape (n_items,) of int64
            Stratum of each item; -1 for new items, which could not be drawn.

        Examples
        --------
        >>> monday, friday = Drawing(frozenset("ab"), name="monday"), Drawing(frozenset("abc"), name="friday")
        >>> Answers({"a": 1, "c": 2}, "random", drawings=(monday, friday)).strata_of("abcd")
        (('monday + friday', 'friday'), array([ 0,  0,  1, -1]))
        """
        drawings = [one for one in self.drawings if one.sampled == RANDOM]
        if not drawings:
            return ("all items",), np.zeros(len(items), np.int64)
        patterns = [tuple(item in one.items for one in drawings) for item in items]
        patterns_there = sorted({pattern for pattern in patterns if any(pattern)}, reverse=True)
        names = [" + ".join(one.name for one, own in zip(drawings, pattern) if own) for pattern in patterns_there]
        code = {pattern: at for at, pattern in enumerate(patterns_there)}
        return tuple(names), np.array([code.get(pattern, -1) for pattern in patterns], np.int64)

    def weights(self) -> dict[Any, float]:
        """Number of items that each answer stands for, up to a factor.

        Answers that were all drawn alike without strata count equally, as do those of one random drawing. Those of
        several random drawings are weighted by stratum (`strata_of`), contested ones by theirs: size of the stratum
        divided by its number of answers.

        Returns
        -------
        dict of item to float
            Mean 1.
        """
        stratum: Mapping[Any, Any] = self.stratum
        sizes: Mapping[Any, int] = self.sizes
        if set(self._kind_of_each()) <= {RANDOM}:
            populations = {one.items for one in self.drawings if one.sampled == RANDOM}
            if len(populations) < 2:
                return dict.fromkeys(self.values, 1.0)
            every = list({item for one in populations for item in one})
            codes = self.strata_of(every)[1].tolist()
            stratum, sizes = dict(zip(every, codes)), Counter(codes)
        if not all(item in stratum for item in self.values):
            return dict.fromkeys(self.values, 1.0)
        answered = Counter(stratum[item] for item in self.values)
        raw = {item: sizes[stratum[item]] / answered[stratum[item]] for item in self.values}
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
            If classes changed or items vanished since the drawing, if the answers name unknown items or classes, or
            there are none.
        """
        if not self.values:
            raise AnnotationError("There are no answers: fill in the column 'answer' of the questions.")
        for drawing in self.drawings:
            refuse_changed(drawing, annotations)
        if not self.drawings and self.fingerprint not in (None, fingerprint_of(annotations)):
            raise AnnotationError(
                f"The answers belong to another export: the questions were drawn from labels with the fingerprint "
                f"{self.fingerprint}, these have {fingerprint_of(annotations)}, and `drawings` does not say which "
                f"items they were drawn from. Use the export they were drawn from, or use them as gold, which does not "
                f"depend on how the items were drawn."
            )
        items = {item: row for row, item in enumerate(annotations.item_ids.tolist())}
        code_of = {label: code for code, label in enumerate(annotations.classes.tolist())}
        _refuse([item for item in self.values if item not in items], "item", annotations.item_ids.tolist())
        _refuse([v for v in self.values.values() if v not in code_of], "class", annotations.classes.tolist())
        pairs = sorted((items[item], code_of[label]) for item, label in self.values.items())
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


def refuse_changed(drawing: Drawing, annotations: Annotations) -> None:
    """Refuse a drawing whose classes or items are not those of the annotations, by name; new items are no reason."""
    instead = "Or give the answers with `gold=`, which does not depend on how the items were drawn."
    classes = annotations.classes.tolist()
    new = [] if drawing.classes is None else [name for name in classes if name not in drawing.classes]
    gone = [name for name in drawing.classes or () if name not in classes]
    changed = [f"{_named(names)} {_is(names)} {what}" for names, what in ((new, "new"), (gone, "gone")) if names]
    if changed:
        raise AnnotationError(
            f"The classes changed since {drawing.name} was drawn: {' and '.join(changed)}, so that its answers could "
            f"be others today. Use an export with the same classes, or draw new questions. {instead}"
        )
    vanished = sorted(map(str, drawing.items - set(annotations.item_ids.tolist())))
    if vanished:
        raise AnnotationError(
            f"{len(vanished):,} of the {len(drawing.items):,} items from which {drawing.name} was drawn "
            f"{_is(vanished)} not in this export: {_named(vanished)}. Use an export with all items, or draw new "
            f"questions. {instead}"
        )


def _is(names: Sequence[Any]) -> str:
    return "is" if len(names) == 1 else "are"


def _named(names: Sequence[Any]) -> str:
    """Names in quotes; of many, the first and how many more there are."""
    shown = ", ".join(repr(str(name)) for name in names[:_MAX_NAMED])
    return shown if len(names) <= _MAX_NAMED else f"{shown} and {len(names) - _MAX_NAMED:,} more"


def combine_answers(parts: Sequence[Answers]) -> Answers:
    """Return the answers to several drawings as one set of answers.

    Parameters
    ----------
    parts : sequence of Answers
        Answers to questions of the same data set, drawn on the same or on different days.

    Returns
    -------
    Answers
        All of them. Random ones are combined by stratum: the items that belong to the same drawings
        (`Answers.strata_of`). An item with a random and another answer counts as random.

    Raises
    ------
    AnnotationError
        If an item has two answers that differ.

    Examples
    --------
    >>> monday = Answers({"a": 1}, "random", drawings=(Drawing(frozenset("ab"), name="monday"),))
    >>> friday = Answers({"c": 2}, "random", drawings=(Drawing(frozenset("abc"), name="friday"),))
    >>> combine_answers([monday, friday]).weights()
    {'a': 1.3333333333333333, 'c': 0.6666666666666666}
    """
    if not parts:
        raise ParameterError("`parts` is empty: there are no answers to combine.")
    silent = [not any(one.sampled == RANDOM for one in part.drawings) for part in parts if RANDOM in part.kinds]
    if any(silent) and len(silent) > 1:
        raise ParameterError(
            "`parts` has random answers that do not say from which items they were drawn: give them with `drawings`, "
            "which `Questions.answer` fills in."
        )
    several = len({part.fingerprint for part in parts if part.fingerprint is not None}) > 1
    values: dict[Any, Any] = {}
    sampled: dict[Any, str] = {}
    stratum: dict[Any, str] = {}
    sizes: dict[str, int] = {}
    for at, part in enumerate(parts):
        prefix = f"{at + 1}: " if several else ""  # strata of different labels are different, whatever they are called
        for item, kind in zip(part.values, part._kind_of_each()):
            label = part.values[item]
            if values.setdefault(item, label) != label:
                raise AnnotationError(
                    f"{str(item)!r} has two answers, {str(values[item])!r} and {str(label)!r}. Keep one."
                )
            if sampled.get(item) != RANDOM:
                sampled[item] = kind
            if item in part.stratum:
                stratum[item] = prefix + part.stratum[item]
        sizes |= {prefix + name: size for name, size in part.sizes.items()}
    drawn = [part for part in parts if part.fingerprint is not None] or list(parts)
    print_ = None if several else drawn[0].fingerprint
    n_items, seed = (None, None) if several else (drawn[0].n_items, drawn[0].random_state)
    drawings = _renamed([one for part in parts for one in part.drawings])
    return Answers(values, sampled, stratum, sizes, n_items, print_, seed, drawings)


def _renamed(drawings: Sequence[Drawing]) -> tuple[Drawing, ...]:
    """Number the drawings whose names are the same."""
    often = Counter(one.name for one in drawings)
    at: Counter[str] = Counter()
    drawings_renamed = []
    for one in drawings:
        at[one.name] += 1
        drawings_renamed.append(one if often[one.name] == 1 else replace(one, name=f"{one.name} {at[one.name]}"))
    return tuple(drawings_renamed)


def as_answers(answers: Answers | Mapping[Any, Any]) -> Answers:
    """Return answers, of which a plain mapping does not say how its items were drawn.

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
