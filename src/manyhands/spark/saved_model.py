"""The folder of a saved model: Parquet tables that any engine reads, and the model for one machine, without pickles.

<path>/items, workers, confusions    the DataFrames of the model
<path>/model                         files of `persistence.save_model` and summary.json, one row each; written last
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from manyhands.exceptions import ManyhandsError, OutputExistsError
from manyhands.persistence.models import load_model, save_model
from manyhands.spark.label_columns import DataFrame
from manyhands.spark.shard_tables import Session
from manyhands.spark.shared_files import is_absent

FORMAT = 1
_SCHEMA = "name string, content binary"


def write_model(
    path: str, frames: dict[str, DataFrame], summary: dict[str, Any], local: Any, spark: Session, *, overwrite: bool
) -> None:
    """Write a model.

    Parameters
    ----------
    path : str
        Folder, in any store that the engine writes to.
    frames : dict of str to DataFrame
        Tables by name.
    summary : dict of str to object
        What is known of the fit.
    local : Aggregator
        The model for one machine.
    spark : SparkSession
        The session.
    overwrite : bool
        Whether a model that is there may be replaced.

    Raises
    ------
    OutputExistsError
        Where there is one and it may not be replaced.
    """
    check_free(spark, path, overwrite=overwrite)
    for name, frame in frames.items():
        frame.write.mode("overwrite").parquet(f"{path}/{name}")
    tables = {"format": FORMAT, "tables": sorted(frames)}
    rows = [("summary.json", json.dumps(tables | {"summary": summary}, default=_plain).encode())]
    with TemporaryDirectory() as folder:
        save_model(local, Path(folder) / "model")
        rows += [(file.name, file.read_bytes()) for file in sorted((Path(folder) / "model").iterdir())]
    made = spark.createDataFrame([(name, bytearray(content)) for name, content in rows], _SCHEMA)
    made.coalesce(1).write.mode("overwrite").parquet(f"{path}/model")


def check_free(spark: Session, path: str, *, overwrite: bool) -> None:
    """Refuse a folder that contains a model.

    Parameters
    ----------
    spark : SparkSession
        The session.
    path : str
        The folder.
    overwrite : bool
        Whether a model that is there may be replaced.

    Raises
    ------
    OutputExistsError
        Where there is one and it may not be replaced.
    """
    if not overwrite and _read(spark, path):
        raise OutputExistsError(f"{path} contains a model already. Choose another path, or have it replaced.")


def read_model(spark: Session, path: str) -> tuple[dict[str, DataFrame], dict[str, Any], Any]:
    """Read a model.

    Parameters
    ----------
    spark : SparkSession
        The session.
    path : str
        Folder that `write_model` wrote.

    Returns
    -------
    frames : dict of str to DataFrame
        Tables by name.
    summary : dict of str to object
        What is known of the fit.
    local : Aggregator
        The model for one machine.

    Raises
    ------
    ManyhandsError
        Where there is no whole model.
    """
    files = _read(spark, path)
    if "summary.json" not in files:
        raise ManyhandsError(f"{path} contains no model that was saved whole. Check the path, or save the model again.")
    found = json.loads(files.pop("summary.json"))
    if found["format"] != FORMAT:
        raise ManyhandsError(f"The model in {path} has format {found['format']}; this version reads {FORMAT}.")
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / Path(name).name).write_bytes(content)
        local = load_model(folder)
    frames = {name: spark.read.parquet(f"{path}/{name}") for name in found["tables"]}
    return frames, found["summary"], local


def _read(spark: Session, path: str) -> dict[str, bytes]:
    """The files of a model by name; empty where there is none."""
    if is_absent(f"{path}/model", str(path).rstrip("/").rpartition("/")[0] or "."):
        return {}
    rows = []
    with suppress(Exception):  # engines have errors of their own for a path that does not exist
        rows = spark.read.schema(_SCHEMA).parquet(f"{path}/model").collect()
    return {row[0]: bytes(row[1]) for row in rows}


def _plain(value: Any) -> Any:
    """A value that JSON cannot write."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return repr(value)
