"""Panels of the input: what became of every row, how the labels are spread, which classes there are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.io.write.results import count_components
from manyhands.report.charts import Dot, columns, dots, stacked_bar
from manyhands.report.panel import Alert, Panel, Table, cut
from manyhands.report.picture_data import Picture
from manyhands.report.run import Array, Run
from manyhands.report.statistics import mean_interval, ratio_interval, wilson
from manyhands.report.svg import tick_text
from manyhands.report.wording import counted, interval, percent, quoted, visible

Shares = tuple[str, Array, Array, Array]  # name, share of each class, and its 95% interval
IntArray = npt.NDArray[np.intp]

_MOST_ROWS = 24  # classes in the pictures
_MOST_IN_CHART = 8
_MOST_PARTS = 6  # of the stacked bar
_LARGE_SHARE = 0.1  # of rows left out, from which the head of the page warns
_MOST_COLUMNS = 16  # of a histogram


def ledger(run: Run) -> Panel | None:
    """What became of every row of the export.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None without an export.
    """
    if run.reading is None:
        return None
    book = run.reading.ledger
    left_out = sorted(book.excluded.items(), key=lambda entry: -entry[1])
    parts = [("kept", book.kept), *((reason.replace("_", " "), count) for reason, count in left_out)]
    shown = parts[: _MOST_PARTS - 1] + (
        [("other reasons", sum(c for _, c in parts[_MOST_PARTS - 1 :]))] if len(parts) >= _MOST_PARTS else []
    )
    n_left_out = book.rows_read - book.kept
    share = n_left_out / max(book.rows_read, 1)
    if not n_left_out:
        title = f"All {counted(book.rows_read, 'row')} of the export count."
    else:
        title = f"{book.kept:,} of {counted(book.rows_read, 'row')} count; {percent(share)} were left out."
    rows = tuple((name, count, count / max(book.rows_read, 1)) for name, count in parts)
    notes = tuple(visible(text, 600) for text in run.reading.notes.values())
    alerts: tuple[Alert, ...] = ()
    if share >= _LARGE_SHARE:
        worst = left_out[0][0].replace("_", " ")
        alerts = (
            Alert(
                "warning",
                f"{percent(share)} of the rows were left out, most of them as: {worst}.",
                n_left_out,
                "ledger",
            ),
        )
    return Panel(
        "ledger",
        title,
        "Every row of the file is counted once: as kept, or under the reason for which it was left out.",
        counted(book.rows_read, "row"),
        (stacked_bar(shown, "Rows kept and left out: " + ", ".join(f"{name} {count}" for name, count in shown)),)
        if n_left_out
        else (),
        (Table("Rows of the export", ("what became of them", "rows", "share"), rows),),
        notes,
        {"rows_read": book.rows_read, "kept": book.kept, "excluded": dict(book.excluded)},
        alerts,
    )


def coverage(run: Run) -> Panel:
    """How many labels items and workers have, and whether all workers can be compared.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel
        Two histograms.
    """
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
        _coverage_alerts(n_parts, once, a.n_items),
    )


def _connected(n_parts: int) -> str:
    """Return whether all workers can be compared, as a sentence."""
    if n_parts == 1:
        return "All items and workers are connected through shared items."
    return f"Items and workers form {n_parts} groups that share nothing, so their workers cannot be compared."


def _coverage_alerts(n_parts: int, once: int, n_items: int) -> tuple[Alert, ...]:
    """Return the alerts about groups without a common item, and about items with one label."""
    alerts = []
    if n_parts > 1:
        text = f"The crowd consists of {n_parts} groups without a common item: compare workers within a group only."
        alerts.append(Alert("warning", text, n_parts, "coverage"))
    if once:
        text = f"{counted(once, 'item')} {'has' if once == 1 else 'have'} one label only, which nothing confirms."
        alerts.append(Alert("warning" if once > n_items / 2 else "note", text, once, "coverage"))
    return tuple(alerts)


def class_balance(run: Run) -> Panel:
    """Shares of the classes: among the votes, by the posterior, and among the answers.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel
        Dots with 95% intervals.
    """
    found = _class_shares(run)
    inferred = found[1][1]
    order = np.argsort(-inferred, kind="stable")
    most, n_shown = int(order[0]), min(len(order), _MOST_ROWS)
    notes = _class_notes(run, found[0][1], inferred)
    if len(order) > n_shown:
        notes.append(f"The pictures show the {n_shown} most frequent of {len(order):,} classes.")
    return Panel(
        "class-balance",
        f"{quoted(run.classes[most])} is the most frequent class: {percent(inferred[most])} of the items by the "
        f"posterior.",
        "Share of each class with a 95% interval over items: among the workers' votes, and by the posterior "
        "after the workers' errors are taken into account.",
        counted(int(run.labelled.sum()), "item"),
        _class_charts(run, found, order[:n_shown]),
        (_class_table(run, found, order),),
        tuple(notes),
        {"votes": found[0][1].round(6).tolist(), "posterior": inferred.round(6).tolist()},
    )


def _class_shares(run: Run) -> list[Shares]:
    """Return the shares of all classes among the votes and by the posterior, then among answers and truth if known."""
    a, posterior = run.annotations, run.model.posterior_[run.labelled]
    found: list[Shares] = [
        ("votes", *ratio_interval(run.votes.astype(float), a.n_labels.astype(float))),
        ("posterior", *mean_interval(posterior)),
    ]
    code_of = {value: k for k, value in enumerate(a.classes.tolist())}
    for name, known in (("answers", None if run.answers is None else run.answers.values), ("truth", run.truth)):
        if known:
            count = np.bincount([code_of[v] for v in known.values() if v in code_of], minlength=a.n_classes)
            found.append((name, count / max(count.sum(), 1), *wilson(count, count.sum())))
    return found


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


def _class_charts(run: Run, found: list[Shares], shown: IntArray) -> tuple[Picture, ...]:
    """Return the dots of some classes; many are divided into two pictures side by side."""
    top = max(float(high[shown].max()) for _, _, _, high in found)
    rows = [
        (run.classes[k], [Dot(value[k], low[k], high[k], s) for s, (_, value, low, high) in enumerate(found)])
        for k in shown
    ]
    half = len(rows) if len(rows) <= _MOST_IN_CHART else -(-len(rows) // 2)
    return tuple(
        dots(
            rows[first : first + half],
            "Share of each class among " + ", ".join(name for name, *_ in found),
            series=[name for name, *_ in found],
            high=_rounded_up(top),
            format_tick=lambda v: f"{v:.0%}",
        )
        for first in range(0, len(rows), half)
    )


def _class_table(run: Run, found: list[Shares], order: IntArray) -> Table:
    """Return the shares of all classes with their intervals."""
    rows = [
        (run.classes[k], *(cell for _, v, lo, hi in found for cell in (float(v[k]), interval(lo[k], hi[k], 3))))
        for k in order
    ]
    heads = tuple(cell for name, *_ in found for cell in (f"share of {name}", "95% interval"))
    return Table("Share of each class", ("class", *heads), *cut(rows, 100))


def _rounded_up(share: float) -> float:
    """Return the end of a scale that shows a share."""
    return min(1.0, float(np.ceil(share * 10 + 0.2) / 10))


def _spread(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[list[str], list[int]]:
    """Return a histogram of whole numbers, as single numbers or as ranges of equal width."""
    low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
    width = max(-(-(high - low + 1) // _MOST_COLUMNS), 1)
    edges = list(range(low, high + 1, width))
    found = np.bincount((counts - low) // width, minlength=len(edges)).tolist()
    return [str(e) if width == 1 else f"{tick_text(e)}–{tick_text(e + width - 1)}" for e in edges], found


def _doubling(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[list[str], list[int]]:
    """Return a histogram whose columns are 0, 1, 2–3, 4–7 and so on, without empty columns at the ends."""
    level = np.where(counts > 0, np.floor(np.log2(np.maximum(counts, 1))).astype(int) + 1, 0)
    first, last = (int(level.min()), int(level.max())) if len(level) else (0, 0)
    names = ["0", "1", *(f"{tick_text(2**p)}–{tick_text(2 ** (p + 1) - 1)}" for p in range(1, 40))]
    found = np.bincount(level, minlength=last + 1).tolist()
    return names[first : last + 1], found[first : last + 1]
