"""The panel of subgroups of workers: accuracy of each group, and which differ from the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyhands.report.charts import Dot, dots
from manyhands.report.panel import Panel, Table, cut
from manyhands.report.run import Array, Codes, Run
from manyhands.report.wording import counted, interval, joined, visible
from manyhands.trust.false_discovery import benjamini_yekutieli

_FEWEST = 2  # workers of a group
_MOST_ROWS = 100
_MOST_IN_CHART = 24
_HEAD = ("group", "workers", "labels", "share right", "95% interval", "difference to the others", "p", "differs")


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
    found, n_alone = _members(run)
    if run.cards is None or len(found) < 2:
        return None
    groups = _compared(run, found)
    differs = benjamini_yekutieli([group.p for group in groups])
    apart = [group.name for group, is_apart in zip(groups, differs) if is_apart]
    title = "No group of workers differs from the others beyond chance."
    if apart:
        title = f"{joined(apart)} {'differs' if len(apart) == 1 else 'differ'} from the other groups."
    rows = [_row(group, is_apart=bool(is_apart)) for group, is_apart in zip(groups, differs)]
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
        (Table("Groups of workers", _HEAD, *cut(rows, _MOST_ROWS)),),
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


def _row(group: _Group, *, is_apart: bool) -> tuple[object, ...]:
    bounds = interval(group.low, group.high)
    verdict = "yes" if is_apart else "no"
    return group.name, group.n_workers, group.n_labels, group.mean, bounds, group.gap, group.p, verdict


def _members(run: Run) -> tuple[dict[str, Codes], int]:
    """Return the workers of each group with at least two of them, and the number of groups of one."""
    given = run.groups
    if given is None and run.reading is not None and run.reading.kinds:
        given = {worker: kind.family or kind.kind for worker, kind in run.reading.kinds.items()}
    has_labels = np.bincount(run.annotations.worker, minlength=run.annotations.n_workers) > 0
    found: dict[str, list[int]] = {}
    for w, worker in enumerate(run.annotations.worker_ids.tolist()):
        if given and worker in given and has_labels[w]:
            found.setdefault(visible(given[worker], 60), []).append(w)
    kept = {name: np.array(codes, np.int64) for name, codes in sorted(found.items()) if len(codes) >= _FEWEST}
    return kept, len(found) - len(kept)


def _compared(run: Run, found: dict[str, Codes]) -> list[_Group]:
    """Compare each group with all others by the workers' shares of right labels."""
    a = run.annotations
    n_labels = np.bincount(a.worker, minlength=a.n_workers)
    rate = np.bincount(a.worker, run.model.posterior_[a.item, a.label], a.n_workers) / np.maximum(n_labels, 1)
    groups = []
    for name, members in found.items():
        others = np.concatenate([codes for other, codes in found.items() if other != name])
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
