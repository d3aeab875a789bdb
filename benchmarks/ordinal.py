"""Mean absolute error on real crowds with ordered classes.

    MANYHANDS_DATA=FOLDER python benchmarks/ordinal.py

Prints Markdown. Cells are mean absolute errors, in steps of the scale, on the items with truth. The crowd of a panel is
its six language models, and the truth of an item is the majority of the people who labelled it; items on which people
are tied are left out.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands.em.decisions import median_grades
from manyhands.em.kernels import vote_share

SETS = ("agg/web", "agg/s_rel", "agg/s_rel, grades 0 to 2", "panels/cebab_stars", "panels/10k_prompts")
RULES = ("mode", "median", "mean")


def main() -> None:
    """Print one row per data set, and a table of the held-out log-likelihood."""
    names = ("nominal", "ordinal", "ordinal, supported")
    columns = ["mean of labels", "vote", *(f"{name} {rule}" for name in names for rule in RULES)]
    _row("data", "items with truth", *columns, *(f"accuracy, {name}" for name in names))
    _row(*["---"] * (len(columns) + 5))
    heldout = []
    for name in SETS:
        votes, truth = _read(name)
        known = np.flatnonzero([item in truth for item in votes.item_ids.tolist()])
        right = np.array([votes.classes.tolist().index(truth[item]) for item in votes.item_ids[known].tolist()])
        models = [_fit("pooled-dawid-skene", votes), _fit("ordinal-dawid-skene", votes)]
        models.append(_fit("ordinal-dawid-skene", votes, overrule="supported"))
        errors = [_mean_of_labels(votes, known, right), _vote(votes, known, right)]
        for model in models:
            errors += _errors(model.posterior_[known], model, known, right)
        accuracy = [float(np.mean(model.labels_[known] == votes.classes[right])) for model in models]
        _row(name, len(known), *(f"{error:.4f}" for error in errors), *(f"{100 * value:.1f}" for value in accuracy))
        heldout.append((name, _heldout(votes)))
    print()
    _row("data", "nominal", "ordinal", "difference", "its standard error")
    _row(*["---"] * 5)
    for name, scores in heldout:
        _row(name, *scores)


def _errors(posterior: Any, model: Any, known: Any, right: Any) -> list[float]:
    """Mean absolute error of mode, median and rounded expected value, in codes, which are ranks here."""
    codes = {value: code for code, value in enumerate(model.classes_.tolist())}
    mode = np.array([codes[label] for label in model.labels_[known].tolist()])
    ranks = np.arange(posterior.shape[1])
    median = median_grades(posterior, ranks)
    mean = np.floor(posterior @ ranks + 0.5)
    return [float(np.abs(decision - right).mean()) for decision in (mode, median, mean)]


def _mean_of_labels(votes: mh.Annotations, known: Any, right: Any) -> float:
    """Mean absolute error of the rounded mean of an item's labels."""
    total = np.bincount(votes.item, weights=votes.label, minlength=votes.n_items)
    mean = total[known] / np.maximum(votes.n_labels[known], 1)
    return float(np.abs(np.floor(mean + 0.5) - right).mean())


def _vote(votes: mh.Annotations, known: Any, right: Any) -> float:
    """Mean absolute error of the majority vote, averaged over ties."""
    share = vote_share(votes)[known]
    best = share >= share.max(axis=1, keepdims=True) - 1e-9
    distance = np.abs(np.arange(votes.n_classes) - right[:, None])
    return float(((best * distance).sum(axis=1) / best.sum(axis=1)).mean())


def _heldout(votes: mh.Annotations) -> list[str]:
    """Cross-validated log-likelihood of held-out labels of both methods, by the same recipe, and their difference."""
    table = mh.compare(["pooled-dawid-skene", "ordinal-dawid-skene"], votes, random_state=0).table()
    by_name = {row["method"]: row for row in table}
    scores = [by_name[name]["heldout_log_likelihood"] for name in ("pooled-dawid-skene", "ordinal-dawid-skene")]
    error = max(row["difference_standard_error"] or 0.0 for row in table)
    return [f"{scores[0]:.4f}", f"{scores[1]:.4f}", f"{scores[1] - scores[0]:+.4f}", f"{error:.4f}"]


def _read(name: str) -> tuple[mh.Annotations, dict[Any, Any]]:
    """Read a crowd and the truth of its items; the last row counts where a worker repeats an item."""
    folder = Path(os.environ["MANYHANDS_DATA"]) / name.partition(",")[0]
    rows = list(csv.DictReader((folder / "annotations.csv").open(encoding="utf-8")))
    if name.startswith("panels/"):
        people = defaultdict(list)
        for row in rows:
            if row["kind"] == "human":
                people[row["task"]].append(int(row["label"]))
        top = {task: Counter(labels).most_common(2) for task, labels in people.items()}
        truth = {task: c[0][0] for task, c in top.items() if len(c) == 1 or c[0][1] > c[1][1]}
        rows = [row for row in rows if row["kind"] == "machine"]
    else:
        with (folder / "truth.csv").open(encoding="utf-8") as lines:
            truth = {row["task"]: int(row["label"]) for row in csv.DictReader(lines)}
    last = {(row["task"], row["worker"]): int(row["label"]) for row in rows}
    if "grades 0 to 2" in name:
        last = {pair: label for pair, label in last.items() if label <= 2}
        truth = {task: label for task, label in truth.items() if label <= 2}
    items, workers = zip(*last)
    votes = mh.Annotations.from_triples(items, workers, list(last.values()))
    seen = set(items)
    return votes, {task: label for task, label in truth.items() if task in seen}


def _fit(method: str, votes: mh.Annotations, **parameters: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mh.registry.create(method, **parameters).fit(votes)


def _row(*cells: Any) -> None:
    print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
