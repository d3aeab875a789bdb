"""One measurement in a process of its own: prints a JSON object with seconds and memory.

python benchmarks/measure.py ENGINE METHOD N_LABELS N_CLASSES
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from data import make_triples

import manyhands as mh
from manyhands.em import kernels

ITERATIONS = 20
REPEATS = {10_000: 30, 50_000: 10, 100_000: 10, 1_000_000: 5}


def manyhands(method: str, n_labels: int, n_classes: int) -> dict[str, Any]:
    """From codes in random order to labels: building the Annotations is part of the time."""
    triples = make_triples(n_labels, n_classes)
    model, annotations = _create(method), mh.Annotations.from_triples(*triples, duplicates="all")
    seconds, _ = _best_of_both(
        lambda: model.fit(mh.Annotations.from_triples(*triples, duplicates="all")), REPEATS[n_labels]
    )
    fit, cpu = _best_of_both(lambda: model.fit(annotations), REPEATS[n_labels])
    return {"seconds": seconds, "fit_seconds": fit, "fit_cpu": cpu, "iterations": ITERATIONS}


def crowd_kit(method: str, n_labels: int, n_classes: int) -> dict[str, Any]:
    """The peer as documented: a data frame with the columns task, worker, label."""
    import pandas as pd
    from crowdkit.aggregation import GLAD, MACE, DawidSkene, MajorityVote, OneCoinDawidSkene

    frame = pd.DataFrame(dict(zip(("task", "worker", "label"), make_triples(n_labels, n_classes))))
    iterations = 2 if method == "glad" else ITERATIONS
    model = {
        "dawid-skene": lambda: DawidSkene(n_iter=iterations, tol=0),
        "one-coin": lambda: OneCoinDawidSkene(n_iter=iterations, tol=0),
        "mace": lambda: MACE(n_restarts=1, n_iter=iterations, random_state=0),
        "majority-vote": MajorityVote,
        "glad": lambda: GLAD(n_iter=iterations, tol=0, silent=True),
    }[method]()
    seconds, cpu = _best_of_both(lambda: model.fit_predict(frame), 2 if n_labels <= 10_000 else 1)
    return {"seconds": seconds, "cpu": cpu, "iterations": iterations}


def passes(method: str, n_labels: int, n_classes: int) -> dict[str, Any]:
    """Seconds per pass: the difference between a long and a short fit, so that what happens once cancels out."""
    annotations = mh.Annotations.from_triples(*make_triples(n_labels, n_classes), duplicates="all")
    few, many = 3, 23
    times = [_best(lambda n=n: _create(method, n).fit(annotations), 5) for n in (few, many)]
    return {"seconds": (times[1] - times[0]) / (many - few)}


def bound(method: str, n_labels: int, n_classes: int) -> dict[str, Any]:
    """Nanoseconds of CPU time per label of one pass, and of its gathers and scatters alone, on as many threads and like
    tables; wall time too, which depends on whether the system gives the second thread a core of its own."""
    packed = kernels.pack(mh.Annotations.from_triples(*make_triples(n_labels, n_classes), duplicates="all"))
    table = np.log(np.random.default_rng(0).dirichlet(np.ones(n_classes), (packed.n_workers, n_classes)))
    rows, prior = kernels._on_cache_lines(table.reshape(-1, n_classes)), np.zeros(n_classes)
    counts = [kernels._aligned_zeros(rows.shape) for _ in packed.shards]
    library, sums = _compile_bound(), np.zeros(n_classes)

    def run(form: Any, shard: int) -> None:
        first, last = (ctypes.c_int64(edge) for edge in packed.shards[shard])
        arrays = (packed.code, packed.start, rows, counts[shard], sums)
        form(n_classes, first, last, *(_pointer(array) for array in arrays))

    forms = (library.label_by_label, library.block_by_block)
    with ThreadPoolExecutor(kernels.thread_count()) as pool:
        jobs = [lambda form=form: list(pool.map(run, [form] * len(counts), range(len(counts)))) for form in forms]
        jobs.append(lambda: kernels.em_pass(packed, table.transpose(0, 2, 1), prior))
        wall, cpu = ([1e9 * t / n_labels for t in times] for times in _in_turn(jobs, 15))
    return {"pass_ns": cpu[-1], "bound_ns": min(cpu[:-1]), "pass_wall": wall[-1], "bound_wall": min(wall[:-1])}


def large(method: str, n_labels: int, n_classes: int) -> dict[str, Any]:
    """Time and memory of a large fit; the input arrays are let go once the Annotations stand."""
    triples = make_triples(n_labels, n_classes)
    with _Watch() as building:
        begin = time.perf_counter()
        annotations = mh.Annotations.from_triples(*triples, duplicates="all")
        built = time.perf_counter() - begin
    del triples
    before = psutil.Process().memory_info().rss
    model = _create(method)
    with _Watch() as fitting:
        begin = time.perf_counter()
        model.fit(annotations)
        fitted = time.perf_counter() - begin
    extra = fitting.highest - before - model.posterior_.nbytes
    peak = max(building.highest, fitting.highest) / 1e9
    return {"build": built, "fit": fitted, "bytes_per_label": extra / n_labels, "peak_gb": peak}


class _Watch:
    """The highest resident size during a block, looked at every few milliseconds."""

    def __enter__(self) -> _Watch:
        self.highest, self._on = 0, True
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while self._on:
            self.highest = max(self.highest, psutil.Process().memory_info().rss)
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self._on = False
        self._thread.join()


def _create(method: str, iterations: int = ITERATIONS) -> Any:
    model = mh.registry.create(method)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=iterations, tol=0.0)
    return model


def _best(job: Callable[[], Any], repeats: int) -> float:
    """The shortest of several runs, after one to warm up where they are short."""
    if repeats > 3:
        job()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        job()
        times.append(time.perf_counter() - begin)
    return min(times)


def _best_of_both(job: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """The shortest wall time and the shortest CPU time (of all threads) of several runs."""
    if repeats > 3:
        job()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter(), time.process_time()
        job()
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    wall, cpu = (min(column) for column in zip(*times))
    return wall, cpu


def _in_turn(jobs: list[Callable[[], Any]], repeats: int) -> tuple[list[float], list[float]]:
    """The shortest wall and CPU times of several runs of each job, taken in turn, so that a busy moment meets all."""
    times = np.array([[_best_of_both(job, 1) for job in jobs] for _ in range(repeats)])
    wall, cpu = times.min(axis=0).T.tolist()
    return wall, cpu


def _compile_bound() -> ctypes.CDLL:
    target = Path(tempfile.mkdtemp()) / "bound.so"
    source = Path(__file__).with_name("bound.c")
    subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


ENGINES = {"manyhands": manyhands, "crowd-kit": crowd_kit, "passes": passes, "bound": bound, "large": large}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(ENGINES[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
