"""Files of answers: questions that a person filled in, read back with how the items were drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.read.companion_tables import column_of, open_table
from manyhands.io.read.documents import Table
from manyhands.io.write.question_table import ANSWER
from manyhands.io.write.spreadsheet import unguard
from manyhands.trust.answers import CONTESTED, RANDOM, SAMPLED, UNKNOWN, Answers, fingerprint_of

NO_ANSWER = "?"  # what a person writes who cannot answer

_Row = tuple[Any, str, dict[str, str], int]  # item, answer as written, other cells, number of the row


def read_answers(
    paths: str | Path | Sequence[str | Path], annotations: Annotations, renamed: Mapping[str, str] | None = None
) -> Answers:
    """Read one or several files of answers; rows without an answer, or with "?", stay open questions.

    Parameters
    ----------
    paths : str, Path or sequence of them
        Tables with the columns ``item`` and ``answer``, as `manyhands ask` writes them. Without the columns that say
        how the items were drawn, the answers decide between methods and enter the fit, and nothing more.
    annotations : Annotations
        The crowd's labels.
    renamed : mapping of str to str or None, default=None
        Spelling of a label in the export -> name under which it was read; answers follow it.

    Returns
    -------
    Answers
        The answers, with how the items were drawn.

    Raises
    ------
    AnnotationError
        If the file is not a table of answers or of another export, names an unknown item or class, or has two answers
        for an item. No file is changed.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    parts = [_read_one(path, annotations, renamed or {}) for path in given]
    values: dict[Any, Any] = {}
    sampled: dict[Any, str] = {}
    for path, part in zip(given, parts):
        for item, label in part.values.items():
            if values.setdefault(item, label) != label:
                both = f"{shorten(str(values[item]))!r} and {shorten(str(label))!r}"
                raise AnnotationError(f"{path}: {shorten(str(item))!r} has two answers, {both}. Keep one.")
        assert not isinstance(part.sampled, str)
        sampled |= {item: kind for item, kind in part.sampled.items() if sampled.get(item) != RANDOM}
    if not values:
        raise AnnotationError(f"{listed([str(path) for path in given])}: no question is answered. Fill in {ANSWER!r}.")
    strata = {item: name for part in parts for item, name in part.stratum.items()}
    sizes = {name: size for part in parts for name, size in part.sizes.items()}
    first = next((part for part in parts if part.fingerprint is not None), parts[0])
    return Answers(values, sampled, strata, sizes, first.n_items, first.fingerprint, first.random_state)


def check_questions(path: str | Path, annotations: Annotations, renamed: Mapping[str, str] | None = None) -> None:
    """Refuse a file of questions that cannot be answered further; it may have no answer yet.

    Parameters
    ----------
    path : str or Path
        A table with the columns ``item`` and ``answer``.
    annotations : Annotations
        The crowd's labels.
    renamed : mapping of str to str or None, default=None
        Spelling of a label in the export -> name under which it was read.

    Raises
    ------
    AnnotationError
        As `read_answers`, except for a file without answers.
    """
    _read_one(path, annotations, renamed or {})


def _read_one(path: str | Path, annotations: Annotations, renamed: Mapping[str, str]) -> Answers:
    """Read one file."""
    table = open_table(path, "answers")
    rows = _rows(table)
    _refuse_other_export(path, rows, annotations)
    items = {str(item): item for item in annotations.item_ids.tolist()}
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
            stratum[item] = cells["stratum"]
            sizes[cells["stratum"]] = _whole(table, row, cells, "stratum_size")
            n_items, seed = _whole(table, row, cells, "n_items"), _whole(table, row, cells, "seed")
    known = next((cells["export"] for _, _, cells, _ in rows if cells.get("export")), None)
    return Answers(values, sampled, stratum, sizes, n_items, known, seed)


def _rows(table: Table) -> list[_Row]:
    """Return the rows that name an item."""
    header = [normalise_name(name) for name in table.header]
    if ANSWER not in header:
        raise AnnotationError(
            f"{table.name} has no column 'answer'. It has: {listed(table.header)}. Give a file that manyhands ask "
            f"wrote, or known classes with --gold."
        )
    answers = table.column(header.index(ANSWER)).fill_null("").to_list()
    extra = {
        name: table.column(header.index(normalise_name(name))).fill_null("").to_list()
        for name in ("sampled", "stratum", "stratum_size", "n_items", "seed", "export")
        if normalise_name(name) in header
    }
    items = column_of(table, "item")
    return [
        (item, answer.strip(), {name: cells[row].strip() for name, cells in extra.items()}, row)
        for row, (item, answer) in enumerate(zip(items, answers))
        if item.strip() or answer.strip()
    ]


def _refuse_other_export(path: str | Path, rows: list[_Row], annotations: Annotations) -> None:
    """Refuse questions that were drawn from other labels."""
    found = {cells["export"] for _, _, cells, _ in rows if cells.get("export")}
    own = fingerprint_of(annotations)
    others = sorted(found - {own})
    if others:
        raise AnnotationError(
            f"{path} was drawn from another export: its fingerprint is {others[0]}, that of these labels {own}. Use "
            f"the export and options it was drawn with; or give the file with --gold, which uses the answers alone."
        )


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

    Parameters
    ----------
    answers : Answers
        The answers.

    Returns
    -------
    str
        Such as ``"20 answers (contested items)"``.

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
