"""Flags in plain sentences: what was seen, and what was to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups
from manyhands.em.kernels import Array
from manyhands.scorecards.copying import Couples
from manyhands.scorecards.informativeness import MIN_CHECKED, Knowledge
from manyhands.scorecards.leave_one_out import LeaveOneOut, Mask

FLAGS = ("random", "one-class", "inverted", "copying", "too-few-labels")

MOST_PARTNERS = 20  # of one worker; all of a large voice for each of its members would be its square
_LONGEST = 40  # characters of a name
_MOST_NAMES = 3

Flagged = list[dict[str, str]]  # for each worker, {flag: sentence}


def explain(
    others_posterior: LeaveOneOut,
    n_checked: Array,
    knowledge: Knowledge,
    voices: Sequence[CollusionGroups],
    couples: Couples,
) -> tuple[Flagged, list[tuple[int, ...]]]:
    """The flags of each worker with a sentence for each, and the workers that each of them copies or is copied by."""
    votes = others_posterior.annotations
    flagged: Flagged = [{} for _ in range(votes.n_workers)]
    enough = others_posterior.used.sum(axis=1) >= MIN_CHECKED
    _explain_knowledge(flagged, others_posterior, knowledge)
    partners = _explain_copying(flagged, votes, enough, voices, couples)
    told = np.array([bool(reasons) for reasons in flagged])
    n_labels = np.bincount(votes.worker, minlength=votes.n_workers)
    for w in np.flatnonzero(~told & ~knowledge.is_informative):
        flagged[w]["too-few-labels"] = _too_few(int(n_labels[w]), int(n_checked[w]))
    return flagged, partners


def _explain_knowledge(flagged: Flagged, others_posterior: LeaveOneOut, knowledge: Knowledge) -> None:
    n_checked = others_posterior.used.sum(axis=1)
    classes = others_posterior.annotations.classes.tolist()
    for w in np.flatnonzero(knowledge.is_random):
        flagged[w]["random"] = (
            f"right on about {knowledge.right[w]:.0f} of {n_checked[w]:.0f} items, "
            f"where the same labels in random order would be right on {knowledge.right_by_chance[w]:.0f}"
        )
    for w in np.flatnonzero(knowledge.is_inverted):
        flagged[w]["inverted"] = (
            f"right on about {knowledge.right[w]:.0f} of {n_checked[w]:.0f} items, fewer than the "
            f"{knowledge.right_by_chance[w]:.0f} that the same labels in random order would reach"
        )
    for w in np.flatnonzero(knowledge.is_one_class):
        k = knowledge.favourite[w]
        name, said, met = shown(classes[k]), others_posterior.used[w, k], others_posterior.met[w, k]
        flagged[w]["one-class"] = (
            f"said {name} for {said:.0f} of {n_checked[w]:.0f} items, of which about {met:.0f} are {name}"
        )


def _explain_copying(
    flagged: Flagged, votes: Annotations, enough: Mask, voices: Sequence[CollusionGroups], couples: Couples
) -> list[tuple[int, ...]]:
    names = votes.worker_ids.tolist()
    partners: list[set[int]] = [set() for _ in names]
    for voice in voices:
        members = np.flatnonzero(voice.members).tolist()
        for w in (w for w in members if enough[w] or voice.max_labels is not None):
            others = [other for other in members[: MOST_PARTNERS + 1] if other != w][:MOST_PARTNERS]
            partners[w].update(others)
            flagged[w]["copying"] = _voice_sentence(voice, _names([names[w] for w in others], len(members) - 1))
    for c in np.argsort(couples.n_expected - couples.n_equal, kind="stable"):  # the strongest evidence is told
        pair = int(couples.x[c]), int(couples.y[c])
        for w, other in (pair, pair[::-1]):
            if enough[w] and len(partners[w]) < MOST_PARTNERS:
                partners[w].add(other)
                flagged[w].setdefault(
                    "copying",
                    f"same label as {shown(names[other])} on {couples.n_equal[c]:.0f} of {couples.n_shared[c]:.0f} "
                    f"shared items, where {couples.n_expected[c]:.0f} were to be expected",
                )
    return [tuple(sorted(p)[:MOST_PARTNERS]) for p in partners]


def _voice_sentence(voice: CollusionGroups, others: str) -> str:
    agreement = (
        f"they agree on {voice.agreement:.0%} of what they share, where {voice.expected:.0%} were to be expected"
    )
    if voice.max_labels is None:
        return f"answers as one voice with {others}: {agreement}"
    return f"one of the ids with at most {voice.max_labels} labels, taken together ({others}): {agreement}"


def _too_few(n_labels: int, n_checked: int) -> str:
    if n_checked == 0:
        return "gave no label" if n_labels == 0 else f"nobody else speaks to any of the {n_labels} items they labelled"
    return f"{n_checked} labels that others can speak to do not tell a guesser from an honest worker"


def _names(values: Sequence[Any], n_all: int) -> str:
    """The first few of these names, and how many there are besides, of all."""
    said = [shown(value) for value in values[:_MOST_NAMES]]
    rest = n_all - len(said)
    return ", ".join(said) + (f" and {rest} more" if rest else "")


def shown(value: Any) -> str:
    """A name in one line: quoted, escaped, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
