"""`CodeFolderWriter`: the labels of a crowd as codes on disk, block after block."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError, OutputExistsError
from manyhands.sharded.code_ids import Ids, TextIds, encode_ids, json_of_ids, narrow
from manyhands.sharded.layout import N_BLOCKS
from manyhands.writing.locks import held
from manyhands.writing.staged_files import naming

FORMAT = "manyhands code folder"
VERSION = 1
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

    Parameters
    ----------
    folder : str or Path
        The folder to write; it must not exist. Its parent is created.
    worker_ids : sequence or ndarray
        Ids of all workers, in the order of their codes.
    classes : sequence or ndarray
        All classes, in the order of their codes.

    Raises
    ------
    OutputExistsError
        Where the folder exists, or another process is writing it.

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

        Parameters
        ----------
        number : int
            Number of the block, from 0 to 255.
        n_labels_of_item : array-like of shape (n_items,) of int
            Labels of each item.
        codes : array-like of shape (n_labels,) of int
            ``worker * n_classes + label`` of each label, item after item.
        item_ids : sequence, ndarray or TextIds, default=None
            Ids of the items; None numbers the items of the whole folder from 0 on and stores nothing.

        Raises
        ------
        AnnotationError
            Where the block comes out of turn, or its arrays do not fit together.
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
        """Write the header, and give the folder its name.

        Parameters
        ----------
        ledger : mapping, default=None
            What is kept in ``ledger.json``: the account of the rows that were read.

        Returns
        -------
        Path
            The folder.
        """
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
    """Return the checksum of a header, and so of all files; it does not depend on the layout of the JSON.

    Parameters
    ----------
    header : mapping
        The header without its checksum.

    Returns
    -------
    str
    """
    return blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16).hexdigest()


def _listed(ids: Ids) -> list[Any]:
    """Ids as Python values."""
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
