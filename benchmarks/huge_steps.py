"""The steps of huge.py, each in a process of its own under a limit of memory; prints a JSON object with figures.

python benchmarks/huge_steps.py write N_LABELS N_CLASSES N_WORKERS FOLDER
python benchmarks/huge_steps.py fit N_LABELS N_CLASSES N_WORKERS FOLDER PASSES
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from huge_crowd import HugeCrowd

from manyhands import DawidSkene
from manyhands.em.noise import safe_log
from manyhands.sharded.code_folder import CodeFolder, CodeFolderWriter
from manyhands.sharded.fit import fit
from manyhands.sharded.passes import em_pass

_MIN_COUNT = 100.0  # expected labels of a worker on a class from which on a row of the matrix is compared


def write(crowd: HugeCrowd, folder: Path) -> dict[str, Any]:
    """Write the crowd to a code folder, block by block."""
    begin = time.perf_counter()
    with CodeFolderWriter(folder, np.arange(crowd.n_workers), np.arange(crowd.n_classes)) as writer:
        for number, (n_labels, codes, _) in enumerate(crowd.blocks()):
            writer.add_block(number, n_labels, codes)
        writer.finish({"rows": crowd.n_labels, "kept": crowd.n_labels})
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"write_seconds": time.perf_counter() - begin, "disk_gb": size / 1e9, "write_peak_gb": peak()}


def run(crowd: HugeCrowd, folder: Path, passes: int) -> dict[str, Any]:
    """Fit, and compare with what was planted."""
    labels = CodeFolder(folder)
    begin, cpu = time.perf_counter(), time.process_time()
    found = fit(DawidSkene(max_iter=passes, tol=0.0), labels)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    n_passes = found.n_iter + 1  # the last one, at the final parameters, is not counted as an iteration
    planted, expected = crowd.confusion(), found.counts.sum(axis=2)
    is_large = expected >= _MIN_COUNT
    spread = np.sqrt(planted * (1 - planted) / np.maximum(expected, 1)[:, :, None])
    z = ((found.confusion - planted) / spread)[is_large]
    tables = safe_log(found.confusion), safe_log(found.class_prior)
    bits = []
    for n_threads in (1, 2):
        os.environ["MANYHANDS_THREADS"] = str(n_threads)
        result = em_pass(labels, *tables)
        bits.append((result.counts.tobytes(), result.totals.tobytes(), result.evidence))
    history = np.array(found.history)
    return {
        "passes": n_passes,
        "shards": labels.n_shards,
        "fit_seconds": seconds,
        "fit_cpu": cpu,
        "ns_per_label": 1e9 * seconds / n_passes / crowd.n_labels,
        "cpu_ns": 1e9 * cpu / n_passes / crowd.n_labels,
        "peak_gb": peak(),
        "rms_z": float(np.sqrt(np.mean(z**2))) if is_large.any() else None,  # None: too few labels per worker
        "mean_error": float(np.mean(np.abs(found.confusion - planted))),
        "rises": bool(np.all(np.diff(history) >= -1e-9 * np.abs(history[1:]))),
        "same_bits": bits[0] == bits[1],
    }


def peak() -> float:
    """Largest resident size of this process so far, in GB; that of getrusage includes the parent's before the fork."""
    found = re.search(r"^VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / 1e9


def main() -> None:
    limit = int(os.environ["HUGE_LIMIT"])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    step, n_labels, n_classes, n_workers, folder, *rest = sys.argv[1:]
    crowd = HugeCrowd(int(n_labels), int(n_classes), int(n_workers), seed=20261118)
    figures = write(crowd, Path(folder)) if step == "write" else run(crowd, Path(folder), int(rest[0]))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
