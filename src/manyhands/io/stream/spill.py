"""Rows on disk by ranges of the CRC-32 of their items, so that all rows of an item are found together again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError
from manyhands.io.stream.joined_texts import Hashes
from manyhands.sharded.code_ids import TextIds, narrow
from manyhands.writing.staged_files import naming

_CRC_BITS = 32
NO_TIME = np.iinfo(np.int64).min  # of rows without a time, which are the oldest


class SpilledRows(NamedTuple):
    """Rows whose workers and labels are numbers.

    Attributes
    ----------
    texts : TextIds
        Texts of items, each of which may occur several times.
    hashes : ndarray of shape (n_texts,) of uint32
        CRC-32 of each text.
    item : ndarray of shape (n_rows,) of int
        Text of each row.
    worker : ndarray of shape (n_rows,) of int
        Worker of each row; -1 where there is none.
    label : ndarray of shape (n_rows,) of int
        Label of each row; -1 where there is none.
    time : ndarray of shape (n_rows,) of int64 or None
        Microseconds since 1970; None where rows have no times.
    """

    texts: TextIds
    hashes: Hashes
    item: npt.NDArray[Any]
    worker: npt.NDArray[Any]
    label: npt.NDArray[Any]
    time: npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class _Stored:
    """An array of a batch in the file, and where the part of each range begins."""

    offset: int
    dtype: np.dtype[Any]
    edges: npt.NDArray[np.uint32]


class Spill:
    """A file of rows in batches; within a batch, rows are ordered by the range of their items.

    Use it as a context manager; the file is removed at the end.

    Parameters
    ----------
    path : Path
        The file to write.
    bits : int
        Number of leading bits of the CRC-32 of an item that name its range; there are 2^bits ranges.
    shown : Path
        What is being written, for errors of the disk.
    """

    def __init__(self, path: Path, bits: int, shown: Path) -> None:
        self.path, self.n_parts = path, 1 << bits
        self._shift, self._shown = np.uint32(_CRC_BITS - bits), shown
        self._batches: list[dict[str, _Stored]] = []
        self._file: IO[bytes] | None = None
        self.n_bytes = 0

    def __enter__(self) -> Spill:
        """Create the file."""
        with naming(self._shown):
            self._file = self.path.open("w+b", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
        self.path.unlink(missing_ok=True)

    def add(self, rows: SpilledRows) -> None:
        """Append a batch.

        Parameters
        ----------
        rows : SpilledRows
            The rows; texts in the order of the ranges of their CRC-32.
        """
        part_of_text = (rows.hashes >> self._shift).astype(np.uint16)
        part_of_row = part_of_text[rows.item]
        order = np.argsort(part_of_row, kind="stable")  # a radix sort, for numbers of 16 bits
        ranges = np.arange(self.n_parts + 1)
        of_texts = np.searchsorted(part_of_text, ranges)
        of_rows = np.searchsorted(part_of_row[order], ranges)
        ends = np.concatenate([[0], np.cumsum(rows.texts.n_bytes, dtype=np.int64)])
        item = rows.item[order] - of_texts[part_of_row[order]]  # number of the text within its range
        stored = {
            "n_bytes": self._append(narrow(rows.texts.n_bytes), of_texts),
            "data": self._append(np.frombuffer(rows.texts.data, np.uint8), ends[of_texts]),
            "hashes": self._append(rows.hashes, of_texts),
            "item": self._append(narrow(item), of_rows),
            "worker": self._append(narrow(rows.worker[order] + 1), of_rows),
            "label": self._append(narrow(rows.label[order] + 1), of_rows),
        }
        if rows.time is not None:
            stored["time"] = self._append(rows.time[order], of_rows)
        self._batches.append(stored)

    def _append(self, values: npt.NDArray[Any], edges: npt.NDArray[Any]) -> _Stored:
        """Append an array to the file."""
        assert self._file is not None
        view = np.ascontiguousarray(values).data.cast("B") if len(values) else memoryview(b"")
        stored = _Stored(self.n_bytes, values.dtype, edges.astype(np.uint32))
        while len(view):
            with naming(self._shown):
                n = self._file.write(view)
            self.n_bytes += n
            view = view[n:]
        return stored

    def n_rows(self, part: int) -> int:
        """Return the number of rows of a range.

        Parameters
        ----------
        part : int
            Number of the range.

        Returns
        -------
        int
        """
        return sum(int(batch["item"].edges[part + 1]) - int(batch["item"].edges[part]) for batch in self._batches)

    def read(self, part: int) -> SpilledRows:
        """Read the rows of a range, in the order in which they were written.

        Parameters
        ----------
        part : int
            Number of the range.

        Returns
        -------
        SpilledRows
        """
        pieces = {name: [self._read(batch[name], part) for batch in self._batches if name in batch] for name in _NAMES}
        n_texts = [len(piece) for piece in pieces["n_bytes"]]
        before = np.cumsum([0, *n_texts])
        item = [piece + np.int64(at) for piece, at in zip(pieces["item"], before)]
        time = None
        if pieces["time"]:
            time = np.concatenate(
                [
                    self._read(batch["time"], part) if "time" in batch else np.full(len(rows), NO_TIME)
                    for batch, rows in zip(self._batches, item)
                ]
            )
        return SpilledRows(
            TextIds(_joined(pieces["n_bytes"], np.int64), b"".join(piece.tobytes() for piece in pieces["data"])),
            _joined(pieces["hashes"], np.uint32),
            _joined(item, np.int64),
            _joined(pieces["worker"], np.int64) - 1,
            _joined(pieces["label"], np.int64) - 1,
            time,
        )

    def _read(self, stored: _Stored, part: int) -> npt.NDArray[Any]:
        """Read the part of a range from an array of a batch."""
        assert self._file is not None
        first, last = int(stored.edges[part]), int(stored.edges[part + 1])
        values = np.empty(last - first, stored.dtype)
        if len(values):
            self._file.seek(stored.offset + first * stored.dtype.itemsize)
            if self._file.readinto(values.data.cast("B")) != values.nbytes:  # type: ignore[attr-defined]
                raise AnnotationError(f"{self.path} was changed while it was read. Start again.")
        return values


_NAMES = ("n_bytes", "data", "hashes", "item", "worker", "label", "time")


def _joined(pieces: list[npt.NDArray[Any]], dtype: type[Any]) -> npt.NDArray[Any]:
    """Join arrays of different widths."""
    return np.concatenate([np.zeros(0, dtype), *pieces], dtype=dtype)
