"""`write_report`: a fitted model as a page on disk."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from manyhands import __version__
from manyhands.aggregation.base import Aggregator
from manyhands.io.write.pseudonyms import read_key
from manyhands.report.building import Report, build
from manyhands.report.page.embedding import run_data
from manyhands.report.page.page_rendering import render_page
from manyhands.report.run import Provenance, Run, make_run
from manyhands.trust.answers import Answers
from manyhands.writing.output import write_files


def write_report(
    model: Aggregator,
    path: str | Path,
    *,
    title: str = "Crowd labels",
    truth: Mapping[Any, Any] | None = None,
    answers: Answers | None = None,
    classifier: Any = None,
    groups: Mapping[Any, str] | None = None,
    reveal: bool = False,
    key: str | Path | None = None,
    force: bool = False,
) -> Path:
    """Write the report of a fitted aggregator as one HTML file.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    path : str or Path
        The file to write.
    title : str, default="Crowd labels"
        Name of the data.
    truth : mapping of item to class, default=None
        Known classes that did not enter the fit; they only evaluate.
    answers : Answers, default=None
        Answers of an expert that entered the fit.
    classifier : classifier, default=None
        A classifier that was trained on the same annotations.
    groups : mapping of worker to str, default=None
        Group of each worker, such as their country; the groups are compared.
    reveal : bool, default=False
        Show worker ids; otherwise pseudonyms stand in their place.
    key : str or Path, default=None
        Secret file from which pseudonyms are derived, so that they are the same in all reports; without it workers
        are numbered.
    force : bool, default=False
        Replace the file if it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputExistsError
        If the file exists, without `force`.

    Examples
    --------
    >>> import pathlib, tempfile, manyhands as mh
    >>> votes = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = mh.report(mh.MajorityVote().fit(votes), pathlib.Path(folder) / "report.html")
    ...     page.read_text().count("<h1")
    1
    """
    secret = None if key is None or reveal else read_key(key)
    known = provenance_of(type(model).__name__, seed=model.get_params().get("random_state"))
    run = make_run(
        model,
        reveal=reveal,
        key=secret,
        title=title,
        truth=truth,
        answers=answers,
        classifier=classifier,
        groups=groups,
        provenance=known,
    )
    page, _ = make_page(run)
    target = Path(path)
    write_files(target.parent, {target.name: page}, force=force)
    return target


def make_page(run: Run) -> tuple[bytes, Report]:
    """Return the page of a run.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    page : bytes
        HTML.
    report : Report
        Its panels.
    """
    report = build(run)
    return render_page(report, run_data(run, report)), report


def provenance_of(method: str, **known: Any) -> Provenance:
    """Return the provenance of a run that happens now.

    Parameters
    ----------
    method : str
        Name of the method.
    **known : object
        Further parameters of `Provenance`.

    Returns
    -------
    Provenance
        With versions and the time, which the environment variable SOURCE_DATE_EPOCH may set.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(given), UTC) if given.isdigit() else datetime.now(UTC)
    versions = {"Python": platform.python_version(), "NumPy": np.__version__}
    return Provenance(__version__, method, created=now.strftime("%Y-%m-%d %H:%M UTC"), platform=versions, **known)
