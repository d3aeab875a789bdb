"""Dawid-Skene on 10^6 to 10^9 labels, out of core, on two cores, under a hard limit of memory.

    python benchmarks/huge.py [--labels 1e6 1e7 1e8 1e9] [--classes 2 8] [--workers 20000 100000] [--limit 4]
                              [--folder DIR] [--page]

For each number of labels and classes (and for the largest crowd with each further number of workers): writes a
simulated crowd to a code folder, runs 20 passes of EM in a process whose data segment is limited (RLIMIT_DATA), and
checks that the planted confusion matrices are found, that the objective never falls, and that one and two threads give
the same bits. The disk that is needed is printed first; everything that was written is removed, also after an error.
--page writes docs/results/scale.md and its figure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from huge_crowd import LABELS_PER_ITEM
from huge_page import commit, write_page

HERE = Path(__file__).resolve().parent
PASSES = 20
MAX_ERROR = 1.5  # standard errors; 1 is what known truths would give
SPARE = 1.2  # free disk asked for, as a multiple of what is needed


def main() -> int:
    options = parse_options()
    sizes = [int(float(text)) for text in options.labels]
    need = max(sizes) * 4 + max(sizes) // LABELS_PER_ITEM
    print(f"Disk: {need / 1e9:.2f} GB for the codes of {max(sizes):.0e} labels, removed at the end.")
    rows, measured = [], commit()
    with tempfile.TemporaryDirectory(prefix="manyhands-huge-", dir=options.folder) as folder:
        free = shutil.disk_usage(folder).free
        if free < SPARE * need:
            print(f"{folder} has {free / 1e9:.2f} GB left; name another folder with --folder.", file=sys.stderr)
            return 5
        for n_classes in options.classes:
            for n_labels in sizes:
                rows.append(one(n_labels, n_classes, options.workers[0], options, Path(folder)))
        for n_workers in options.workers[1:]:
            rows += [one(max(sizes), n_classes, n_workers, options, Path(folder)) for n_classes in options.classes]
    rows = [row | {"commit": measured} for row in rows]
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    if options.page:
        write_page(rows, options.limit)
    return 0 if all(row["ok"] for row in rows) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", nargs="+", default=["1e6", "1e7", "1e8", "1e9"])
    parser.add_argument("--classes", nargs="+", type=int, default=[2, 8])
    parser.add_argument("--workers", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--limit", type=float, default=4.0, help="hard limit of memory in GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--json", default=None)
    parser.add_argument("--page", action="store_true")
    return parser.parse_args()


def one(n_labels: int, n_classes: int, n_workers: int, options: argparse.Namespace, where: Path) -> dict[str, Any]:
    """Write a crowd, fit it and check the result, each in a process of its own; the crowd is removed afterwards."""
    folder = where / f"{n_labels}-{n_classes}-{n_workers}"
    crowd = [str(n_labels), str(n_classes), str(n_workers), str(folder)]
    try:
        written = process(["write", *crowd], options)
        fitted = process(["fit", *crowd, str(PASSES)], options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    row = {"labels": n_labels, "classes": n_classes, "workers": n_workers, **written, **fitted}
    row["ok"] = row["rises"] and row["same_bits"] and (row["rms_z"] or 1.0) < MAX_ERROR
    error = "too few to compare" if row["rms_z"] is None else f"{row['rms_z']:.2f} standard errors"
    sentences = [
        f"{n_labels:.0e} labels, {n_classes} classes, {n_workers} workers: written in {row['write_seconds']:.0f} s",
        f"{row['passes']} passes in {row['fit_seconds']:.1f} s",
        f"{row['ns_per_label']:.1f} ns per label and pass (CPU {row['cpu_ns']:.1f})",
        f"peak {row['peak_gb']:.2f} GB",
        f"error of the matrices: {error}",
        f"objective {'never falls' if row['rises'] else 'FELL'}",
        f"one and two threads: {'same bits' if row['same_bits'] else 'DIFFERENT BITS'}",
    ]
    print("; ".join(sentences), flush=True)
    return row


def process(arguments: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Run a step under the limit of memory and return the figures that it prints."""
    limit = {"HUGE_LIMIT": str(int(options.limit * 1e9)), "MANYHANDS_THREADS": str(options.threads)}
    done = subprocess.run(
        [sys.executable, str(HERE / "huge_steps.py"), *arguments],
        env=os.environ | limit | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
