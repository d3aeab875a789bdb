"""Alerts of the scorecards on simulated crowds with planted bad workers: who is called, who is accused wrongly.

    python benchmarks/alerts.py measure [--seed FIRST] [--crowds N]    writes docs/results/alerts.json
    python benchmarks/alerts.py render                                 writes the table into docs/scorecards.md

A crowd has 20 to 60 workers, three or five labels per item and 10 to 30 % of bad workers, all drawn at random; the
accuracy of honest workers is normal with mean .8 or .65 and standard deviation .1. The rule was developed on seeds
below 1000. "Called" and "accused" mean any alert of `scorecards.ACCUSATIONS`. Honest workers more than two standard
deviations below the mean are left out. The oracle knows the truth: it calls all workers whose share of right labels is
below the threshold that accuses 1 % of the honest workers of the same cell. The informed reference does not know the
truth, but the accuracy of all other workers: what is known of an item without the worker's label is exact. It calls by
the most probable accuracy in the same way.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands import registry
from manyhands.scorecards import ACCUSATIONS, score_workers
from manyhands.simulate import make_crowd

DOCS = Path(__file__).resolve().parents[1] / "docs"
VALUES, PAGE = DOCS / "results" / "alerts.json", DOCS / "scorecards.md"
BEGIN, END = "<!-- alerts: measured by benchmarks/alerts.py -->\n", "<!-- alerts: end -->\n"

BEHAVIOURS = ("none", "random", "careless", "constant", "inverted", "sleeper", "copycat")
OWN_FLAG = {"random": "random", "careless": "weak", "constant": "one-class", "inverted": "inverted"}
OWN_FLAG |= {"sleeper": "weak", "copycat": "copying"}
N_CLASSES, N_LABELS, MEANS = (2, 4), (50, 80, 200), (0.8, 0.65)
SPREAD = 0.1
CARELESS_SKILL = 0.2  # accuracy .6 with two classes and .4 with four
LEVEL = 0.01  # share of the honest workers whom the oracle accuses


def draw(behaviour: str, n_classes: int, n_labels: int, mean: float, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Draw one crowd; returns it with the true accuracy of each worker and the mask of bad ones."""
    cell = [seed, n_classes, n_labels, round(100 * mean), BEHAVIOURS.index(behaviour)]
    rng = np.random.default_rng(cell)
    n_workers, labels_per_item = int(rng.integers(20, 61)), int(rng.choice([3, 5]))
    n_bad = round(rng.uniform(0.1, 0.3) * n_workers)
    accuracy = np.clip(rng.normal(mean, SPREAD, n_workers), 0.02, 0.99)
    crowd_seed = int(rng.integers(2**31))
    shape = (round(n_workers * n_labels / labels_per_item), n_workers, n_classes, labels_per_item)
    if behaviour in ("none", "careless"):
        is_bad = np.zeros(n_workers, bool)
        is_bad[rng.permutation(n_workers)[: n_bad if behaviour == "careless" else 0]] = True
        accuracy[is_bad] = (1 + (n_classes - 1) * CARELESS_SKILL) / n_classes
        crowd = make_crowd(*shape, accuracy=accuracy, random_state=crowd_seed)
    else:
        share = n_bad / n_workers
        crowd = make_crowd(*shape, accuracy=accuracy, bad=behaviour, bad_share=share, random_state=crowd_seed)
        is_bad = crowd.is_bad.copy()
    assert crowd.confusion is not None
    shares = np.bincount(crowd.truth, minlength=n_classes) / len(crowd.truth)
    true_accuracy = np.einsum("wkk,k->w", crowd.confusion, shares)
    if behaviour == "copycat":
        is_bad[np.argmin(is_bad)] = True  # the worker whom they copy: who copies whom cannot be seen
    return crowd, true_accuracy, is_bad


def measure_cell(behaviour: str, n_classes: int, n_labels: int, mean: float, seeds: range) -> dict[str, Any]:
    """Counts of one cell over all its crowds."""
    rows = []
    for seed in seeds:
        crowd, accuracy, is_bad = draw(behaviour, n_classes, n_labels, mean, seed)
        votes = crowd.annotations
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
            model = registry.create("pooled-dawid-skene").fit(votes)
        cards = score_workers(
            votes,
            model.posterior_,
            confusion=model.confusion_,
            tempering_exponent=model.tempering_exponent_,
            collusion_group=model.collusion_group_,
        )
        n_given = np.maximum(np.bincount(votes.worker, minlength=votes.n_workers), 1)
        n_right = np.bincount(votes.worker, crowd.truth[votes.item] == votes.label, votes.n_workers)
        called = [bool(set(alerts) & set(ACCUSATIONS)) for alerts in cards.alerts]
        own = cards.flagged(OWN_FLAG.get(behaviour, "random"))
        unknown = cards.flagged("undecided") | cards.flagged("too-few-labels")
        covered = (cards.accuracy_low <= accuracy) & (accuracy <= cards.accuracy_high)
        honest = ~is_bad & (accuracy >= mean - 2 * SPREAD)
        many = np.full(votes.n_workers, votes.n_annotations > 4 * votes.n_items)  # five labels per item
        informed = _informed_accuracy(votes, accuracy)
        columns = [is_bad, honest, called, own, unknown, covered, n_right / n_given, informed, many]
        rows.append(np.stack(columns, axis=1))
    table = np.concatenate(rows)
    bad, honest = table[table[:, 0] == 1], table[table[:, 1] == 1]
    by_density = {}
    for name, many in (("three", 0), ("five", 1)):
        b, h = bad[bad[:, 8] == many], honest[honest[:, 8] == many]
        by_density[name] = {
            "n_bad": len(b),
            "n_honest": len(h),
            "called": int(b[:, 2].sum()),
            "called_by_oracle": _n_below(b[:, 6], h[:, 6]),
            "called_by_informed": _n_below(b[:, 7], h[:, 7]),
            "accused": int(h[:, 2].sum()),
        }
    return {
        "behaviour": behaviour,
        "n_classes": n_classes,
        "n_labels": n_labels,
        "mean": mean,
        "n_crowds": len(seeds),
        "n_bad": len(bad),
        "n_honest": len(honest),
        "called": int(bad[:, 2].sum()),
        "called_own_flag": int(bad[:, 3].sum()),
        "called_by_oracle": _n_below(bad[:, 6], honest[:, 6]),
        "called_by_informed": _n_below(bad[:, 7], honest[:, 7]),
        "unknown": int(bad[:, 4].sum()),
        "accused": int(honest[:, 2].sum()),
        "covered": int(honest[:, 5].sum()),
        "by_labels_per_item": by_density,
    }


def _n_below(bad: np.ndarray, honest: np.ndarray) -> int:
    """How many bad workers are below the value that `LEVEL` of the honest ones are below."""
    return int((bad < np.sort(honest)[int(LEVEL * len(honest))]).sum()) if len(honest) else 0


def _informed_accuracy(votes: mh.Annotations, accuracy: np.ndarray) -> np.ndarray:
    """Most probable accuracy of each worker, where the accuracy of all others is known."""
    n_classes, known = votes.n_classes, np.clip(accuracy, 0.02, 0.98)
    weight = np.log(known * (n_classes - 1) / (1 - known))[votes.worker]
    cell = votes.item * np.int64(n_classes) + votes.label
    score = np.bincount(cell, weight, votes.n_items * n_classes).reshape(-1, n_classes)[votes.item]
    score[np.arange(len(score)), votes.label] -= weight
    score = np.exp(score - score.max(axis=1, keepdims=True))
    p_right = score[np.arange(len(score)), votes.label] / score.sum(axis=1)
    grid = np.linspace(0.02, 0.99, 98)
    fit = [
        np.bincount(votes.worker, np.log(a * p_right + (1 - a) * (1 - p_right) / (n_classes - 1)), votes.n_workers)
        for a in grid
    ]
    return grid[np.argmax(fit, axis=0)]


def cells() -> Iterator[tuple[str, int, int, float]]:
    """All combinations, in the order of the table."""
    for mean in MEANS:
        for behaviour in BEHAVIOURS:
            for n_classes in N_CLASSES:
                for n_labels in N_LABELS:
                    yield behaviour, n_classes, n_labels, mean


def measure(first_seed: int, n_crowds: int) -> None:
    """Measure every cell and write the values."""
    values = []
    for cell in cells():
        values.append(measure_cell(*cell, range(first_seed, first_seed + n_crowds)))
        print(values[-1], flush=True)
    found = {"seeds": [first_seed, first_seed + n_crowds - 1], "cells": values}
    VALUES.write_text(json.dumps(found, indent=1) + "\n")


def render(values: dict[str, Any]) -> str:
    """The tables in Markdown."""
    by_cell = {(c["behaviour"], c["n_classes"], c["n_labels"], c["mean"]): c for c in values["cells"]}
    first, last = values["seeds"]
    lines = [f"Seeds {first} to {last}, {values['cells'][0]['n_crowds']} crowds in each cell.", ""]
    for mean in MEANS:
        lines += [f"Honest workers {mean:g} ± {SPREAD:g}:", ""]
        header = ["bad workers", "classes", *(f"{n} labels" for n in N_LABELS)]
        lines += [_row(header), _row(["---"] * len(header))]
        for behaviour in BEHAVIOURS:
            for n_classes in N_CLASSES:
                entries = [_entry(by_cell[behaviour, n_classes, n, mean]) for n in N_LABELS]
                lines.append(_row([behaviour, n_classes, *entries]))
        lines.append("")
    lines += [_by_density(by_cell), "", _coverage(values["cells"]), ""]
    return "\n".join(lines)


def _by_density(by_cell: dict[Any, dict[str, Any]]) -> str:
    """Random workers of the .8 crowd by labels per item, beside both references."""
    header = ["random workers, 0.8", *(f"{n} labels per item" for n in ("three", "five"))]
    lines = [_row(header), _row(["---"] * len(header))]
    for n_classes in N_CLASSES:
        for n_labels in N_LABELS:
            parts = by_cell["random", n_classes, n_labels, 0.8]["by_labels_per_item"]
            entries = []
            for part in (parts["three"], parts["five"]):
                share = [
                    round(100 * part[f"called{name}"] / part["n_bad"]) for name in ("", "_by_informed", "_by_oracle")
                ]
                wrong = 100 * part["accused"] / part["n_honest"]
                entries.append(f"{share[0]} (informed {share[1]}; oracle {share[2]}) / {wrong:.1f}")
            lines.append(_row([f"{n_classes} classes, {n_labels} labels", *entries]))
    return "\n".join(lines)


def _entry(cell: dict[str, Any]) -> str:
    """Called, with their own alert, by the oracle; accused; in per cent."""
    wrong = f"{100 * cell['accused'] / cell['n_honest']:.1f}"
    if not cell["n_bad"]:
        return f"- / {wrong}"
    share = [round(100 * cell[name] / cell["n_bad"]) for name in ("called", "called_own_flag", "called_by_oracle")]
    return f"{share[0]} ({share[1]}; oracle {share[2]}) / {wrong}"


def _coverage(values: list[dict[str, Any]]) -> str:
    """Coverage of the intervals of honest workers, without the crowds of copycats."""
    parts = []
    for mean in MEANS:
        for n_classes in N_CLASSES:
            chosen = [
                c for c in values if (c["mean"], c["n_classes"]) == (mean, n_classes) and c["behaviour"] != "copycat"
            ]
            share = [c["covered"] / c["n_honest"] for c in chosen]
            total = sum(c["covered"] for c in chosen) / sum(c["n_honest"] for c in chosen)
            parts.append(
                f"{100 * total:.1f} % with {n_classes} classes and mean {mean:g} (cells {100 * min(share):.0f} to "
                f"{100 * max(share):.0f} %)"
            )
    return "The 95% intervals contain the true accuracy of honest workers in " + ", ".join(parts) + "."


def _row(cells: list[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def page_with(text: str, page: str) -> str:
    """The page with the part between its two marks replaced."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["measure", "render"])
    parser.add_argument("--seed", type=int, default=80_000)
    parser.add_argument("--crowds", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.task == "measure":
        measure(arguments.seed, arguments.crowds)
    else:
        PAGE.write_text(page_with(render(json.loads(VALUES.read_text())), PAGE.read_text()))
