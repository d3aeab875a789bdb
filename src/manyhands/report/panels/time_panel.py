"""The panel of time: labels per day, speed, and quality over time."""

from __future__ import annotations

import math

import numpy as np

from manyhands.report.curves import lines
from manyhands.report.label_times import DAY, Times, dated, day_names, pace
from manyhands.report.panel import Alert, Panel, Table
from manyhands.report.run import Array, Run
from manyhands.report.statistics import mean_interval
from manyhands.report.wording import counted, interval

_MOST_POINTS = 40
_DROP = 0.1  # fall of quality that is worth a warning


def time_course(run: Run) -> Panel | None:
    """Labels per day or week, and the expected share of right labels.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None if the export has no times.
    """
    times = dated(run)
    if times is None:
        return None
    a = run.annotations
    known = np.flatnonzero(times >= 0)
    width, word = _width(times[known])
    period = times[known] // width
    first, last = int(period.min()), int(period.max())
    right = run.model.posterior_[a.item[known], a.label[known]]
    start = [at * width for at in range(first, last + 1)]
    inside = [right[period == at] for at in range(first, last + 1)]
    n = [len(values) for values in inside]
    found = [_interval(values) for values in inside]
    mean, low, high = ([row[at] for row in found] for at in range(3))
    names = day_names(start)
    seconds = [pace(times[a.worker == w]) for w in range(a.n_workers)]
    usual = float(np.nanmedian(seconds)) if np.isfinite(seconds).any() else math.nan
    tested = [at for at in range(len(n)) if n[at] >= 20]
    fall = mean[tested[0]] - mean[tested[-1]] if len(tested) > 1 else 0.0
    certain = len(tested) > 1 and high[tested[-1]] < low[tested[0]]
    title = f"{counted(len(known), 'label')} from {names[0]} to {names[-1]}; quality is steady."
    alerts: tuple[Alert, ...] = ()
    if certain:
        title = f"The share of right labels fell from {mean[tested[0]]:.0%} to {mean[tested[-1]]:.0%}."
        severity = "warning" if fall >= _DROP else "note"
        alerts = (
            Alert(
                severity, f"Quality fell by {100 * fall:.0f} points from the first {word} to the last.", None, "time"
            ),
        )
    place = [float(at) for at in range(len(n))]
    return Panel(
        "time",
        title,
        f"Left: labels per {word}. Right: the expected share of right labels per {word}, by the posterior, with "
        "95% intervals.",
        f"{counted(len(known), 'label')} with a time",
        (
            lines(
                place,
                [("labels", [float(v) for v in n])],
                f"Labels per {word}",
                x_title=word,
                y_title="labels",
                x_names=names,
            ),
            lines(
                place,
                [("share right", mean)],
                f"Expected share of right labels per {word}",
                x_title=word,
                y_title="share right",
                high=1.0,
                x_names=names,
                bands=[(low, high)],
            ),
        ),
        (
            Table(
                f"Labels and quality per {word}",
                (word, "labels", "share right", "95% interval"),
                tuple(
                    (name, count, None if math.isnan(m) else m, interval(lo, hi))
                    for name, count, m, lo, hi in zip(names, n, mean, low, high)
                ),
            ),
        ),
        (f"A typical worker needs {usual:.0f} s from one label to the next (pauses above ten minutes left out).",)
        if math.isfinite(usual)
        else (),
        {
            "n": len(known),
            "first": int(times[known].min()),
            "last": int(times[known].max()),
            "seconds": usual,
            "fall": fall,
        },
        alerts,
    )


def _interval(right: Array) -> tuple[float, float, float]:
    """Return the mean with its interval; NaN without labels."""
    if not len(right):
        return math.nan, math.nan, math.nan
    mean, low, high = mean_interval(right[:, None])
    return float(mean[0]), float(low[0]), float(high[0])


def _width(times: Times) -> tuple[int, str]:
    """Return the length of a period and its name: an hour, a day, a week or four weeks."""
    span = int(times.max() - times.min())
    for width, word in ((DAY // 24, "hour"), (DAY, "day"), (7 * DAY, "week")):
        if span <= _MOST_POINTS * width:
            return width, word
    return max(28 * DAY, span // _MOST_POINTS + 1), "period"
