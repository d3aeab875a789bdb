"""The panel of time: labels per day, speed, and quality over time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyhands.report.curves import lines
from manyhands.report.label_times import DAY, Times, dated, day_names, pace
from manyhands.report.panel import Alert, Panel, Table
from manyhands.report.picture_data import Picture
from manyhands.report.run import Array, Run
from manyhands.report.statistics import mean_interval
from manyhands.report.wording import counted, interval

_MOST_POINTS = 40
_MIN_LABELS = 20  # of a period whose quality is compared
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
    course = _course(times[known], run.model.posterior_[a.item[known], a.label[known]])
    word, names = course.word, course.names
    seconds = [pace(times[a.worker == w]) for w in range(a.n_workers)]
    usual = float(np.nanmedian(seconds)) if np.isfinite(seconds).any() else math.nan
    pause = f"A typical worker needs {usual:.0f} s from one label to the next (pauses above ten minutes left out)."
    fall, change, alerts = _fall(course)
    labels = counted(len(known), "label")
    return Panel(
        "time",
        change or f"{labels} from {names[0]} to {names[-1]}; quality is steady.",
        f"The first picture counts labels per {word}; the second shows the expected share of right labels per "
        f"{word}, by the posterior, with 95% intervals.",
        f"{labels} with a time",
        _pictures(course),
        (_table(course),),
        (pause,) if math.isfinite(usual) else (),
        {
            "n": len(known),
            "first": int(times[known].min()),
            "last": int(times[known].max()),
            "seconds": usual,
            "fall": fall,
        },
        alerts,
    )


@dataclass(frozen=True)
class _Course:
    """Periods of equal length: their name and dates, numbers of labels, and shares of right labels with intervals."""

    word: str
    names: list[str]
    n: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]


def _course(times: Times, right: Array) -> _Course:
    """Divide the labels into periods."""
    width, word = _width(times)
    period = times // width
    periods = range(int(period.min()), int(period.max()) + 1)
    inside = [right[period == at] for at in periods]
    found = [_interval(values) for values in inside]
    mean, low, high = ([row[at] for row in found] for at in range(3))
    return _Course(word, day_names([at * width for at in periods]), [len(v) for v in inside], mean, low, high)


def _fall(course: _Course) -> tuple[float, str, tuple[Alert, ...]]:
    """Return how far quality fell, and a title and an alert where the intervals of first and last period are apart."""
    tested = [at for at, n in enumerate(course.n) if n >= _MIN_LABELS]
    if len(tested) < 2:
        return 0.0, "", ()
    first, last = tested[0], tested[-1]
    fall = course.mean[first] - course.mean[last]
    if course.high[last] >= course.low[first]:
        return fall, "", ()
    title = f"The share of right labels fell from {course.mean[first]:.0%} to {course.mean[last]:.0%}."
    text = f"Quality fell by {100 * fall:.0f} points from the first {course.word} to the last."
    return fall, title, (Alert("warning" if fall >= _DROP else "note", text, None, "time"),)


def _pictures(course: _Course) -> tuple[Picture, Picture]:
    """Return the curves of labels and of quality."""
    place, word = [float(at) for at in range(len(course.n))], course.word
    labels = [("labels", [float(value) for value in course.n])]
    count = lines(place, labels, f"Labels per {word}", x_title=word, y_title="labels", x_names=course.names)
    quality = lines(
        place,
        [("share right", course.mean)],
        f"Expected share of right labels per {word}",
        x_title=word,
        y_title="share right",
        high=1.0,
        x_names=course.names,
        bands=[(course.low, course.high)],
    )
    return count, quality


def _table(course: _Course) -> Table:
    """Return the figures of each period."""
    rows = tuple(
        (name, n, None if math.isnan(mean) else mean, interval(low, high))
        for name, n, mean, low, high in zip(course.names, course.n, course.mean, course.low, course.high)
    )
    return Table(f"Labels and quality per {course.word}", (course.word, "labels", "share right", "95% interval"), rows)


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
