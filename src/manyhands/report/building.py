"""`PANELS`: all panels in the order of the page; `build`: those of a run whose data are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manyhands.report.panel import Panel
from manyhands.report.panels.agreement_panel import agreement
from manyhands.report.panels.certainty_panels import calibration, confidence
from manyhands.report.panels.input_panels import class_balance, coverage, ledger
from manyhands.report.panels.item_panels import confusable, hard_items
from manyhands.report.panels.method_panel import methods
from manyhands.report.panels.provenance_panel import provenance
from manyhands.report.panels.verdict import summary
from manyhands.report.panels.worker_panel import worker_map
from manyhands.report.run import Run

PANELS: dict[str, Callable[[Run], Panel | None]] = {
    "ledger": ledger,
    "coverage": coverage,
    "class-balance": class_balance,
    "agreement": agreement,
    "confidence": confidence,
    "calibration": calibration,
    "workers": worker_map,
    "confusable-classes": confusable,
    "hard-items": hard_items,
    "methods": methods,
    "provenance": provenance,
}


@dataclass(frozen=True)
class Report:
    """The panels of one run.

    Attributes
    ----------
    title : str
        Name of the data.
    summary : Panel
        Verdict, key figures, alerts.
    panels : tuple of Panel
        All others, in the order of the page.
    """

    title: str
    summary: Panel
    panels: tuple[Panel, ...]


def build(run: Run) -> Report:
    """Return the panels of a run.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Report
        Panels whose data are absent are left out.
    """
    found = [make(run) for make in PANELS.values()]
    panels = tuple(panel for panel in found if panel is not None)
    return Report(run.title, summary(run, panels), panels)
