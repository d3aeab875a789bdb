"""Features in NumPy's files: .npy, .npz with X and ids, and scipy's sparse .npz; pickles in them are refused."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manyhands.encoding import HALF_PAIR, half_pair
from manyhands.exceptions import AlignmentError, AnnotationError, LimitError, ManyhandsError
from manyhands.io.messages import listed
from manyhands.io.read.sources import Source
from manyhands.validation import check_memory

ENDINGS = (".npy", ".npz")
_TOO_LARGE = "Cut the file into parts."
_AS_TEXT = "Give them as text."
_SPARSE = {"format", "shape", "data"}  # what scipy.sparse.save_npz writes, among others
_BROKEN = (ValueError, OSError, EOFError, KeyError, TypeError, SyntaxError, zipfile.BadZipFile, RuntimeError)


def read_array(path: Path) -> tuple[Any, list[str] | None]:
    """The features, and the ids of their rows where the file has them (`ids` beside `X` in an .npz)."""
    source = Source(str(path), path)
    try:
        with source.opened() as file:
            if path.suffix.lower() == ".npy":
                check_memory(source.size, f"The array of {path}", _TOO_LARGE)
                return np.load(file, allow_pickle=False), None
            return _from_archive(path, file)
    except (ManyhandsError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except MemoryError:
        raise LimitError(f"{path} holds an array that does not fit into memory.") from None
    except _BROKEN as error:
        raise AnnotationError(_explain(path, error)) from None


def _from_archive(path: Path, file: BinaryIO) -> tuple[Any, list[str] | None]:
    with zipfile.ZipFile(file) as archive:
        check_memory(sum(member.file_size for member in archive.infolist()), f"The arrays of {path}", _TOO_LARGE)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        features = _sparse(file) if set(arrays.files) >= _SPARSE else arrays[_name_of_features(path, arrays.files)]
        return features, as_ids(arrays["ids"], str(path)) if "ids" in arrays.files else None


def as_ids(ids: npt.NDArray[Any], where: str) -> list[str]:
    """Ids as the readers of exports have them: text, and whole numbers without a point."""
    if ids.ndim != 1 or ids.dtype.kind not in "biufUS":
        raise AlignmentError(
            f"The ids in {where} must be a list of texts or whole numbers; they are {ids.dtype} of shape {ids.shape}."
        )
    if ids.dtype.kind == "S":
        return [value.decode("utf-8", "replace") for value in ids.tolist()]
    if ids.dtype.kind == "f":
        if not np.isfinite(ids).all():
            row = int(np.isfinite(ids).argmin())
            raise AlignmentError(f"The ids in {where} have {ids[row]} in row {row}; give every row an id.")
        if not np.all(ids == np.round(ids)):
            raise AlignmentError(f"The ids in {where} are numbers with a fraction; give them as text.")
        most = 2 ** (np.finfo(ids.dtype).nmant + 1)
        if not np.all(np.abs(ids) <= most):
            raise AlignmentError(
                f"The ids in {where} are floats beyond {most}, where not every whole number has one. {_AS_TEXT}"
            )
        return [str(int(value)) for value in ids.tolist()]
    texts = [str(value) for value in ids.tolist()]
    invalid = half_pair(texts)
    if invalid is not None:
        raise AlignmentError(f"The ids in {where} have {invalid!r} in row {texts.index(invalid)}, {HALF_PAIR}")
    return texts


def _name_of_features(path: Path, names: Sequence[str]) -> str:
    others = [name for name in names if name != "ids"]
    if "X" in others:
        return "X"
    if len(others) != 1:
        raise AnnotationError(f"{path} has no array called X. It has: {listed(others) or 'nothing'}. Save X and ids.")
    return others[0]


def _sparse(file: BinaryIO) -> Any:
    from scipy.sparse import load_npz

    file.seek(0)
    matrix = load_npz(file)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # else an index beyond the matrix is read, wherever that may be
    return matrix.tocsr()


def _explain(path: Path, error: Exception) -> str:
    cause = str(error).partition("\n")[0][:200]
    if any(word in cause.lower() for word in ("pickle", "python objects")):
        return f"{path} holds Python objects (a pickle), which are not read. Save numbers, and ids as text."
    return f"{path} cannot be read as a file of NumPy: {cause.rstrip('.')}. Save it again."
