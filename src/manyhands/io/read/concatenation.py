"""Several files of one format as one table of judgements: the batches of one job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import counted
from manyhands.io.read.judgements import Judgements


def concatenate(parts: Sequence[Judgements]) -> Judgements:
    """Concatenate the judgements of several files of one format.

    Parameters
    ----------
    parts : sequence of Judgements
        At least one.

    Returns
    -------
    Judgements
        The rows of all parts, in order.

    Raises
    ------
    AnnotationError
        If the files are of different formats, take their items from different columns, or number their items.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        _refuse_unlike(first, part)
    questions = list(dict.fromkeys(name for part in parts for name in part.answers))
    other_columns = [part.other_columns for part in parts if part.other_columns is not None]
    return Judgements(
        f"{first.source} and {len(parts) - 1} more",
        first.format,
        item=pl.concat([part.item.rename("item") for part in parts]),
        worker=pl.concat([part.worker.rename("worker") for part in parts]),
        answers={name: _concatenate_answers(parts, name) for name in questions},
        reason=_concatenate_column([part.reason for part in parts], parts, pl.String),
        time=_concatenate_column([part.time for part in parts], parts, pl.Int64),
        weight=_concatenate_column([part.weight for part in parts], parts, pl.Float64),
        seconds=_concatenate_column([part.seconds for part in parts], parts, pl.Float64),
        mapping=first.mapping,
        gold=_concatenate_gold(parts),
        notes=_concatenate_notes(parts),
        workers_known=all(part.workers_known for part in parts),
        refusal=next((part.refusal for part in parts if part.refusal), None),
        other_columns=pl.concat(other_columns, how="diagonal") if len(other_columns) == len(parts) else None,
        kinds={worker: kind for part in reversed(parts) for worker, kind in part.kinds.items()},
        groups=[counts for part in parts for counts in part.groups],
        files=tuple(piece for part in parts for piece in part.files or ((part.source, len(part), None),)),
    )


def _refuse_unlike(first: Judgements, part: Judgements) -> None:
    """Refuse files that cannot be one: of two formats, with items from two columns, or with numbered items."""
    if part.format != first.format:
        raise AnnotationError(
            f"{first.source} is {first.format}, but {part.source} is {part.format}. Read one format at a time."
        )
    items = [one.mapping.get("item") for one in (first, part)]
    if items[0] != items[1]:
        raise AnnotationError(
            f"Items are {items[0]} in {first.source}, but {items[1]} in {part.source}. Name one with --item."
        )
    if first.items_numbered or part.items_numbered:
        raise AnnotationError(
            f"The items of {first.source} and {part.source} have only numbers and no ids, so they may clash. "
            "Join the files, or give their items ids."
        )


def _concatenate_gold(parts: Sequence[Judgements]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the known answers of all files; where two files differ, either answer counts as right."""
    gold: dict[str, dict[str, tuple[str, ...]]] = {}
    for part in parts:
        for question, known in part.gold.items():
            of_question = gold.setdefault(question, {})
            for item, right in known.items():
                of_question[item] = tuple(dict.fromkeys(of_question.get(item, ()) + right))
    return gold


def _concatenate_notes(parts: Sequence[Judgements]) -> dict[str, str]:
    """Return the first sentence of each code, and the number of files with a different one."""
    sentences_of: dict[str, list[str]] = {}
    for part in parts:
        for code, sentence in part.notes.items():
            sentences_of.setdefault(code, []).append(sentence)
    notes = {}
    for code, sentences in sentences_of.items():
        others = len(sentences) - 1 if len(set(sentences)) > 1 else 0
        notes[code] = sentences[0] + (f" (Similar notes on {counted(others, 'more file')}.)" if others else "")
    return notes


def _concatenate_answers(parts: Sequence[Judgements], question: str) -> pl.Series:
    """Concatenate the answers to one question; text becomes lists where any part has lists."""
    columns = [part.answers.get(question) for part in parts]
    lists = any(column is not None and column.dtype != pl.String for column in columns)
    if not lists:
        joined_column = _concatenate_column(columns, parts, pl.String)
        assert joined_column is not None
        return joined_column
    wrapped = [
        column if column is None or column.dtype != pl.String else pl.Series(_in_lists(column)) for column in columns
    ]
    joined_lists = _concatenate_column(wrapped, parts, pl.List(pl.String))
    assert joined_lists is not None
    return joined_lists


def _in_lists(column: pl.Series) -> pl.Series:
    """Return each text as a list of one."""
    return pl.Series([None if answer is None else [answer] for answer in column], dtype=pl.List(pl.String))


def _concatenate_column(
    columns: Sequence[pl.Series | None], parts: Sequence[Judgements], dtype: Any
) -> pl.Series | None:
    """Concatenate a column; nulls for a part that has none, None if no part has one."""
    if all(column is None for column in columns):
        return None
    whole = [
        pl.Series("", [None] * len(part), dtype=dtype) if column is None else column.rename("").cast(dtype)
        for column, part in zip(columns, parts)
    ]
    return pl.concat(whole)
