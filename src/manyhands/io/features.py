"""Features of items from a file, matched to the items by id.

source          .npy, .npz, a table                                  feature_arrays.py, feature_tables.py
recipe          which columns, which words: saved with a model       Recipe
match           which row is which item; by id unless told otherwise
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.io.feature_arrays import ENDINGS, as_ids, read_array
from manyhands.io.feature_tables import read_table
from manyhands.io.names import counted, shorten
from manyhands.io.tfidf import TfIdf
from manyhands.nn.inputs import as_rows

Index = npt.NDArray[np.intp]
_SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Features:
    """The rows of a file, before text has become numbers."""

    source: str
    ids: list[str] | None  # None: their order is all there is
    numbers: Any  # array (n_rows, ...) or sparse matrix, or None
    texts: list[str] | None = None
    columns: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.texts) if self.numbers is None and self.texts is not None else int(self.numbers.shape[0])

    def take(self, rows: Index) -> Self:
        """Some of the rows, in this order."""
        ids = None if self.ids is None else [self.ids[row] for row in rows.tolist()]
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        return replace(self, ids=ids, texts=texts, numbers=None if self.numbers is None else self.numbers[rows])


@dataclass(frozen=True)
class Recipe:
    """How a row becomes numbers: what `predict` must do as `train` did."""

    columns: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    tfidf: TfIdf | None = None

    @classmethod
    def learn(cls, features: Features) -> Self:
        """The recipe that fits these rows; words and their weights come from them alone."""
        return cls(features.columns, features.text, None if features.texts is None else TfIdf.learn(features.texts))

    def apply(self, features: Features) -> Any:
        """The rows as one array or sparse matrix of finite numbers."""
        parts = [] if features.numbers is None else [features.numbers]
        if self.tfidf is not None and features.texts is not None:
            parts.append(self.tfidf.apply(features.texts))
        if len(parts) == 2:
            from scipy.sparse import csr_array, hstack

            parts = [hstack([csr_array(parts[0]), parts[1]], format="csr")]
        try:
            return as_rows(parts[0]).whole()
        except AlignmentError as error:
            raise AlignmentError(f"{features.source}: {error}") from None

    def to_json(self) -> bytes:
        tfidf = None if self.tfidf is None else {"terms": self.tfidf.terms, "weights": self.tfidf.weights}
        said = {"schema": _SCHEMA, "columns": self.columns, "text": self.text, "tfidf": tfidf}
        return json.dumps(said, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes, name: str) -> Self:
        try:
            said = json.loads(content)
            if said["schema"] != _SCHEMA:
                raise ValueError(f"its schema is {said['schema']!r}, and this version reads {_SCHEMA}")
            words = said["tfidf"]
            tfidf = None if words is None else TfIdf(tuple(words["terms"]), tuple(map(float, words["weights"])))
            if tfidf is not None and len(tfidf.terms) != len(tfidf.weights):
                raise ValueError("it has not one weight for each word")
            return cls(tuple(said["columns"]), tuple(said["text"]), tfidf)
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"{name} cannot be read: {error}.") from None


def read_features(
    path: str | Path,
    *,
    id_column: str | None = None,
    ids_file: str | Path | None = None,
    columns: Sequence[str] = (),
    text: Sequence[str] = (),
    rows_in_order: bool = False,
) -> Features:
    """The rows of a file with their ids.

    Parameters
    ----------
    path : .npy, .npz (X and ids, or scipy's sparse form), or a table (CSV, TSV, Parquet, ...)
    id_column : of a table; by default the first that is called item, task, id or the like
    ids_file : ids in a file of their own, one for each row, for what has none
    columns, text : of a table; without either, all columns beside the ids are numbers
    rows_in_order : the order of the rows is all there is; ids, where there are any, are not looked at
    """
    path = Path(path)
    need_ids = not rows_in_order and ids_file is None
    if path.suffix.lower() in ENDINGS:
        if columns or text or id_column:
            raise ParameterError(f"{path} has no columns with names: leave out --column, --text and --id-column.")
        numbers, ids = read_array(path)
        if getattr(numbers, "ndim", 0) < 2:
            raise AlignmentError(f"{path} must have a row for each item; its shape is {numbers.shape}.")
        found = Features(str(path), ids, numbers)
    else:
        table = read_table(path, id_column, columns, text, need_ids=need_ids)
        found = Features(str(path), table.ids, table.numbers, table.texts, table.columns, table.text)
    if ids_file is not None:
        found = replace(found, ids=_read_ids(Path(ids_file)))
    if rows_in_order:
        return replace(found, ids=None)
    return _checked(found)


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


def _read_ids(path: Path) -> list[str]:
    """Ids from .npy, from a table with a column of ids, or one a line."""
    if path.suffix.lower() == ".npy":
        return as_ids(read_array(path)[0], str(path))
    if path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        from manyhands.io.feature_tables import read_ids

        return read_ids(path)
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise AnnotationError(f"{path} is not text in UTF-8. Give one id a line, or a .npy or .csv file.") from None


def _some(ids: Sequence[str]) -> str:
    return ", ".join(repr(shorten(item)) for item in ids[:3])
