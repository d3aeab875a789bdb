"""`report`: from an export to one HTML page with labels, workers and what to do next."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ParameterError
from manyhands.io.read.answer_files import read_answers
from manyhands.io.read.reading import Reading
from manyhands.io.read.truth import read_truth
from manyhands.io.write.pseudonyms import read_key
from manyhands.io.write.results import label_frame, to_csv
from manyhands.io.write.worker_tables import worker_frame
from manyhands.report.building import Report
from manyhands.report.page.embedding import labels_fit
from manyhands.report.run import ComparedMethods, Run, make_run
from manyhands.report.writing_page import make_page, provenance_of
from manyhands.trust.answers import Answers
from manyhands.workflows.aggregation import check_aggregator, fit_reading
from manyhands.workflows.gold_labels import collect_gold
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions, check_seed, require_labels, require_workers
from manyhands.workflows.outputs import Written, write_all
from manyhands.writing import claim

PAGE, KEY = "report.html", "manyhands.key"
_MOST_WORKERS = 200  # in the page's table


@dataclass(frozen=True, eq=False)
class ReportRun:
    """Result of `report`.

    Attributes
    ----------
    run : Run
        What the page shows.
    report : Report
        Its panels.
    page : bytes
        The page.
    written : Written
        Names of the files that were written.
    """

    run: Run
    report: Report
    page: bytes
    written: Written


def report(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    out: str | Path,
    method: str = registry.DEFAULT,
    gold: str | Path | None = None,
    use_gold: bool = False,
    answers: Sequence[str | Path] = (),
    truth: str | Path | None = None,
    compare: bool = False,
    reveal: bool = False,
    key: str | Path | None = None,
    title: str | None = None,
    command: str | None = None,
    random_state: int = 0,
    force: bool = False,
) -> ReportRun:
    """Read an export, infer one label per item, and write a page that shows the result.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    out : str or Path
        The page to write. Tables that are too large for it are written beside it as CSV, and so is the key of the
        pseudonyms, unless it exists.
    method : str, default="pooled-dawid-skene"
        Registry name of an aggregator.
    gold : str, Path or None, default=None
        Table of items whose class is known; they enter the fit.
    use_gold : bool, default=False
        Use the known answers of the export itself.
    answers : sequence of str or Path, default=()
        Files of questions that an expert answered; they enter the fit and may select the method.
    truth : str, Path or None, default=None
        Table of items whose class is known; it does not enter the fit and only evaluates.
    compare : bool, default=False
        Fit and cross-validate all other aggregators too.
    reveal : bool, default=False
        Show worker ids.
    key : str, Path or None, default=None
        Secret file from which pseudonyms are derived; None for ``manyhands.key`` beside the page, which is created.
    title : str or None, default=None
        Name of the data; None for that of the file and its question.
    command : str or None, default=None
        The command line, for the record.
    random_state : int, default=0
        Seed.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    ReportRun
        The panels and names of the files.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read or has no labels.
    """
    check_aggregator(method)
    check_seed(random_state)
    export.check()
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"{out} is not the name of a page: end it in .html.")
    if reveal and key is not None:
        raise ParameterError("--reveal shows worker ids, --key derives pseudonyms: give only one of them.")
    beside = {name: f"{path.stem}-{name}" for name in ("labels.csv", "workers.csv")}
    with claim(path.parent, [path.name, *beside.values()], force=force, manifest=False) as output:
        reading = export.read(files, item_fields=True)
        require_labels(reading)
        require_workers(reading, "there are no workers that a report could show")
        known = collect_gold(reading, gold, use_gold)
        answered = read_answers(answers, reading.annotations, reading.renamed.get("label")) if answers else None
        evaluated = None if truth is None else _truth(truth, reading)
        model, tables, figures = fit_reading(
            reading, method, known, answers=answered, compare=compare, random_state=random_state
        )
        contents: dict[str, bytes] = {}
        made = report_of(
            model,
            reading,
            figures,
            files,
            tables=tables,
            answers=answered,
            truth=evaluated,
            secret=None if reveal else _secret(key, path.parent, contents),
            reveal=reveal,
            title=title,
            command=command,
            seed=random_state,
            beside=beside,
        )
        contents[path.name] = made[2]
        run = made[0]
        if run.full_labels is not None:
            contents[beside["labels.csv"]] = to_csv(label_frame(run.model, "polars"))
        if run.full_workers is not None:
            time = None if run.reading is None else run.reading.working_time
            contents[beside["workers.csv"]] = to_csv(worker_frame(run.model, "polars", working_time=time))
        written = write_all(output, contents)
        _protect(path.parent, contents)
    return ReportRun(*made, written)


def report_of(
    model: Aggregator,
    reading: Reading,
    figures: Mapping[str, Any],
    files: Sequence[str],
    *,
    tables: Mapping[str, pl.DataFrame],
    answers: Answers | None = None,
    truth: Mapping[Any, Any] | None = None,
    secret: bytes | None = None,
    reveal: bool = False,
    title: str | None = None,
    command: str | None = None,
    seed: int = 0,
    beside: Mapping[str, str] | None = None,
) -> tuple[Run, Report, bytes]:
    """Return the page of a fitted method.

    Parameters
    ----------
    model : Aggregator
        The fitted method.
    reading : Reading
        The export.
    figures : mapping
        Values of summary.json.
    files : sequence of str
        The files that were read.
    tables : mapping of str to polars.DataFrame
        Tables of the run; ``methods.csv`` and ``differences.csv`` are shown where they are there.
    answers : Answers or None, default=None
        Answers of an expert.
    truth : mapping or None, default=None
        Known classes that only evaluate.
    secret : bytes or None, default=None
        Key of the pseudonyms.
    reveal : bool, default=False
        Show worker ids.
    title : str or None, default=None
        Name of the data.
    command : str or None, default=None
        The command line.
    seed : int, default=0
        Seed of the run.
    beside : mapping of str to str or None, default=None
        Files beside the page: "labels.csv" and "workers.csv" -> their names; they are named in the page where it
        cannot show everything.

    Returns
    -------
    run : Run
        What the page shows.
    report : Report
        Its panels.
    page : bytes
        HTML.
    """
    compared = None
    if "methods.csv" in tables:
        differences = tables["differences.csv"].to_dict(as_series=False)
        compared = ComparedMethods(tables["methods.csv"].to_dicts(), differences)
    names = dict(beside or {})
    name = title or (Path(reading.source).name + (f", {reading.question}" if reading.question else ""))
    run = make_run(
        model,
        reveal=reveal,
        key=secret,
        reading=reading,
        title=name,
        comparison=compared,
        answers=answers,
        trust=figures.get("trust"),
        truth=truth,
        provenance=provenance_of(str(figures["method"]), seed=seed, command=command, files=_checksums(files)),
        full_labels=None if labels_fit(model.annotations_) else names.get("labels.csv"),
        full_workers=names.get("workers.csv") if model.annotations_.n_workers > _MOST_WORKERS else None,
    )
    page, panels = make_page(run)
    return run, panels, page


def _secret(key: str | Path | None, folder: Path, contents: dict[str, bytes]) -> bytes:
    """Return the key of the pseudonyms; a new one is added to the files that are written."""
    given = folder / KEY if key is None else Path(key)
    if key is not None or given.exists():
        return read_key(given)
    secret = secrets.token_hex().encode()
    contents[KEY] = secret + b"\n"
    return secret


def _protect(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Let nobody else read a new key."""
    if KEY in contents:
        os.chmod(folder / KEY, 0o600)


def _checksums(files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of every file that was read; folders and standard input have none."""
    found = {}
    for name in files:
        path = Path(name)
        if path.is_file():
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _truth(path: str | Path, reading: Reading) -> dict[Any, Any]:
    """Return the known class of items of the export."""
    known = read_truth(path)
    items = set(reading.annotations.item_ids.tolist())
    return {item: label for item, label in known.items() if item in items}
