"""Panels of certainty: the posterior of the labels, and its calibration."""

from __future__ import annotations

import math

import numpy as np

from manyhands.report.charts import columns
from manyhands.report.curves import lines
from manyhands.report.panel import Alert, Panel, Table
from manyhands.report.run import Array, Run
from manyhands.report.statistics import wilson
from manyhands.report.wording import counted, interval, percent, share_that

SURE = 0.9  # posterior from which a label counts as sure
_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_N_BINS = 10
_CLEAR = 0.02  # excess of the posterior over the accuracy that is worth a warning
_COLUMNS = ("posterior", "items", "mean posterior", "share right", "95% interval")  # of the reliability table


def confidence(run: Run) -> Panel:
    """Histogram of the posterior of the labels, and the share above each threshold.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel
        The share of labels that can be used now.
    """
    known = run.confidence[run.labelled]
    n, sure = len(known), int((known >= SURE).sum())
    bins = np.linspace(0, 1, 21)
    counts = np.histogram(known, bins)[0]
    first = int(np.flatnonzero(counts)[0]) if counts.any() else 0
    names = [f"{low:.2f}" for low in bins[first:-1]]
    above = [(t, int((known >= t).sum())) for t in _THRESHOLDS]
    curve = np.linspace(first * 0.05, 1, 41)
    share = [float((known >= t).mean()) if n else math.nan for t in curve]
    unsure = n - sure
    alerts: tuple[Alert, ...] = ()
    if unsure:
        severity = "warning" if unsure > 0.2 * n else "note"
        alerts = (
            Alert(
                severity,
                f"{counted(unsure, 'label')} {'has' if unsure == 1 else 'have'} a posterior below {SURE}: look "
                "at them, or collect more labels.",
                unsure,
                "hard-items",
            ),
        )
    return Panel(
        "confidence",
        f"{share_that(('has', 'have'), sure, n, 'label')} a posterior of at least {SURE}.",
        "The first picture counts labels by their posterior; the second shows the share of labels that remains if "
        "only those above a threshold are used.",
        counted(n, "labelled item"),
        (
            columns(names, counts[first:].tolist(), "Number of labels by their posterior", "posterior from", "labels"),
            lines(
                curve.tolist(),
                [("share of labels", share)],
                "Share of labels with a posterior of at least the threshold",
                x_title="threshold",
                y_title="share of labels",
                high=1.0,
                marks=False,
            ),
        ),
        (
            Table(
                "Labels above a threshold",
                ("posterior at least", "labels", "share"),
                tuple((f"{t:g}", count, count / max(n, 1)) for t, count in above),
            ),
        ),
        ("The posterior is the method's own estimate; only items of known class can show whether it is calibrated.",),
        {"mean": float(known.mean()) if n else None, "share_above_0.9": sure / max(n, 1), "n_below_0.9": unsure},
        alerts,
    )


def calibration(run: Run) -> Panel:
    """Whether labels of a posterior p are right in a share p of the cases.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel
        A reliability diagram where classes are known; otherwise what would have to be known.
    """
    sure, right, source = _known(run)
    if not len(sure):
        return _unknown(run)
    place = np.minimum((sure * _N_BINS).astype(int), _N_BINS - 1)
    n = np.bincount(place, minlength=_N_BINS)
    hits = np.bincount(place, weights=right, minlength=_N_BINS)
    used = np.flatnonzero(n)
    mean = np.bincount(place, weights=sure, minlength=_N_BINS)[used] / n[used]
    share = hits[used] / n[used]
    low, high = wilson(hits[used], n[used])
    gap = float(np.sum(n[used] * np.abs(share - mean)) / n.sum())
    accuracy, claimed = float(right.mean()), float(sure.mean())
    bounds = wilson(right.sum(), len(right))
    verdict, alerts = _claim(accuracy, claimed, (float(bounds[0]), float(bounds[1])))
    rows = tuple(
        (f"{k / _N_BINS:.1f} to {(k + 1) / _N_BINS:.1f}", int(n[k]), float(m), float(s), interval(lo, hi))
        for k, m, s, lo, hi in zip(used, mean, share, low, high)
    )
    picture = lines(
        mean.tolist(),
        [("share right", share.tolist())],
        "Share of right labels against the mean posterior",
        x_title="mean posterior",
        y_title="share right",
        high=1.0,
        bands=[(low.tolist(), high.tolist())],
        diagonal=True,
        joined=False,
        ends=(min(0.5, math.floor(10 * mean.min()) / 10), 1.0),
    )
    return Panel(
        "calibration",
        f"{percent(accuracy, 1)} of the labels are right, {verdict} ({percent(claimed, 1)}).",
        "Each point is a group of labels of similar posterior; on the dashed line they are right as often as "
        "they claim. Lines are 95% intervals.",
        f"{counted(len(right), 'item')} of known class ({source})",
        (picture,),
        (Table("Right labels by posterior", _COLUMNS, rows),),
        (),
        {
            "accuracy": accuracy,
            "claimed": claimed,
            "ece": gap,
            "n": len(right),
            "low": float(bounds[0]),
            "high": float(bounds[1]),
        },
        alerts,
    )


def _claim(accuracy: float, claimed: float, bounds: tuple[float, float]) -> tuple[str, tuple[Alert, ...]]:
    """Return how the accuracy compares with the mean posterior, and a warning where the posterior is too high."""
    if bounds[0] <= claimed <= bounds[1]:
        return "as the posterior claims", ()
    if claimed <= accuracy:
        return "more than the posterior claims", ()
    if claimed - accuracy < _CLEAR:
        return "slightly fewer than the posterior claims", ()
    text = f"The posterior claims {percent(claimed)} right labels, the known classes show {percent(accuracy)}: "
    return "fewer than the posterior claims", (Alert("warning", text + "it is too sure.", None, "calibration"),)


def _known(run: Run) -> tuple[Array, Array, str]:
    """Return posterior and correctness of the labels of known items that the fit did not see, and what is known."""
    model, known, source = run.model, run.truth, "truth"
    if not known and run.answers is not None and hasattr(model, "model_"):
        model, known, source = model.model_, run.answers.of_kind("random").values, "random answers, before calibration"
    if not known:
        return np.zeros(0), np.zeros(0), ""
    labels, seen = model.labels_.tolist(), model._gold
    pairs = [
        (model.posterior_[row].max(), float(labels[row] == known[item]))
        for row, item in enumerate(run.annotations.item_ids.tolist())
        if item in known and item not in seen and run.labelled[row]
    ]
    found = np.array(pairs, float).reshape(-1, 2)
    return found[:, 0], found[:, 1], source


def _unknown(run: Run) -> Panel:
    """Return the panel that says what is not known, and what twenty answers would buy."""
    known = run.confidence[run.labelled]
    claimed = float(known.mean()) if len(known) else 0.5
    half = 1.96 * math.sqrt(max(claimed * (1 - claimed), 0.01) / 20)
    return Panel(
        "calibration",
        "Whether the posterior is calibrated is not known: the class of no item was checked.",
        "Agreement among workers cannot show errors that they make together; only items of known class can.",
        "no item of known class",
        notes=(
            f"The posterior claims that {percent(claimed, 1)} of the labels are right. Twenty answers of an "
            f"expert on items drawn at random would tell this to within about {100 * half:.0f} percentage points, "
            f"two hundred to within {100 * half / math.sqrt(10):.0f}. To write twenty such questions: "
            "manyhands ask EXPORT --purpose confidence -n 20 -o questions.csv",
        ),
        values={"claimed": claimed, "n": 0},
        alerts=(
            Alert(
                "note", "No class was checked, so accuracy is an estimate of the method itself.", None, "calibration"
            ),
        ),
    )
