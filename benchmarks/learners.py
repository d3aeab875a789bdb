"""Accuracy of every classifier and representation learner on real crowds with features.

    MANYHANDS_DATA=FOLDER python benchmarks/learners.py [labelme music] [--seeds 5]

Features are taken as they are or standardised with the training items, whichever gives a soft two-stage network the
higher held-out log-likelihood. Of the five settings of a method (learner_settings.py) the one with the highest held-out
log-likelihood in five folds of the training items is selected; it is then fitted with seeds 1000, 1001, ... and
evaluated on the test items for the first time. Each result is one line of JSON in benchmarks/results, from which an
interrupted run resumes. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from learner_settings import CANDIDATES, Candidate
from sklearn.linear_model import LogisticRegression

from manyhands import Annotations, compare, datasets, metrics
from manyhands.classifiers import TwoStage
from manyhands.exceptions import CrowdWarning

RESULTS = Path(__file__).parent / "results"
FIRST_SEED = 1000
_EPOCHS = (5, 10, 15, 20, 25, 30, 40, 50, 70, 100)  # at which a network trained on the truth is evaluated
Row = dict[str, Any]


@dataclass(frozen=True)
class Crowd:
    """A data set, and its results."""

    name: str
    features: str  # "as they are" or "standardised"
    X: Any
    votes: Annotations
    y: Any
    X_test: Any
    y_test: Any

    def remembered(self, title: str, what: str, run: Callable[[], Row]) -> Row:
        """The result of `run`, from the file if it is there."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"learners-{self.name}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            entry: Row = json.loads(line)
            if entry["title"] == title and entry["what"] == what:
                return entry
        outcome = {"title": title, "what": what} | run()
        with path.open("a") as file:
            file.write(json.dumps(outcome) + "\n")
        return outcome

    def tested(self, model: Any) -> Row:
        begun = time.perf_counter()
        predicted = model.predict(self.X_test)
        accuracy, balanced = metrics.accuracy(self.y_test, predicted), metrics.balanced_accuracy(self.y_test, predicted)
        return {"accuracy": float(accuracy), "balanced": float(balanced), "predict": time.perf_counter() - begun}


def main(names: list[str], n_seeds: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", CrowdWarning)
    for name in names:
        crowd = _load(name)
        print(f"\n{crowd.votes}, {len(crowd.y_test)} test items\n")
        rows = [_measure(crowd, title, candidate, n_seeds) for title, candidate in CANDIDATES.items()]
        _print_accuracy(rows, [_truth_linear(crowd), *_truth_network(crowd, n_seeds)])
        _print_choice(rows)
        _print_settings(rows)


def _load(name: str) -> Crowd:
    """The data with features of the form that gives a network the higher held-out log-likelihood."""
    data = datasets.load(name)
    mean, scale = data.X.mean(axis=0), data.X.std(axis=0) + 1e-9
    forms = {"as they are": (data.X, data.X_test), "standardised": [(x - mean) / scale for x in (data.X, data.X_test)]}
    crowds = [
        Crowd(name, form, X, data.annotations, data.y_true, X_test, data.y_test) for form, (X, X_test) in forms.items()
    ]
    network = CANDIDATES["soft D&S+DNN"]
    scores = [
        c.remembered("features", c.features, lambda c=c: _heldout_score(c, network, 0))["heldout"] for c in crowds
    ]
    print(f"\n## {name}\n\nFeatures: " + "; ".join(f"{form} {score:.4f}" for form, score in zip(forms, scores)))
    return crowds[int(np.argmax(scores))]


def _measure(crowd: Crowd, title: str, candidate: Candidate, n_seeds: int) -> Row:
    predicted = [
        crowd.remembered(title, candidate.text(c), lambda c=c: _heldout_score(crowd, candidate, c))["heldout"]
        for c in range(len(candidate.settings))
    ]
    choice = int(np.argmax(predicted))
    runs = [
        crowd.remembered(
            title, f"{candidate.text(choice)}, seed {seed}", lambda s=seed: _run(crowd, candidate, choice, s)
        )
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds)
    ]
    settings = {candidate.text(c): score for c, score in enumerate(predicted)}
    return _row(title, runs) | {"heldout": max(predicted), "chosen": candidate.text(choice), "settings": settings}


def _heldout_score(crowd: Crowd, candidate: Candidate, choice: int) -> Row:
    """Held-out log-likelihood of a setting."""
    result = compare.compare([candidate.make(choice, 0)], crowd.votes, crowd.X, random_state=0)
    return {"heldout": float(result.mean[0])}


def _run(crowd: Crowd, candidate: Candidate, choice: int, seed: int) -> Row:
    begun = time.perf_counter()
    model = candidate.make(choice, seed).fit(crowd.X, crowd.votes)
    return {"seconds": time.perf_counter() - begun} | crowd.tested(model)


def _truth_linear(crowd: Crowd) -> Row:
    """An upper bound: logistic regression on the ground truth of the training items."""
    runs = [
        crowd.remembered(
            f"truth+LR, C={C}", "truth", lambda C=C: _fit_truth(crowd, LogisticRegression(C=C, max_iter=1000))
        )
        for C in (1.0, 0.1, 0.01)
    ]
    return _row(
        "truth+LR (the best of C = 1, 0.1, 0.01 on the test items)", [max(runs, key=lambda run: run["accuracy"])]
    )


def _fit_truth(crowd: Crowd, model: Any) -> Row:
    begun = time.perf_counter()
    model.fit(crowd.X, crowd.y)
    return {"seconds": time.perf_counter() - begun} | crowd.tested(model)


def _truth_network(crowd: Crowd, n_seeds: int) -> list[Row]:
    """The same network on the truth, at the 50 epochs of all others, and at the epoch of the highest test accuracy."""
    items = np.arange(len(crowd.y))
    truth = Annotations.from_triples(items, np.zeros(len(items), int), crowd.y)
    runs = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        for epochs in _EPOCHS:
            model = TwoStage("majority-vote", max_epochs=epochs, patience=None, random_state=seed)
            title = f"truth+DNN, {epochs} epochs"
            runs.append(
                crowd.remembered(title, f"seed {seed}", lambda m=model: _on(crowd, truth, m)) | {"epochs": epochs}
            )
    by_seed = [runs[s : s + len(_EPOCHS)] for s in range(0, len(runs), len(_EPOCHS))]
    picked = [max(seed_runs, key=lambda run: run["accuracy"]) for seed_runs in by_seed]
    return [
        _row("truth+DNN, 50 epochs", [run for run in runs if run["epochs"] == 50]),
        _row("truth+DNN, the epoch picked on the test items", picked),
    ]


def _on(crowd: Crowd, truth: Annotations, model: Any) -> Row:
    begun = time.perf_counter()
    model.fit(crowd.X, truth)
    return {"seconds": time.perf_counter() - begun} | crowd.tested(model)


def _row(title: str, runs: list[Row]) -> Row:
    accuracy = [run["accuracy"] for run in runs]
    return {
        "title": title,
        "accuracy": float(np.mean(accuracy)),
        "deviation": float(np.std(accuracy, ddof=1)) if len(runs) > 1 else 0.0,
        "balanced": float(np.mean([run["balanced"] for run in runs])),
        "seconds": float(np.median([run["seconds"] for run in runs])),
    }


def _print_accuracy(rows: list[Row], ceilings: list[Row]) -> None:
    print("| method | chosen | test accuracy | balanced | held-out log-likelihood | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in sorted(ceilings, key=lambda row: -row["accuracy"]) + sorted(rows, key=lambda row: -row["accuracy"]):
        figures = f"{row['accuracy']:.3f} ± {row['deviation']:.3f} | {row['balanced']:.3f}"
        heldout = f"{row['heldout']:.3f}" if "heldout" in row else ""
        print(f"| {row['title']} | {row.get('chosen', '')} | {figures} | {heldout} | {row['seconds']:.1f} |")


def _print_choice(rows: list[Row]) -> None:
    """The selection by held-out annotations against the selection by ground truth."""
    chosen, best = max(rows, key=lambda row: row["heldout"]), max(rows, key=lambda row: row["accuracy"])
    order = [np.argsort(np.argsort([row[by] for row in rows])) for by in ("heldout", "accuracy")]
    print(f"\nHeld-out annotations choose {chosen['title']} ({chosen['accuracy']:.3f}); the best by truth is", end=" ")
    print(f"{best['title']} ({best['accuracy']:.3f}). Rank correlation: {np.corrcoef(*order)[0, 1]:.2f}.")


def _print_settings(rows: list[Row]) -> None:
    print("\nEvery setting tried, by the mean log-likelihood of held-out annotations:\n")
    for row in rows:
        print(f"- {row['title']}: " + "; ".join(f"{text} {score:.4f}" for text, score in row["settings"].items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["labelme", "music"])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    main(given.names, given.seeds)
