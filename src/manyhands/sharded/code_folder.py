"""The code folder: the labels of a crowd as codes on disk, written and read block by block."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import blake2b
from itertools import accumulate, pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands._core.encoding import as_ids
from manyhands._core.writing import held, naming
from manyhands.em.kernels import Packed
from manyhands.exceptions import AnnotationError, OutputExistsError
from manyhands.sharded.labels import N_BLOCKS, Shard, run_in_order, shard_count

# ----------------------------------------------------------------------------------------------------
# Ids of items, workers and classes as bytes, and back: numbers stay numbers, text stays text.

Ids = Sequence[Any] | npt.NDArray[Any]
_WIDTHS = (np.uint8, np.uint16, np.uint32)  # the types of small counts, by their number of bytes
_STORABLE = (str, int, float, bool)


class TextIds(NamedTuple):
    """Ids that are text, as one piece of UTF-8: much smaller than as many Python objects."""

    n_bytes: npt.NDArray[Any]  # (n,); length of each id in bytes
    data: bytes  # all ids, one after the other

    def decoded(self) -> list[str]:
        """Return the ids as Python text."""
        ends = np.cumsum(self.n_bytes, dtype=np.int64).tolist()
        if self.data.isascii():  # one letter is one byte, so that the whole is decoded once
            text = self.data.decode("ascii")
            return [text[first:last] for first, last in pairwise([0, *ends])]
        return [self.data[first:last].decode() for first, last in pairwise([0, *ends])]


def narrow(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return counts in the smallest unsigned type that holds them: of one, two or four bytes."""
    largest = int(counts.max(initial=0))
    width = next(kind for kind in _WIDTHS if largest <= np.iinfo(kind).max)
    return np.ascontiguousarray(counts, width)


def width_type(width: int) -> type[Any]:
    """Return the unsigned type of a number of bytes."""
    return next(kind for kind in _WIDTHS if np.dtype(kind).itemsize == width)


def encode_ids(ids: Ids | TextIds) -> tuple[str, bytes]:
    """Return how ids are stored, and the bytes."""
    if isinstance(ids, TextIds):
        lengths = narrow(ids.n_bytes)
        return f"text{lengths.itemsize}", lengths.tobytes() + ids.data
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and np.can_cast(ids.dtype, np.int64):
        return "int64", ids.astype("<i8").tobytes()
    values = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if all(type(value) is str for value in values):
        encoded = [value.encode() for value in values]
        return encode_ids(TextIds(np.fromiter(map(len, encoded), np.int64, len(encoded)), b"".join(encoded)))
    if all(type(value) is int and -(2**63) <= value < 2**63 for value in values):
        return "int64", np.array(values, "<i8").tobytes()
    return "json", json_of_ids(values)


def decode_ids(kind: str, data: bytes, n: int) -> npt.NDArray[Any] | TextIds | list[Any]:
    """Return the ids that `encode_ids` stored."""
    if kind == "int64":
        return np.frombuffer(data, "<i8").astype(np.int64, copy=False)
    if kind == "json":
        values: list[Any] = json.loads(data)
        return values
    width = int(kind.removeprefix("text"))
    return TextIds(np.frombuffer(data, width_type(width), n), data[n * width :])


def json_of_ids(values: Sequence[Any]) -> bytes:
    """Return ids as a list in JSON, which keeps text, integers of any size, floats and truth values apart."""
    odd = next((value for value in values if type(value) not in _STORABLE), None)
    if odd is not None:
        raise AnnotationError(
            f"The id {odd!r} is of type {type(odd).__name__}, which is not kept in files. Use text or integers."
        )
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":")).encode()


def ids_from_json(data: bytes, role: str) -> npt.NDArray[Any]:
    """Return the ids that `json_of_ids` stored, as an array like those of `Annotations`."""
    return as_ids(json.loads(data), role)


# ----------------------------------------------------------------------------------------------------
# `CodeFolderWriter`: the labels of a crowd as codes on disk, block after block.

FORMAT = "manyhands code folder"
VERSION = 1  # of the layout; others are refused
HEADER, LEDGER = "header.json", "ledger.json"
CODES, COUNTS, ITEMS, VOLUME = "codes.bin", "counts.bin", "items.bin", "volume.bin"
WORKERS, CLASSES = "workers.json", "classes.json"
_PART = ".part"  # of the name of a folder that is being written


class CodeFolderWriter:
    """Write a code folder; it appears under its name when it is whole, and not at all before.

    Use it as a context manager: what was written is removed where the block ends before `finish`. A lock keeps two
    processes from writing one folder, and what a killed process left is removed by the next one.

    The folder holds ``header.json`` (sizes and checksums of all that follows), ``codes.bin`` (code of every label,
    int32, item after item), ``counts.bin`` (labels of each item, in one, two or four bytes by the largest of the
    block), ``items.bin`` (ids), ``workers.json``, ``classes.json``, ``volume.bin`` (labels of each worker) and
    ``ledger.json``. Blocks follow each other in every file, so that any number of consecutive blocks is one read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with CodeFolderWriter(place + "/codes", ["ann", "bob"], ["no", "yes"]) as writer:
    ...         writer.add_block(0, [2, 1], [0, 3, 2], ["x", "y"])
    ...         path = writer.finish()
    ...     sorted(file.name for file in path.iterdir())[:3]
    ['classes.json', 'codes.bin', 'counts.bin']
    """

    def __init__(self, folder: str | Path, worker_ids: Ids, classes: Ids) -> None:
        self.folder = Path(folder)
        self._part = self.folder.with_name(self.folder.name + _PART)
        self._jsons = {WORKERS: json_of_ids(_listed(worker_ids)), CLASSES: json_of_ids(_listed(classes))}
        self.n_workers, self.n_classes = len(worker_ids), len(classes)
        self._volume = np.zeros(self.n_workers, np.int64)
        self._blocks: list[dict[str, Any]] = []
        self._resources = ExitStack()
        self._files: dict[str, IO[bytes]] = {}

    def __enter__(self) -> Self:
        """Take the lock, and make the temporary folder."""
        self._resources.enter_context(held(self.folder.with_name(self.folder.name + ".lock"), self.folder))
        try:
            if os.path.lexists(self.folder):
                raise OutputExistsError(f"{self.folder} exists already. Remove it, or give another name.")
            shutil.rmtree(self._part, ignore_errors=True)  # of a process that was killed
            with naming(self.folder):
                self._part.mkdir()
                for name in (CODES, COUNTS, ITEMS):
                    self._files[name] = self._resources.enter_context((self._part / name).open("wb"))
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what is not finished, and release the lock."""
        with suppress(OSError):  # the last bytes of a file may not fit on the disk, and are removed in any case
            for file in self._files.values():
                file.close()
        shutil.rmtree(self._part, ignore_errors=True)
        self._resources.close()

    def add_block(
        self,
        number: int,
        n_labels_of_item: npt.ArrayLike,
        codes: npt.ArrayLike,
        item_ids: Ids | TextIds | None = None,
    ) -> None:
        """Append a block; blocks come in the order of their numbers, and those that are left out are empty.

        Shapes: n_labels_of_item (n_items,); codes (n_labels,).
        """
        counts, code = np.asarray(n_labels_of_item), np.ascontiguousarray(codes, "<i4")
        n_ids = len(counts) if item_ids is None else len(item_ids[0] if isinstance(item_ids, TextIds) else item_ids)
        if not len(self._blocks) <= number < N_BLOCKS:
            raise AnnotationError(f"Block {number} comes after block {len(self._blocks) - 1}; they must be in order.")
        if int(counts.sum(dtype=np.int64)) != len(code) or n_ids != len(counts):
            raise AnnotationError(
                f"Block {number}: {len(counts)} items with {int(counts.sum(dtype=np.int64))} labels in all, but "
                f"{n_ids} ids and {len(code)} codes."
            )
        if len(code) and not 0 <= int(code.min()) <= int(code.max()) < self.n_workers * self.n_classes:
            raise AnnotationError(
                f"Block {number}: codes from {code.min()} to {code.max()}, but {self.n_workers} workers and "
                f"{self.n_classes} classes have codes from 0 to {self.n_workers * self.n_classes - 1}."
            )
        while len(self._blocks) < number:
            self._append(np.zeros(0, np.uint8), np.zeros(0, "<i4"), ("int64", b""))
        self._append(narrow(counts), code, ("numbered", b"") if item_ids is None else encode_ids(item_ids))

    def _append(self, counts: npt.NDArray[Any], code: npt.NDArray[np.int32], ids: tuple[str, bytes]) -> None:
        """Append the three parts of a block to their files."""
        if len(code):
            self._volume += np.bincount(code // np.int32(self.n_classes), minlength=self.n_workers)
        block: dict[str, Any] = {"n_items": len(counts), "n_labels": len(code), "ids": ids[0]}
        for name, data in ((COUNTS, counts.data), (CODES, code.data), (ITEMS, memoryview(ids[1]))):
            with naming(self.folder):
                self._files[name].write(data)
            block[name] = [data.nbytes, zlib.crc32(data)]
        self._blocks.append(block)

    def finish(self, ledger: Mapping[str, Any] | None = None) -> Path:
        """Write the header, and give the folder its name."""
        while len(self._blocks) < N_BLOCKS:
            self._append(np.zeros(0, np.uint8), np.zeros(0, "<i4"), ("int64", b""))
        texts = {LEDGER: json.dumps(dict(ledger or {}), ensure_ascii=False).encode()}
        small = self._jsons | texts | {VOLUME: self._volume.astype("<i8").tobytes()}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "n_items": sum(block["n_items"] for block in self._blocks),
            "n_labels": sum(block["n_labels"] for block in self._blocks),
            "n_workers": self.n_workers,
            "n_classes": self.n_classes,
            "files": {name: [len(data), zlib.crc32(data)] for name, data in small.items()},
            "blocks": self._blocks,
        }
        text = json.dumps({"checksum": header_checksum(header)} | header)
        with naming(self.folder):
            for name, data in small.items():
                self._files[name] = self._resources.enter_context((self._part / name).open("wb"))
                self._files[name].write(data)
            self._files[HEADER] = self._resources.enter_context((self._part / HEADER).open("wb"))
            self._files[HEADER].write(text.encode())
            for file in self._files.values():
                file.flush()
                os.fsync(file.fileno())
                file.close()
            os.rename(self._part, self.folder)
        return self.folder


def header_checksum(header: Mapping[str, Any]) -> str:
    """Return the checksum of a header, and so of all files; it does not depend on the layout of the JSON."""
    return blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16).hexdigest()


def _listed(ids: Ids) -> list[Any]:
    """Ids as Python values."""
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


# ----------------------------------------------------------------------------------------------------
# `CodeFolder`: the labels of a crowd as codes on disk, read block by block into memory of its own.

R = TypeVar("R")
_AGAIN = "Delete the folder; the next run writes it again."


class CodeFolder:
    """Labels as codes on disk, written by `CodeFolderWriter`; a `ShardedLabels` whose tasks run in threads.

    Blocks are read into new memory and never mapped, so that the memory of a run is known. The checksum of a
    block is compared the first time this object reads it, and not again: CRC-32 takes 0.5 ns per label with the zlib
    of a current Linux and up to 4 ns with others, for each pass. The number of bytes is compared every time.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        header = self._header()
        self._blocks: list[dict[str, Any]] = header["blocks"]
        self.n_items, self.n_labels = int(header["n_items"]), int(header["n_labels"])
        small = {name: self._small_file(name, *size_sum) for name, size_sum in header["files"].items()}
        self.worker_ids = ids_from_json(small[WORKERS], "worker")
        self.classes = ids_from_json(small[CLASSES], "class")
        self.worker_volume = np.frombuffer(small[VOLUME], "<i8").astype(np.int64)
        self.ledger: dict[str, Any] = json.loads(small[LEDGER])
        self._offset = {
            name: [0, *accumulate(block[name][0] for block in self._blocks)] for name in (CODES, COUNTS, ITEMS)
        }
        for name, offset in self._offset.items():
            self._check_size(name, offset[-1])
        self._verified: set[tuple[str, int]] = set()
        self.n_shards = shard_count(self.n_labels, self.n_workers, self.n_classes)
        self.fingerprint = f"{header_checksum(header)}-{self.n_shards}"

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.worker_ids)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_bytes(self) -> int:
        """Bytes on disk, without the small files."""
        return sum(offset[-1] for offset in self._offset.values())

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard, in threads; one shard per thread is in memory, and one more."""
        return run_in_order(lambda number: task(self.shard(number)), self.n_shards, what)

    def shard(self, number: int) -> Shard:
        """Read one shard into new memory; its ids are read when they are asked for."""
        width = N_BLOCKS // self.n_shards
        first, last = number * width, (number + 1) * width
        codes, start = self.read_codes(first, last)
        return Shard(
            number, Packed(codes, None, start, self.n_workers, self.n_classes), partial(self.read_item_ids, first, last)
        )

    def n_items_of(self, first: int, last: int) -> int:
        """Return the number of items in blocks `first` to `last - 1`."""
        return sum(block["n_items"] for block in self._blocks[first:last])

    def read_codes(self, first: int, last: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Read the labels of blocks `first` to `last - 1` into new arrays.

        Shapes: returns codes (n_labels,); returns start (n_items + 1,).
        """
        codes = np.empty(sum(block["n_labels"] for block in self._blocks[first:last]), "<i4")
        self._read_into(codes, CODES, first, last)
        start = np.zeros(self.n_items_of(first, last) + 1, np.int64)
        counts = np.empty(self._offset[COUNTS][last] - self._offset[COUNTS][first], np.uint8)
        self._read_into(counts, COUNTS, first, last)
        at, done = 0, 0
        for block in self._blocks[first:last]:
            if n_items := block["n_items"]:
                n_bytes = block[COUNTS][0]
                start[done + 1 : done + n_items + 1] = counts[at : at + n_bytes].view(width_type(n_bytes // n_items))
                at, done = at + n_bytes, done + n_items
        np.cumsum(start, out=start)
        if start[-1] != len(codes):
            self._refuse(COUNTS, f"blocks {first} to {last - 1} do not have the labels that the header says")
        return codes, start

    def read_item_ids(self, first: int, last: int) -> Sequence[Any] | npt.NDArray[Any]:
        """Read the ids of the items of blocks `first` to `last - 1`, in the order of the items."""
        raw = zip(self._blocks[first:last], self.read_raw_ids(first, last))
        parts = [part.decoded() if isinstance(part, TextIds) else part for block, part in raw if block["n_items"]]
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        if len(arrays) == len(parts):
            return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
        return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]

    def read_raw_ids(self, first: int, last: int) -> list[npt.NDArray[np.int64] | TextIds | list[Any]]:
        """Read the ids of the items of some blocks as they are stored: text as one piece of UTF-8 for each block."""
        data = np.empty(self._offset[ITEMS][last] - self._offset[ITEMS][first], np.uint8)
        self._read_into(data, ITEMS, first, last)
        number, at = self.n_items_of(0, first), 0
        raw_ids: list[npt.NDArray[np.int64] | TextIds | list[Any]] = []
        for block in self._blocks[first:last]:
            n_items, n_bytes = block["n_items"], block[ITEMS][0]
            if block["ids"] == "numbered":
                raw_ids.append(np.arange(number, number + n_items))
            else:
                raw_ids.append(decode_ids(block["ids"], data[at : at + n_bytes].tobytes(), n_items))
            number, at = number + n_items, at + n_bytes
        return raw_ids

    def _read_into(self, target: npt.NDArray[Any], name: str, first: int, last: int) -> None:
        """Fill an array with the bytes of consecutive blocks of a file in one read, and compare new checksums."""
        view = target.data.cast("B") if target.size else memoryview(b"")
        at = 0
        try:
            with (self.folder / name).open("rb", buffering=0) as file:
                file.seek(self._offset[name][first])
                while at < len(view) and (n := file.readinto(view[at:])):  # one read gives at most 2 GB
                    at += n
        except FileNotFoundError:
            self._refuse(name, "the file is missing")
        if at < len(view):
            self._refuse(name, f"it ends within blocks {first} to {last - 1}")
        begin = self._offset[name][first]
        for number in range(first, last):
            if (name, number) not in self._verified:
                part = view[self._offset[name][number] - begin : self._offset[name][number + 1] - begin]
                if zlib.crc32(part) != self._blocks[number][name][1]:
                    self._refuse(name, f"block {number} has changed since it was written (its checksum differs)")
                self._verified.add((name, number))

    def _header(self) -> dict[str, Any]:
        """Return the header, after its checksum and version were compared."""
        path = self.folder / HEADER
        try:
            header = json.loads(path.read_bytes())
            is_ours = header.get("format") == FORMAT
        except FileNotFoundError:
            raise AnnotationError(
                f"{self.folder} is not a code folder: it has no {HEADER}. Give the folder that a run wrote."
            ) from None
        except (ValueError, AttributeError, RecursionError):
            self._refuse(HEADER, "it is not JSON of this program")
        if not is_ours:
            self._refuse(HEADER, "it belongs to another program", "Give the folder that a run wrote.")
        if header.get("version") != VERSION:
            what = f"it has version {header.get('version')}, and this release reads version {VERSION}"
            self._refuse(HEADER, what)
        if header.pop("checksum", None) != header_checksum(header) or len(header["blocks"]) != N_BLOCKS:
            self._refuse(HEADER, "it has changed since it was written (its checksum differs)")
        return dict(header)

    def _small_file(self, name: str, n_bytes: int, checksum: int) -> bytes:
        """Return the content of a file that is read whole."""
        self._check_size(name, n_bytes)
        data = (self.folder / name).read_bytes()
        if zlib.crc32(data) != checksum:
            self._refuse(name, "it has changed since it was written (its checksum differs)")
        return data

    def _check_size(self, name: str, n_bytes: int) -> None:
        """Refuse a file that is missing, cut off or longer than it was."""
        try:
            size = (self.folder / name).stat().st_size
        except FileNotFoundError:
            self._refuse(name, "the file is missing")
        if size != n_bytes:
            self._refuse(name, f"it has {size} bytes where {n_bytes} were written")

    def _refuse(self, name: str, what: str, remedy: str = _AGAIN) -> NoReturn:
        """Raise the error that names the file, what is wrong, and what to do."""
        raise AnnotationError(f"{self.folder / name} cannot be used: {what}. {remedy}")
