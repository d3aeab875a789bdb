"""Data sets with a table of annotations, with or without ground truth and features."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.datasets import labels
from manyhands.datasets.catalog import Spec
from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.files import Arrays, Column, as_column, read_arrays, read_table
from manyhands.encoding import encode
from manyhands.exceptions import AlignmentError

_TRIPLE = ("task", "worker", "label")


def read_crowd(folder: Path, name: str, spec: Spec, chosen: tuple[str, str] | None, duplicates: str) -> CrowdDataset:
    """Read ``annotations.csv``, and ``truth.csv`` and the chosen features if there are any.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    name : str
        Its name.
    spec : Spec
        Its entry in the catalogue.
    chosen : (str, str) or None
        File and prefix of the chosen features.
    duplicates : {"last", "all"}
        Which labels to keep if a worker labelled an item several times.

    Returns
    -------
    CrowdDataset
        The data set.
    """
    columns = read_table(folder, name, "annotations.csv", _TRIPLE)
    has_truth = (folder / "truth.csv").is_file()
    truth = read_table(folder, name, "truth.csv", ("task", "label")) if has_truth else None
    features = {} if chosen is None else _read_features(folder, name, spec, chosen)
    item_ids = features.pop("item_ids", None)
    annotations, y_true, rows = labels.build(columns, truth, item_ids, duplicates, name)
    for part in ("y_valid", "y_test"):
        if part in features:
            features[part] = annotations.classes[features[part]]  # the files hold codes
    return CrowdDataset(
        name,
        annotations.classes,
        spec.description,
        annotations,
        y_true,
        class_names=spec.class_names,
        extra=MappingProxyType(_read_extra(folder, name, spec, annotations, rows)),
        **features,
    )


def _read_features(folder: Path, name: str, spec: Spec, chosen: tuple[str, str]) -> Arrays:
    """Return features and their truth under the names of `CrowdDataset`, and the ids of the rows of `X`."""
    file, prefix = chosen
    id_arrays = (spec.rows,) if spec.rows else ()
    ids_and_truth = read_arrays(folder / "features.npz", id_arrays, ("y_valid", "y_test"))
    arrays = read_arrays(folder / file, (f"{prefix}_train",), (f"{prefix}_valid", f"{prefix}_test"))
    found: Arrays = {part: ids_and_truth[part] for part in ("y_valid", "y_test") if part in ids_and_truth}
    for part, target in (("train", "X"), ("valid", "X_valid"), ("test", "X_test")):
        if f"{prefix}_{part}" in arrays:
            found[target] = _as_floats(arrays[f"{prefix}_{part}"])
    found["item_ids"] = _row_ids(ids_and_truth, spec, len(found["X"]), name)
    return found


def _row_ids(arrays: Arrays, spec: Spec, n_rows: int, name: str) -> Column:
    """Return the item of each row of the features."""
    if spec.rows is None:
        return np.arange(n_rows)
    ids = as_column(arrays[spec.rows])
    if len(ids) != n_rows:
        raise AlignmentError(f"The features of {name} have {n_rows} rows, but {len(ids)} items are named.")
    return ids


def _as_floats(X: Array) -> Array:
    """Return half precision, which is slow and coarse to compute with, as single precision."""
    return X.astype(np.float32) if X.dtype == np.float16 else X


def _read_extra(folder: Path, name: str, spec: Spec, annotations: Annotations, rows: Any) -> dict[str, Any]:
    """Read what only some data sets have: texts, and second choices with percentages."""
    extra: dict[str, Any] = {}
    if "texts" in spec.extra:
        items, texts = read_table(folder, name, "texts.csv", ("task", "text"))
        of_item = np.full(len(annotations), None, object)
        of_item[encode(items, annotations.item_ids, "item")[0]] = texts
        extra["texts"] = of_item
    if "soft" in spec.extra:
        wanted = ("prob", "label2", "prob2")
        first, second, rest = read_table(folder, name, "annotations_soft.csv", wanted)
        extra["percent"], extra["percent2"] = _numbers(first)[rows], _numbers(rest)[rows]
        extra["label2"] = as_column(second)[rows]
    return extra


def _numbers(column: Column) -> Array:
    """Return numbers typed by people; NaN if they cannot be parsed."""
    return np.array([_number(value) for value in column.tolist()], float)


def _number(value: Any) -> float:
    """Return one number, or NaN."""
    try:
        return float(value)
    except ValueError:
        return float("nan")
