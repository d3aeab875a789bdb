"""The labels of a run on shards: read into memory, or coded into a folder of the cache, which the next run finds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyhands.aggregation.base import Aggregator
from manyhands.datasets.fetching import cache_folder
from manyhands.exceptions import CrowdWarning, DownloadError, OutputExistsError, ParameterError
from manyhands.io.overview import describe_reading
from manyhands.io.stream.cache import PASSES, cache_entries
from manyhands.io.stream.ingest import stream_to_codes
from manyhands.sharded.code_files import CodeFolder
from manyhands.sharded.fits import method_name
from manyhands.sharded.labels import InMemoryShards, ShardedLabels
from manyhands.sharded.layout import N_BLOCKS
from manyhands.sharded.pass_log import PassLog
from manyhands.validation import show_size
from manyhands.workflows.finding import shown_path
from manyhands.workflows.options import ExportOptions, require_labels
from manyhands.workflows.routes import IN_SHARDS, Route
from manyhands.workflows.shard_limits import (
    check_disk,
    check_memory_of_shards,
    disk_for_codes,
    disk_for_passes,
    limits_named,
)
from manyhands.workflows.step_times import StepTimes
from manyhands.writing.locks import held

_MOST_FOR_READING = 4 << 30  # bytes; more does not make reading in parts faster
_VOTE = "majority-vote"

Tell = Callable[[str], None]


@dataclass
class SourceLabels:
    """Labels in shards, with the account of where they come from.

    Attributes
    ----------
    labels : ShardedLabels
        The labels, in the shards of the fit.
    items : ShardedLabels
        The same labels for the results of items, in shards that may be smaller: results of an item do not depend on
        the shard that it is in.
    described : dict
        What was read, as in ``summary.json``.
    log : PassLog or None, default=None
        Record of finished passes, with which a killed run continues; None in memory.
    course : dict
        What depends on the machine: folder and bytes of the cache, whether codes were found in it.
    """

    labels: ShardedLabels
    items: ShardedLabels
    described: dict[str, Any]
    log: PassLog | None = None
    course: dict[str, Any] = field(default_factory=dict)

    def tell_resumed(self, tell: Tell) -> None:
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
                passes = "1 pass was" if self.log.n_replayed == 1 else f"{self.log.n_replayed} passes were"
                rest = f"{self.log.n_computed} {'was' if self.log.n_computed == 1 else 'were'} computed"
                tell(f"{passes} taken from the record of a run that did not end; {rest}.")

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
    tell: Tell,
    times: StepTimes,
) -> Iterator[SourceLabels]:
    """Context manager for the labels of a run; the record of its passes is locked for its duration.

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
        yield SourceLabels(labels, labels, describe_reading(reading))
        return
    place = codes_folder(cache)
    _refuse_within(place, files)
    with limits_named(place, route.choice.allowed), _resumable(tell):
        with times.step("read"):
            codes, course = _coded(files, export, route, method, place, tell)
        check_memory_of_shards(codes, method_name(method), route.choice.allowed)
        check_disk(place, disk_for_passes(codes), "The records of passes", "Name another folder with --cache.")
        log = PassLog.of(place / PASSES, method, codes)
        with _alone(log):
            yield SourceLabels(codes, _in_blocks(codes), _describe(files, codes), log, course)


@contextmanager
def _resumable(tell: Tell) -> Iterator[None]:
    """Say how an interrupted run goes on."""
    try:
        yield
    except KeyboardInterrupt:
        tell("Codes and passes that are finished stay in the cache: the same command goes on from here.")
        raise


def _refuse_within(place: Path, files: Sequence[str]) -> None:
    """Refuse a cache among the files of the export, where the next run would read it as labels."""
    for name in files:
        if Path(name).is_dir() and place.resolve().is_relative_to(Path(name).resolve()):
            raise ParameterError(
                f"The cache {place} is within {name}, whose files are read. Name another with --cache."
            )


def _in_blocks(codes: CodeFolder) -> CodeFolder:
    """Return the same labels in the smallest shards, whose results need the least memory."""
    blocks = copy(codes)
    blocks.n_shards = N_BLOCKS
    return blocks


def codes_folder(cache: str | Path | None) -> Path:
    """Return the folder for the codes of exports.

    Parameters
    ----------
    cache : str, Path or None
        The folder that the caller named; None for ``codes`` in the cache of this user.

    Returns
    -------
    Path

    Raises
    ------
    ParameterError
        If there is no home folder, and none was named.
    """
    if cache is not None:
        return Path(cache)
    try:
        return cache_folder() / "codes"
    except DownloadError:
        raise ParameterError("There is no home folder to keep the codes of labels in. Name one with --cache.") from None


def _coded(
    files: Sequence[str], export: ExportOptions, route: Route, method: Aggregator, place: Path, tell: Tell
) -> tuple[CodeFolder, dict[str, Any]]:
    """Return the codes of an export, from the cache or made now."""
    known = {entry.path for entry in cache_entries(place)}
    size, allowed = route.choice.size, route.choice.allowed
    if size is not None and not known:
        check_disk(place, disk_for_codes(size), "The codes of these labels", "Name another folder with --cache.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the notes are those of the ledger, which are issued below
        codes = stream_to_codes(
            list(files),
            item=export.item,
            worker=export.worker,
            label=export.label,
            rare_classes=export.rare_classes,
            cache=place,
            max_memory=None if allowed is None else min(allowed, _MOST_FOR_READING),
            tables=method_name(method) != _VOTE,
        )
    for code, sentence in codes.ledger.get("notes", {}).items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=5)
    hit = codes.folder in known
    where = f"{shown_path(codes.folder)} ({show_size(codes.n_bytes)} of disk)"
    found = "The codes of this file are in the cache" if hit else "The labels were coded into the cache"
    tell(f"{found}: {where}.")
    return codes, {"cache": str(codes.folder), "cache_bytes": codes.n_bytes, "cache_hit": hit}


@contextmanager
def _alone(log: PassLog) -> Iterator[None]:
    """Hold the record of passes for this process alone."""
    try:
        with held(log.folder.with_name(f"{log.key}.lock"), f"the passes of the same fit to {shown_path(log.folder)}"):
            yield
    except OutputExistsError as error:
        raise OutputExistsError(str(error).replace("another place with -o", "another folder with --cache")) from None


def _describe(files: Sequence[str], codes: CodeFolder) -> dict[str, Any]:
    """Return what was read, with the keys of `overview.describe_reading`."""
    ledger = codes.ledger
    columns = ledger["mapping"]
    answered = ledger["rows_read"] - sum(ledger["excluded"].get(reason, 0) for reason in ("blank", "no_label"))
    return {
        "source": str(files[0]) if len(files) == 1 else f"{len(files)} files",
        "format": "long",
        "columns": columns,
        "question": columns["label"],
        "questions": {columns["label"]: answered},
        "ledger": {name: ledger[name] for name in ("rows_read", "kept", "excluded")},
        "n_gold": 0,
        "workers_known": True,
        "refusal": None,
        "notes": ledger.get("notes", {}),
    }
