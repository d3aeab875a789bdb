"""Simulated crowds with shared errors, with independent errors, and with attacks; and the panels of language models."""

from __future__ import annotations

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import manyhands as mh
from manyhands.simulate import make_crowd

Crowd = tuple[mh.Annotations, np.ndarray]
PANELS = ("cebab_stars", "framing", "lgbteen", "10k_prompts", "wax")


def _annotations(
    item: np.ndarray, worker: np.ndarray, label: np.ndarray, shape: tuple[int, int, int]
) -> mh.Annotations:
    n_items, n_workers, n_classes = map(np.arange, shape)
    return mh.Annotations(item, worker, label, item_ids=n_items, worker_ids=n_workers, classes=n_classes)


def _assigned(rng: np.random.Generator, n_items: int, n_workers: int, per_item: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(rng.random((n_items, n_workers)), axis=1)[:, :per_item]
    return np.repeat(np.arange(n_items), per_item), order.ravel()


def ambiguous(seed: int, n_classes: int = 4, per_item: int = 5, share: float = 0.3, directed: bool = True) -> Crowd:
    """Items that a part of all workers takes for another class; directed: for the same one within a class."""
    n_items, n_workers = 600, 40
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    other = (truth + (1 if directed else rng.integers(1, n_classes, size=n_items))) % n_classes
    p_other = np.where(rng.random(n_items) < share, rng.uniform(0.2, 0.8, n_items), 0.0)
    item, worker = _assigned(rng, n_items, n_workers, per_item)
    skill = np.clip(rng.normal(0.8, 0.1, n_workers), 0.3, 0.98)
    seen = np.where(rng.random(len(item)) < p_other[item], other[item], truth[item])
    wrong = (seen + rng.integers(1, n_classes, len(item))) % n_classes
    label = np.where(rng.random(len(item)) < skill[worker], seen, wrong)
    return _annotations(item, worker, label, (n_items, n_workers, n_classes)), truth


def grades(
    seed: int,
    n_classes: int = 5,
    n_items: int = 600,
    n_workers: int = 40,
    per_item: int = 5,
    shift: float = 0.5,
    noise: float = 0.6,
) -> Crowd:
    """Ordered grades: a score with an error that all workers share, a common shift, and narrower thresholds."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n_items)
    thresholds = np.quantile(rng.normal(size=4000), np.cumsum(rng.dirichlet(np.full(n_classes, 5.0)))[:-1])
    truth = np.searchsorted(thresholds, score)
    item, worker = _assigned(rng, n_items, n_workers, per_item)
    bias, spread = rng.normal(shift, 0.2, n_workers), noise * np.exp(rng.normal(0, 0.25, n_workers))
    seen = (score + rng.normal(0, 0.5, n_items))[item] + bias[worker] + spread[worker] * rng.normal(size=len(item))
    label = np.searchsorted(0.8 * thresholds, seen)
    return _annotations(item, worker, label, (n_items, n_workers, n_classes)), truth


def copies(
    seed: int, n_classes: int = 3, sizes: tuple[int, ...] = (3, 2, 1), accuracy: tuple[float, ...] = (0.75, 0.7, 0.65)
) -> Crowd:
    """A panel of families: four of five labels of a member are those of its family."""
    n_items = 800
    rng = np.random.default_rng(seed)
    truth, columns = rng.integers(n_classes, size=n_items), []
    for size, right in zip(sizes, accuracy):
        confusion = np.diag(np.full(n_classes, right))
        for k in range(n_classes):
            confusion[k, np.arange(n_classes) != k] = (1 - right) * rng.dirichlet(np.full(n_classes - 1, 0.7))
        labels = [_drawn(confusion[truth], rng) for _ in range(size + 1)]
        columns += [np.where(rng.random(n_items) < 0.8, labels[0], own) for own in labels[1:]]
    return mh.Annotations.from_matrix(np.stack(columns, axis=1), classes=np.arange(n_classes)), truth


def judges(seed: int) -> Crowd:
    """A panel of five families of judges that share errors, few of them good; everything drawn at random.

    Ordered grades: an error common to all, one of each family, thresholds of a family's own, a common shift.
    """
    rng = np.random.default_rng(seed)
    n_classes, n_judges, n_items = int(rng.integers(3, 7)), int(rng.integers(12, 45)), int(rng.integers(100, 501))
    family = rng.choice(5, n_judges, p=rng.dirichlet(np.full(5, 3.0)))
    is_good = rng.random(n_judges) < rng.choice([0.05, 0.1, 0.2])
    score = rng.normal(size=n_items)

    def thresholds(concentration: float) -> np.ndarray:
        return np.quantile(rng.normal(size=4000), np.cumsum(rng.dirichlet(np.full(n_classes, concentration)))[:-1])

    true_scale = thresholds(rng.choice([2.0, 5.0]))
    common = rng.uniform(0.3, 1.2) * rng.normal(size=n_items)
    of_family = rng.uniform(0.2, 1.0) * rng.normal(size=(5, n_items))
    own = rng.choice([0.0, 0.5, 1.0])  # how far the scale of a family is its own
    scale = [np.sort((1 - own) * true_scale + own * thresholds(3.0)) for _ in range(5)]
    shift, spread = rng.normal(0, 0.5), rng.uniform(0.15, 0.8)
    columns = []
    for judge in range(n_judges):
        noise, bias = spread * np.exp(rng.normal(0, 0.3)), rng.normal(0, 0.2)
        if is_good[judge]:
            seen = score + 0.3 * common + bias / 2 + 0.35 * rng.normal(size=n_items)
            columns.append(np.searchsorted(true_scale, seen))
        else:
            seen = score + common + of_family[family[judge]] + shift + bias + noise * rng.normal(size=n_items)
            columns.append(np.searchsorted(scale[family[judge]], seen))
    item, worker = np.repeat(np.arange(n_items), n_judges), np.tile(np.arange(n_judges), n_items)
    label = np.stack(columns, axis=1).ravel()
    return _annotations(item, worker, label, (n_items, n_judges, n_classes)), np.searchsorted(true_scale, score)


def _drawn(probability: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One class for each row of probabilities."""
    return (rng.random((len(probability), 1)) > probability.cumsum(axis=1)[:, :-1]).sum(axis=1)


def confusions(
    seed: int, n_classes: int = 2, n_items: int = 400, n_workers: int = 40, per_item: int = 10, diagonal: float = 0.7,
    strength: float = 4.0, shares: tuple[float, ...] | None = None,
) -> Crowd:  # fmt: skip
    """Every worker has a confusion matrix of their own, and errors are independent."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_items, p=shares)
    mean = np.full((n_classes, n_classes), (1 - diagonal) / (n_classes - 1))
    np.fill_diagonal(mean, diagonal)
    confusion = np.stack([[rng.dirichlet(strength * row) for row in mean] for _ in range(n_workers)])
    item, worker = _assigned(rng, n_items, n_workers, per_item)
    label = _drawn(confusion[worker, truth[item]], rng)
    return _annotations(item, worker, label, (n_items, n_workers, n_classes)), truth


def attacked(seed: int, n_classes: int, bad: str, share: float) -> Crowd:
    """A crowd of the simulator."""
    options = {"n_classes": n_classes, "bad": bad, "bad_share": share}
    crowd = make_crowd(n_items=400, n_workers=40, labels_per_item=5, **options, random_state=seed)
    return crowd.annotations, np.asarray(crowd.truth)


SHARED: dict[str, Callable[[int], Crowd]] = {
    "ambiguous items, 2 classes": partial(ambiguous, n_classes=2),
    "ambiguous items, 4 classes": ambiguous,
    "the same, confused with any class": partial(ambiguous, directed=False),
    "ambiguous items, 8 classes, 3 labels": partial(ambiguous, n_classes=8, per_item=3),
    "ambiguous items, 10 labels": partial(ambiguous, per_item=10, share=0.4),
    "grades with a common shift": grades,
    "grades without a shift": partial(grades, shift=0.0),
    "grades by six judges": partial(grades, n_workers=6, per_item=6, n_items=800, shift=0.6),
    "grades by 33 judges": partial(grades, n_classes=4, n_workers=33, per_item=33, n_items=400, shift=0.8, noise=0.4),
    "grades, 3 labels": partial(grades, n_workers=100, per_item=3, shift=0.4),
    "families of 3, 2 and 1": copies,
    "the same, 5 classes": partial(copies, n_classes=5, accuracy=(0.6, 0.7, 0.6)),
    "families of 2, 2 and 2": partial(copies, sizes=(2, 2, 2), accuracy=(0.8, 0.7, 0.6)),
}
INDEPENDENT: dict[str, Callable[[int], Crowd]] = {
    "own confusions, 2 classes": confusions,
    "the same, 39 labels": partial(confusions, n_items=108, n_workers=39, per_item=39, diagonal=0.62, strength=2.0),
    "own confusions, 5 classes": partial(confusions, n_classes=5, n_items=800, n_workers=80, per_item=6, diagonal=0.6),
    "own confusions, imbalanced": partial(confusions, n_classes=4, per_item=5, shares=(0.7, 0.15, 0.1, 0.05)),
    "own confusions, 10 classes": partial(
        confusions, n_classes=10, n_items=700, n_workers=44, per_item=4, diagonal=0.65
    ),
    "one-coin, 2 classes": partial(attacked, n_classes=2, bad="random", share=0.0),
    "one-coin, 4 classes": partial(attacked, n_classes=4, bad="random", share=0.0),
}
ATTACKS: dict[str, Callable[[int], Crowd]] = {
    f"{share:.0%} {bad}, {k} classes": partial(attacked, n_classes=k, bad=bad, share=share)
    for bad in ("random", "constant", "inverted", "colluding")
    for k in (2, 4)
    for share in (0.3, 0.5)
    if (bad, k, share) != ("inverted", 2, 0.5)  # half right, half wrong: nobody can tell which
}


def panels() -> Iterator[tuple[str, mh.Annotations, dict[str, str]]]:
    """Six language models as the crowd; truth is the majority of the people, ties left out."""
    for name in PANELS:
        path = Path(os.environ["MANYHANDS_DATA"]) / "panels" / name / "annotations.csv"
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        machine = [row for row in rows if row["kind"] == "machine"]
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row["kind"] != "machine":
                votes[row["task"]][row["label"]] += 1
        ranked = {task: counts.most_common(2) for task, counts in votes.items()}
        truth = {task: top[0][0] for task, top in ranked.items() if len(top) == 1 or top[0][1] > top[1][1]}
        columns = ([row[key] for row in machine] for key in ("task", "worker", "label"))
        yield f"panels/{name}", mh.Annotations.from_triples(*columns), truth
