"""`CodeFolder`: the labels of a crowd as codes on disk, read block by block into memory of its own."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.em.packed import Packed
from manyhands.exceptions import AnnotationError
from manyhands.sharded import code_writer as files
from manyhands.sharded.code_ids import TextIds, decode_ids, ids_from_json, width_type
from manyhands.sharded.code_writer import CodeFolderWriter as CodeFolderWriter
from manyhands.sharded.labels import Shard
from manyhands.sharded.layout import N_BLOCKS, shard_count
from manyhands.sharded.shard_threads import run_in_order

R = TypeVar("R")

_AGAIN = "Delete the folder; the next run writes it again."


class CodeFolder:
    """Labels as codes on disk, written by `CodeFolderWriter`; a `ShardedLabels` whose tasks run in threads.

    Blocks are read into new memory and never mapped, so that the memory of a run is known. The checksum of a
    block is compared the first time this object reads it, and not again: CRC-32 takes 0.5 ns per label with the zlib
    of a current Linux and up to 4 ns with others, for each pass. The number of bytes is compared every time.

    Parameters
    ----------
    folder : str or Path
        The folder.

    Attributes
    ----------
    n_shards : int
        Number of shards, as the layout gives it.
    n_items : int
        Number of items.
    n_labels : int
        Number of labels.
    fingerprint : str
        Changes with every label, every id and the number of shards.
    worker_ids : ndarray of shape (n_workers,)
        Ids of the workers, by code.
    classes : ndarray of shape (n_classes,)
        The classes, by code.
    worker_volume : ndarray of shape (n_workers,) of int64
        Labels of each worker.
    ledger : dict
        Account of the rows that were read; empty where none was kept.

    Raises
    ------
    AnnotationError
        Where the folder is not one of these, of another version, incomplete or damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        header = self._header()
        self._blocks: list[dict[str, Any]] = header["blocks"]
        self.n_items, self.n_labels = int(header["n_items"]), int(header["n_labels"])
        small = {name: self._small_file(name, *size_sum) for name, size_sum in header["files"].items()}
        self.worker_ids = ids_from_json(small[files.WORKERS], "worker")
        self.classes = ids_from_json(small[files.CLASSES], "class")
        self.worker_volume = np.frombuffer(small[files.VOLUME], "<i8").astype(np.int64)
        self.ledger: dict[str, Any] = json.loads(small[files.LEDGER])
        self._offset = {
            name: [0, *accumulate(block[name][0] for block in self._blocks)]
            for name in (files.CODES, files.COUNTS, files.ITEMS)
        }
        for name, offset in self._offset.items():
            self._check_size(name, offset[-1])
        self._verified: set[tuple[str, int]] = set()
        self.n_shards = shard_count(self.n_labels, self.n_workers, self.n_classes)
        self.fingerprint = f"{files.header_checksum(header)}-{self.n_shards}"

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
        """Run a task on every shard, in threads; one shard per thread is in memory, and one more.

        Parameters
        ----------
        task : callable
            Takes a `Shard`.
        what : str
            Name under which progress is reported.

        Yields
        ------
        object
            The results, in the order of shards.
        """
        return run_in_order(lambda number: task(self.shard(number)), self.n_shards, what)

    def shard(self, number: int) -> Shard:
        """Read one shard into new memory; its ids are read when they are asked for.

        Parameters
        ----------
        number : int
            Number of the shard.

        Returns
        -------
        Shard
        """
        width = N_BLOCKS // self.n_shards
        first, last = number * width, (number + 1) * width
        codes, start = self.read_codes(first, last)
        return Shard(
            number, Packed(codes, None, start, self.n_workers, self.n_classes), partial(self.read_item_ids, first, last)
        )

    def n_items_of(self, first: int, last: int) -> int:
        """Return the number of items in blocks `first` to `last - 1`.

        Parameters
        ----------
        first : int
            The first block.
        last : int
            The block after the last one.

        Returns
        -------
        int
        """
        return sum(block["n_items"] for block in self._blocks[first:last])

    def read_codes(self, first: int, last: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Read the labels of blocks `first` to `last - 1` into new arrays.

        Parameters
        ----------
        first : int
            The first block.
        last : int
            The block after the last one.

        Returns
        -------
        codes : ndarray of shape (n_labels,) of int32
            ``worker * n_classes + label``, item after item.
        start : ndarray of shape (n_items + 1,) of int64
            Labels of item i are at ``start[i]:start[i + 1]``.

        Raises
        ------
        AnnotationError
            Where the file is shorter than it was, or its bytes have changed.
        """
        codes = np.empty(sum(block["n_labels"] for block in self._blocks[first:last]), "<i4")
        self._read_into(codes, files.CODES, first, last)
        start = np.zeros(self.n_items_of(first, last) + 1, np.int64)
        counts = np.empty(self._offset[files.COUNTS][last] - self._offset[files.COUNTS][first], np.uint8)
        self._read_into(counts, files.COUNTS, first, last)
        at, done = 0, 0
        for block in self._blocks[first:last]:
            if n_items := block["n_items"]:
                n_bytes = block[files.COUNTS][0]
                start[done + 1 : done + n_items + 1] = counts[at : at + n_bytes].view(width_type(n_bytes // n_items))
                at, done = at + n_bytes, done + n_items
        np.cumsum(start, out=start)
        if start[-1] != len(codes):
            self._refuse(files.COUNTS, f"blocks {first} to {last - 1} do not have the labels that the header says")
        return codes, start

    def read_item_ids(self, first: int, last: int) -> Sequence[Any] | npt.NDArray[Any]:
        """Read the ids of the items of blocks `first` to `last - 1`, in the order of the items.

        Parameters
        ----------
        first : int
            The first block.
        last : int
            The block after the last one.

        Returns
        -------
        list or ndarray of int64
            Integers as an array, where all of them are; otherwise a list.
        """
        raw = zip(self._blocks[first:last], self.read_raw_ids(first, last))
        parts = [part.decoded() if isinstance(part, TextIds) else part for block, part in raw if block["n_items"]]
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        if len(arrays) == len(parts):
            return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
        return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]

    def read_raw_ids(self, first: int, last: int) -> list[npt.NDArray[np.int64] | TextIds | list[Any]]:
        """Read the ids of the items of some blocks as they are stored: text as one piece of UTF-8 for each block.

        Parameters
        ----------
        first : int
            The first block.
        last : int
            The block after the last one.

        Returns
        -------
        list of ndarray of int64, TextIds or list
            One entry for each block.
        """
        data = np.empty(self._offset[files.ITEMS][last] - self._offset[files.ITEMS][first], np.uint8)
        self._read_into(data, files.ITEMS, first, last)
        number, at = self.n_items_of(0, first), 0
        found: list[npt.NDArray[np.int64] | TextIds | list[Any]] = []
        for block in self._blocks[first:last]:
            n_items, n_bytes = block["n_items"], block[files.ITEMS][0]
            if block["ids"] == "numbered":
                found.append(np.arange(number, number + n_items))
            else:
                found.append(decode_ids(block["ids"], data[at : at + n_bytes].tobytes(), n_items))
            number, at = number + n_items, at + n_bytes
        return found

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
        path = self.folder / files.HEADER
        try:
            header = json.loads(path.read_bytes())
            known = header.get("format") == files.FORMAT
        except FileNotFoundError:
            raise AnnotationError(
                f"{self.folder} is not a code folder: it has no {files.HEADER}. Give the folder that a run wrote."
            ) from None
        except (ValueError, AttributeError, RecursionError):
            self._refuse(files.HEADER, "it is not JSON of this program")
        if not known:
            self._refuse(files.HEADER, "it belongs to another program", "Give the folder that a run wrote.")
        if header.get("version") != files.VERSION:
            what = f"it has version {header.get('version')}, and this release reads version {files.VERSION}"
            self._refuse(files.HEADER, what)
        if header.pop("checksum", None) != files.header_checksum(header) or len(header["blocks"]) != N_BLOCKS:
            self._refuse(files.HEADER, "it has changed since it was written (its checksum differs)")
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
            found = (self.folder / name).stat().st_size
        except FileNotFoundError:
            self._refuse(name, "the file is missing")
        if found != n_bytes:
            self._refuse(name, f"it has {found} bytes where {n_bytes} were written")

    def _refuse(self, name: str, what: str, remedy: str = _AGAIN) -> NoReturn:
        """Raise the error that names the file, what is wrong, and what to do."""
        raise AnnotationError(f"{self.folder / name} cannot be used: {what}. {remedy}")
