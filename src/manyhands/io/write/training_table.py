"""The training set: every field of an item as it came, beside its label, confidence, weight and soft label."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ParameterError
from manyhands.io.messages import counted, listed
from manyhands.io.read.item_field_reading import read_item_fields
from manyhands.io.read.item_fields import ItemFields
from manyhands.io.read.json_files import as_text
from manyhands.io.read.reading import Reading
from manyhands.io.write.frame_libraries import convert_frame
from manyhands.io.write.results import label_frame, to_csv
from manyhands.io.write.spreadsheet import guard_table

TRAINING = {"training": "training.csv", "training-jsonl": "training.jsonl", "training-parquet": "training.parquet"}
_PLACES = 6  # decimals of a probability in text
_CLASS, _PREFIX, _SOFT = "p_", "item_", "soft_label"
_OWN = ("item", "label", "confidence", "weight", _SOFT)


def training_set(model: Aggregator, items: Any = None, *, library: str | None = None) -> Any:
    """Return the labelled items with all their fields, for any program that trains a classifier.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    items : str, Path, data frame, Reading or None, default=None
        Where the fields of the items are: the export that was aggregated, a table with an id column (item, task, id,
        ...), or what `manyhands.io.read_export` returned with ``item_fields=True``. None for no fields.
    library : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of data frame; None is that of the frame which the labels came from, or polars.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        ``item``, the fields of the items, ``label``, ``confidence`` (the posterior of the label), ``weight`` (the same,
        for ``sample_weight``) and a column ``p_<class>`` for each class: the soft label. Nested values are JSON text. A
        field that has the name of another column is prefixed by ``item_``. Items without a label are left out. With
        pandas the items are the index.

    Raises
    ------
    ParameterError
        If a `Reading` was made without ``item_fields=True``.
    AnnotationError
        If the file cannot be read.

    Examples
    --------
    >>> import polars as pl
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["w1", "w2", "w1"], ["cat", "cat", "dog"])
    >>> texts = pl.DataFrame({"id": ["b", "a"], "text": ["Woof", "Meow"]})
    >>> training_set(MajorityVote().fit(votes), texts).select("item", "text", "label").rows()
    [('a', 'Meow', 'cat'), ('b', 'Woof', 'dog')]
    """
    if isinstance(items, Reading):
        if items.item_fields is None:
            raise ParameterError("The export was read without the fields of its items: add item_fields=True.")
        items = items.item_fields
    elif items is not None and not isinstance(items, ItemFields):
        items = read_item_fields(items)
    return convert_frame(join_fields(model, items).frame(), library or model.annotations_.frame_library, "item")


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labelled items with their fields.

    Attributes
    ----------
    labels : polars.DataFrame
        ``item``, ``label``, ``confidence`` and ``p_<class>`` of the labelled items.
    fields : dict of str to list
        Field, under its name in the training set -> the value of each of these items, None where there is none.
    notes : dict of str to str
        Code -> sentence.
    """

    labels: pl.DataFrame
    fields: dict[str, list[Any]]
    notes: dict[str, str] = field(default_factory=dict)

    def frame(self, *, as_text: bool = False) -> pl.DataFrame:
        """Return the training set as a data frame.

        Parameters
        ----------
        as_text : bool, default=False
            Fields as text, so that writing them to CSV does not round their numbers.

        Returns
        -------
        polars.DataFrame
            One row per item.
        """
        convert = _text_column if as_text else _column
        return pl.DataFrame(
            [
                self.labels["item"],
                *(convert(name, values) for name, values in self.fields.items()),
                self.labels["label"],
                self.labels["confidence"],
                self.labels["confidence"].alias("weight"),
                *(self.labels[name] for name in self._classes()),
            ]
        )

    def jsonl(self) -> bytes:
        """Return the training set as JSON lines; nested fields stay nested, and the soft label is an object.

        Returns
        -------
        bytes
            One object per item.
        """
        classes = {name: name.removeprefix(_CLASS) for name in self._classes()}
        lines = []
        for at, row in enumerate(self.labels.iter_rows(named=True)):
            soft = {known: round(row[name], _PLACES) for name, known in classes.items()}
            confidence = round(row["confidence"], _PLACES)
            found = {"item": row["item"]} | {name: values[at] for name, values in self.fields.items()}
            found |= {"label": row["label"], "confidence": confidence, "weight": confidence, _SOFT: soft}
            lines.append(orjson.dumps(found, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n")
        return b"".join(lines)

    def files(self, kinds: Collection[str], *, spreadsheet_safe: bool = False) -> dict[str, bytes]:
        """Return the files of the training set.

        Parameters
        ----------
        kinds : collection of str
            Names of formats; those that are keys of `TRAINING` are written.
        spreadsheet_safe : bool, default=False
            Prevent spreadsheet programs from running cells of the CSV file as formulas.

        Returns
        -------
        dict of str to bytes
            Name of each file -> content.
        """
        files = {}
        if "training" in kinds:
            table = self.frame(as_text=True)
            files[TRAINING["training"]] = to_csv(guard_table(table) if spreadsheet_safe else table)
        if "training-jsonl" in kinds:
            files[TRAINING["training-jsonl"]] = self.jsonl()
        if "training-parquet" in kinds:
            buffer = io.BytesIO()
            self.frame().write_parquet(buffer)
            files[TRAINING["training-parquet"]] = buffer.getvalue()
        return files

    def _classes(self) -> list[str]:
        """Return the columns of the soft label."""
        return [name for name in self.labels.columns if name.startswith(_CLASS)]


def join_fields(model: Aggregator, fields: ItemFields | None) -> TrainingSet:
    """Put the fields of the items beside their labels.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    fields : ItemFields or None
        The fields; None for none.

    Returns
    -------
    TrainingSet
        The items that have a label.
    """
    labels = label_frame(model, "polars")
    given = labels.filter(pl.col("label").is_not_null()).drop("n_labels", "flags")
    found = ItemFields() if fields is None else fields
    items = given["item"].to_list()
    names = _new_names(list(found.fields), [*_OWN, *(name for name in labels.columns if name.startswith(_CLASS))])
    columns = {names[name]: [found.values(name).get(item) for item in items] for name in found.fields}
    notes = found.notes()
    renamed = {name: new for name, new in names.items() if name != new}
    if renamed:
        pairs = listed([f"{name} is {new}" for name, new in renamed.items()])
        notes["fields_renamed"] = f"Fields of items that have the name of another column were renamed: {pairs}."
    if len(given) < len(labels):
        notes["unlabelled"] = f"The training set lacks {counted(len(labels) - len(given), 'item')} without a label."
    return TrainingSet(given, columns, notes)


def _new_names(names: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """Return the name of each field in the training set, prefixed where another column has it."""
    used, found = {*taken, *names}, {}
    for name in names:
        new = name
        if name in taken:
            while new in used:
                new = _PREFIX + new
            used.add(new)
        found[name] = new
    return found


def _column(name: str, values: list[Any]) -> pl.Series:
    """Return values of one scalar type as a column of this type, all others as text."""
    kinds = {type(value) for value in values if value is not None}
    dtype = pl.Float64 if kinds == {int, float} else pl.Int64 if kinds == {int} else None
    if dtype is not None or (len(kinds) == 1 and not kinds & {str, dict, list, tuple}):
        try:
            return pl.Series(name, values, dtype, strict=dtype != pl.Float64)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            pass  # such as a whole number beyond 64 bits
    return _text_column(name, values)


def _text_column(name: str, values: list[Any]) -> pl.Series:
    """Return values as text; lists and objects as JSON."""
    return pl.Series(name, [_text(value) for value in values], dtype=pl.String)


def _text(value: Any) -> str | None:
    """Return one value as text; dates and times in ISO format."""
    plain = value is None or isinstance(value, str | bool | int | float | list | dict | tuple | Mapping)
    return as_text(value) if plain else str(value)
