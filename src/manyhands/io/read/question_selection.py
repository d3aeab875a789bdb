"""Which question of an export is meant, and what to make of several choices in one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import find_question, listed
from manyhands.io.read.judgements import NON_WORKER_REASONS, Judgements

YES, NO = "yes", "no"
JOINT = " + "  # between the choices of a combination


def select_question(
    judgements: Judgements, question: str | None, combinations: bool = False, missing: Sequence[str] = ()
) -> tuple[str, pl.Series]:
    """The name of the question that is meant, and its answers as text.

    `topic=refund` asks of every answer to `topic` whether `refund` is among its choices. Without a question, the only
    one there is; where there are several, the error lists them.
    """
    name, option = _find(judgements, question)
    answers = judgements.answers[name]
    if answers.dtype == pl.String and option is None:
        return name, answers
    choices = _choices(answers, missing)
    if option is not None:
        return f"{name}={option}", _is_chosen(judgements, name, option, choices)
    if combinations:
        return name, choices.list.sort().list.join(JOINT)
    several = (choices.list.len() > 1) & _ordinary(judgements)
    if several.any():
        raise AnnotationError(
            f"{judgements.source}: {int(several.sum())} answer(s) to {name!r} have several choices. "
            f"Ask about one choice with --question {listed([f'{name}={o}' for o in _options(choices)])}, "
            "or take every combination as a class of its own with --combinations."
        )
    return name, choices.list.first()


def gold_of_question(judgements: Judgements, chosen: str, combinations: bool) -> dict[str, str]:
    """What the file itself knows of the question that is meant; items with several right answers are left out."""
    name, option = _find(judgements, chosen)
    known = judgements.gold.get(name, {})
    if option is not None:
        sure = {item: right for item, right in known.items() if option not in right or len(right) == 1}
        return {item: YES if option in right else NO for item, right in sure.items()}
    if combinations and judgements.answers[name].dtype != pl.String:
        return {item: JOINT.join(sorted(set(right))) for item, right in known.items()}
    return {item: right[0] for item, right in known.items() if len(right) == 1}


def drop_other_questions(judgements: Judgements, labels: pl.Series) -> tuple[Judgements, pl.Series]:
    """Without the rows of models, drafts and reviewers that are about other questions alone.

    A worker who submits his answers and leaves one open has answered that one with nothing; a model that was never
    asked has not.
    """
    if judgements.reason is None or len(judgements.answers) < 2:
        return judgements, labels
    answered = [_is_answered(column) for column in judgements.answers.values()]
    elsewhere = labels.is_null() & reduce(or_, answered)
    keep = ~(judgements.reason.is_in(_OF_ONE_QUESTION).fill_null(False) & elsewhere)
    return (judgements, labels) if keep.all() else (_filtered(judgements, keep), labels.filter(keep))


def _filtered(judgements: Judgements, keep: pl.Series) -> Judgements:
    """Some of the rows; which line of a file each comes from is then not known any more."""
    return replace(
        judgements,
        item=judgements.item.filter(keep),
        worker=judgements.worker.filter(keep),
        answers={name: column.filter(keep) for name, column in judgements.answers.items()},
        reason=None if judgements.reason is None else judgements.reason.filter(keep),
        time=None if judgements.time is None else judgements.time.filter(keep),
        other_columns=None if judgements.other_columns is None else judgements.other_columns.filter(keep),
        files=(),
    )


_OF_ONE_QUESTION = [*NON_WORKER_REASONS, "draft"]


def describe_questions(judgements: Judgements) -> dict[str, int]:
    """How many rows answer each question."""
    return {name: int(_is_answered(column).sum()) for name, column in judgements.answers.items()}


def _is_answered(column: pl.Series) -> pl.Series:
    return column.is_not_null() if column.dtype == pl.String else column.list.len().fill_null(0) > 0


def _ordinary(judgements: Judgements) -> pl.Series:
    """The rows that are a worker's submitted answer, as far as the format knows."""
    if judgements.reason is None:
        return pl.Series([True]).new_from_index(0, len(judgements))
    return judgements.reason.is_null()


def _find(judgements: Judgements, question: str | None) -> tuple[str, str | None]:
    """A question that is there, and the choice that was asked about."""
    names = list(judgements.answers)
    if question is None:
        if not names:
            raise AnnotationError(f"{judgements.source} holds no answers to any question, so there is nothing to read.")
        ordinary = _ordinary(judgements)
        names = [name for name in names if (_is_answered(judgements.answers[name]) & ordinary).any()] or names
        if len(names) == 1:
            return names[0], None
    return find_question(question, names, judgements.source)


def _choices(answers: pl.Series, missing: Sequence[str]) -> pl.Series:
    """The choices of every answer, each once and none of them blank; null where nothing is left."""
    lists = pl.select(pl.concat_list(answers)).to_series() if answers.dtype == pl.String else answers
    not_missing = pl.element().filter(
        pl.element().is_not_null()
        & (pl.element().str.strip_chars() != "")
        & ~pl.element().str.strip_chars().is_in([word.strip() for word in missing])
    )
    table = pl.DataFrame({"lists": lists}).select(
        pl.col("lists").list.eval(not_missing).list.unique(maintain_order=True)
    )
    return table.select(pl.when(pl.col("lists").list.len() > 0).then(pl.col("lists"))).to_series()


def _is_chosen(judgements: Judgements, name: str, option: str, choices: pl.Series) -> pl.Series:
    options = _options(choices)
    if option not in options:
        raise AnnotationError(f"{judgements.source}: nobody chose {option!r} for {name!r}. Choices: {listed(options)}.")
    chosen = pl.DataFrame({"choices": choices}).select(pl.col("choices").list.contains(option)).to_series()
    return chosen.replace_strict({True: YES, False: NO}, default=None, return_dtype=pl.String)


def _options(choices: pl.Series) -> list[str]:
    return sorted(choices.explode(empty_as_null=True).unique().drop_nulls().to_list())
