"""The page of a fitted method, and the key of its pseudonyms."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.io.read.reading import Reading
from manyhands.io.write.pseudonyms import read_key
from manyhands.report.building import Report
from manyhands.report.page.embedding import labels_fit
from manyhands.report.run import ComparedMethods, Run, make_run
from manyhands.report.writing_page import make_page, provenance_of
from manyhands.trust.answers import Answers

PAGE, KEY = "report.html", "manyhands.key"
MOST_WORKERS = 200  # in the page's table
_PLAIN = (None, "", "label", "answer")  # columns whose name says nothing about the question


def report_of(
    model: Aggregator,
    reading: Reading,
    figures: Mapping[str, Any],
    files: Sequence[str],
    tables: Mapping[str, pl.DataFrame],
    *,
    answers: Answers | None = None,
    truth: Mapping[Any, Any] | None = None,
    groups: Mapping[Any, str] | None = None,
    secret: bytes | None = None,
    reveal: bool = False,
    title: str | None = None,
    command: str | None = None,
    seed: int = 0,
    beside: Mapping[str, str] | None = None,
    guarded: bool = False,
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
    groups : mapping of worker to str or None, default=None
        Group of each worker.
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
    guarded : bool, default=False
        Whether formulas in these files are made text.

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
    name = title or (Path(reading.source).name + (f", {reading.question}" if reading.question not in _PLAIN else ""))
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
        groups=groups,
        provenance=provenance_of(str(figures["method"]), seed=seed, command=command, files=_checksums(files)),
        full_labels=None if labels_fit(model.annotations_) else names.get("labels.csv"),
        full_workers=names.get("workers.csv") if model.annotations_.n_workers > MOST_WORKERS else None,
        guarded=guarded,
    )
    page, panels = make_page(run)
    return run, panels, page


def find_secret(key: str | Path | None, folder: Path) -> tuple[bytes, dict[str, bytes]]:
    """Return the key of the pseudonyms, and the file to write if it is new.

    Parameters
    ----------
    key : str, Path or None
        File of the key; None for ``manyhands.key`` of the folder, or a new one.
    folder : Path
        Where the page is written.

    Returns
    -------
    secret : bytes
        The key.
    files : dict of str to bytes
        A new key under its name; empty if it exists.

    Raises
    ------
    AnnotationError
        If the given file is missing or too short.
    """
    given = folder / KEY if key is None else Path(key)
    if key is not None or given.exists():
        return read_key(given), {}
    secret = secrets.token_hex().encode()
    return secret, {KEY: secret + b"\n"}


def protect_secret(folder: Path, files: Mapping[str, bytes]) -> None:
    """Let nobody else read a new key.

    Parameters
    ----------
    folder : Path
        Where the files were written.
    files : mapping of str to bytes
        What was written.
    """
    if KEY in files:
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
