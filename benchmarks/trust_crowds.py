"""The real crowds of benchmarks/trust.py: all candidates fitted to each, limited to the items with truth."""

from __future__ import annotations

import csv
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import manyhands as mh
from manyhands.trust.selection import DEFAULT, fit_candidates, label_codes, strata_of, vote_counts


@dataclass(frozen=True)
class Fitted:
    """One crowd, limited to the items with truth: what every method says, and the truth."""

    name: str
    labels: dict[str, np.ndarray]
    posterior: np.ndarray
    power: float
    share: np.ndarray
    stratum: np.ndarray
    truth: np.ndarray
    vote: float

    @property
    def family(self) -> str:
        return (
            self.name.split("/")[-1].split("_")[0]
            if "zencrowd" in self.name
            else self.name.split("/")[0] + ("" if self.name.startswith(("snow", "panels")) else self.name)
        )


def read(name: str) -> tuple[mh.Annotations, np.ndarray]:
    """Annotations, and the class code of each item's truth, -1 where it is unknown."""
    if name.startswith(("pairs/", "functions/")):
        return read_verdicts(Path(os.environ["MANYHANDS_DATA"]) / name)
    if not name.startswith("panels/"):
        data = mh.datasets.load(name)
        code = {label: k for k, label in enumerate(data.annotations.classes.tolist())}
        known = zip(data.y_true.tolist(), data.has_truth.tolist())
        return data.annotations, np.array([code.get(label, -1) if has else -1 for label, has in known])
    path = Path(os.environ["MANYHANDS_DATA"]) / name / "annotations.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    classes = sorted({row["label"] for row in rows})
    machine = [(r["task"], r["worker"], r["label"]) for r in rows if r["kind"] == "machine"]
    votes = mh.Annotations.from_triples(*zip(*machine), classes=classes)
    people: dict[str, list[str]] = {}
    for row in rows:
        if row["kind"] == "human":
            people.setdefault(row["task"], []).append(row["label"])
    truth = np.full(votes.n_items, -1)
    for at, item in enumerate(votes.item_ids.tolist()):
        counts = sorted((people.get(item, []).count(k) for k in classes), reverse=True)
        if counts[0] > counts[1]:  # ties of the people are left out
            truth[at] = int(np.argmax([people[item].count(k) for k in classes]))
    return votes, truth


def read_verdicts(folder: Path) -> tuple[mh.Annotations, np.ndarray]:
    """Pairwise verdicts, where each order of presentation is a worker, and labelling functions (items of the test)."""
    tables = []
    for file in ("annotations.csv", "truth.csv"):
        with (folder / file).open(newline="", encoding="utf-8") as opened:
            tables.append(list(csv.DictReader(opened)))
    rows, known = tables
    truth = {row["task"]: row["label"] for row in known if row.get("split", "test") == "test"}
    workers = [f"{row['worker']}|{row.get('order', '')}" for row in rows]
    votes = mh.Annotations.from_triples([row["task"] for row in rows], workers, [row["label"] for row in rows])
    code = {label: k for k, label in enumerate(votes.classes.tolist())}
    return votes, np.array([code.get(truth.get(item), -1) for item in votes.item_ids.tolist()])


def load(name: str, cache: Path | None) -> Fitted:
    """Fit all candidates, or read what an earlier run kept."""
    path = None if cache is None else cache / f"{name.replace('/', '-')}.npz"
    if path is not None and path.exists():
        with np.load(path) as kept:
            found = dict(kept)
    else:
        found = fit(name)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, **found)
    return fitted(name, found)


def fitted(name: str, found: dict[str, np.ndarray]) -> Fitted:
    """One crowd from what `fit` returns."""
    labels = {key.removeprefix("label "): value for key, value in found.items() if key.startswith("label ")}
    rest = {key: found[key] for key in ("posterior", "share", "stratum", "truth")}
    return Fitted(name, labels, power=float(found["power"]), vote=float(found["vote"]), **rest)


def fit(name: str) -> dict[str, np.ndarray]:
    return fit_crowd(*read(name))


def fit_crowd(votes: mh.Annotations, truth: np.ndarray) -> dict[str, np.ndarray]:
    """All candidates fitted to one crowd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = fit_candidates(votes)
    counts = vote_counts(votes)
    labels = {key: label_codes(model) for key, model in models.items()}
    rows = np.flatnonzero((truth >= 0) & (votes.n_labels > 0))
    tied = (counts == counts.max(axis=1, keepdims=True))[rows]
    found = {f"label {key}": code[rows] for key, code in labels.items()}
    return found | {
        "posterior": models[DEFAULT].posterior_[rows],
        "power": np.array(getattr(models[DEFAULT], "crowd_power_", 1.0)),
        "share": (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[rows],
        "stratum": strata_of(votes, models)[rows],
        "truth": truth[rows],
        "vote": np.array((tied[np.arange(len(rows)), truth[rows]] / tied.sum(axis=1)).mean()),
    }
