"""Which question of an export is meant, and what to make of several choices in one answer."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.judgements import Judgements
from manyhands.io.names import listed, shorten

YES, NO = "yes", "no"
_JOINT = " + "  # between the choices of a combination


def choose_question(judgements: Judgements, question: str | None, combinations: bool) -> tuple[str, pl.Series]:
    """The name of the question that is meant, and its answers as text.

    `topic=refund` asks of every answer to `topic` whether `refund` is among its choices. Without a question, the only
    one there is; where there are several, the error lists them.
    """
    name, option = _split(judgements, question)
    answers = judgements.answers[name]
    if option is not None:
        return f"{name}={option}", _is_chosen(judgements, name, option)
    if answers.dtype == pl.String:
        return name, answers
    if combinations:
        return name, _combined(answers)
    several = answers.list.len() > 1
    if several.any():
        raise AnnotationError(
            f"{judgements.source}: {int(several.sum())} answer(s) to {name!r} have several choices. "
            f"Ask about one choice with --question {_names([f'{name}={o}' for o in _options(answers)])}, "
            "or take every combination as a class of its own with --combinations."
        )
    return name, answers.list.first()


def describe_questions(judgements: Judgements) -> dict[str, int]:
    """How many rows answer each question."""
    return {
        name: int((column.is_not_null() if column.dtype == pl.String else column.list.len().fill_null(0) > 0).sum())
        for name, column in judgements.answers.items()
    }


def _split(judgements: Judgements, question: str | None) -> tuple[str, str | None]:
    """A question that is there, and the choice that was asked about."""
    names = list(judgements.answers)
    if question is None:
        if len(names) == 1:
            return names[0], None
        if not names:
            raise AnnotationError(f"{judgements.source} holds no answers to any question, so there is nothing to read.")
        raise AnnotationError(
            f"{judgements.source} holds answers to several questions: {_names(names)}. Pick one with --question NAME."
        )
    if question in names:
        return question, None
    name, _, option = question.rpartition("=")
    if name in names:
        return name, option
    raise AnnotationError(f"{judgements.source} has no question {question!r}. It has: {_names(names)}.")


def _is_chosen(judgements: Judgements, name: str, option: str) -> pl.Series:
    answers = judgements.answers[name]
    options = _options(answers)
    if option not in options:
        raise AnnotationError(f"{judgements.source}: nobody chose {option!r} for {name!r}. Choices: {_names(options)}.")
    if answers.dtype == pl.String:
        return pl.Series([None if a is None or not a.strip() else YES if a == option else NO for a in answers])
    return pl.Series([None if a is None or not len(a) else YES if option in a.to_list() else NO for a in answers])


def _combined(answers: pl.Series) -> pl.Series:
    """Each set of choices as one text, its parts in order of the alphabet."""
    return answers.list.unique().list.sort().list.join(_JOINT).replace("", None)


def _options(answers: pl.Series) -> list[str]:
    values = answers if answers.dtype == pl.String else answers.explode(empty_as_null=True)
    return sorted(value for value in values.unique().drop_nulls().to_list() if value.strip())


def _names(names: Sequence[str]) -> str:
    return listed([shorten(name) for name in names])
