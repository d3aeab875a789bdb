"""The files of one run: tables, summary, and labels in further formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ParameterError
from manyhands.io.read.reading import Reading
from manyhands.io.write.hugging_face import jsonl, parquet
from manyhands.io.write.json_values import to_json
from manyhands.io.write.results import label_frame, to_csv
from manyhands.io.write.suggestions import SUGGESTIONS, Labels, check_suggestions, suggestions
from manyhands.io.write.training_table import TRAINING
from manyhands.io.write.write_back import (
    check_write_back,
    copies_of_tasks,
    label_studio_tasks,
    predictions_for_tasks,
    refuse_standard_input,
)
from manyhands.spelling import suggest

PREDICTIONS, TASKS = "label-studio", "label-studio-tasks"
KINDS = (
    {
        "jsonl": "labels.jsonl",
        "parquet": "labels.parquet",
        PREDICTIONS: "label_studio_predictions.json",
        TASKS: "label_studio_tasks.json",
    }
    | SUGGESTIONS
    | TRAINING
)


def kinds_of(write: Sequence[str]) -> list[str]:
    """Return each format once; ``training:jsonl`` is the same as ``training-jsonl``, and ``training:csv`` is training.

    Parameters
    ----------
    write : sequence of str
        Names of formats, as the caller gave them.

    Returns
    -------
    list of str
        The formats.
    """
    same = {"training-csv": "training"}
    plain = [kind.replace("training:", "training-") for kind in write]
    return list(dict.fromkeys(same.get(kind, kind) for kind in plain))


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuse unknown formats of labels, before anything is read.

    Parameters
    ----------
    kinds : sequence of str
        Names of formats, keys of `KINDS`.

    Raises
    ------
    ParameterError
        If one is unknown.
    """
    unexpected = [kind for kind in kinds if kind not in KINDS]
    if unexpected:
        raise ParameterError(f"Labels cannot be written as {unexpected[0]!r}.{suggest(unexpected[0], KINDS)}")


def check_outputs(kinds: Sequence[str], paths: Sequence[str], reading: Reading) -> None:
    """Refuse outputs that could not be written, before anything is computed.

    Parameters
    ----------
    kinds : sequence of str
        Formats of labels.
    paths : sequence of str
        The files that were read.
    reading : Reading
        The export.

    Raises
    ------
    ParameterError
        If a format is unknown, or the labels cannot be written back to the tool.
    """
    check_kinds(kinds)
    if PREDICTIONS in kinds and reading.format != "label-studio":
        raise ParameterError(
            f"{reading.source} is not a JSON export of Label Studio, so there are no tasks that predictions could be "
            f"attached to. --write {TASKS} writes new tasks."
        )
    if {PREDICTIONS, TASKS} & set(kinds) and reading.format == "label-studio":
        check_write_back(paths, reading.question, reading.questions)
    for kind in SUGGESTIONS.keys() & set(kinds):
        refuse_standard_input(paths)
        check_suggestions(kind, reading)


def file_names(kinds: Sequence[str], compare: bool) -> list[str]:
    """Return the names of the files that a run writes.

    Parameters
    ----------
    kinds : sequence of str
        Formats of labels.
    compare : bool
        Whether methods are compared.

    Returns
    -------
    list of str
        Names of the files.
    """
    compared = ["methods.csv", "differences.csv"] if compare else []
    return ["labels.csv", "workers.csv", "summary.json", *compared, *(KINDS[kind] for kind in kinds)]


def result_files(
    model: Aggregator,
    reading: Reading,
    paths: Sequence[str],
    tables: Mapping[str, pl.DataFrame],
    run_summary: Mapping[str, Any],
    kinds: Sequence[str],
) -> dict[str, bytes]:
    """Return all files of a run.

    Parameters
    ----------
    model : Aggregator
        The fitted aggregator.
    reading : Reading
        The export.
    paths : sequence of str
        The files that were read.
    tables : mapping of str to polars.DataFrame
        Name of a file -> its table, written as CSV.
    run_summary : mapping of str to object
        Content of summary.json, with ``method``.
    kinds : sequence of str
        Further formats of labels.

    Returns
    -------
    dict of str to bytes
        Name of each file -> content.
    """
    files = {name: to_csv(table) for name, table in tables.items()} | {"summary.json": to_json(dict(run_summary))}
    labels = label_frame(model)  # ids are not protected for spreadsheets in these formats
    if "jsonl" in kinds:
        files[KINDS["jsonl"]] = jsonl(labels)
    if "parquet" in kinds:
        files[KINDS["parquet"]] = parquet(labels)
    given = labels.filter(pl.col("label").is_not_null()).select("item", "label", "confidence")
    known = {item: (label, confidence) for item, label, confidence in given.iter_rows()}
    version = f"manyhands-{run_summary['method']}"
    for kind in kinds:
        if kind in (PREDICTIONS, TASKS):
            files[KINDS[kind]] = _for_label_studio(kind, known, reading, paths, version)
        elif kind in SUGGESTIONS:
            files[KINDS[kind]] = suggestions(kind, reading, paths, known, version)
    return files


def _for_label_studio(kind: str, known: Labels, reading: Reading, paths: Sequence[str], version: str) -> bytes:
    """Return predictions for the tasks of a Label Studio export, copies of them, or new tasks of another export."""
    if reading.format != "label-studio":
        return label_studio_tasks(known, from_name=reading.question, model_version=version)
    item = None if reading.columns["item"] == "id" else reading.columns["item"]
    write = predictions_for_tasks if kind == PREDICTIONS else copies_of_tasks
    return write(
        list(paths),
        known,
        question=reading.question,
        item=item,
        encoding=reading.encoding,
        model_version=version,
    )
