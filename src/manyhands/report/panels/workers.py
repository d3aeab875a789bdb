"""Panels of the workers: the map of all, a card for each, and subgroups."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Codes
from manyhands.metrics.position_bias import PositionBias
from manyhands.report.drawing import Dot, Picture, Point, dots, heat_map, lines, scatter
from manyhands.report.run import Notice, Panel, Run, Table, cut, dated, day_names, pace
from manyhands.report.wording import accusation, counted, interval, joined, percent, visible
from manyhands.scorecards import ACCUSATIONS, Scorecards
from manyhands.trust.machines import benjamini_yekutieli

# ----------------------------------------------------------------------------------------------------
# The map of all workers: how much each labelled, how well, and who is flagged for what.

SERIES = {"no alert": 0, "random": 1, "one-class": 2, "inverted": 3, "copying": 4, "undecided": 5, "weak": 6, "fast": 7}
_ALSO_UNDECIDED = ("undecided", "too-few-labels")
_MOST_ROWS = 200
_MOST_POINTS = 800  # of the picture
MOST_CHANGED = 10  # items whose label would be another one without the flagged workers


def _series_of(alerts: tuple[str, ...]) -> str:
    """Return the alert that a worker's mark shows."""
    for alert in ACCUSATIONS:
        if alert in alerts:
            return alert
    if "fast" in alerts:
        return "fast"
    return "undecided" if any(alert in alerts for alert in _ALSO_UNDECIDED) else "no alert"


def _order_of_workers(run: Run) -> list[int]:
    """Return the workers in the order of tables: flagged ones first, then by the number of labels."""
    assert run.cards is not None
    accused = np.array([any(alert in ACCUSATIONS for alert in alerts) for alerts in run.cards.alerts], bool)
    return np.lexsort((-run.cards.n_labels, ~accused)).tolist()


def worker_map(run: Run) -> Panel | None:
    """Number of labels against accuracy of every worker; shape and colour tell the alert."""
    cards = run.cards
    if cards is None or not len(cards) or (run.reading is not None and not run.reading.workers_known):
        return None
    kinds = [_series_of(alerts) for alerts in cards.alerts]
    counts = Counter(kinds)
    named = np.flatnonzero(cards.n_labels > 0)
    points = _points(run, cards, kinds, named)
    flagged = {alert: counts[alert] for alert in ACCUSATIONS if counts[alert]}
    typical = float(np.median(cards.accuracy[named])) if len(named) else math.nan
    findings = joined([f"{n} {accusation(alert, n)}" for alert, n in flagged.items()]) or "no worker is flagged"
    rows, n_rows = cut([_row(run, w) for w in _order_of_workers(run)], _MOST_ROWS)
    head = (
        "worker",
        "labels",
        "accuracy",
        "95% interval",
        *_measures(cards),
        *_position_head(cards),
        "alerts",
        "reason",
    )
    basis = "Accuracy is estimated from the other workers' labels on the same items, without the worker's own."
    if cards.coverage is not None:
        basis = (
            "These workers use one class each. Accuracy is their precision: the mean posterior of their labels. "
            "Coverage is the share of items that they label; overlap and conflict are the shares of these that another "
            "worker labels too, and labels otherwise."
        )
    return Panel(
        "workers",
        f"Half of the workers are right in at least {typical:.0%} of their labels; {findings}.",
        "Each mark is a worker: further right means more labels, higher means more of them right. Vertical lines "
        "are 95% intervals"
        + (", left out here as there are many workers" if len(points) > 150 else "")
        + (f"; {_MOST_POINTS} of them are drawn." if len(named) > _MOST_POINTS else "."),
        counted(len(cards), "worker"),
        (_picture(points, counts),),
        (Table("Workers, flagged ones first", head, rows, n_rows, run.full_workers), *_changed_labels(run)),
        (basis, *without_flagged_sentence(run)),
        {"n_flagged": sum(flagged.values()), "alerts": dict(counts), "median_accuracy": typical},
        (*_notices(cards, kinds, flagged), *_notice_without(run)),
    )


def without_flagged_sentence(run: Run) -> tuple[str, ...]:
    """Return what the labels would be without the flagged workers as a sentence, if it is known."""
    refit = run.without_flagged
    if refit is None:
        return ()
    n, who = len(refit.changed), f"Without the {counted(refit.n_workers, 'flagged worker')}"
    share = (
        f"{n:,} of {counted(refit.n_items, 'item')} would have another label ({percent(n / max(refit.n_items, 1), 1)})"
    )
    share = share if n else "no item would have another label"
    gone = sum(other is None for _, _, other in refit.changed)
    none = f", of which {gone:,} would have none at all" if gone else ""
    return (f"{who}, who gave {counted(refit.n_labels, 'label')}, {share}{none}.",)


def _notice_without(run: Run) -> tuple[Notice, ...]:
    """Return a notice where labels would be different without the flagged workers."""
    if run.without_flagged is None or not run.without_flagged.changed:
        return ()
    (sentence,) = without_flagged_sentence(run)
    return (Notice("note", sentence, len(run.without_flagged.changed), "workers"),)


def _changed_labels(run: Run) -> tuple[Table, ...]:
    """Return the first items whose label would be another one without the flagged workers."""
    refit = run.without_flagged
    if refit is None or not refit.changed:
        return ()
    rows = [tuple(None if cell is None else visible(cell, 80) for cell in row) for row in refit.changed[:MOST_CHANGED]]
    n_rows = len(refit.changed) if len(refit.changed) > MOST_CHANGED else None
    title = "Items that would have another label without the flagged workers"
    return (Table(title, ("item", "label", "label without them"), tuple(rows), n_rows, refit.full),)


def _points(run: Run, cards: Scorecards, kinds: list[str], named: npt.NDArray[np.int64]) -> list[Point]:
    """Return the marks of workers with labels, an even selection of very many; flagged ones are drawn last."""
    chosen = named[np.linspace(0, len(named) - 1, _MOST_POINTS).astype(int)] if len(named) > _MOST_POINTS else named
    return [
        Point(
            float(cards.n_labels[w]),
            float(cards.accuracy[w]),
            float(cards.accuracy_low[w]),
            float(cards.accuracy_high[w]),
            SERIES[kinds[w]],
            f"{run.workers[w]}: {cards.accuracy[w]:.2f}, {cards.n_labels[w]} labels, {kinds[w]}",
        )
        for w in sorted(chosen.tolist(), key=lambda w: kinds[w] != "no alert")
    ]


def _picture(points: list[Point], counts: Counter[str]) -> Picture:
    """Return the scatter plot, with the alerts that occur in its legend."""
    low = max(0.0, math.floor(min([p.low for p in points if math.isfinite(p.low)], default=0.0) * 10) / 10)
    names = [
        (SERIES[kind], f"{'undecided or few labels' if kind == 'undecided' else kind} ({counts[kind]})")
        for kind in SERIES
        if counts[kind]
    ]
    return scatter(
        points,
        "Accuracy of each worker against the number of labels",
        series=names,
        x_title="labels of the worker (logarithmic)",
        y_title="accuracy",
        low=low,
        high=1.0,
    )


def _notices(cards: Scorecards, kinds: list[str], flagged: dict[str, int]) -> tuple[Notice, ...]:
    """Return a notice for each alert that says that something is wrong."""
    notices = []
    for alert, n in flagged.items():
        labels = counted(int(sum(count for count, kind in zip(cards.n_labels, kinds) if kind == alert)), "label")
        severity = "alert" if alert in ("random", "inverted", "copying") else "warning"
        text = f"{counted(n, 'worker')} {accusation(alert, n)}; they gave {labels}."
        notices.append(Notice(severity, text, n, "workers"))
    return tuple(notices)


def _measures(cards: Scorecards) -> tuple[str, ...]:
    """Return what describes a worker beside their accuracy: agreement, or how often they label, with whom."""
    return ("agreement",) if cards.coverage is None else ("coverage", "overlap", "conflict")


def _row(run: Run, w: int) -> tuple[object, ...]:
    assert run.cards is not None
    card = run.cards[w]
    reasons = visible("; ".join(card.reasons), 400)
    return (
        run.workers[w],
        card.n_labels,
        card.accuracy,
        interval(card.accuracy_low, card.accuracy_high),
        *(getattr(card, name) for name in _measures(run.cards)),
        *_position_cells(card.position_bias, is_shown=bool(_position_head(run.cards))),
        ", ".join(card.alerts) or None,
        reasons or None,
    )


def _position_head(cards: Scorecards) -> tuple[str, ...]:
    """Return the heads of the columns on the order of presentation, where labels are verdicts on pairs."""
    return ("flip rate", "95% interval of it", "first position", "95% interval of that") if cards.position_bias else ()


def _position_cells(bias: PositionBias | None, *, is_shown: bool) -> tuple[object, ...]:
    """Return the cells of one worker below these heads; None where nothing is known."""
    if not is_shown:
        return ()
    bias = bias or PositionBias()
    flips = (bias.flip_rate, interval(*bias.flip_rate_interval)) if bias.n_pairs else (None, None)
    first = (bias.first_share, interval(*bias.first_share_interval)) if bias.n_verdicts else (None, None)
    return *flips, *first


# ----------------------------------------------------------------------------------------------------
# A card for each worker: confusions, bias, speed and drift, and what to tell them.

_MOST_CARDS = 24
_MOST_CELLS = 1000  # of all confusion matrices together
_MOST_CLASSES = 12  # of a confusion matrix that is drawn
_CARD_WIDTH = 268.0  # of the confusion matrix: it is not made smaller on a phone
_N_EXAMPLES = 3
_FEW = 30  # labels below which quality over time is not drawn


def worker_cards(run: Run) -> Panel | None:
    """The card of each flagged worker, then of those with most labels."""
    cards = run.cards
    if cards is None or not len(cards) or (run.reading is not None and not run.reading.workers_known):
        return None
    n_classes = run.annotations.n_classes
    most = min(_MOST_CARDS, max(_MOST_CELLS // n_classes**2, 6))
    order = [w for w in _order_of_workers(run) if cards.n_labels[w]]
    flagged = [w for w in order if cards.alerts[w]][: most * 2 // 3]
    others = [w for w in order if w not in set(flagged)]
    others.sort(key=lambda w: (bool(cards.alerts[w]), -int(cards.n_labels[w])))
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
    if card.position_bias is not None:
        facts.extend(_position_facts(card.position_bias))
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
    alerts = f": {', '.join(card.alerts)}" if card.alerts else ""
    return Panel(
        f"card-{w}",
        f"{visible(card.worker, 60)}{alerts}",
        "; ".join(facts) + ".",
        counted(card.n_labels, "label"),
        tuple(pictures),
        tuple(tables),
        tuple(visible(reason, 300) for reason in card.reasons),
    )


def _position_facts(bias: PositionBias) -> list[str]:
    """Return what a card says of the verdicts on pairs: flip rate and first-position share with their intervals."""
    facts = []
    if bias.n_pairs:
        facts.append(
            f"the verdict changes with the order in {percent(bias.flip_rate)} of {counted(bias.n_pairs, 'pair')} "
            f"({interval(*bias.flip_rate_interval)})"
        )
    if bias.n_verdicts:
        facts.append(
            f"names the answer shown first in {percent(bias.first_share)} of the verdicts "
            f"({interval(*bias.first_share_interval)})"
        )
    return facts


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
    dated_rows = np.flatnonzero(when >= 0)
    if len(dated_rows) < _FEW:
        return None
    order = dated_rows[np.argsort(when[dated_rows], kind="stable")]
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
    rows = items[(run.annotations.label[mine] == codes[label]) & (run.codes[items] == codes[truth])]
    order = rows[np.lexsort((rows, -run.confidence[rows]))]
    return [run.item_name(int(row)) for row in order[:_N_EXAMPLES]]


_FEWEST = 2  # workers of a group
_MOST_GROUPS = 100
_MOST_IN_CHART = 24
_HEAD = ("group", "workers", "labels", "share right", "95% interval", "difference to the others", "p", "differs")

# ----------------------------------------------------------------------------------------------------
# The panel of subgroups: accuracy of each group of workers, and which differ from the others.


@dataclass(frozen=True)
class _Group:
    """A group of workers: mean share of right labels with its interval, and the test against all other groups."""

    name: str
    n_workers: int
    n_labels: int
    mean: float
    low: float
    high: float
    gap: float
    p: float


def subgroups(run: Run) -> Panel | None:
    """Accuracy of the workers of each group, with a correction for many tests."""
    members_of, n_alone = _members(run)
    if run.cards is None or len(members_of) < 2:
        return None
    groups = _compared(run, members_of)
    differs = benjamini_yekutieli([group.p for group in groups])
    apart = [group.name for group, is_apart in zip(groups, differs) if is_apart]
    title = "No group of workers differs from the others beyond chance."
    if apart:
        title = f"{joined(apart)} {'differs' if len(apart) == 1 else 'differ'} from the other groups."
    rows = [_group_row(group, is_apart=bool(is_apart)) for group, is_apart in zip(groups, differs)]
    largest = sorted(groups, key=lambda group: -group.n_workers)[:_MOST_IN_CHART]
    return Panel(
        "subgroups",
        title,
        "Mean share of right labels of the workers of each group, by the posterior, with a 95% interval over workers.",
        f"{counted(sum(group.n_workers for group in groups), 'worker')} in {len(groups)} groups",
        (
            dots(
                [(group.name, [Dot(group.mean, group.low, group.high)]) for group in groups if group in largest],
                "Share of right labels by group",
            ),
        ),
        (Table("Groups of workers", _HEAD, *cut(rows, _MOST_GROUPS)),),
        _notes(n_alone, len(groups)),
        {"groups": {group.name: group.mean for group in groups}, "apart": apart},
    )


def _notes(n_alone: int, n_groups: int) -> tuple[str, ...]:
    """Return what the test is, and what is left out."""
    notes = [
        "Differences are tested at 5% by Welch's test over workers, with the correction of Benjamini and Yekutieli for "
        "many tests. A group that labels differently may see the items differently: the majority decides what counts "
        "as right here."
    ]
    if n_alone:
        notes.append(f"{counted(n_alone, 'group')} of one worker {'is' if n_alone == 1 else 'are'} left out.")
    if n_groups > _MOST_IN_CHART:
        notes.append(f"The picture shows the {_MOST_IN_CHART} largest of {n_groups} groups.")
    return tuple(notes)


def _group_row(group: _Group, *, is_apart: bool) -> tuple[object, ...]:
    bounds = interval(group.low, group.high)
    verdict = "yes" if is_apart else "no"
    return group.name, group.n_workers, group.n_labels, group.mean, bounds, group.gap, group.p, verdict


def _members(run: Run) -> tuple[dict[str, Codes], int]:
    """Return the workers of each group with at least two of them, and the number of groups of one."""
    given = run.groups
    if given is None and run.reading is not None and run.reading.kinds:
        given = {worker: kind.family or kind.kind for worker, kind in run.reading.kinds.items()}
    has_labels = np.bincount(run.annotations.worker, minlength=run.annotations.n_workers) > 0
    members_of: dict[str, list[int]] = {}
    for w, worker in enumerate(run.annotations.worker_ids.tolist()):
        if given and worker in given and has_labels[w]:
            members_of.setdefault(visible(given[worker], 60), []).append(w)
    kept = {name: np.array(codes, np.int64) for name, codes in sorted(members_of.items()) if len(codes) >= _FEWEST}
    return kept, len(members_of) - len(kept)


def _compared(run: Run, members_of: dict[str, Codes]) -> list[_Group]:
    """Compare each group with all others by the workers' shares of right labels."""
    a = run.annotations
    n_labels = np.bincount(a.worker, minlength=a.n_workers)
    rate = np.bincount(a.worker, run.model.posterior_[a.item, a.label], a.n_workers) / np.maximum(n_labels, 1)
    groups = []
    for name, members in members_of.items():
        others = np.concatenate([codes for other, codes in members_of.items() if other != name])
        mean, half = _interval(rate[members])
        gap, p = _welch(rate[members], rate[others])
        ends = max(mean - half, 0.0), min(mean + half, 1.0)
        groups.append(_Group(name, len(members), int(n_labels[members].sum()), mean, *ends, gap, p))
    return groups


def _interval(values: Array) -> tuple[float, float]:
    """Return the mean of at least two values, and half of its 95% interval by Student's distribution."""
    from scipy.special import stdtrit

    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()), float(stdtrit(len(values) - 1, 0.975)) * error


def _welch(inside: Array, outside: Array) -> tuple[float, float]:
    """Return the difference of two means, and the p-value of Welch's test; 1 where nothing varies."""
    from scipy.special import stdtr

    gap = float(inside.mean() - outside.mean())
    parts = [float(values.var(ddof=1)) / len(values) for values in (inside, outside)]
    total = sum(parts)
    if total <= 0:
        return gap, 1.0
    degrees = total**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (inside, outside)))
    return gap, float(2 * stdtr(degrees, -abs(gap) / math.sqrt(total)))
