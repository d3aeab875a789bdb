"""Pairwise verdicts in both orders of presentation: the order-consistency vote, the vote and the default method.

    MANYHANDS_DATA=FOLDER python benchmarks/verdicts.py [--simulated]

Prints the accuracy on every set of FOLDER/pairs with known answers (ties in the result count by halves) with the
paired 95% interval of the difference to the vote over pairs, the mean flip rate, and the accuracy of the most
consistent and of the best judge. With --simulated, the panels on which exponent and least weight were chosen.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands.aggregation import order_consistency_vote
from manyhands.io import read_export

PANELS = ("linked", "unlinked", "random", "position", "mixture", "shared", "confident_wrong")
SIZES = ((20, 3), (20, 8), (20, 24), (100, 3), (100, 8), (100, 24))  # pairs, judges
SETTINGS = ((1.0, 0.03), (2.0, 0.01), (2.0, 0.03), (2.0, 0.1), (2.0, 0.3), (4.0, 0.03))  # exponent, least weight
N_PANELS = 20  # of each kind and size
N_BOOTSTRAP = 2000


def right(model: Any, truth: dict[Any, Any]) -> np.ndarray:
    """Return 1 for each known pair whose answer is right, the share of a tie, and 0."""
    share = model.posterior_
    best = share >= share.max(axis=1, keepdims=True) - 1e-9
    code = {name: k for k, name in enumerate(model.classes_.tolist())}
    rows = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    return np.array([best[rows[item], code[name]] / best[rows[item]].sum() for item, name in truth.items()])


def real_sets(folder: Path) -> None:
    """Print one row for each set."""
    rng = np.random.default_rng(0)
    head = ("set", "pairs", "judges", "vote", "default", "consistency", "difference", "95% interval", "flips")
    print("| " + " | ".join(head) + " | most consistent judge | best judge |")
    print("|" + "---|" * (len(head) + 2))
    rows = []
    for path in sorted(folder.iterdir()):
        if not (path / "truth.csv").exists():
            continue
        reading = read_export(path / "annotations.csv", verdicts="answer")
        votes, answers = reading.annotations, read_export_of_truth(path / "truth.csv")
        truth = {item: label for item, label in answers.items() if item in set(votes.item_ids.tolist())}
        scores = [right(method.fit(votes), truth) for method in (mh.MajorityVote(), mh.PooledDawidSkene())]
        model = mh.OrderConsistencyVote().fit(votes)
        scores.append(right(model, truth))
        difference = scores[2] - scores[0]
        draws = difference[rng.integers(len(difference), size=(N_BOOTSTRAP, len(difference)))].mean(axis=1)
        low, high = np.percentile(draws, [2.5, 97.5])
        accuracy = accuracy_of_judges(votes, truth)
        vote, default, own = (score.mean() for score in scores)
        rows.append((vote, default, own))
        first = int(np.argmin(model.flip_rate_))
        print(
            f"| {path.name} | {len(truth)} | {votes.n_workers} | {vote:.3f} | {default:.3f} | {own:.3f} "
            f"| {difference.mean():+.3f} | {low:+.3f} to {high:+.3f} | {np.mean(model.flip_rate_):.2f} "
            f"| {accuracy[first]:.2f} | {accuracy.max():.2f} |"
        )
    vote, default, own = np.mean(rows, axis=0)
    print(f"| mean | | | {vote:.3f} | {default:.3f} | {own:.3f} | {own - vote:+.3f} | | | | |")


def read_export_of_truth(path: Path) -> dict[str, str]:
    """Return the known answers of a set."""
    lines = path.read_text().splitlines()[1:]
    return dict(line.split(",") for line in lines)  # type: ignore[arg-type]


def accuracy_of_judges(votes: mh.Annotations, truth: dict[str, str]) -> np.ndarray:
    """Return each judge's share of right verdicts."""
    known = np.array([truth.get(item) for item in votes.item_ids.tolist()])[votes.item]
    is_right = votes.classes[votes.label] == known
    return np.bincount(votes.worker, is_right, votes.n_workers) / np.bincount(votes.worker, minlength=votes.n_workers)


# ----------------------------------------------------------------------------------------------------
# Simulated judges: logit of choosing the first answer = sharpness * (quality of first - second, as seen) + preference.


def judge(rng: np.random.Generator, kind: str, family: int) -> tuple[float, int, float, float, float]:
    """Draw own error of quality, family, error that the family shares, sharpness, preference for the first place."""
    if kind == "linked":  # able judges see better and answer more consistently
        able = rng.uniform()
        return 0.3 + 2 * (1 - able), family, 0.3, 0.5 + 5 * able, rng.normal(0, 2) * (1 - able)
    if kind == "unlinked":  # consistency says nothing about errors
        return rng.uniform(0.3, 2), family, 0.3, rng.uniform(0.3, 6), rng.normal(0, 2)
    if kind == "random":
        return 0.7, family, 0.3, 0.0 if rng.random() < 0.6 else 3.0, 0.0
    if kind == "position":
        biased = rng.random() < 0.6
        return 0.7, family, 0.3, rng.uniform(0.2, 1) if biased else 3.0, rng.normal(0, 4) * biased
    if kind == "mixture":
        choice = rng.random()
        if choice < 0.4:
            return 0.7, family, 0.3, 3.0, 0.0
        return (1.5, family, 0.5, 0.0, 0.0) if choice < 0.7 else (1.0, family, 0.5, 1.0, rng.choice([-3.0, 3.0]))
    few = rng.random() < 0.25
    if kind == "shared":  # three quarters are weak, inconsistent, and err together
        return (0.4, 1000 + family, 0.2, 5.0, 0.0) if few else (0.8, 0, 2.0, 1.2, rng.normal(0.8, 1))
    # a quarter is consistent and errs together: what no statistic of consistency can find
    return (0.4, 0, 2.0, 5.0, 0.0) if few else (0.5, 1000 + family, 0.2, 1.2, rng.normal(0.5, 0.7))


def panel(rng: np.random.Generator, kind: str, n_pairs: int, n_judges: int) -> tuple[mh.Annotations, dict[int, int]]:
    """Draw the verdicts of a panel in both orders, and the truth."""
    better = rng.choice([-1, 1], n_pairs)
    quality = better * np.abs(rng.normal(1, 0.7, n_pairs))
    shared: dict[int, np.ndarray] = {}
    rows = []
    for w in range(n_judges):
        own, family, spread, sharpness, preference = judge(rng, kind, int(rng.integers(max(1, n_judges // 4))))
        errors = shared.setdefault(family, rng.normal(0, 1, n_pairs))
        seen = quality + own * rng.normal(0, 1, n_pairs) + spread * errors
        for side in (1, -1):
            first = rng.random(n_pairs) < 1 / (1 + np.exp(-(sharpness * side * seen + preference)))
            rows.append(np.column_stack([np.arange(n_pairs), np.full(n_pairs, w), np.where(first, side, -side)]))
    items, workers, labels = np.concatenate(rows).T.tolist()
    votes = mh.Annotations.from_triples(items, workers, labels, duplicates="all", classes=[-1, 1])
    return votes, dict(enumerate(better.tolist()))


def simulated_panels() -> None:
    """Print the gain over the vote of each setting, by kind of panel and number of pairs."""
    print("\n| panel | pairs | vote | " + " | ".join(f"{power:g}, {least:g}" for power, least in SETTINGS) + " |")
    print("|" + "---|" * (3 + len(SETTINGS)))
    chosen = order_consistency_vote._LEAST_WEIGHT
    for kind in PANELS:
        for n_pairs in (20, 100):
            found = []
            for seed in range(N_PANELS):
                for n_judges in (size for pairs, size in SIZES if pairs == n_pairs):
                    votes, truth = panel(np.random.default_rng([seed, n_judges]), kind, n_pairs, n_judges)
                    row = [right(mh.MajorityVote().fit(votes), truth).mean()]
                    for power, least in SETTINGS:
                        order_consistency_vote._LEAST_WEIGHT = least
                        row.append(right(mh.OrderConsistencyVote(power).fit(votes), truth).mean())
                    found.append(row)
            vote, *others = np.mean(found, axis=0)
            print(f"| {kind} | {n_pairs} | {vote:.3f} | " + " | ".join(f"{own - vote:+.3f}" for own in others) + " |")
    order_consistency_vote._LEAST_WEIGHT = chosen


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    real_sets(Path(os.environ["MANYHANDS_DATA"]) / "pairs")
    if "--simulated" in sys.argv:
        simulated_panels()
