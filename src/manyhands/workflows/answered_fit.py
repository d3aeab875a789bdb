"""A fit with an expert's answers: which method is followed, and the block ``trust`` of summary.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.messages import shorten
from manyhands.io.read.answer_files import describe_answers
from manyhands.trust.answers import Answers
from manyhands.trust.selection import Selection, select_by_answers


def fit_with_answers(
    annotations: Annotations, method: str, gold: Mapping[Any, Any], answers: Answers | None, random_state: int
) -> tuple[Aggregator, str, dict[Any, Any], dict[str, Any]]:
    """Fit a method, or the one that the answers select.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    method : str
        Registry name; answers select another one only if this is the default.
    gold : mapping of item to class
        Known classes.
    answers : Answers or None
        Answers of an expert.
    random_state : int
        Seed.

    Returns
    -------
    model : Aggregator
        The fitted method.
    method : str
        Its registry name.
    gold : dict
        Everything that entered the fit as gold.
    trust : dict
        The block ``trust`` of summary.json.

    Raises
    ------
    AnnotationError
        If an answer contradicts the gold.
    """
    if answers is None:
        model: Aggregator = registry.create_seeded(method, random_state)
        model.fit(annotations, gold=dict(gold) or None)
        return model, method, dict(gold), describe_trust(model, None, None)
    _refuse_contradiction(gold, answers)
    known = dict(gold) | dict(answers.values)
    selection: Selection | None = None
    if method == registry.DEFAULT:
        selection = select_by_answers(annotations, answers, random_state=random_state).selection_  # type: ignore[attr-defined]
        method = selection.method
    model = registry.create_seeded(method, random_state)
    model.fit(annotations, gold=known)
    return model, method, known, describe_trust(model, answers, selection)


def describe_trust(model: Aggregator, answers: Answers | None, selection: Selection | None) -> dict[str, Any]:
    """Return the block ``trust`` of summary.json.

    Parameters
    ----------
    model : Aggregator
        The fitted method.
    answers : Answers or None
        Answers of an expert.
    selection : Selection or None
        Which method they selected.

    Returns
    -------
    dict
        ``temper`` (of the method, if it has one), ``n_answers``, ``sampled`` (answers of each kind of sample),
        ``selection`` and ``sentences``, what a reader should know.
    """
    sentences = []
    if answers is not None:
        sentences.append(f"{describe_answers(answers)} of an expert count as gold.")
    if selection is not None:
        sentences.append(str(selection))
    return {
        "temper": getattr(model, "temper", None),
        "n_answers": 0 if answers is None else len(answers),
        "sampled": {} if answers is None else answers.kinds,
        "selection": None if selection is None else selection.as_dict(),
        "sentences": sentences,
    }


def _refuse_contradiction(gold: Mapping[Any, Any], answers: Answers) -> None:
    """Refuse an item whose gold and answer differ."""
    for item, label in answers.values.items():
        if gold.get(item, label) != label:
            raise AnnotationError(
                f"{shorten(str(item))!r} is {shorten(str(gold[item]))!r} in the gold and {shorten(str(label))!r} in "
                f"the answers. Correct one of them."
            )
