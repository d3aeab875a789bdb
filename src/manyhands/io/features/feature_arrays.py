"""Features in NumPy's files: .npy, .npz with arrays ``X`` and ``ids``, and the sparse .npz of SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manyhands.encoding import UNPAIRED_SURROGATE, unpaired_surrogate
from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.io.messages import listed
from manyhands.io.read.numpy_files import open_npz, read_npy

_AS_TEXT = "Give them as text."
_SPARSE = {"format", "shape", "data"}  # arrays that scipy.sparse.save_npz writes, among others


def read_array(path: Path) -> tuple[Any, list[str] | None]:
    """Read features, and the ids of their rows where the file has them.

    Parameters
    ----------
    path : Path
        An .npy file, or an .npz file with an array ``X`` (or one array of any other name) and possibly ``ids``, or an
        .npz file as `scipy.sparse.save_npz` writes it.

    Returns
    -------
    features : ndarray or csr_array
        The features, of whatever shape the file has.
    ids : list of str or None
        The id of each row; None where the file has none.

    Raises
    ------
    AnnotationError
        If the file is damaged, holds Python objects, or has several arrays and none is called ``X``.
    LimitError
        If the arrays do not fit into memory.
    """
    if path.suffix.lower() == ".npy":
        return read_npy(path), None
    with open_npz(path) as (file, arrays):
        features = _sparse(file) if set(arrays.files) >= _SPARSE else arrays[_name_of_features(path, arrays.files)]
        return features, as_ids(arrays["ids"], str(path)) if "ids" in arrays.files else None


def as_ids(ids: npt.NDArray[Any], where: str) -> list[str]:
    """Return ids as the readers of exports give them: text, and integers without a decimal point.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Texts, bytes, integers, or floats that are integers.
    where : str
        Name of the file, for error messages.

    Returns
    -------
    list of str
        One id per row.

    Raises
    ------
    AlignmentError
        If the array has another shape or type, or if different ids could have been rounded to the same float.
    """
    if ids.ndim != 1 or ids.dtype.kind not in "biufUS":
        raise AlignmentError(
            f"The ids in {where} must be a list of texts or whole numbers; they are {ids.dtype} of shape {ids.shape}."
        )
    if ids.dtype.kind == "S":
        return [value.decode("utf-8", "replace") for value in ids.tolist()]
    if ids.dtype.kind == "f":
        return _float_ids(ids, where)
    texts = [str(value) for value in ids.tolist()]
    invalid = unpaired_surrogate(texts)
    if invalid is not None:
        raise AlignmentError(f"The ids in {where} have {invalid!r} in row {texts.index(invalid)}, {UNPAIRED_SURROGATE}")
    return texts


def _float_ids(ids: npt.NDArray[Any], where: str) -> list[str]:
    """Return floats as integer ids, if each of them is an integer that its float type represents exactly."""
    if not np.isfinite(ids).all():
        row = int(np.isfinite(ids).argmin())
        raise AlignmentError(f"The ids in {where} have {ids[row]} in row {row}; give every row an id.")
    if not np.all(ids == np.round(ids)):
        raise AlignmentError(f"The ids in {where} are numbers with a fraction; give them as text.")
    limit = 2 ** (np.finfo(ids.dtype).nmant + 1)
    if not np.all(np.abs(ids) <= limit):
        raise AlignmentError(
            f"The ids in {where} are floats beyond {limit}, where not every whole number has one. {_AS_TEXT}"
        )
    return [str(int(value)) for value in ids.tolist()]


def _name_of_features(path: Path, names: Sequence[str]) -> str:
    """Return the name of the array of features: ``X``, or the only array beside ``ids``."""
    others = [name for name in names if name != "ids"]
    if "X" in others:
        return "X"
    if len(others) != 1:
        raise AnnotationError(f"{path} has no array called X. It has: {listed(others) or 'nothing'}. Save X and ids.")
    return others[0]


def _sparse(file: BinaryIO) -> Any:
    """Read a sparse matrix in CSR format, with its indices checked."""
    from scipy.sparse import load_npz

    file.seek(0)
    matrix = load_npz(file)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # an index beyond the matrix would read other memory
    return matrix.tocsr()
