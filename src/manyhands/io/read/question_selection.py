"""Which question of an export is meant, and how several choices in one answer become one label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import find_question, listed
from manyhands.io.read.judgements import NON_WORKER_REASONS, Judgements

YES, NO = "yes", "no"  # the two classes of a question about one choice
JOINT = " + "  # joins the choices of a combination


def select_question(
    judgements: Judgements, question: str | None, combinations: bool = False, missing: Sequence[str] = ()
) -> tuple[str, pl.Series]:
    """Return the name of the question that is meant, and its answers as text.

    ``"topic=refund"`` asks for each answer to ``topic`` whether ``refund`` is among its choices. Without a name, the
    only question of the file is taken.

    Parameters
    ----------
    judgements : Judgements
        The rows.
    question : str or None
        Name of the question.
    combinations : bool, default=False
        Take every combination of choices as one class.
    missing : sequence of str, default=()
        Choices that mean "no label".

    Returns
    -------
    name : str
        The question; ``"topic=refund"`` where a choice was asked about.
    labels : polars.Series of str, of length n_rows
        The label of each row; null where there is none.

    Raises
    ------
    AnnotationError
        If there is no such question or choice, if there are several questions and none was named, or if some answer has
        several choices and `combinations` is False.
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
    """Return the known labels of the selected question; items with several right answers are left out.

    Parameters
    ----------
    judgements : Judgements
        The rows, with their gold.
    chosen : str
        The question as `select_question` returned it.
    combinations : bool
        Whether combinations of choices are classes.

    Returns
    -------
    dict of str to str
        Item -> label.
    """
    name, option = _find(judgements, chosen)
    known = judgements.gold.get(name, {})
    if option is not None:
        sure = {item: right for item, right in known.items() if option not in right or len(right) == 1}
        return {item: YES if option in right else NO for item, right in sure.items()}
    if combinations and judgements.answers[name].dtype != pl.String:
        return {item: JOINT.join(sorted(set(right))) for item, right in known.items()}
    return {item: right[0] for item, right in known.items() if len(right) == 1}


def drop_other_questions(judgements: Judgements, labels: pl.Series) -> tuple[Judgements, pl.Series]:
    """Drop rows of models, drafts and reviewers that answer other questions only.

    A worker who submitted a response without answering the question has left it unanswered, which is counted in the
    ledger; a model that was never asked has not.

    Parameters
    ----------
    judgements : Judgements
        The rows.
    labels : polars.Series of str, of length n_rows
        The label of each row.

    Returns
    -------
    judgements : Judgements
        The remaining rows.
    labels : polars.Series of str
        Their labels.
    """
    if judgements.reason is None or len(judgements.answers) < 2:
        return judgements, labels
    answered = [_is_answered(column) for column in judgements.answers.values()]
    elsewhere = labels.is_null() & reduce(or_, answered)
    keep = ~(judgements.reason.is_in(_OF_ONE_QUESTION).fill_null(False) & elsewhere)
    return (judgements, labels) if keep.all() else (_filtered(judgements, keep), labels.filter(keep))


def _filtered(judgements: Judgements, keep: pl.Series) -> Judgements:
    """Keep some of the rows; their lines in the file are then not known any more."""
    return replace(
        judgements,
        item=judgements.item.filter(keep),
        worker=judgements.worker.filter(keep),
        answers={name: column.filter(keep) for name, column in judgements.answers.items()},
        reason=None if judgements.reason is None else judgements.reason.filter(keep),
        time=None if judgements.time is None else judgements.time.filter(keep),
        seconds=None if judgements.seconds is None else judgements.seconds.filter(keep),
        weight=None if judgements.weight is None else judgements.weight.filter(keep),
        other_columns=None if judgements.other_columns is None else judgements.other_columns.filter(keep),
        files=(),
    )


_OF_ONE_QUESTION = [*NON_WORKER_REASONS, "draft"]


def describe_questions(judgements: Judgements) -> dict[str, int]:
    """Return the number of rows that answer each question.

    Parameters
    ----------
    judgements : Judgements
        The rows.

    Returns
    -------
    dict of str to int
        Question -> number of rows.
    """
    return {name: int(_is_answered(column).sum()) for name, column in judgements.answers.items()}


def _is_answered(column: pl.Series) -> pl.Series:
    """Return where a column of answers has at least one choice."""
    return column.is_not_null() if column.dtype == pl.String else column.list.len().fill_null(0) > 0


def _ordinary(judgements: Judgements) -> pl.Series:
    """Return the rows that are submitted answers of workers, as far as the format knows."""
    if judgements.reason is None:
        return pl.Series([True]).new_from_index(0, len(judgements))
    return judgements.reason.is_null()


def _find(judgements: Judgements, question: str | None) -> tuple[str, str | None]:
    """Return the name of an existing question, and the choice that was asked about."""
    names = list(judgements.answers)
    if question is None:
        if not names:
            raise AnnotationError(f"{judgements.source} holds no answers, so there is nothing to read.")
        ordinary = _ordinary(judgements)
        names = [name for name in names if (_is_answered(judgements.answers[name]) & ordinary).any()] or names
        if len(names) == 1:
            return names[0], None
    return find_question(question, names, judgements.source)


def _choices(answers: pl.Series, missing: Sequence[str]) -> pl.Series:
    """Return the distinct choices of every answer, without blanks and missing words; null where none is left."""
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
    """Return "yes" or "no" for each answer: whether it contains the choice."""
    options = _options(choices)
    if option not in options:
        raise AnnotationError(
            f"{judgements.source}: no answer to {name!r} has the choice {option!r}. Choices: {listed(options)}."
        )
    chosen = pl.DataFrame({"choices": choices}).select(pl.col("choices").list.contains(option)).to_series()
    return chosen.replace_strict({True: YES, False: NO}, default=None, return_dtype=pl.String)


def _options(choices: pl.Series) -> list[str]:
    """Return all choices that occur, sorted."""
    return sorted(choices.explode(empty_as_null=True).unique().drop_nulls().to_list())
