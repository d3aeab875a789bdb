"""Workers who agree beyond what the truth explains: groups with one voice, and couples who share their errors.

Honest workers agree because both are right, and where an item is hard they err alike. So the chance that a worker says
what another one said is taken from the truth as all others see it, or from the share of the others who say the same,
whichever is larger. Whether a couple's agreement can be luck is then a matter of Hoeffding's bound, which holds for any
independent chances with this mean; all couples together are to give a false alarm in one crowd of a hundred.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups, collapse_groups, find_colluding_groups
from manyhands.em.kernels import Array, sums_by
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask

ALARM = 0.01  # chance of one false alarm among all couples
MIN_SHARED = 10  # items that both labelled
MIN_EXCESS = 0.5  # of the agreement that could be added to the expected one, the part that is there
MOST_PAIRS = 4_000_000  # pairs of labels looked at, give or take one per label
CHUNK = 1 << 20  # pairs times classes looked at together
MOST_VOICES = 5

Positions = npt.NDArray[np.int64]


class Couples(NamedTuple):
    """Workers who agree beyond luck, one entry per couple."""

    x: Positions
    y: Positions
    n_shared: Array  # items that both labelled
    n_equal: Array  # of those, the ones with the same label
    n_expected: Array


def find_collusion_groups(annotations: Annotations) -> list[CollusionGroups]:
    """Groups of workers who answer as one voice, the clearest first."""
    voices: list[CollusionGroups] = []
    while len(voices) < MOST_VOICES and (voice := find_colluding_groups(annotations)) is not None:
        voices.append(voice)
        annotations = collapse_groups(annotations, voice.members)
    return voices


def find_couples(others_posterior: LeaveOneOut, confusion: Array, in_a_voice: Mask) -> Couples:
    """Couples who agree beyond luck; those of one voice are known already."""
    votes = others_posterior.annotations
    a, b = _label_pairs(votes, in_a_voice)
    key = votes.worker[a] * np.int64(votes.n_workers) + votes.worker[b]
    couple, n_pairs = np.unique(key, return_counts=True)
    couple = couple[n_pairs >= MIN_SHARED]
    place = np.minimum(np.searchsorted(couple, key), max(len(couple) - 1, 0))
    often = couple[place] == key if len(couple) else np.zeros(len(key), bool)
    a, b, which = a[often], b[often], place[often]
    n_own = _n_own(votes)
    weight = 1.0 / (n_own[a] * n_own[b])  # an item is shared once, however often two workers repeat themselves on it
    n_shared, n_equal, n_expected = (
        sums_by(which, weight * value, len(couple))
        for value in (
            np.ones(len(a)),
            votes.label[a] == votes.label[b],
            _chance_to_agree(others_posterior, confusion, a, b),
        )
    )
    agreement, expected = n_equal / n_shared, n_expected / n_shared
    nats = n_shared * (rel_entr(agreement, expected) + rel_entr(1 - agreement, 1 - expected))
    beyond = (agreement - expected > MIN_EXCESS * (1 - expected)) & (nats > np.log(max(len(couple), 1) / ALARM))
    beyond &= n_shared > MIN_SHARED - 0.5
    x, y = np.divmod(couple[beyond], votes.n_workers)
    return Couples(x, y, n_shared[beyond], n_equal[beyond], n_expected[beyond])


def _n_own(annotations: Annotations) -> Positions:
    """(n_annotations,) how many labels the worker of each gave to its item."""
    item, worker = annotations.item, annotations.worker
    first = np.flatnonzero(np.append(True, (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])))
    size = np.diff(np.append(first, len(item)))
    return np.repeat(size, size)


def _label_pairs(annotations: Annotations, in_a_voice: Mask) -> tuple[Positions, Positions]:
    """Positions of the labels that two workers gave to one item, the lower worker first.

    Each label meets the nearest ones that follow it, equally many where all would be more than `MOST_PAIRS`. Within an
    item those of a voice come first, so that what no label is to meet, its own voice or worker, is one run around it.
    """
    item, worker = annotations.item, annotations.worker
    is_voice = in_a_voice[worker]
    at = np.lexsort((~is_voice, item)) if is_voice.any() else np.arange(len(item))
    speaker = np.where(is_voice, -1, worker)[at]
    is_last = np.diff(speaker, append=-2) != 0
    is_last |= np.diff(item, append=-1) != 0
    last = np.flatnonzero(is_last)
    follows = np.repeat(last + 1, np.diff(last, prepend=-1))  # the first label after the run
    n_partners = np.cumsum(annotations.n_labels)[item] - follows
    n_met = np.minimum(n_partners, _most_partners(n_partners))
    first = np.repeat(np.arange(len(at)), n_met)
    second = np.repeat(follows + n_met - np.cumsum(n_met), n_met) + np.arange(len(first))
    a, b = at[first], at[second]
    turned = worker[a] > worker[b]
    return np.where(turned, b, a), np.where(turned, a, b)


def _most_partners(n_partners: Positions) -> int:
    """How many partners each label may have at most: the fewest with which the pairs reach `MOST_PAIRS`."""
    n_with_more = len(n_partners) - np.cumsum(np.bincount(n_partners))  # than 0, 1, 2, ... partners
    return int(np.searchsorted(np.cumsum(n_with_more), MOST_PAIRS)) + 1


def _chance_to_agree(others_posterior: LeaveOneOut, confusion: Array, a: Positions, b: Positions) -> Array:
    """(n_pairs,) the chance that one of two workers says what the other said, by what everybody else says."""
    votes = others_posterior.annotations
    by_label = np.ascontiguousarray(confusion.transpose(0, 2, 1))  # what is looked up then stands together
    by_truth = np.empty(len(a))
    size = max(CHUNK // max(votes.n_classes, 1), 1)
    for part in (slice(first, first + size) for first in range(0, len(a), size)):
        one_way, other_way = (
            np.einsum("pk,pk->p", others_posterior.truth[y], by_label[votes.worker[y], votes.label[x]])
            for x, y in ((a[part], b[part]), (b[part], a[part]))
        )
        np.maximum(one_way, other_way, out=by_truth[part])
    equal = votes.label[a] == votes.label[b]
    n_same = np.maximum(others_posterior.n_equal[a], others_posterior.n_equal[b]) - equal  # of the others
    by_votes = (n_same + by_truth) / np.maximum(others_posterior.n_others[a], 1.0)
    return np.clip(np.maximum(by_truth, by_votes), 0.01, 0.99)
