"""Questions to an expert as a table that a person can fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from manyhands.trust.sampling import Questions

ANSWER = "answer"
DRAWN = ("sampled", "stratum", "stratum_size", "n_items", "weight", "seed", "export")  # how the items were drawn


def question_frame(questions: Questions, fields: Mapping[str, Mapping[str, Any]] | None = None) -> pl.DataFrame:
    """Return one row per question, with an empty column for the answer.

    Parameters
    ----------
    questions : Questions
        The items, as `manyhands.contested` or `manyhands.random_items` draws them.
    fields : mapping of str to mapping of str to object or None, default=None
        What is known of the items, such as their texts: name of a column -> {item as text: value}.

    Returns
    -------
    polars.DataFrame
        ``item``, the fields, ``votes``, ``answer`` (empty), a column with the label of each method, and how the item
        was drawn: ``sampled``, ``stratum``, ``stratum_size``, ``n_items``, ``weight``, ``seed`` and ``export``, the
        fingerprint of the annotations.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> from manyhands.trust import contested
    >>> table = question_frame(contested(make_crowd(n_items=50, random_state=0).annotations, n=3))
    >>> table.columns[:3]
    ['item', 'votes', 'answer']
    """
    items = list(questions)
    weight = questions.weight
    columns: dict[str, list[str | None]] = {"item": [str(item) for item in items]}
    for name, values in (fields or {}).items():
        columns[_free_name(name, questions)] = [_as_text(values.get(str(item))) for item in items]
    columns["votes"] = ["; ".join(f"{k} {n}" for k, n in questions.votes[item].items()) for item in items]
    columns[ANSWER] = [None] * len(items)
    columns |= {name: [_as_text(said[item]) for item in items] for name, said in questions.labels.items()}
    columns["sampled"] = [questions.sampled] * len(items)
    columns["stratum"] = [questions.stratum[item] for item in items]
    columns["stratum_size"] = [str(questions.sizes[questions.stratum[item]]) for item in items]
    columns["n_items"] = [str(questions.n_items)] * len(items)
    columns["weight"] = [f"{weight[item]:.6g}" for item in items]
    columns["seed"] = [str(questions.random_state)] * len(items)
    columns["export"] = [questions.fingerprint] * len(items)
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _free_name(name: str, questions: Questions) -> str:
    """Return the name of a field's column, which must not be that of a column of our own."""
    taken = {"item", "votes", ANSWER, *DRAWN, *questions.labels}
    return f"item_{name}" if name in taken else name


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)
