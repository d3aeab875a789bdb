"""`manyhands demo`: a crowd made up on the spot, from its labels to the truth."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import polars as pl
import typer

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.cli.jobs import run_job
from manyhands.cli.options import AsJson, Force, Seed
from manyhands.cli.output_targets import claimed, folder_target, print_json, write_output
from manyhands.cli.show import say, show_run, show_table
from manyhands.exceptions import CrowdWarning
from manyhands.io.read.reading import Reading, read_export
from manyhands.io.write.result_files import file_names, result_files
from manyhands.io.write.results import to_csv
from manyhands.simulate import Crowd, make_crowd
from manyhands.writing import Output

CLASSES = np.array(["bird", "cat", "dog", "fox"], object)


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the files.")] = Path("demo"),
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make up a crowd, aggregate its labels, and lay every method beside the planted truth.

    \b
    Examples:
      manyhands demo
      manyhands demo -o somewhere/ --seed 7
    """
    names = ["ratings.csv", *file_names([], compare=False), "methods.csv"]
    with claimed(folder_target(out, names), force) as output:
        if output is not None:
            _demonstrate(output, seed, as_json)


def _demonstrate(output: Output, seed: int, as_json: bool) -> None:
    crowd = make_crowd(
        n_items=1000,
        n_workers=60,
        n_classes=len(CLASSES),
        labels_per_item=4,
        bad="random",
        bad_share=0.3,
        random_state=seed,
    )
    say("A made-up crowd: 1000 pictures, 60 workers, 4 labels for each picture; 3 workers in 10 only guess.")
    out, ratings = output.folder, output.folder / "ratings.csv"
    table = to_csv(_ratings(crowd.annotations))
    say(f"$ manyhands aggregate {ratings} -o {out}")
    reading = _read(table, str(ratings))
    job = run_job(reading, registry.DEFAULT, seed)
    told = {"schema": 1, "files": [ratings.name]} | job.summary
    files = result_files(job.model, reading, [str(ratings)], job.tables, told, [])
    show_run(reading, told, job.tables["workers.csv"])
    comparison = _compare(reading, crowd, seed)
    written = write_output(output, {ratings.name: table} | files | {"methods.csv": to_csv(comparison)})
    show_table(comparison, "Every method beside the planted truth (also in methods.csv)")
    if as_json:
        print_json({"schema": 1, "methods": comparison.to_dicts()})
    say(f"Written to {out}: {written}")


def _read(table: bytes, name: str) -> Reading:
    """The ratings as if their file were in its place already: all files of a run appear together."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        path.write_bytes(table)
        return replace(read_export(path), source=name)


def _ratings(annotations: Annotations) -> pl.DataFrame:
    """The crowd's labels as a person would export them."""
    return pl.DataFrame(
        {
            "task": [f"picture-{item:04d}" for item in annotations.item],
            "worker": [f"worker-{worker:02d}" for worker in annotations.worker],
            "label": CLASSES[annotations.label].tolist(),
        }
    )


def _compare(reading: Reading, crowd: Crowd, seed: int) -> pl.DataFrame:
    """How often each method is right, how sure it is, and how far one is from the other."""
    truth = CLASSES[crowd.truth]
    rows = []
    for method in registry.names("aggregator"):
        if method == "kos":  # two classes only
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)
            model = registry.create_seeded(method, seed).fit(reading.annotations)
        right = float(np.mean(model.labels_ == truth))
        sure = float(model.posterior_.max(axis=1).mean())
        rows.append({"method": method, "right": right, "confidence": sure, "gap": abs(sure - right)})
    return pl.DataFrame(rows).sort("right", "method", descending=[True, False])
