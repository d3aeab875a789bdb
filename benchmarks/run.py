"""Speed and memory beside the peers, in one run: `make bench`, or `python benchmarks/run.py SECTION ...`.

Every measurement is a process of its own; ratios are between medians of three of them. Prints Markdown.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data import make_triples

HERE = Path(__file__).parent
PROCESSES = 3


def main(chosen: list[str]) -> None:
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        sys.exit(f"There is no section {', '.join(unknown)}. There are: {', '.join(SECTIONS)}.")
    print(
        f"Commit {_output('git', 'rev-parse', '--short', 'HEAD')}, {_machine()}, Python {platform.python_version()}.\n"
    )
    for name, section in SECTIONS.items():
        if not chosen or name in chosen:
            section()
            print(flush=True)


def peers() -> None:
    """20 iterations, integer codes in random order, wall time unless CPU time is named. crowd-kit's time is that of
    `fit_predict` on a ready data frame; ours is `fit` on ready Annotations, the same with building the Annotations, and
    that without the compiled code."""
    _title("Beside crowd-kit", peers)
    heads = ("fit s", "ratio", "fit CPU s", "ratio", "with build s", "ratio", "plain path with build s", "ratio")
    _row("method", "labels", "classes", "crowd-kit s", "crowd-kit CPU s", *heads)
    _row(*["---"] * 13)
    cases = [("dawid-skene", n, k) for n in (10_000, 100_000, 1_000_000) for k in (2, 8)]
    cases += [("majority-vote", 1_000_000, 2), ("majority-vote", 1_000_000, 8)]
    cases += [("one-coin", 100_000, 8), ("mace", 10_000, 8)]
    for method, n, k in cases:
        peer = measure("crowd-kit", method, n, k)
        ours = measure("manyhands", method, n, k)
        plain = measure("manyhands", method, n, k, MANYHANDS_PLAIN="1")
        times = [(ours["fit_seconds"], peer["seconds"]), (ours["fit_cpu"], peer["cpu"])]
        times += [(ours["seconds"], peer["seconds"]), (plain["seconds"], peer["seconds"])]
        cells = (cell for t, theirs in times for cell in (f"{t:.4f}", f"{theirs / t:.0f}x"))
        _row(method, f"{n:,}", k, f"{peer['seconds']:.3f}", f"{peer['cpu']:.3f}", *cells)


def glad() -> None:
    """Seconds per EM iteration, building included; crowd-kit runs two, because each takes seconds."""
    _title("GLAD beside crowd-kit", glad)
    _row("labels", "crowd-kit s", "manyhands s", "ratio")
    _row(*["---"] * 4)
    for n in (10_000, 50_000):
        peer, ours = measure("crowd-kit", "glad", n, 2, processes=1), measure("manyhands", "glad", n, 2)
        each = [m["seconds"] / m["iterations"] for m in (peer, ours)]
        _row(f"{n:,}", f"{each[0]:.3f}", f"{each[1]:.5f}", f"{each[0] / each[1]:.0f}x")


def methods() -> None:
    """One pass of each EM method beside one of Dawid-Skene, a million labels; building is left out."""
    _title("Cost of a pass", methods)
    _row("method", "K = 2 ms", "of dawid-skene", "K = 8 ms", "of dawid-skene")
    _row(*["---"] * 5)
    base = {k: measure("passes", "dawid-skene", 1_000_000, k)["seconds"] for k in (2, 8)}
    for method in ("dawid-skene", "one-coin", "mace", "ibcc", "pooled-dawid-skene"):
        each = {k: measure("passes", method, 1_000_000, k)["seconds"] for k in (2, 8)}
        cells = [cell for k in (2, 8) for cell in (f"{1000 * each[k]:.2f}", f"{each[k] / base[k]:.2f}x")]
        _row(method, *cells)


def bound() -> None:
    """Nanoseconds of CPU time per label and pass, ten million labels, as many threads as cores, beside the gathers and
    scatters alone (the faster of two forms, compiled for this CPU), for each instruction set that the CPU supports."""
    _title("Distance to the limit", bound)
    names = ("avx512f", "avx2", "default")
    _row("classes", "gather + scatter ns", *(cell for name in names for cell in (f"{name} ns", "ratio")))
    _row(*["---"] * 8)
    there = json.loads(_output(sys.executable, "-c", _INSTRUCTION_SETS))
    for k in (2, 3, 4, 5, 8, 16, 50):
        found = {name: measure("bound", "dawid-skene", 10_000_000, k, MANYHANDS_SIMD=name) for name in there}
        least = min(m["bound_ns"] for m in found.values())
        cells = [
            cell
            for name in names
            for cell in (
                (f"{found[name]['pass_ns']:.2f}", f"{found[name]['pass_ns'] / found[name]['bound_ns']:.2f}x")
                if name in found
                else ("not measured", "")
            )
        ]
        _row(k, f"{least:.2f}", *cells)


_INSTRUCTION_SETS = """
import json
from manyhands.em import kernels
print(json.dumps(kernels._fused.instruction_sets()))
"""


def memory() -> None:
    """Dawid-Skene, 20 iterations; memory of the fit beyond the Annotations, and the peak of the process while building
    and fitting, the input arrays included until the Annotations stand."""
    _title("Large crowds", memory)
    _row("labels", "classes", "build s", "fit s", "fit bytes per label without the posterior", "peak GB")
    _row(*["---"] * 6)
    for n, k in ((10_000_000, 2), (10_000_000, 8), (100_000_000, 2), (100_000_000, 8)):
        m = measure("large", "dawid-skene", n, k, processes=1)
        cells = f"{m['build']:.2f}", f"{m['fit']:.1f}", f"{m['bytes_per_label']:.1f}", f"{m['peak_gb']:.2f}"
        _row(f"{n:,}", k, *cells)


def passes() -> None:
    """Passes until within 1e-6 of the optimum each reaches, and where the default rule stops; real crowds."""
    _title("Acceleration", passes)
    if not os.environ.get("MANYHANDS_DATA"):
        print("Skipped: MANYHANDS_DATA is not set.")
        return
    _row("data", "plain EM", "SQUAREM", "share", "rule stops at", "gap there", "optimum beside plain EM's")
    _row(*["---"] * 7)
    for name in ("agg/s_rel", "agg/web", "labelme", "music", "agg/fact_eval", "leaves", "agg/dogs", "snow2008/rte"):
        m = json.loads(_output(sys.executable, str(HERE / "convergence.py"), name))
        share = f"{m['fast'] / m['plain']:.2f}"
        _row(name, m["plain"], m["fast"], share, m["stop"], f"{m['gap']:.0e}", f"{m['optimum']:+.0e}")


def start_up() -> None:
    """CPU seconds of a fresh process."""
    _title("Starting up", start_up)
    _row("what", "CPU s")
    _row("---", "---")
    table = HERE / "small.csv"
    subprocess.run([sys.executable, str(HERE / "small.py"), str(table)], check=True)
    command = [str(Path(sys.executable).parent / "manyhands"), "aggregate", str(table), "-q"]
    jobs = {
        "import manyhands": [sys.executable, "-c", "import manyhands"],
        "import crowdkit.aggregation": [sys.executable, "-c", "import crowdkit.aggregation"],
        "manyhands aggregate, 10,000 labels, default method": command,
        "manyhands aggregate -m dawid-skene, 10,000 labels": [*command, "-m", "dawid-skene"],
    }
    for what, job in jobs.items():
        _row(what, f"{statistics.median(_cpu_seconds(job) for _ in range(PROCESSES)):.2f}")
    table.unlink()


def files() -> None:
    """From a CSV file of text to one of labels: whole processes, imports included. crowd-kit reads it with pandas, fits
    Dawid-Skene as it does by default, and writes the labels; `manyhands aggregate` also rates every worker and writes
    what it found of them. `--version` is the start of the program alone."""
    _title("From a file to labels", files)
    _row("labels", "classes", "what", "wall s", "CPU s", "crowd-kit's wall", "crowd-kit's CPU")
    _row(*["---"] * 7)
    ours = [sys.executable, "-m", "manyhands"]
    for n, k in ((100_000, 4), (1_000_000, 4)):
        with tempfile.TemporaryDirectory() as folder:
            table, out = Path(folder) / "labels.csv", Path(folder) / "out"
            _write_table(table, n, k)
            aggregate = [*ours, "aggregate", str(table), "-o", str(out), "--force", "-q"]
            jobs = {
                "crowd-kit, Dawid-Skene": [
                    sys.executable,
                    "-c",
                    _PEER_ON_FILE,
                    str(table),
                    str(out.with_suffix(".csv")),
                ],
                "manyhands aggregate": aggregate,
                "manyhands aggregate -m dawid-skene": [*aggregate, "-m", "dawid-skene"],
                "manyhands --version": [*ours, "--version"],
            }
            found = {what: _median_seconds(job) for what, job in jobs.items()}
        theirs = found["crowd-kit, Dawid-Skene"]
        for what, times in found.items():
            ratios = [f"{their / our:.1f}x" for their, our in zip(theirs, times)]
            _row(f"{n:,}", k, what, *(f"{t:.2f}" for t in times), *ratios)


_PEER_ON_FILE = """
import sys
import pandas
from crowdkit.aggregation import DawidSkene
labels = DawidSkene().fit_predict(pandas.read_csv(sys.argv[1]))
labels.rename("label").to_csv(sys.argv[2])
"""


def _write_table(path: Path, n_labels: int, n_classes: int) -> None:
    """The crowd of `data.make_triples` as text; a worker's repeated answers to an item stay out."""
    import polars as pl

    names = zip(("task", "worker", "label"), ("item", "w", "class"), make_triples(n_labels, n_classes), (7, 5, 1))
    columns = {
        column: pl.format(f"{name}{{}}", pl.Series(codes).cast(pl.String).str.zfill(width))
        for column, name, codes, width in names
    }
    pl.select(**columns, eager=True).unique(["task", "worker"], keep="first", maintain_order=True).write_csv(path)


SECTIONS: dict[str, Callable[[], None]] = {
    "peers": peers,
    "glad": glad,
    "methods": methods,
    "bound": bound,
    "memory": memory,
    "passes": passes,
    "start-up": start_up,
    "files": files,
}


def measure(engine: str, method: str, n: int, k: int, processes: int = PROCESSES, **env: str) -> dict[str, Any]:
    """The measurement whose time is the median over several processes."""
    command = [sys.executable, str(HERE / "measure.py"), engine, method, str(n), str(k)]
    runs = [json.loads(_output(*command, **env)) for _ in range(processes)]
    key = next(key for key in ("seconds", "pass_ns", "fit") if key in runs[0])
    return sorted(runs, key=lambda run: run[key])[len(runs) // 2]


def _output(*command: str, **env: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | env, cwd=HERE)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def _median_seconds(command: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command: medians over several processes, each for itself."""
    wall, cpu = [], []
    for _ in range(PROCESSES):
        begin = time.perf_counter()
        cpu.append(_cpu_seconds(command))
        wall.append(time.perf_counter() - begin)
    return statistics.median(wall), statistics.median(cpu)


def _cpu_seconds(command: list[str]) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _machine() -> str:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{models[0].split(':')[1].strip()}, {os.cpu_count()} cores"


def _title(title: str, section: Callable[[], None]) -> None:
    print(f"## {title}\n\n{section.__doc__}\n", flush=True)


def _row(*cells: Any) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
