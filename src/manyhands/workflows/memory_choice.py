"""In memory or out of core: the memory that a job needs, the memory that it may have, and the decision."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from manyhands.io.read.archives import MAX_BYTES
from manyhands.io.read.row_estimate import FileSize, measure_files
from manyhands.validation import parse_size, show_size
from manyhands.workflows.memory_check import available_bytes, limit_bytes

# Measured with 3 million labels of one million items, ids of 8 to 12 letters (docs/scale.md): 400 bytes per row of CSV
# and Parquet and 550 of JSON lines above that of the file, most of it Python objects of ids and columns of the results.
_PROGRAM = 150_000_000  # bytes of the program and its libraries
_PER_ROW, _PER_JSON_ROW = 420, 540
_JSON = (".json", ".jsonl", ".ndjson")
_USABLE = 0.8  # share of the free memory that a job takes without being told a limit


@dataclass(frozen=True)
class MemoryChoice:
    """Whether a job runs in memory, and why.

    Attributes
    ----------
    fits : bool
        Whether the estimate fits.
    needed : int or None
        Bytes that the job needs in memory, estimated; None if unknown.
    allowed : int or None
        Bytes that it may have; None if unknown.
    given : bool
        Whether the caller gave the limit.
    size : FileSize or None
        Rows and bytes of the files.
    """

    fits: bool
    needed: int | None
    allowed: int | None
    given: bool
    size: FileSize | None

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
    """Compare the memory that a job on these files needs with what it may have; only sizes and footers are read.

    Parameters
    ----------
    files : sequence of str or Path
        The files of an export.
    max_memory : str, int or None, default=None
        Limit such as "4GB", or bytes; None for most of the memory that is free now.

    Returns
    -------
    MemoryChoice

    Raises
    ------
    ParameterError
        If the limit is not a size.
    """
    allowed = free_bytes() if max_memory is None else parse_size(max_memory, "--max-memory")
    size = measure_files(files)
    needed = None if size is None else memory_for(files, size)
    fits = needed is None or allowed is None or needed <= allowed
    fits = fits and not (size is not None and _unpacks_too_far(size))
    return MemoryChoice(fits, needed, allowed, max_memory is not None, size)


def _unpacks_too_far(size: FileSize) -> bool:
    """Whether a gzip file is larger than what is unpacked in memory."""
    return size.unpacked > max(size.n_bytes, MAX_BYTES)


def memory_for(files: Sequence[str | Path], size: FileSize) -> int:
    """Estimate the memory of an ordinary run, which holds all labels and results at once.

    Parameters
    ----------
    files : sequence of str or Path
        The files of an export.
    size : FileSize
        Their rows and bytes.

    Returns
    -------
    int
        Bytes.
    """
    names = [str(name).lower().removesuffix(".gz") for name in files]
    is_json = any(name.endswith(_JSON) for name in names)
    return _PROGRAM + size.unpacked + size.n_rows * (_PER_JSON_ROW if is_json else _PER_ROW)


def free_bytes() -> int | None:
    """Return the memory that a job may use if it was given no limit: most of what is free now.

    Returns
    -------
    int or None
        Bytes; None where the system does not state it.
    """
    limits = [limit_bytes(), _data_limit()]
    known = [size for size in (available_bytes(), *limits) if size is not None]
    return int(_USABLE * min(known)) if known else None


def _data_limit() -> int | None:
    """Return the limit on the private memory of this process (``ulimit -d``), if there is one."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        most = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return None if most in (resource.RLIM_INFINITY, -1) else most
    return None
