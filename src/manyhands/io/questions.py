"""Files of answers: questions to an expert as a table, and the filled-in table, read back with how items were drawn."""

from __future__ import annotations

import base64
import json
import math
import re
import warnings
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.documents import Table
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.side_tables import column_of, open_table
from manyhands.io.write.results import unguard
from manyhands.trust.answers import (
    CONTESTED,
    RANDOM,
    SAMPLED,
    UNKNOWN,
    Answers,
    Drawing,
    combine_answers,
    fingerprint_of,
    refuse_changed,
)
from manyhands.trust.sampling import Questions
from manyhands.trust.selection import STRATA

# ----------------------------------------------------------------------------------------------------
# Questions to an expert as a table that a person can fill in.

ANSWER = "answer"
CHOICES, VOTES = "choices", "votes"
# How the items were drawn.
DRAWN = ("sampled", "stratum", "stratum_size", "n_items", "weight", "seed", "export", "drawn_from")
# Strata in a file: their names would say whether the methods agree, which an expert should not know.
_STRATUM_CODES = {name: str(code) for code, name in enumerate(STRATA, start=1)}


def question_frame(
    questions: Questions, fields: Mapping[str, Mapping[str, Any]] | None = None, *, show_votes: bool = False
) -> pl.DataFrame:
    """Return one row per question, with an empty column for the answer; votes and labels only where they are asked for.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> from manyhands.trust import contested
    >>> questions = contested(make_crowd(n_items=50, random_state=0).annotations, n=3)
    >>> question_frame(questions).columns[:3], question_frame(questions, show_votes=True).columns[:4]
    (['item', 'choices', 'answer'], ['item', 'votes', 'choices', 'answer'])
    """
    items = list(questions)
    weight = questions.weight
    columns: dict[str, list[str | None]] = {"item": [str(item) for item in items]}
    for name, values in (fields or {}).items():
        columns[_free_name(name, questions)] = [text_or_none(values.get(str(item))) for item in items]
    if show_votes:
        columns[VOTES] = ["; ".join(f"{k} {n}" for k, n in questions.votes[item].items()) for item in items]
    columns[CHOICES] = [_join_choices(questions.classes)] * len(items)
    columns[ANSWER] = [None] * len(items)
    if show_votes:
        columns |= {name: [text_or_none(said[item]) for item in items] for name, said in questions.labels.items()}
    columns["sampled"] = [questions.sampled] * len(items)
    columns["stratum"] = [_STRATUM_CODES[questions.stratum[item]] for item in items]
    columns["stratum_size"] = [str(questions.sizes[questions.stratum[item]]) for item in items]
    columns["n_items"] = [str(questions.n_items)] * len(items)
    columns["weight"] = [f"{weight[item]:.6g}" for item in items]
    columns["seed"] = [str(questions.random_state)] * len(items)
    columns["export"] = [questions.fingerprint] * len(items)
    columns["drawn_from"] = _pack_items(questions.population, len(items))
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def _join_choices(classes: Sequence[Any]) -> str:
    """Return the classes as a person reads them; as JSON where a class has a semicolon or looks like JSON."""
    names = [str(name) for name in classes]
    plain = "; ".join(names)
    return plain if _split_choices(plain) == names else json.dumps(names, ensure_ascii=False)


def _split_choices(text: str) -> list[str]:
    """Return the classes of a cell of the column ``choices``."""
    if text.startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            names = None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
    return [name.strip() for name in text.split(";")]


_CELL, _LARGEST_CELL = 8_000, 30_000  # characters; a spreadsheet cuts a cell at 32,767
_MOST_NAMES = 1 << 28  # bytes of unpacked names; more is no list of items that fits into memory beside its labels


def _pack_items(items: Collection[Any], n_rows: int) -> list[str | None]:
    """Return the names of all items, compressed, in parts of a size that a cell of a spreadsheet holds.

    Few names are in every row, so that they survive if rows are removed. None where they would not fit.
    """
    names = json.dumps(sorted(map(str, items)), ensure_ascii=False)
    text = base64.b64encode(zlib.compress(names.encode("utf-8", "surrogatepass"), 9)).decode()
    size = max(_CELL, math.ceil(len(text) / max(n_rows, 1)))
    if size > _LARGEST_CELL:
        return [None] * n_rows
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return [f"items {row % len(parts) + 1}/{len(parts)} {parts[row % len(parts)]}" for row in range(n_rows)]


def _unpack_items(cells: Iterable[str]) -> list[str] | None:
    """Return the names of all items from which questions were drawn; None if a part of them is missing or damaged."""
    matches = [match for cell in cells if (match := _PACKED.fullmatch(unguard(cell)))]
    if len({match[2] for match in matches}) != 1:
        return None
    parts = {int(match[1]): match[3] for match in matches}
    if sorted(parts) != list(range(1, int(matches[0][2]) + 1)):
        return None
    try:
        packed = base64.b64decode("".join(parts[at] for at in sorted(parts)), validate=True)
        names = json.loads(zlib.decompressobj().decompress(packed, _MOST_NAMES).decode("utf-8", "surrogatepass"))
    except (ValueError, zlib.error, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


_PACKED = re.compile(r"items (\d{1,6})/(\d{1,6}) ([A-Za-z0-9+/=]+)")


def _free_name(name: str, questions: Questions) -> str:
    """Return the name of a field's column, which must not be that of a column of our own."""
    taken = {"item", VOTES, CHOICES, ANSWER, *DRAWN, *questions.labels}
    return f"item_{name}" if name in taken else name


def text_or_none(value: Any) -> str | None:
    """Return a value as text; None stays None."""
    return None if value is None else str(value)


# ----------------------------------------------------------------------------------------------------
# The filled-in table, read back.

NO_ANSWER = "?"  # what a person writes who cannot answer
_Row = tuple[Any, str, dict[str, str], int]  # item, answer as written, other cells, number of the row


def read_answers(
    paths: str | Path | Sequence[str | Path],
    annotations: Annotations,
    renamed: Mapping[str, str] | None = None,
    left_out: Collection[str] = (),
) -> Answers:
    """Read one or several files of answers; rows without an answer, or with "?", stay open questions.

    Items that the reader was told to leave out have not vanished: their answers are not used, and a random sample of
    all items is one of the others.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    answers = [_read_one(path, annotations, renamed or {}, left_out) for path in files]
    for path, parts in zip(files, answers):
        _refuse_contradiction(path, parts, [part for parts in answers for part in parts])
    every = combine_answers([part for parts in answers for part in parts])
    if not len(every):
        raise AnnotationError(f"{listed([str(path) for path in files])}: no question is answered. Fill in {ANSWER!r}.")
    return every


def _refuse_contradiction(path: str | Path, parts: Sequence[Answers], every: Sequence[Answers]) -> None:
    """Refuse answers of a file that differ from those of another."""
    for part in parts:
        for item, label in part.values.items():
            for other in every:
                if other.values.get(item, label) != label:
                    both = f"{shorten(str(label))!r} and {shorten(str(other.values[item]))!r}"
                    raise AnnotationError(f"{path}: {shorten(str(item))!r} has two answers, {both}. Keep one.")


def check_questions(path: str | Path, annotations: Annotations, renamed: Mapping[str, str] | None = None) -> None:
    """Refuse a file of questions that cannot be answered further; it may have no answer yet."""
    _read_one(path, annotations, renamed or {})


def _read_one(
    path: str | Path, annotations: Annotations, renamed: Mapping[str, str], left_out: Collection[str] = ()
) -> list[Answers]:
    """Read one file: the answers of each drawing in it."""
    table = open_table(path, "answers")
    groups: dict[str, list[_Row]] = {}
    n_unused = 0
    for row in _rows(table):
        rows = groups.setdefault(row[2].get("export", ""), [])
        rows.append(row)
        n_unused += row[1] not in ("", NO_ANSWER) and _is_left_out(row[0], left_out)
    if n_unused:
        are = "is about an item" if n_unused == 1 else "are about items"
        warnings.warn(
            f"answers_left_out: {counted(n_unused, 'answer')} of {Path(path).name} {are} that `exclude_items` or "
            f"`only_items` leaves out, and not used.",
            CrowdWarning,
            stacklevel=4,
        )
    items = {str(item): item for item in annotations.item_ids.tolist()}
    parts = []
    for fingerprint, rows in groups.items():
        drawing = _drawing(path, fingerprint, rows, annotations, renamed)
        is_part = drawing is not None and not drawing.items.isdisjoint(left_out)
        if drawing is not None:
            drawing = replace(drawing, items=drawing.items.difference(left_out)) if is_part else drawing
            refuse_changed(drawing, annotations)
        answers = _answers_of(
            table, [row for row in rows if not _is_left_out(row[0], left_out)], items, annotations, renamed
        )
        if is_part:  # the sizes of strata are those of all items
            answers = replace(answers, stratum={}, sizes={}, n_items=None)
        drawings = () if drawing is None else (drawing,)
        parts.append(replace(answers, fingerprint=fingerprint or None, drawings=drawings))
    _refuse_contradiction(path, parts, parts)
    return parts


def _is_left_out(name: Any, left_out: Collection[str]) -> bool:
    """Whether the item of a row is one of those that are left out."""
    return name in left_out or unguard(name) in left_out


def _answers_of(
    table: Table, rows: list[_Row], items: Mapping[str, Any], annotations: Annotations, renamed: Mapping[str, str]
) -> Answers:
    """Return the answers in rows of one drawing."""
    values: dict[Any, Any] = {}
    sampled: dict[Any, str] = {}
    stratum: dict[Any, str] = {}
    sizes: dict[str, int] = {}
    n_items = seed = None
    for name, written, cells, row in rows:
        if not written or written == NO_ANSWER:
            continue
        item = items.get(name, items.get(unguard(name)))
        if item is None:
            raise AnnotationError(
                f"{table.place(row)}: the export has no item {shorten(name)!r}; its items are like "
                f"{shorten(str(annotations.item_ids[0]))!r}. Correct the item, or empty its answer."
            )
        label = _label(table, row, written, annotations, renamed)
        if values.setdefault(item, label) != label:
            both = f"{shorten(str(values[item]))!r} and {shorten(str(label))!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(name)!r} has two answers, {both}. Keep one.")
        sampled[item] = _kind(table, row, cells)
        if sampled[item] != UNKNOWN and cells.get("stratum"):
            stratum[item] = _STRATUM_NAMES.get(cells["stratum"], cells["stratum"])
            sizes[stratum[item]] = _whole(table, row, cells, "stratum_size")
            n_items, seed = _whole(table, row, cells, "n_items"), _whole(table, row, cells, "seed")
    return Answers(values, sampled, stratum, sizes, n_items, None, seed)


_STRATUM_NAMES = {code: name for name, code in _STRATUM_CODES.items()}


def _drawing(
    path: str | Path,
    fingerprint: str,
    rows: list[_Row],
    annotations: Annotations,
    renamed: Mapping[str, str],
) -> Drawing | None:
    """Return from which items the questions of a file were drawn; None if that is not known and does not matter."""
    name = Path(path).name
    kind = RANDOM if any(cells.get("sampled") == RANDOM for _, _, cells, _ in rows) else CONTESTED
    own = annotations.item_ids.tolist()
    if fingerprint in ("", fingerprint_of(annotations)):
        if not fingerprint and kind != RANDOM:
            return None
        labelled = (item for item, n in zip(own, annotations.n_labels.tolist()) if n)
        return Drawing(frozenset(labelled), kind, None, name)
    items = _unpack_items(cells.get("drawn_from", "") for _, _, cells, _ in rows)
    choices = next((cells[CHOICES] for _, _, cells, _ in rows if cells.get(CHOICES)), None)
    if items is None or choices is None:
        raise AnnotationError(
            f"{path} was drawn from another export (its fingerprint is {fingerprint}, that of these labels "
            f"{fingerprint_of(annotations)}), and its columns {CHOICES!r} and 'drawn_from' do not say which classes "
            f"and items that had. Restore these columns and all rows, or use the export it was drawn from; or give the "
            f"file with `gold=`, which uses the answers alone."
        )
    by_name = {str(item): item for item in own}
    classes = {str(value): value for value in annotations.classes.tolist()}
    names = [
        next((name for name in (text, renamed.get(text)) if name in classes), text)
        for text in _split_choices(unguard(choices))
    ]
    return Drawing(
        frozenset(by_name.get(item, item) for item in items),
        kind,
        tuple(classes.get(text, text) for text in names),
        name,
    )


def _rows(table: Table) -> list[_Row]:
    """Return the rows that name an item."""
    header = [normalise_name(name) for name in table.header]
    if ANSWER not in header:
        raise AnnotationError(
            f"{table.name} has no column 'answer'. It has: {listed(table.header)}. Give a file that manyhands ask "
            f"wrote, or known classes with `gold=`."
        )
    answers = table.column(header.index(ANSWER)).fill_null("").to_list()
    extra = {
        name: table.column(header.index(normalise_name(name))).fill_null("").to_list()
        for name in (CHOICES, *DRAWN)
        if normalise_name(name) in header
    }
    items = column_of(table, "item")
    return [
        (item, answer.strip(), {name: cells[row].strip() for name, cells in extra.items()}, row)
        for row, (item, answer) in enumerate(zip(items, answers))
        if item.strip() or answer.strip()
    ]


def _label(table: Table, row: int, written: str, annotations: Annotations, renamed: Mapping[str, str]) -> Any:
    """Return the class that was answered: as written, or with other case if that is unambiguous."""
    classes = {str(value): value for value in annotations.classes.tolist()}
    for text in (written, renamed.get(written, written), unguard(written)):
        if text in classes:
            return classes[text]
    alike = [value for text, value in classes.items() if text.casefold() == written.casefold()]
    if len(alike) == 1:
        return alike[0]
    raise AnnotationError(
        f"{table.place(row)}: {shorten(written)!r} is no class of the export. There are: {listed(list(classes))}. "
        f"Correct the answer, or write {NO_ANSWER} to leave it open."
    )


def _kind(table: Table, row: int, cells: Mapping[str, str]) -> str:
    """Return how an item was drawn."""
    kind = cells.get("sampled", "") or UNKNOWN
    if kind not in SAMPLED:
        raise AnnotationError(f"{table.place(row)}: sampled is {shorten(kind)!r}; it may be {CONTESTED} or {RANDOM}.")
    return kind


def _whole(table: Table, row: int, cells: Mapping[str, str], name: str) -> int:
    """Return a count that describes the draw."""
    text = cells.get(name, "")
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise AnnotationError(
            f"{table.place(row)}: {name} is {shorten(text)!r}, not a whole number. Restore the columns that manyhands "
            f"ask wrote, or remove the column 'sampled' to use the answers without them."
        ) from None


def describe_answers(answers: Answers) -> str:
    """Return how many answers there are, and how their items were drawn.

    Examples
    --------
    >>> describe_answers(Answers({"a": "x"}, sampled="random"))
    '1 answer (random items)'
    """
    kinds = answers.kinds
    if len(kinds) == 1:
        return f"{counted(len(answers), 'answer')} ({next(iter(kinds))} items)"
    parts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return f"{counted(len(answers), 'answer')} ({parts} items)"
