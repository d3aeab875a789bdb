"""The training set: every field of an item as it came, beside its label, confidence, weight and soft label.

Also the tables of labels alone, as JSON lines and Parquet for Hugging Face's `datasets`.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.frames import convert_frame
from manyhands.io.documents import as_text
from manyhands.io.item_fields import ItemFields, read_item_fields
from manyhands.io.messages import counted, listed, shorten
from manyhands.io.reading import Reading
from manyhands.io.write.results import guard_table, label_frame, to_csv

TRAINING = {"training": "training.csv", "training-jsonl": "training.jsonl", "training-parquet": "training.parquet"}
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

    Warns
    -----
    CrowdWarning
        Where items have no row in `items` (``items_without_fields``). Ids are compared as text: 12 is ``"12"``.

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
    joined = join_fields(model, items)
    if _UNMATCHED in joined.notes:
        warnings.warn(f"{_UNMATCHED}: {joined.notes[_UNMATCHED]}", CrowdWarning, stacklevel=2)
    return convert_frame(joined.frame(), library or model.annotations_.frame_library, "item")


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Labelled items with their fields."""

    labels: pl.DataFrame  # ``item``, ``label``, ``confidence`` and ``p_<class>`` of the labelled items
    # field, under its name in the training set -> the value of each of these items, None where there is none
    fields: dict[str, list[Any]]
    notes: dict[str, str] = field(default_factory=dict)

    def frame(self, *, as_text: bool = False) -> pl.DataFrame:
        """Return the training set as a data frame."""
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
        """Return the training set as JSON lines; nested fields stay nested, and the soft label is an object."""
        classes = {name: name.removeprefix(_CLASS) for name in self._classes()}
        lines = []
        for at, row in enumerate(self.labels.iter_rows(named=True)):
            soft = {class_name: round(row[name], _PLACES) for name, class_name in classes.items()}
            confidence = round(row["confidence"], _PLACES)
            example = {"item": row["item"]} | {name: values[at] for name, values in self.fields.items()}
            example |= {"label": row["label"], "confidence": confidence, "weight": confidence, _SOFT: soft}
            lines.append(orjson.dumps(example, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n")
        return b"".join(lines)

    def files(self, kinds: Collection[str], *, spreadsheet_safe: bool = False) -> dict[str, bytes]:
        """Return the files of the training set."""
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
    """Put the fields of the items beside their labels."""
    labels = label_frame(model, "polars")
    labelled = labels.filter(pl.col("label").is_not_null()).drop("n_labels", "alerts")
    of_items = ItemFields() if fields is None else fields
    items = labelled["item"].to_list()
    names = _new_names(list(of_items.fields), [*_OWN, *(name for name in labels.columns if name.startswith(_CLASS))])
    columns = {names[name]: _matched(of_items.values(name), items) for name in of_items.fields}
    notes = of_items.notes() | _unmatched(columns, items)
    renamed = {name: new for name, new in names.items() if name != new}
    if renamed:
        pairs = listed([f"{name} is {new}" for name, new in renamed.items()])
        notes["fields_renamed"] = f"Fields of items that have the name of another column were renamed: {pairs}."
    if len(labelled) < len(labels):
        notes["unlabelled"] = f"The training set lacks {counted(len(labels) - len(labelled), 'item')} without a label."
    return TrainingSet(labelled, columns, notes)


def values_by_item(fields: ItemFields, items: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """Return the fields of each item that have a value, by their names in the file."""
    columns = {name: _matched(fields.values(name), items) for name in fields.fields}
    return {
        item: {name: values[at] for name, values in columns.items() if values[at] is not None}
        for at, item in enumerate(items)
    }


_UNMATCHED = "items_without_fields"  # code of a note


def _matched(values: Mapping[Any, Any], items: Sequence[Any]) -> list[Any]:
    """Return the value of each item; ids are the same if their texts are: a file has "12" where labels have 12."""
    matches = [values.get(item) for item in items]
    if not values or all(value is not None for value in matches):
        return matches
    by_text = {_text(item): value for item, value in values.items()}
    return [by_text.get(_text(item)) if value is None else value for item, value in zip(items, matches)]


def _unmatched(columns: Mapping[str, Sequence[Any]], items: Sequence[Any]) -> dict[str, str]:
    """Return a note on items for which there is no value of any field."""
    if not columns or not items:
        return {}
    without = [item for item, *values in zip(items, *columns.values()) if all(value is None for value in values)]
    if not without:
        return {}
    many = "None" if len(without) == len(items) else f"Only {len(items) - len(without):,}"
    sentence = (
        f"{many} of {counted(len(items), 'item')} {'has' if len(items) - len(without) == 1 else 'have'} fields in the "
        f"file of items; there is nothing for {shorten(str(without[0]))!r}, for one. Ids are compared as text."
    )
    return {_UNMATCHED: sentence}


def _new_names(names: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """Return the name of each field in the training set, prefixed where another column has it."""
    used, new_names = {*taken, *names}, {}
    for name in names:
        new = name
        if name in taken:
            while new in used:
                new = _PREFIX + new
            used.add(new)
        new_names[name] = new
    return new_names


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


# ----------------------------------------------------------------------------------------------------
# Tables of labels that Hugging Face's `datasets` loads: JSON lines and Parquet.

_PLACES = 6  # decimals of a probability in text
_FIXED = ("item", "label", "confidence", "n_labels", "alerts")
_PROBABILITY = "p_"


def jsonl(table: pl.DataFrame) -> bytes:
    """Return a table of labels as JSON lines."""
    classes = _classes(table)
    columns = [*_FIXED[:3], "label_probs", *_FIXED[3:]]
    short = pl.col("label_probs").cast(pl.List(pl.Float64)).list.eval(pl.element().round(_PLACES))
    frame = _with_probabilities(table).with_columns(short, pl.col("confidence").round(_PLACES))
    rows = frame.select(columns).iter_rows(named=True)
    return b"".join(orjson.dumps({**row, "classes": classes}) + b"\n" for row in rows)


def parquet(table: pl.DataFrame) -> bytes:
    """Return a table of labels as Parquet."""
    frame, buffer = parquet_frame(table), io.BytesIO()
    frame.write_parquet(buffer, metadata=parquet_metadata(frame.schema, _classes(table)))
    return buffer.getvalue()


def parquet_frame(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of labels with the columns of the Parquet file."""
    classes = _classes(table)
    label = pl.col("label").cast(pl.String)  # classes of a data frame may be integers; their columns are named by text
    place = label.replace_strict(classes, list(range(len(classes))), return_dtype=pl.Int64)
    columns = ["item", label, place.alias("label_id"), "confidence", "label_probs", "n_labels", "alerts"]
    return _with_probabilities(table).select(columns)


def parquet_metadata(schema: Mapping[str, Any], classes: Sequence[str]) -> dict[str, str]:
    """Return the metadata of the Parquet file, from which `datasets` takes the names of the classes."""
    features = {name: _feature(dtype) for name, dtype in schema.items()}
    features["label_id"] = {"names": list(classes), "_type": "ClassLabel"}
    metadata = {"huggingface": {"info": {"features": features}}, "classes": list(classes)}
    return {key: orjson.dumps(value).decode() for key, value in metadata.items()}


def _classes(table: pl.DataFrame) -> list[str]:
    """Return the classes of a table of labels, in the order of its columns."""
    missing = [name for name in _FIXED if name not in table.columns]
    if missing:
        raise AnnotationError(f"The table of labels has no column {listed(missing)}. Give the one of `label_frame`.")
    return [name.removeprefix(_PROBABILITY) for name in table.columns if name.startswith(_PROBABILITY)]


def _with_probabilities(table: pl.DataFrame) -> pl.DataFrame:
    """Add the posterior as a column of lists."""
    probabilities = [pl.col(f"{_PROBABILITY}{name}").cast(pl.Float32) for name in _classes(table)]
    label_probs = pl.concat_list(probabilities) if probabilities else pl.lit([], pl.List(pl.Float32))
    return table.with_columns(label_probs.alias("label_probs"), pl.col("n_labels").cast(pl.Int64))


def _feature(dtype: Any) -> dict[str, Any]:
    """Return the feature of a column in the notation of `datasets`."""
    if isinstance(dtype, pl.List):  # newer versions of `datasets` write List, which older ones cannot read
        return {"feature": _feature(dtype.inner), "_type": "Sequence"}
    return {"dtype": "string" if dtype == pl.String else str(dtype).lower(), "_type": "Value"}
