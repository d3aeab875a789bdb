"""The panel of inter-annotator agreement: overall, by class, by pair of workers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manyhands import metrics
from manyhands.exceptions import LimitError
from manyhands.metrics.agreement import Agreement
from manyhands.report.charts import Dot, dots
from manyhands.report.heat_maps import heat_map
from manyhands.report.panel import Alert, Panel, Table, cut
from manyhands.report.picture_data import Picture
from manyhands.report.run import Run
from manyhands.report.wording import counted, interval

ClassAlpha = tuple[str, float, float, float, int]  # class, alpha, its interval, number of labels

_N_BOOTSTRAP = 200
_MIN_SHARED = 5  # items that two workers must share
_MOST_IN_MAP = 16  # workers in the heat map
_MOST_CLASSES = 12  # in the picture
_MOST_ROWS = 100
_LEAST_FILLED = 0.3  # share of pairs with enough shared items, below which a heat map is mostly empty
_LOW, _FAIR = 0.4, 0.667  # alpha below which labels are unreliable, and from which tentative conclusions are usual


def agreement(run: Run) -> Panel | None:
    """Percent agreement, Fleiss' kappa and Krippendorff's alpha with intervals; by class; by pair of workers.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None if no item has labels of two workers.
    """
    a = run.annotations
    options: dict[str, Any] = {"n_bootstrap": _N_BOOTSTRAP, "random_state": 0}
    found = {
        "percent agreement": metrics.percent_agreement(a, **options),
        "Fleiss' kappa": metrics.fleiss_kappa(a, **options),
        "Krippendorff's alpha": metrics.krippendorff_alpha(a, **options),
    }
    alpha = found["Krippendorff's alpha"]
    if not alpha.n_items:
        return None
    by_class = _by_class(run)
    pictures, pair_rows, notes = [_chart(found, by_class)], [], []
    try:
        pairs = metrics.pair_agreement(a, _MIN_SHARED)
    except LimitError:
        notes.append("There are too many pairs of labels to compare the workers two by two.")
    else:
        pictures += _pair_map(run, pairs)
        pair_rows = _pair_rows(run, pairs)
    title, alerts = _verdict(alpha)
    return Panel(
        "agreement",
        title,
        "1 is perfect agreement, 0 is what chance gives (not so for percent agreement). The dashed line is "
        "0.667, below which conclusions are usually not drawn from labels.",
        f"{counted(alpha.n_items, 'item')} with labels of two or more workers",
        tuple(pictures),
        _tables(found, by_class, pair_rows),
        tuple(notes),
        {name: one.value for name, one in found.items()},
        alerts,
    )


def _chart(found: dict[str, Agreement], by_class: list[ClassAlpha]) -> Picture:
    """Return the dot plot of all measures with their intervals."""
    rows = [(name, [Dot(one.value, one.low, one.high)]) for name, one in found.items() if math.isfinite(one.value)]
    rows += [(name, [Dot(value, low, high, 1)]) for name, value, low, high, _ in by_class[:_MOST_CLASSES]]
    least = min([dot.low for _, values in rows for dot in values if math.isfinite(dot.low)], default=0.0)
    return dots(
        rows,
        "Agreement with 95% intervals",
        low=min(0.0, math.floor(least * 5) / 5),
        rule=_FAIR,
        series=("all classes", "Krippendorff's alpha of one class against the others") if by_class else (),
    )


def _verdict(alpha: Agreement) -> tuple[str, tuple[Alert, ...]]:
    """Return the title of the panel, and a warning where agreement is low."""
    if not math.isfinite(alpha.value):
        return f"Agreement cannot be corrected for chance: {alpha.reason}.", ()
    word = "low" if alpha.value < _LOW else "moderate" if alpha.value < _FAIR else "good"
    title = f"Agreement is {word}: Krippendorff's alpha is {alpha.value:.2f} ({interval(alpha.low, alpha.high)})."
    if alpha.value >= _LOW:
        return title, ()
    text = f"Workers agree little more than by chance (alpha {alpha.value:.2f}): check the guidelines, and "
    return title, (Alert("warning", text + "the flagged workers.", None, "agreement"),)


def _tables(found: dict[str, Agreement], by_class: list[ClassAlpha], pair_rows: list[Any]) -> tuple[Table, ...]:
    """Return the tables of measures, of classes and of pairs."""
    measures = tuple((name, one.value, interval(one.low, one.high)) for name, one in found.items())
    tables = [Table("Agreement", ("measure", "value", "95% interval"), measures)]
    if by_class:
        title = "Krippendorff's alpha of each class against the others"
        rows = tuple((name, value, interval(low, high), n) for name, value, low, high, n in by_class)
        tables.append(Table(title, ("class", "alpha", "95% interval", "labels"), *cut(rows, _MOST_ROWS)))
    shown, n_pairs = cut(pair_rows, 50)
    if shown:
        head = ("worker", "other worker", "shared items", "agreement", "Cohen's kappa")
        tables.append(Table("Pairs of workers, the lowest agreement first", head, shown, n_pairs))
    return tuple(tables)


def _by_class(run: Run) -> list[ClassAlpha]:
    """Return alpha of each class, the most frequent classes first."""
    if run.annotations.n_classes < 3:
        return []  # with two classes it is alpha itself
    found = metrics.class_agreement(run.annotations, n_bootstrap=_N_BOOTSTRAP, random_state=0)
    order = [int(k) for k in np.argsort(-found.n_labels, kind="stable") if math.isfinite(found.value[k])]
    return [
        (run.classes[k], float(found.value[k]), float(found.low[k]), float(found.high[k]), int(found.n_labels[k]))
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
    """Return pseudonyms by their first eight digits, if these tell the workers apart; other names as they are."""
    short = [name.removeprefix("worker-")[:8] for name in names]
    hidden = all(name.startswith("worker-") for name in names)
    return short if hidden and len(set(short)) == len(short) else names


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
