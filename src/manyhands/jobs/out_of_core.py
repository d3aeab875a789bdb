"""`aggregate` on shards, in memory or out of core: which route a job takes, what it needs, and the run itself."""

from __future__ import annotations

import errno
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from manyhands import registry
from manyhands._core.spelling import suggest
from manyhands._core.system import StepTimes, available_bytes
from manyhands._core.writing import MANIFEST, Output, held
from manyhands.aggregation.base import Aggregator
from manyhands.em.kernels import thread_count
from manyhands.exceptions import (
    CrowdWarning,
    DownloadError,
    LimitError,
    ManyhandsError,
    OutputExistsError,
    ParameterError,
)
from manyhands.io.overview import describe_reading
from manyhands.io.reading import FileSize, measure_files
from manyhands.io.row_filtering import RARE_CLASSES
from manyhands.io.sources import MAX_BYTES
from manyhands.io.stream.ingest import PASSES, cache_entries, stream_to_codes
from manyhands.io.write.result_files import CSV, SHARD_KINDS, LabelFigures, LabelRows, write_labels
from manyhands.io.write.results import (
    class_names,
    guard_table,
    run_figures,
    sharded_worker_frame,
    to_csv,
    to_json,
    to_json_value,
)
from manyhands.jobs.doctor import shown_path
from manyhands.jobs.options import DEFAULT_EXPORT, ExportOptions, Written, begin_summary, claim_folder, require_labels
from manyhands.sharded.code_folder import CodeFolder
from manyhands.sharded.fit import METHODS, PEAK_TABLES, ShardedFit, fit, method_name
from manyhands.sharded.labels import N_BLOCKS, InMemoryShards, ShardedLabels
from manyhands.sharded.passes import PassLog
from manyhands.validation import parse_size, show_size

# ----------------------------------------------------------------------------------------------------
# In memory or out of core: the memory that a job needs, the memory that it may have, and the decision.


# Measured with 3 million labels of one million items, ids of 8 to 12 letters (docs/scale.md): 400 bytes per row of CSV
# and Parquet and 550 of JSON lines above that of the file, most of it Python objects of ids and columns of the results.
_BYTES_IN_MEMORY = 150_000_000  # of the program and its libraries, in an ordinary run
_PER_ROW, _PER_JSON_ROW = 420, 540
_JSON = (".json", ".jsonl", ".ndjson")
_USABLE = 0.8  # share of the free memory that a job takes without being told a limit


@dataclass(frozen=True)
class MemoryChoice:
    """Whether a job runs in memory, and why."""

    fits: bool  # whether the estimate fits
    needed: int | None  # bytes that the job needs in memory, estimated; None if unknown
    allowed: int | None  # bytes that it may have; None if unknown
    given: bool  # whether the caller gave the limit
    size: FileSize | None  # rows and bytes of the files

    @property
    def reason(self) -> str:
        """The comparison as the end of a sentence, such as "needs about 9 GB in memory, and the limit is 4 GB"."""
        if self.size is not None and _unpacks_too_far(self.size):
            unpacked, most = show_size(self.size.unpacked), show_size(MAX_BYTES)
            return f"unpacks to about {unpacked}, more than the {most} that are unpacked in memory"
        if self.needed is None:
            return "does not say how much memory it needs before it is read"
        if self.allowed is None:
            return f"needs about {show_size(self.needed)} in memory; how much is free is not known"
        limit = f"the limit is {show_size(self.allowed)}" if self.given else f"{show_size(self.allowed)} may be used"
        return f"needs about {show_size(self.needed)} in memory, and {limit}"


def choose_memory(files: Sequence[str | Path], max_memory: str | int | None = None) -> MemoryChoice:
    """Compare the memory that a job on these files needs with what it may have; only sizes and footers are read."""
    allowed = free_bytes() if max_memory is None else parse_size(max_memory, "`max_memory`")
    size = measure_files(files)
    needed = None if size is None else memory_for(files, size)
    fits = needed is None or allowed is None or needed <= allowed
    fits = fits and not (size is not None and _unpacks_too_far(size))
    return MemoryChoice(fits, needed, allowed, max_memory is not None, size)


def _unpacks_too_far(size: FileSize) -> bool:
    """Whether a gzip file is larger than what is unpacked in memory."""
    return size.unpacked > max(size.n_bytes, MAX_BYTES)


def memory_for(files: Sequence[str | Path], size: FileSize) -> int:
    """Estimate the memory of an ordinary run, which holds all labels and results at once."""
    names = [str(name).lower().removesuffix(".gz") for name in files]
    is_json = any(name.endswith(_JSON) for name in names)
    return _BYTES_IN_MEMORY + size.unpacked + size.n_rows * (_PER_JSON_ROW if is_json else _PER_ROW)


def free_bytes() -> int | None:
    """Return the memory that a job may use if it was given no limit: most of what is free now."""
    available = available_bytes()
    return None if available is None else int(_USABLE * available)


# ----------------------------------------------------------------------------------------------------
# The route of a job: in memory, in memory on shards, or out of core; decided before any label is read.

SHARDS = ("hash",)  # how items are assigned to shards
IN_MEMORY: Final = "in memory"
IN_SHARDS: Final = "in memory, on shards"
OUT_OF_CORE: Final = "out of core"
Kind = Literal["in memory", "in memory, on shards", "out of core"]
_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_PLAIN = ("item", "worker", "label", "format")  # options of reading that every route has
_LEAST = 256 << 20  # bytes that reading in parts needs


@dataclass(frozen=True)
class Route:
    """How a job runs."""

    kind: Kind  # where the labels are while it runs
    reason: str  # why, as a sentence
    choice: MemoryChoice  # the memory that the job needs in memory, and what it may have


def check_limits(max_memory: str | int | None, shards: str | None) -> None:
    """Refuse a limit or a kind of shards that does not exist; no file is opened."""
    if max_memory is not None:
        parse_size(max_memory, "`max_memory`")
    if shards is not None and shards not in SHARDS:
        raise ParameterError(f"`shards` is {shards!r}; it may be hash.{suggest(str(shards), SHARDS)}")


def choose_route(
    files: Sequence[str],
    export: ExportOptions,
    method: str,
    *,
    max_memory: str | int | None = None,
    shards: str | None = None,
    out: str | Path | None = None,
    kinds: Sequence[str] = (),
    others: Mapping[str, bool],
) -> Route:
    """Decide how a job runs, from its options and the sizes of its files."""
    check_limits(max_memory, shards)
    obstacle = _obstacle(export, method, out, kinds, others)
    if shards is not None and obstacle is not None:
        raise ParameterError(f"`shards=hash` {obstacle}")
    choice = choose_memory(files, max_memory)
    name = str(files[0]) if len(files) == 1 else f"The export of {len(files)} files"
    if choice.fits:
        kind: Kind = IN_MEMORY if shards is None else IN_SHARDS
        return Route(kind, f"{kind.capitalize()}: {name} {choice.reason}.", choice)
    obstacle = obstacle or _unreadable(files, export)
    if obstacle is None and choice.allowed is not None and choice.allowed < _LEAST:
        raise LimitError(
            f"{name} {choice.reason}; out of core it needs at least {show_size(_LEAST)}. Give `max_memory=270MB` or "
            "more; how much the workers and classes need is known once the file is read."
        )
    if obstacle is None:
        return Route(OUT_OF_CORE, f"Out of core: {name} {choice.reason}.", choice)
    if choice.given:
        raise LimitError(f"{name} {choice.reason}; a run out of core {obstacle}")
    warnings.warn(
        f"much_memory: {name} {choice.reason}; the job is tried in memory, because a run out of core {obstacle}",
        CrowdWarning,
        stacklevel=3,
    )
    return Route(IN_MEMORY, f"In memory: {name} {choice.reason}.", choice)


def _obstacle(
    export: ExportOptions, method: str, out: str | Path | None, kinds: Sequence[str], others: Mapping[str, bool]
) -> str | None:
    """Return why a job cannot run on shards, as the end of a sentence, or None if it can."""
    given = [option for option, is_given in others.items() if is_given]
    given += [name for name in vars(export) if _is_special(export, name)]
    if given == ["rare_classes"]:
        return f"supports `rare_classes` {', '.join(RARE_CLASSES)}, and not {export.rare_classes}: name one of them."
    if "verdicts" in given:
        return "does not keep the orders of presentation of pairs apart: give a file with a part of the pairs."
    if given:
        return f"does not support `{given[0]}`: leave it out."
    if method not in METHODS:
        return f"supports {', '.join(METHODS)}, and not {method}: name one of them with `method=`."
    odd = [kind for kind in kinds if kind not in SHARD_KINDS]
    if odd:
        return f"writes labels as {', '.join(SHARD_KINDS)}, and not as {odd[0]}: leave it out."
    return "writes files: add `out=FOLDER`." if out is None else None


def _is_special(export: ExportOptions, name: str) -> bool:
    """Whether an option of reading differs from what labels in shards have."""
    value = getattr(export, name)
    if name == "rare_classes":
        return value not in RARE_CLASSES
    if isinstance(value, list | tuple):
        return bool(value)
    return name not in _PLAIN and value != getattr(DEFAULT_EXPORT, name)


def _unreadable(files: Sequence[str], export: ExportOptions) -> str | None:
    """Return why files cannot be read out of core, as the end of a sentence, or None if they can be tried."""
    reads = "reads long tables as Parquet, CSV, TSV or JSON lines"
    if export.format not in (None, "long"):
        return f"{reads}, and not {export.format}: manyhands convert writes such a table."
    for name in files:
        path = Path(name)
        if not path.is_dir() and not path.name.lower().endswith(_ENDINGS):
            return f"{reads}, and not {path.name}: manyhands convert writes such a table."
    return None


# ----------------------------------------------------------------------------------------------------
# The result of a run on shards.


@dataclass(frozen=True, eq=False)
class ShardedRun:
    """Result of `aggregate` on shards, in memory or out of core: everything but the items, which are in its files.

    Attributes
    ----------
    fit : ShardedFit
        The fitted method: parameters, and the task that computes the results of items.
    tables : dict of str to polars.DataFrame
        ``workers.csv``.
    summary : dict
        All figures of the run, as in ``summary.json``.
    written : Written
        Names of the files that were written.
    route : Route
        Where the run took place, and why.
    timings : dict
        What depends on the machine and not on the data: seconds and peak memory of each step, bytes of the cache,
        whether codes were in it, and how many passes were taken from an earlier run.
    """

    fit: ShardedFit
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    written: Written
    route: Route
    timings: dict[str, Any] = field(default_factory=dict)

    @property
    def confident_share(self) -> float:
        """Share of all items that have a label with a posterior probability of at least 0.9."""
        return confident_share(self.summary)


def confident_share(summary: dict[str, Any]) -> float:
    """Return the share of confident labels among all items whose class was not given; 1 if all classes were."""
    n_open = summary["n_items"] - summary.get("n_gold_used", 0)
    if not n_open:
        return 1.0
    return float((1 - summary["n_unlabelled"] / n_open) * (summary["share_above_0.9"] or 0.0))


# ----------------------------------------------------------------------------------------------------
# What a run out of core needs: the least memory and disk, compared with what there is before the long part begins.

BYTES_ON_SHARDS = 200_000_000  # of the program, its libraries and the batches that are read
_PER_LABEL, _PER_ITEM = 60, 40  # bytes of a shard in memory; the sums by worker need more than the codes
_SLICE = 1 << 17  # items that are one data frame
_USUAL_PASSES = 50
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def least_memory(labels: ShardedLabels, method: str) -> int:
    """Estimate the memory that a run on shards needs, however small the shards are."""
    return BYTES_ON_SHARDS + sum(_memory_of_parts(labels, method))


def _memory_of_parts(labels: ShardedLabels, method: str) -> tuple[int, int]:
    """Return the bytes of all tables by worker, and those of the shards of all threads."""
    n_workers, n_classes = len(labels.worker_ids), len(labels.classes)
    threads = min(thread_count(), labels.n_shards)
    tables = PEAK_TABLES[method] + threads
    shard = (_PER_LABEL * labels.n_labels + _PER_ITEM * labels.n_items) // labels.n_shards
    frames = min(_SLICE, labels.n_items) * (24 * n_classes + 200)
    return 8 * tables * n_workers * n_classes**2, threads * (shard + frames)


def check_memory_of_shards(labels: ShardedLabels, method: str, allowed: int | None) -> None:
    """Refuse a limit below the least memory, before EM begins."""
    needed = least_memory(labels, method)
    if allowed is not None and needed > allowed:
        n_workers, n_classes = len(labels.worker_ids), len(labels.classes)
        tables, shards = _memory_of_parts(labels, method)
        threads = min(thread_count(), labels.n_shards)
        other = ", or merge rare classes" if tables > shards else ", or set MANYHANDS_THREADS=1" if threads > 1 else ""
        raise LimitError(
            f"{method} on {n_workers:,} workers and {n_classes:,} classes needs at least {show_size(needed)} of memory "
            f"(tables of {n_workers:,} x {n_classes:,}^2 numbers {show_size(tables)}, {threads} shard(s) of "
            f"{labels.n_labels // labels.n_shards:,} labels at a time {show_size(shards)}), and {show_size(allowed)} "
            f"may be used. Give `max_memory={_typed(needed)}` or more{other}."
        )


def _typed(n_bytes: int) -> str:
    """Return a size that is at least this large, as an option is typed."""
    return f"{-(-n_bytes // 1_000_000)}MB"


def disk_for_codes(size: FileSize) -> int:
    """Estimate the disk that the codes of an export need while they are made."""
    text = min(size.unpacked, 16 * size.n_rows)  # ids of items; the names of workers and classes are kept once
    return 20 * size.n_rows + 2 * text


def disk_for_labels(labels: ShardedLabels, kinds: Sequence[str]) -> int:
    """Estimate the disk that the files of labels need."""
    n_classes = len(labels.classes)
    names = sum(len(str(name)) + 4 for name in labels.classes.tolist())
    per_item = 40 + 9 * n_classes
    per_item += 110 + 9 * n_classes + names if "jsonl" in kinds else 0  # every line names all classes
    per_item += 2 * (40 + 4 * n_classes) if "parquet" in kinds else 0  # once in parts, once put together
    return per_item * labels.n_items


def disk_for_passes(labels: ShardedLabels) -> int:
    """Return the disk that the records of some passes need."""
    return _USUAL_PASSES * 8 * len(labels.worker_ids) * len(labels.classes) ** 2


def check_disk(folder: Path, n_bytes: int, what: str, remedy: str) -> None:
    """Refuse a job whose files do not fit on the disk."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    if n_bytes > free:
        raise LimitError(
            f"{what} need about {show_size(n_bytes)} of disk in {shown_path(folder)}, and {show_size(free)} are free. "
            f"{remedy}"
        )


@contextmanager
def limits_named(folder: Path, allowed: int | None) -> Iterator[None]:
    """Context manager in which a full disk, or memory that the system refuses, becomes one sentence with what to do."""
    try:
        yield
    except MemoryError as error:
        if isinstance(error, LimitError):
            raise
        limit = "" if allowed is None else f" The job was to stay within {show_size(allowed)}."
        raise LimitError(
            f"The system gave no more memory to this process ({error or 'no reason is known'}).{limit} Raise the limit "
            f"of the process or close other programs; the same command then goes on. No file of the result was changed."
        ) from None
    except OSError as error:
        if error.errno not in _FULL:
            raise
        where = error.filename if error.filename is not None else shown_path(folder)
        raise ManyhandsError(
            f"The disk is full: {where} cannot grow ({error.strerror}). Make room, or give another folder with `out=` "
            f"or `cache=`; the same command then goes on. No file of the result was changed."
        ) from None


# ----------------------------------------------------------------------------------------------------
# The labels of a run on shards: read into memory, or coded into a folder of the cache, which the next run finds.

_MOST_FOR_READING = 4 << 30  # bytes; more does not make reading in parts faster
Tell = Callable[[str], None]


@dataclass
class SourceLabels:
    """Labels in shards, with the account of where they come from."""

    labels: ShardedLabels  # the labels, in the shards of the fit
    # the same labels for the results of items, in shards that may be smaller: results of an item do not depend on the
    # shard that it is in
    items: ShardedLabels
    described: dict[str, Any]  # what was read, as in ``summary.json``
    log: PassLog | None = None  # record of finished passes, with which a killed run continues; None in memory
    # what depends on the machine: folder and bytes of the cache, whether codes were found in it
    timings: dict[str, Any] = field(default_factory=dict)

    def tell_resumed(self, tell: Tell) -> None:
        """Report how many passes were taken from the record of an earlier run."""
        if self.log is not None:
            for note in self.log.notes:
                tell(note)
            self.timings["passes_replayed"] = self.log.n_replayed
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
    """Context manager for the labels of a run; the record of its passes is locked for its duration."""
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
            codes, timings = _coded(files, export, route, method, place, tell)
        check_memory_of_shards(codes, method_name(method), route.choice.allowed)
        check_disk(place, disk_for_passes(codes), "The records of passes", "Name another folder with `cache=`.")
        log = PassLog.of(place / PASSES, method, codes)
        with _alone(log):
            yield SourceLabels(codes, _in_blocks(codes), _describe(files, codes), log, timings)


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
                f"The cache {place} is within {name}, whose files are read. Name another with `cache=`."
            )


def _in_blocks(codes: CodeFolder) -> CodeFolder:
    """Return the same labels in the smallest shards, whose results need the least memory."""
    blocks = copy(codes)
    blocks.n_shards = N_BLOCKS
    return blocks


def codes_folder(cache: str | Path | None) -> Path:
    """Return the folder for the codes of exports."""
    if cache is not None:
        return Path(cache)
    try:
        from manyhands.datasets.remote import cache_folder  # runs in memory do without its modules

        return cache_folder() / "codes"
    except DownloadError:
        raise ParameterError(
            "There is no home folder to keep the codes of labels in. Name one with `cache=`."
        ) from None


def _coded(
    files: Sequence[str], export: ExportOptions, route: Route, method: Aggregator, place: Path, tell: Tell
) -> tuple[CodeFolder, dict[str, Any]]:
    """Return the codes of an export, from the cache or made now."""
    before = {entry.path for entry in cache_entries(place)}
    size, allowed = route.choice.size, route.choice.allowed
    if size is not None and not before:
        check_disk(place, disk_for_codes(size), "The codes of these labels", "Name another folder with `cache=`.")
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
            tables=method_name(method) != registry.VOTE,
        )
    for code, sentence in codes.ledger.get("notes", {}).items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=5)
    hit = codes.folder in before
    where = f"{shown_path(codes.folder)} ({show_size(codes.n_bytes)} of disk)"
    clause = "The codes of this file are in the cache" if hit else "The labels were coded into the cache"
    tell(f"{clause}: {where}.")
    return codes, {"cache": str(codes.folder), "cache_bytes": codes.n_bytes, "cache_hit": hit}


@contextmanager
def _alone(log: PassLog) -> Iterator[None]:
    """Hold the record of passes for this process alone."""
    try:
        with held(log.folder.with_name(f"{log.key}.lock"), f"the passes of the same fit to {shown_path(log.folder)}"):
            yield
    except OutputExistsError as error:
        raise OutputExistsError(re.sub(r"another place with .*", "another folder with `cache=`.", str(error))) from None


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


WORKERS, SUMMARY = "workers.csv", "summary.json"


@dataclass(frozen=True)
class ShardedJob:
    """What a run on shards is told."""

    files: Sequence[str]
    export: ExportOptions  # how to read it
    method: str  # registry name of the aggregator
    route: Route  # in memory or out of core
    out: str | Path  # folder for the files
    cache: str | Path | None = None  # folder for the codes of exports; None for that of this user
    kinds: Sequence[str] = ()  # further formats of the labels: "jsonl", "parquet"
    spreadsheet_safe: bool = False  # prevent spreadsheet programs from running cells of the CSV files as formulas
    random_state: int = 0  # seed of the method
    force: bool = False  # replace files that exist
    # file of options and what was taken from it, to be recorded in ``summary.json``
    config: Mapping[str, Any] | None = None

    @property
    def names(self) -> list[str]:
        """Files that the run writes."""
        return [CSV, WORKERS, SUMMARY, *(SHARD_KINDS[kind] for kind in self.kinds)]


def aggregate_on_shards(job: ShardedJob, say: Callable[[str], None] | None = None) -> ShardedRun:
    """Fit a method on shards, and write its files shard by shard."""
    times, tell = StepTimes(), say or (lambda sentence: None)
    method: Aggregator = registry.create_seeded(job.method, job.random_state)
    with claim_folder(job.out, job.names, force=job.force) as output:
        assert output is not None
        tell(job.route.reason)
        with open_labels(job.files, job.export, job.route, method, job.cache, tell, times) as source:
            class_names(source.labels.classes)  # refuses classes that would be counted together
            needed = disk_for_labels(source.labels, job.kinds)
            check_disk(output.folder, needed, "The files of labels", "Name another folder with `out=`.")
            with times.step("fit"):
                fitted = fit(method, source.labels, log=source.log)
            source.tell_resumed(tell)
            for code, sentence in fitted.notes.items():
                warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=3)
            with times.step("workers"):
                workers = sharded_worker_frame(fitted, source.labels)
            with times.step("labels"):
                summary, written = _write(job, output, source, fitted, workers)
            source.finish()
    return ShardedRun(fitted, {WORKERS: workers}, summary, written, job.route, times.as_dict() | source.timings)


def _write(
    job: ShardedJob, output: Output, source: SourceLabels, fitted: ShardedFit, workers: pl.DataFrame
) -> tuple[dict[str, Any], Written]:
    """Write all files; those of labels as the shards come."""
    rows = LabelRows(fitted.final_task, fitted.classes, tuple(job.kinds), job.spreadsheet_safe)
    with output.stage() as staged:
        figures = write_labels(source.items, rows, staged)
        names = [Path(name).name for name in job.files]
        summary = begin_summary(names, job.config) | source.described | _figures(job, source, fitted, figures)
        summary["notes"] = source.described["notes"] | fitted.notes
        summary = {name: to_json_value(value) for name, value in summary.items()}
        contents = {
            WORKERS: to_csv(guard_table(workers) if job.spreadsheet_safe else workers),
            SUMMARY: to_json(summary),
        }
        stale = output.write(contents, staged)
        names = [*sorted({*contents, *staged.digests}), MANIFEST]
    return summary, Written(tuple(names), tuple(stale), output.folder)


def _figures(job: ShardedJob, source: SourceLabels, fitted: ShardedFit, figures: LabelFigures) -> dict[str, Any]:
    """Return the figures of a run that are known without all items at once, and those of the shards."""
    labelled = figures.n_items - figures.n_unlabelled
    with_labels = fitted.worker_volume > 0
    named = zip(class_names(fitted.classes), figures.labels.tolist())
    values = run_figures(
        job.method,
        fitted.method.get_params(),
        n_items=figures.n_items,
        n_workers=len(fitted.worker_ids),
        n_classes=len(fitted.classes),
        n_annotations=fitted.n_labels,
        n_components=len(np.unique(figures.groups[with_labels])),
        n_unlabelled=figures.n_unlabelled,
        n_tied=figures.n_tied,
        gold_contradicted=None,
        mean_confidence=figures.mean_confidence,
        share_confident=figures.n_confident / labelled if labelled else None,
        labels={name: count for name, count in named if count},
        n_iter=fitted.n_iter,
        converged=fitted.converged,
    )
    return values | {"route": job.route.kind, "n_shards": source.labels.n_shards}
