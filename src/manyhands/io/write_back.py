"""Results as other tools take them in: Label Studio's predictions, and tables for Hugging Face's `datasets`."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.documents import Records
from manyhands.io.formats.label_studio import entries_of, item_finder, recognise, results_of, tasks_of
from manyhands.io.formats.label_studio_results import VALUE_KEYS, as_value, read_results
from manyhands.io.json_files import parse_json
from manyhands.io.names import listed, shorten
from manyhands.io.sources import Source, open_path
from manyhands.io.text import as_utf8

Labels = Mapping[str, tuple[Any, float]]  # item -> its label (None where it has none) and how sure that is
_PLACES = 6  # of a probability in text
_JOINT = " + "  # between the choices of a combination, as `choosing` joins them
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_VALUE = re.compile(rb'\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*"|[^\s,{}\[\]"]+)?', re.DOTALL)
_FIXED = ("item", "label", "confidence", "n_labels", "flags")
_CLASS = "p_"


@dataclass(frozen=True)
class _Control:
    """The control that asks a question, as results name it, and the choices that were seen."""

    from_name: str
    to_name: str
    kind: str
    options: frozenset[str] = frozenset()


def label_studio_predictions(
    source: Any, labels: Labels, *, question: str, item: str | None = None, model_version: str = "manyhands"
) -> bytes:
    """The tasks of a Label Studio export, each with the label found for it as a prediction, ready for import.

    Ids and data stand as they do in the export, byte for byte; annotations and whoever made them are left out. The
    score is the confidence, so that the tasks with the lowest come first when sorted by it.

    Parameters
    ----------
    source : the JSON export that was read: a path, a `Source`, or a list of them
    labels : item -> (label, confidence); an item that is missing here, or has None as its label, gets no prediction
    question : the control (`from_name`) whose answers were read
    item : the key of the tasks' data that names the item, where it is not the task's id
    model_version : the name under which Label Studio shows the predictions
    """
    files = list(_open_exports(source))
    control = _find_control(files, question)
    tasks: dict[str | int, dict[str, Any]] = {}
    for document, raw in files:
        item_of, _ = item_finder(document, item)
        for at, task in enumerate(tasks_of(document)):
            name = item_of(task)
            whole = at < len(raw) and len(raw[at]) == 2
            written = raw[at] if whole else {key: task.get(key) for key in ("id", "data")}
            predictions = _predictions(None if name is None else labels.get(name), control, model_version)
            tasks.setdefault(at if name is None else name, {**written, "predictions": predictions})
    return _written(list(tasks.values()))


def label_studio_tasks(
    labels: Labels,
    *,
    from_name: str = "label",
    to_name: str = "text",
    kind: str = "choices",
    model_version: str = "manyhands",
) -> bytes:
    """New Label Studio tasks for labels that came from elsewhere; the data of each is {"item": its id}.

    `from_name` and `to_name` are the names of the control and of what it labels in the project's configuration.
    """
    if kind not in VALUE_KEYS:
        raise ParameterError(f"kind is {kind!r}; it may be {', '.join(VALUE_KEYS)}.")
    control = _Control(from_name, to_name, kind)
    tasks = [
        {"data": {"item": str(name)}, "predictions": _predictions(found, control, model_version)}
        for name, found in labels.items()
    ]
    return _written(tasks)


def jsonl(table: pl.DataFrame) -> bytes:
    """A table of labels (`label_frame`) as JSON lines: item, label, confidence, label_probs, n_labels, flags, classes.

    `label` is text. `label_probs` are in the order of `classes`, which stand in every line: a line then says all of it
    wherever it goes, and `datasets.ClassLabel(names=classes)` gives the numbers to train with.
    """
    classes = _classes(table)
    columns = [*_FIXED[:3], "label_probs", *_FIXED[3:]]
    short = pl.col("label_probs").cast(pl.List(pl.Float64)).list.eval(pl.element().round(_PLACES))
    frame = _with_probabilities(table).with_columns(short, pl.col("confidence").round(_PLACES))
    rows = frame.select(columns).iter_rows(named=True)
    return b"".join(orjson.dumps({**row, "classes": classes}) + b"\n" for row in rows)


def parquet(table: pl.DataFrame) -> bytes:
    """A table of labels (`label_frame`) as Parquet: item, label, label_id, confidence, label_probs, n_labels, flags.

    `label` is text, for people and for any reader; `label_id` is the place of its class, the order of `label_probs`.
    The file's metadata has that order twice: as `classes`, a list, and as `huggingface`, where `datasets` writes its
    features, with `label_id` a ClassLabel.
    """
    classes = _classes(table)
    place = pl.col("label").replace_strict(classes, list(range(len(classes))), return_dtype=pl.Int64)
    columns = ["item", "label", place.alias("label_id"), "confidence", "label_probs", "n_labels", "flags"]
    frame = _with_probabilities(table).select(columns)
    features = {name: _feature(dtype) for name, dtype in frame.schema.items()}
    features["label_id"] = {"names": classes, "_type": "ClassLabel"}
    metadata = {"huggingface": {"info": {"features": features}}, "classes": classes}
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={key: orjson.dumps(value).decode() for key, value in metadata.items()})
    return buffer.getvalue()


def _written(tasks: list[dict[str, Any]]) -> bytes:
    try:
        return orjson.dumps(tasks, option=orjson.OPT_INDENT_2)
    except TypeError as error:
        raise AnnotationError(
            f"The data of a task cannot be written as JSON: {error}. Look for deep nesting."
        ) from None


def _classes(table: pl.DataFrame) -> list[str]:
    missing = [name for name in _FIXED if name not in table.columns]
    if missing:
        raise AnnotationError(f"The table of labels has no column {listed(missing)}. Give the one of `label_frame`.")
    return [name.removeprefix(_CLASS) for name in table.columns if name.startswith(_CLASS)]


def _with_probabilities(table: pl.DataFrame) -> pl.DataFrame:
    probabilities = [pl.col(f"{_CLASS}{name}").cast(pl.Float32) for name in _classes(table)]
    found = pl.concat_list(probabilities) if probabilities else pl.lit([], pl.List(pl.Float32))
    return table.with_columns(found.alias("label_probs"), pl.col("n_labels").cast(pl.Int64))


def _feature(dtype: Any) -> dict[str, Any]:
    if isinstance(dtype, pl.List):  # newer versions of `datasets` say List, but older ones cannot read that
        return {"feature": _feature(dtype.inner), "_type": "Sequence"}
    return {"dtype": "string" if dtype == pl.String else str(dtype).lower(), "_type": "Value"}


def _open_exports(source: Any) -> Iterator[tuple[Records, list[dict[str, Any]]]]:
    """Each file of an export, and the ids and data of its tasks as they stand there."""
    for one in source if isinstance(source, list | tuple) else [source]:
        opened = open_path(one) if isinstance(one, str | Path) else one
        for file in opened.values() if isinstance(opened, dict) else [opened]:
            text = as_utf8(file, None)
            document = Records(file.name, parse_json(text)[0] if text.size else None)
            if recognise(document) != "label-studio":
                raise AnnotationError(
                    f"{file.name} is not a JSON export of Label Studio, so its tasks cannot be written back. "
                    "Export JSON, or write new tasks with `label_studio_tasks`."
                )
            yield document, list(_raw_tasks(text))


def _raw_tasks(source: Source) -> Iterator[dict[str, Any]]:
    """The `id` and `data` of every task as bytes of the file; less than both where they stand elsewhere."""
    content = source.read()
    depth, begun, key = 0, 0, b""
    level = 2 if content.lstrip()[:1] == b"[" else 1
    task: dict[str, Any] = {}
    for token in _TOKEN.finditer(content):
        mark = token[0][:1]
        if mark in b"{[":
            depth += 1
            if depth == level:
                task = {}
            elif depth == level + 1:
                begun = token.start()
        elif mark in b"}]":
            depth -= 1
            if depth == level - 1 and mark == b"}":
                yield task
            elif depth == level and key == b'"data"':
                task["data"] = orjson.Fragment(content[begun : token.end()])
        elif depth == level:
            value = _VALUE.match(content, token.end())
            key = token[0] if value else key
            if value and value[1] and key == b'"id"':
                task["id"] = orjson.Fragment(value[1])


def _find_control(files: Sequence[tuple[Records, Any]], question: str) -> _Control:
    """How the export itself names the control, what it labels, and what kind it is."""
    found: dict[str, Any] | None = None
    options: set[str] = set()
    questions: dict[str, None] = {}
    for results in (results for document, _ in files for results in _all_results(document)):
        answers, *_ = read_results(results)
        questions |= dict.fromkeys(answers)
        if question in answers:
            answer = answers[question]
            options |= {answer} if isinstance(answer, str) else set(answer)
            found = found or next(result for result in results if question in read_results([result])[0])
    if found is None:
        where = files[0][0].name if files else "The export"
        raise AnnotationError(f"{where} has no question {shorten(question)!r}. It has: {listed(list(questions))}.")
    return _Control(question, str(found.get("to_name") or ""), found["type"], frozenset(options))


def _all_results(document: Records) -> Iterator[list[Any]]:
    for task in tasks_of(document):
        for key in ("annotations", "completions", "predictions"):
            for entry in entries_of(task, key, document.name):
                if isinstance(entry, dict):
                    yield results_of(entry, task, document.name)


def _predictions(found: tuple[Any, float] | None, control: _Control, model_version: str) -> list[dict[str, Any]]:
    """One prediction, or none where there is no label."""
    if found is None or found[0] is None:
        return []
    label, score = str(found[0]), float(found[1])
    value = as_value(control.kind, label)
    parts = label.split(_JOINT)
    if control.kind == "choices" and label not in control.options and control.options.issuperset(parts):
        value = {"choices": parts}
    result = {"from_name": control.from_name, "to_name": control.to_name, "type": control.kind, "value": value}
    said = round(score, _PLACES) if math.isfinite(score) else None
    return [{"model_version": model_version, "score": said, "result": [result]}]
