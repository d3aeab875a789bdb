"""Other packages beside manyhands on the same labels: accuracy, calibration, seconds; docs/results/peers.json.

    MANYHANDS_DATA=FOLDER python benchmarks/peers.py [SET ...]    measures, in the environment of `make bench`
    python benchmarks/peers.py --page                             writes the tables of its pages alone

Every package has its defaults, and gets the labels of a data set as it wants them: a frame of task, worker and label, a
matrix, or a dictionary. Time is that of the call with this conversion, without imports. A method runs in a process of
its own, for at most `LIMIT` seconds on a set. A package that is not installed is a row without figures.

Methods with features (CROWDLAB, AnnotatorLogisticRegression, Raykar) get the same features, with mean 0 and standard
deviation 1; CROWDLAB's class probabilities are those of scikit-learn's logistic regression on the majority vote by
five-fold cross-validation, as in its tutorial. No method sees any truth.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd

import manyhands as mh

sys.path.insert(0, str(Path(__file__).parent))
import accuracy

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "docs" / "results" / "peers.json"
PAGE = ROOT / "docs" / "comparison.md"
LIMIT = 60.0  # seconds of a cell; what needs longer has no figure
LIMITS = {"cleanlab: CROWDLAB, with features": 150.0}  # it includes the cross-validation of its classifier
FEATURES = (
    "snow2008/rte",
    "labelme",
    "music",
    "leaves",
    "weather_text",
    "cifar10s",
    "reports_mozilla",
)  # sets with features of the items
BINS = 10
SETS = list(accuracy.REAL)


class Crowd:
    """The labels of a data set in the forms that the packages want; `X` are features or None."""

    def __init__(self, name: str) -> None:
        data = mh.datasets.load(name)
        self.votes, items = data.annotations, data.annotations.item_ids.tolist()
        self.known = np.flatnonzero([item in data.truth for item in items])
        classes = self.votes.classes.tolist()
        self.truth = np.array([classes.index(data.truth[items[i]]) for i in self.known])
        self.X = _standardised(data.X) if name in FEATURES else None

    def frame(self) -> pd.DataFrame:
        """Columns task, worker and label, as codes."""
        votes = self.votes
        return pd.DataFrame({"task": votes.item, "worker": votes.worker, "label": votes.label})

    def matrix(self, missing: float) -> np.ndarray:
        """Items x workers."""
        matrix = np.full((self.votes.n_items, self.votes.n_workers), missing)
        matrix[self.votes.item, self.votes.worker] = self.votes.label
        return matrix


def _standardised(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1."""
    rows = np.asarray(X, float).reshape(len(X), -1)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


# Each method returns class probabilities, (n_items, n_classes).


def pandas_vote(crowd: Crowd) -> np.ndarray:
    counts = crowd.frame().groupby(["task", "label"]).size().unstack(fill_value=0)
    counts = counts.reindex(index=range(crowd.votes.n_items), columns=range(crowd.votes.n_classes), fill_value=0)
    return _shares(counts.to_numpy(float))


def ours(method: str) -> Callable[[Crowd], np.ndarray]:
    def run(crowd: Crowd) -> np.ndarray:
        frame = crowd.frame()
        classes = list(range(crowd.votes.n_classes))
        votes = mh.Annotations.from_triples(frame.task, frame.worker, frame.label, classes=classes)
        return _by_item(votes.item_ids.tolist(), mh.registry.create(method).fit(votes).posterior_, crowd)

    return run


def our_raykar(crowd: Crowd) -> np.ndarray:
    return mh.registry.create("raykar").fit(crowd.X, crowd.votes).posterior_


def crowd_kit(name: str) -> Callable[[Crowd], np.ndarray]:
    def run(crowd: Crowd) -> np.ndarray:
        import crowdkit.aggregation as package

        frame = crowd.frame()
        if name == "MajorityVote":
            proba = package.MajorityVote().fit_predict_proba(frame)
        elif name == "Wawa":  # its predict_proba, the vote with these weights, fails with scikit-learn 1.9
            proba = package.MajorityVote().fit_predict_proba(frame, package.Wawa().fit(frame).skills_)
        else:
            proba = getattr(package, name)().fit(frame).probas_
        proba = proba.reindex(columns=range(crowd.votes.n_classes), fill_value=0.0).fillna(0.0)
        return _by_item(proba.index.tolist(), proba.to_numpy(float), crowd)

    return run


def crowdlab(crowd: Crowd) -> np.ndarray:
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    assert crowd.X is not None
    frame = pd.DataFrame(crowd.matrix(np.nan))
    vote = get_majority_vote_label(frame)
    classes, codes = np.unique(vote, return_inverse=True)
    proba = np.zeros((len(vote), crowd.votes.n_classes))
    model = LogisticRegression(max_iter=1000)
    proba[:, classes] = cross_val_predict(model, crowd.X, codes, cv=5, method="predict_proba")
    found = get_label_quality_multiannotator(frame, np.clip(proba, 1e-6, 1.0), verbose=False)["label_quality"]
    consensus, quality = found["consensus_label"].to_numpy(int), found["consensus_quality_score"].to_numpy(float)
    rest = (1 - quality) / max(crowd.votes.n_classes - 1, 1)  # CROWDLAB scores the consensus only
    posterior = np.repeat(rest[:, None], crowd.votes.n_classes, axis=1)
    posterior[np.arange(len(quality)), consensus] = quality
    lower = posterior.argmax(axis=1) != consensus  # the consensus is the label, however low its score is
    posterior[lower] = 0.0
    posterior[lower, consensus[lower]] = quality[lower]
    return posterior


def active_vote(crowd: Crowd) -> np.ndarray:
    from skactiveml.utils import compute_vote_vectors

    return _shares(compute_vote_vectors(crowd.matrix(np.nan), classes=np.arange(crowd.votes.n_classes)))


def active_regression(crowd: Crowd) -> np.ndarray:
    from skactiveml.classifier.multiannotator import AnnotatorLogisticRegression

    model = AnnotatorLogisticRegression(classes=np.arange(crowd.votes.n_classes), random_state=0)
    return model.fit(crowd.X, crowd.matrix(np.nan)).predict_proba(crowd.X)


def snorkel_model(crowd: Crowd) -> np.ndarray:
    from snorkel.labeling.model import LabelModel

    model = LabelModel(cardinality=crowd.votes.n_classes, verbose=False)
    model.fit(crowd.matrix(-1).astype(int), seed=0, progress_bar=False)
    return model.predict_proba(crowd.matrix(-1).astype(int))


def _peerannot_models() -> Any:
    """Its models; torchvision, which only its networks use, is replaced where it does not fit the installed torch."""
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for name in ("torchvision", "torchvision.transforms", "torchvision.models", "torchvision.datasets"):
            sys.modules[name] = MagicMock()
    return importlib.import_module("peerannot.models")


def peerannot(name: str) -> Callable[[Crowd], np.ndarray]:
    def run(crowd: Crowd) -> np.ndarray:
        package = _peerannot_models()
        answers: dict[int, dict[int, int]] = {}
        for item, worker, label in zip(
            crowd.votes.item.tolist(), crowd.votes.worker.tolist(), crowd.votes.label.tolist()
        ):
            answers.setdefault(item, {})[worker] = label
        keep = sorted(answers)  # it needs tasks without gaps
        dense = {i: answers[item] for i, item in enumerate(keep)}
        model = getattr(package, name)(answers=dense, n_workers=crowd.votes.n_workers, n_classes=crowd.votes.n_classes)
        if hasattr(model, "run"):
            model.run()
        return _by_item(keep, np.asarray(model.get_probas(), float), crowd)

    return run


METHODS: dict[str, tuple[str, Callable[[Crowd], np.ndarray], bool]] = {  # package, call, whether it needs features
    "pandas: majority vote": ("pandas", pandas_vote, False),
    "manyhands: default": ("manyhands", ours("pooled-dawid-skene"), False),
    "manyhands: majority vote": ("manyhands", ours("majority-vote"), False),
    "manyhands: Wawa": ("manyhands", ours("wawa"), False),
    "manyhands: Dawid-Skene": ("manyhands", ours("dawid-skene"), False),
    "manyhands: MACE": ("manyhands", ours("mace"), False),
    "manyhands: GLAD": ("manyhands", ours("glad"), False),
    "crowd-kit: majority vote": ("crowd-kit", crowd_kit("MajorityVote"), False),
    "crowd-kit: Wawa": ("crowd-kit", crowd_kit("Wawa"), False),
    "crowd-kit: Dawid-Skene": ("crowd-kit", crowd_kit("DawidSkene"), False),
    "crowd-kit: one-coin": ("crowd-kit", crowd_kit("OneCoinDawidSkene"), False),
    "peerannot: Dawid-Skene": ("peerannot", peerannot("Dawid_Skene"), False),
    "peerannot: vote shares": ("peerannot", peerannot("NaiveSoft"), False),
    "scikit-activeml: vote": ("scikit-activeml", active_vote, False),
    "snorkel: label model": ("snorkel", snorkel_model, False),
    "manyhands: Raykar, with features": ("manyhands", our_raykar, True),
    "cleanlab: CROWDLAB, with features": ("cleanlab", crowdlab, True),
    "scikit-activeml: AnnotatorLogisticRegression, with features": ("scikit-activeml", active_regression, True),
    "crowd-kit: MACE": ("crowd-kit", crowd_kit("MACE"), False),
    "crowd-kit: GLAD": ("crowd-kit", crowd_kit("GLAD"), False),
}


def _shares(counts: np.ndarray) -> np.ndarray:
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1e-12), 1 / counts.shape[1])


def _by_item(ids: list[Any], proba: np.ndarray, crowd: Crowd) -> np.ndarray:
    """Rows in the order of the items; a package leaves out items without labels."""
    table = np.full((crowd.votes.n_items, crowd.votes.n_classes), 1 / crowd.votes.n_classes)
    table[np.asarray(ids, int), : proba.shape[1]] = proba
    return table


def _work(method: str, crowds: dict[str, Crowd], out: Any) -> None:
    """Measure a method on one set after the other, and send the figures of each; first that it is ready."""
    warnings.simplefilter("ignore")
    _, call, _ = METHODS[method]
    call(_warm())  # imports and first calls are not timed
    out.send(None)
    for crowd in crowds.values():
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            posterior = call(crowd)
        except Exception as error:
            out.send({"reason": f"failed: {type(error).__name__}"})
            continue
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        out.send(figures_of(crowd, posterior) | {"seconds": wall, "cpu_seconds": cpu})


def figures_of(crowd: Crowd, posterior: np.ndarray) -> dict[str, float]:
    """Accuracy, with ties as they fall and averaged, and calibration error, on the items of known truth."""
    known = posterior[crowd.known]
    right = known.argmax(axis=1) == crowd.truth
    best = known == known.max(axis=1, keepdims=True)
    averaged = best[np.arange(len(known)), crowd.truth] / best.sum(axis=1)
    error = calibration_error(known.max(axis=1), right)
    return {"accuracy": float(right.mean()), "tie_averaged": float(averaged.mean()), "calibration_error": error}


def _warm() -> Crowd:
    """A crowd of 60 items, two classes and two features."""
    crowd, rng = object.__new__(Crowd), np.random.default_rng(0)
    truth = np.repeat([0, 1], 30)
    votes = np.where(rng.random((60, 5)) < 0.8, truth[:, None], 1 - truth[:, None])
    crowd.votes, crowd.known, crowd.truth = mh.Annotations.from_matrix(votes), np.arange(60), truth
    crowd.X = rng.normal(size=(60, 2)) + truth[:, None]
    return crowd


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """ECE over bins of equal mass."""
    order = np.argsort(confidence, kind="stable")
    gaps = [
        abs(confidence[part].mean() - right[part].mean()) * len(part)
        for part in np.array_split(order, BINS)
        if len(part)
    ]
    return float(sum(gaps) / len(order))


def cells(method: str, crowds: dict[str, Crowd]) -> list[dict[str, Any]]:
    """Figures of a method on these sets, smaller ones first, or the reasons why there are none."""
    package, _, needs_features = METHODS[method]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return [{"method": method, "data": name, "reason": "not installed"} for name in crowds]
    possible = {name: crowd for name, crowd in crowds.items() if name in FEATURES or not needs_features}
    found = {name: {"reason": "needs features"} for name in crowds if name not in possible}
    for name, figures in _run(method, possible):
        found[name] = figures
        print(f"{method}: {name}: {figures}", flush=True)
    return [{"method": method, "data": name, "version": version} | found[name] for name in crowds]


def _run(method: str, crowds: dict[str, Crowd]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Figures of one process, which ends at the first set that takes longer than the limit: larger ones would too."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(method, crowds, send))
    process.start()
    send.close()
    left, reason = list(crowds), "failed"
    try:
        receive.recv()
        while left:
            limit = LIMITS.get(method, LIMIT)
            if not receive.poll(limit):
                reason = f"more than {limit:.0f} s, or a smaller set took longer"
                break
            yield left.pop(0), receive.recv()
    except EOFError:  # the process ended, whatever the reason
        pass
    finally:
        process.kill()
        process.join()
    for name in left:
        yield name, {"reason": reason}


def measure(names: list[str]) -> None:
    """Measure the methods that have no rows yet on these sets; rows are written after every method."""
    stored = _stored() if ROWS.is_file() else {"rows": []}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    machine = {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    crowds = {name: Crowd(name) for name in names}
    by_size = sorted(names, key=lambda name: crowds[name].votes.n_annotations)
    for method in METHODS:
        measured = {row["data"] for row in stored["rows"] if row["method"] == method}
        left = {name: crowds[name] for name in by_size if name not in measured}
        rows = cells(method, left) if left else []
        stored["rows"] += sorted(rows, key=lambda row: names.index(row["data"]))
        stored |= {"commit": commit.strip(), "machine": machine, "limit": LIMIT}
        ROWS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(ROWS.read_text())
    return stored


# The tables of docs/comparison.md and README.md, between <!-- name --> and <!-- end name -->.


def summary(stored: dict[str, Any]) -> str:
    """All sets that a method could do; worst against the tie-averaged vote; CPU seconds of all sets."""
    names = list(dict.fromkeys(row["data"] for row in stored["rows"]))
    at = _at(stored)
    lines = [
        "| method | sets | accuracy, % | calibration error, % | worst set against the vote, points | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        done = [name for name in names if "accuracy" in at[method, name]]
        if not done:
            lines.append(f"| {method} | {at[method, FEATURES[0]]['reason']} | | | | |")
            continue
        lines.append(f"| {method} | {len(done)} of {len(names)} | {_figures(at, method, done)} |")
    return "\n".join(lines)


def with_features(stored: dict[str, Any]) -> str:
    """The same on the sets that have features, where all methods can be compared."""
    at = _at(stored)
    lines = [
        "| method | accuracy, % | calibration error, % | worst set against the vote, points | CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for method in METHODS:
        if all("accuracy" in at[method, name] for name in FEATURES):
            lines.append(f"| {method} | {_figures(at, method, list(FEATURES))} |")
    return "\n".join(lines)


def by_set(stored: dict[str, Any]) -> str:
    """Accuracy of the methods that every package is known for, set by set."""
    chosen = [
        "pandas: majority vote",
        "manyhands: default",
        "crowd-kit: Dawid-Skene",
        "crowd-kit: MACE",
        "crowd-kit: Wawa",
        "peerannot: Dawid-Skene",
        "snorkel: label model",
        "cleanlab: CROWDLAB, with features",
        "manyhands: Raykar, with features",
    ]
    at = _at(stored)
    chosen = [method for method in chosen if any("accuracy" in row for (m, _), row in at.items() if m == method)]
    lines = ["| data | " + " | ".join(chosen) + " |", "|---" * (len(chosen) + 1) + "|"]
    for name in dict.fromkeys(row["data"] for row in stored["rows"]):
        cells = [f"{100 * at[m, name]['accuracy']:.1f}" if "accuracy" in at[m, name] else "–" for m in chosen]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _figures(at: dict[tuple[str, str], dict[str, Any]], method: str, names: list[str]) -> str:
    rows = [at[method, name] for name in names]
    vote = [at["manyhands: majority vote", name]["tie_averaged"] for name in names]
    worst = min(row["accuracy"] - base for row, base in zip(rows, vote))
    mean = [100 * float(np.mean([row[key] for row in rows])) for key in ("accuracy", "calibration_error")]
    return f"{mean[0]:.1f} | {mean[1]:.1f} | {100 * worst:+.1f} | {sum(row['cpu_seconds'] for row in rows):.2f}"


def _at(stored: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every cell by method and set; a method without rows was not measured."""
    names = {row["data"] for row in stored["rows"]}
    cells: dict[tuple[str, str], dict[str, Any]] = {
        (m, name): {"reason": "not measured"} for m in METHODS for name in names
    }
    return cells | {(row["method"], row["data"]): row for row in stored["rows"]}


def readme(stored: dict[str, Any]) -> str:
    """One table for the README: the vote, the best of crowd-kit, CROWDLAB, and manyhands beside each."""
    at = _at(stored)
    names = list(dict.fromkeys(row["data"] for row in stored["rows"]))
    complete = [m for m in METHODS if m.startswith("crowd-kit") and all("accuracy" in at[m, name] for name in names)]
    best = max(complete, key=lambda method: float(np.mean([at[method, name]["accuracy"] for name in names])))
    title = best.removeprefix("crowd-kit: ")
    rows = [
        ("majority vote in pandas", "pandas: majority vote", names, "nothing to learn"),
        (f"crowd-kit, {title} (its best here)", best, names, "text, segmentations, pairwise rankings"),
        ("**manyhands**, the default", "manyhands: default", names, "reports, scorecards, guarantees, exports, Spark"),
    ]
    lab = "cleanlab: CROWDLAB, with features"
    both = [name for name in FEATURES if "accuracy" in at[lab, name]]
    if both:
        rows += [
            (f"cleanlab CROWDLAB, {len(both)} sets", lab, both, "wrong labels, outliers, audits of data"),
            (f"**manyhands** default, the same {len(both)}", "manyhands: default", both, ""),
            (f"**manyhands** `raykar`, the same {len(both)}", "manyhands: Raykar, with features", both, "a classifier"),
        ]
    lines = ["| | accuracy | worst set | calibration error | CPU s | what else it has |", "|---|---|---|---|---|---|"]
    for name, method, sets, more in rows:
        accuracy_, error, worst, seconds = _figures(at, method, list(sets)).split(" | ")
        lines.append(f"| {name} | {accuracy_} % | {worst} points | {error} % | {seconds} | {more} |")
    if not both:
        reason = at[lab, FEATURES[0]]["reason"]
        lines.append(f"| cleanlab CROWDLAB | {reason} | | | | wrong labels, outliers, audits of data |")
    return "\n".join(lines)


PAGES = {  # file -> its tables
    PAGE: {"summary": summary, "with-features": with_features, "by-set": by_set},
    ROOT / "README.md": {"readme": readme},
}


def page(path: Path, stored: dict[str, Any]) -> str:
    """The text of a page with its tables written from the rows."""
    text = path.read_text(encoding="utf-8")
    for name, table in PAGES[path].items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        if not mark or not end:
            raise SystemExit(f"{path.name} has no place for the table {name!r}.")
        text = f"{before}{mark}{table(stored)}\n{end}{after}"
    return text


if __name__ == "__main__":
    if sys.argv[1:] == ["--page"]:
        for path in PAGES:
            path.write_text(page(path, _stored()), encoding="utf-8")
    else:
        measure(sys.argv[1:] or SETS)
