"""`report_change`: what changed between two reports; `inspect_page`: the data of a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manyhands.exceptions import ParameterError
from manyhands.report.building import Report
from manyhands.report.changes import compare_runs, read_run
from manyhands.report.page.page_rendering import render_page
from manyhands.report.page.reading_back import read_page
from manyhands.workflows.outputs import Written, claim_file, write_all


def is_page(name: str | Path) -> bool:
    """Whether a file is a page by its name.

    Parameters
    ----------
    name : str or Path
        Name of the file.

    Returns
    -------
    bool
        True for .html and .htm.
    """
    return Path(name).suffix.lower() in (".html", ".htm")


def report_change(
    pages: Sequence[str | Path], *, out: str | Path, force: bool = False
) -> tuple[Report, dict[str, Any], Written]:
    """Write a page that shows what changed from one report to another.

    Parameters
    ----------
    pages : sequence of str or Path
        Two reports, the earlier one first.
    out : str or Path
        The page to write.
    force : bool, default=False
        Replace the page if it exists.

    Returns
    -------
    report : Report
        The panels.
    data : dict
        Their main numbers.
    written : Written
        Name of the page.

    Raises
    ------
    ParameterError
        If there are not two pages.
    AnnotationError
        If a page is no report of manyhands.
    """
    if len(pages) != 2:
        raise ParameterError(f"Two reports can be compared, the earlier one first; {len(pages)} were given.")
    if not is_page(out):
        raise ParameterError(f"{out} is not the name of a page: end it in .html.")
    with claim_file(out, force=force) as output:
        before, after = (read_run(page) for page in pages)
        found, data = compare_runs(before, after, (Path(pages[0]).name, Path(pages[1]).name))
        written = write_all(output, {Path(out).name: render_page(found, data)})
    return found, data, written


def inspect_page(path: str | Path) -> dict[str, Any]:
    """Return the data of a report.

    Parameters
    ----------
    path : str or Path
        A page that manyhands wrote.

    Returns
    -------
    dict
        As the page holds them, with ``schema``.
    """
    return read_page(path)
