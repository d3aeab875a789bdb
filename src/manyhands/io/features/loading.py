"""Features of items from a file, matched to the items by id.

source          .npy, .npz, a table                                  feature_arrays.py, feature_tables.py
match           which row is which item; by id unless told otherwise
recipe          which columns, which words: saved with a model       recipe.py
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning, ParameterError
from manyhands.io.features.feature_arrays import as_ids, read_array
from manyhands.io.features.feature_tables import read_ids, read_table
from manyhands.io.messages import counted, shorten
from manyhands.io.read.companion_tables import refuse_missing
from manyhands.io.read.numpy_files import ENDINGS

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Features:
    """The rows of a file, before text has become numbers."""

    source: str
    ids: list[str] | None  # None: their order is all there is
    numbers: Any  # array (n_rows, ...) or sparse matrix, or None
    texts: list[str] | None = None
    columns: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    taken: Index | None = None  # which rows of the file these are, in which order; None: all

    def __len__(self) -> int:
        return len(self.texts) if self.numbers is None and self.texts is not None else int(self.numbers.shape[0])

    def take(self, rows: Index) -> Self:
        """Some of the rows, in this order."""
        ids = None if self.ids is None else [self.ids[row] for row in rows.tolist()]
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(
            self, ids=ids, texts=texts, numbers=numbers, taken=rows if self.taken is None else self.taken[rows]
        )

    def row_of_file(self, row: int) -> int:
        """Which row of the file, from 0, is this one of ours."""
        return row if self.taken is None else int(self.taken[row])


def read_features(
    path: str | Path,
    *,
    id_column: str | None = None,
    ids_file: str | Path | None = None,
    columns: Sequence[str] = (),
    text: Sequence[str] = (),
    rows_in_order: bool = False,
    trained_on: str = "",
) -> Features:
    """The rows of a file with their ids.

    Parameters
    ----------
    path : .npy, .npz (X and ids, or scipy's sparse form), or a table (CSV, TSV, Parquet, ...)
    id_column : of a table; by default the first that is called item, task, id or the like
    ids_file : ids in a file of their own, one for each row, for what has none
    columns, text : of a table; without either, all columns beside the ids are numbers
    rows_in_order : the order of the rows is all there is; ids, where there are any, are not matched
    trained_on : what a model was trained on, for the error where the file is of another make
    """
    path = Path(path)
    if rows_in_order and ids_file is not None:
        raise ParameterError("--rows-in-order matches rows by position, --feature-ids by id: give only one of them.")
    refuse_missing(path, "features")
    if path.suffix.lower() in ENDINGS:
        _refuse_columns(path, {"--column": columns, "--text": text, "--id-column": id_column}, trained_on)
        numbers, ids = read_array(path)
        if getattr(numbers, "ndim", 0) < 2:
            raise AlignmentError(f"{path} must have a row for each item; its shape is {numbers.shape}.")
        found = Features(str(path), ids, numbers)
    else:
        need_ids = not rows_in_order and ids_file is None
        table = read_table(path, id_column, columns, text, need_ids=need_ids, trained_on=trained_on)
        found = Features(str(path), table.ids, table.numbers, table.texts, table.columns, table.text, table.taken)
    if not len(found):
        raise AnnotationError(f"{path} has no rows, so there are no features in it.")
    if rows_in_order:
        return replace(found, ids=None)
    return _checked(found if ids_file is None else _with_ids(found, Path(ids_file)))


def _refuse_columns(path: Path, wanted: Mapping[str, Sequence[str] | None], trained_on: str) -> None:
    """Refuse wishes for columns of what has none with names."""
    if trained_on and (wanted["--column"] or wanted["--text"]):
        raise AlignmentError(f"The model was trained on {trained_on}; {path} has no columns with names. Give a table.")
    given = [option for option, wish in wanted.items() if wish]
    if given:
        raise ParameterError(f"{path} has no columns with names: leave out {' and '.join(given)}.")


def match(features: Features, items: Sequence[str]) -> tuple[Index, Index]:
    """The positions of the items that have features, and the row of each.

    Without ids, there must be a row for each item, in the order of the items' ids: as numbers where all are whole
    numbers, otherwise as text.
    """
    if features.ids is None:
        if len(features) != len(items):
            raise AlignmentError(
                f"{features.source} has {counted(len(features), 'row')} for {counted(len(items), 'item')}; in order, "
                f"there must be one for each. Give ids instead."
            )
        return np.array(_in_order(items), np.intp), np.arange(len(items))
    row_of = {item: row for row, item in enumerate(features.ids)}
    kept = [at for at, item in enumerate(items) if item in row_of]
    if not kept:
        raise AlignmentError(
            f"{features.source} has features for none of the items: its ids are like {_some(features.ids)}, those of "
            f"the items like {_some(items)}."
        )
    return np.array(kept, np.intp), np.array([row_of[items[at]] for at in kept], np.intp)


def _in_order(items: Sequence[str]) -> list[int]:
    numbered = all(item.isascii() and item.isdigit() for item in items)
    return sorted(range(len(items)), key=lambda at: (int(items[at]) if numbered else 0, items[at]))


def _checked(features: Features) -> Features:
    if features.ids is None:
        raise AnnotationError(
            f"{features.source} does not say which row is which item. Save an array `ids` beside X, give --feature-ids "
            f"FILE, or add --rows-in-order if the rows are in the order of the items' ids."
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
    found = replace(features, ids=_read_ids(path))
    if features.ids is not None:
        message = f"ids_replaced: The ids in {features.source} are not looked at; those of {path} take their place."
        warnings.warn(message, CrowdWarning, stacklevel=3)
    return found


def _read_ids(path: Path) -> list[str]:
    """Ids from .npy, from a table with a column of ids, or one a line."""
    refuse_missing(path, "ids")
    if path.suffix.lower() == ".npy":
        return as_ids(read_array(path)[0], str(path))
    if path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        return read_ids(path)
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise AnnotationError(f"{path} is not text in UTF-8. Give one id a line, or a .npy or .csv file.") from None


def _some(ids: Sequence[str]) -> str:
    return ", ".join(repr(shorten(item)) for item in ids[:3])
