"""docs/results/scale.md and its figure, from the rows that huge.py measured."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"
MARKS = {2: ("o", "#0072B2"), 8: ("s", "#D55E00")}  # by number of classes; colour-blind-safe


def write_page(rows: Sequence[dict[str, Any]], limit: float) -> None:
    """Write the page and the figure.

    Parameters
    ----------
    rows : sequence of dict
        Figures of each run.
    limit : float
        Limit of memory in GB.
    """
    (FOLDER / "scale.md").write_text(page(rows, limit))
    draw(rows, FOLDER / "scale.svg")


def page(rows: Sequence[dict[str, Any]], limit: float) -> str:
    """The text of the page."""
    head = [
        "labels",
        "classes",
        "workers",
        "shards",
        "disk GB",
        "peak GB",
        "passes",
        "seconds",
        "ns per label",
        "CPU ns",
        "error",
    ]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for row in rows:
        cells = [
            f"10^{len(str(row['labels'])) - 1}",
            row["classes"],
            f"{row['workers']:,}",
            row["shards"],
            f"{row['disk_gb']:.2f}",
        ]
        cells += [f"{row['peak_gb']:.2f}", row["passes"], f"{row['fit_seconds']:.1f}"]
        cells += [
            f"{row['ns_per_label']:.1f}",
            f"{row['cpu_ns']:.1f}",
            "" if row["rms_z"] is None else f"{row['rms_z']:.2f}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    table = "\n".join(lines)
    return f"""# Out of core: from a million to a billion labels

Made by `make bench-huge` (`python benchmarks/huge.py --page`). Commit {rows[0]["commit"]}, {cpu()}, two threads, Python
{platform.python_version()}. The process that fits has a hard limit of {limit:g} GB for its data segment (RLIMIT_DATA).

Dawid-Skene on a simulated crowd: five labels per item, 20 iterations and the final pass. Block b of the crowd follows
from (seed, b) alone. *seconds*: wall time of all passes, reading from disk included. *ns per label*: wall time of a
pass divided by the number of labels; *CPU ns*: the same by CPU time of all threads. *error*: root mean square of the
difference between estimated and planted confusion matrices, in standard errors of counts of known truths, for workers
and classes with 100 labels or more; 1 is the least that is possible. *peak GB*: largest resident memory.

{table}

In every run the objective never fell, and a pass with one thread and with two gave the same bits. The time of a pass
is proportional to the number of labels once the tables of all workers are small beside them; below that, the tables
and the M step are most of it.

![Seconds of a pass by number of labels, for 2 and 8 classes, with a line of slope 1](scale.svg)
"""


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Seconds of a pass by number of labels."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.fonttype"] = "none"
    rcParams["svg.hashsalt"] = "manyhands"
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axis = figure.subplots()
    grown = [row for row in rows if row["workers"] == rows[0]["workers"]]
    for n_classes in sorted({row["classes"] for row in grown}):
        own = sorted(
            (row["labels"], row["fit_seconds"] / row["passes"]) for row in grown if row["classes"] == n_classes
        )
        mark, colour = MARKS.get(n_classes, ("^", "#009E73"))
        axis.plot(*zip(*own), marker=mark, color=colour, label=f"{n_classes} classes")
        slope = [(x, own[-1][1] * x / own[-1][0]) for x, _ in own]
        axis.plot(*zip(*slope), linestyle=":", color=colour, linewidth=1)
    axis.set(xscale="log", yscale="log", xlabel="labels", ylabel="seconds per pass, two threads")
    axis.plot([], [], linestyle=":", color="gray", label="proportional to the labels")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def commit() -> str:
    """Short name of the commit, or "unknown" outside a repository."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER)
    return done.stdout.strip() or "unknown"


def cpu() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"
