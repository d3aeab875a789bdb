"""NumPy's files (.npy and .npz), read without pickles and within the memory of the machine.

Both the features of items (`manyhands.io.features`) and the arrays of published data (`manyhands.datasets`) are read
here. Arrays of Python objects would be unpickled, which may run code, so they are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError, LimitError, ManyhandsError
from manyhands.io.read.sources import Source
from manyhands.validation import check_memory

ENDINGS = (".npy", ".npz")
Arrays = dict[str, npt.NDArray[Any]]
_REMEDY = "Split the file into parts."
_BROKEN = (ValueError, OSError, EOFError, KeyError, TypeError, SyntaxError, zipfile.BadZipFile, RuntimeError)


def read_npy(path: Path) -> npt.NDArray[Any]:
    """Read the array of an .npy file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    ndarray
        The array, of any shape and type but Python objects.

    Raises
    ------
    AnnotationError
        If the file is damaged or holds Python objects.
    LimitError
        If the array does not fit into memory.
    """
    with numpy_errors(path), _opened(path) as (source, file):
        check_memory(source.size, f"The array of {path}", _REMEDY)
        array: npt.NDArray[Any] = np.load(file, allow_pickle=False)
        return array


@contextmanager
def open_npz(path: Path, wanted: Sequence[str] | None = None) -> Iterator[tuple[BinaryIO, Any]]:
    """Open an .npz file; errors within the block are turned into those of `numpy_errors`.

    Parameters
    ----------
    path : Path
        The file.
    wanted : sequence of str, default=None
        Names of the arrays that will be read, for the check of memory; None for all.

    Yields
    ------
    file : binary file
        The open file, for readers other than NumPy's.
    arrays : numpy.lib.npyio.NpzFile
        Its arrays by name; each is read when it is asked for.
    """
    with numpy_errors(path), _opened(path) as (_, file):
        with zipfile.ZipFile(file) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
        n_bytes = sum(size for name, size in sizes.items() if wanted is None or name in wanted)
        check_memory(n_bytes, f"The arrays of {path}", _REMEDY)
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            yield file, arrays


def read_arrays(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """Read some arrays of an .npz file.

    Parameters
    ----------
    path : Path
        The file.
    needed : sequence of str
        Names of the arrays that must be there.
    optional : sequence of str, default=()
        Names of arrays that are read if they are there.

    Returns
    -------
    dict of str to ndarray
        The arrays that were found; all others in the file are not read.

    Raises
    ------
    AnnotationError
        If the file is damaged, lacks an array, or would need pickle.
    """
    with open_npz(path, (*needed, *optional)) as (_, arrays):
        missing = [name for name in needed if name not in arrays.files]
        if missing:
            raise AnnotationError(f"{path} is not complete: it has no array {' and no '.join(missing)}. Copy it again.")
        return {name: arrays[name] for name in (*needed, *optional) if name in arrays.files}


@contextmanager
def numpy_errors(path: Path) -> Iterator[None]:
    """Turn what NumPy and zipfile raise within the block into one-sentence errors of manyhands.

    Parameters
    ----------
    path : Path
        The file that is read, named in the error message.
    """
    try:
        yield
    except (ManyhandsError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except MemoryError:
        raise LimitError(f"{path} holds an array that does not fit into memory.") from None
    except _BROKEN as error:
        raise AnnotationError(_explain(path, error)) from None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Source, BinaryIO]]:
    """Open a file as a `Source`, which notices when it is changed while it is read."""
    source = Source(str(path), path)
    with source.opened() as file:
        yield source, file


def _explain(path: Path, error: Exception) -> str:
    """Return the error message for a file that NumPy cannot read."""
    cause = str(error).partition("\n")[0][:200]
    if any(word in cause.lower() for word in ("pickle", "python objects")):
        return f"{path} holds Python objects (a pickle), which are not read. Save numbers, and ids as text."
    return f"{path} cannot be read as a NumPy file: {cause.rstrip('.')}. Save it again."
