"""People and language models in one crowd: is the mixture at least as good as the better of the two?

    MANYHANDS_DATA=FOLDER python benchmarks/mixed_panels.py

Prints the table of docs/results/panels.md. One person after the other is left out; the labels of that person are
compared with the labels that a method infers from the other people, from the models, and from both; at last from both
with the models down-weighted to the votes that they are worth (`mh.trust.down_weight_families`). All are compared on
the same items: those that another person labelled too.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands import registry
from manyhands.io import read_export
from manyhands.trust.machines import MACHINE

SETS = ("cebab_stars", "10k_prompts", "framing", "lgbteen", "wax")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "vote": ("majority-vote", {}),
    "default": ("pooled-dawid-skene", {}),
    'default, overrule="always"': ("pooled-dawid-skene", {"overrule": "always"}),
}
CROWDS = ("people", "models", "both", "both, weighted")


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("\n".join(mixture_table()))


def mixture_table() -> list[str]:
    """Return one row per set: agreement with the person left out, of people, models and both, by two methods."""
    head = ["data", "labels compared", "method", *CROWDS, "weighted minus the better of people and models (points)"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name in SETS:
        annotations, is_machine = read(name)
        for method in METHODS:
            hits = leave_one_out(annotations, is_machine, lambda votes, m=method: fit(votes, *METHODS[m]))
            share = {crowd: float(np.mean(hits[crowd])) for crowd in CROWDS}
            gain = share[CROWDS[-1]] - max(share["people"], share["models"])
            shown = " | ".join(f"{share[crowd]:.3f}" for crowd in CROWDS)
            lines.append(f"| {name} | {len(hits['both'])} | {method} | {shown} | {100 * gain:+.1f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def leave_one_out(
    annotations: Any, is_machine: np.ndarray, infer: Callable[[Any], np.ndarray]
) -> dict[str, list[float]]:
    """Return whether each label of each person equals the label inferred without that person, for each crowd.

    Tied classes count as the share of them that is right.
    """
    hits: dict[str, list[float]] = {crowd: [] for crowd in CROWDS}
    machine = is_machine[annotations.worker]
    from_models = infer(annotations.keep(machine))
    for person in np.flatnonzero(~is_machine):
        own = annotations.worker == person
        if not own.any():
            continue
        others = annotations.keep(~own & ~machine)
        both = annotations.keep(~own)
        names = annotations.worker_ids
        families = {"humans": names[~is_machine].tolist(), "machines": names[is_machine].tolist()}
        weighted = mh.trust.down_weight_families(both, families)
        inferred = {"people": infer(others), "models": from_models, "both": infer(both), CROWDS[-1]: infer(weighted)}
        for at in np.flatnonzero(own):
            item, label = annotations.item[at], annotations.label[at]
            if others.n_labels[item] and np.any(annotations.item[machine] == item):
                for crowd, shares in inferred.items():
                    hits[crowd].append(float(shares[item, label]))
    return hits


def fit(votes: Any, method: str, parameters: dict[str, Any]) -> np.ndarray:
    """Return the classes with the largest posterior, (n_items, n_classes), tied ones with equal shares."""
    model = registry.create(method, **parameters).fit(votes, verbose=0)
    top = model.posterior_ >= model.posterior_.max(axis=1, keepdims=True) - 1e-9
    return np.asarray(top / top.sum(axis=1, keepdims=True))


def read(name: str) -> tuple[Any, np.ndarray]:
    """Return the labels of one set, and which workers are models."""
    reading = read_export(Path(os.environ["MANYHANDS_DATA"]) / "panels" / name / "annotations.csv", verbose=0)
    kinds = {worker: known.kind for worker, known in reading.kinds.items()}
    annotations: mh.Annotations = reading.annotations
    return annotations, np.array([kinds.get(str(w)) == MACHINE for w in annotations.worker_ids.tolist()])


if __name__ == "__main__":
    main()
