"""Throughput and memory of training on one machine, for docs/scale.md.

    python benchmarks/training_scale.py [--seconds 4] [--items 1000000] [--only crowd-layer]

Random features and labels (3 per item, 1,000 workers, 4 classes), default settings of every method. Each measurement is
a process of its own: every stage of a fit ends when its steps have taken some CPU seconds, and the rows in them are
counted; "whole fit" runs a method to its end with one epoch, on a mapped file. CPU seconds (of all threads) stand
beside wall seconds, since a machine may be shared. The features are first written to a temporary folder: 4 bytes x
items x (300 + 768). Prints Markdown, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

N_WORKERS, N_CLASSES, PER_ITEM, WIDTHS = 1000, 4, 3, (300, 768)
SIMPLE = ("two-stage", "crowd-layer", "spee-lfc", "aggnet", "max-mig", "conal")  # one training in a fit
STAGED = ("self-crowd", "crowding", "iced")  # several, and inference on all rows between them
SMALL = {"neucrowd": 1_000}  # designed for a few hundred items
FIRST = {"two-stage": {"aggregator": "majority-vote"}}


class _EnoughError(Exception):
    """The time of a measurement is over."""


def main(seconds: float, n_large: int, only: str | None) -> None:
    middle, small = n_large // 10, n_large // 100
    with tempfile.TemporaryDirectory() as folder:
        for width in WIDTHS:
            _write_features(Path(folder) / f"{width}.npy", n_large, width)
        jobs = [_job("crowd-layer", n, 300, 64) for n in (middle, n_large)]
        jobs += [_job(method, n, 768, 64) for method in SIMPLE for n in (middle, n_large)]
        jobs += [_job("crowd-layer", middle, 768, 1024, threads) for threads in (1, 2)]
        jobs += [_job(method, small, 768, 64) for method in STAGED]
        jobs += [_job(method, n, 768, 64) for method, n in SMALL.items()]
        jobs += [_job("crowd-layer", n_large, 768, 64, whole=True, mapped=True)]
        found = []
        for job in jobs:
            if only is None or job["method"] == only:
                found.append(job | _run(job | {"seconds": seconds, "folder": folder}))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    print(_table(found))
    print("\n" + json.dumps({"load": os.getloadavg()[0], "rows": found}))


def _job(
    method: str, n: int, width: int, batch: int, threads: int = 1, *, whole: bool = False, mapped: bool = False
) -> dict[str, Any]:
    return {
        "method": method,
        "n_items": n,
        "width": width,
        "batch_size": batch,
        "threads": threads,
        "whole": whole,
        "mapped": mapped,
    }


def _write_features(path: Path, n: int, width: int) -> None:
    rng, block = np.random.default_rng(0), 10_000
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, width))
    for first in range(0, n, block):
        out[first : first + block] = rng.random((len(out[first : first + block]), width), np.float32) - 0.5
    out.flush()


def _run(job: dict[str, Any]) -> dict[str, Any]:
    limit = 600 if job["whole"] else 300
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(job["threads"]))
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", json.dumps(job)],
            capture_output=True,
            text=True,
            timeout=limit,
            env=os.environ | threads,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {limit:.0f} s"}
    lines = done.stdout.splitlines()
    return dict(json.loads(lines[-1])) if lines else {"error": done.stderr.splitlines()[-1][:200]}


def _measure(job: dict[str, Any]) -> dict[str, Any]:
    """One measurement, in this process."""
    import torch

    from manyhands import Annotations, registry

    torch.set_num_threads(job["threads"])
    warnings.simplefilter("ignore")
    rng, n = np.random.default_rng(0), job["n_items"]
    X = np.load(Path(job["folder"]) / f"{job['width']}.npy", mmap_mode="r")[:n]
    X = X if job["mapped"] else np.array(X)
    worker = (rng.integers(0, N_WORKERS, (n, 1)) + np.arange(PER_ITEM) * (N_WORKERS // PER_ITEM)) % N_WORKERS
    label = rng.integers(0, N_CLASSES, n * PER_ITEM)
    ids = {"item_ids": np.arange(n), "worker_ids": np.arange(N_WORKERS), "classes": np.arange(N_CLASSES)}
    votes = Annotations(np.repeat(np.arange(n), PER_ITEM), worker.ravel(), label, **ids)
    model = registry.create(job["method"]).set_params(batch_size=job["batch_size"], random_state=0)
    model.set_params(**FIRST.get(job["method"], {}))
    stages: dict[str, dict[str, float]] = {}
    peak = _watch_memory()
    before = peak()
    if job["whole"]:
        model.set_params(max_epochs=1, patience=None)
    else:
        _count(stages, job["seconds"])
    began, cpu = time.perf_counter(), time.process_time()
    model.fit(X, votes, verbose=0)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    memory = {"anonymous_mb": peak(), "before_mb": before, "X_mb": X.nbytes / 1e6}
    return {"stages": stages, "fit_seconds": seconds, "fit_cpu": cpu} | memory


def _count(stages: dict[str, dict[str, float]], seconds: float) -> None:
    """Count the rows in the steps of every stage; a stage ends when its steps have taken some CPU seconds."""
    from manyhands.nn import train as loop

    whole = loop.train

    def counting(step: Callable[[Any], Any], batches: Any, *, what: str = "training", **more: Any) -> Any:
        own = stages.setdefault(re.sub(r"[- ]?\d+", "", what), {"rows": 0, "seconds": 0.0, "cpu": 0.0})
        first: tuple[float, float] | None = None

        def counted(batch: Any) -> Any:
            nonlocal first
            if first is None:
                first = time.perf_counter(), time.process_time()
            elif own["cpu"] + time.process_time() - first[1] > seconds:
                raise _EnoughError
            found = step(batch)
            own["rows"] += len(getattr(batch, "item", batch[0] if isinstance(batch, tuple) else batch))
            return found

        try:
            return whole(counted, batches, what=what, **more)
        except _EnoughError:
            return [{"loss": 0.0, "heldout": 0.0}]
        finally:
            if first is not None:
                own["seconds"] += time.perf_counter() - first[0]
                own["cpu"] += time.process_time() - first[1]

    loop.train = counting


def _watch_memory() -> Callable[[], float]:
    """Return a function that tells the highest anonymous memory so far in MB; pages of a mapped file are not in it."""
    highest = [0.0]

    def look() -> float:
        text = Path("/proc/self/status").read_text(encoding="ascii")
        highest[0] = max(highest[0], int(text.split("RssAnon:")[1].split()[0]) / 1e3 * 1.024)
        return highest[0]

    def keep_looking() -> None:
        while True:
            look()
            time.sleep(0.02)

    threading.Thread(target=keep_looking, daemon=True).start()
    return look


def _table(found: list[dict[str, Any]]) -> str:
    columns = ["method", "items", "features", "batch", "threads", "stage", "rows / s", "rows / CPU s", "labels / CPU s"]
    lines = [f"| {' | '.join([*columns, 'memory MB', 'X MB'])} |", "|---" * (len(columns) + 2) + "|"]
    for one in found:
        start = f"| {one['method']} | {one['n_items']:,} | {one['width']} | {one['batch_size']} | {one['threads']} |"
        if "error" in one:
            lines.append(f"{start} {one['error']} | | | | | |")
            continue
        end = f"{one['anonymous_mb']:,.0f} | {0 if one['mapped'] else one['X_mb']:,.0f} |"
        stages = one["stages"] or {"whole fit": {"rows": one["n_items"]}}
        for name, own in stages.items():
            wall, cpu = own.get("seconds", one["fit_seconds"]), own.get("cpu", one["fit_cpu"])
            rate = own["rows"] / cpu
            lines.append(f"{start} {name} | {own['rows'] / wall:,.0f} | {rate:,.0f} | {rate * PER_ITEM:,.0f} | {end}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--only")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is None:
        main(given.seconds, given.items, given.only)
    else:
        print(json.dumps(_measure(json.loads(given.one))))
