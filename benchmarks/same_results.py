"""The results of a commit as files, and two such recordings compared: for refactoring that may not change a result.

    python benchmarks/same_results.py record FOLDER [--only GROUP ...] [--load-models OLD_FOLDER]
    python benchmarks/same_results.py compare OLD_FOLDER NEW_FOLDER [--by-design FILE] [--all]

`record` runs in the environment it is called with, and uses public names and the command line only, so that the same
file runs on both commits. Data are read from MANYHANDS_DATA, sample exports from MANYHANDS_SAMPLES or tests/samples.
With --load-models the models that another recording saved are loaded in place of this one's own.
`compare` prints one line for each group, then what differs, and exits with 1 if something does. A line of the file of
--by-design is a pattern of artefacts and the reason why they may differ, or `rename PATTERN NAME`: these artefacts have
another last part now, and are compared under that name.

    commands/help/*  options of aggregate left
    rename commands/*/labels.csv/flags  remarks
"""

from __future__ import annotations

import os

os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MANYHANDS_THREADS")})
os.environ["SOURCE_DATE_EPOCH"] = "1750000000"

import argparse
import contextlib
import csv
import fnmatch
import hashlib
import importlib
import importlib.util
import io
import json
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh

HERE = Path(__file__).resolve().parent
LONGEST_TEXT = 20_000  # characters that are kept; of longer texts, the hash
LARGEST_ARRAY = 20_000  # numbers that are kept
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "polars", "pandas", "manyhands")
KINDS = ("aggregator", "classifier", "representation")

# Parameters of a short training; a method takes those that it has, also as options of its groups.
SMALL: dict[str, Any] = {
    "hidden": (8,),
    "batch_size": 16,
    "learning_rate": 0.03,
    "max_epochs": 7,
    "rounds": 2,
    "members": 2,
    "generator_epochs": 2,
    "discriminator_epochs": 1,
    "adversarial_epochs": 2,
    "generator__epochs": 2,
    "discriminator__epochs": 1,
    "adversarial__epochs": 2,
    "synthesis__pretrain_epochs": 3,
    "tuplets__batches_per_epoch": 1,
}
NOT_VARIED = {"backbone", "device"}  # options that need images or another machine

# Fields of JSON whose values depend on the time, the machine or the version.
MASKED_KEYS = {
    "seconds",
    "fit_seconds",
    "course",
    "version",
    "versions",
    "created",
    "commit",
    "commits",
    "machine",
    "machines",
    "peak_mb",
}


class Recorder:
    """The artefacts of one group, written as JSON lines and an archive of small arrays."""

    def __init__(self, group: str, folder: Path, masks: Mapping[str, str] | None = None) -> None:
        self.group, self.folder, self.masks = group, folder, dict(masks or {})
        self.lines: dict[str, dict[str, Any]] = {}
        self.arrays: dict[str, np.ndarray] = {}

    def add(self, name: str, value: Any) -> None:
        """Record one artefact: an array, text, bytes or what JSON can hold."""
        if name in self.lines:
            raise ValueError(f"{self.group} has two artefacts called {name}.")
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self.lines[name] = self._array(name, value)
            return
        raw = value if isinstance(value, bytes) else self._text(value).encode()
        self.lines[name] = {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw)}
        if not isinstance(value, bytes) and len(raw) <= LONGEST_TEXT:
            self.lines[name]["text"] = raw.decode()

    def attempt(self, name: str, job: Callable[[], Any]) -> Any:
        """Return what a job returns; an error is recorded in place of a result, and None returned."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return job()
        except Exception as error:  # any refusal is a result, too
            self.add(f"{name}/refused", f"{type(error).__name__}: {error}")
            return None

    def masked(self, text: str) -> str:
        """Replace folders, times, sizes of memory, commits and versions in a text."""
        for found, shown in self.masks.items():
            text = text.replace(found, shown)
        today = datetime.now(UTC).strftime("%Y-%m-%d")
        text = re.sub(today + r"[ T]?[\d:.]*( UTC|Z|\+00:00)?", "<now>", text)
        text = re.sub(r"\b[0-9a-f]{40}\b", "<commit>", text)
        text = re.sub(r"/codes/[0-9a-f]+", "/codes/<key>", text)
        text = re.sub(r'("(?:fit_)?seconds": )[\d.e-]+', r"\1<time>", text)
        text = re.sub(r"\b\d+(\.\d+)? ?(s|ms|minutes?|seconds?)\b", "<time>", text)
        text = re.sub(r"\b\d+(\.\d+)? ?[kMGT]i?B\b", "<size>", text)
        return re.sub(r"\b\d+\.\d+\.\d+\b", "<version>", text)

    def save(self) -> None:
        """Write the lines and the arrays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"name": name} | line, ensure_ascii=False) for name, line in self.lines.items()]
        (self.folder / f"{self.group}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        np.savez_compressed(self.folder / f"{self.group}.npz", **self.arrays)  # type: ignore[arg-type]

    def _array(self, name: str, array: np.ndarray) -> dict[str, Any]:
        whole = np.ascontiguousarray(array)
        if whole.size <= LARGEST_ARRAY:
            self.arrays[name.replace("/", "|")] = whole
        digest = hashlib.sha256(whole.tobytes()).hexdigest()
        return {"sha256": digest, "shape": list(array.shape), "dtype": str(array.dtype)}

    def _text(self, value: Any) -> str:
        return self.masked(value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False))


def _plain(value: Any) -> Any:
    """What JSON can hold of a value; fields that depend on the machine are masked."""
    if isinstance(value, Mapping):
        return {str(key): "<masked>" if key in MASKED_KEYS else _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if type(value).__module__.startswith("manyhands."):
        slots = getattr(value, "__slots__", ())
        parts = [name for name in (*slots, *getattr(value, "__dict__", {})) if not name.startswith("_")]
        return {name: _plain(getattr(value, name)) for name in parts}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _get(*candidates: str) -> Any:
    """The first of several dotted names that exists, below `manyhands`; None if there is none."""
    for name in candidates:
        home, _, attribute = f"manyhands.{name}".rpartition(".")
        try:
            return getattr(importlib.import_module(home), attribute)
        except (ImportError, AttributeError):
            continue
    return None


# --- crowds, drawn here so that they do not depend on the package ---


class Case:
    """A small crowd with features of its items, new items, and some known answers."""

    def __init__(self, triples: tuple[Any, Any, Any], truth: Mapping[int, int], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.votes = mh.Annotations.from_triples(*triples)
        classes = np.array([truth[int(item)] for item in self.votes.item_ids])
        self.X = _features(classes, rng)
        self.new = _features(np.arange(30) % (classes.max() + 1), rng)
        self.gold = {item: truth[int(item)] for item in list(self.votes.item_ids)[:4]}


def _features(classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Five features, the first of which tell the class."""
    X = rng.normal(size=(len(classes), 5))
    X[:, 0] += 2.0 * classes
    X[:, 1] -= 1.5 * (classes % 2)
    return X


def _crowd(n_items: int, n_workers: int, shares: list[float], per_item: int, seed: int) -> Case:
    """A crowd of unequal workers, the last of whom answers at random."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(shares), n_items, p=shares)
    truth[: len(shares)] = range(len(shares))
    right = rng.uniform(0.55, 0.95, n_workers)
    right[-1] = 1.0 / len(shares)
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.concatenate([rng.choice(n_workers, per_item, replace=False) for _ in range(n_items)])
    label = np.where(rng.random(len(item)) < right[worker], truth[item], rng.integers(0, len(shares), len(item)))
    return Case((item, worker, label), dict(enumerate(truth.tolist())), seed)


def _bluebirds() -> Case:
    """Sixty items and fifteen workers of a real crowd."""
    folder = Path(os.environ["MANYHANDS_DATA"]) / "agg" / "bluebirds"
    rows = np.loadtxt(folder / "annotations.csv", delimiter=",", skiprows=1, dtype=int)
    truth = dict(np.loadtxt(folder / "truth.csv", delimiter=",", skiprows=1, dtype=int).tolist())
    item, worker, label = rows[(rows[:, 0] < 60) & (rows[:, 1] < 15)].T
    return Case((item, worker, label), truth, 3)


CASES: dict[str, Callable[[], Case]] = {
    "binary": lambda: _crowd(60, 10, [0.5, 0.5], 4, 1),
    "imbalanced": lambda: _crowd(80, 16, [0.6, 0.2, 0.12, 0.08], 2, 2),
    "bluebirds": _bluebirds,
}


@cache
def _case(name: str) -> Case:
    return CASES[name]()


# --- methods ---


def _method(name: str, **options: Any) -> Any:
    """An unfitted method of the registry, with a seed and the settings of a short training."""
    model = mh.registry.create(name)
    known = model.get_params()
    small = {key: value for key, value in SMALL.items() if key in known}
    if "hidden" not in known:  # not a network: it runs until it converges
        small = {key: value for key, value in small.items() if key == "members"}
    if "random_state" in known:
        small["random_state"] = 0
    return model.set_params(**(small | options))


def _is_aggregator(name: str) -> bool:
    return name in mh.registry.names("aggregator")


def _fit(name: str, case: str, gold: bool = False, **options: Any) -> Any:
    """A fitted method."""
    data, model = _case(case), _method(name, **options)
    known = (data.gold,) if gold else ()
    return model.fit(data.votes, *known) if _is_aggregator(name) else model.fit(data.X, data.votes, *known)


@cache
def _fitted(name: str, case: str) -> Any:
    return _fit(name, case)


def _predictions(model: Any, name: str, case: str) -> Iterator[tuple[str, Any]]:
    """What a fitted method says about new data."""
    data = _case(case)
    for job in ("predict_proba", "predict", "transform"):
        if _is_aggregator(name) and job != "transform":
            yield job, getattr(model, job)(data.votes)
        elif hasattr(model, job) and not _is_aggregator(name):
            yield job, getattr(model, job)(data.new)


def _results(model: Any) -> Iterator[tuple[str, Any]]:
    """The results of a fit: attributes that end with an underscore, except fitted objects."""
    names = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    names |= {name for name in ("posterior_", "labels_", "worker_accuracy_", "confusion_") if hasattr(model, name)}
    for name in sorted(names):
        value = getattr(model, name)
        if value is None or isinstance(value, np.ndarray | np.generic | bool | int | float | str | list | dict | tuple):
            yield name, value


def _add_fit(out: Recorder, place: str, model: Any, name: str, case: str) -> None:
    for attribute, value in [*_results(model), *_predictions(model, name, case)]:
        out.add(f"{place}/{attribute}", value)


def methods(out: Recorder) -> None:
    """Every method on three small crowds, and on one of them with known answers."""
    out.add("names", {kind: mh.registry.names(kind) for kind in KINDS})
    for name in mh.registry.names():
        for case in CASES:
            model = out.attempt(f"{name}/{case}", lambda: _fitted(name, case))  # noqa: B023
            if model is not None:
                _add_fit(out, f"{name}/{case}", model, name, case)
        model = out.attempt(f"{name}/gold", lambda: _fit(name, "binary", gold=True))  # noqa: B023
        if model is not None:
            _add_fit(out, f"{name}/gold", model, name, "binary")


def options(out: Recorder) -> None:
    """Every method with each value of each option for which its documentation lists values."""
    for name in mh.registry.names():
        for option, value in _choices(name):
            place = f"{name}/{option}={value}"
            model = out.attempt(place, lambda: _fit(name, "imbalanced", **{option: value}))  # noqa: B023
            for attribute, result in [] if model is None else _predictions(model, name, "imbalanced"):
                out.add(f"{place}/{attribute}", result)
            if hasattr(model, "posterior_"):
                out.add(f"{place}/posterior_", model.posterior_)


def _choices(name: str) -> Iterator[tuple[str, Any]]:
    """Pairs of an option and a value other than the default, also of options in groups and of flags."""
    model = mh.registry.create(name)
    known = model.get_params()
    for group, owner in [("", model), *((f"{key}__", known[key]) for key in known if f"{key}__" in str([*known]))]:
        listed = dict(re.findall(r"^    (\w+) : (.*?),? default", type(owner).__doc__ or "", re.MULTILINE))
        for option, kinds in listed.items():
            key = f"{group}{option}"
            if option in NOT_VARIED or key not in known:
                continue
            values: list[Any] = re.findall(r'"([\w-]+)"', kinds.partition("}")[0]) if "{" in kinds else []
            values += [not known[key]] if isinstance(known[key], bool) else []
            yield from ((key, value) for value in values if value != known[key])


# --- saved models ---


def saved(out: Recorder) -> None:
    """Every method saved: the files, and the predictions of the loaded model."""
    models = out.folder / "models"
    shutil.rmtree(models, ignore_errors=True)
    for name in mh.registry.names():
        model = out.attempt(name, lambda: _fitted(name, _saved_case(name)))  # noqa: B023
        if model is None:
            continue
        place = models / name
        out.attempt(f"{name}/save", lambda: model.save(place))  # noqa: B023
        if place.exists():
            _add_folder(out, name, place)
            _add_loaded(out, f"{name}/loaded", place, name)


def loading(out: Recorder, old: Path | None = None) -> None:
    """The predictions of saved models: those of this recording, or of an older one."""
    folder = (old or out.folder) / "models"
    if not folder.exists():
        sys.exit(f"{folder} does not exist: record the group saved first.")
    for place in sorted(folder.iterdir()):
        _add_loaded(out, place.name, place, place.name)


def _add_loaded(out: Recorder, name: str, place: Path, method: str) -> None:
    model = out.attempt(name, lambda: mh.load_model(place))
    if model is not None:
        _add_fit(out, name, model, method, _saved_case(method))


def _saved_case(method: str) -> str:
    """The crowd of a saved method; KOS is for two classes."""
    return "binary" if method == "kos" else "imbalanced"


# --- files ---


def _add_folder(out: Recorder, name: str, folder: Path) -> None:
    """The names of all files below a folder, and each of them in parts."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    out.add(f"{name}/files", [path.relative_to(folder).as_posix() for path in files])
    for path in files:
        if path.name != "manifest.json":  # hashes of the others
            _add_file(out, f"{name}/{path.relative_to(folder).as_posix()}", path)


def _add_file(out: Recorder, name: str, path: Path) -> None:
    """One file: tables by column, JSON by key, other text whole, anything else as bytes."""
    if path.suffix in (".csv", ".tsv", ".parquet"):
        _add_table(out, name, path)
    elif path.suffix == ".json":
        _add_json(out, name, json.loads(path.read_text("utf-8")))
    elif path.suffix == ".html":
        found = re.search(r'id="manyhands-data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
        _add_json(out, name, json.loads(found[1]) if found else None)
    elif path.suffix in (".jsonl", ".ndjson"):
        _add_json(out, name, [json.loads(line) for line in path.read_text("utf-8").split("\n") if line])
    elif path.suffix in (".md", ".txt", ".svg"):
        out.add(name, path.read_text("utf-8"))
    elif path.suffix == ".key":
        out.add(name, "a key")
    else:
        out.add(name, path.read_bytes())


def _add_table(out: Recorder, name: str, path: Path) -> None:
    import polars as pl

    if path.suffix == ".parquet":
        table = pl.read_parquet(path)
        out.add(f"{name}/types", [str(kind) for kind in table.dtypes])
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        table = pl.read_csv(path, infer_schema=False, separator=separator)
    out.add(f"{name}/columns", table.columns)
    for column in table.columns:
        out.add(f"{name}/{column}", table[column].to_list())


def _add_json(out: Recorder, name: str, value: Any, depth: int = 2) -> None:
    """JSON by key, and records by field, so that what changed by design can be told from the rest."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        value, depth = _by_field(value), max(depth, 1)
    if not isinstance(value, dict) or depth == 0 or not value:
        out.add(name, value)
        return
    out.add(f"{name}/keys", [*value])
    for key, part in value.items():
        if key not in MASKED_KEYS:
            _add_json(out, f"{name}/{key}", part, depth - 1)


def _by_field(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Records as one list for each field; records without a field have "absent"."""
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name, "absent") for record in records] for name in names}


def _add_text(out: Recorder, name: str, text: str) -> None:
    """What a command prints: JSON by key, a table by column, or text."""
    try:
        _add_json(out, name, json.loads(text))
        return
    except ValueError:
        pass
    head = text.partition("\n")[0]
    if re.fullmatch(r"\w+(,\w+)+", head):
        rows = [*csv.reader(io.StringIO(text))]
        out.add(f"{name}/columns", rows[0])
        for number, column in enumerate(rows[0]):
            out.add(f"{name}/{column}", [row[number] for row in rows[1:]])
    else:
        out.add(name, text)


# --- exports ---

READINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "all": {"duplicates": "all"},
    "first": {"duplicates": "first"},
    "combinations": {"combinations": True},
    "merged": {"merge_spellings": True, "rare_classes": "keep"},
    "everything": {"item_fields": True, "times": True},
}


def exports(out: Recorder) -> None:
    """Every sample export, every question of it, read in several ways."""
    root = Path(os.environ.get("MANYHANDS_SAMPLES", HERE.parent / "tests" / "samples"))
    out.masks[str(root)] = "<samples>"
    read = _get("io.read_export", "io.read.read_export")
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root).as_posix()
        for question in _questions(read, path):
            for name, given in READINGS.items():
                where = f"{place}/{question}/{name}"
                job = lambda: read(path, question=question, verbose=0, **given)  # noqa: B023, E731
                reading = out.attempt(where, job)
                if reading is not None:
                    _add_reading(out, where, reading)


def _questions(read: Any, path: Path) -> list[str | None]:
    """None for the only question of an export, or the names of several; a choice of each, too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reading = read(path, verbose=0)
    except Exception as error:  # recorded by the caller
        found = re.search(r"several questions: (.*?)\. Pick", str(error))
        return [None, *(found[1].split(", ") if found else [])]
    return [None, *reading.questions] if len(reading.questions) > 1 else [None]


def _add_reading(out: Recorder, name: str, reading: Any) -> None:
    _add_annotations(out, name, reading.annotations)
    out.add(f"{name}/ledger", str(reading.ledger))
    for part in fields(reading) if is_dataclass(reading) else []:
        if part.name not in ("annotations", "ledger"):
            out.add(f"{name}/{part.name}", getattr(reading, part.name))


def _add_annotations(out: Recorder, name: str, votes: Any) -> None:
    for part in ("item", "worker", "label", "weight", "item_ids", "worker_ids", "classes"):
        out.add(f"{name}/{part}", getattr(votes, part, None))


# --- data sets and simulated crowds ---


def data(out: Recorder) -> None:
    """The real data sets, and every simulated crowd with one seed."""
    for name in mh.datasets.names():
        _add_parts(out, f"load/{name}", out.attempt(f"load/{name}", lambda: mh.datasets.load(name)))  # noqa: B023
    for home in (mh.simulate, mh.datasets):
        for name in sorted(home.__all__):
            job = getattr(home, name)
            if name.startswith("make_") and "random_state" in signature(job).parameters:
                place = f"{home.__name__.rpartition('.')[2]}/{name}"
                needed = {key: value for key, value in MAKING.items() if key in _required(job)}
                found = out.attempt(place, lambda: job(**needed, random_state=0))  # noqa: B023
                _add_parts(out, place, found)


MAKING: dict[str, Any] = {"n_items": 200, "truth": np.arange(120) % 2, "p": np.linspace(0.1, 0.9, 120), "name": "usps"}
MAKING |= {"classes": 3, "n_classes": 2}


def _required(job: Callable[..., Any]) -> list[str]:
    return [name for name, parameter in signature(job).parameters.items() if parameter.default is parameter.empty]


def _add_parts(out: Recorder, name: str, value: Any, depth: int = 3) -> None:
    """The arrays of a value of any kind."""
    if isinstance(value, mh.Annotations):
        _add_annotations(out, name, value)
    elif value is not None and depth and (is_dataclass(value) or hasattr(value, "__dict__")):
        parts = {field.name for field in fields(value)} if is_dataclass(value) else set(vars(value))
        for part in sorted(part for part in parts if not part.startswith("_")):
            _add_parts(out, f"{name}/{part}", getattr(value, part), depth - 1)
    elif isinstance(value, tuple) and depth:
        for number, part in enumerate(value):
            _add_parts(out, f"{name}/{number}", part, depth - 1)
    elif value is not None and not callable(value):
        out.add(name, value)


# --- bits of the aggregators ---


def bits(out: Recorder) -> None:
    """Every aggregator on the real crowds and on simulated ones: posterior and labels."""
    for place, votes in _bit_crowds():
        for name in mh.registry.names("aggregator"):
            where = f"{place}/{name}"
            model = out.attempt(where, lambda: mh.registry.create(name).fit(votes))  # noqa: B023
            for attribute in () if model is None else ("posterior_", "labels_", "worker_accuracy_", "n_iter_"):
                out.add(f"{where}/{attribute}", getattr(model, attribute, None))


def _bit_crowds() -> Iterator[tuple[str, Any]]:
    for name in mh.datasets.names():
        if name.startswith("agg/"):
            yield name, mh.datasets.load(name).annotations
    for seed, (n_classes, bad) in enumerate([(2, "constant"), (3, "random"), (8, "random")]):
        crowd = mh.simulate.make_crowd(
            n_items=250,
            n_workers=30,
            n_classes=n_classes,
            labels_per_item=4,
            bad=bad,
            bad_share=0.2,
            random_state=seed,
        )
        yield f"simulated/{n_classes}", crowd.annotations


# --- the command line ---

COMMANDS = """
help | --help
help-aggregate | aggregate --help
methods | methods
methods-json | methods --json
doctor | doctor
completion | completion bash
demo | demo -o OUT --seed 7
demo-json | demo -o OUT --json
simulate | simulate -o OUT --items 50 --classes 3 --bad constant --bad-share 0.3
simulate-stdout | simulate --items 20 --workers 5
simulate-glad | simulate -o OUT --items 50 --kind glad --bad sybil --bad-share 0.2 --seed 3
simulate-difficulty | simulate -o OUT --items 50 --kind difficulty --bad copycat --bad-share 0.2
simulate-family | simulate -o OUT --items 50 --kind confusion --bad family --bad-share 0.3 --json
inspect | inspect ratings.csv
inspect-json | inspect ratings.csv --json
inspect-panel | inspect panel.csv
inspect-questions | inspect SAMPLES/label_studio/export.json
inspect-batches | inspect ratings.csv more.csv
inspect-missing | inspect ratings.csv --missing owl
convert | convert ratings.csv -o OUT/ratings.csv
convert-wide | convert ratings.csv --wide -o OUT/matrix.csv
convert-stdout | convert SAMPLES/prodigy/choice.jsonl
convert-jsonl | convert SAMPLES/label_studio/export.json --question sentiment -o OUT/ratings.jsonl
convert-parquet | convert ratings.csv --duplicates first -o OUT/ratings.parquet
convert-pseudonyms | convert ratings.csv --pseudonymise --key secret.txt
convert-map | convert ratings.csv --map map.csv --spreadsheet-safe
aggregate | aggregate ratings.csv -o OUT
aggregate-stdout | aggregate ratings.csv
aggregate-json | aggregate ratings.csv --json
aggregate-quiet | aggregate ratings.csv -q -o OUT
aggregate-two-files | aggregate ratings.csv more.csv -o OUT
aggregate-majority-vote | aggregate ratings.csv -m majority-vote -o OUT
aggregate-dawid-skene | aggregate ratings.csv -m dawid-skene -o OUT --seed 3
aggregate-one-coin | aggregate ratings.csv -m one-coin -o OUT
aggregate-glad | aggregate ratings.csv -m glad -o OUT
aggregate-mace | aggregate ratings.csv -m mace -o OUT
aggregate-ibcc | aggregate ratings.csv -m ibcc -o OUT
aggregate-wawa | aggregate ratings.csv -m wawa -o OUT
aggregate-vote-difficulty-em | aggregate ratings.csv -m vote-difficulty-em -o OUT
aggregate-kos | aggregate panel.csv -m kos -o OUT
aggregate-kos-refused | aggregate ratings.csv -m kos -o OUT
aggregate-unknown | aggregate ratings.csv -m dawid-sken -o OUT
aggregate-missing-file | aggregate nothing.csv -o OUT
aggregate-compare | aggregate ratings.csv --compare -o OUT
aggregate-gold | aggregate ratings.csv --gold gold.csv --compare -o OUT
aggregate-use-gold | aggregate SAMPLES/label_studio/export.json --question sentiment --use-gold -o OUT
aggregate-report | aggregate ratings.csv --report --reveal -o OUT
aggregate-pseudonyms | aggregate ratings.csv --pseudonymise --key secret.txt -o OUT
aggregate-safe | aggregate ratings.csv --spreadsheet-safe -o OUT
aggregate-fail-under | aggregate ratings.csv --fail-under 0.999 -o OUT
aggregate-all-questions | aggregate SAMPLES/label_studio/export.json --all-questions -o OUT
aggregate-duplicates | aggregate ratings.csv --duplicates share -o OUT
aggregate-all-duplicates | aggregate ratings.csv --duplicates all --rare-classes keep -o OUT
aggregate-map | aggregate ratings.csv --map map.csv --merge-spellings -o OUT
aggregate-weight | aggregate weighted.csv --weight weight -o OUT -m dawid-skene
aggregate-label-probs | aggregate shares.csv --label-probs cat,dog,owl -o OUT -m dawid-skene
aggregate-down-weight | aggregate panel.csv --down-weight --machines gpt-*,llama -o OUT
aggregate-kinds | aggregate panel.csv --down-weight --kinds kinds.csv -o OUT
aggregate-ordinal | aggregate stars.csv --ordinal -o OUT --compare
aggregate-order | aggregate words.csv --order bad,ok,good -o OUT
aggregate-ordinal-vote | aggregate stars.csv --ordinal -m majority-vote -o OUT --write jsonl
aggregate-scale-not-used | aggregate words.csv -o OUT
aggregate-config | aggregate ratings.csv --config options.toml -o OUT
write-jsonl-parquet | aggregate ratings.csv --write jsonl --write parquet -o OUT
write-training | aggregate ratings.csv --write training --write training-jsonl --write training-parquet -o OUT
write-label-studio | aggregate SAMPLES/label_studio/export.json --question sentiment --write label-studio -o OUT
write-label-studio-tasks | aggregate SAMPLES/label_studio/csv --question sentiment --write label-studio-tasks -o OUT
write-tasks-of-table | aggregate ratings.csv --write label-studio-tasks -o OUT
write-argilla | aggregate SAMPLES/argilla/records_nested.json --write argilla -o OUT
write-argilla-question | aggregate SAMPLES/argilla/records_nested.json --question sentiment --write argilla -o OUT
write-doccano | aggregate SAMPLES/doccano/individual --write doccano -o OUT
write-labelbox | aggregate SAMPLES/labelbox/export.ndjson --write labelbox -o OUT
write-labelbox-question | aggregate SAMPLES/labelbox/export.ndjson --question sentiment --write labelbox -o OUT
write-prodigy | aggregate SAMPLES/prodigy/choice.jsonl --write prodigy -o OUT
ask-method | ask ratings.csv -n 8 -o OUT/questions.csv
ask-confidence | ask ratings.csv --purpose confidence -n 30 -o OUT/questions.csv
ask-json | ask stars.csv --ordinal -n 6 -o OUT/questions.csv --json
answers | aggregate ratings.csv --answers out/ask-confidence/questions.csv -o OUT
answers-method | aggregate ratings.csv --answers out/ask-method/questions.csv -o OUT
guarantee | aggregate ratings.csv --answers out/ask-confidence/questions.csv --guarantee "error<=20% at 90%" -o OUT
answers-sets | aggregate ratings.csv --answers out/ask-confidence/questions.csv --sets 80% -o OUT
report | report ratings.csv --reveal -o OUT/report.html
report-answers | report ratings.csv --answers out/ask-confidence/questions.csv --reveal -o OUT/report.html
report-compare | report ratings.csv --truth truth.csv --compare --reveal -o OUT/report.html --title "A crowd"
report-key | report ratings.csv --key secret.txt -o OUT/report.html
report-groups | report ratings.csv --groups groups.csv --reveal -o OUT/report.html
report-group-column | report panel.csv --group-column kind --reveal -o OUT/report.html
report-ordinal | report stars.csv --ordinal --reveal -o OUT/report.html --json
report-of-times | report SAMPLES/label_studio/export.json --question sentiment --reveal -o OUT/report.html
inspect-page | inspect out/report/report.html
inspect-page-json | inspect out/report/report.html --json
report-change | report out/report/report.html out/report-answers/report.html -o OUT/change.html
agree | agree ratings.csv
agree-folder | agree ratings.csv -o OUT --bootstrap 200
agree-ordinal | agree stars.csv --ordinal -o OUT --bootstrap 200
agree-order | agree words.csv --order bad,ok,good --json --bootstrap 100
agree-interval | agree stars.csv --level interval --bootstrap 100
agree-effective | agree panel.csv --effective --machines gpt-*,llama -o OUT --bootstrap 100
agree-gold | agree panel.csv --effective --kinds kinds.csv --gold panel_truth.csv -o OUT --bootstrap 100
alt-test | alt-test panel.csv --machines gpt-a,gpt-b,llama --min-items 10 -o OUT
alt-test-stdout | alt-test panel.csv --machines gpt-* --epsilon 0.2 --min-items 10
alt-test-ordinal | alt-test stars.csv --machines w0 --ordinal --min-items 5 --json
train-raykar | train ratings.csv --features X.npz -m raykar -o OUT
train-default | train ratings.csv --features X.npz --set max_epochs=5 -o OUT
train-crowd-layer | train ratings.csv --features X.npz -m crowd-layer --set max_epochs=5 --set hidden=8,8 -o OUT --json
train-choose | train ratings.csv --features X.npz -m raykar -m two-stage --set two-stage.max_epochs=5 --choose -o OUT
train-text | train ratings.csv --features texts.csv --text body -m two-stage --set classifier=logistic-regression -o OUT
train-gold | train ratings.csv --features X.npz -m fixed-difficulty-em --gold gold.csv --no-standardise -o OUT
train-columns | train ratings.csv --features table.csv --column a --column b -m cpc -o OUT
predict | predict out/train-raykar --features X.npz -o OUT/predictions.csv
predict-stdout | predict out/train-crowd-layer --features X.npz
predict-text | predict out/train-text --features texts.csv -o OUT/predictions.jsonl
evaluate | evaluate out/train-raykar --features X.npz --truth truth.csv
evaluate-json | evaluate out/train-crowd-layer --features X.npz --truth truth.csv --json
reproduce-quick | reproduce mine.toml --quick --seeds 1 --jobs 1 -o OUT --format csv
out-of-memory | aggregate ratings.csv --max-memory 20MB -o OUT
enough-memory | aggregate ratings.csv --max-memory 2GB -o OUT
"""
TABLE = """title = "Two stages on iris"
paper = "none"
number = "Table 1"
seeds = 1
metrics = ["accuracy", "label_accuracy"]
[[datasets]]
name = "iris"
make = "make_iris"
features = "standardised"
[[rows]]
name = "Raykar"
method = "raykar"
[[rows]]
name = "vote, then regression"
method = "two-stage"
parameters = { aggregator = "majority-vote", classifier = "logistic-regression" }
"""
IN_A_PROCESS_OF_ITS_OWN = {"reproduce", "leaderboard", "doctor", "--max-memory", "nothing.csv"}
WORDS = np.array(["cat", "dog", "owl"])
NEWER = {  # options of one commit -> those of the next; the first that fits counts
    "--pseudonymise --key": "--worker-names",
    "--reveal": "--worker-names ids",
    "--key": "--worker-names",
    "completion bash": "--show-completion bash",
}


def commands(out: Recorder) -> None:
    """Many command lines: exit code, what is printed, and every file."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        samples = os.environ.get("MANYHANDS_SAMPLES", str(HERE.parent / "tests" / "samples"))
        out.masks |= {folder: "<work>", samples: "<samples>", os.environ["MANYHANDS_DATA"]: "<data>"}
        out.masks |= {str(Path(sys.prefix)): "<environment>", str(HERE.parent): "<checkout>"}
        truth = _write_inputs(work)
        for line in COMMANDS.strip().splitlines():
            name, _, arguments = line.partition(" | ")
            if importlib.util.find_spec("manyhands.jobs") is not None:
                for old, new in NEWER.items():
                    arguments = arguments.replace(old, new)
            (work / "out").mkdir(exist_ok=True)
            if "OUT/" in arguments:
                (work / "out" / name).mkdir()
            _run(out, name, arguments.replace("OUT", f"out/{name}").replace("SAMPLES", samples), work)
            if name.startswith("ask-"):
                _answer(work / "out" / name / "questions.csv", truth)


def _run(out: Recorder, name: str, arguments: str, work: Path, program: str = "manyhands") -> None:
    """Run one command line and record what it leaves; most run in this process, which spares their imports."""
    words = shlex.split(arguments)
    in_process = program == "manyhands" and not ({*words} & IN_A_PROCESS_OF_ITS_OWN)
    run = _run_here if in_process else _run_apart
    code, printed, said = run(program, words, work)
    out.add(f"{name}/exit", code)
    _add_text(out, f"{name}/stdout", printed)
    out.add(f"{name}/stderr", said)
    if (work / "out" / name).exists():
        _add_folder(out, name, work / "out" / name)


def _environment(work: Path) -> dict[str, str]:
    return {"COLUMNS": "100", "MANYHANDS_CACHE": str(work / "cache"), "NO_COLOR": "1"}


def _run_apart(program: str, words: list[str], work: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a program in a process of its own."""
    command, environment = [sys.executable, "-m", program, *words], os.environ | _environment(work)
    done = subprocess.run(command, capture_output=True, cwd=work, env=environment, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def _run_here(program: str, words: list[str], work: Path) -> tuple[int, str, str]:
    """The same of `python -m PROGRAM` in this process."""
    before = sys.argv, sys.stdout, sys.stderr, sys.excepthook, Path.cwd(), dict(os.environ)
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said, warnings.catch_warnings():
        sys.argv = [program, *words]
        with open(os.dup(printed.fileno()), "w") as sys.stdout, open(os.dup(said.fileno()), "w") as sys.stderr:
            os.chdir(work)
            os.environ.update(_environment(work))
            code = _exit_code(program)
            sys.stdout.flush()
            sys.stderr.flush()
            sys.argv, sys.stdout, sys.stderr, sys.excepthook, folder, environment = before
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        printed.seek(0)
        said.seek(0)
        return code, printed.read().decode(), said.read().decode()


def _exit_code(program: str) -> int:
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _answer(path: Path, truth: Mapping[str, str]) -> None:
    """Fill in the answers of an expert."""
    import polars as pl

    if path.exists():
        table = pl.read_csv(path, infer_schema=False)
        answers = [truth.get(item, "") for item in table["item"]]
        table.with_columns(pl.Series("answer", answers)).write_csv(path)


def _write_inputs(work: Path) -> dict[str, str]:
    """Write the small files that the commands read; return the true classes of ratings.csv."""
    rng = np.random.default_rng(11)
    codes = rng.integers(0, 3, 60)
    truth = {f"i{k}": str(WORDS[code]) for k, code in enumerate(codes)}
    rows = _ratings(truth, 12, WORDS, rng)
    extra = ["i0,w0,dog", "i1,w1,", "i2,w2,Dog", "only,w3,"]
    _lines(work / "ratings.csv", "item,worker,label", [*rows, *extra])
    _lines(work / "more.csv", "item,worker,label", _ratings(truth, 4, WORDS, rng, first=12))
    _lines(work / "truth.csv", "item,label", [f"{item},{label}" for item, label in truth.items()])
    _lines(work / "gold.csv", "item,label", [f"i{k},{truth[f'i{k}']}" for k in range(0, 60, 10)])
    _lines(work / "map.csv", "from,to", ["owl,dog"])
    _lines(work / "groups.csv", "worker,country", [f"w{k},{'AB'[k % 2]}" for k in range(12)])
    _lines(work / "weighted.csv", "item,worker,label,weight", [f"{row},{rng.random():.3f}" for row in rows])
    shares = [",".join(f"{share:.4f}" for share in rng.dirichlet(np.ones(3))) for _ in rows]
    probabilities = [f"{row.rpartition(',')[0]},{share}" for row, share in zip(rows, shares)]
    _lines(work / "shares.csv", "item,worker,cat,dog,owl", probabilities)
    _write_scales(work, rng)
    _write_features(work, codes, [*truth], rng)
    (work / "options.toml").write_text('seed = 1\n[aggregate]\nmethod = "mace"\nwrite = ["jsonl"]\n')
    (work / "secret.txt").write_text("0123456789abcdef" * 4 + "\n")
    (work / "mine.toml").write_text(TABLE)
    return truth


def _write_scales(work: Path, rng: np.random.Generator) -> None:
    """Grades, words of a scale, and a panel of people and machines."""
    stars = {f"s{k}": str(rng.integers(1, 6)) for k in range(50)}
    _lines(work / "stars.csv", "item,worker,label", _ratings(stars, 8, np.array([*"12345"]), rng))
    words = np.array(["bad", "ok", "good"])
    grades = {f"g{k}": str(rng.choice(words)) for k in range(40)}
    _lines(work / "words.csv", "item,worker,label", _ratings(grades, 6, words, rng))
    answers = {f"p{k}": str(rng.choice(["no", "yes"])) for k in range(60)}
    people = _ratings(answers, 6, np.array(["no", "yes"]), rng)
    rows = [f"{row},human" for row in people]
    machines = ("gpt-a", "gpt-b", "llama")
    for item, label in answers.items():
        common = label if rng.random() < 0.8 else "yes"
        rows += [f"{item},{name},{common if rng.random() < 0.9 else 'no'},machine" for name in machines]
    _lines(work / "panel.csv", "item,worker,label,kind", rows)
    _lines(work / "panel_truth.csv", "item,label", [f"{item},{label}" for item, label in answers.items()])
    kinds = [f"{name},machine,{name.partition('-')[0]}" for name in machines]
    _lines(work / "kinds.csv", "worker,kind,family", [*kinds, *(f"w{k},human," for k in range(6))])


def _write_features(work: Path, codes: np.ndarray, ids: list[str], rng: np.random.Generator) -> None:
    """Features of the items as arrays, as a table and as texts."""
    X = _features(codes, rng)
    np.savez(work / "X.npz", X=X, ids=np.array(ids))
    _lines(work / "table.csv", "item,a,b", [f"{item},{row[0]:.4f},{row[1]:.4f}" for item, row in zip(ids, X)])
    says = ("it says meow and purrs", "it barks and wags", "it hoots at night")
    _lines(work / "texts.csv", "id,body", [f"{item},{says[code]} {item}" for item, code in zip(ids, codes)])


def _ratings(
    truth: Mapping[str, str], n_workers: int, classes: np.ndarray, rng: np.random.Generator, first: int = 0
) -> list[str]:
    """Rows of item, worker and label: about four labels of each item, by workers of unequal accuracy."""
    right = np.linspace(0.95, 0.4, n_workers)
    rows = []
    for item, label in truth.items():
        for worker in rng.choice(n_workers, min(4, n_workers), replace=False):
            given = label if rng.random() < right[worker] else rng.choice(classes)
            rows.append(f"{item},w{first + worker},{given}")
    return rows


def _lines(path: Path, head: str, rows: list[str]) -> None:
    path.write_text("\n".join([head, *rows]) + "\n", "utf-8")


# --- labels in shards ---


def sharded(out: Recorder) -> None:
    """Five million labels out of core, and in memory on the same shards."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        out.masks[folder] = "<work>"
        _write_large(work / "large.parquet")
        for method in ("dawid-skene", "mace", "majority-vote", "one-coin", "pooled-dawid-skene"):
            name = f"out-of-core-{method}"
            _run(out, name, f"aggregate large.parquet -m {method} --max-memory 450MB -o out/{name}", work)
        for method in ("dawid-skene", "majority-vote"):
            place = work / "out" / f"shards-{method}"
            job = lambda: _on_shards(work / "large.parquet", method, place)  # noqa: B023, E731
            if out.attempt(f"in-memory-{method}", job) is not None:
                _add_folder(out, f"in-memory-{method}", place)
        _spark(out, work)


def _on_shards(path: Path, method: str, place: Path) -> Any:
    aggregate = _get("jobs.aggregate.aggregate", "workflows.aggregate")
    return aggregate([str(path)], method=method, out=place, shards="hash")


def _write_large(path: Path) -> None:
    import polars as pl

    rng = np.random.default_rng(0)
    n_items, n_workers, n_labels = 250_000, 2000, 5_000_000
    item = np.repeat(np.arange(n_items), n_labels // n_items)
    worker, truth = rng.integers(0, n_workers, n_labels), rng.integers(0, 3, n_items)
    right = rng.random(n_labels) < rng.uniform(0.0, 0.4, n_workers)[worker]
    label = np.where(right, truth[item], rng.integers(0, 3, n_labels))
    pl.DataFrame({"item": item, "worker": worker, "label": label}).write_parquet(path)


def _spark(out: Recorder, work: Path) -> None:
    """A small crowd on Spark, where it is installed."""
    try:
        importlib.import_module("pyspark")
    except ImportError:
        print("sharded: pyspark is not installed, so Spark is left out.", file=sys.stderr)
        return
    _write_inputs(work)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    for method in ("dawid-skene", "mace", "majority-vote", "one-coin", "pooled-dawid-skene"):
        place = work / "out" / f"spark-{method}"
        words = f"aggregate --input ratings.csv --format csv --method {method} --output {place} --json"
        code, printed, said = _run_apart("manyhands.spark", shlex.split(words), work)
        if code:
            sys.exit(f"sharded: Spark ended with {code}: {said[-2000:]}")
        _add_text(out, f"spark-{method}/stdout", printed)
        for table in ("items", "workers", "confusions"):
            if (place / table).exists():  # a vote has no confusion matrices
                _add_spark_table(out, f"spark-{method}/{table}", place / table)


def _add_spark_table(out: Recorder, name: str, folder: Path) -> None:
    """A table by column; the order of its rows has no meaning on Spark."""
    import pyarrow.dataset as ds

    table = ds.dataset(folder, format="parquet").to_table()  # type: ignore[no-untyped-call]
    rows = sorted(zip(*(table[column].to_pylist() for column in table.column_names)), key=repr)
    out.add(f"{name}/types", [str(kind) for kind in table.schema.types])
    for number, column in enumerate(table.column_names):
        out.add(f"{name}/{column}", [row[number] for row in rows])


# --- stored rows of the reproduced tables ---


def tables(out: Recorder) -> None:
    """What the stored rows of all tables say, without measuring: a row that is not current shows as missing."""
    rows = HERE.parent / "docs" / "results" / "rows"
    out.masks |= {str(HERE.parent): "<checkout>", os.environ["MANYHANDS_DATA"]: "<data>"}
    found = _manyhands("reproduce --list")
    out.add("list", found)
    names = [line.split()[0] for line in found.splitlines() if line[:1].strip()]
    shown = json.loads(_manyhands(f"reproduce {' '.join(names)} --show --json -o {rows}"))
    for table in shown["tables"]:
        _add_json(out, table["table"], table)
    out.add("leaderboard", _manyhands(f"leaderboard --show -o {rows}"))


def _manyhands(arguments: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "manyhands", *shlex.split(arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent).stdout


# --- recording and comparing ---

GROUPS: dict[str, Callable[..., None]] = {
    "methods": methods,
    "options": options,
    "saved": saved,
    "loading": loading,
    "exports": exports,
    "data": data,
    "bits": bits,
    "commands": commands,
    "sharded": sharded,
    "tables": tables,
}


def record(folder: Path, only: list[str], old: Path | None) -> None:
    """Record groups of results in a folder."""
    _one_thread()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "about.json").write_text(json.dumps(_about(), indent=1))
    for group, job in GROUPS.items():
        if only and group not in only:
            continue
        begin, out = time.perf_counter(), Recorder(group, folder)
        job(out, old) if job is loading else job(out)
        out.save()
        print(f"{group}: {len(out.lines)} artefacts, {time.perf_counter() - begin:.0f} s", flush=True)


def _one_thread() -> None:
    with contextlib.suppress(ImportError):
        importlib.import_module("torch").set_num_threads(1)


def _about() -> dict[str, str | None]:
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=HERE)
    found: dict[str, str | None] = {"commit": done.stdout.strip(), "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def compare(old: Path, new: Path, by_design: Path | None, show_all: bool) -> int:
    """Print which artefacts of two recordings differ; 1 if one does that may not."""
    one, other = (json.loads((folder / "about.json").read_text()) for folder in (old, new))
    changed = [name for name in one if name != "commit" and one[name] != other.get(name)]
    if changed:
        print(f"note: other versions of {', '.join(changed)}: bits may differ for that reason.")
    lines = by_design.read_text("utf-8").splitlines() if by_design else []
    design = Design([line for line in lines if line.strip() and not line.startswith("#")])
    failed = False
    for group in GROUPS:
        if (old / f"{group}.jsonl").exists() and (new / f"{group}.jsonl").exists():
            failed |= _compare_group(group, old, new, design, None if show_all else 40)
        elif (old / f"{group}.jsonl").exists():
            print(f"{group}: not recorded in {new}")
    return int(failed)


class Design:
    """What changed by design: reasons by pattern, and new names by pattern."""

    def __init__(self, lines: list[str]) -> None:
        pairs = [line.removeprefix("rename ").split(maxsplit=1) for line in lines]
        self.reasons = [pair for line, pair in zip(lines, pairs) if not line.startswith("rename ")]
        self.renamed = [pair for line, pair in zip(lines, pairs) if line.startswith("rename ")]

    def reason(self, name: str) -> str:
        """Why an artefact may differ; empty if it may not."""
        return next((why[0] if why else "yes" for pattern, *why in self.reasons if _fits(name, pattern)), "")

    def new_name(self, name: str) -> str:
        """The name that an artefact has in the new recording."""
        last = next((new for pattern, new in self.renamed if _fits(name, pattern)), None)
        return name if last is None else f"{name.rpartition('/')[0]}/{last}"


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern)


def _compare_group(group: str, old: Path, new: Path, design: Design, most: int | None) -> bool:
    one, other = (_load(folder / f"{group}.jsonl") for folder in (old, new))
    for name in one:
        now = design.new_name(f"{group}/{name}").removeprefix(f"{group}/")
        if now != name and now in other and name not in other:
            other[name] = other.pop(now)
    names = [*one, *(name for name in other if name not in one)]
    differ = [name for name in names if _identity(one.get(name)) != _identity(other.get(name))]
    failing = [name for name in differ if not design.reason(f"{group}/{name}")]
    equal, excused = len(one) - sum(name in one for name in differ), len(differ) - len(failing)
    print(f"{group}: {len(one)} recorded, {equal} equal, {len(failing)} differ, {excused} by design")
    arrays = [np.load(folder / f"{group}.npz") for folder in (old, new)]
    for name in failing[:most]:
        print(f"  {group}/{name}: {_difference(name, one.get(name), other.get(name), arrays)}")
    if most is not None and len(failing) > most:
        print(f"  ... and {len(failing) - most} more; --all lists them")
    return bool(failing)


def _identity(line: Mapping[str, Any] | None) -> tuple[Any, ...]:
    return () if line is None else (line["sha256"], *_form(line))


def _load(path: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, path.read_text("utf-8").split("\n")[:-1])
    return {line.pop("name"): line for line in lines}


def _form(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return line.get("shape"), line.get("dtype")


def _difference(name: str, one: dict[str, Any] | None, other: dict[str, Any] | None, arrays: list[Any]) -> str:
    """How two recordings of an artefact differ, in a few words."""
    if one is None or other is None:
        return "only in the new recording" if one is None else "not in the new recording"
    if _form(one) != _form(other):
        return f"shape and type are {_form(other)}, not {_form(one)}"
    key = name.replace("/", "|")
    if all(key in archive.files for archive in arrays):
        a, b = (archive[key].astype(float) for archive in arrays)
        return f"{np.sum(a != b)} of {a.size} numbers, at most {np.max(np.abs(a - b)):.3g} apart"
    if "text" in one and "text" in other:
        return _first_difference(one["text"], other["text"])
    return "other bytes"


def _first_difference(one: str, other: str) -> str:
    """The place where two texts begin to differ."""
    pairs = enumerate(zip(io.StringIO(one), io.StringIO(other)))
    a, b = next(((a, b) for _, (a, b) in pairs if a != b), (one[-80:], other[-80:]))
    start = max(0, next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), 0) - 30)
    return f"{a[start : start + 90].rstrip()!r} became {b[start : start + 90].rstrip()!r}"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True)
    recording = jobs.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--only", nargs="+", choices=GROUPS, default=[])
    recording.add_argument("--load-models", type=Path)
    comparing = jobs.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--by-design", type=Path)
    comparing.add_argument("--all", action="store_true")
    given = parser.parse_args()
    if given.job == "compare":
        return compare(given.old, given.new, given.by_design, given.all)
    record(given.folder.resolve(), given.only, given.load_models and given.load_models.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
