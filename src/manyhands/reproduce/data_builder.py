"""Data sets of a run, each built once: one process builds them, and all cells that need them get a copy.

They are built in a process like those of the cells (one thread), so that a cell computes the same bits as if it had
built its data itself. Copies are passed on as bytes, and only the most recent ones are kept.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Self

from manyhands import datasets
from manyhands.datasets import CrowdDataset
from manyhands.exceptions import ManyhandsError
from manyhands.reproduce.cells import Cell, naming
from manyhands.reproduce.processes import describe_exit, end_with_parent, start_process
from manyhands.reproduce.splits import Part, make_part
from manyhands.reproduce.tables import DataSet

Built = tuple[Part, list[str]]  # the data, and the categories of the warnings while they were built

_FOLDER = "MANYHANDS_DATA"
_KEEP_MB = 512  # of built data, in the process that distributes them
_LOADED_MB = 1024  # of loaded data sets, in the process that builds from them


class DataBuilder:
    """Builds the data of cells in one process and keeps recent ones; use it as a context manager.

    Parameters
    ----------
    keep_mb : float, default=512
        Data sets that are kept for further cells, in megabytes; the last one is kept in any case.

    Attributes
    ----------
    n_built : int
        Number of data sets that were built so far.

    Examples
    --------
    >>> with DataBuilder() as builder:
    ...     builder.n_built
    0
    """

    def __init__(self, keep_mb: float = _KEEP_MB) -> None:
        self.n_built = 0
        self._pipe: Any = None
        self._process: Any = None
        self._recent = _Recent(keep_mb)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a later call of `build` starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._pipe = self._process = None

    def check(self, cells: Sequence[Cell]) -> None:
        """Build the first part of every data set, and refuse what cannot be built.

        Parameters
        ----------
        cells : sequence of Cell
            The cells that are to be measured.

        Raises
        ------
        ManyhandsError
            One sentence that names the table and the data set.
        """
        first: dict[str, Cell] = {}
        for cell in cells:
            first.setdefault(cell.dataset.name, cell)
        for name, cell in first.items():
            with naming(cell.table, f"data set {name!r}"):
                self.build(cell)

    def build(self, cell: Cell) -> bytes:
        """Return the data of a cell, built now or kept from another cell.

        Parameters
        ----------
        cell : Cell
            The cell.

        Returns
        -------
        bytes
            A `Built`, as `multiprocessing` sends it.

        Raises
        ------
        Exception
            What `make_part` raises.
        """
        key = _data_key(cell.dataset, cell.seed, cell.table.first_seed, cell.quick)
        found: bytes | None = self._recent.get(key)
        if found is None:
            found = self._request((cell.dataset, cell.seed, cell.table.first_seed, cell.quick))
            self.n_built += 1
            self._recent.put(key, found, len(found))
        return found

    def get(self, cell: Cell) -> bytes | None:
        """Return the data of a cell as `build`; None if that fails, so that the cell itself records the error.

        Parameters
        ----------
        cell : Cell
            The cell.

        Returns
        -------
        bytes or None
            The data.
        """
        try:
            return self.build(cell)
        except Exception:
            return None

    def _request(self, what: tuple[DataSet, int, int, bool]) -> bytes:
        """Return what the process built; raise its error."""
        if self._process is None:
            self._pipe, self._process = start_process(_serve)
        try:
            self._pipe.send((*what, os.environ.get(_FOLDER)))
            error = self._pipe.recv()
            if error is None:
                return bytes(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
            how = describe_exit(self._process.exitcode)
            self.close()
            raise ManyhandsError(f"The process that builds data sets {how}.") from None
        raise error


class _Recent:
    """The most recently used objects, up to a total size."""

    def __init__(self, limit_mb: float) -> None:
        self._limit = limit_mb * 2**20
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def get(self, key: str) -> Any:
        """Return an object, or None."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: str, value: Any, size: int) -> None:
        """Keep an object; forget the least recently used ones beyond the limit."""
        self._kept[key] = (value, size)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)


def _data_key(dataset: DataSet, seed: int, first_seed: int, quick: bool) -> str:
    """Return the same text for cells with the same data."""
    drawn = seed if dataset.depends_on_seed else None
    return json.dumps([asdict(dataset), drawn, first_seed if dataset.folds else None, quick], default=repr)


def _serve(pipe: Any) -> None:
    """Build data sets on request until the pipe is closed."""
    end_with_parent()
    load = _remembering(datasets.load)
    with suppress(EOFError, OSError):
        while True:
            dataset, seed, first_seed, quick, folder = pipe.recv()
            _set_folder(folder)
            with warnings.catch_warnings(record=True) as raised:
                warnings.simplefilter("always")
                try:
                    part = make_part(dataset, seed, first_seed, quick, load=load)
                except Exception as error:
                    pipe.send(_portable(error))
                    continue
            pipe.send(None)
            pipe.send((part, sorted({warning.category.__name__ for warning in raised})))


def _set_folder(folder: str | None) -> None:
    """Use the folder of data sets of the process that asks, whose environment may have changed since."""
    if folder is None:
        os.environ.pop(_FOLDER, None)
    else:
        os.environ[_FOLDER] = folder


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent: ours as they are, of others the text."""
    return error if isinstance(error, ManyhandsError) else RuntimeError(f"{type(error).__name__}: {error}")


def _remembering(load: Callable[..., CrowdDataset]) -> Callable[..., CrowdDataset]:
    """Return a function that loads each data set once, as long as memory for it is set aside."""
    loaded = _Recent(_LOADED_MB)

    def load_once(name: str, **arguments: Any) -> CrowdDataset:
        key = json.dumps([name, arguments, os.environ.get(_FOLDER)], sort_keys=True, default=repr)
        found: CrowdDataset | None = loaded.get(key)
        if found is None:
            found = load(name, **arguments)
            loaded.put(key, found, _size(found))
        return found

    return load_once


def _size(data: CrowdDataset) -> int:
    """Return the bytes of the features of a data set, which is most of it."""
    return sum(
        int(getattr(X, "nbytes", 0) or getattr(getattr(X, "data", None), "nbytes", 0)) for X in (data.X, data.X_test)
    )
