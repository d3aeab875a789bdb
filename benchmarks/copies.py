"""Copies: accuracy with copies beside the crowd without them, honest pairs that are merged, and merges on real crowds.

    python benchmarks/copies.py copied [--seeds N] [--first SEED]    pairs and triples that copy
    python benchmarks/copies.py honest [--seeds N] [--first SEED]    crowds without copies
    MANYHANDS_DATA=FOLDER python benchmarks/copies.py real           every pair that is merged on real crowds

A copier labels `cover` of the items of the source and repeats the source with probability `rate`; otherwise they answer
with the mean accuracy of the crowd. Every third crowd has a bad, a middling and a good source, and half of the crowds
have two copiers. The thresholds were chosen on seeds below 600.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands.em.copies import find_group_and_copies
from manyhands.scorecards import score_workers

CROWDS: dict[str, dict[str, Any]] = {
    "8 workers, 2 classes": {"n_workers": 8},
    "8 workers, 4 classes": {"n_workers": 8, "n_classes": 4},
    "20 workers, 2 classes": {},
    "20 workers, 3 classes, hard items": {"n_classes": 3, "hard": 1.0},
    "60 workers, 2 classes": {"n_workers": 60, "n_items": 500, "per_item": 8},
}
HONEST: dict[str, dict[str, Any]] = {
    **CROWDS,
    "8 workers, hard items": {"n_workers": 8, "hard": 2.0},
    "8 workers, 150 items, 3 labels": {"n_workers": 8, "n_items": 150, "per_item": 3},
    "hard items, all label all": {"per_item": 20, "hard": 1.5},
    "high skill": {"mean": 0.93, "spread": 0.05},
    "high skill, all label all": {"mean": 0.93, "spread": 0.05, "per_item": 20},
    "4 classes, shared confusions": {"n_classes": 4, "shared": 0.8, "hard": 1.0},
    "3 classes, imbalance 8": {"n_classes": 3, "imbalance": 8.0},
    "60 workers, 5 classes, shared confusions": {
        "n_workers": 60,
        "n_classes": 5,
        "per_item": 10,
        "shared": 0.9,
        "hard": 1.5,
    },
    "8 workers, half of them random": {"n_workers": 8, "mean": 0.7, "spread": 0.25},
}


def draw(
    rng: np.random.Generator,
    *,
    n_workers: int = 20,
    n_items: int = 300,
    n_classes: int = 2,
    per_item: int = 5,
    mean: float = 0.75,
    spread: float = 0.12,
    hard: float = 0.0,
    shared: float = 0.0,
    imbalance: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A crowd of honest workers: labels (n_items, n_workers) with -1 for none, truth, accuracies.

    `hard` is the deviation of the difficulty of items in log-odds, `shared` the probability that a wrong label is the
    class with which all workers confuse the true one, `imbalance` the ratio of class frequencies.
    """
    prior = imbalance ** -np.arange(n_classes, dtype=float)
    truth = rng.choice(n_classes, n_items, p=prior / prior.sum())
    accuracy = np.clip(rng.normal(mean, spread, n_workers), 1 / n_classes, 0.99)
    p = 1 / (1 + np.exp(-np.log(accuracy / (1 - accuracy)) - rng.normal(0, 1, n_items)[:, None] * hard))
    confused = np.array([rng.choice([j for j in range(n_classes) if j != k]) for k in range(n_classes)])
    wrong = (truth[:, None] + rng.integers(1, n_classes, p.shape)) % n_classes
    wrong = np.where(rng.random(p.shape) < shared, confused[truth][:, None], wrong)
    matrix = np.where(rng.random(p.shape) < np.maximum(p, 0.1), truth[:, None], wrong)
    activity = rng.dirichlet(np.full(n_workers, 3.0)) * n_workers
    if per_item < n_workers:
        order = np.argsort(np.argsort(rng.exponential(size=p.shape) / activity, axis=1), axis=1)
        matrix[order >= per_item] = -1
    return matrix, truth, accuracy


def add_copies(
    rng: np.random.Generator,
    matrix: np.ndarray,
    truth: np.ndarray,
    accuracy: np.ndarray,
    source: int,
    rate: float,
    cover: float,
    n_copies: int,
) -> np.ndarray:
    """The crowd with copiers of a source, in further columns."""
    columns, n_classes = [matrix], int(matrix.max()) + 1
    items = np.flatnonzero(matrix[:, source] >= 0)
    for _ in range(n_copies):
        column = np.full(len(matrix), -1)
        here = rng.permutation(items)[: max(1, round(cover * len(items)))]
        wrong = (truth[here] + rng.integers(1, n_classes, len(here))) % n_classes
        own = np.where(rng.random(len(here)) < accuracy.mean(), truth[here], wrong)
        column[here] = np.where(rng.random(len(here)) < rate, matrix[here, source], own)
        columns.append(column[:, None])
    return np.hstack(columns)


def fit(matrix: np.ndarray, **parameters: Any) -> mh.PooledDawidSkene:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
        return mh.PooledDawidSkene(**parameters).fit(mh.Annotations.from_matrix(matrix, missing=-1))


def cell(settings: dict[str, Any], rate: float, cover: float, seeds: range) -> dict[str, float]:
    """Means over crowds: accuracies in per cent, copies found, and whether the source's interval has their accuracy."""
    rows = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        matrix, truth, accuracy = draw(rng, **settings)
        n = len(accuracy)
        source = int(np.argsort(accuracy)[[n // 6, n // 2, -n // 6][seed % 3]])
        n_copies = 1 + seed // 3 % 2
        copied = add_copies(rng, matrix, truth, accuracy, source, rate, cover, n_copies)
        without, model, unmerged = fit(matrix), fit(copied), fit(copied, detect_collusion=False)
        cards = score_workers(model, verbose=0)
        given = matrix[:, source] >= 0
        right = float(np.mean(matrix[given, source] == truth[given]))
        group = model.copy_groups_
        is_found = group[source] >= 0 and np.all(group[n:] == group[source])
        n_honest = np.count_nonzero(np.delete(group[:n], source) >= 0)
        covered = cards.accuracy_low[source] <= right <= cards.accuracy_high[source]
        shares = [100 * float(np.mean(one.labels_ == truth)) for one in (without, model, unmerged)]
        rows.append([*shares, is_found, n_honest, covered])
    names = ("without the copy", "with it", "unmerged", "found", "honest merged", "source in interval")
    return dict(zip(names, np.mean(rows, axis=0).tolist()))


def copied(seeds: range) -> None:
    """Print the table of crowds with copies."""
    print("| crowd | items copied | rate | without the copy | with it | unmerged | found | source in interval |")
    print("|---|---|---|---|---|---|---|---|")
    for name, settings in CROWDS.items():
        for cover in (0.3, 0.7, 1.0):
            for rate in (0.8, 0.9, 1.0):
                found = cell(settings, rate, cover, seeds)
                cells = [f"{found[key]:.1f}" for key in ("without the copy", "with it", "unmerged")]
                cells += [f"{100 * found[key]:.0f}" for key in ("found", "source in interval")]
                print(f"| {name} | {cover:.0%} | {rate:.0%} | " + " | ".join(cells) + " |", flush=True)


def honest(seeds: range) -> None:
    """Print how many pairs of honest workers are merged."""
    print("| crowd | pairs | merged |\n|---|---|---|")
    for name, settings in HONEST.items():
        n_pairs = n_merged = 0
        for seed in seeds:
            matrix, _, _ = draw(np.random.default_rng(seed), **settings)
            _, found = find_group_and_copies(mh.Annotations.from_matrix(matrix, missing=-1))
            n_pairs += matrix.shape[1] * (matrix.shape[1] - 1) // 2
            n_merged += len(found.x)
        print(f"| {name} | {n_pairs:,} | {n_merged} |", flush=True)


def real(folder: Path) -> None:
    """Print every pair that is merged on the crowds of a folder; a judge's two orders are two workers."""
    for path in sorted(folder.rglob("annotations.csv")):
        with path.open() as file:
            rows = list(csv.DictReader(file))
        if not {"task", "worker", "label"} <= rows[0].keys():
            continue
        workers = [row["worker"] + (f"|{row['order']}" if "order" in row else "") for row in rows]
        columns = [row["task"] for row in rows], workers, [row["label"] for row in rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
            votes = mh.Annotations.from_triples(*columns, duplicates="last")
        _, found = find_group_and_copies(votes)
        n_pairs = votes.n_workers * (votes.n_workers - 1) // 2
        print(f"{path.parent.relative_to(folder)}: {len(found.x)} of {n_pairs:,} pairs")
        for x, y, common, equal, expected in zip(found.x, found.y, found.n_common, found.n_equal, found.n_expected):
            pair = f"{votes.worker_ids[x]} and {votes.worker_ids[y]}"
            print(f"    {pair}: equal on {equal} of {common}, {expected:.0f} expected")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("copied", "honest", "real"))
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=1000)
    given = parser.parse_args()
    chosen = range(given.first, given.first + given.seeds)
    if given.what == "real":
        real(Path(os.environ["MANYHANDS_DATA"]))
    else:
        {"copied": copied, "honest": honest}[given.what](chosen)
