"""`PANELS`: all panels in the order of the page; `build`: those of a run whose data are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manyhands.report.panel import Panel
from manyhands.report.panels.agreement_panel import agreement
from manyhands.report.panels.card_panels import worker_cards
from manyhands.report.panels.certainty_panels import calibration, confidence
from manyhands.report.panels.classifier_panel import classifier
from manyhands.report.panels.group_panel import subgroups
from manyhands.report.panels.input_panels import class_balance, coverage, ledger
from manyhands.report.panels.item_panels import confusable, hard_items
from manyhands.report.panels.method_panel import methods
from manyhands.report.panels.provenance_panel import provenance
from manyhands.report.panels.time_panel import time_course
from manyhands.report.panels.trust_panels import correlated_workers, trust
from manyhands.report.panels.verdict import summary
from manyhands.report.panels.worker_panel import worker_map
from manyhands.report.run import Run
from manyhands.report.wording import visible

PANELS: dict[str, Callable[[Run], Panel | None]] = {
    "ledger": ledger,
    "coverage": coverage,
    "class-balance": class_balance,
    "agreement": agreement,
    "confidence": confidence,
    "calibration": calibration,
    "trust": trust,
    "hard-items": hard_items,
    "workers": worker_map,
    "worker-cards": worker_cards,
    "correlated-workers": correlated_workers,
    "subgroups": subgroups,
    "confusable-classes": confusable,
    "methods": methods,
    "time": time_course,
    "classifier": classifier,
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
    return Report(visible(run.title), summary(run, panels), panels)
