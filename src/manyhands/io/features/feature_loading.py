"""Features of items from a file, matched to the items by id.

1. read     .npy, .npz or a table                                  feature_arrays, feature_tables
2. match    which row is which item, by id unless stated otherwise
3. pipeline which columns, words and scaling; saved with a model   feature_pipeline
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning, ParameterError
from manyhands.io.features.export_features import features_of_items
from manyhands.io.features.feature_arrays import as_ids, read_array
from manyhands.io.features.feature_tables import TableFeatures, read_ids, read_table
from manyhands.io.messages import counted, shorten
from manyhands.io.read.companion_tables import refuse_missing
from manyhands.io.read.documents import open_document
from manyhands.io.read.item_field_reading import fields_of_export
from manyhands.io.read.numpy_files import ENDINGS

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of a file, before text becomes numbers.

    Attributes
    ----------
    source : str
        Name of the file.
    ids : list of str or None
        Item id of each row; None if the order of the rows is that of the items.
    numbers : ndarray, sparse matrix or None
        The numbers, of shape (n_rows, ...).
    texts : list of str or None
        The text of each row.
    columns : tuple of str
        Names of the columns with numbers.
    text : tuple of str
        Names of the columns with text.
    taken : ndarray of int or None
        Rows of the file that these are, in this order; None for all.
    left_out : tuple of str
        Columns or fields that are not used, if the caller named none.
    """

    source: str
    ids: list[str] | None
    numbers: Any  # array (n_rows, ...) or sparse matrix, or None
    texts: list[str] | None = None
    columns: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    taken: Index | None = None
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts) if self.numbers is None and self.texts is not None else int(self.numbers.shape[0])

    def take(self, rows: Index) -> Self:
        """Select rows.

        Parameters
        ----------
        rows : ndarray of int
            Numbers of the rows, in the wanted order.

        Returns
        -------
        Features
            The selected rows.
        """
        ids = None if self.ids is None else [self.ids[row] for row in rows.tolist()]
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(
            self, ids=ids, texts=texts, numbers=numbers, taken=rows if self.taken is None else self.taken[rows]
        )

    def row_of_file(self, row: int) -> int:
        """Return the number of a row in the file.

        Parameters
        ----------
        row : int
            Number of the row here, from 0.

        Returns
        -------
        int
            Number of the row in the file, from 0.
        """
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
    """Read the rows of a file with their ids.

    Parameters
    ----------
    path : str or Path
        An .npy or .npz file (``X`` and ``ids``, or SciPy's sparse format), a table (CSV, TSV, Parquet, XLSX, ...), or
        an export of an annotation tool, whose items have fields.
    id_column : str or None, default=None
        Column of a table with the item ids; None for one with a usual name (item, task, id, ...).
    ids_file : str, Path or None, default=None
        File with an id for each row, for files without ids.
    columns : sequence of str, default=()
        Columns of a table with numbers; if neither these nor `text` are given, all columns of a table that hold numbers
        or text, and all fields of an export that hold text.
    text : sequence of str, default=()
        Columns of a table with text.
    rows_in_order : bool, default=False
        The order of the rows is that of the items; ids, if there are any, are not matched.
    trained_on : str, default=""
        What a model was trained on, for the error message if this file is different.

    Returns
    -------
    Features
        The rows.

    Raises
    ------
    AnnotationError
        If the file cannot be read, has no rows, or no ids.
    AlignmentError
        If ids do not match the rows.
    ParameterError
        If options exclude each other.
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
        table = _read_named(path, id_column, columns, text, need_ids=need_ids, trained_on=trained_on)
        found = Features(
            str(path), table.ids, table.numbers, table.texts, table.columns, table.text, table.taken, table.left_out
        )
    if not len(found):
        raise AnnotationError(f"{path} has no rows, so there are no features in it.")
    if rows_in_order:
        return replace(found, ids=None)
    return _checked(found if ids_file is None else _with_ids(found, Path(ids_file)))


def _read_named(
    path: Path, id_column: str | None, columns: Sequence[str], text: Sequence[str], *, need_ids: bool, trained_on: str
) -> TableFeatures:
    """Read a table of features, or the fields of the items of an export."""
    document = None if path.suffix.lower() == ".parquet" else open_document(path)
    named = bool(columns or text)
    as_table = document is None or not need_ids or (trained_on and not named)  # trained on an array without names
    fields = None if as_table or document is None else fields_of_export(document, id_column, named)
    if fields is not None:
        return features_of_items(fields, str(path), columns, text, trained_on=trained_on)
    return read_table(path, id_column, columns, text, need_ids=need_ids, trained_on=trained_on, document=document)


def _refuse_columns(path: Path, wanted: Mapping[str, Sequence[str] | None], trained_on: str) -> None:
    """Refuse names of columns for files that have none."""
    if trained_on and (wanted["--column"] or wanted["--text"]):
        raise AlignmentError(f"The model was trained on {trained_on}; {path} has no columns with names. Give a table.")
    given = [option for option, names in wanted.items() if names]
    if given:
        raise ParameterError(f"{path} has no columns with names: leave out {' and '.join(given)}.")


def match(features: Features, items: Sequence[str]) -> tuple[Index, Index]:
    """Match rows of features to items.

    Without ids there must be a row for each item, in the order in which the items first appear. If that is not also the
    order of their ids (numbers in them count as numbers), rows could be in either, and are refused.

    Parameters
    ----------
    features : Features
        The rows.
    items : sequence of str
        Item ids.

    Returns
    -------
    kept : ndarray of int
        Positions of the items that have features.
    rows : ndarray of int
        The row of each of them.

    Raises
    ------
    AlignmentError
        If no item has features, or without ids the numbers of rows and items differ, or their order is not certain.
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
            f"of each row with --feature-ids FILE, or in the array ids of an .npz file."
        )


def _checked(features: Features) -> Features:
    """Check that every row has an id, and no two the same."""
    if features.ids is None:
        raise AnnotationError(
            f"{features.source} has no item ids. Save an array `ids` beside X, give --feature-ids "
            f"FILE, or add --rows-in-order if the rows are in the order of the items."
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
    found = replace(features, ids=_read_ids(path))
    if features.ids is not None:
        message = f"ids_replaced: The ids in {features.source} are not used; those of {path} replace them."
        warnings.warn(message, CrowdWarning, stacklevel=3)
    return found


def _read_ids(path: Path) -> list[str]:
    """Read ids from an .npy file, from a table, or one per line."""
    refuse_missing(path, "ids")
    if path.suffix.lower() == ".npy":
        return as_ids(read_array(path)[0], str(path))
    if path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        return read_ids(path)
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise AnnotationError(f"{path} is not text in UTF-8. Give one id per line, or a .npy or .csv file.") from None


def _some(ids: Sequence[str]) -> str:
    """Return the first ids, for error messages."""
    return ", ".join(repr(shorten(item)) for item in ids[:3])
