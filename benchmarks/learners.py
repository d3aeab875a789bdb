"""Accuracy of every classifier and representation learner on real crowds with features.

    MANYHANDS_DATA=FOLDER python benchmarks/learners.py [labelme music] [--seeds 5]

Every method has one configuration, its defaults, fixed before any test label was looked at; features are standardised
with the training items. Test accuracy is the mean over seeds 1000, 1001, ...; `foretells` is the five-fold likelihood of
held-out annotations (seed 0), which needs no truth: the choice that a user could make. Each fit is one line of JSON in
benchmarks/results, so that a killed run goes on. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from manyhands import Annotations, TwoStage, datasets, metrics, model_selection, registry
from manyhands.exceptions import CrowdWarning

RESULTS = Path(__file__).parent / "results"
FIRST_SEED = 1000
_PLAIN = {"classifier": "logistic-regression"}
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {  # what papers call a method of their own -> two-stage
    "MV+LR": ("two-stage", {"aggregator": "majority-vote"} | _PLAIN),
    "SoftProb (soft vote+LR)": ("two-stage", {"aggregator": "majority-vote", "soft": True} | _PLAIN),
    "EM+LR (one-coin)": ("two-stage", {"aggregator": "one-coin"} | _PLAIN),
    "GLAD+LR": ("two-stage", {"aggregator": "glad"} | _PLAIN),
    "D&S+LR": ("two-stage", {"aggregator": "dawid-skene"} | _PLAIN),
    "MV+network": ("two-stage", {"aggregator": "majority-vote"}),
    "D&S soft+network": ("two-stage", {"aggregator": "dawid-skene", "soft": True}),
    "default aggregator soft+network": ("two-stage", {"soft": True}),
}


def main(names: list[str], n_seeds: int) -> None:
    for name in names:
        data = datasets.load(name)
        mean, scale = data.X.mean(axis=0), data.X.std(axis=0) + 1e-9
        X, X_test = ((x - mean) / scale for x in (data.X, data.X_test))
        print(f"\n## {name}: {data.annotations}, {len(X_test)} test items\n")
        print("| method | test accuracy | balanced | foretells | seconds |\n| --- | --- | --- | --- | --- |")
        rows = [_row(name, title, X, data.annotations, X_test, data.y_test, n_seeds) for title in _titles()]
        rows.append(_on_truth(X, data.y_true, X_test, data.y_test))
        for row in sorted(rows, key=lambda row: -row["accuracy"]):
            foretells = "" if row["foretells"] is None else f"{row['foretells']:.3f}"
            figures = f"{row['accuracy']:.3f} ± {row['deviation']:.3f} | {row['balanced']:.3f} | {foretells}"
            print(f"| {row['title']} | {figures} | {row['seconds']:.1f} |", flush=True)
        _print_choice([row for row in rows if row["foretells"] is not None])


def _titles() -> list[str]:
    learners = [name for name in registry.names("classifier") if name != "two-stage"]
    return [*RECIPES, *learners, *(f"{name} + LR" for name in registry.names("representation"))]


def _make(title: str, seed: int) -> Any:
    if title in RECIPES:
        method, parameters = RECIPES[title]
        return registry.create(method, random_state=seed, **parameters)
    if title.endswith(" + LR"):
        from sklearn.pipeline import make_pipeline

        learner = registry.create(title.removesuffix(" + LR"), random_state=seed)
        return make_pipeline(learner, TwoStage("majority-vote", "logistic-regression", random_state=seed))
    model = registry.create(title)
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def _row(
    name: str, title: str, X: Any, votes: Annotations, X_test: Any, y_test: Any, n_seeds: int
) -> dict[str, Any]:
    runs = [_remembered(name, title, f"seed {FIRST_SEED + s}", lambda s=s: _run(title, FIRST_SEED + s, X, votes, X_test, y_test)) for s in range(n_seeds)]
    chosen = _remembered(name, title, "foretells", lambda: _foretells(title, X, votes))
    accuracy = [run["accuracy"] for run in runs]
    return {
        "title": title,
        "accuracy": float(np.mean(accuracy)),
        "deviation": float(np.std(accuracy, ddof=1)) if n_seeds > 1 else 0.0,
        "balanced": float(np.mean([run["balanced"] for run in runs])),
        "seconds": float(np.median([run["seconds"] for run in runs])),
        "foretells": chosen["foretells"],
    }


def _run(title: str, seed: int, X: Any, votes: Annotations, X_test: Any, y_test: Any) -> dict[str, float]:
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        said = _make(title, seed).fit(X, votes).predict(X_test)
    seconds = time.perf_counter() - begun
    figures = {"accuracy": metrics.accuracy(y_test, said), "balanced": metrics.balanced_accuracy(y_test, said)}
    return {name: float(value) for name, value in figures.items()} | {"seconds": seconds}


def _foretells(title: str, X: Any, votes: Annotations) -> dict[str, float | None]:
    """What held-out annotations say of a method; a pipeline has no score of that kind."""
    if title.endswith(" + LR"):
        return {"foretells": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        result = model_selection.compare([_make(title, 0)], X, votes, random_state=0)
    return {"foretells": float(result.table[0].mean) if hasattr(result, "table") else float(result.means[0])}


def _on_truth(X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """The ceiling: logistic regression on the truth of the training items."""
    from sklearn.linear_model import LogisticRegression

    said = LogisticRegression(max_iter=1000).fit(X, y).predict(X_test)
    figures = {"accuracy": metrics.accuracy(y_test, said), "balanced": metrics.balanced_accuracy(y_test, said)}
    return {"title": "truth + LR", "deviation": 0.0, "seconds": 0.0, "foretells": None} | figures


def _print_choice(rows: list[dict[str, Any]]) -> None:
    """How close the choice by held-out annotations comes to the one that truth would make."""
    chosen = max(rows, key=lambda row: row["foretells"])
    best = max(rows, key=lambda row: row["accuracy"])
    print(f"\nHeld-out annotations choose {chosen['title']} ({chosen['accuracy']:.3f}); ", end="")
    print(f"the best by truth is {best['title']} ({best['accuracy']:.3f}).", flush=True)


def _remembered(name: str, title: str, what: str, run: Any) -> dict[str, Any]:
    """The outcome of a fit, from the file if it was made before."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"learners-{name}.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        entry: dict[str, Any] = json.loads(line)
        if entry["title"] == title and entry["what"] == what:
            return entry
    outcome: dict[str, Any] = {"title": title, "what": what} | run()
    with path.open("a") as file:
        file.write(json.dumps(outcome) + "\n")
    return outcome


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["labelme", "music"])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    main(given.names, given.seeds)
