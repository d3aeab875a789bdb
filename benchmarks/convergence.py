"""Passes over the data of plain and of accelerated Dawid-Skene EM on one real crowd, as JSON.

MANYHANDS_DATA=FOLDER python benchmarks/convergence.py labelme
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

from manyhands import Annotations
from manyhands.em.confusion_em import ConfusionEM
from manyhands.em.driver import run_em
from manyhands.em.kernels import PackedLabels, pack
from manyhands.em.noise import ConfusionNoise
from manyhands.em.priors import EstimatedPrior

CLOSE = 1e-6
MANY = 4000


class Recorded:
    """A model whose every objective is written down, those of extrapolations that were undone included."""

    def __init__(self, model: ConfusionEM[Any]) -> None:
        self.model, self.objectives = model, []

    def maximise(self, statistics: Any, previous: Any) -> Any:
        return self.model.maximise(statistics, previous)

    def expect(self, params: Any) -> Any:
        statistics, objective = self.model.expect(params)
        self.objectives.append(objective)
        return statistics, objective


def main(name: str) -> dict[str, Any]:
    model = ConfusionEM(PackedLabels(pack(_read(name))), ConfusionNoise(0.01), EstimatedPrior(0.01))
    start = model.statistics(model.labels.vote_pass(), None)

    def run(accelerate: bool, tol: float) -> tuple[list[float], Any]:
        recorded = Recorded(model)
        return recorded.objectives, run_em(recorded, start, max_iter=MANY, tol=tol, accelerate=accelerate)

    plain, plain_end = run(False, 0.0)
    fast, fast_end = run(True, 0.0)
    best = max(fast)
    stopped = run(True, CLOSE)[1]
    return {
        "plain": _first_close(plain, plain_end.history[-1]),
        "fast": _first_close(fast, fast_end.history[-1]),
        "stop": stopped.n_iter,
        "gap": (best - stopped.history[-1]) / abs(best),
        "optimum": (best - max(plain)) / abs(best),
    }


def _first_close(objectives: list[float], optimum: float) -> int:
    return next(i + 1 for i, value in enumerate(objectives) if optimum - value < CLOSE * abs(optimum))


def _read(name: str) -> Annotations:
    with (Path(os.environ["MANYHANDS_DATA"]) / name / "annotations.csv").open() as file:
        rows = [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(file)]
    return Annotations.from_triples(*zip(*rows), duplicates="all")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
