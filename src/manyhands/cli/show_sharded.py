"""What `manyhands aggregate` prints about a run on shards."""

from __future__ import annotations

from manyhands.cli.printing import print_json
from manyhands.cli.show import echo, show_figures
from manyhands.io.messages import counted
from manyhands.io.read.ledger import Ledger
from manyhands.validation import show_size
from manyhands.workflows import ShardedRun


def show_sharded(run: ShardedRun, *, as_json: bool, quiet: bool) -> None:
    """Print a run on shards: one JSON object, or its figures for people.

    Parameters
    ----------
    run : ShardedRun
        The run.
    as_json : bool
        Print the summary as JSON, with the course of the run.
    quiet : bool
        Print nothing.
    """
    if as_json:
        print_json(run.summary | {"reason": run.route.reason, "course": run.course})
        return
    if quiet:
        return
    columns = ", ".join(f"{role} = {name}" for role, name in run.summary["columns"].items())
    echo(f"{run.summary['source']}: {run.summary['format']}" + (f" ({columns})" if columns else ""))
    echo(str(Ledger(**run.summary["ledger"])))
    show_figures(run.summary, run.tables["workers.csv"])
    echo(_course(run))
    echo(f"Written to {run.written.folder}: {run.written}")


def _course(run: ShardedRun) -> str:
    """Return passes, seconds of each step and peak memory as one line."""
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in run.course["seconds"].items())
    peak = max(run.course["peak_bytes"].values(), default=None)
    memory = "" if peak is None else f"; at most {show_size(peak)} of memory"
    counts = f"{counted(run.summary['n_shards'], 'shard')}, {counted(run.summary['n_iter'], 'pass')}"
    return f"{run.route.kind.capitalize()}, {counts}: {steps}{memory}"
