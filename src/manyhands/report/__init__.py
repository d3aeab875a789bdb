"""The HTML report: one file that shows the labels, the workers and what to do next.

    panel         `Panel`: a finding with its picture and its table
    run           `Run`: everything that a report may show; what is absent is None
    building      `PANELS` and `build`: the panels of a run whose data are there
    panels        the panels, pure functions of a run
    svg           drawing: SVG elements that take their colours from the page
    axes, charts, curves, heat_maps   pictures
    picture_data  `Picture`: an SVG element with the data that it shows
    statistics    intervals that several panels need
    wording       numbers and names as the report shows them
    label_times   days, weeks, and the seconds between two labels
    item_texts    which field of the export says what an item is
    page          the page: template, style, script, the run's data as JSON, and back
    changes       what changed between two reports
    notebook      what a notebook shows of models, scorecards and comparisons
    writing_page  `write_report`: a fitted model as a page on disk

The package can be called: ``manyhands.report(model, "report.html")`` is `write_report`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from manyhands.report.building import PANELS, Report, build
from manyhands.report.page.embedding import run_data
from manyhands.report.page.fragment import panels_html
from manyhands.report.page.page_rendering import render_page
from manyhands.report.page.reading_back import read_page
from manyhands.report.panel import Alert, Bar, Chips, Panel, Table
from manyhands.report.run import ComparedMethods, Provenance, Run, make_run
from manyhands.report.writing_page import write_report

__all__ = [
    "PANELS",
    "Alert",
    "Bar",
    "Chips",
    "ComparedMethods",
    "Panel",
    "Provenance",
    "Report",
    "Run",
    "Table",
    "build",
    "make_run",
    "panels_html",
    "read_page",
    "render_page",
    "run_data",
    "write_report",
]


class _CallableModule(ModuleType):
    """The package, which can be called as a function: its name is that of the function."""

    def __call__(self, model: Any, path: str | Path, **options: Any) -> Path:
        return write_report(model, path, **options)


sys.modules[__name__].__class__ = _CallableModule
