"""The labels of a run on shards: read into memory, or coded into a folder of the cache, which the next run finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyhands.aggregation.base import Aggregator
from manyhands.io.overview import describe_reading
from manyhands.sharded.labels import InMemoryShards, ShardedLabels
from manyhands.workflows.options import ExportOptions, require_labels
from manyhands.workflows.routes import IN_SHARDS, Route
from manyhands.workflows.step_times import StepTimes


@dataclass
class SourceLabels:
    """Labels in shards, with the account of where they come from.

    Attributes
    ----------
    labels : ShardedLabels
        The labels.
    described : dict
        What was read, as in ``summary.json``.
    log : object or None, default=None
        Record of finished passes, with which a killed run continues; None in memory.
    course : dict
        What depends on the machine: bytes of the cache, whether codes were found in it.
    """

    labels: ShardedLabels
    described: dict[str, Any]
    log: Any = None
    course: dict[str, Any] = field(default_factory=dict)

    def tell_resumed(self, tell: Callable[[str], None]) -> None:
        """Report how many passes were taken from the record of an earlier run.

        Parameters
        ----------
        tell : callable
            Takes a sentence.
        """
        if self.log is not None:
            for note in self.log.notes:
                tell(note)
            self.course["passes_replayed"] = self.log.n_replayed
            if self.log.n_replayed:
                tell(f"{self.log.n_replayed} passes were taken from the record of an earlier run that was ended.")

    def finish(self) -> None:
        """Remove the record of passes, after the files were written."""
        if self.log is not None:
            self.log.remove()


@contextmanager
def open_labels(
    files: Sequence[str],
    export: ExportOptions,
    route: Route,
    method: Aggregator,
    cache: str | Path | None,
    tell: Callable[[str], None],
    times: StepTimes,
) -> Iterator[SourceLabels]:
    """Context manager for the labels of a run; a folder of the cache is locked for its duration.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.
    route : Route
        In memory or out of core.
    method : Aggregator
        The method, whose passes are recorded.
    cache : str, Path or None
        Folder for the codes of exports; None for that of this user.
    tell : callable
        Takes a sentence about every step.
    times : StepTimes
        Receives the seconds of the step "read".

    Yields
    ------
    SourceLabels
    """
    if route.kind == IN_SHARDS:
        with times.step("read"):
            reading = export.read(list(files))
            require_labels(reading)
            labels = InMemoryShards.from_annotations(reading.annotations)
        yield SourceLabels(labels, describe_reading(reading))
        return
    raise NotImplementedError
