"""`manyhands aggregate`: from a table of labels to one label per item."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import typer

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.cli.show import progress_bar, show_run
from manyhands.io.results import label_table, summary, to_csv, worker_table
from manyhands.io.tables import ENDINGS, Reading, read_table
from manyhands.io.writing import write_files

_COLUMN = "Name of the column, where it is not a common one."


def aggregate(
    file: Path = typer.Argument(help=f"A {ENDINGS} file with one row per judgement."),
    method: str = typer.Option(registry.DEFAULT, "-m", "--method", help="See: manyhands methods."),
    out: Path | None = typer.Option(None, "-o", "--out", help="Folder for labels.csv, workers.csv, summary.json."),
    item: str | None = typer.Option(None, help=_COLUMN),
    worker: str | None = typer.Option(None, help=_COLUMN),
    label: str | None = typer.Option(None, help=_COLUMN),
    seed: int = typer.Option(0, help="Decides whatever is drawn at random."),
    force: bool = typer.Option(False, "--force", help="Replace files that are there already."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as one JSON object."),
    quiet: bool = typer.Option(False, "-q", "--quiet", help="Say nothing but notes and errors."),
) -> None:
    """Infer one label per item, with confidence, and an account of every worker.

    Without -o the labels go to stdout.

    \b
    Examples:
      manyhands aggregate ratings.csv -o out/
      manyhands aggregate ratings.csv -m dawid-skene --item clip --worker rater --label answer -o out/
      manyhands aggregate ratings.csv > labels.csv
    """
    reading = read_table(file, item=item, worker=worker, label=label)
    job = run_job(reading, method, seed, quiet=quiet or as_json)
    told = {"schema": 1, "file": file.name} | job.summary
    text = json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    text = text.encode(errors="backslashreplace").decode()  # a file's name need not be text; JSON can spell it
    if out is not None:
        files = {"labels.csv": to_csv(job.labels), "workers.csv": to_csv(job.workers), "summary.json": text.encode()}
        write_files(out, files, force=force)
    if as_json:
        print(text, end="")
    elif out is None:
        sys.stdout.write(to_csv(job.labels).decode())
    if not quiet and not as_json:
        show_run(reading, job.summary, job.workers, out)


@dataclass(frozen=True)
class Job:
    """One method's answer to one file."""

    model: Aggregator
    labels: pl.DataFrame
    workers: pl.DataFrame
    summary: dict[str, Any]


def run_job(reading: Reading, method: str, seed: int, *, quiet: bool = True) -> Job:
    """Fit a method and lay out what it found."""
    model = create(method, seed)
    annotations = reading.annotations
    with progress_bar(quiet):
        model.fit(annotations)
    read = {"columns": reading.columns, "ledger": reading.ledger.as_dict()}
    found = summary(model, annotations, method)
    told = read | found | {"notes": reading.notes | found["notes"]}
    return Job(model, label_table(model, annotations), worker_table(model, annotations), told)


def create(method: str, seed: int) -> Aggregator:
    """The method by name, with the seed where it draws anything at random."""
    model: Aggregator = registry.create(method)
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model
