"""The HTML report: one file that shows the labels, the workers and what to do next.

run       `Run`: everything that a report may show; `Panel`: a finding with its picture and its table
panels    one function for each panel, from a `Run`: of the data, the labels, the workers, the whole page
page      `PANELS` in their order, `build`; `write_report`: a fitted model as a page on disk
html      the page: template, style, script, the run's data as JSON, and back
drawing   pictures: SVG elements that take their colours from the page and keep the data that they show
wording   numbers and names as the report shows them
changes   what changed between two reports
notebook  what a notebook shows of models, scorecards and comparisons
matplotlib_figures    the same pictures as figures of matplotlib, for papers (`manyhands.plots`)
"""

from manyhands.report.html import panels_html, read_page, render_page, run_data
from manyhands.report.page import PANELS, build, write_report
from manyhands.report.run import (
    Bar,
    Chips,
    ComparedMethods,
    Notice,
    Panel,
    Provenance,
    Report,
    Run,
    Table,
    make_run,
)

__all__ = [
    "PANELS",
    "Notice",
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
