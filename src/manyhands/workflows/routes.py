"""The route of a job: in memory, in memory on shards, or out of core; decided before any label is read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from manyhands.exceptions import CrowdWarning, LimitError, ParameterError
from manyhands.io.read.stray_classes import RARE_CLASSES
from manyhands.io.write.label_files import SHARD_KINDS
from manyhands.sharded.fits import METHODS
from manyhands.spelling import suggest
from manyhands.validation import parse_size, show_size
from manyhands.workflows.memory_choice import MemoryChoice, choose_memory
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions

SHARDS = ("hash",)  # how items are assigned to shards
IN_MEMORY: Final = "in memory"
IN_SHARDS: Final = "in memory, on shards"
OUT_OF_CORE: Final = "out of core"
Kind = Literal["in memory", "in memory, on shards", "out of core"]
_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_PLAIN = ("item", "worker", "label", "format")  # options of reading that every route has
_OPTIONS = {"label_map": "map"}  # option of reading -> its name on the command line, where that is another
_LEAST = 256 << 20  # bytes that reading in parts needs


@dataclass(frozen=True)
class Route:
    """How a job runs.

    Attributes
    ----------
    kind : {"in memory", "in memory, on shards", "out of core"}
        Where the labels are while it runs.
    reason : str
        Why, as a sentence.
    choice : MemoryChoice
        The memory that the job needs in memory, and what it may have.
    """

    kind: Kind
    reason: str
    choice: MemoryChoice


def check_limits(max_memory: str | int | None, shards: str | None) -> None:
    """Refuse a limit or a kind of shards that does not exist; no file is opened.

    Parameters
    ----------
    max_memory : str, int or None
        Limit such as "4GB".
    shards : str or None
        Kind of shards.

    Raises
    ------
    ParameterError
        If one is invalid.
    """
    if max_memory is not None:
        parse_size(max_memory, "--max-memory")
    if shards is not None and shards not in SHARDS:
        raise ParameterError(f"--shards is {shards!r}; it may be hash.{suggest(str(shards), SHARDS)}")


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
    """Decide how a job runs, from its options and the sizes of its files.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.
    method : str
        Registry name of the aggregator.
    max_memory : str, int or None, default=None
        Limit such as "4GB"; None for the memory that is free now.
    shards : str or None, default=None
        "hash" for the shards of an out-of-core run in memory too.
    out : str, Path or None, default=None
        Folder for the files.
    kinds : sequence of str, default=()
        Further formats of the labels.
    others : mapping of str to bool
        Other options of the command, and whether they were given; runs on shards support none of them.

    Returns
    -------
    Route

    Raises
    ------
    ParameterError
        If shards were asked for, and another option does not support them.
    LimitError
        If the job exceeds the limit that was given, and cannot run out of core.
    """
    check_limits(max_memory, shards)
    obstacle = _obstacle(export, method, out, kinds, others)
    if shards is not None and obstacle is not None:
        raise ParameterError(f"--shards hash {obstacle}")
    choice = choose_memory(files, max_memory)
    name = str(files[0]) if len(files) == 1 else f"The export of {len(files)} files"
    if choice.fits:
        kind: Kind = IN_MEMORY if shards is None else IN_SHARDS
        return Route(kind, f"{kind.capitalize()}: {name} {choice.reason}.", choice)
    obstacle = obstacle or _unreadable(files, export)
    if obstacle is None and choice.allowed is not None and choice.allowed < _LEAST:
        raise LimitError(
            f"{name} {choice.reason}; out of core it needs at least {show_size(_LEAST)}. Give --max-memory 270MB or "
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
    given += [f"--{_OPTIONS.get(name, name.replace('_', '-'))}" for name in vars(export) if _is_special(export, name)]
    if given == ["--rare-classes"]:
        return f"supports --rare-classes {', '.join(RARE_CLASSES)}, and not {export.rare_classes}: name one of them."
    if given:
        return f"does not support {given[0]}: leave it out."
    if method not in METHODS:
        return f"supports {', '.join(METHODS)}, and not {method}: name one of them with -m."
    odd = [kind for kind in kinds if kind not in SHARD_KINDS]
    if odd:
        return f"writes labels as {', '.join(SHARD_KINDS)}, and not as {odd[0]}: leave it out."
    return "writes files: add -o FOLDER." if out is None else None


def _is_special(export: ExportOptions, name: str) -> bool:
    """Whether an option of reading differs from what labels in shards have."""
    value = getattr(export, name)
    if name == "rare_classes":
        return value not in RARE_CLASSES
    if name == "missing":
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
