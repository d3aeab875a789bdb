"""The head of the page: the verdict in a few sentences, key figures, and alerts of all panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands import metrics
from manyhands.report.panel import SEVERITIES, Alert, Panel
from manyhands.report.run import Run
from manyhands.report.wording import accusation, counted, joined, percent, share_that, visible
from manyhands.scorecards import ACCUSATIONS


def summary(run: Run, panels: Sequence[Panel]) -> Panel:
    """The verdict, key figures and the alerts of all panels, the most severe first.

    Parameters
    ----------
    run : Run
        The run.
    panels : sequence of Panel
        The other panels of the same run.

    Returns
    -------
    Panel
        Its title is the verdict, its values are the key figures.
    """
    a = run.annotations
    by_key = {panel.key: panel for panel in panels}
    per_item = a.n_annotations / max(a.n_items, 1)
    sentences = [f"{counted(a.n_items, 'item')}, {counted(a.n_workers, 'worker')}, {per_item:.1f} labels per item."]
    parts = []
    sure = by_key["confidence"].values["share_above_0.9"]
    n_labelled = int(run.labelled.sum())
    n_sure = n_labelled - by_key["confidence"].values["n_below_0.9"]
    parts.append(f"{share_that(('is', 'are'), n_sure, n_labelled, 'label')} at least 0.9 sure")
    if "hard-items" in by_key:
        n = by_key["hard-items"].values["n"]
        parts.append(f"{counted(n, 'item')} {'needs' if n == 1 else 'need'} a look")
    flags = by_key["workers"].values["flags"] if "workers" in by_key else {}
    found = [f"{counted(n, 'worker')} {accusation(flag, n)}" for flag in ACCUSATIONS if (n := flags.get(flag))]
    parts.append(joined(found) if found else "no worker is flagged")
    sentences.append("; ".join(parts) + ".")
    checked = by_key["calibration"].values
    if checked["n"]:
        sentences.append(
            f"On {counted(checked['n'], 'item')} of known class, {percent(checked['accuracy'], 1)} of the labels "
            "are right."
        )
    alerts = sorted(
        (alert for panel in panels for alert in panel.alerts), key=lambda one: SEVERITIES.index(one.severity)
    )
    for sentence in run.model.notes_.values():
        alerts.append(Alert("note", sentence))
    if run.cards is None and (run.reading is None or run.reading.workers_known):
        alerts.append(Alert("note", "The workers are not scored: their scorecards would not fit into memory."))
    if "agreement" in by_key:
        alpha = by_key["agreement"].values["Krippendorff's alpha"]
    else:  # no two labels can be compared, or a notebook leaves the panel out
        alpha = metrics.krippendorff_alpha(a, n_bootstrap=0).value
    figures = {
        "items": f"{a.n_items:,}",
        "workers": f"{a.n_workers:,}",
        "labels": f"{a.n_annotations:,}",
        "classes": f"{a.n_classes:,}",
        "labels at least 0.9 sure": percent(sure),
        "Krippendorff's alpha": f"{alpha:.2f}" if math.isfinite(alpha) else "none",
    }
    method = "" if run.provenance is None else run.provenance.method
    return Panel(
        "summary", " ".join(sentences), method, counted(a.n_annotations, "label"), values=figures, alerts=tuple(alerts)
    )


def learner_summary(model: Any, sure: Panel) -> Panel:
    """The verdict and key figures of a model that learns from features.

    Parameters
    ----------
    model : CrowdClassifier or representation learner
        The fitted model.
    sure : Panel
        The panel of confidence.

    Returns
    -------
    Panel
        Its title is the verdict, its values are the key figures; the notes of the fit are alerts.
    """
    accuracy = np.asarray(model.worker_accuracy_)
    n_items, share = len(model.posterior_), sure.values["share_above_0.9"]
    trained = f"Learnt from labels of {counted(len(model.worker_ids_), 'worker')} on {counted(n_items, 'item')}"
    half = (
        f"half of the workers are right in at least {np.median(accuracy):.0%} of their labels" if len(accuracy) else ""
    )
    figures = {
        "items": f"{n_items:,}",
        "workers": f"{len(model.worker_ids_):,}",
        "classes": f"{len(model.classes_):,}",
        "at least 0.9 sure": percent(share),
        "epochs or iterations": f"{len(model.history_):,}",
    }
    if hasattr(model, "n_features_in_"):
        figures["features"] = f"{model.n_features_in_:,}"
    alerts = tuple(Alert("note", visible(sentence, 600)) for sentence in model.notes_.values())
    verdict = f"{trained}; {half}." if half else f"{trained}."
    return Panel("summary", verdict, "", counted(n_items, "item"), values=figures, alerts=alerts)
