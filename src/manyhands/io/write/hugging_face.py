"""Tables of labels that Hugging Face's `datasets` loads: JSON lines and Parquet."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed

_PLACES = 6  # decimals of a probability in text
_FIXED = ("item", "label", "confidence", "n_labels", "flags")
_CLASS = "p_"


def jsonl(table: pl.DataFrame) -> bytes:
    """Return a table of labels as JSON lines.

    Parameters
    ----------
    table : polars.DataFrame
        The table of `label_frame`.

    Returns
    -------
    bytes
        One object per item: item, label (text), confidence, label_probs, n_labels, flags and classes. ``label_probs``
        are in the order of ``classes``, which every line has, so that a single line is complete;
        ``datasets.ClassLabel(names=classes)`` gives the class indices.
    """
    classes = _classes(table)
    columns = [*_FIXED[:3], "label_probs", *_FIXED[3:]]
    short = pl.col("label_probs").cast(pl.List(pl.Float64)).list.eval(pl.element().round(_PLACES))
    frame = _with_probabilities(table).with_columns(short, pl.col("confidence").round(_PLACES))
    rows = frame.select(columns).iter_rows(named=True)
    return b"".join(orjson.dumps({**row, "classes": classes}) + b"\n" for row in rows)


def parquet(table: pl.DataFrame) -> bytes:
    """Return a table of labels as Parquet.

    Parameters
    ----------
    table : polars.DataFrame
        The table of `label_frame`.

    Returns
    -------
    bytes
        Columns item, label (text), label_id, confidence, label_probs, n_labels and flags. ``label_id`` is the index of
        the class, in the order of ``label_probs``. The metadata of the file have this order twice: as ``classes``, a
        list, and as ``huggingface``, where `datasets` stores its features, with ``label_id`` as a ClassLabel.
    """
    frame, buffer = parquet_frame(table), io.BytesIO()
    frame.write_parquet(buffer, metadata=parquet_metadata(frame.schema, _classes(table)))
    return buffer.getvalue()


def parquet_frame(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of labels with the columns of the Parquet file.

    Parameters
    ----------
    table : polars.DataFrame
        The table of `label_frame`, or some of its rows.

    Returns
    -------
    polars.DataFrame
        Columns item, label (text), label_id, confidence, label_probs, n_labels and flags.
    """
    classes = _classes(table)
    label = pl.col("label").cast(pl.String)  # classes of a data frame may be integers; their columns are named by text
    place = label.replace_strict(classes, list(range(len(classes))), return_dtype=pl.Int64)
    columns = ["item", label, place.alias("label_id"), "confidence", "label_probs", "n_labels", "flags"]
    return _with_probabilities(table).select(columns)


def parquet_metadata(schema: Mapping[str, Any], classes: Sequence[str]) -> dict[str, str]:
    """Return the metadata of the Parquet file, from which `datasets` takes the names of the classes.

    Parameters
    ----------
    schema : mapping of str to polars.DataType
        Types of the columns of `parquet_frame`.
    classes : sequence of str
        Names of the classes, in the order of ``label_probs``.

    Returns
    -------
    dict of str to str
        JSON by key.
    """
    features = {name: _feature(dtype) for name, dtype in schema.items()}
    features["label_id"] = {"names": list(classes), "_type": "ClassLabel"}
    metadata = {"huggingface": {"info": {"features": features}}, "classes": list(classes)}
    return {key: orjson.dumps(value).decode() for key, value in metadata.items()}


def _classes(table: pl.DataFrame) -> list[str]:
    """Return the classes of a table of labels, in the order of its columns."""
    missing = [name for name in _FIXED if name not in table.columns]
    if missing:
        raise AnnotationError(f"The table of labels has no column {listed(missing)}. Give the one of `label_frame`.")
    return [name.removeprefix(_CLASS) for name in table.columns if name.startswith(_CLASS)]


def _with_probabilities(table: pl.DataFrame) -> pl.DataFrame:
    """Add the posterior as a column of lists."""
    probabilities = [pl.col(f"{_CLASS}{name}").cast(pl.Float32) for name in _classes(table)]
    found = pl.concat_list(probabilities) if probabilities else pl.lit([], pl.List(pl.Float32))
    return table.with_columns(found.alias("label_probs"), pl.col("n_labels").cast(pl.Int64))


def _feature(dtype: Any) -> dict[str, Any]:
    """Return the feature of a column in the notation of `datasets`."""
    if isinstance(dtype, pl.List):  # newer versions of `datasets` write List, which older ones cannot read
        return {"feature": _feature(dtype.inner), "_type": "Sequence"}
    return {"dtype": "string" if dtype == pl.String else str(dtype).lower(), "_type": "Value"}
