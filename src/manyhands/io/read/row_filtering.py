"""From judgements to Annotations: which rows count, and an account of those that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.annotations import Annotations
from manyhands.encoding import encode
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.messages import shorten
from manyhands.io.read.judgements import OUTSIDERS, REASONS, Judgements
from manyhands.io.read.ledger import Ledger
from manyhands.io.read.text_encoding import Coded, code_columns, keep_one

DUPLICATES = ("last", "first", "all", "error")
ROLES = ("item", "worker", "label")
Mask = npt.NDArray[np.bool_]
Types = Mapping[str, Callable[[str], Any]]


@dataclass(frozen=True)
class ReadOptions:
    """What the caller decides: which of several answers counts, what a missing label looks like, ids and types."""

    duplicates: str = "last"
    missing: tuple[str, ...] = ()
    ids: Mapping[str, Any] | None = None  # role -> the caller's own values, in his order
    types: Types | None = None

    def __post_init__(self) -> None:
        if self.duplicates not in DUPLICATES:
            raise ParameterError(f"duplicates is {self.duplicates!r}; it may be {', '.join(DUPLICATES)}.")
        strange = set(self.types or ()) - set(ROLES)
        if strange:
            raise ParameterError(f"types names {sorted(strange)}; it may name {', '.join(ROLES)}.")


@dataclass(frozen=True)
class Rows:
    """Judgements as codes: what is empty, which lines are blank, and nothing of their text."""

    coded: dict[str, Coded]
    empty: dict[str, Mask]
    blank: npt.NDArray[np.intp]


def code_rows(judgements: Judgements, labels: pl.Series, settings: ReadOptions) -> Rows:
    """Turn text into codes; what was read as text may then be let go, which is most of the memory."""
    coded = code_columns({"item": judgements.item, "worker": judgements.worker, "label": labels})
    missing = {"label": [word.strip() for word in settings.missing]}
    empty = {role: _empty(column, missing.get(role, ())) for role, column in coded.items()}
    for role, convert in (settings.types or {}).items():
        coded[role] = _merged(coded[role], empty[role], convert, role)
    return Rows(coded, empty, _blank_lines(judgements, empty["item"] & empty["worker"] & empty["label"]))


def filter_rows(judgements: Judgements, rows: Rows, settings: ReadOptions) -> tuple[Annotations, Ledger]:
    """The judgements that count as Annotations, and what became of every row.

    A row is left out for the first of these that holds: the format's own reason, a blank line, no label, another
    answer of the same worker to the same item. A label without an item or a worker is refused, not left out.
    """
    coded, empty = rows.coded, rows.empty
    reason = _given_reasons(judgements, len(coded["item"].codes))  # (n_rows,) 0 where the row counts so far
    reason[rows.blank[reason[rows.blank] == 0]] = _CODE["blank"]
    _refuse_nameless(judgements, reason == 0, empty)
    reason[(reason == 0) & empty["label"]] = _CODE["no_label"]
    _drop_repeats(judgements, coded, reason, settings.duplicates)
    counts = Counter(dict(zip(_NAMES, np.bincount(reason, minlength=len(_NAMES)).tolist())))
    ledger = Ledger(len(reason), counts.pop("kept"), {name: n for name, n in counts.items() if n})
    known = {"item": ~empty["item"], "worker": ~empty["worker"], "label": reason == 0}
    if judgements.reason is not None:
        known["worker"] &= ~np.isin(reason, [_CODE[name] for name in OUTSIDERS])
    kept = known["label"] if ledger.kept < len(reason) else slice(None)
    parts = [_ids_and_codes(coded[role], known[role], kept, role, settings) for role in ROLES]
    return Annotations._from_codes([codes for codes, _ in parts], [ids for _, ids in parts]), ledger


_NAMES = ("kept", *REASONS, "no_label", "duplicate")
_CODE = {name: code for code, name in enumerate(_NAMES)}


def _given_reasons(judgements: Judgements, n_rows: int) -> npt.NDArray[np.int8]:
    if judgements.reason is None:
        return np.zeros(n_rows, np.int8)
    strange = set(judgements.reason.unique().drop_nulls()) - set(REASONS)
    assert not strange, f"{judgements.format} gives reasons that nobody knows: {strange}"
    return judgements.reason.fill_null("kept").replace_strict(_CODE, return_dtype=pl.Int8).to_numpy(writable=True)


def _empty(column: Coded, missing: Sequence[str]) -> Mask:
    """(n_rows,) where a cell says nothing: null, white space, or one of the words for a missing label."""
    stripped = column.values.str.strip_chars()
    nothing = ((stripped == "") | stripped.is_in(list(missing))).to_numpy()
    if not nothing.any() and column.codes.min(initial=0) >= 0:  # so it is in most columns, of any length
        return np.zeros(len(column.codes), bool)
    return np.append(nothing, True)[column.codes]  # code -1, null, takes the last entry


def _merged(column: Coded, empty: Mask, convert: Callable[[str], Any], role: str) -> Coded:
    """Texts that mean the same value get the code of the first of them, so that repeats are seen as such."""
    said = np.zeros(len(column.values), bool)
    said[column.codes[~empty]] = True
    texts = column.values.to_list()
    first_of: dict[Any, int] = {}
    code = np.arange(len(texts) + 1, dtype=np.int32)
    code[-1] = -1  # of null
    for at in np.flatnonzero(said).tolist():
        code[at] = first_of.setdefault(_converted(texts[at], convert, role), at)
    return Coded(code[column.codes], column.values)


def _blank_lines(judgements: Judgements, candidates: Mask) -> npt.NDArray[np.intp]:
    """The rows in which no cell of the file says anything."""
    rows = np.flatnonzero(candidates)
    if judgements.beside is None or not len(rows):
        return rows
    said = [any(cell and cell.strip() for cell in row) for row in judgements.beside[rows.tolist()].iter_rows()]
    return rows[~np.array(said)]


def _refuse_nameless(judgements: Judgements, counts: Mask, empty: Mapping[str, Mask]) -> None:
    """A row without an item, or a label without a worker, is somebody's mistake, and not ours to guess at."""
    for role, wrong in (("item", empty["item"]), ("worker", empty["worker"] & ~empty["label"])):
        rows = np.flatnonzero(counts & wrong)
        if len(rows):
            where = judgements.mapping.get(role, role)
            raise AnnotationError(
                f"{judgements.place(int(rows[0]))}: the {role} ({where}) is blank. "
                f"Fill it in or remove the row; {len(rows)} such row(s) in all."
            )


def _drop_repeats(
    judgements: Judgements, coded: Mapping[str, Coded], reason: npt.NDArray[np.int8], policy: str
) -> None:
    """Mark all answers but one of a worker to an item, in place; rows without a time are taken for older ones."""
    if policy == "all" or not judgements.workers_known:  # a vote by nobody in particular repeats nobody
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
            f"{judgements.place(int(at))}: worker {shorten(who)!r} answers item {shorten(what)!r} again; "
            f"{int((~keep).sum())} such row(s). Choose with --duplicates last, first or all."
        )
    reason[np.flatnonzero(~keep) if rows is None else rows[~keep]] = _CODE["duplicate"]


_LONG_AGO = -(2**62)


def _ids_and_codes(
    column: Coded, known: Mask, kept: Any, role: str, settings: ReadOptions
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """The codes of the rows that count, and the values that they stand for: those that occur, or the caller's."""
    convert = (settings.types or {}).get(role)
    own = (settings.ids or {}).get(role)
    present = np.full(len(column.values), known.all())
    if not known.all():
        present[column.codes[known]] = True
    if convert is None and own is None:
        ids = (column.values if present.all() else column.values.filter(pl.Series(present))).to_numpy()
        if present.all():
            return column.codes[kept], ids
        return (np.cumsum(present, dtype=np.int32) - 1)[column.codes[kept]], ids
    texts = column.values.filter(pl.Series(present)).to_list()
    values = texts if convert is None else [_converted(text, convert, role) for text in texts]
    try:
        new, ids = encode(_as_objects(values), own, role)
    except AnnotationError as error:
        hint = " Ids are read as text unless types= says otherwise." if convert is None else ""
        raise AnnotationError(f"{error}{hint}") from None
    return new[(np.cumsum(present) - 1)[column.codes[kept]]], ids


def _converted(text: str, convert: Callable[[str], Any], role: str) -> Any:
    try:
        return convert(text)
    except (TypeError, ValueError) as error:
        wanted = getattr(convert, "__name__", str(convert))
        raise AnnotationError(f"The {role} {shorten(text)!r} is not {wanted}: {error}. Read it as text.") from None


def _as_objects(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array
