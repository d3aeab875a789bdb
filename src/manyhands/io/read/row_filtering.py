"""From judgements to `Annotations`: which rows count, and an account of those that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.annotations import Annotations
from manyhands.encoding import encode
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.messages import shorten
from manyhands.io.read.cleaning import Renamed, clean, rename
from manyhands.io.read.judgements import NON_WORKER_REASONS, REASONS, Judgements
from manyhands.io.read.ledger import Ledger
from manyhands.io.read.stray_classes import MERGE, check_policy, find_strays, merge_target
from manyhands.io.read.text_encoding import Coded, code_columns, order_of_texts
from manyhands.io.read.weighted_rows import build_annotations, weights_of
from manyhands.io.read.working_time import time_by_worker, times_of_labels
from manyhands.repeated_pairs import DUPLICATES as DUPLICATES
from manyhands.repeated_pairs import keep_one

ROLES = ("item", "worker", "label")
Mask = npt.NDArray[np.bool_]
Types = Mapping[str, Callable[[str], Any]]
_LONG_AGO = -(2**62)


@dataclass(frozen=True)
class ReadOptions:
    """Options of the caller that say which rows count, and what ids and labels are.

    Parameters
    ----------
    duplicates : {"last", "first", "all", "share", "error"}, default="last"
        Which label counts if a worker labelled an item several times.
    missing : tuple of str, default=()
        Labels that mean "no label", beside blank cells.
    ids : mapping of str to sequence or None, default=None
        Role ("item", "worker", "label") -> all its values in the wanted order; None for those that occur.
    types : mapping of str to callable or None, default=None
        Role -> conversion from text.
    label_map : mapping of str to str or None, default=None
        Label in the file -> label to read instead; an empty text means that there is no label.
    merge_spellings : bool, default=False
        Whether classes and worker ids that differ in spelling only become one.
    rare_classes : {"drop", "keep", "error", "merge:LABEL"}, default="drop"
        What is done with the labels of stray classes (`manyhands.io.read.stray_classes`).
    times : bool, default=False
        Whether to return the time of each label.

    Raises
    ------
    ParameterError
        If `duplicates`, `rare_classes` or a role is not one of those above.
    """

    duplicates: str = "last"
    missing: tuple[str, ...] = ()
    ids: Mapping[str, Any] | None = None
    types: Types | None = None
    label_map: Mapping[str, str] | None = None
    merge_spellings: bool = False
    rare_classes: str = "drop"
    times: bool = False

    def __post_init__(self) -> None:
        """Check `duplicates`, `rare_classes` and the roles of `types`."""
        check_policy(self.rare_classes)
        if self.duplicates not in DUPLICATES:
            raise ParameterError(f"duplicates is {self.duplicates!r}; allowed are {', '.join(DUPLICATES)}.")
        unexpected = set(self.types or ()) - set(ROLES)
        if unexpected:
            raise ParameterError(f"types names {sorted(unexpected)}; allowed are {', '.join(ROLES)}.")


@dataclass(frozen=True)
class Rows:
    """Judgements as codes, without their text.

    Attributes
    ----------
    coded : dict of str to Coded
        Role -> codes and distinct values.
    empty : dict of str to ndarray of bool, shape (n_rows,)
        Role -> where a cell is null, white space, or a word for a missing label.
    blank : ndarray of int
        Numbers of the rows that are blank lines.
    renamed : dict of str to dict, default={}
        Role -> {spelling in the file: name}, for the names that changed.
    notes : dict of str to str, default={}
        Notes on spellings: code -> sentence.
    """

    coded: dict[str, Coded]
    empty: dict[str, Mask]
    blank: npt.NDArray[np.intp]
    renamed: Renamed = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def values(self, role: str) -> pl.Series:
        """Return the distinct texts of a role."""
        return self.coded[role].values


def code_rows(judgements: Judgements, labels: pl.Series, options: ReadOptions) -> Rows:
    """Encode items, workers and labels as integers; the text, which is most of the memory, can then be freed.

    Parameters
    ----------
    judgements : Judgements
        The rows.
    labels : polars.Series of str, of length n_rows
        The label of each row, for the question that was selected.
    options : ReadOptions
        Options of the caller.

    Returns
    -------
    Rows
        Codes, empty cells and blank lines.
    """
    coded = code_columns({"item": judgements.item, "worker": judgements.worker, "label": labels})
    counting = slice(None) if judgements.reason is None else judgements.reason.is_null().to_numpy()
    cleaned = clean(coded, counting, options.label_map or {}, options.merge_spellings)
    coded = cleaned.coded
    missing = {"label": [word.strip() for word in options.missing]}
    empty = {role: _empty(column, missing.get(role, ())) for role, column in coded.items()}
    for role, convert in (options.types or {}).items():
        coded[role] = _merged(coded[role], empty[role], convert, role)
    blank = _blank_lines(judgements, empty["item"] & empty["worker"] & empty["label"])
    return Rows(coded, empty, blank, cleaned.renamed, cleaned.notes)


def filter_rows(
    judgements: Judgements, rows: Rows, options: ReadOptions, known_classes: Collection[str] = ()
) -> tuple[Annotations, Ledger, dict[str, str], npt.NDArray[np.int64] | None, dict[Any, npt.NDArray[np.float64]]]:
    """Return the judgements that count as Annotations, and what became of every row.

    A row is excluded for the first of these reasons that holds: the reason that the format gives, a blank line, no
    label, another answer of the same worker to the same item, a stray class. A label without an item or a worker is
    an error, not excluded.

    Parameters
    ----------
    judgements : Judgements
        The rows; their text may have been released.
    rows : Rows
        Their codes.
    options : ReadOptions
        Options of the caller.
    known_classes : collection of str, default=()
        Classes that are not stray, however rare: those of gold labels.

    Returns
    -------
    annotations : Annotations
        The labels that count. Items and workers without such a label are kept in the ids.
    ledger : Ledger
        Number of rows read, kept, and excluded by reason.
    notes : dict of str to str
        ``stray_classes``, if there are some.
    times, working_time : ndarray or None, dict
        As in `Reading`.

    Raises
    ------
    AnnotationError
        If a row lacks its item, a label lacks its worker, or `duplicates` is "error" and there are some.
    """
    coded, empty = rows.coded, rows.empty
    reason = _given_reasons(judgements, len(coded["item"].codes))  # (n_rows,) 0 where the row counts so far
    reason[rows.blank[reason[rows.blank] == 0]] = _CODE["blank"]
    _refuse_nameless(judgements, reason == 0, empty)
    reason[(reason == 0) & empty["label"]] = _CODE["no_label"]
    _drop_repeats(judgements, coded, reason, options.duplicates)
    notes = _treat_strays(coded, reason, options, known_classes)
    counts = Counter(dict(zip(_NAMES, np.bincount(reason, minlength=len(_NAMES)).tolist())))
    ledger = Ledger(len(reason), counts.pop("kept"), {name: n for name, n in counts.items() if n})
    known = {"item": ~empty["item"], "worker": ~empty["worker"], "label": reason == 0}
    if judgements.reason is not None:
        known["worker"] &= ~np.isin(reason, [_CODE[name] for name in NON_WORKER_REASONS])
    kept = known["label"] if ledger.kept < len(reason) else slice(None)
    parts = [_ids_and_codes(coded[role], known[role], kept, role, options) for role in ROLES]
    working_time = time_by_worker(judgements.seconds, kept, *parts[ROLES.index("worker")])
    order = _known_order(coded["item"], parts[0][1], options)
    weight = weights_of(judgements, kept, len(parts[0][0]), options.duplicates)
    time = judgements.time if options.times and weight is None else None  # rows that share a vote have no one time
    times = times_of_labels(time, kept, [part[0] for part in parts], _LONG_AGO)
    return build_annotations(parts, order, weight, options.duplicates), ledger, notes, times, working_time


_NAMES = ("kept", *REASONS, "no_label", "duplicate", "stray_class")
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
    later = judgements.weight is not None or policy == "share"  # left to `build_annotations`
    if policy == "all" or later or not judgements.workers_known:  # votes without workers have no duplicates
        return
    rows = None if not reason.any() else np.flatnonzero(reason == 0)  # all count in most tables: nothing is copied
    chosen: Any = slice(None) if rows is None else rows
    item, worker = coded["item"].codes[chosen], coded["worker"].codes[chosen]
    time = judgements.time
    order = None if time is None else np.argsort(time.fill_null(_LONG_AGO).to_numpy()[chosen], kind="stable")
    keep = keep_one(item, worker, len(coded["worker"].values), order, "first" if policy == "error" else policy)
    if keep.all():
        return
    if policy == "error":
        at = np.arange(len(reason))[chosen][np.flatnonzero(~keep)[0]]
        who, what = (str(coded[role].values[int(coded[role].codes[at])]) for role in ("worker", "item"))
        raise AnnotationError(
            f"{judgements.place(int(at))}: worker {shorten(who)!r} labels item {shorten(what)!r} again; "
            f"{int((~keep).sum())} such row(s). Choose with --duplicates last, first, share or all."
        )
    reason[np.flatnonzero(~keep) if rows is None else rows[~keep]] = _CODE["duplicate"]


def _treat_strays(
    coded: dict[str, Coded], reason: npt.NDArray[np.int8], options: ReadOptions, known: Collection[str]
) -> dict[str, str]:
    """Exclude, merge or refuse the labels of stray classes, in place; return the note on them."""
    if (options.ids or {}).get("label") is not None:  # the caller says what the classes are
        return {}
    rows: Any = slice(None) if not reason.any() else np.flatnonzero(reason == 0)
    is_stray, strays = find_strays(coded, rows, known)
    if not strays.counts:
        return {}
    policy, labels = options.rare_classes, coded["label"]
    if policy == "error":
        raise AnnotationError(f"stray_classes: {strays.note(policy)}")
    if policy.startswith(MERGE):
        coded["label"] = rename(labels, dict.fromkeys(strays.counts, merge_target(labels, policy, strays)))
    elif policy == "drop":
        at = np.arange(len(reason))[rows]
        reason[at[is_stray[labels.codes[at]]]] = _CODE["stray_class"]
    return {"stray_classes": strays.note(policy)}


def _ids_and_codes(
    column: Coded, known: Mask, kept: Any, role: str, options: ReadOptions
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return the codes of the rows that count, and the values they stand for: those that occur, or those given."""
    convert = (options.types or {}).get(role)
    given_ids = (options.ids or {}).get(role)
    present = np.full(len(column.values), known.all())
    if not known.all():
        present[column.codes[known]] = True
    if convert is None and given_ids is None:
        ids = (column.values if present.all() else column.values.filter(pl.Series(present))).to_numpy()
        if present.all():
            return column.codes[kept], ids
        return (np.cumsum(present, dtype=np.int32) - 1)[column.codes[kept]], ids
    texts = column.values.filter(pl.Series(present)).to_list()
    values = texts if convert is None else [_converted(text, convert, role) for text in texts]
    try:
        new, ids = encode(_as_objects(values), given_ids, role, by_appearance=role == "item")
    except AnnotationError as error:
        hint = " Ids are read as text unless types= says otherwise." if convert is None else ""
        raise AnnotationError(f"{error}{hint}") from None
    return new[(np.cumsum(present) - 1)[column.codes[kept]]], ids


def _known_order(column: Coded, ids: npt.NDArray[Any], options: ReadOptions) -> dict[str, Any]:
    """Return the order that sorts the items, where each text of the column is one: texts sort faster than objects."""
    chosen = (options.types or {}).get("item"), (options.ids or {}).get("item")
    if any(value is not None for value in chosen) or len(ids) < len(column.values):
        return {}
    order = order_of_texts(column.values)
    return {"_sorting_order": None if bool(np.all(order[1:] > order[:-1])) else order}


def _converted(text: str, convert: Callable[[str], Any], role: str) -> Any:
    """Convert one text to the wanted type."""
    try:
        return convert(text)
    except (TypeError, ValueError) as error:
        name = f"The {role} {shorten(text)!r} is not {getattr(convert, '__name__', str(convert))}"
        raise AnnotationError(f"{name}: {error}. Read it as text.") from None


def _as_objects(values: list[Any]) -> npt.NDArray[Any]:
    """Return values as a one-dimensional array of Python objects."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
