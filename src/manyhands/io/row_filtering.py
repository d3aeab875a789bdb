"""Step 5 of reading: which judgements count as `Annotations`, and an account of those that do not.

The file: the ledger; `code_rows` and `filter_rows`; spellings; stray classes; labels that are no classes; notes on
classes and ids for the reader of the result.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from manyhands._core.arrays import Array, Mask
from manyhands._core.encoding import as_objects, encode
from manyhands._core.patterns import places_of
from manyhands.annotations import ROLES, Annotations, check_duplicates, keep_one
from manyhands.em.firing import is_one_class_table
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io import documents
from manyhands.io.judgements import (
    NON_WORKER_REASONS,
    REASONS,
    UNKNOWN_ORDER,
    Coded,
    Judgements,
    OtherKinds,
    code_columns,
    kind_of_mark,
    order_codes,
    order_of_texts,
)
from manyhands.io.messages import argument, counted, listed, shorten
from manyhands.metrics.position_bias import NO_PLACE, PositionBias, count_positions

# ----------------------------------------------------------------------------------------------------
# The ledger: every row that was read is kept, or excluded for a reason that is counted.


OF_CELLS = ("wide", "survey", "matrix")  # formats with a cell for each item and worker; a blank cell was never a row


@dataclass(frozen=True)
class Ledger:
    """Account of the rows of an export; ``rows_read = kept + sum(excluded.values())``.

    Examples
    --------
    >>> print(Ledger(5, 3, {"no_label": 2}))
    5 rows read, 3 kept, 2 no label
    """

    rows_read: int  # number of rows of the export
    kept: int  # number of rows that became annotations
    # reason -> number of rows, such as ``{"no_label": 3, "duplicate": 1}``
    excluded: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that every row is counted once."""
        missing = self.rows_read - self.kept - sum(self.excluded.values())
        assert missing == 0, f"{missing} rows are unaccounted for"

    def as_dict(self) -> dict[str, object]:
        """Return the ledger as a dict for JSON."""
        return {"rows_read": self.rows_read, "kept": self.kept, "excluded": dict(self.excluded)}

    def __str__(self) -> str:
        """Return the ledger as one line."""
        out = "".join(f", {count} {reason.replace('_', ' ')}" for reason, count in self.excluded.items())
        return f"{self.rows_read} {'row' if self.rows_read == 1 else 'rows'} read, {self.kept} kept{out}"

    def of_format(self, format_name: str) -> str:
        """Return the ledger as one line; of a table with a cell for each worker and item, cells are counted.

        Examples
        --------
        >>> Ledger(6, 4, {"no_label": 2}).of_format("wide")
        '6 cells read, 4 kept, 2 blank'
        """
        if format_name not in OF_CELLS:
            return str(self)
        return re.sub(r"^(\d+) row", r"\1 cell", str(self)).replace(" no label", " blank")


# ----------------------------------------------------------------------------------------------------
# Rows as codes (`code_rows`), and the rows that count as Annotations (`filter_rows`).

Types = Mapping[str, Callable[[str], Any]]
_LONG_AGO = -(2**62)  # microseconds since 1970: before every time that is known


@dataclass(frozen=True)
class Selection:
    """Workers and items to leave out, or to keep alone: ids, patterns, or files with them."""

    exclude_workers: tuple[str, ...] = ()
    only_workers: tuple[str, ...] = ()
    exclude_items: tuple[str, ...] = ()
    only_items: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(vars(self).values())


@dataclass(frozen=True)
class ReadOptions:
    """Options of the caller that say which rows count, and what ids and labels are."""

    duplicates: str = "last"  # which label counts if a worker labelled an item several times
    missing: tuple[str, ...] = ()  # labels that mean "no label", beside blank cells
    abstain: tuple[str, ...] = ()  # labels that mean "looked, and gave no label"
    # role ("item", "worker", "label") -> all its values in the wanted order; None for those that occur
    ids: Mapping[str, Any] | None = None
    types: Types | None = None  # role -> conversion from text
    # label in the file -> label to read instead; an empty text means that there is no label
    label_map: Mapping[str, str] | None = None
    merge_spellings: bool = False  # whether classes and worker ids that differ in spelling only become one
    rare_classes: str = "drop"  # what is done with the labels of stray classes (`manyhands.io.row_filtering`)
    times: bool = False  # whether to return the time of each label
    selection: Selection = Selection()  # workers and items that are left out

    def __post_init__(self) -> None:
        """Check `duplicates`, `rare_classes` and the roles of `types`."""
        check_rare_classes(self.rare_classes)
        check_duplicates(self.duplicates)
        unexpected = set(self.types or ()) - set(ROLES)
        if unexpected:
            raise ParameterError(f"`types` names {sorted(unexpected)}; allowed are {', '.join(ROLES)}.")


@dataclass(frozen=True)
class Rows:
    """Judgements as codes, without their text."""

    coded: dict[str, Coded]  # role -> codes and distinct values
    empty: dict[str, Mask]  # role -> where a cell is null, white space, or a word for a missing label
    blank: npt.NDArray[np.intp]  # numbers of the rows that are blank lines
    abstained: Mask  # where the worker looked and gave no label
    renamed: _Renamed = field(default_factory=dict)  # role -> {spelling in the file: name}, for the names that changed
    notes: dict[str, str] = field(default_factory=dict)  # notes on spellings: code -> sentence

    def values(self, role: str) -> pl.Series:
        """Return the distinct texts of a role."""
        return self.coded[role].values


class Kept(NamedTuple):
    """What becomes of the rows: those that count, and an account of the others."""

    annotations: Annotations
    ledger: Ledger
    notes: dict[str, str]  # on stray classes
    times: npt.NDArray[np.int64] | None  # of each label; None without times, and unless they were asked for
    working_time: dict[Any, npt.NDArray[np.float64]]  # worker -> seconds of their labels
    position_bias: dict[Any, PositionBias]  # worker -> how their verdicts depend on the order of presentation


def code_rows(judgements: Judgements, labels: pl.Series, options: ReadOptions) -> Rows:
    """Encode items, workers and labels as integers; the text, which is most of the memory, can then be freed."""
    coded = code_columns({"item": judgements.item, "worker": judgements.worker, "label": labels})
    counting = slice(None) if judgements.reason is None else judgements.reason.is_null().to_numpy()
    coded, renamed, notes = clean(coded, counting, options.label_map or {}, options.merge_spellings)
    missing = {"label": [word.strip() for word in options.missing]}
    empty = {role: _empty(column, missing.get(role, ())) for role, column in coded.items()}
    blank = _blank_lines(judgements, empty["item"] & empty["worker"] & empty["label"])
    abstained = _says(coded["label"], options.abstain)
    empty["label"] |= abstained
    for role, convert in (options.types or {}).items():
        coded[role] = _merged(coded[role], empty[role], convert, role)
    return Rows(coded, empty, blank, abstained, renamed, notes)


def filter_rows(judgements: Judgements, rows: Rows, options: ReadOptions, known_classes: Collection[str] = ()) -> Kept:
    """Return the judgements that count as Annotations, and what became of every row.

    A row is excluded for the first of these reasons that holds: the reason that the format gives, a blank line, an
    abstention, no label, a worker or an item that is left out, another answer of the same worker to the same item, a
    stray class. A label without an item or a worker is an error, not excluded.
    """
    coded, empty = rows.coded, rows.empty
    reason = _given_reasons(judgements, len(coded["item"].codes))  # (n_rows,) 0 where the row counts so far
    reason[rows.blank[reason[rows.blank] == 0]] = _CODE["blank"]
    _refuse_nameless(judgements, reason == 0, empty)
    reason[(reason == 0) & rows.abstained] = _CODE["abstained"]
    reason[(reason == 0) & empty["label"]] = _CODE["no_label"]
    left_out, selection_notes = _leave_out(coded, reason, options.selection, judgements.source)
    _drop_repeats(judgements, coded, reason, options.duplicates)
    strays = _treat_strays(coded, reason, options, known_classes)
    notes = selection_notes | strays | _abstention_note(rows, options)
    counts = Counter(dict(zip(_NAMES, np.bincount(reason, minlength=len(_NAMES)).tolist())))
    ledger = Ledger(len(reason), counts.pop("kept"), {name: n for name, n in counts.items() if n})
    counting = {"item": ~empty["item"], "worker": ~empty["worker"], "label": reason == 0}
    for role, values in left_out.items():
        counting[role] &= ~values[coded[role].codes]
    if judgements.reason is not None:
        counting["worker"] &= ~np.isin(reason, [_CODE[name] for name in NON_WORKER_REASONS])
    kept = counting["label"] if ledger.kept < len(reason) else slice(None)
    parts = [_ids_and_codes(coded[role], counting[role], kept, role, options) for role in ROLES]
    working_time = _time_by_worker(judgements.seconds, kept, *parts[ROLES.index("worker")])
    order = _known_order(coded["item"], parts[0][1], options)
    weight = _weights_of(judgements, kept, len(parts[0][0]), options.duplicates)
    time = judgements.time if options.times and weight is None else None  # rows that share a vote have no one time
    times = _times_of_labels(time, kept, [part[0] for part in parts], _LONG_AGO)
    bias = _position_bias(judgements, kept, parts)
    return Kept(_build_annotations(parts, order, weight, options.duplicates), ledger, notes, times, working_time, bias)


_EXCLUDED = ("excluded_worker", "excluded_item")
_NAMES = ("kept", *REASONS, "abstained", "no_label", *_EXCLUDED, "duplicate", "stray_class")
_CODE = {name: code for code, name in enumerate(_NAMES)}


def _given_reasons(judgements: Judgements, n_rows: int) -> npt.NDArray[np.int8]:
    """Return the code of the reason that the format gives for each row, 0 where it gives none."""
    if judgements.reason is None:
        return np.zeros(n_rows, np.int8)
    unexpected = set(judgements.reason.unique().drop_nulls()) - set(REASONS)
    assert not unexpected, f"{judgements.format} gives unknown reasons: {unexpected}"
    return judgements.reason.fill_null("kept").replace_strict(_CODE, return_dtype=pl.Int8).to_numpy(writable=True)


def _empty(column: Coded, missing: Sequence[str]) -> Mask:
    """Return (n_rows,) where a cell is null, white space, or one of the words for a missing label."""
    stripped = column.values.str.strip_chars()
    nothing = ((stripped == "") | stripped.is_in(list(missing))).to_numpy()
    if not nothing.any() and column.codes.min(initial=0) >= 0:  # the usual case: nothing is copied
        return np.zeros(len(column.codes), bool)
    return np.append(nothing, True)[column.codes]  # code -1, null, takes the last entry


def _says(column: Coded, words: Sequence[str]) -> Mask:
    """Return (n_rows,) where a cell is one of the words; outer space does not count."""
    if not words:
        return np.zeros(len(column.codes), bool)
    is_word = column.values.str.strip_chars().is_in([word.strip() for word in words]).to_numpy()
    return np.append(is_word, False)[column.codes]  # code -1, null, takes the last entry


def _abstention_note(rows: Rows, options: ReadOptions) -> dict[str, str]:
    """Return the note on words for an abstention that no row has."""
    texts = {text.strip() for text in rows.values("label").to_list()}
    absent = [word for word in options.abstain if word.strip() not in texts]
    if not absent:
        return {}
    return {
        "no_abstention": f"No row has the label {listed(absent)}, which `abstain=` names, so nobody abstained by it."
    }


def _merged(column: Coded, empty: Mask, convert: Callable[[str], Any], role: str) -> Coded:
    """Give texts that convert to the same value the same code, so that repeated labels are recognised."""
    non_blank = np.zeros(len(column.values), bool)
    non_blank[column.codes[~empty]] = True
    texts = column.values.to_list()
    first_of: dict[Any, int] = {}
    code = np.arange(len(texts) + 1, dtype=np.int32)
    code[-1] = -1  # of null
    for at in np.flatnonzero(non_blank).tolist():
        code[at] = first_of.setdefault(_converted(texts[at], convert, role), at)
    return Coded(code[column.codes], column.values)


def _blank_lines(judgements: Judgements, candidates: Mask) -> npt.NDArray[np.intp]:
    """Return the rows in which every cell of the file is empty."""
    rows = np.flatnonzero(candidates)
    if judgements.other_columns is None or not len(rows):
        return rows
    non_blank = [
        any(cell and cell.strip() for cell in row) for row in judgements.other_columns[rows.tolist()].iter_rows()
    ]
    return rows[~np.array(non_blank)]


def _leave_out(
    coded: Mapping[str, Coded], reason: npt.NDArray[np.int8], selection: Selection, source: str
) -> tuple[dict[str, Mask], dict[str, str]]:
    """Mark the rows of workers and items that are left out, in place; return which values these are, and notes.

    Shapes: returns values (n_values + 1,), of which the last is for null.
    """
    rows_of: dict[str, Mask] = {}
    notes: dict[str, str] = {}
    for role in ("worker", "item"):
        names = [f"exclude_{role}s", f"only_{role}s"]
        given = [name for name in names if getattr(selection, name)]
        if not given:
            continue
        texts = coded[role].values.to_list()
        gone = np.zeros(len(texts) + 1, bool)
        for name in given:
            named, note = find_ids(texts, getattr(selection, name), role, name, source)
            gone[:-1] |= named if name.startswith("exclude") else ~named
            notes |= note
        rows = (reason == 0) & gone[coded[role].codes]
        reason[rows] = _CODE[f"excluded_{role}"]
        here = np.unique(coded[role].codes[rows])
        rows_of[role] = gone
        notes[f"excluded_{role}s"] = (
            f"{counted(len(here), role)} with {counted(int(rows.sum()), 'label')} "
            f"{'was' if len(here) == 1 else 'were'} left out, as {' and '.join(f'`{name}`' for name in given)} "
            f"{'ask' if len(given) > 1 else 'asks'}."
        )
    return rows_of, notes


def find_ids(
    texts: Sequence[str], given: Sequence[str], role: str, parameter: str, source: str
) -> tuple[Mask, dict[str, str]]:
    """Return which ids are meant by ids, patterns, lists of them with commas, and files; and notes on files.

    Shapes: texts (n,); returns (n,).
    """
    mask, ids, notes = np.zeros(len(texts), bool), set(texts), dict[str, str]()
    for text in given:
        if text in ids:
            mask |= places_of(texts, text, role)
        elif Path(text).is_file():
            names = _names_in(Path(text), role)
            here = [name for name in names if name in ids]
            if not here:
                raise ParameterError(
                    f"`{parameter}`: {text} names no {role} of {source}. It must have an id in each line, or a "
                    f"column {role}."
                )
            mask |= places_of(texts, here, role)
            if len(here) < len(names):
                unknown = counted(len(names) - len(here), "id")
                notes[f"unknown_{role}s"] = f"{unknown} of {Path(text).name} are no {role}s of {source}."
        else:
            try:
                mask |= places_of(texts, [part.strip() for part in text.split(",") if part.strip()], role)
            except ParameterError as error:
                raise ParameterError(
                    f"`{parameter}`: {error} It takes ids and patterns of {source}, separated by commas, or a file of "
                    f"ids."
                ) from None
    return mask, notes


def _names_in(path: Path, role: str) -> list[str]:
    """Return the ids of a file: the column of a table that is called like the role, or one in each line."""
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path} is not a text file of {role}s: {error}.") from None
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if role in header:
        at, rows = header.index(role), rows[1:]
        return list(dict.fromkeys(row[at].strip() for row in rows if len(row) > at and row[at].strip()))
    lines = (",".join(row).strip() for row in rows)
    return list(dict.fromkeys(line for line in lines if line))


def _refuse_nameless(judgements: Judgements, counts: Mask, empty: Mapping[str, Mask]) -> None:
    """Refuse a row without an item, and a label without a worker: both are errors in the file."""
    for role, wrong in (("item", empty["item"]), ("worker", empty["worker"] & ~empty["label"])):
        rows = np.flatnonzero(counts & wrong)
        if len(rows):
            where = judgements.mapping.get(role, role)
            merged = " Of merged cells, only the first has a value: unmerge them and fill them down."
            raise AnnotationError(
                f"{judgements.place(int(rows[0]))}: the {role} ({where}) is blank. "
                f"Fill it in or remove the row; {len(rows)} such row(s) in all."
                f"{merged if len(rows) > 1 and rows[0] > 0 else ''}"
            )


def _drop_repeats(
    judgements: Judgements, coded: Mapping[str, Coded], reason: npt.NDArray[np.int8], policy: str
) -> None:
    """Mark all but one answer of a worker to an item as duplicates, in place; rows without a time are the oldest."""
    later = judgements.weight is not None or policy == "share"  # left to `_build_annotations`
    n_workers = len(coded["worker"].values)
    if policy == "all" or later or not judgements.workers_known:  # votes without workers have no duplicates
        return
    rows = None if not reason.any() else np.flatnonzero(reason == 0)  # all count in most tables: nothing is copied
    chosen: Any = slice(None) if rows is None else rows
    item, worker = coded["item"].codes[chosen], coded["worker"].codes[chosen]
    if judgements.swapped is not None:  # a judge who sees a pair in another order is asked something else
        order_of_row = order_codes(judgements.swapped)[chosen]
        worker, n_workers = worker * (UNKNOWN_ORDER + 1) + order_of_row, n_workers * (UNKNOWN_ORDER + 1)
    time = judgements.time
    order = None if time is None else np.argsort(time.fill_null(_LONG_AGO).to_numpy()[chosen], kind="stable")
    keep = keep_one(item, worker, n_workers, order, "first" if policy == "error" else policy)
    if keep.all():
        return
    if policy == "error":
        at = np.arange(len(reason))[chosen][np.flatnonzero(~keep)[0]]
        who, what = (str(coded[role].values[int(coded[role].codes[at])]) for role in ("worker", "item"))
        raise AnnotationError(
            f"{judgements.place(int(at))}: worker {shorten(who)!r} labels item {shorten(what)!r} again; "
            f"{int((~keep).sum())} such row(s). Choose with `duplicates=`: last, first, share or all."
        )
    reason[np.flatnonzero(~keep) if rows is None else rows[~keep]] = _CODE["duplicate"]


def _treat_strays(
    coded: dict[str, Coded], reason: npt.NDArray[np.int8], options: ReadOptions, classes: Collection[str]
) -> dict[str, str]:
    """Exclude, merge or refuse the labels of stray classes, in place; return the note on them."""
    if (options.ids or {}).get("label") is not None:  # the caller says what the classes are
        return {}
    rows: Any = slice(None) if not reason.any() else np.flatnonzero(reason == 0)
    is_stray, strays = find_strays(coded, rows, classes)
    if not strays.counts:
        return {}
    policy, labels = options.rare_classes, coded["label"]
    if policy == "error":
        raise AnnotationError(f"stray_classes: {strays.note(policy)}")
    if policy.startswith(_MERGE):
        coded["label"] = rename(labels, dict.fromkeys(strays.counts, _merge_target(labels, policy, strays)))
    elif policy == "drop":
        at = np.arange(len(reason))[rows]
        reason[at[is_stray[labels.codes[at]]]] = _CODE["stray_class"]
    return {"stray_classes": strays.note(policy)}


def _ids_and_codes(
    column: Coded, mask: Mask, kept: Any, role: str, options: ReadOptions
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return the codes of the rows that count, and the values they stand for: those that occur, or those given."""
    convert = (options.types or {}).get(role)
    given_ids = (options.ids or {}).get(role)
    present = np.full(len(column.values), mask.all())
    if not mask.all():
        present[column.codes[mask]] = True
    if convert is None and given_ids is None:
        ids = (column.values if present.all() else column.values.filter(pl.Series(present))).to_numpy()
        if present.all():
            return column.codes[kept], ids
        return (np.cumsum(present, dtype=np.int32) - 1)[column.codes[kept]], ids
    texts = column.values.filter(pl.Series(present)).to_list()
    values = texts if convert is None else [_converted(text, convert, role) for text in texts]
    try:
        new, ids = encode(as_objects(values), given_ids, role, by_appearance=role == "item")
    except AnnotationError as error:
        hint = " Ids are read as text unless `types=` says otherwise." if convert is None else ""
        raise AnnotationError(f"{error}{hint}") from None
    return new[(np.cumsum(present) - 1)[column.codes[kept]]], ids


def _known_order(column: Coded, ids: npt.NDArray[Any], options: ReadOptions) -> dict[str, Any]:
    """Return the order that sorts the items, where each text of the column is one: texts sort faster than objects."""
    chosen = (options.types or {}).get("item"), (options.ids or {}).get("item")
    if any(value is not None for value in chosen) or len(ids) < len(column.values):
        return {}
    order = order_of_texts(column.values)
    return {"sorting_order": None if bool(np.all(order[1:] > order[:-1])) else order}


def _converted(text: str, convert: Callable[[str], Any], role: str) -> Any:
    """Convert one text to the wanted type."""
    try:
        return convert(text)
    except (TypeError, ValueError) as error:
        name = f"The {role} {shorten(text)!r} is not {getattr(convert, '__name__', str(convert))}"
        raise AnnotationError(f"{name}: {error}. Read it as text.") from None


def _times_of_labels(
    times: pl.Series | None, kept: Any, triples: Sequence[npt.NDArray[np.int32]], unknown: int
) -> npt.NDArray[np.int64] | None:
    """Return the time of each label in the order of the annotations.

    Shapes: triples (n_kept,); returns (n_kept,).
    """
    if times is None:
        return None
    item, worker, label = triples
    order = np.lexsort((label, worker, item))
    sorted_times: npt.NDArray[np.int64] = times.fill_null(unknown).to_numpy()[kept][order]
    return sorted_times


def _time_by_worker(
    seconds: pl.Series | None, kept: Any, worker: npt.NDArray[np.int32], worker_ids: npt.NDArray[Any]
) -> dict[Any, npt.NDArray[np.float64]]:
    """Collect the working times of each worker's labels.

    Shapes: worker (n_kept,); worker_ids (n_workers,).
    """
    if seconds is None:
        return {}
    values = seconds.to_numpy()[kept]
    timed = np.flatnonzero(np.isfinite(values))
    order = timed[np.argsort(worker[timed], kind="stable")]
    if not len(order):
        return {}
    codes, first = np.unique(worker[order], return_index=True)
    ids = worker_ids[codes].tolist()
    return dict(zip(ids, np.split(values[order].astype(float), first[1:])))


def _position_bias(
    judgements: Judgements, kept: Any, parts: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[Any]]]
) -> dict[Any, PositionBias]:
    """Return how the verdicts of each worker depend on the order of presentation, where it is known."""
    if judgements.swapped is None:
        return {}
    (item, _), (worker, worker_ids), (label, _) = parts
    order = order_codes(judgements.swapped)[kept]
    place = np.full(len(order), NO_PLACE, np.int8)
    if judgements.names_first is not None:
        first = judgements.names_first.cast(pl.Int8).fill_null(UNKNOWN_ORDER).to_numpy()[kept]
        place[first != UNKNOWN_ORDER] = 1 - first[first != UNKNOWN_ORDER]
    has_order = order != UNKNOWN_ORDER
    columns = item[has_order], worker[has_order], label[has_order], order[has_order] == 1, place[has_order]
    return dict(zip(worker_ids.tolist(), count_positions(*columns, len(worker_ids))))


def _weights_of(judgements: Judgements, kept: Any, n_kept: int, duplicates: str) -> Array | None:
    """Return the weights of the rows that count.

    Shapes: returns (n_kept,).
    """
    if judgements.weight is not None:
        return np.asarray(judgements.weight.to_numpy()[kept])
    return np.ones(n_kept) if duplicates == "share" and judgements.workers_known else None


def _build_annotations(
    parts: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[Any]]],
    order: dict[str, Any],
    weight: Array | None,
    duplicates: str,
) -> Annotations:
    """Return the rows that count as Annotations.

    Shapes: weight (n_rows,).
    """
    codes, ids = [codes for codes, _ in parts], [ids for _, ids in parts]
    if weight is None:
        return Annotations.from_codes(codes, ids, **order)
    return Annotations._from_weighted(codes, ids, weight, duplicates)


# ----------------------------------------------------------------------------------------------------
# Names that differ in spelling only: `clean` applies the caller's map of labels, then finds names that differ in case,
# space or Unicode form, and merges them into the most frequent spelling on request.

# Final characters that people add or omit. Others may distinguish classes: "A-" and "A", "C#" and "C", ":)" and ":(".
_FINAL_PUNCTUATION = ".,;:!\u2026\u3002\uff0c\uff1b\uff1a\uff01"


def fold_id(name: str) -> str:
    """Return the same text for ids that differ in case, outer space or Unicode form only.

    Examples
    --------
    >>> fold_id(" Ann@example.org") == fold_id("ann@example.org")
    True
    """
    return normalize("NFKC", normalize("NFKC", name).casefold()).strip()


def fold_class(name: str) -> str:
    """Return the same text for classes that differ in case, outer space, Unicode form or final punctuation only.

    Examples
    --------
    >>> fold_class("YES ") == fold_class("yes."), fold_class("A-") == fold_class("A"), fold_class("!")
    (True, False, '!')
    """
    folded = fold_id(name)
    return folded.rstrip(_FINAL_PUNCTUATION).rstrip() or folded


def spelling_groups(counts: Mapping[str, int], fold: Callable[[str], str]) -> list[list[str]]:
    """Return the groups of names that differ in spelling only, the most frequent name of each group first.

    Examples
    --------
    >>> spelling_groups({"yes": 2, "no": 7, "Yes": 5}, fold_class)
    [['Yes', 'yes']]
    """
    alike: dict[str, list[str]] = {}
    for name in counts:
        alike.setdefault(fold(name), []).append(name)
    return [
        sorted(names, key=lambda name: (-counts[name], name != name.strip(), name))
        for names in alike.values()
        if len(names) > 1
    ]


_Renamed = dict[str, dict[str, str]]
_FOLDS: dict[str, Callable[[str], str]] = {"label": fold_class, "worker": fold_id}
_PLURALS = {"label": "classes", "worker": "worker ids"}
_CODES = {"label": "classes", "worker": "workers"}
_MOST_GROUPS = 5  # in a note
_DIFFERENCE = {
    "label": "case, spaces, Unicode form or final punctuation",
    "worker": "case, spaces or Unicode form",
}


def clean(
    coded: Mapping[str, Coded], counting: Mask | slice, label_map: Mapping[str, str], merge_spellings: bool
) -> tuple[dict[str, Coded], _Renamed, dict[str, str]]:
    """Return the columns under their new names, role -> {spelling in the file: name}, and notes by code.

    Shapes: counting (n_rows,).
    """
    columns, renamed, notes = dict(coded), {"label": dict[str, str](), "worker": dict[str, str]()}, dict[str, str]()
    if label_map:
        texts = columns["label"].values.to_list()
        new_names = {text: new for text in texts if (new := _mapped(text, label_map)) != text}
        columns["label"] = rename(columns["label"], new_names)
        renamed["label"] |= new_names
        unused = [name for name in label_map if name not in texts and name not in {t.strip() for t in texts}]
        if unused:
            names = listed([repr(shorten(name)) for name in unused])
            notes["label_map_unused"] = f"The label map names labels that the export does not have: {names}."
    for role, fold in _FOLDS.items():
        groups = spelling_groups(_counts(columns[role], counting if role == "label" else slice(None)), fold)
        if not groups:
            continue
        if merge_spellings:
            chosen = {other: names[0] for names in groups for other in names[1:]}
            columns[role] = rename(columns[role], chosen)
            earlier = {old: chosen.get(new, new) for old, new in renamed[role].items()}
            renamed[role] = chosen | earlier
        notes |= _note(role, groups, merge_spellings)
    return columns, {role: names for role, names in renamed.items() if names}, notes


def rename(column: Coded, names: Mapping[str, str]) -> Coded:
    """Give values new names; values that get the same name become one.

    Examples
    --------
    >>> codes, values = rename(Coded(np.array([0, 1, 2, -1], np.int32), pl.Series(["NO", "no", "yes"])), {"NO": "no"})
    >>> codes.tolist(), values.to_list()
    ([0, 0, 1, -1], ['no', 'yes'])
    """
    if not names:
        return column
    new = [names.get(text, text) for text in column.values.to_list()]
    values = sorted(set(new))
    place = {text: code for code, text in enumerate(values)}
    code: npt.NDArray[np.int32] = np.array([*(place[text] for text in new), -1], np.int32)  # code -1, null, stays
    return Coded(code[column.codes], pl.Series(values, dtype=pl.String))


def _mapped(text: str, label_map: Mapping[str, str]) -> str:
    """Return the label to read for a text: the map may name it with or without outer space."""
    return label_map.get(text, label_map.get(text.strip(), text))


def _counts(column: Coded, rows: Mask | slice) -> dict[str, int]:
    """Return the number of rows of each value that occurs in these rows, blank ones left out."""
    codes = column.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(column.values)).tolist()
    return {text: n for text, n in zip(column.values.to_list(), counts) if n and text.strip()}


def _note(role: str, groups: Sequence[Sequence[str]], merged: bool) -> dict[str, str]:
    """Return the note on names that differ in spelling only."""
    n_names = sum(map(len, groups))
    shown = _several([_joined(names) for names in groups])
    if merged:
        what = f"{n_names} spellings of {_PLURALS[role]} were merged into {len(groups)}"
        each = _several([f"{_joined(names[1:])} into {shorten(names[0])!r}" for names in groups])
        return {f"merged_{_CODES[role]}": f"{what}, the most frequent spelling of each: {each}."}
    remedy = "Add `merge_spellings=True` to merge them"
    by_map = ", or `label_map=` to rename some of them" if role == "label" else ""
    return {
        f"look_alike_{_CODES[role]}": f"{n_names} {_PLURALS[role]} differ in {_DIFFERENCE[role]} only, and were kept "
        f"apart: {shown}. {remedy}{by_map}."
    }


def _several(groups: Sequence[str]) -> str:
    """Return the first groups, and the number of the others."""
    more = f"; and {len(groups) - _MOST_GROUPS} more" if len(groups) > _MOST_GROUPS else ""
    return "; ".join(groups[:_MOST_GROUPS]) + more


def _joined(names: Sequence[str]) -> str:
    """Return names that can be told apart: with escapes where they look the same."""
    look_the_same = len({normalize("NFKC", name) for name in names}) < len(names)
    return " and ".join((ascii if look_the_same else repr)(shorten(name)) for name in names)


# ----------------------------------------------------------------------------------------------------
# Stray classes: labels so rare and so isolated that they are probably typing errors.
#
# Two such classes among 145,959 labels of four classes cost the default method seven points of accuracy: an extra class
# takes posterior mass from all others.

RARE_CLASSES = ("drop", "keep", "error")
_MERGE = "merge:"
# A stray class has fewer than 1 label in `_ONE_IN` labels, so that no crowd below 20,000 labels has one: there a class
# of one label may be meant.
_ONE_IN = 20_000
MOST_LABELS = 5  # labels of a stray class, however large the crowd: a typing error is rarely made more often
_MOST_OF_ALL = 1_000  # if more than 1 label in this number would be stray, rare classes are common: none is stray


@dataclass(frozen=True)
class Strays:
    """Stray classes of an export."""

    counts: dict[str, int]  # class -> number of labels
    n_labels: int  # number of all labels

    def note(self, policy: str) -> str:
        """Return the sentence that says what was found, what was done with it, and what else can be done."""
        n = sum(self.counts.values())
        names = listed([f"{shorten(name)!r} ({counted(n, 'label')})" for name, n in self.counts.items()])
        done = {
            "drop": "were left out of the model; their items are kept",
            "keep": "were kept as classes",
            "error": 'were refused, as `rare_classes="error"` asks',
        }.get(policy, f"were counted as {policy.removeprefix(_MERGE)!r}")
        return (
            f"{names} among {self.n_labels} labels: so rare, and never chosen by two workers for one item, that they "
            f"may be typing errors. {'They' if n > 1 else 'It'} {done if n > 1 else done.replace('were', 'was')}. "
            f"`rare_classes=` decides: keep, drop, merge:LABEL or error."
        )


def check_rare_classes(policy: str) -> None:
    """Refuse a policy for stray classes that does not exist."""
    if policy not in RARE_CLASSES and not (policy.startswith(_MERGE) and policy.removeprefix(_MERGE).strip()):
        raise ParameterError(f"`rare_classes` is {policy!r}; allowed are keep, drop, error and merge:LABEL.")


def find_strays(
    coded: dict[str, Coded],
    rows: npt.NDArray[np.intp] | slice,
    classes: Collection[str],
    *,
    n_labels: int | None = None,
) -> tuple[npt.NDArray[np.bool_], Strays]:
    """Find the classes with at most five labels, fewer than 1 in 20,000, that no two workers chose for one item.

    Shapes: returns is_stray (n_values,).
    """
    item, worker, label = (coded[role].codes[rows] for role in ("item", "worker", "label"))
    values = coded["label"].values
    n_labels = len(label) if n_labels is None else n_labels
    counts = np.bincount(label, minlength=len(values))
    is_stray = (counts > 0) & (counts <= MOST_LABELS) & (counts * _ONE_IN < n_labels)
    if not is_stray.any():
        return is_stray, Strays({}, n_labels)
    names, here = values.to_list(), np.flatnonzero(is_stray[label])
    chosen: dict[tuple[int, int], set[int]] = {}  # (class, item) -> workers
    for code, at, who in zip(label[here].tolist(), item[here].tolist(), worker[here].tolist()):
        chosen.setdefault((code, at), set()).add(who)
    for (code, _), workers in chosen.items():
        is_stray[code] &= len(workers) == 1 and names[code] not in classes
    if counts[is_stray].sum() * _MOST_OF_ALL > n_labels:
        is_stray[:] = False
    return is_stray, Strays({names[code]: int(counts[code]) for code in np.flatnonzero(is_stray)}, n_labels)


def _merge_target(coded: Coded, policy: str, strays: Strays) -> str:
    """Return the class that stray labels are counted as."""
    wanted, names = policy.removeprefix(_MERGE).strip(), coded.values.to_list()
    if wanted not in names or wanted in strays.counts:
        others = [name for name in names if name not in strays.counts]
        raise AnnotationError(
            f"`rare_classes` is {policy!r}, and the export has no other class {wanted!r}. It has: {listed(others)}."
        )
    return wanted


# ----------------------------------------------------------------------------------------------------
# Labels that cannot be classes although they are text: sentences, nearly all different, or marks written as JSON.

# Labels of a list of classes repeat, answers in a worker's own words do not. A refusal by mistake costs more than a
# missed one, which the results show at once; so both shares are far from those of classes, which are near 0.
_FEWEST = 20  # labels below which nothing is concluded from their number of classes
_DIFFERENT = 0.6  # share of labels that occur once, from which on sentences are free text
_ALL_DIFFERENT = 0.9  # the same for labels of a word or two, which may be classes of a long list
_WORDS = 3  # words of a sentence
_LOOKED_AT = 200  # texts that are looked at; enough to see what most of them are


def refuse_labels(classes: npt.NDArray[Any], counts: npt.NDArray[np.int64], source: str, question: str) -> str | None:
    """Return why the labels of a question are not classes, if so.

    Shapes: classes (n_classes,); counts (n_classes,).
    """
    if not len(classes) or not all(isinstance(name, str) for name in classes[:_LOOKED_AT]):
        return None
    marks = _marks(classes, counts, question)
    if marks is not None:
        return marks.refusal(source)
    n_once, n_labels = int((counts == 1).sum()), int(counts.sum())
    if n_labels < _FEWEST or n_once < _DIFFERENT * n_labels:
        return None
    texts = [str(name) for name in classes[counts == 1][:_LOOKED_AT]]
    n_sentences = sum(len(text.split()) >= _WORDS for text in texts)
    all_different = n_once >= _ALL_DIFFERENT * n_labels and not all(map(_is_number, texts))
    if 2 * n_sentences < len(texts) and not all_different:
        return None
    return (
        f"{source}: the labels of {question!r} look like free text: {n_once} of {n_labels} occur only once, such as "
        f"{shorten(texts[0])!r}. manyhands compares classes that workers choose from a list; group the texts into "
        f"classes with `label_map=`, or name the column of classes with `label=` or `question=`."
    )


def _marks(classes: npt.NDArray[Any], counts: npt.NDArray[np.intp], question: str) -> OtherKinds | None:
    """Return what marks of parts of items most labels are, if so."""
    written = [at for at, name in enumerate(classes[:_LOOKED_AT]) if str(name).lstrip()[:1] in ("[", "{")]
    if 2 * counts[written].sum() < counts[:_LOOKED_AT].sum():
        return None
    kinds = OtherKinds()
    for at in written:
        try:
            kind = kind_of_mark(documents.loads(str(classes[at])))
        except orjson.JSONDecodeError:
            kind = None
        if kind is not None:
            kinds.add(kind, question)
    return kinds or None


def _is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


# ----------------------------------------------------------------------------------------------------
# Notes on items that look alike, numbers in two notations, and classes that may mean a missing label.

_MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "nil", "-", "?")  # texts that often mean a missing label
_ABSTENTIONS = ("abstain", "abstained", "abstention")  # texts that mean that a worker looked and gave no label
_SHEET_ERRORS = ("#n/a", "#ref!", "#value!", "#name?", "#div/0!", "#num!", "#null!")  # errors of a spreadsheet
# Answers of people, and of programs in their place, that say that there is no answer; matched as a whole.
_NO_ANSWERS = re.compile(
    r"(i )?(don['’]?t|do not|cannot|can['’]?t|can not|could not|couldn['’]?t) "
    r"(know|say|tell|decide|judge|determine|answer)( (it|this|that))?"
    r"|no (answer|opinion|response)|(un)?able to (decide|answer)|refused to answer|skip(ped)?"
    r"|(ich )?wei(ß|ss)( es)?( ich)? nicht|keine (ahnung|angabe|antwort)|k\. ?a\."
    r"|(kann ich |ich kann )?nicht (entscheidbar|beurteilbar|entscheiden|beurteilen|sagen)|kann (ich )?nicht \w+"
    r"|(je )?(ne )?sais pas|ne sait pas|sans (avis|réponse)|(yo )?no (lo )?(sé|se|sabe)|no contesta|ns/nc|non (lo )?so"
    r"|(ik )?weet (ik )?(het )?niet|não sei|nie wiem|vet (ej|inte)|не знаю|不知道|わからない",
    re.IGNORECASE,
)
# Beginnings of messages of programs: of an interface that failed, or a model that declines.
_FAILURES = re.compile(
    r"((\w+ )?error|exception|fehler|\w+(error|exception)) ?:|(http )?(error|status)( code)? \d{3}|traceback \("
    r"|.{0,20}(rate limit|timed? ?out\b)|(i['’]m|i am) (sorry|unable|not able)|sorry,|as an ai\b"
    r"|i (cannot|can['’]t|can not) ",
    re.IGNORECASE,
)
_MOST_OFFERED = 5  # classes in the remedy of a note
_MAX_PAIRS = 3  # of ids that look alike, in a note
_FEWEST_CLASSES = 3  # an abstention and two classes: of two classes, either may be the one that means nothing
_MOST_CELLS = 4_000_000  # workers times classes; a table of more would be in the way of large exports
_MONTH = "jan|feb|m[aä]r|mrz|apr|may|mai|jun|jul|aug|sep|o[ck]t|nov|de[cz]"
_DATE = re.compile(rf"\d{{1,2}}[.\- ]+({_MONTH})\.?|({_MONTH})[.\- ]+\d{{1,2}}", re.IGNORECASE)
_FORMULA = re.compile(r"=\s*[A-Za-z$+(-].*[()$0-9]")


def notes_on_names(annotations: Annotations) -> dict[str, str]:
    """Return notes on items that look alike, numbers in two notations, and classes that may mean no label."""
    notes = {}
    items, classes = _texts(annotations.item_ids.tolist()), _texts(annotations.classes.tolist())
    pairs = [] if "".join(items).isascii() else _find_look_alikes(items)
    if pairs:
        notes["look_alike_ids"] = _look_alike_note(pairs)
    folded: dict[Decimal, list[str]] = {}
    for name in classes:
        number = _as_number(name)
        if number is not None:
            folded.setdefault(number, []).append(name)
    alike = [" and ".join(map(repr, names)) for names in folded.values() if len(names) > 1]
    if alike:
        notes["look_alike_numbers"] = (
            f"Some classes are the same number in another notation, and were kept apart: {listed(alike)}. "
            f"`label_map=` renames them."
        )
    formulas = [name for name in classes if _FORMULA.fullmatch(name.strip())]
    if formulas:
        notes["class_like_formula"] = (
            f"{_kept_as_classes(formulas[:3])}: formulas of a spreadsheet instead of their results. "
            f"Save the table with values."
        )
    dates = [name for name in classes if _DATE.fullmatch(name.strip())]
    if dates:
        notes["class_like_date"] = (
            f"{_kept_as_classes(dates[:3])}. A spreadsheet turns labels such as 1-2 into dates; if it did so here, "
            f"`label_map=` renames them."
        )
    every = list(map(str, annotations.classes.tolist()))
    by_use = _abstention_by_use(annotations)
    abstentions = [name for k, name in enumerate(every) if k == by_use or name.strip().casefold() in _ABSTENTIONS]
    if abstentions:
        remedy = f"add {argument('abstain', *(name.strip() for name in abstentions))}"
        notes["class_like_abstention"] = (
            f"{_kept_as_classes(abstentions)}. If that means that the worker looked and gave no label, {remedy}."
        )
    missing_words = [name for name in classes if may_mean_missing(name)]
    if missing_words:
        notes["class_like_missing"] = missing_note(missing_words)
    return notes


def missing_note(names: Sequence[str]) -> str:
    """Return the note on classes that may mean that there is no label."""
    remedy = f"add {argument('missing', *(name.strip() for name in names[:_MOST_OFFERED]))}"
    more = len(names) - _MOST_OFFERED
    others = f", and the same for {more} more that look alike" if more > 0 else ""
    kept = _kept_as_classes([shorten(name) for name in names[:_MOST_OFFERED]])
    return f"{kept}. If that means that there is no label, {remedy}{others}."


def may_mean_missing(name: str) -> bool:
    """Whether a class may mean that there is no label.

    Examples
    --------
    >>> may_mean_missing("N/A"), may_mean_missing("I cannot decide."), may_mean_missing("ERROR: rate limit")
    (True, True, True)
    >>> may_mean_missing("no"), may_mean_missing("error"), may_mean_missing("unsure")
    (False, False, False)
    """
    text = name.strip().casefold()
    if text in _MISSING_WORDS + _SHEET_ERRORS:
        return True
    text = normalize("NFC", name.strip())
    is_answer = _NO_ANSWERS.fullmatch(text.rstrip(_FINAL_PUNCTUATION)) or _NO_ANSWERS.fullmatch(text)
    return bool(is_answer or _FAILURES.match(text))


def _abstention_by_use(annotations: Annotations) -> int | None:
    """Return the class beside which workers use one class each, whatever its name; None where there is none.

    It may mean that the worker looked and gave no label: -1 of labelling functions, "nothing" of moderators. In an
    ordinary crowd it is a class, and workers use several others beside it.
    """
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    if annotations.weight is not None or n_classes < _FEWEST_CLASSES or n_workers * n_classes > _MOST_CELLS:
        return None
    cell = annotations.worker.astype(np.int64) * n_classes + annotations.label
    counts = np.bincount(cell, minlength=n_workers * n_classes).reshape(n_workers, n_classes)
    usual = int((counts > 0).sum(axis=0).argmax())  # the class that most workers use
    is_beside = not is_one_class_table(counts) and is_one_class_table(np.delete(counts, usual, axis=1))
    return usual if is_beside else None


def _as_number(name: str) -> Decimal | None:
    """Return the number that a class is, in whatever notation, also with a decimal comma; None if it is none."""
    try:
        number = Decimal(name.strip().replace(",", ".", 1))  # a float would be the same for different long numbers
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _texts(values: list[Any]) -> list[str]:
    """Return the values that are text: all of them, unless another type was asked for."""
    return values if set(map(type, values)) <= {str} else [value for value in values if isinstance(value, str)]


def _find_look_alikes(ids: Iterable[str]) -> list[tuple[str, str]]:
    """Find pairs of different ids that are equal after Unicode normalisation, such as two ways to write an accent.

    Examples
    --------
    >>> pairs = _find_look_alikes(["caf" + chr(0xE9), "cafe" + chr(0x301), "cafe"])
    >>> [tuple(map(len, pair)) for pair in pairs]
    [(5, 4)]
    """
    ids = list(ids)
    alike = defaultdict(set)
    for value in ids:
        if not value.isascii():
            alike[normalize("NFC", value)].add(value)
    if any(form.isascii() for form in alike):  # the Kelvin sign is normalised to K
        for value in alike.keys() & set(ids):
            alike[value].add(value)
    groups = (sorted(group) for group in alike.values())
    return sorted((group[0], other) for group in groups for other in group[1:])


def _look_alike_note(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the note on ids that look alike, with their characters escaped."""
    shown = "; ".join(f"{shorten(ascii(a))} and {shorten(ascii(b))}" for a, b in pairs[:_MAX_PAIRS])
    more = f"; {len(pairs)} pairs in all" if len(pairs) > _MAX_PAIRS else ""
    return f"Some ids look alike but are spelled differently, and were kept apart: {shown}{more}."


def _kept_as_classes(names: list[str]) -> str:
    """Return the sentence about classes that may mean a missing label."""
    names_text = " and ".join(map(repr, names))
    return f"{names_text} was kept as a class" if len(names) == 1 else f"{names_text} were kept as classes"
