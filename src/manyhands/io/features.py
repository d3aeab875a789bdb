"""Features of items: from files to the arrays that a classifier is trained on.

The file: `Features`, `read_features` (rows of a file with their ids), `match` (which row belongs to which item); then
where features come from: columns of a table, their choice if the caller names none, fields of the items of an export,
and NumPy's files. `feature_pipeline` makes numbers of them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands._core.encoding import UNPAIRED_SURROGATE, unpaired_surrogate
from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning, ParameterError
from manyhands.io.documents import ENDINGS, Document, frame_as_text, open_document, open_npz, read_npy
from manyhands.io.formats.long import COMMON_NAMES
from manyhands.io.item_fields import ItemFields, fields_of_export
from manyhands.io.judgements import find_column
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.parquet_limits import read_parquet
from manyhands.io.side_tables import find_common, open_table, refuse_missing
from manyhands.io.sources import Source

_Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of a file, before text becomes numbers."""

    source: str  # name of the file
    ids: list[str] | None  # item id of each row; None if the order of the rows is that of the items
    numbers: Any  # array (n_rows, ...) or sparse matrix, or None
    texts: list[str] | None = None  # the text of each row
    columns: tuple[str, ...] = ()  # names of the columns with numbers
    text: tuple[str, ...] = ()  # names of the columns with text
    taken: _Index | None = None  # rows of the file that these are, in this order; None for all
    left_out: tuple[str, ...] = ()  # columns or fields that are not used, if the caller named none

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts) if self.numbers is None and self.texts is not None else int(self.numbers.shape[0])

    def take(self, rows: _Index) -> Self:
        """Select rows."""
        ids = None if self.ids is None else [self.ids[row] for row in rows.tolist()]
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(
            self, ids=ids, texts=texts, numbers=numbers, taken=rows if self.taken is None else self.taken[rows]
        )

    def row_of_file(self, row: int) -> int:
        """Return the number of a row in the file."""
        return row if self.taken is None else int(self.taken[row])


def read_features(
    path: str | Path,
    *,
    id_column: str | None = None,
    feature_ids: str | Path | None = None,
    columns: Sequence[str] = (),
    text: Sequence[str] = (),
    rows_in_order: bool = False,
    trained_on: str = "",
) -> Features:
    """Read the rows of a file with their ids."""
    path = Path(path)
    if rows_in_order and feature_ids is not None:
        raise ParameterError("`rows_in_order` matches rows by position, `feature_ids` by id: give only one of them.")
    refuse_missing(path, "features")
    if path.suffix.lower() in ENDINGS:
        _refuse_columns(path, {"columns": columns, "text": text, "id_column": id_column}, trained_on)
        numbers, ids = _read_array(path)
        if getattr(numbers, "ndim", 0) < 2:
            raise AlignmentError(f"{path} must have a row for each item; its shape is {numbers.shape}.")
        features = Features(str(path), ids, numbers)
    else:
        need_ids = not rows_in_order and feature_ids is None
        features = _read_named(path, id_column, columns, text, need_ids=need_ids, trained_on=trained_on)
    if not len(features):
        raise AnnotationError(f"{path} has no rows, so there are no features in it.")
    if rows_in_order:
        return replace(features, ids=None)
    return _checked(features if feature_ids is None else _with_ids(features, Path(feature_ids)))


def _read_named(
    path: Path, id_column: str | None, columns: Sequence[str], text: Sequence[str], *, need_ids: bool, trained_on: str
) -> Features:
    """Read a table of features, or the fields of the items of an export."""
    document = None if path.suffix.lower() == ".parquet" else open_document(path)
    named = bool(columns or text)
    as_table = document is None or not need_ids or (trained_on and not named)  # trained on an array without names
    fields = None if as_table or document is None else fields_of_export(document, id_column, named)
    if fields is not None:
        return _features_of_items(fields, str(path), columns, text, trained_on=trained_on)
    return _read_table(path, id_column, columns, text, need_ids=need_ids, trained_on=trained_on, document=document)


def _refuse_columns(path: Path, wanted: Mapping[str, Sequence[str] | None], trained_on: str) -> None:
    """Refuse names of columns for files that have none."""
    if trained_on and (wanted["columns"] or wanted["text"]):
        raise AlignmentError(f"The model was trained on {trained_on}; {path} has no columns with names. Give a table.")
    parameters = [f"`{parameter}`" for parameter, names in wanted.items() if names]
    if parameters:
        raise ParameterError(f"{path} has no columns with names: leave out {' and '.join(parameters)}.")


def match(features: Features, items: Sequence[str]) -> tuple[_Index, _Index]:
    """Match rows of features to items.

    Without ids there must be a row for each item, in the order in which the items first appear. If that is not also the
    order of their ids (numbers in them count as numbers), rows could be in either, and are refused.
    """
    if features.ids is None:
        if len(features) != len(items):
            raise AlignmentError(
                f"{features.source} has {counted(len(features), 'row')} for {counted(len(items), 'item')}; in order, "
                f"there must be one for each. Give ids instead."
            )
        _refuse_two_orders(features, items)
        return np.arange(len(items)), np.arange(len(items))
    row_of = {item: row for row, item in enumerate(features.ids)}
    kept = [at for at, item in enumerate(items) if item in row_of]
    if not kept:
        raise AlignmentError(
            f"{features.source} has features for none of the items: its ids are like {_some(features.ids)}, those of "
            f"the items like {_some(items)}."
        )
    return np.array(kept, np.intp), np.array([row_of[items[at]] for at in kept], np.intp)


def _refuse_two_orders(features: Features, items: Sequence[str]) -> None:
    """Refuse rows without ids where the items are not in the order of their ids."""
    keys = [[int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", item)] for item in items]
    at = next((at for at in range(1, len(keys)) if keys[at] < keys[at - 1]), None)
    if at is not None:
        raise AlignmentError(
            f"{features.source} has no ids, and the labels have item {shorten(items[at])!r} after "
            f"{shorten(items[at - 1])!r}: rows could be in the order of the labels or in that of the ids. Give the id "
            f"of each row with `feature_ids=`, or in the array ids of an .npz file."
        )


def _checked(features: Features) -> Features:
    """Check that every row has an id, and no two the same."""
    if features.ids is None:
        raise AnnotationError(
            f"{features.source} has no item ids. Save an array `ids` beside X, give "
            f"`feature_ids=`, or add `rows_in_order=True` if the rows are in the order of the items."
        )
    if len(features.ids) != len(features):
        raise AlignmentError(
            f"There are {counted(len(features.ids), 'id')} for the {counted(len(features), 'row')} of "
            f"{features.source}; give one for each."
        )
    seen: set[str] = set()
    for item in features.ids:
        if item in seen:
            raise AlignmentError(f"{features.source} has more than one row for {shorten(item)!r}; keep one.")
        seen.add(item)
    return features


def _with_ids(features: Features, path: Path) -> Features:
    """Set the ids from a file of their own."""
    renamed = replace(features, ids=_read_ids(path))
    if features.ids is not None:
        message = f"ids_replaced: The ids in {features.source} are not used; those of {path} replace them."
        warnings.warn(message, CrowdWarning, stacklevel=3)
    return renamed


def _read_ids(path: Path) -> list[str]:
    """Read ids from an .npy file, from a table, or one per line."""
    refuse_missing(path, "ids")
    if path.suffix.lower() == ".npy":
        return _as_ids(_read_array(path)[0], str(path))
    if path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        return read_ids(path)
    try:
        return Source(str(path), path).read().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise AnnotationError(f"{path} is not text in UTF-8. Give one id per line, or a .npy or .csv file.") from None


def _some(ids: Sequence[str]) -> str:
    """Return the first ids, for error messages."""
    return ", ".join(repr(shorten(item)) for item in ids[:3])


# ----------------------------------------------------------------------------------------------------
# Features in columns of a table: numbers, lists of numbers (Parquet), and text.


def _read_table(
    path: Path,
    id_column: str | None,
    columns: Sequence[str],
    text: Sequence[str],
    *,
    need_ids: bool,
    trained_on: str = "",
    document: Document | None = None,
) -> Features:
    """Read features from a table; rows that repeat an id with the same values are one."""
    frame = _frame(path, document)
    names = frame.columns
    if trained_on:
        _refuse_lacking(names, (*columns, *text), str(path), trained_on)
    at = _id_column(names, id_column, str(path), need_ids)
    text_at = [find_column(names, name, "text", str(path)) for name in text]
    number_at = [find_column(names, name, "column", str(path)) for name in columns]
    choice = ColumnChoice()
    if not columns and not text:
        choice = _choose(frame, at, str(path), any_kind=not trained_on)
        number_at, text_at = ([names.index(name) for name in part] for part in (choice.numbers, choice.text))
    taken = np.arange(len(frame))
    if at is not None and need_ids:
        used = list(dict.fromkeys(names[place] for place in (at, *number_at, *text_at)))
        numbered = frame.select(used).with_row_index(_ROW).unique(used, keep="first", maintain_order=True)
        frame, taken = numbered.drop(_ROW), numbered[_ROW].to_numpy().astype(np.intp)
    ids = None if at is None else _ids(frame[names[at]], taken, str(path))
    remedy = f"Fill it; the model was trained on {trained_on}." if trained_on else _NAME_THEM
    numbers = [_to_numbers(frame[names[place]], taken, str(path), remedy) for place in number_at]
    texts = [frame[names[place]].cast(pl.String).fill_null("").to_list() for place in text_at]
    return Features(
        str(path),
        ids,
        np.concatenate(numbers, axis=1) if numbers else None,
        ["\n".join(parts) for parts in zip(*texts)] if texts else None,
        tuple(names[place] for place in number_at),
        tuple(names[place] for place in text_at),
        taken,
        choice.left_out,
    )


def _choose(frame: pl.DataFrame, at: int | None, source: str, *, any_kind: bool) -> ColumnChoice:
    """Choose columns of numbers and of text; all must be numbers if there are no rows, or a model has no names."""
    others = {name: frame[name] for place, name in enumerate(frame.columns) if place != at}
    if not others:
        raise AnnotationError(f"{source} has no column beside the ids. It has: {listed(frame.columns)}.")
    choice = choose_columns(others) if any_kind and len(frame) else ColumnChoice(tuple(others))
    if not choice.numbers and not choice.text:
        raise AnnotationError(
            f"{source} has neither numbers nor text beside the ids. It has: {listed(frame.columns)}. Name columns "
            f"to use as text with `text=`."
        )
    return choice


_ROW = "the row of the file, from 0"  # name of a temporary column, unlike any in a file
_NAME_THEM = "Fill it, name the columns with numbers by `columns=`, or texts by `text=`."


def _refuse_lacking(names: Sequence[str], wanted: Sequence[str], source: str, trained_on: str) -> None:
    """Refuse a file that lacks columns which the caller named or the training had."""
    names_there = {normalise_name(name) for name in names}
    lacking = [name for name in wanted if normalise_name(name) not in names_there]
    if lacking and not trained_on:
        raise AnnotationError(f"{source} has no {listed(lacking)}. It has: {listed(names)}.")
    if lacking:
        raise AnnotationError(
            f"The model was trained on {trained_on}; {source} lacks {listed(lacking)}. It has: {listed(names)}."
        )


def _frame(path: Path, document: Document | None = None) -> pl.DataFrame:
    """Return a table with the types of its file: Parquet has types, all other files have text."""
    if path.suffix.lower() == ".parquet":
        return read_parquet(Source(str(path), path))
    table = open_table(path, "features", document)
    repeated = sorted({name for name in table.header if table.header.count(name) > 1})
    if repeated:
        raise AnnotationError(f"{path} has several columns called {listed(repeated)}. Rename all but one.")
    return pl.DataFrame({name: table.column(at) for at, name in enumerate(table.header)})


def _id_column(names: list[str], wanted: str | None, source: str, need_ids: bool) -> int | None:
    """Return the position of the column of ids."""
    if wanted is not None:
        return find_column(names, wanted, "id-column", source)
    place = find_common(names, "item")
    if place is None and need_ids:
        raise AnnotationError(
            f"{source} has no column that looks like ids of items. It has: {listed(names)}. "
            f"Name it with `id_column=`, or add `rows_in_order=True`."
        )
    return place


def _ids(column: pl.Series, taken: npt.NDArray[np.intp], source: str) -> list[str]:
    """Return a column of ids as text, without missing ones."""
    texts = frame_as_text(column.to_frame())[0].to_series()
    if texts.null_count():
        row = int(taken[texts.is_null().arg_max() or 0])
        raise AnnotationError(f"{source}: row {row + 1} has no id in column {shorten(column.name)!r}. Fill it.")
    return texts.to_list()


def _to_numbers(column: pl.Series, taken: npt.NDArray[np.intp], source: str, remedy: str) -> Any:
    """Return the numbers of a column; a column of lists gives as many as its lists are long.

    Shapes: returns (n_rows, n).
    """
    if isinstance(column.dtype, pl.List | pl.Array) and len(column):
        lengths = column.list.len() if isinstance(column.dtype, pl.List) else column.arr.len()
        if lengths.n_unique() != 1 or lengths.null_count() or not lengths[0]:
            raise AnnotationError(f"{source}: the lists in column {shorten(column.name)!r} are not all of one length.")
        parts = _to_numbers(column.explode(), np.repeat(taken, lengths[0]), source, remedy)
        return parts.reshape(len(column), -1)
    trimmed = column.str.strip_chars() if column.dtype == pl.String else column
    try:
        numbers = trimmed.cast(pl.Float64, strict=False)
    except pl.exceptions.PolarsError:
        numbers = pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    wrong = numbers.is_null() | ~numbers.is_finite()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        shown = "nothing" if column[row] in (None, "") else shorten(repr(column[row]))
        raise AnnotationError(
            f"{source}: column {shorten(column.name)!r} has {shown} where a finite number should be "
            f"(row {taken[row] + 1}). {remedy}"
        )
    return numbers.to_numpy().reshape(-1, 1)


def read_ids(path: Path) -> list[str]:
    """Read a column of ids: the one with a usual name, or the only one."""
    frame = _frame(path)
    at = 0 if frame.width == 1 else _id_column(frame.columns, None, str(path), need_ids=True)
    assert at is not None
    return _ids(frame.to_series(at), np.arange(len(frame)), str(path))


# ----------------------------------------------------------------------------------------------------
# Which columns are features, if the caller names none: numbers as they are, text as TF-IDF, nothing else.
#
# Columns that are called like labels or known answers are not used: the truth must not become a feature by accident.

_ANSWERS = frozenset(map(normalise_name, (*COMMON_NAMES["gold"], "label", "labels", "class")))
_ADDRESS = re.compile(r"\s*(\w{2,10}://|/data/|www\.)\S*\s*")
_MIN_WORDS = 2  # of a text; a single word is a category or an id
_MIN_LETTERS = 4  # letters beyond ASCII that make a text without spaces, as in Chinese
_CELLS = 2_000  # cells of a column that are looked at: a share among them is known to 1 per cent


@dataclass(frozen=True)
class ColumnChoice:
    """Columns by what they hold."""

    numbers: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    # all others: labels, addresses, categories, ids, and columns in which all rows are the same text
    left_out: tuple[str, ...] = ()


def choose_columns(columns: Mapping[str, pl.Series]) -> ColumnChoice:
    """Choose the columns that a classifier can learn from.

    Examples
    --------
    >>> columns = {"body": ["red cat", "blue dog"], "n": ["1", "2"], "lang": ["de", "en"], "gold": ["0", "1"]}
    >>> choose_columns({name: pl.Series(cells) for name, cells in columns.items()})
    ColumnChoice(numbers=('n',), text=('body',), left_out=('lang', 'gold'))
    """
    kinds = {name: _kind(name, column) for name, column in columns.items()}
    by_kind = {kind: tuple(name for name in columns if kinds[name] == kind) for kind in ("numbers", "text", "left_out")}
    return ColumnChoice(**by_kind)


def _kind(name: str, column: pl.Series) -> str:
    """Return what a column holds: numbers, text, or neither."""
    if normalise_name(name) in _ANSWERS:
        return "left_out"
    if column.dtype != pl.String:
        usable = column.dtype.is_numeric() or column.dtype == pl.Boolean
        return "numbers" if usable or isinstance(column.dtype, pl.List | pl.Array) else "left_out"
    cells = column.drop_nulls().str.strip_chars()
    cells = cells.filter(cells != "")
    if not len(cells):
        return "left_out"
    numeric = cells.cast(pl.Float64, strict=False)
    if 2 * numeric.count() >= len(cells):  # a few cells that are none are an error of the file, and named as such
        return "numbers"
    return "text" if cells.n_unique() > 1 and are_texts(cells.head(_CELLS).to_list()) else "left_out"


def are_texts(cells: Sequence[str]) -> bool:
    """Whether at least half of some cells are text rather than categories, ids or addresses."""
    return bool(cells) and 2 * sum(map(_is_text, cells)) >= len(cells)


def _is_text(cell: str) -> bool:
    """Whether a cell has two words, or several letters of a script that may do without spaces."""
    if _ADDRESS.fullmatch(cell):
        return False
    return len(cell.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS or _letters_beyond_ascii(cell) >= _MIN_LETTERS


def _letters_beyond_ascii(cell: Iterable[str]) -> int:
    """Return the number of letters beyond ASCII."""
    return sum(letter.isalpha() and not letter.isascii() for letter in cell)


# ----------------------------------------------------------------------------------------------------
# Features from an export itself: the text of its items, found by its content.

_PREFIXES = ("data.", "Input.", "INPUT:", "fields.", "data_row.")  # as exports call the fields of items
_MAX_DEPTH = 4  # of objects within the data of an item; deeper ones are structures, not texts


def _features_of_items(
    fields: ItemFields, source: str, columns: Sequence[str], text: Sequence[str], *, trained_on: str = ""
) -> Features:
    """Return features from the fields of items: those that the caller named, or the text that is found."""
    values_of: dict[str, dict[str, Any]] = {}
    for name in fields.fields:
        _flatten(values_of, name, fields.values(name))
    names = list(values_of)
    if columns or text:
        numbers, texts = ([_short(name, names) for name in part] for part in (columns, text))
        _refuse_lacking(names, [*numbers, *texts], source, trained_on)
        exact = {normalise_name(name): name for name in reversed(names)}
        choice = ColumnChoice(*(tuple(exact[normalise_name(name)] for name in part) for part in (numbers, texts)))
    else:
        choice = _chosen(values_of, source)
    used = (*choice.numbers, *choice.text)
    items = list(dict.fromkeys(item for name in used for item in values_of[name]))
    taken = np.arange(len(items))
    remedy = f"Fill it; the model was trained on {trained_on}." if trained_on else "Fill it, or name other fields."
    parts = [_to_numbers(_as_series(name, values_of[name], items), taken, source, remedy) for name in choice.numbers]
    joined = ["\n".join(str(values_of[name].get(item, "")) for name in choice.text) for item in items]
    return Features(
        source,
        items,
        np.concatenate(parts, axis=1) if parts else None,
        joined if choice.text else None,
        choice.numbers,
        choice.text,
        taken,
        choice.left_out,
    )


def _chosen(fields: dict[str, dict[str, Any]], source: str) -> ColumnChoice:
    """Choose the fields with text; those with numbers only if there is no text, as many are ids."""
    choice = choose_columns({name: _as_series(name, values, list(values)) for name, values in fields.items()})
    if choice.text:
        return ColumnChoice((), choice.text, (*choice.numbers, *choice.left_out))
    if choice.numbers:
        return choice
    there = f"It has: {listed(list(fields))}" if fields else "It has no fields of items"
    raise AnnotationError(
        f"{source} has no text of its items. {there}. Name a field with `text=`, or give other features."
    )


def _flatten(fields: dict[str, dict[str, Any]], name: str, values: dict[str, Any], depth: int = 0) -> None:
    """Add a field; those of nested objects as ``name.key``, and the texts of a list as one text."""
    for item, value in values.items():
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            for key, inner in value.items():
                _flatten(fields, f"{name}.{key}", {item: inner}, depth + 1)
        elif isinstance(value, list):
            fields.setdefault(name, {})[item] = "\n".join(filter(None, map(_text_within, value)))
        elif value is not None:
            fields.setdefault(name, {})[item] = value


def _text_within(entry: Any) -> str:
    """Return the text of an entry of a list: a text, or the turn of a dialogue with its text."""
    inner = entry.get("text") if isinstance(entry, dict) else entry
    return inner if isinstance(inner, str) else ""


def _short(name: str, names: Sequence[str]) -> str:
    """Return the name of a field without the prefix that the export has."""
    if any(normalise_name(name) == normalise_name(name_there) for name_there in names):
        return name
    return next((name[len(prefix) :] for prefix in _PREFIXES if name.startswith(prefix)), name)


def _as_series(name: str, values: dict[str, Any], items: Sequence[str]) -> pl.Series:
    """Return the values of a field as numbers if all are, otherwise as text."""
    cells = [values.get(item) for item in items]
    if all(cell is None or isinstance(cell, bool | int | float) for cell in cells):
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)


# ----------------------------------------------------------------------------------------------------
# Features in NumPy's files: .npy, .npz with arrays ``X`` and ``ids``, and the sparse .npz of SciPy.

_AS_TEXT = "Give them as text."
_SPARSE = {"format", "shape", "data"}  # arrays that scipy.sparse.save_npz writes, among others


def _read_array(path: Path) -> tuple[Any, list[str] | None]:
    """Read features, and the ids of their rows where the file has them."""
    if path.suffix.lower() == ".npy":
        return read_npy(path), None
    with open_npz(path) as (file, arrays):
        features = _sparse(file) if set(arrays.files) >= _SPARSE else arrays[_name_of_features(path, arrays.files)]
        return features, _as_ids(arrays["ids"], str(path)) if "ids" in arrays.files else None


def _as_ids(ids: npt.NDArray[Any], where: str) -> list[str]:
    """Return ids as the readers of exports give them: text, and integers without a decimal point.

    Shapes: ids (n_rows,).
    """
    if ids.ndim != 1 or ids.dtype.kind not in "biufUS":
        raise AlignmentError(
            f"The ids in {where} must be a list of texts or whole numbers; they are {ids.dtype} of shape {ids.shape}."
        )
    if ids.dtype.kind == "S":
        return [value.decode("utf-8", "replace") for value in ids.tolist()]
    if ids.dtype.kind == "f":
        return _float_ids(ids, where)
    texts = [str(value) for value in ids.tolist()]
    invalid = unpaired_surrogate(texts)
    if invalid is not None:
        raise AlignmentError(f"The ids in {where} have {invalid!r} in row {texts.index(invalid)}, {UNPAIRED_SURROGATE}")
    return texts


def _float_ids(ids: npt.NDArray[Any], where: str) -> list[str]:
    """Return floats as integer ids, if each of them is an integer that its float type represents exactly."""
    if not np.isfinite(ids).all():
        row = int(np.isfinite(ids).argmin())
        raise AlignmentError(f"The ids in {where} have {ids[row]} in row {row}; give every row an id.")
    if not np.all(ids == np.round(ids)):
        raise AlignmentError(f"The ids in {where} are numbers with a fraction; give them as text.")
    limit = 2 ** (np.finfo(ids.dtype).nmant + 1)
    if not np.all(np.abs(ids) <= limit):
        raise AlignmentError(
            f"The ids in {where} are floats beyond {limit}, where not every whole number has one. {_AS_TEXT}"
        )
    return [str(int(value)) for value in ids.tolist()]


def _name_of_features(path: Path, names: Sequence[str]) -> str:
    """Return the name of the array of features: ``X``, or the only array beside ``ids``."""
    others = [name for name in names if name != "ids"]
    if "X" in others:
        return "X"
    if len(others) != 1:
        raise AnnotationError(f"{path} has no array called X. It has: {listed(others) or 'nothing'}. Save X and ids.")
    return others[0]


def _sparse(file: BinaryIO) -> Any:
    """Read a sparse matrix in CSR format, with its indices checked."""
    from scipy.sparse import load_npz

    file.seek(0)
    matrix = load_npz(file)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # an index beyond the matrix would read other memory
    return matrix.tocsr()
