"""The panel of subgroups of workers: accuracy of each group, and which differ from the others."""

from __future__ import annotations

import math

import numpy as np

from manyhands.report.charts import Dot, dots
from manyhands.report.panel import Panel, Table
from manyhands.report.run import Run
from manyhands.report.wording import counted, interval, joined, visible
from manyhands.trust.false_discovery import benjamini_yekutieli

_FEWEST = 2  # workers of a group
_Z = 1.959963984540054


def subgroups(run: Run) -> Panel | None:
    """Accuracy of the workers of each group, with a correction for many tests.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None unless at least two groups of two workers or more are known.
    """
    found = _groups(run)
    if run.cards is None or len(found) < 2:
        return None
    a = run.annotations
    right = run.model.posterior_[a.item, a.label]
    rate = np.bincount(a.worker, right, a.n_workers) / np.maximum(np.bincount(a.worker, minlength=a.n_workers), 1)
    rows, p_values = [], []
    for name, members in found.items():
        inside = rate[members]
        outside = rate[np.concatenate([other for key, other in found.items() if key != name])]
        mean, error = _mean(inside)
        other, other_error = _mean(outside)
        spread = math.hypot(error, other_error)
        z = (mean - other) / spread if spread > 0 else 0.0
        rows.append((name, len(members), int(np.isin(a.worker, members).sum()), mean, error, mean - other))
        p_values.append(math.erfc(abs(z) / math.sqrt(2)))
    differs = benjamini_yekutieli(p_values)
    apart = [row[0] for row, is_apart in zip(rows, differs) if is_apart]
    title = "No group of workers differs from the others beyond chance."
    if apart:
        title = f"{joined(apart)} {'differs' if len(apart) == 1 else 'differ'} from the other groups."
    table = tuple(
        (name, n, labels, mean, interval(mean - _Z * e, mean + _Z * e), gap, p, "yes" if is_apart else "no")
        for (name, n, labels, mean, e, gap), p, is_apart in zip(rows, p_values, differs)
    )
    return Panel(
        "subgroups",
        title,
        "Mean share of right labels of the workers of each group, by the posterior, with a 95% interval over workers.",
        f"{counted(sum(len(m) for m in found.values()), 'worker')} in {len(found)} groups",
        (
            dots(
                [(name, [Dot(mean, max(mean - _Z * e, 0), min(mean + _Z * e, 1))]) for name, _, _, mean, e, _ in rows],
                "Share of right labels by group",
            ),
        ),
        (
            Table(
                "Groups of workers",
                (
                    "group",
                    "workers",
                    "labels",
                    "share right",
                    "95% interval",
                    "difference to the others",
                    "p",
                    "differs",
                ),
                table,
            ),
        ),
        (
            "Differences are tested at 5% with the correction of Benjamini and Yekutieli for many tests. A group "
            "that labels differently may see the items differently: the majority decides what counts as right here.",
        ),
        {"groups": {row[0]: row[3] for row in rows}, "apart": apart},
    )


def _groups(run: Run) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the workers of each group with at least two of them."""
    given = run.groups
    if given is None and run.reading is not None and run.reading.kinds:
        given = {worker: kind.family or kind.kind for worker, kind in run.reading.kinds.items()}
    if not given:
        return {}
    has_labels = np.bincount(run.annotations.worker, minlength=run.annotations.n_workers) > 0
    found: dict[str, list[int]] = {}
    for w, worker in enumerate(run.annotations.worker_ids.tolist()):
        if worker in given and has_labels[w]:
            found.setdefault(visible(given[worker], 60), []).append(w)
    return {name: np.array(members, np.int64) for name, members in sorted(found.items()) if len(members) >= _FEWEST}


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    """Return the mean and its standard error."""
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
    return float(values.mean()), error
