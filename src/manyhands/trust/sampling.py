"""Questions: items to ask an expert about, drawn for one of two purposes.

    contested       items on which the methods disagree: their answers decide which method to follow
    random_items    items drawn at random: their answers decide what the confidence is worth

The data set is divided into three strata, by what the candidates say without any answer:

    overruled    the default's label has fewer votes than another class
    disputed     it has the most votes, and another method differs
    agreed       all methods agree, those aside that differ from default and vote on more than a third of the items

Rows come in random order, so that whoever answers only the first ones has answered a random part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyhands._core.arrays import Codes
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust.answers import CONTESTED, RANDOM, Answers, Drawing, fingerprint_of
from manyhands.trust.selection import STRATA, fit_candidates, rows_by_name, strata_of, vote_counts
from manyhands.validation import Constraint, Number, RandomState, check_annotations, check_parameters

_MIN_OF_STRATUM = 2  # items of a contested stratum that has them, however small its share
_CONSTRAINTS: dict[str, Constraint] = {"n": Number(whole=True, least=1), "random_state": RandomState()}


@dataclass(frozen=True, eq=False)
class Questions:
    """Items to ask an expert about, with the votes on each and what every method says.

    Attributes
    ----------
    items : tuple
        The items, each once, in random order.
    sampled : {"contested", "random"}
        How they were drawn.
    stratum : dict of item to str
        "overruled", "disputed" or "agreed".
    sizes : dict of str to int
        Number of items of the data set in each stratum.
    votes : dict of item to dict of class to int
        Votes on each item, the most frequent class first.
    labels : dict of str to dict of item to class
        What each method says without any answer.
    classes : tuple
        The classes that may be answered.
    fingerprint : str
        Fingerprint of the annotations.
    random_state : int
        Seed of the draw.
    population : frozenset of items
        All items that could have been drawn, contested or not: those with labels.
    """

    items: tuple[Any, ...]
    sampled: str
    stratum: dict[Any, str]
    sizes: dict[str, int]
    votes: dict[Any, dict[Any, int]]
    labels: dict[str, dict[Any, Any]]
    classes: tuple[Any, ...]
    fingerprint: str
    random_state: int
    population: frozenset[Any]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    @property
    def n_items(self) -> int:
        """Number of items that could have been drawn, contested or not."""
        return sum(self.sizes.values())

    @property
    def weight(self) -> dict[Any, float]:
        """Number of items of its stratum that each question stands for; of all items if drawn at random."""
        if self.sampled == RANDOM:
            return dict.fromkeys(self.items, self.n_items / max(len(self.items), 1))
        drawn = {name: sum(self.stratum[item] == name for item in self.items) for name in self.sizes}
        return {item: self.sizes[self.stratum[item]] / drawn[self.stratum[item]] for item in self.items}

    def answer(self, values: Mapping[Any, Any]) -> Answers:
        """Return answers to some or all of the questions.

        Parameters
        ----------
        values : mapping of item to class
            The answers; questions that are not in it stay open.

        Returns
        -------
        Answers
            The answers, with how the items were drawn.

        Raises
        ------
        AnnotationError
            If an item was not asked about, or a class is unknown.
        """
        strangers = [item for item in values if item not in self.stratum]
        if strangers:
            raise AnnotationError(f"{strangers[0]!r} is not among the questions: how it was drawn is not known.")
        wrong = [label for label in values.values() if label not in self.classes]
        if wrong:
            raise AnnotationError(f"{wrong[0]!r} is no class. There are: {', '.join(map(repr, self.classes))}.")
        return Answers(
            values=dict(values),
            sampled=self.sampled,
            stratum={item: self.stratum[item] for item in values},
            sizes=dict(self.sizes),
            n_items=self.n_items,
            fingerprint=self.fingerprint,
            random_state=self.random_state,
            drawings=(Drawing(self.population, self.sampled, self.classes),),
        )


def contested(
    annotations: Annotations | Any, n: int = 20, random_state: int = 0, *, methods: Sequence[str] | None = None
) -> Questions:
    """Draw items on which the methods disagree; an expert's answers decide which method to follow.

    The strata "overruled" and "disputed" are drawn from in proportion to their sizes, with at least two items of each
    where it has them; within a stratum every item has the same probability.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    n : int, default=20
        Number of items; fewer if fewer are contested.
    random_state : int, default=0
        Seed of the draw.
    methods : sequence of str or None, default=None
        Registry names of the methods to compare with the default; None takes ten (`manyhands.trust.CANDIDATES`).

    Returns
    -------
    Questions
        The items, in random order. `Questions.answer` makes `Answers` of what an expert says.

    Raises
    ------
    AnnotationError
        If there are no labels.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(n_items=100, n_workers=10, random_state=0)
    >>> questions = contested(crowd.annotations, n=5)
    >>> len(questions) == len(set(questions)) <= 5
    True
    """
    check_parameters("contested", {"n": n, "random_state": random_state}, _CONSTRAINTS)
    annotations = check_annotations(annotations)
    fitted = fit_candidates(annotations, methods)
    stratum = strata_of(annotations, fitted)
    rng = _generator(annotations, random_state)
    rows = rows_by_name(annotations.item_ids.tolist())
    pools = [rows[stratum[rows] == code] for code in (0, 1)]
    sizes = _allocate([len(pool) for pool in pools], n)
    drawn = np.concatenate([rng.choice(pool, size, replace=False) for pool, size in zip(pools, sizes)])
    return _questions(annotations, fitted, stratum, rng.permutation(drawn), CONTESTED, random_state)


def random_items(
    annotations: Annotations | Any, n: int = 50, random_state: int = 0, *, methods: Sequence[str] | None = None
) -> Questions:
    """Draw labelled items at random, each with the same probability; an expert's answers decide the confidence.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    n : int, default=50
        Number of items; fewer if the data set has fewer.
    random_state : int, default=0
        Seed of the draw.
    methods : sequence of str or None, default=None
        Registry names of the methods whose labels are shown; None takes ten (`manyhands.trust.CANDIDATES`).

    Returns
    -------
    Questions
        The items, in random order. The first questions of a longer draw with the same seed are these.

    Raises
    ------
    AnnotationError
        If there are no labels.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(n_items=100, n_workers=10, random_state=0)
    >>> len(random_items(crowd.annotations, n=30))
    30
    """
    check_parameters("random_items", {"n": n, "random_state": random_state}, _CONSTRAINTS)
    annotations = check_annotations(annotations)
    fitted = fit_candidates(annotations, methods)
    stratum = strata_of(annotations, fitted)
    rows = rows_by_name(annotations.item_ids.tolist())
    drawn = _generator(annotations, random_state).permutation(rows[stratum[rows] >= 0])[:n]
    return _questions(annotations, fitted, stratum, drawn, RANDOM, random_state)


def _generator(annotations: Annotations, random_state: int) -> np.random.Generator:
    """Random numbers of a draw.

    They differ from export to export, so that draws of the same seed on several days are independent of each other:
    only then are their answers together a random sample, and few items are asked about twice.
    """
    return np.random.default_rng([random_state, int(fingerprint_of(annotations), 16)])


def _allocate(sizes: Sequence[int], n: int) -> list[int]:
    """Share n draws between two strata in proportion to their sizes, at least two each where they have them."""
    if not sum(sizes):
        raise AnnotationError("All methods agree on every item, so no answer can decide between them.")
    n = min(n, sum(sizes))
    least = min(_MIN_OF_STRATUM, n // 2)
    first = round(n * sizes[0] / sum(sizes))
    first = max(min(least, sizes[0]), min(first, n - min(least, sizes[1])))
    first = min(max(first, n - sizes[1]), sizes[0])
    return [first, n - first]


def _questions(
    annotations: Annotations, fitted: Mapping[str, Aggregator], stratum: Codes, rows: Codes, kind: str, seed: int
) -> Questions:
    """Collect what a question shows."""
    items = annotations.item_ids[rows].tolist()
    if len(set(items)) < len(items):
        raise ParameterError("The annotations have an item twice; questions need each item once.")
    counts = vote_counts(annotations)
    votes = {item: _votes(counts[row], annotations.classes.tolist()) for item, row in zip(items, rows)}
    return Questions(
        items=tuple(items),
        sampled=kind,
        stratum={item: STRATA[stratum[row]] for item, row in zip(items, rows)},
        sizes={name: int((stratum == code).sum()) for code, name in enumerate(STRATA)},
        votes=votes,
        labels={name: dict(zip(items, model.labels_[rows].tolist())) for name, model in fitted.items()},
        classes=tuple(annotations.classes.tolist()),
        fingerprint=fingerprint_of(annotations),
        random_state=int(seed),
        population=frozenset(annotations.item_ids[stratum >= 0].tolist()),
    )


def _votes(counts: Codes, classes: list[Any]) -> dict[Any, int]:
    """Votes of one item, the most frequent class first."""
    order = np.lexsort((np.arange(len(counts)), -counts))
    return {classes[k]: int(counts[k]) for k in order if counts[k]}
