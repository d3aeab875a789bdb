"""Loading: ten million rows of text, and a JSON export of 100 MB, beside the peers.

    python benchmarks/loading.py [table] [json]

Every measurement is a process of its own, without its imports; figures are medians of three. The files are made in a
temporary folder, the same ones each time. Prints Markdown.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
from data import make_triples

from manyhands import Annotations
from manyhands.annotations import keep_one
from manyhands.io.judgements import code_columns

N_LABELS, N_CLASSES = 10_000_000, 8
JSON_BYTES = 100_000_000
PROCESSES = 3
COLUMNS = ("task", "worker", "label")


def load(path: Path) -> int:
    """The reader; how many labels it found."""
    from manyhands.io import read_export

    return read_export(path).annotations.n_annotations


def codes_alone(path: Path) -> int:
    """What the reader cannot do without: parsing, codes, one row per pair, sorting. No ledger and no checks."""
    coded = list(code_columns(_read_polars(path).to_dict()).values())
    codes = [column.codes for column in coded]
    keep = keep_one(codes[0], codes[1], len(coded[1].values))
    if not keep.all():
        codes = [column[keep] for column in codes]
    ids = [coded.pop(0).values.to_numpy() for _ in COLUMNS]
    return Annotations.from_codes(codes, ids).n_annotations


def pandas(path: Path) -> int:
    """The usual way: every column factorised, in order of appearance."""
    import pandas as pd

    frame = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.read_parquet(path)
    return min(len(pd.factorize(frame.pop(column))[0]) for column in COLUMNS)


def polars(path: Path) -> int:
    """Categories of polars; their codes come from one pool, so they are neither dense nor sorted."""
    frame = _read_polars(path).with_columns(pl.all().cast(pl.Categorical).to_physical())
    return frame.height


def json_uncollected(path: Path) -> int:
    """The same while Python does not look for cycles: of the usual time, most is its looking."""
    gc.disable()
    return json_alone(path)


def json_alone(path: Path) -> int:
    """Parsing and nothing else, from bytes in memory."""
    content = path.read_bytes()
    clock.start()
    parsed = orjson.loads(content)
    clock.stop()
    return sum(len(task["annotations"]) for task in parsed)


class Clock:
    """Seconds on the wall and of all cores together; the second tell more where others use the machine too."""

    def start(self) -> None:
        self.begin = time.perf_counter(), time.process_time()
        self.taken: dict[str, float] = {}

    def stop(self) -> None:
        if not self.taken:  # an engine that stopped it before did so for a reason
            now = time.perf_counter(), time.process_time()
            self.taken = dict(zip(("seconds", "cpu"), (end - begin for end, begin in zip(now, self.begin))))


clock = Clock()
ENGINES: dict[str, Callable[[Path], int]] = {
    "manyhands.io.read_export": load,
    "codes alone": codes_alone,
    "polars, Categorical": polars,
    "pandas, factorize": pandas,
    "orjson.loads": json_alone,
    "orjson.loads, gc off": json_uncollected,
}


def table(folder: Path) -> None:
    """Ten million rows of text: two million items, 3,162 workers, eight labels, in random order; into codes and ids."""
    print(f"## Long tables\n\n{table.__doc__}\n")
    codes = zip(COLUMNS, make_triples(N_LABELS, N_CLASSES), (8, 4, 1))
    text = [pl.format(f"{name}_{{}}", pl.Series(c).cast(pl.String).str.zfill(width)) for name, c, width in codes]
    frame = pl.select(**dict(zip(COLUMNS, text)), eager=True)
    frame.write_csv(folder / "labels.csv")
    frame.write_parquet(folder / "labels.parquet")
    del frame, text
    _row("file", "engine", "seconds", "CPU s", "peak MB")
    _row(*["---"] * 5)
    for path in (folder / "labels.csv", folder / "labels.parquet"):
        size = f"{path.suffix[1:]}, {path.stat().st_size / 1e6:.0f} MB"
        for engine in ("manyhands.io.read_export", "codes alone", "polars, Categorical", "pandas, factorize"):
            needed = {"pandas, factorize": ["pandas"] + ["pyarrow"] * (path.suffix == ".parquet")}.get(engine, [])
            _row(size, engine, *(_cells(measure(engine, path)) if _are_there(needed) else ("not installed", "", "")))


def export(folder: Path) -> None:
    """An export of Label Studio of 100 MB, three annotations per task, beside parsing it with orjson and no more. The
    reader keeps the collector off while it parses, so the second ratio is the one between like and like."""
    print(f"## JSON exports\n\n{export.__doc__}\n")
    path = folder / "export.json"
    _write_export(path)
    engines = ("orjson.loads", "orjson.loads, gc off", "manyhands.io.read_export")
    usual, quick, ours = runs = [measure(engine, path) for engine in engines]
    assert ours["labels"] == usual["labels"], "the reader and the generator disagree"
    _row("engine", "seconds", "CPU s", "peak MB", "of orjson.loads", "of it with gc off")
    _row(*["---"] * 6)
    for engine, run in zip(engines, runs):
        _row(engine, *_cells(run), *(f"{run['seconds'] / base['seconds']:.2f}x" for base in (usual, quick)))


SECTIONS: dict[str, Callable[[Path], None]] = {"table": table, "json": export}


def _write_export(path: Path) -> None:
    """Tasks until the file is long enough; seeded, so that it is the same one each time."""
    written = 0
    with path.open("wb") as file:
        for task in _tasks(np.random.default_rng(0)):
            written += file.write((b"[" if written == 0 else b",\n") + orjson.dumps(task))
            if written >= JSON_BYTES:
                break
        file.write(b"]")


def _tasks(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    words = ["the", "parcel", "arrived", "late", "broken", "great", "thanks", "refund", "please", "not", "shown", "ok"]
    number = 0
    while True:
        number += 1
        workers = rng.choice(500, 3, replace=False).tolist()
        yield {
            "id": number,
            "inner_id": number,
            "project": 7,
            "data": {"text": " ".join(rng.choice(words, 12)), "ref": f"item-{number}"},
            "meta": {},
            "created_at": "2026-01-05T09:00:00.000000Z",
            "updated_at": "2026-01-05T10:00:00.000000Z",
            "total_annotations": 3,
            "cancelled_annotations": 0,
            "total_predictions": 1,
            "annotations": [_annotation(number, worker, rng) for worker in workers],
            "drafts": [],
            "predictions": [{"id": number, "model_version": "m-1", "score": 0.61, "result": _result(rng)}],
        }


def _annotation(task: int, worker: int, rng: np.random.Generator) -> dict[str, Any]:
    number = 1000 * task + worker
    time_of_day = f"2026-01-05T{number % 24:02}:{number % 60:02}:00.000000Z"
    return {
        "id": number,
        "completed_by": worker,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": time_of_day,
        "updated_at": time_of_day,
        "draft_created_at": time_of_day,
        "lead_time": round(float(rng.gamma(3.0, 3.0)), 3),
        "task": task,
        "project": 7,
        "unique_id": f"6f0f2b1e-0000-0000-0000-{number:012}",
        "import_id": None,
        "last_action": None,
        "parent_prediction": None,
        "parent_annotation": None,
        "last_created_by": None,
        "result": _result(rng),
    }


def _result(rng: np.random.Generator) -> list[dict[str, Any]]:
    choice = ("negative", "neutral", "positive")[rng.integers(3)]
    control = {"from_name": "sentiment", "to_name": "text", "type": "choices", "origin": "manual"}
    return [{"id": f"r{rng.integers(10**9):09}", **control, "value": {"choices": [choice]}}]


def measure(engine: str, path: Path) -> dict[str, float]:
    """Medians over several processes."""
    command = [sys.executable, __file__, "--one", engine, str(path)]
    runs = []
    for _ in range(PROCESSES):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{engine} on {path.name} failed:\n{done.stderr}")
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def measure_here(engine: str, path: Path) -> dict[str, float]:
    """Time, and the most memory that this process ever had; Linux tells."""
    if engine == "manyhands.io.read_export":
        import manyhands.io  # noqa: F401
    elif engine.startswith("pandas"):
        import pandas  # noqa: F401
    gc.collect()
    clock.start()
    labels = ENGINES[engine](path)
    clock.stop()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return clock.taken | {"peak_mb": int(status["VmHWM"].split()[0]) * 1024 / 1e6, "labels": labels}


def _read_polars(path: Path) -> pl.DataFrame:
    if path.suffix == ".csv":
        return pl.read_csv(path, columns=list(COLUMNS), infer_schema=False)
    return pl.read_parquet(path, columns=list(COLUMNS))


def _are_there(libraries: list[str]) -> bool:
    return all(importlib.util.find_spec(library) for library in libraries)


def _cells(run: dict[str, float]) -> tuple[str, ...]:
    return f"{run['seconds']:.2f}", f"{run['cpu']:.2f}", f"{run['peak_mb']:,.0f}"


def _row(*cells: Any) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main(chosen: list[str]) -> None:
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        sys.exit(f"There is no section {', '.join(unknown)}. There are: {', '.join(SECTIONS)}.")
    for name, section in SECTIONS.items():
        if not chosen or name in chosen:
            with tempfile.TemporaryDirectory() as folder:
                section(Path(folder))
            print(flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_here(sys.argv[2], Path(sys.argv[3]))))
    else:
        main(sys.argv[1:])
