"""Panels of the labels as they came in: agreement, rows and their ledger, coverage, classes, and time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import metrics
from manyhands._core.arrays import Array
from manyhands.exceptions import LimitError
from manyhands.io.row_filtering import OF_CELLS, Ledger
from manyhands.io.write.results import count_components
from manyhands.metrics.agreement import Agreement
from manyhands.metrics.vote_patterns import wilson
from manyhands.report.drawing import Dot, Picture, columns, dots, heat_map, lines, stacked_bar, tick_text
from manyhands.report.run import (
    DAY,
    Notice,
    Panel,
    Run,
    Table,
    Times,
    cut,
    dated,
    day_names,
    mean_interval,
    pace,
    ratio_interval,
)
from manyhands.report.wording import counted, interval, percent, quoted, visible

# ----------------------------------------------------------------------------------------------------
# The panel of inter-annotator agreement: overall, by class, by pair of workers.

_ClassAlpha = tuple[str, float, float, float, int]  # class, alpha, its interval, number of labels
_N_BOOTSTRAP = 200  # resamples of an interval: fewer than `agree` takes, since a page has many intervals
_MIN_SHARED = 5  # items that two workers must share
_MOST_IN_MAP = 16  # workers in the heat map
_MOST_CLASSES = 12  # in the picture
_MOST_WORKER_PAIRS = 100
_NUMBERED = re.compile(r"worker-\d+")
_LEAST_FILLED = 0.3  # share of pairs with enough shared items, below which a heat map is mostly empty
_LOW, _FAIR = 0.4, 0.667  # alpha below which labels are unreliable, and from which tentative conclusions are usual


def agreement(run: Run) -> Panel | None:
    """Percent agreement, Fleiss' kappa and Krippendorff's alpha with intervals; by class; by pair of workers."""
    a = run.annotations
    options: dict[str, Any] = {"n_bootstrap": _N_BOOTSTRAP, "random_state": 0}
    alphas = {
        "percent agreement": metrics.percent_agreement(a, **options),
        "Fleiss' kappa": metrics.fleiss_kappa(a, **options),
        "Krippendorff's alpha": metrics.krippendorff_alpha(a, **options),
    }
    alpha = alphas["Krippendorff's alpha"]
    if not alpha.n_items:
        return None
    by_class = _by_class(run)
    pictures, pair_rows, notes = [_chart(alphas, by_class)], [], []
    try:
        pairs = metrics.pair_agreement(a, _MIN_SHARED)
    except LimitError:
        notes.append("There are too many pairs of labels to compare the workers two by two.")
    else:
        pictures += _pair_map(run, pairs)
        pair_rows = _pair_rows(run, pairs)
    title, notices = _verdict(alpha)
    return Panel(
        "agreement",
        title,
        "1 is perfect agreement, 0 is what chance gives (not so for percent agreement). The dashed line is "
        "0.667, below which conclusions are usually not drawn from labels.",
        f"{counted(alpha.n_items, 'item')} with labels of two or more workers",
        tuple(pictures),
        _tables(alphas, by_class, pair_rows),
        tuple(notes),
        {name: one.value for name, one in alphas.items()},
        notices,
    )


def _chart(alphas: dict[str, Agreement], by_class: list[_ClassAlpha]) -> Picture:
    """Return the dot plot of all measures with their intervals."""
    rows = [(name, [Dot(one.value, one.low, one.high)]) for name, one in alphas.items() if math.isfinite(one.value)]
    rows += [(name, [Dot(value, low, high, 1)]) for name, value, low, high, _ in by_class[:_MOST_CLASSES]]
    least = min([dot.low for _, values in rows for dot in values if math.isfinite(dot.low)], default=0.0)
    return dots(
        rows,
        "Agreement with 95% intervals",
        low=min(0.0, math.floor(least * 5) / 5),
        rule=_FAIR,
        series=("all classes", "Krippendorff's alpha of one class against the others") if by_class else (),
    )


def _verdict(alpha: Agreement) -> tuple[str, tuple[Notice, ...]]:
    """Return the title of the panel, and a warning where agreement is low."""
    if not math.isfinite(alpha.value):
        return f"Agreement cannot be corrected for chance: {alpha.reason}.", ()
    word = "low" if alpha.value < _LOW else "moderate" if alpha.value < _FAIR else "good"
    title = f"Agreement is {word}: Krippendorff's alpha is {alpha.value:.2f} ({interval(alpha.low, alpha.high)})."
    if alpha.value >= _LOW:
        return title, ()
    if alpha.low <= 0:
        text = f"Nothing shows that workers agree more than by chance (alpha {alpha.value:.2f})"
    else:
        text = f"Agreement is low (alpha {alpha.value:.2f}, where 0 is chance and conclusions usually need {_FAIR:.2f})"
    text += (
        ": check whether the guidelines tell the classes apart, and the labels of flagged workers, if there are any."
    )
    return title, (Notice("warning", text, None, "agreement"),)


def _tables(alphas: dict[str, Agreement], by_class: list[_ClassAlpha], pair_rows: list[Any]) -> tuple[Table, ...]:
    """Return the tables of measures, of classes and of pairs."""
    measures = tuple((name, one.value, interval(one.low, one.high)) for name, one in alphas.items())
    tables = [Table("Agreement", ("measure", "value", "95% interval"), measures)]
    if by_class:
        title = "Krippendorff's alpha of each class against the others"
        rows = tuple((name, value, interval(low, high), n) for name, value, low, high, n in by_class)
        tables.append(Table(title, ("class", "alpha", "95% interval", "labels"), *cut(rows, _MOST_WORKER_PAIRS)))
    shown, n_pairs = cut(pair_rows, 50)
    if shown:
        head = ("worker", "other worker", "shared items", "agreement", "Cohen's kappa")
        tables.append(Table("Pairs of workers, the lowest agreement first", head, shown, n_pairs))
    return tuple(tables)


def _by_class(run: Run) -> list[_ClassAlpha]:
    """Return alpha of each class, the most frequent classes first."""
    if run.annotations.n_classes < 3:
        return []  # with two classes it is alpha itself
    agreements = metrics.class_agreement(run.annotations, n_bootstrap=_N_BOOTSTRAP, random_state=0)
    order = [int(k) for k in np.argsort(-agreements.n_labels, kind="stable") if math.isfinite(agreements.value[k])]
    return [
        (
            run.classes[k],
            float(agreements.value[k]),
            float(agreements.low[k]),
            float(agreements.high[k]),
            int(agreements.n_labels[k]),
        )
        for k in order
    ]


def _pair_map(run: Run, pairs: Any) -> list[Picture]:
    """Return a heat map of the workers who share most items; nothing where few of them can be compared."""
    shared = np.bincount(pairs.a, pairs.n_shared, run.annotations.n_workers) + np.bincount(
        pairs.b, pairs.n_shared, run.annotations.n_workers
    )
    chosen = np.argsort(-shared, kind="stable")[: min(_MOST_IN_MAP, int((shared > 0).sum()))]
    place = {int(w): at for at, w in enumerate(chosen)}
    matrix = np.full((len(chosen), len(chosen)), np.nan)
    for one, other, value in zip(pairs.a.tolist(), pairs.b.tolist(), pairs.agreement.tolist()):
        if one in place and other in place:
            matrix[place[one], place[other]] = matrix[place[other], place[one]] = value
    n = len(chosen)
    if n < 3 or np.isfinite(matrix).sum() < _LEAST_FILLED * n * (n - 1):
        return []
    labels = _short_names([run.workers[int(w)] for w in chosen])
    return [
        heat_map(
            matrix,
            labels,
            labels,
            f"Agreement of the {n} workers who share most items, two by two",
            format_cell=lambda v: f"{100 * v:.0f}",
            y_title="worker",
            x_title="other worker",
            unit="items with the same label, per cent",
            most=1.0,
            tips=False,
        )
    ]


def _short_names(names: list[str]) -> list[str]:
    """Return numbered pseudonyms without the word that all have; other names as they are."""
    return [name.removeprefix("worker-") for name in names] if all(map(_NUMBERED.fullmatch, names)) else names


def _pair_rows(run: Run, pairs: Any) -> list[tuple[Any, ...]]:
    """Return one row for each pair of workers, the lowest agreement first."""
    order = np.lexsort((-pairs.n_shared, pairs.agreement))
    return [
        (
            run.workers[pairs.a[at]],
            run.workers[pairs.b[at]],
            int(pairs.n_shared[at]),
            float(pairs.agreement[at]),
            None if math.isnan(pairs.kappa[at]) else float(pairs.kappa[at]),
        )
        for at in order[:51].tolist()
    ] + [()] * max(len(order) - 51, 0)


# ----------------------------------------------------------------------------------------------------
# Panels of the input: what became of every row, how the labels are spread, which classes there are.

Shares = tuple[str, Array, Array, Array]  # name, share of each class, and its 95% interval
_IntArray = npt.NDArray[np.intp]
_MOST_LISTED_CLASSES = 24  # classes in the pictures
_MOST_IN_CHART = 8
_MOST_PARTS = 6  # of the stacked bar
_LARGE_SHARE = 0.1  # of rows left out, from which the head of the page warns
_MOST_COLUMNS = 16  # of a histogram


def ledger(run: Run) -> Panel | None:
    """What became of every row of the export."""
    if run.reading is None:
        return None
    book = run.reading.ledger
    unit = "cell" if run.reading.format in OF_CELLS else "row"
    n_blank = book.excluded.get("no_label", 0) if unit == "cell" else 0
    excluded = {("blank" if n_blank and name == "no_label" else name): n for name, n in book.excluded.items()}
    left_out = sorted(excluded.items(), key=lambda entry: -entry[1])
    parts = [("kept", book.kept), *((reason.replace("_", " "), count) for reason, count in left_out)]
    shown = parts[: _MOST_PARTS - 1] + (
        [("other reasons", sum(c for _, c in parts[_MOST_PARTS - 1 :]))] if len(parts) >= _MOST_PARTS else []
    )
    rows = tuple((name, count, count / max(book.rows_read, 1)) for name, count in parts)
    notes = tuple(visible(text, 600) for text in run.reading.notes.values())
    return Panel(
        "ledger",
        _ledger_title(book, unit, n_blank),
        f"Every {unit} of the file is counted once: as kept, or under the reason for which it was left out.",
        counted(book.rows_read, unit),
        (stacked_bar(shown, f"{unit.capitalize()}s of the file: " + ", ".join(f"{name} {n}" for name, n in shown)),)
        if book.kept < book.rows_read
        else (),
        (Table(f"{unit.capitalize()}s of the export", ("what became of them", f"{unit}s", "share"), rows),),
        notes,
        {"rows_read": book.rows_read, "kept": book.kept, "excluded": dict(book.excluded)},
        _ledger_notices(book, unit, n_blank),
    )


def _ledger_title(book: Ledger, unit: str, n_blank: int) -> str:
    """Return how many rows, or cells of a table, count."""
    n_rows = book.rows_read - n_blank
    what = counted(n_rows, unit) + (" with a label" if n_blank else "")
    if book.kept == n_rows:
        title = f"All {what} of the export count"
    else:
        title = f"{book.kept:,} of {what} count; {percent((n_rows - book.kept) / max(n_rows, 1))} were left out"
    return f"{title}; {counted(n_blank, 'cell')} {'is' if n_blank == 1 else 'are'} blank." if n_blank else f"{title}."


def _ledger_notices(book: Ledger, unit: str, n_blank: int) -> tuple[Notice, ...]:
    """Return a warning where many rows are left out that nobody asked to leave out; blank cells are no rows."""
    asked = [(reason, n) for reason, n in book.excluded.items() if not reason.startswith("excluded_")]
    unasked = [(reason, n) for reason, n in asked if not (n_blank and reason == "no_label")]
    n_left_out, n_rows = sum(n for _, n in unasked), book.rows_read - n_blank
    if not n_left_out or n_left_out < _LARGE_SHARE * n_rows:
        return ()
    worst = max(unasked, key=lambda entry: entry[1])[0].replace("_", " ")
    text = f"{percent(n_left_out / n_rows)} of the {unit}s were left out, most of them as: {worst}."
    return (Notice("warning", text, n_left_out, "ledger"),)


def coverage(run: Run) -> Panel:
    """How many labels items and workers have, and whether all workers can be compared."""
    a = run.annotations
    per_item, per_worker = a.n_labels, np.bincount(a.worker, minlength=a.n_workers)
    items, workers = _spread(per_item), _doubling(per_worker)
    n_parts, once = count_components(a), int((per_item == 1).sum())
    mean, share = a.n_annotations / max(a.n_items, 1), once / max(a.n_items, 1)
    title = f"An item has {mean:.1f} labels on average; {percent(share)} of the items have only one."
    if not once:
        least = int(per_item.min()) if a.n_items else 0
        title = f"An item has {mean:.1f} labels on average, and every item has at least {least}."
    n_unlabelled = int((per_item == 0).sum())
    values = {"n_components": n_parts, "labels_per_item": mean, "n_labelled_once": once, "n_unlabelled": n_unlabelled}
    return Panel(
        "coverage",
        title,
        "The first picture counts items by their number of labels, the second workers by theirs, each column twice as "
        "wide as the one before.",
        f"{counted(a.n_annotations, 'label')} on {counted(a.n_items, 'item')} by {counted(a.n_workers, 'worker')}",
        (
            columns(*items, "Number of items by their number of labels", "labels of an item", "items"),
            columns(*workers, "Number of workers by their number of labels", "labels of a worker", "workers"),
        ),
        (
            Table("Items by their number of labels", ("labels", "items"), tuple(zip(*items))),
            Table("Workers by their number of labels", ("labels", "workers"), tuple(zip(*workers))),
        ),
        (_connected(n_parts),),
        values,
        _coverage_notices(n_parts, once, a.n_items),
    )


def _connected(n_parts: int) -> str:
    """Return whether all workers can be compared, as a sentence."""
    if n_parts == 1:
        return "All items and workers are connected through shared items."
    return f"Items and workers form {n_parts} groups that share nothing, so their workers cannot be compared."


def _coverage_notices(n_parts: int, once: int, n_items: int) -> tuple[Notice, ...]:
    """Return the notices about groups without a common item, and about items with one label."""
    notices = []
    if n_parts > 1:
        text = f"The crowd consists of {n_parts} groups without a common item: compare workers within a group only."
        notices.append(Notice("warning", text, n_parts, "coverage"))
    if once:
        text = f"{counted(once, 'item')} {'has' if once == 1 else 'have'} one label only, which nothing confirms."
        notices.append(Notice("warning" if once > n_items / 2 else "note", text, once, "coverage"))
    return tuple(notices)


def class_balance(run: Run) -> Panel:
    """Shares of the classes: among the votes, by the posterior, and among the answers."""
    shares = _class_shares(run)
    inferred = shares[1][1]
    order = np.argsort(-inferred, kind="stable")
    most, n_shown = int(order[0]), min(len(order), _MOST_LISTED_CLASSES)
    notes = _class_notes(run, shares[0][1], inferred)
    if len(order) > n_shown:
        notes.append(f"The pictures show the {n_shown} most frequent of {len(order):,} classes.")
    return Panel(
        "class-balance",
        f"{quoted(run.classes[most])} is the most frequent class: {percent(inferred[most])} of the items by the "
        f"posterior.",
        "Share of each class with a 95% interval over items: among the workers' votes, and by the posterior "
        "after the workers' errors are taken into account.",
        counted(int(run.labelled.sum()), "item"),
        _class_charts(run, shares, order[:n_shown]),
        (_class_table(run, shares, order),),
        tuple(notes),
        {"votes": shares[0][1].round(6).tolist(), "posterior": inferred.round(6).tolist()},
    )


def _class_shares(run: Run) -> list[Shares]:
    """Return the shares of all classes among the votes and by the posterior, then among answers and truth if known."""
    a, posterior = run.annotations, run.model.posterior_[run.labelled]
    shares: list[Shares] = [
        ("votes", *ratio_interval(run.votes.astype(float), a.n_labels.astype(float))),
        ("posterior", *mean_interval(posterior)),
    ]
    code_of = {value: k for k, value in enumerate(a.classes.tolist())}
    for name, values in (("answers", None if run.answers is None else run.answers.values), ("truth", run.truth)):
        if values:
            count = np.bincount([code_of[v] for v in values.values() if v in code_of], minlength=a.n_classes)
            shares.append((name, count / max(count.sum(), 1), *wilson(count, count.sum())))
    return shares


def _class_notes(run: Run, votes: Array, inferred: Array) -> list[str]:
    """Return what is to be said of shares that differ, and of answers that were not drawn at random."""
    notes = []
    shift = np.abs(votes - inferred)
    moved = int(shift.argmax())
    if shift[moved] >= 0.03:
        more = votes[moved] > inferred[moved]
        notes.append(
            f"{quoted(run.classes[moved])} has {percent(votes[moved])} of the votes and "
            f"{percent(inferred[moved])} of the items: workers choose it {'more' if more else 'less'} often than it "
            f"occurs, or its items have {'more' if more else 'fewer'} labels."
        )
    if run.answers is not None and run.answers.kinds.keys() != {"random"}:
        notes.append("The answered items were not all drawn at random, so their shares are not those of all items.")
    return notes


def _class_charts(run: Run, shares: list[Shares], shown: _IntArray) -> tuple[Picture, ...]:
    """Return the dots of some classes; many are divided into two pictures side by side."""
    top = max(float(high[shown].max()) for _, _, _, high in shares)
    rows = [
        (run.classes[k], [Dot(value[k], low[k], high[k], s) for s, (_, value, low, high) in enumerate(shares)])
        for k in shown
    ]
    half = len(rows) if len(rows) <= _MOST_IN_CHART else -(-len(rows) // 2)
    return tuple(
        dots(
            rows[first : first + half],
            "Share of each class among " + ", ".join(name for name, *_ in shares),
            series=[name for name, *_ in shares],
            high=_rounded_up(top),
            format_tick=lambda v: f"{v:.0%}",
        )
        for first in range(0, len(rows), half)
    )


def _class_table(run: Run, shares: list[Shares], order: _IntArray) -> Table:
    """Return the shares of all classes with their intervals."""
    rows = [
        (run.classes[k], *(cell for _, v, lo, hi in shares for cell in (float(v[k]), interval(lo[k], hi[k], 3))))
        for k in order
    ]
    heads = tuple(cell for name, *_ in shares for cell in (f"share of {name}", "95% interval"))
    return Table("Share of each class", ("class", *heads), *cut(rows, 100))


def _rounded_up(share: float) -> float:
    """Return the end of a scale that shows a share."""
    return min(1.0, float(np.ceil(share * 10 + 0.2) / 10))


def _spread(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[list[str], list[int]]:
    """Return a histogram of whole numbers, as single numbers or as ranges of equal width."""
    low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
    width = max(-(-(high - low + 1) // _MOST_COLUMNS), 1)
    edges = list(range(low, high + 1, width))
    sizes = np.bincount((counts - low) // width, minlength=len(edges)).tolist()
    return [str(e) if width == 1 else f"{tick_text(e)}–{tick_text(e + width - 1)}" for e in edges], sizes


def _doubling(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[list[str], list[int]]:
    """Return a histogram whose columns are 0, 1, 2–3, 4–7 and so on, without empty columns at the ends."""
    level = np.where(counts > 0, np.floor(np.log2(np.maximum(counts, 1))).astype(int) + 1, 0)
    first, last = (int(level.min()), int(level.max())) if len(level) else (0, 0)
    names = ["0", "1", *(f"{tick_text(2**p)}–{tick_text(2 ** (p + 1) - 1)}" for p in range(1, 40))]
    sizes = np.bincount(level, minlength=last + 1).tolist()
    return names[first : last + 1], sizes[first : last + 1]


# ----------------------------------------------------------------------------------------------------
# The panel of time: labels per day, speed, and quality over time.

_MOST_POINTS = 40
_MIN_LABELS = 20  # of a period whose quality is compared
_DROP = 0.1  # fall of quality that is worth a warning


def time_course(run: Run) -> Panel | None:
    """Labels per day or week, and the expected share of right labels."""
    times = dated(run)
    if times is None:
        return None
    a = run.annotations
    dated_rows = np.flatnonzero(times >= 0)
    course = _course(times[dated_rows], run.model.posterior_[a.item[dated_rows], a.label[dated_rows]])
    word, names = course.word, course.names
    seconds = [pace(times[a.worker == w]) for w in range(a.n_workers)]
    usual = float(np.nanmedian(seconds)) if np.isfinite(seconds).any() else math.nan
    pause = f"A typical worker needs {usual:.0f} s from one label to the next (pauses above ten minutes left out)."
    fall, change, notices = _fall(course)
    labels = counted(len(dated_rows), "label")
    when = f"on {names[0]}" if names[0] == names[-1] else f"from {names[0]} to {names[-1]}"
    return Panel(
        "time",
        change or f"{labels} {when}; {_unchanged(course)}.",
        f"The first picture counts labels per {word}; the second shows the expected share of right labels per "
        f"{word}, by the posterior, with 95% intervals.",
        f"{labels} with a time",
        _pictures(course),
        (_table(course),),
        (pause,) if math.isfinite(usual) else (),
        {
            "n": len(dated_rows),
            "first": int(times[dated_rows].min()),
            "last": int(times[dated_rows].max()),
            "seconds": usual,
            "fall": fall,
        },
        notices,
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
    intervals = [_interval(values) for values in inside]
    mean, low, high = ([row[at] for row in intervals] for at in range(3))
    return _Course(word, day_names([at * width for at in periods]), [len(v) for v in inside], mean, low, high)


def _fall(course: _Course) -> tuple[float, str, tuple[Notice, ...]]:
    """Return how far quality fell, and a title and a notice where the intervals of first and last period are apart."""
    tested = [at for at, n in enumerate(course.n) if n >= _MIN_LABELS]
    if len(tested) < 2:
        return 0.0, "", ()
    first, last = tested[0], tested[-1]
    fall = course.mean[first] - course.mean[last]
    if course.high[last] >= course.low[first]:
        return fall, "", ()
    title = f"The share of right labels fell from {course.mean[first]:.0%} to {course.mean[last]:.0%}."
    text = f"Quality fell by {100 * fall:.0f} points from the first {course.word} to the last."
    return fall, title, (Notice("warning" if fall >= _DROP else "note", text, None, "time"),)


def _unchanged(course: _Course) -> str:
    """Return what can be said of quality over time where no fall is shown."""
    tested = [at for at, n in enumerate(course.n) if n >= _MIN_LABELS]
    if len(tested) < 2:
        subject = f"only one {course.word} has" if tested else f"no {course.word} has"
        return f"{subject} {_MIN_LABELS} labels or more, so quality over time is not compared"
    return f"nothing shows that quality fell from the first {course.word} to the last"


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
