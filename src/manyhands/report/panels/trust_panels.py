"""Panels of trust: what the answers of an expert allow to say, and what correlated votes are worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from manyhands.exceptions import ManyhandsError
from manyhands.report.charts import Dot, dots
from manyhands.report.panel import Alert, Panel, Table, cut
from manyhands.report.picture_data import Picture
from manyhands.report.run import Run
from manyhands.report.wording import counted, interval, visible
from manyhands.trust.effective_votes import ALL, HUMANS, EffectiveVotes, effective_votes
from manyhands.trust.worker_kinds import groups_of

_N_BOOTSTRAP = 100
_MOST_ROWS = 100
_MOST_IN_CHART = 24
_ACCURACY = ("items labelled", "answers", "share right", "95% interval")
_MOST_PAIRS = 2_000_000  # pairs of labels that are compared within the time a page may take
_MOST_CELLS = 5_000_000  # cells of all confusion matrices that are estimated within this time


def trust(run: Run) -> Panel | None:
    """What the answers of an expert decided, how accurate the labels are, and what is promised.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None without answers.
    """
    block = run.trust
    if not block or not block.get("n_answers"):
        return None
    sentences = [visible(text, 600) for text in block["sentences"]]
    rows = [(f"answers, {kind}", count) for kind, count in block["sampled"].items()]
    rows += [
        (f"{name}: {key.replace('_', ' ')}", _cell(value))
        for name in ("accuracy", "calibration", "guarantee", "sets")
        for key, value in (block.get(name) or {}).items()
        if key != "sentence" and not isinstance(value, dict | list)
    ]
    measured, promised = _measured(block), block.get("guarantee")
    title = visible(str(promised["sentence"]), 300) if promised and "sentence" in promised else sentences[-1]
    return Panel(
        "trust",
        title,
        "What the answers of an expert decide and allow to promise. Answers about items drawn at random measure "
        "accuracy; those about contested items choose the method."
        + (" The picture shows the share of right labels, of all and by label, with 95% intervals" if measured else "")
        + ("; the dashed line is what is promised." if measured and promised else "." if measured else ""),
        counted(int(block["n_answers"]), "answer"),
        _accuracy_chart(measured, promised),
        (
            Table("Answers and what follows from them", ("what", "value"), tuple(rows)),
            *(
                [Table("Share of right labels, by label", _ACCURACY, *cut(_accuracy_rows(measured), _MOST_ROWS))]
                if measured
                else []
            ),
        ),
        tuple(sentence for sentence in sentences if sentence != title),
        {"n_answers": block["n_answers"]},
    )


def _measured(block: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the accuracy of all labels and of those of each class, as the answers measure it; empty without any."""
    found = block.get("accuracy") or {}
    if found.get("value") is None:
        return []
    return [("all labels", found), *((visible(name, 60), one) for name, one in (found.get("classes") or {}).items())]


def _accuracy_rows(measured: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[Any, ...]]:
    return [(name, one["n_answers"], one["value"], interval(one["low"], one["high"])) for name, one in measured]


def _accuracy_chart(
    measured: Sequence[tuple[str, Mapping[str, Any]]], promised: Mapping[str, Any] | None
) -> tuple[Picture, ...]:
    """Return the shares of right labels with their intervals, and the promised share as a line."""
    if not measured:
        return ()
    rows = [(name, [Dot(one["value"], one["low"], one["high"])]) for name, one in measured[:_MOST_IN_CHART]]
    low = min(0.8, math.floor(min(dot.low for _, (dot,) in rows) * 5) / 5)
    rule = None if not promised else 1 - float(promised["error"])
    title = "share of right labels"
    return (dots(rows, "Share of right labels with 95% intervals", low=low, rule=rule, x_title=title),)


def correlated_workers(run: Run) -> Panel | None:
    """Whether workers err together, and how many independent votes their votes are worth.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None if no two workers can be compared, or there are too many pairs of labels.
    """
    found = _effective_votes(run)
    known = [one for one in found if math.isfinite(one.correlation)]
    if not known:
        return None
    one = known[0]
    copying = _copying(run)
    tables = [_votes_table(found)]
    if copying:
        tables.append(Table("Workers flagged as copying", ("worker", "shares labels with"), *cut(copying, _MOST_ROWS)))
    name = "the workers" if one.group == ALL else one.group
    worth = f"are worth {one.effective_votes:.1f} independent ones."
    alerts: tuple[Alert, ...] = ()
    if one.effective_votes < 0.75 * one.votes and one.correlation_low > 0:
        text = f"Workers err together: {one.votes:.1f} votes {worth}"
        alerts = (Alert("warning", text, None, "correlated-workers"),)
    rows = [(g.group, [Dot(g.correlation, g.correlation_low, g.correlation_high)]) for g in known]
    lows = [math.floor(g.correlation_low * 5) / 5 for g in known if math.isfinite(g.correlation_low)]
    return Panel(
        "correlated-workers",
        f"Nothing shows that {name} err together: {one.votes:.1f} votes on an item count in full."
        if one.correlation_low <= 0 and one.effective_votes >= 0.95 * one.votes
        else f"{one.votes:.1f} votes of {name} on an item {worth}",
        "Correlation of the errors of two workers on the same item, with a 95% interval over items: 0 if they "
        "err independently, 1 if always together.",
        f"{one.n_pairs:,} pairs of labels",
        (
            dots(
                rows,
                "Correlation of errors, with 95% intervals",
                low=min([0.0, *lows]),
                rule=0.0,
                x_title="correlation of errors",
            ),
        ),
        tuple(tables),
        (),
        {
            "correlation": one.correlation,
            "effective_votes": one.effective_votes,
            "votes": one.votes,
            "n_copying": len(copying),
        },
        alerts,
    )


def _effective_votes(run: Run) -> list[EffectiveVotes]:
    """Return what the votes of each group are worth; empty where workers cannot be compared in the time of a page."""
    a = run.annotations
    n_pairs = int((a.n_labels.astype(float) * (a.n_labels - 1)).sum() / 2)
    too_large = n_pairs > _MOST_PAIRS or a.n_workers * a.n_classes**2 > _MOST_CELLS
    if (run.reading is not None and not run.reading.workers_known) or not n_pairs or too_large:
        return []
    kinds = {} if run.reading is None else run.reading.kinds
    groups = groups_of(a.worker_ids.tolist(), kinds) if kinds else None
    reference = HUMANS if groups and HUMANS in groups else None
    try:
        return effective_votes(a, groups, reference=reference, n_bootstrap=_N_BOOTSTRAP)
    except ManyhandsError:
        return []


def _copying(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the workers that are flagged as copying, each with those whose labels they share."""
    if run.cards is None:
        return ()
    flagged = [w for w, flags in enumerate(run.cards.flags) if "copying" in flags]
    return tuple((run.workers[w], ", ".join(run.workers[p] for p in run.cards.partners[w][:5])) for w in flagged)


def _votes_table(found: list[EffectiveVotes]) -> Table:
    """Return the table of all groups."""
    head = ("group", "workers", "votes per item", "correlation of errors", "95% interval")
    rows = (
        (
            g.group,
            g.n_workers,
            g.votes,
            g.correlation if math.isfinite(g.correlation) else None,
            interval(g.correlation_low, g.correlation_high),
            g.effective_votes if math.isfinite(g.effective_votes) else None,
            interval(g.low, g.high, 1),
        )
        for g in found
    )
    return Table("What the votes are worth", (*head, "effective votes", "95% interval "), tuple(rows))


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else visible(value, 100)
