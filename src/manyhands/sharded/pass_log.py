"""The record of finished passes, with which a run that was ended continues: the same bits, by construction.

Every E step is written whole or not at all. A run that starts again computes its M steps anew, which is cheap, and
takes the E steps from their records as far as these go. A record names the parameters that it belongs to, so that it is
used for these and no others.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import __version__
from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.sharded.labels import ShardedLabels
from manyhands.sharded.partial import Partial

Array = npt.NDArray[np.float64]

_MAGIC = b"manyhands pass 1\n"
_DIGEST = 16  # bytes
_UNUSABLE = "The record {} of pass {} is {}; this pass and those after it were computed again."


class PassLog:
    """Finished E steps of one fit, one file each.

    Parameters
    ----------
    folder : str or Path
        Where the records lie; a folder of its own below it holds those of this fit. It is created.
    key : str
        Name of the fit: all that its passes depend on (`PassLog.of`).

    Attributes
    ----------
    notes : list of str
        Sentences on records that could not be used.
    n_replayed : int
        Passes of this run that were taken from their records.
    n_computed : int
        Passes of this run that were computed and recorded.
    """

    def __init__(self, folder: str | Path, key: str) -> None:
        self.folder, self.key = Path(folder) / key, key
        self.notes: list[str] = []
        self.n_replayed = self.n_computed = 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"The folder {folder} for the record of finished passes cannot be created ({error.strerror}). "
                f"Choose another one."
            ) from None

    @classmethod
    def of(cls, folder: str | Path, method: Aggregator, labels: ShardedLabels) -> PassLog:
        """The record of a fit: of this method, its parameters, these labels, and this version of the package.

        Parameters
        ----------
        folder : str or Path
            Where records lie.
        method : Aggregator
            The method with its parameters.
        labels : ShardedLabels
            The labels.

        Returns
        -------
        PassLog
        """
        parameters = {name: _plain(value) for name, value in sorted(method.get_params(deep=False).items())}
        names = [__version__, type(method).__name__, parameters, labels.fingerprint, labels.n_shards]
        return cls(folder, blake2b(json.dumps(names).encode(), digest_size=_DIGEST).hexdigest())

    def step(self, parameters: bytes, compute: Callable[[], Partial]) -> Partial:
        """The next E step: from its record if there is one, otherwise computed and recorded.

        Parameters
        ----------
        parameters : bytes
            Digest of all that this step depends on (`digest_of`).
        compute : callable
            Runs the step.

        Returns
        -------
        Partial
        """
        number = self.n_replayed + self.n_computed
        if self.n_computed == 0:  # after a pass that was computed there are no records to go on with
            found = self._read(number, parameters)
            if found is not None:
                self.n_replayed += 1
                return found
        made = compute()
        self._write(number, parameters, made)
        self.n_computed += 1
        return made

    def remove(self) -> None:
        """Remove all records of this fit, after its results were written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"pass-{number:05d}"

    def _read(self, number: int, parameters: bytes) -> Partial | None:
        """The record of a pass; None where there is none, or it is broken or foreign."""
        path = self._path(number)
        try:
            data = bytearray(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self.notes.append(_UNUSABLE.format(path, number + 1, f"not readable ({error.strerror})"))
            return None
        made = _parse(data, parameters)
        if isinstance(made, str):
            self.notes.append(_UNUSABLE.format(path, number + 1, made))
            return None
        return made

    def _write(self, number: int, parameters: bytes, made: Partial) -> None:
        """Write a record under a temporary name, then rename it."""
        path, temporary = self._path(number), self._path(number).with_suffix(".part")
        sizes: dict[str, Any] = {
            "shape": made.counts.shape,
            "evidence": made.evidence.hex(),
            "parameters": parameters.hex(),
        }
        sizes |= {"n_labelled": made.n_labelled, "n_compared": made.n_compared}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # an earlier run of the same fit removes it at its end
            with temporary.open("wb") as file:
                found = blake2b(digest_size=_DIGEST)
                for part in (_MAGIC, json.dumps(sizes).encode() + b"\n", made.counts, made.totals):
                    piece = np.ascontiguousarray(part).data if isinstance(part, np.ndarray) else part
                    found.update(piece)
                    file.write(piece)
                file.write(found.digest())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise ManyhandsError(
                f"The record of pass {number + 1} cannot be written to {self.folder} ({error.strerror}). Make room "
                f"there, {made.counts.nbytes / 1e6:.0f} MB for each pass, and run the same command again: it continues "
                f"after the last recorded pass."
            ) from None


def _parse(data: bytearray, parameters: bytes) -> Partial | str:
    """A record, or in a few words why it cannot be used."""
    view = memoryview(data)
    if blake2b(view[:-_DIGEST], digest_size=_DIGEST).digest() != bytes(view[-_DIGEST:]):
        return "broken"
    if not data.startswith(_MAGIC):
        return "of another version"
    end = data.index(b"\n", len(_MAGIC)) + 1
    sizes = json.loads(data[len(_MAGIC) : end])
    if bytes.fromhex(sizes["parameters"]) != parameters:
        return "of other parameters"
    rows, n_classes = sizes["shape"]
    numbers = np.frombuffer(bytes(view[end:-_DIGEST]), np.float64).copy()
    counts, totals = numbers[: rows * n_classes].reshape(rows, n_classes), numbers[rows * n_classes :]
    return Partial(counts, totals, float.fromhex(sizes["evidence"]), sizes["n_labelled"], sizes["n_compared"])


def digest_of(name: str, *arrays: Array) -> bytes:
    """Digest of what a task depends on besides the labels.

    Parameters
    ----------
    name : str
        Name of the task.
    *arrays : ndarray
        Its parameters.

    Returns
    -------
    bytes
    """
    found = blake2b(name.encode(), digest_size=_DIGEST)
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def _plain(value: Any) -> Any:
    """A parameter as JSON can write it, with all its digits."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, str | int | float | bool | type(None) | list | tuple) else repr(value)
