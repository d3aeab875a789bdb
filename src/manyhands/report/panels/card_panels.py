"""A card for each worker: confusions, bias, speed and drift, and what to tell them."""

from __future__ import annotations

import math

import numpy as np

from manyhands.report.curves import lines
from manyhands.report.heat_maps import heat_map
from manyhands.report.label_times import dated, day_names, pace
from manyhands.report.panel import Panel, Table
from manyhands.report.panels.worker_panel import order_of_workers
from manyhands.report.picture_data import Picture
from manyhands.report.run import Array, Run
from manyhands.report.wording import counted, percent, visible

_MOST_CARDS = 24
_MOST_CELLS = 1000  # of all confusion matrices together
_MOST_CLASSES = 12  # of a confusion matrix that is drawn
_CARD_WIDTH = 268.0  # of the confusion matrix: it is not made smaller on a phone
_N_EXAMPLES = 3
_FEW = 30  # labels below which quality over time is not drawn


def worker_cards(run: Run) -> Panel | None:
    """The card of each flagged worker, then of those with most labels.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None without scorecards.
    """
    cards = run.cards
    if cards is None or not len(cards) or (run.reading is not None and not run.reading.workers_known):
        return None
    n_classes = run.annotations.n_classes
    most = min(_MOST_CARDS, max(_MOST_CELLS // n_classes**2, 6))
    order = [w for w in order_of_workers(run) if cards.n_labels[w]]
    flagged = [w for w in order if cards.flags[w]][: most * 2 // 3]
    others = [w for w in order if w not in set(flagged)]
    others.sort(key=lambda w: (bool(cards.flags[w]), -int(cards.n_labels[w])))
    made = (_card(run, w) for w in [*flagged, *others][:most])
    parts = tuple(card for card in made if card.svg or card.table or card.notes)  # else the table of workers has it all
    biased = int((cards.bias_class >= 0).sum())
    title = f"{counted(biased, 'worker')} {'uses' if biased == 1 else 'use'} a class too often."
    how = "One card per worker, flagged ones first, then those with most labels."
    if n_classes <= _MOST_CLASSES:
        how += " Rows of a matrix are true classes by the posterior, columns the labels given, in per cent of the row."
    note = f"{len(parts)} of {len(order):,} workers have a card here; the panel above lists all."
    if not parts:
        how, note = "A card shows the confusions of a worker and what is noticeable.", "No worker needs one here."
    return Panel(
        "worker-cards",
        title if biased else "No worker uses a class significantly too often.",
        how,
        counted(len(order), "worker") + " with labels",
        notes=(note,) if len(parts) < len(order) else (),
        values={"n_cards": len(parts), "n_biased": biased},
        parts=parts,
    )


def _card(run: Run, w: int) -> Panel:
    """Return the card of one worker."""
    assert run.cards is not None
    card = run.cards[w]
    a = run.annotations
    mine = np.flatnonzero(a.worker == w)
    facts = [
        f"{counted(card.n_labels, 'label')}; accuracy {card.accuracy:.2f} ({card.accuracy_low:.2f} to "
        f"{card.accuracy_high:.2f})"
    ]
    if card.bias is not None:
        facts.append(f"uses {visible(card.bias_class, 60)} too often, by {percent(card.bias)} of the labels")
    times = dated(run)
    spent = None if run.reading is None else run.reading.working_time.get(a.worker_ids[w])
    if spent is not None and len(spent):
        facts.append(f"typically {np.median(spent):.0f} s for a label")
    elif times is not None and math.isfinite(seconds := pace(times[mine])):
        facts.append(f"typically {seconds:.0f} s between two labels")
    pictures = []
    if a.n_classes <= _MOST_CLASSES:
        rate = _confusion(run, mine)
        name = visible(card.worker, 60)
        pictures.append(
            heat_map(
                rate,
                run.classes,
                run.classes,
                f"Confusion matrix of {name}",
                format_cell=lambda v: f"{100 * v:.0f}",
                y_title="true class",
                x_title="label",
                most=1.0,
                width=_CARD_WIDTH,
                tips=False,
            )
        )
    tables = []
    if times is not None and len(mine) >= _FEW and (course := _drift(run, mine, times[mine])) is not None:
        pictures.append(course[0])
        tables.append(course[1])
    confused = tuple(
        (visible(k, 60), visible(c, 60), round(n, 1), rate, ", ".join(_examples(run, mine, k, c)) or None)
        for k, c, n, rate in card.top_confusions
    )
    heads = ("true class", "labelled as", "about", "share", "items such as")
    title = f"Typical confusions of {visible(card.worker, 60)}"
    if confused:
        tables.insert(0, Table(title, heads, confused, short="Typical confusions"))
    flags = f": {', '.join(card.flags)}" if card.flags else ""
    return Panel(
        f"card-{w}",
        f"{visible(card.worker, 60)}{flags}",
        "; ".join(facts) + ".",
        counted(card.n_labels, "label"),
        tuple(pictures),
        tuple(tables),
        tuple(visible(reason, 300) for reason in card.reasons),
    )


def _confusion(run: Run, mine: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Array:
    """Return the share of each label among a worker's labels on each true class; NaN for a class without labels."""
    a, posterior = run.annotations, run.model.posterior_
    counts = np.zeros((a.n_classes, a.n_classes))
    np.add.at(counts.T, a.label[mine], posterior[a.item[mine]])
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total >= 0.5, counts / np.maximum(total, 1e-12), np.nan)


def _drift(
    run: Run, mine: np.ndarray[tuple[int], np.dtype[np.int64]], when: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[Picture, Table] | None:
    """Return the expected share of right labels in five equal parts in the order of time; None for few labels."""
    known = np.flatnonzero(when >= 0)
    if len(known) < _FEW:
        return None
    order = known[np.argsort(when[known], kind="stable")]
    a = run.annotations
    right = run.model.posterior_[a.item[mine[order]], a.label[mine[order]]]
    parts = np.array_split(right, 5)
    first = day_names([int(part[0]) for part in np.array_split(when[order], 5)])
    share = [float(part.mean()) for part in parts]
    picture = lines(
        list(range(5)),
        [("share right", share)],
        "Expected share of right labels from the first to the last fifth",
        x_title="from the first to the last fifth of the labels",
        y_title="share right",
        high=1.0,
        x_names=first,
    )
    rows = tuple((day, len(part), mean) for day, part, mean in zip(first, parts, share))
    title = f"Quality over time of {run.workers[a.worker[mine[0]]]}"
    return picture, Table(title, ("from", "labels", "share right"), rows, short="Quality over time")


def _examples(run: Run, mine: np.ndarray[tuple[int], np.dtype[np.int64]], truth: object, label: object) -> list[str]:
    """Return items of one true class to which the worker gave another, the surest first."""
    codes = {value: k for k, value in enumerate(run.annotations.classes.tolist())}
    items = run.annotations.item[mine]
    found = items[(run.annotations.label[mine] == codes[label]) & (run.codes[items] == codes[truth])]
    order = found[np.lexsort((found, -run.confidence[found]))]
    return [run.item_name(int(row)) for row in order[:_N_EXAMPLES]]
