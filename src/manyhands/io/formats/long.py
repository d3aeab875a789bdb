"""Long tables: one row per judgement, with a column each for item, worker and label.

Such a table may be CSV, TSV, Parquet, XLSX, a data frame, JSON lines or a list of flat objects. A column of times
decides which of two answers is the later one, a column of gold labels gives known answers, and a column that names the
question separates several questions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.column_guess import guess_label, nearest_name
from manyhands.io.formats.marked_parts import refuse_parts
from manyhands.io.formats.weight_columns import read_weights, spread_probabilities
from manyhands.io.formats.worker_columns import kinds_of_workers
from manyhands.io.messages import find_question, listed, normalise_name
from manyhands.io.read.column_lookup import column_hint, find_column, single_column
from manyhands.io.read.documents import FRAME, Document, Records, Table, Words
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.io.read.text_tables import Locate
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import find_seconds

_STRONG = {  # unambiguous names of columns, the most usual first
    "item": "item task item_id task_id unit unit_id example example_id post_id comment_id document_id doc_id text_id "
    "sentence_id image_id image_name instance_id tweet_id sample_id",
    "worker": "worker annotator worker_id annotator_id rater rater_id coder coder_id labeler labeller labeler_id judge "
    "performer worker_name annotator_name rater_name annotator_email worker_email rater_email coder_email",
    "label": "label answer response annotation judgment judgement label_name",
}
CONTENTS = ("image", "sample", "instance", "document", "sentence")  # contents of an item, used if there is no id
_WEAK = {  # ambiguous names, used if there is no unambiguous one
    "item": f"question question_id id {' '.join(CONTENTS)}",
    "worker": "user user_id username user_name email",
    "label": "class class_name category rating value vote",
}
_OTHERS = {
    "time": "timestamp submitted_at created_at submitted date",
    "gold": "gold gold_label golden truth ground_truth true_label",
    "question": "question attribute field",
}
_NEEDED = ("item", "worker", "label")
COMMON_NAMES = {role: tuple(f"{_STRONG[role]} {_WEAK[role]}".split()) for role in _NEEDED}
COMMON_NAMES |= {role: tuple(names.split()) for role, names in _OTHERS.items()}


def recognise(document: Document) -> str | None:
    """Recognise long tables; any table that no other format recognised is taken for one.

    If columns are missing, the error message of `read` names them.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"long"``; None for any other document.
    """
    if isinstance(document, Table):
        return "long"
    if isinstance(document, Words):
        return "long" if _covers(document.rows[0]) else None
    if isinstance(document, Records):
        return "long" if document.objects and _covers(list(document.first)) else None
    return None


def has_roles(header: Sequence[str]) -> bool:
    """Whether a header names item, worker and label in the usual words.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.

    Returns
    -------
    bool
        True if all three are there.
    """
    return _covers(header)


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the rows of a table as judgements.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.
    format_name : str
        Name of the format, as it was recognised or given.
    options : ColumnOptions
        Columns and question that the caller named.

    Returns
    -------
    Judgements
        One row per row of the table.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    table, options = spread_probabilities(as_table(document), options)
    named = {role: name for role in _NEEDED if (name := getattr(options, role)) is not None}
    place = {role: find_column(table.header, name, role, table.name) for role, name in named.items()}
    _refuse_missing(table, named)
    for role in _NEEDED:
        if role not in place:
            place[role] = single_column(table.header, _find_common(table.header, role), role, table.name)
    if options.weight is not None:
        place["weight"] = find_column(table.header, options.weight, "weight", table.name)
    for role in ("time", "gold", "question"):
        found = _most_usual(table.header, role)
        if len(found) == 1 and found[0] not in place.values():
            place[role] = found[0]
    table, question, questions = _one_question(table, place, options)
    label = table.column(place["label"])
    refusal = refuse_parts(table, place["item"], place["worker"])
    mapping = {role: table.header[at] for role, at in place.items() if role != "question"}
    time, notes = parse_times(table.column(place["time"])) if "time" in place else (None, {})
    seconds, seconds_mapping, unread = find_seconds(table, place.values())
    return Judgements(
        table.name,
        format_name,
        item=table.column(place["item"]),
        worker=table.column(place["worker"]),
        answers={} if refusal else {question: label},
        reason=pl.Series(["region"], dtype=pl.String).new_from_index(0, len(table)) if refusal else None,
        time=time,
        seconds=seconds,
        mapping=mapping | seconds_mapping,
        gold={question: gold_of(table.column(place["item"]), table.column(place["gold"]))} if "gold" in place else {},
        notes=notes | unread | (document.notes if isinstance(document, Records) else {}),
        refusal=refusal,
        other_columns=table.frame,
        questions=questions,
        files=((table.name, len(table), table.locate),),
        kinds=kinds_of_workers(table, table.column(place["worker"])),
        weight=read_weights(table, place.get("weight"), place["label"]),
    )


def as_table(document: Document) -> Table:
    """Return a document as a table: flat objects become rows, and words become cells.

    Parameters
    ----------
    document : Document
        A parsed file.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    AnnotationError
        If it is not a table, or its rows have different lengths.
    """
    if isinstance(document, Table):
        return document
    if isinstance(document, Words):
        header, rows = document.rows[0], document.rows[1:]
        uneven = next((at for at, row in enumerate(rows, start=2) if len(row) != len(header)), None)
        if uneven is not None:
            raise AnnotationError(
                f"{document.name}, line {uneven}: {len(rows[uneven - 2])} words where the header has {len(header)}."
            )
        columns = {str(at): [row[at] for row in rows] for at in range(len(header))}
        return Table(document.name, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)), header)
    if isinstance(document, Records) and document.objects:
        return objects_as_table(document.name, document.objects)
    raise AnnotationError(f"{document.name} is not a table with one row per judgement. See docs/formats.md.")


def objects_as_table(name: str, objects: Sequence[dict[str, Any]]) -> Table:
    """Return a list of objects as rows; every key that any of them has is a column.

    Parameters
    ----------
    name : str
        Name of the file.
    objects : sequence of dict
        The objects.

    Returns
    -------
    Table
        One row per object, every value as text.
    """
    header = list(dict.fromkeys(key for entry in objects for key in entry))
    columns = {str(at): [as_text(entry.get(key)) for entry in objects] for at, key in enumerate(header)}
    return Table(name, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)), header)


def gold_of(items: pl.Series, gold: pl.Series) -> dict[str, tuple[str, ...]]:
    """Return the items with a known answer.

    Parameters
    ----------
    items : polars.Series of str
        Item ids.
    gold : polars.Series of str
        Known answers; null or blank where there is none.

    Returns
    -------
    dict of str to tuple of str
        Item -> its known answers; several different ones are all right.
    """
    known = pl.DataFrame({"item": items, "gold": gold}).drop_nulls().unique(maintain_order=True)
    found: dict[str, tuple[str, ...]] = {}
    for item, answer in known.iter_rows():
        if answer.strip():
            found[item] = (*found.get(item, ()), answer)
    return found


def _covers(header: Sequence[str]) -> bool:
    """Whether a header has a column for item, worker and label."""
    return all(_find_common(header, role) for role in _NEEDED)


def _find_common(header: Sequence[str], role: str) -> list[int]:
    """Return the columns with a usual name for a role; ambiguous names only if there is no unambiguous one."""
    for known in (_STRONG[role], _WEAK[role]):
        wanted = {normalise_name(name) for name in known.split()}
        found = [at for at, name in enumerate(header) if normalise_name(name) in wanted]
        if found:
            return found
    return []


def _most_usual(header: Sequence[str], role: str) -> list[int]:
    """Return the columns whose name is the most usual one for a role."""
    names = [normalise_name(name) for name in header]
    for wanted in COMMON_NAMES[role]:
        found = [at for at, name in enumerate(names) if name == normalise_name(wanted)]
        if found:
            return found
    return []


def _refuse_missing(table: Table, named: Collection[str]) -> None:
    """Refuse a table that lacks columns, and name all of them with the options that would name them."""
    missing = [role for role in _NEEDED if role not in named and not _find_common(table.header, role)]
    if not missing:
        return
    columns = "Column" if len(missing) == 1 else "Columns"
    roles = " and ".join(f"the {role}" for role in missing)
    verb = "is" if len(missing) == 1 else "are"
    near: dict[str, str] = {}
    for role in missing:  # a column that is suggested for one role is not suggested for another
        found = _nearest([name for name in table.header if name not in near.values()], role)
        near |= {} if found is None else {role: found}
    known = {role: at for role in _NEEDED for at in _find_common(table.header, role)[:1]}
    if "label" in missing and "label" not in near and "item" in known:
        found = guess_label(table, known["item"], known.values())
        near |= {} if found is None else {"label": found}
    remedy = _name_in_python(missing, near) if table.name == FRAME else _name_as_options(missing, near)
    raise AnnotationError(f"{columns} for {roles} {verb} not in {table.name}. It has: {listed(table.header)}. {remedy}")


def _name_as_options(missing: Sequence[str], near: Mapping[str, str]) -> str:
    """Return how to name missing columns of a file, with the columns that are probably meant."""
    remedy = column_hint(missing[0])
    if len(missing) > 1:
        options_text = " ".join(f"--{role} COLUMN" for role in missing)
        remedy = f"Name them with {options_text} ({', '.join(f'{role}=' for role in missing)} in Python)."
    if "worker" in missing:
        remedy += " If each worker has a column, name them all: --worker ann,bob."
    return remedy + (f" Perhaps {', '.join(f'--{role} {name!r}' for role, name in near.items())}?" if near else "")


def _name_in_python(missing: Sequence[str], near: Mapping[str, str]) -> str:
    """Return how to name missing columns of a data frame, with the columns that are probably meant."""
    options_text = ", ".join(f"{role}={near[role]!r}" if role in near else f"{role}=..." for role in missing)
    several = ' If each worker has a column, name them all: worker="ann,bob".' if "worker" in missing else ""
    return f"Name the columns: mh.read_annotations(df, {options_text}).{several}"


def _nearest(header: Sequence[str], role: str) -> str | None:
    """Return the column whose name resembles a usual name of the role; those that name another role are left out."""
    taken = {at for other in _NEEDED for at in _find_common(header, other)}
    free = [name for at, name in enumerate(header) if at not in taken]
    return nearest_name(free, _STRONG[role].split())


def _one_question(
    table: Table, place: dict[str, int], options: ColumnOptions
) -> tuple[Table, str, dict[str, int] | None]:
    """Return the rows of the selected question, its name, and the number of rows of each; blank lines are kept."""
    label_name = table.header[place["label"]]
    if "question" not in place:
        return table, label_name, None
    column = table.column(place["question"]).fill_null("").str.strip_chars()
    counts = {name: n for name, n in column.value_counts().iter_rows() if name}
    names = sorted(counts)
    if len(names) < 2 and options.question is None:
        return table, label_name, None
    question, _ = find_question(options.question, names, table.name)
    nameless = (column == "") & ~table.blank_lines()
    if nameless.any():
        raise AnnotationError(
            f"{table.place(int(nameless.arg_true()[0]))}: the question "
            f"({table.header[place['question']]}) is blank. Fill it in or remove the row."
        )
    chosen = (column == question) | (column == "")
    rows = Table(table.name, table.frame.filter(chosen), table.header, located(table.locate, chosen.arg_true()))
    return rows, question, counts


def located(locate: Locate | None, rows: pl.Series) -> Locate | None:
    """Return how to find the rows of a table of which only some are left.

    Parameters
    ----------
    locate : callable or None
        Maps a row of the whole table to its line.
    rows : polars.Series of int
        Numbers of the rows that are left.

    Returns
    -------
    callable or None
        Maps one of the remaining rows to its line.
    """
    return None if locate is None else lambda row: locate(int(rows[row]))
