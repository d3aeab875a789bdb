"""Accuracy and calibration of every aggregator, on real and simulated crowds.

    MANYHANDS_DATA=FOLDER python benchmarks/accuracy.py [real] [spam] [sparse]

Prints Markdown. Cells are accuracy / ECE (ten bins of equal mass), in per cent.
"""

from __future__ import annotations

import csv
import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands.simulate import make_crowd

REAL = [
    *(f"agg/{name}" for name in ("bluebirds", "dogs", "web", "s_rel", "s_face", "fact_eval")),
    *(f"agg/{name}" for name in ("zencrowd_in", "zencrowd_all")),
    *(f"snow2008/{name}" for name in ("rte", "temp", "wsd")),
    *("labelme", "music", "leaves", "weather_text", "cifar10s", "reports_mozilla"),
]
METHODS = ["pooled-dawid-skene", "majority-vote", "wawa", "dawid-skene", "ibcc", "one-coin", "mace", "glad"]
BINS = 10


def real() -> None:
    """Real crowds; last row kept where a worker repeats an item; items with truth only. `vote` averages over ties."""
    print(f"## Real crowds\n\n{real.__doc__}\n")
    _row("data", "vote", *METHODS)
    _row(*["---"] * (len(METHODS) + 2))
    table, balanced = [], []
    for name in REAL:
        votes, truth = _read(name)
        known = np.flatnonzero([item in truth for item in votes.item_ids.tolist()])
        right_class = np.array([votes.classes.tolist().index(truth[votes.item_ids[i]]) for i in known])
        models = [_fit(method, votes) for method in METHODS]
        cells = [_tie_averaged(votes, known, right_class)]
        cells += [(_accuracy(m, known, right_class), _calibration_error(m, known, right_class)) for m in models]
        balanced.append([_balanced(m, known, right_class) for m in models])
        table.append(cells)
        _row(name, *map(_cell, cells))
    _row("**mean**", *(_cell(np.mean([row[i] for row in table], axis=0)) for i in range(len(METHODS) + 1)))
    short = [sum(row[i][0] < row[0][0] - 0.01 for row in table) for i in range(len(METHODS) + 1)]
    _row("sets more than a point below the vote", "", *short[1:])
    lowest = [min(row[i][0] - row[0][0] for row in table) for i in range(len(METHODS) + 1)]
    _row("worst against the vote, points", "", *(f"{100 * v:+.1f}" for v in lowest[1:]))
    _row("mean balanced accuracy", "", *(f"{100 * v:.1f}" for v in np.mean(balanced, axis=0)))


def spam() -> None:
    """400 items, 40 workers, 5 labels per item, honest accuracy 0.8; mean of five seeds (100 to 104)."""
    print(f"## Bad workers\n\n{spam.__doc__}\n")
    _row("classes", "bad workers", *METHODS)
    _row(*["---"] * (len(METHODS) + 2))
    for n_classes in (2, 4):
        for bad in ("random", "constant", "inverted", "colluding"):
            for share in (0.3, 0.5):
                if share == 0.5 and bad == "inverted" and n_classes == 2:
                    continue  # half correct, half wrong: not identifiable
                options = {"n_classes": n_classes, "bad": bad, "bad_share": share}
                _row(n_classes, f"{share:.0%} {bad}", *_simulated(options, range(100, 105)))


def sparse() -> None:
    """1,000 items, accuracy spread .12 around .75; mean of five seeds (200 to 204)."""
    print(f"## Few labels per worker\n\n{sparse.__doc__}\n")
    _row("classes", "workers", "labels per item", "labels per worker", *METHODS)
    _row(*["---"] * (len(METHODS) + 4))
    for n_classes in (2, 4):
        for n_workers, per_item in ((20, 3), (200, 3), (500, 5), (1000, 3)):
            options = {"n_items": 1000, "n_workers": n_workers, "labels_per_item": per_item, "n_classes": n_classes}
            cells = _simulated(options | {"accuracy": 0.75, "spread": 0.12}, range(200, 205))
            _row(n_classes, n_workers, per_item, 1000 * per_item // n_workers, *cells)


def _simulated(options: dict[str, Any], seeds: Iterable[int]) -> list[str]:
    results = []
    for seed in seeds:
        crowd = make_crowd(**options, random_state=seed)
        every = np.arange(crowd.annotations.n_items)
        models = [_fit(method, crowd.annotations) for method in METHODS]
        truth = crowd.truth
        results.append([(_accuracy(m, every, truth), _calibration_error(m, every, truth)) for m in models])
    return [_cell(cell) for cell in np.mean(results, axis=0)]


def _fit(method: str, votes: mh.Annotations) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
        return mh.registry.create(method).fit(votes)


def _right(model: Any, known: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.array([a == b for a, b in zip(model.labels_[known].tolist(), model.classes_[truth].tolist())])


def _accuracy(model: Any, known: np.ndarray, truth: np.ndarray) -> float:
    return float(_right(model, known, truth).mean())


def _balanced(model: Any, known: np.ndarray, truth: np.ndarray) -> float:
    right = _right(model, known, truth)
    return float(np.mean([right[truth == k].mean() for k in np.unique(truth)]))


def _calibration_error(model: Any, known: np.ndarray, truth: np.ndarray) -> float:
    """ECE over bins of equal mass."""
    confidence, right = model.posterior_[known].max(axis=1), _right(model, known, truth)
    order = np.argsort(confidence, kind="stable")
    gaps = [abs(confidence[part].mean() - right[part].mean()) * len(part) for part in np.array_split(order, BINS)]
    return float(sum(gaps) / len(order))


def _tie_averaged(votes: mh.Annotations, known: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """What a vote scores on average when it breaks ties at random."""
    model = _fit("majority-vote", votes)
    share = model.posterior_[known]
    best = share == share.max(axis=1, keepdims=True)
    accuracy = float((best[np.arange(len(known)), truth] / best.sum(axis=1)).mean())
    return accuracy, _calibration_error(model, known, truth)


def _read(name: str) -> tuple[mh.Annotations, dict[str, str]]:
    folder = Path(os.environ["MANYHANDS_DATA"]) / name
    last = {(row["task"], row["worker"]): row["label"] for row in _rows(folder / "annotations.csv")}
    truth = {row["task"]: row["label"] for row in _rows(folder / "truth.csv")}
    items, workers = zip(*last)
    classes = sorted(set(last.values()) | set(truth.values()))
    return mh.Annotations.from_triples(items, workers, list(last.values()), classes=classes), truth


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _cell(pair: Any) -> str:
    return f"{100 * pair[0]:.1f} / {100 * pair[1]:.1f}"


def _row(*cells: Any) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


SECTIONS = {"real": real, "spam": spam, "sparse": sparse}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        SECTIONS[section]()
        print()
