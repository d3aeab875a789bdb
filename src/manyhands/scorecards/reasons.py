"""One sentence for each flag: what was observed, and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups
from manyhands.em.kernels import Array
from manyhands.scorecards.copying import CopyingPairs, disagrees_with_group
from manyhands.scorecards.crowd_skill import CrowdSkill
from manyhands.scorecards.informativeness import FEW_LABELS, MIN_CHECKED, Informativeness
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask
from manyhands.scorecards.seconds_per_label import WorkingTime

ACCUSATIONS = ("random", "one-class", "inverted", "copying", "weak")  # flags that say that something is wrong
FLAGS = (*ACCUSATIONS, "fast", "undecided", "too-few-labels")


DROP = 0.25  # of the share of right labels between the halves of a worker's labels, from which a sentence names both
MAX_PARTNERS = 20  # of one worker; all members of a large group for each member would be quadratic
_MAX_CHARACTERS = 40  # of a name
_MAX_NAMES = 3

Flagged = list[dict[str, str]]  # for each worker, {flag: sentence}


def explain(
    loo: LeaveOneOut,
    n_checked: Array,
    informativeness: Informativeness,
    crowd: CrowdSkill,
    groups: Sequence[CollusionGroups],
    pairs: CopyingPairs,
) -> tuple[Flagged, list[tuple[int, ...]]]:
    """Collect the flags of each worker, with one sentence for each.

    Parameters
    ----------
    loo : LeaveOneOut
        Leave-one-out posterior of the truth of each label.
    n_checked : ndarray of shape (n_workers,)
        Number of labels that can be checked.
    informativeness : Informativeness
        Result of the tests for random, weak, one-class and inverted workers.
    crowd : CrowdSkill
        Comparison of each worker with the crowd.
    groups : sequence of CollusionGroups
        Colluding groups.
    pairs : CopyingPairs
        Pairs of workers who agree more than expected.

    Returns
    -------
    flagged : list of dict
        ``{flag: sentence}`` for each worker.
    partners : list of tuple of int
        For each worker, the codes of the workers they copy from or are copied by.
    """
    annotations = loo.annotations
    flagged: Flagged = [{} for _ in range(annotations.n_workers)]
    enough = loo.used.sum(axis=1) >= MIN_CHECKED
    _explain_informativeness(flagged, loo, informativeness, crowd)
    partners = _explain_copying(flagged, annotations, enough, groups, pairs)
    has_flag = np.array([bool(reasons) for reasons in flagged])
    n_labels = np.bincount(annotations.worker, minlength=annotations.n_workers)
    for w in np.flatnonzero(~has_flag & ~informativeness.is_informative).tolist():
        if n_checked[w] < FEW_LABELS:
            flagged[w]["too-few-labels"] = _too_few(int(n_labels[w]), int(n_checked[w]))
        else:
            flagged[w]["undecided"] = _undecided(informativeness, w, n_checked[w])
    return flagged, partners


def explain_time(flagged: Flagged, time: WorkingTime) -> None:
    """Add the flag of workers far faster than the crowd.

    Parameters
    ----------
    flagged : list of dict
        ``{flag: sentence}`` for each worker; changed in place.
    time : WorkingTime
        Seconds per label of each worker.
    """
    for w in np.flatnonzero(time.is_fast).tolist():
        flagged[w]["fast"] = (
            f"a median of {time.median[w]:.2g} seconds per label on {time.n_timed[w]} labels; "
            f"the median of the crowd is {time.crowd_median:.2g}"
        )


def _explain_informativeness(flagged: Flagged, loo: LeaveOneOut, found: Informativeness, crowd: CrowdSkill) -> None:
    """Add the sentences of random, weak, inverted and one-class workers."""
    n_checked = loo.used.sum(axis=1)
    classes = loo.annotations.classes.tolist()
    for w in np.flatnonzero(found.is_random).tolist():
        flagged[w]["random"] = f"{_right(found, w, n_checked[w])}{_typical(crowd, w)}"
    for w in np.flatnonzero(found.is_weak).tolist():
        flagged[w]["weak"] = _weak(found, crowd, w, n_checked[w])
    for w in np.flatnonzero(found.is_inverted).tolist():
        flagged[w]["inverted"] = (
            f"right on about {found.right[w]:.0f} of {n_checked[w]:.0f} items by the leave-one-out posterior, "
            f"below chance agreement, which is {found.right_by_chance[w]:.0f}"
        )
    for w in np.flatnonzero(found.is_one_class).tolist():
        k = found.favourite[w]
        name, used, met = shown(classes[k]), loo.used[w, k], loo.met[w, k]
        flagged[w]["one-class"] = (
            f"label {name} on {used:.0f} of {n_checked[w]:.0f} items; the expected number of {name} is {met:.0f}"
        )


def _right(found: Informativeness, w: int, n_checked: float) -> str:
    return (
        f"right on about {found.right[w]:.0f} of {n_checked:.0f} items by the leave-one-out posterior; "
        f"chance agreement is {found.right_by_chance[w]:.0f}"
    )


def _weak(found: Informativeness, crowd: CrowdSkill, w: int, n_checked: float) -> str:
    early, late = n_checked - crowd.late_checked[w], crowd.late_checked[w]
    late_share, share = crowd.late_right[w] / max(late, 1.0), found.right[w] / n_checked
    if crowd.is_late_below[w] or (crowd.is_known and share - late_share > DROP / 2):
        return (
            f"right on about {crowd.late_right[w]:.0f} of the last {late:.0f} items by the leave-one-out posterior, "
            f"a typical worker of this crowd is right on {crowd.late_typical_right[w]:.0f}; "
            f"of the first {early:.0f} they are right on about {found.right[w] - crowd.late_right[w]:.0f}"
        )
    return (
        f"right on about {found.right[w]:.0f} of {n_checked:.0f} items by the leave-one-out posterior"
        f"{_typical(crowd, w)}; chance agreement is {found.right_by_chance[w]:.0f}"
    )


def _typical(crowd: CrowdSkill, w: int) -> str:
    """What a worker of this crowd achieves on the same items; nothing if the crowd is too small to say."""
    return f", a typical worker of this crowd is right on {crowd.typical_right[w]:.0f}" if crowd.is_known else ""


def _undecided(found: Informativeness, w: int, n_checked: float) -> str:
    return f"{_right(found, w, n_checked)}: neither random labelling nor a weak honest worker can be ruled out"


def _explain_copying(
    flagged: Flagged, annotations: Annotations, enough: Mask, groups: Sequence[CollusionGroups], pairs: CopyingPairs
) -> list[tuple[int, ...]]:
    """Add the sentences of workers who copy or are copied, and return the partners of each worker."""
    names = annotations.worker_ids.tolist()
    partners: list[set[int]] = [set() for _ in names]
    for group in groups:
        cleared = disagrees_with_group(annotations, group) & (group.max_labels is None)
        members = np.flatnonzero(group.members & ~cleared).tolist()
        for w in (w for w in members if enough[w] or group.max_labels is not None):
            others = [other for other in members[: MAX_PARTNERS + 1] if other != w][:MAX_PARTNERS]
            partners[w].update(others)
            flagged[w]["copying"] = _group_sentence(group, _names([names[w] for w in others], len(members) - 1))
    for c in np.argsort(pairs.n_expected - pairs.n_equal, kind="stable"):  # the strongest evidence is reported
        pair = int(pairs.x[c]), int(pairs.y[c])
        for w, other in (pair, pair[::-1]):
            if enough[w] and len(partners[w]) < MAX_PARTNERS:
                partners[w].add(other)
                flagged[w].setdefault(
                    "copying",
                    f"same label as {shown(names[other])} on {pairs.n_equal[c]:.0f} of {pairs.n_shared[c]:.0f} "
                    f"shared items; {pairs.n_expected[c]:.0f} are expected of independent workers",
                )
    return [tuple(sorted(p)[:MAX_PARTNERS]) for p in partners]


def _group_sentence(group: CollusionGroups, others: str) -> str:
    agreement = (
        f"agreement {group.agreement:.0%} on shared items; {group.expected:.0%} is expected of independent workers"
    )
    if group.max_labels is None:
        return f"colluding group with {others}: {agreement}"
    return f"one of the ids with at most {group.max_labels} labels, tested together ({others}): {agreement}"


def _too_few(n_labels: int, n_checked: int) -> str:
    if n_checked == 0:
        return "no labels" if n_labels == 0 else f"no other labels on any of the {n_labels} items they labelled"
    return f"{n_checked} labels on items that others labelled too are too few to judge the worker"


def _names(values: Sequence[Any], n_all: int) -> str:
    """The first few of these names, and how many more there are of `n_all`."""
    listed = [shown(value) for value in values[:_MAX_NAMES]]
    rest = n_all - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")


def shown(value: Any) -> str:
    """Format a name for a sentence in one line.

    Parameters
    ----------
    value : object
        Id of a worker, or class.

    Returns
    -------
    str
        Its repr, with escapes, truncated where it is long.
    """
    text = repr(value)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
