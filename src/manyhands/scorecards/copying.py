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
from manyhands.dependence import OneVoice, find_one_voice, speak_once
from manyhands.kernels import Array, sums_by
from manyhands.scorecards.witnesses import Mask, Witnesses

ALARM = 0.01  # chance of one false alarm among all couples
MIN_SHARED = 10  # items that both labelled
MIN_EXCESS = 0.5  # of the agreement that could be added to the expected one, the part that is there
MOST_PAIRS = 4_000_000  # pairs of labels looked at
MOST_VOICES = 5

Positions = npt.NDArray[np.int64]


class Couples(NamedTuple):
    """Workers who agree beyond luck, one entry per couple."""

    x: Positions
    y: Positions
    n_shared: Array  # items that both labelled
    n_equal: Array  # of those, the ones with the same label
    n_expected: Array


def find_voices(annotations: Annotations) -> list[OneVoice]:
    """Groups of workers who answer as one voice, the clearest first."""
    voices: list[OneVoice] = []
    while len(voices) < MOST_VOICES and (voice := find_one_voice(annotations)) is not None:
        voices.append(voice)
        annotations = speak_once(annotations, voice.members)
    return voices


def find_couples(witnesses: Witnesses, confusion: Array, in_a_voice: Mask) -> Couples:
    """Couples who agree beyond luck; those of one voice are known already."""
    votes = witnesses.annotations
    a, b = _label_pairs(votes, in_a_voice)
    key = votes.worker[a] * np.int64(votes.n_workers) + votes.worker[b]
    couple, n_pairs = np.unique(key, return_counts=True)
    couple = couple[n_pairs >= MIN_SHARED]
    place = np.minimum(np.searchsorted(couple, key), max(len(couple) - 1, 0))
    often = couple[place] == key if len(couple) else np.zeros(len(key), bool)
    a, b, which = a[often], b[often], place[often]
    n_shared, n_equal, n_expected = (
        sums_by(which, value, len(couple))
        for value in (np.ones(len(a)), votes.label[a] == votes.label[b], _chance_to_agree(witnesses, confusion, a, b))
    )
    agreement, expected = n_equal / n_shared, n_expected / n_shared
    nats = n_shared * (rel_entr(agreement, expected) + rel_entr(1 - agreement, 1 - expected))
    beyond = (agreement - expected > MIN_EXCESS * (1 - expected)) & (nats > np.log(max(len(couple), 1) / ALARM))
    x, y = np.divmod(couple[beyond], votes.n_workers)
    return Couples(x, y, n_shared[beyond], n_equal[beyond], n_expected[beyond])


def _label_pairs(annotations: Annotations, in_a_voice: Mask) -> tuple[Positions, Positions]:
    """Positions of the labels that two workers gave to one item, nearest neighbours first, up to `MOST_PAIRS`."""
    item, worker = annotations.item, annotations.worker
    pairs: list[tuple[Positions, Positions]] = []
    n_pairs = 0
    for step in range(1, int(annotations.n_labels.max(initial=0))):
        if n_pairs >= MOST_PAIRS:
            break
        together = (item[step:] == item[:-step]) & (worker[step:] != worker[:-step])
        a = np.flatnonzero(together & ~(in_a_voice[worker[step:]] & in_a_voice[worker[:-step]]))
        pairs.append((a, a + step))
        n_pairs += len(a)
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def _chance_to_agree(witnesses: Witnesses, confusion: Array, a: Positions, b: Positions) -> Array:
    """(n_pairs,) the chance that one of two workers says what the other said, by what everybody else says."""
    worker, label = witnesses.annotations.worker, witnesses.annotations.label
    one_way, other_way = (
        np.einsum("pk,pk->p", witnesses.truth[y], confusion[worker[y], :, label[x]]) for x, y in ((a, b), (b, a))
    )
    by_truth = np.maximum(one_way, other_way)
    equal = label[a] == label[b]
    n_same = np.maximum(witnesses.n_equal[a], witnesses.n_equal[b]) - equal  # of the others
    by_votes = (n_same + by_truth) / np.maximum(witnesses.n_others[a], 1.0)
    return np.clip(np.maximum(by_truth, by_votes), 0.01, 0.99)
