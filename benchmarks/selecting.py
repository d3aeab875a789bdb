"""Which method contested answers select: replayed on simulated panels and crowds, and on the real ones.

    python benchmarks/selecting.py [--real] [--seeds N] [--draws N] [--refits N] [--cache FOLDER]

Real sets (`--real`) are in the folder MANYHANDS_DATA. Every candidate is fitted once; the draw of twenty answers and
the choice are repeated (100 draws). `--refits` fits the default with the answers as gold too, for so many draws: five
fits for each, of all sets with at most 20,000 labels.
Without refits, the default with answers is no candidate. The rule before is the one that these tables led to change:
the method with most right answers, if P(p > 1/2) is at least .8 for p ~ Beta(1 + better, 1 + worse), and the default
fitted with the answers as gold. Accuracy without refits is that of all items, with them of those not answered.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from accuracy import REAL
from scipy.special import betainc
from shared_errors import ATTACKS, INDEPENDENT, PANELS, SHARED, judges
from trust_crowds import Fitted, fit_crowd, fitted, load, read

import manyhands as mh
from manyhands.trust.sampling import _allocate
from manyhands.trust.selection import (
    ALWAYS,
    DEFAULT,
    WITH_ANSWERS,
    _best,
    _fit_default,
    _heldout_labels,
    choose_method,
    label_codes,
)

VERDICTS = (
    *(f"casestudy_{name}" for name in ("base_10", "base_9", "constraint", "negation", "normal")),
    *("llmbar_natural", "processed_faireval", "processed_llmeval2", "processed_mt-bench"),
)
OTHERS = [*(f"functions/{name}" for name in ("sms", "trec", "youtube")), *(f"pairs/{name}" for name in VERDICTS)]
MOST_LABELS = 20_000  # of sets whose default is fitted again
N_ANSWERS = 20
Codes = np.ndarray
Rule = Callable[[Mapping[str, Codes], Codes, Codes, np.ndarray, np.ndarray, Mapping[str, Codes]], str]


def main() -> None:
    parser = argparse.ArgumentParser(description="Which method contested answers select.")
    parser.add_argument("--real", action="store_true", help="real crowds, panels, functions and verdicts")
    parser.add_argument("--seeds", type=int, default=2, help="of every simulated crowd; 40 times as many panels")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--refits", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=None)
    given = parser.parse_args()
    if given.real:
        names = [*REAL, *(f"panels/{name}" for name in PANELS), *OTHERS]
        groups = {"": [(load(name, given.cache), lambda name=name: read(name)) for name in names]}
    else:
        groups = {
            "panels of judges": [simulated(f"judges {seed}", judges, 5000 + seed) for seed in range(40 * given.seeds)]
        }
        for title, makers in (("crowds", SHARED | INDEPENDENT), ("attacks", ATTACKS)):
            each = [(name, make, 1000 + seed) for seed in range(given.seeds) for name, make in makers.items()]
            groups[title] = [simulated(*one) for one in each]
    for title, crowds in groups.items():
        print(table(title or "real sets", [replays(one, make, given.draws, given.refits) for one, make in crowds]))


def simulated(name: str, make: Callable[[int], tuple[mh.Annotations, Codes]], seed: int):  # type: ignore[no-untyped-def]
    """One simulated crowd with all candidates, and a function that makes it again."""
    return fitted(f"{name}-{seed}", fit_crowd(*make(seed))), lambda: make(seed)


# The two rules


def followed(said, rows, truth, weight, contested, heldout) -> str:  # type: ignore[no-untyped-def]
    """The method that `select_by_answers` follows."""
    return choose_method(said, rows, truth, weight, contested, heldout).method


def earlier(said, rows, truth, weight, contested, heldout) -> str:  # type: ignore[no-untyped-def]
    """The rule before; the default, and the one that always overrules, see the answers if they are fitted again."""
    names = [DEFAULT, *(name for name in said if name not in (DEFAULT, WITH_ANSWERS))]
    answered = np.stack([said[name][rows] for name in names])
    right = answered == truth
    best = _best(answered, np.sum(right * weight, axis=1))
    better, worse = float(weight[right[best] & ~right[0]].sum()), float(weight[right[0] & ~right[best]].sum())
    chosen = names[best] if betainc(1 + worse, 1 + better, 0.5) >= 0.8 else DEFAULT
    return WITH_ANSWERS if heldout and chosen in (DEFAULT, ALWAYS) else chosen


# Replays


def draw_answers(crowd: Fitted, n: int, kind: str, rng: np.random.Generator) -> tuple[Codes, np.ndarray]:
    """Rows of the answered items, and the weight of each."""
    if kind == "random":
        rows = rng.permutation(len(crowd.truth))[:n]
        return rows, np.ones(len(rows))
    pools = [np.flatnonzero(crowd.stratum == k) for k in (0, 1)]
    if not sum(map(len, pools)):
        return np.zeros(0, int), np.zeros(0)
    sizes = _allocate([len(pool) for pool in pools], n)
    rows = np.concatenate([rng.choice(pool, size, replace=False) for pool, size in zip(pools, sizes)])
    weight = np.concatenate([np.full(size, len(pool) / size) for pool, size in zip(pools, sizes) if size])
    return rows, weight / weight.mean()


def replay(crowd: Fitted, n: int, kind: str, draws: int, rule: Rule) -> np.ndarray:
    """Accuracy of the method that is followed, without refits, (draws,)."""
    accuracy = {name: float(np.mean(code == crowd.truth)) for name, code in crowd.labels.items()}
    found = np.full(draws, accuracy[DEFAULT])
    for seed in range(draws):
        rows, weight = draw_answers(crowd, n, kind, np.random.default_rng(seed))
        if len(rows):
            found[seed] = accuracy[rule(crowd.labels, rows, crowd.truth[rows], weight, crowd.stratum < 2, {})]
    return found


def refitted(crowd: Fitted, votes: mh.Annotations, truth: Codes, draws: int) -> np.ndarray:
    """Accuracy on items not answered of vote, default, default with answers, the rule before and the rule, by draw."""
    known = np.flatnonzero((truth >= 0) & (votes.n_labels > 0))
    found = []
    for seed in range(draws):
        rows, weight = draw_answers(crowd, N_ANSWERS, "contested", np.random.default_rng(seed))
        if not len(rows):
            continue
        order = np.argsort(rows)  # as `Answers.codes`
        rows, weight = rows[order], weight[order]
        values = dict(zip(votes.item_ids[known[rows]].tolist(), votes.classes[crowd.truth[rows]].tolist()))
        said = dict(crowd.labels)
        said[WITH_ANSWERS] = label_codes(_fit_default(votes, values, 0, None))[known]
        heldout = {WITH_ANSWERS: _heldout_labels(votes, known[rows], values, 0, None)}
        chosen = [
            rule(said, rows, crowd.truth[rows], weight, crowd.stratum < 2, heldout) for rule in (earlier, followed)
        ]
        rest = np.setdiff1d(np.arange(len(known)), rows)
        names = (mh.registry.VOTE, DEFAULT, WITH_ANSWERS, *chosen)
        found.append([float(np.mean(said[name][rest] == crowd.truth[rest])) for name in names])
    return np.array(found).reshape(-1, 5)


def replays(crowd: Fitted, make, draws: int, refits: int):  # type: ignore[no-untyped-def]
    """Name, accuracy of vote, default, and both rules without refits; and the same with refits, by draw."""
    means = [float(replay(crowd, N_ANSWERS, "contested", draws, rule).mean()) for rule in (earlier, followed)]
    default = float(np.mean(crowd.labels[DEFAULT] == crowd.truth))
    again = np.zeros((0, 5))
    if refits:
        votes, truth = make()
        again = refitted(crowd, votes, truth, refits) if votes.n_annotations <= MOST_LABELS else again
    return crowd.name, [crowd.vote, default, *means], again


def table(title: str, found) -> str:  # type: ignore[no-untyped-def]
    """One line for each set, and the means, as Markdown."""
    lines = [
        f"## {title}, {N_ANSWERS} contested answers\n",
        "| set | vote | default | rule before | rule | against the better of vote and default, points: before, now "
        "| refits: default, with answers | refits: rule before, rule |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (vote, default, before, now), again in found:
        better = max(vote, default)
        cells = [f"{value:.3f}" for value in (vote, default, before, now)]
        cells.append(f"{100 * (before - better):+.1f}, {100 * (now - better):+.1f}")
        means = [f"{value:.3f}" for value in again.mean(axis=0)] if len(again) else ["-"] * 5
        lines.append(f"| {name} | {' | '.join(cells)} | {', '.join(means[1:3])} | {', '.join(means[3:])} |")
    values = np.array([one for _, one, _ in found])
    better = values[:, :2].max(axis=1)
    gain = 100 * (values[:, 2:] - values[:, 1:2]).mean(axis=0)
    worst = 100 * (values[:, 2:] - better[:, None]).min(axis=0)
    lines.append(f"\nMean gain over the default: before {gain[0]:+.2f}, now {gain[1]:+.2f} points; "
                 f"worst set against the better of vote and default: {worst[0]:+.2f}, {worst[1]:+.2f}.")  # fmt: skip
    refits = [again for *_, again in found if len(again)]
    if refits:
        sets = np.array([again.mean(axis=0) for again in refits])
        draws = np.concatenate(refits)
        lost = (draws[:, 2:] < draws[:, :2].max(axis=1, keepdims=True) - 0.02).mean(axis=0)
        gain = 100 * (sets[:, 2:] - sets[:, 1:2]).mean(axis=0)
        worst = 100 * (sets[:, 2:] - sets[:, :2].max(axis=1, keepdims=True)).min(axis=0)
        for k, name in enumerate(("default with answers", "rule before", "rule")):
            drawn = f"With refits ({len(draws)} draws of {len(sets)} sets), {name}: gain {gain[k]:+.2f}, worst set "
            lines.append(f"{drawn}{worst[k]:+.2f} points, more than 2 points lost in {lost[k]:.0%} of the draws.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
