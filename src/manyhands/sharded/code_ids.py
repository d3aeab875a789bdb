"""Ids of items, workers and classes as bytes, and back: numbers stay numbers, text stays text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.encoding import as_ids
from manyhands.exceptions import AnnotationError

Ids = Sequence[Any] | npt.NDArray[Any]

_WIDTHS = (np.uint8, np.uint16, np.uint32)  # the types of small counts, by their number of bytes
_STORABLE = (str, int, float, bool)


class TextIds(NamedTuple):
    """Ids that are text, as one piece of UTF-8: much smaller than as many Python objects.

    Attributes
    ----------
    n_bytes : ndarray of shape (n,) of int
        Length of each id in bytes.
    data : bytes
        All ids, one after the other.
    """

    n_bytes: npt.NDArray[Any]
    data: bytes

    def decoded(self) -> list[str]:
        """Return the ids as Python text.

        Returns
        -------
        list of str
        """
        ends = np.cumsum(self.n_bytes, dtype=np.int64).tolist()
        if self.data.isascii():  # one letter is one byte, so that the whole is decoded once
            text = self.data.decode("ascii")
            return [text[first:last] for first, last in pairwise([0, *ends])]
        return [self.data[first:last].decode() for first, last in pairwise([0, *ends])]


def narrow(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return counts in the smallest unsigned type that holds them: of one, two or four bytes.

    Parameters
    ----------
    counts : ndarray of int
        Numbers from 0 to 2^32 - 1.

    Returns
    -------
    ndarray of uint8, uint16 or uint32
    """
    largest = int(counts.max(initial=0))
    width = next(kind for kind in _WIDTHS if largest <= np.iinfo(kind).max)
    return np.ascontiguousarray(counts, width)


def width_type(width: int) -> type[Any]:
    """Return the unsigned type of a number of bytes.

    Parameters
    ----------
    width : {1, 2, 4}
        Number of bytes.

    Returns
    -------
    type
    """
    return next(kind for kind in _WIDTHS if np.dtype(kind).itemsize == width)


def encode_ids(ids: Ids | TextIds) -> tuple[str, bytes]:
    """Return how ids are stored, and the bytes.

    Parameters
    ----------
    ids : sequence, ndarray or TextIds
        Text, integers, or a mixture of text, numbers and truth values.

    Returns
    -------
    kind : {"int64", "text1", "text2", "text4", "json"}
        Numbers of 64 bits; text after the lengths in one, two or four bytes each; a list in JSON.
    data : bytes
        The bytes.

    Raises
    ------
    AnnotationError
        Where an id is of a type that no file keeps, such as a tuple.
    """
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
    """Return the ids that `encode_ids` stored.

    Parameters
    ----------
    kind : str
        How they are stored.
    data : bytes
        The bytes.
    n : int
        Number of ids.

    Returns
    -------
    ndarray of int64, TextIds or list
    """
    if kind == "int64":
        return np.frombuffer(data, "<i8").astype(np.int64, copy=False)
    if kind == "json":
        values: list[Any] = json.loads(data)
        return values
    width = int(kind.removeprefix("text"))
    return TextIds(np.frombuffer(data, width_type(width), n), data[n * width :])


def json_of_ids(values: Sequence[Any]) -> bytes:
    """Return ids as a list in JSON, which keeps text, integers of any size, floats and truth values apart.

    Parameters
    ----------
    values : sequence
        Python values.

    Returns
    -------
    bytes

    Raises
    ------
    AnnotationError
        Where an id is of another type.
    """
    odd = next((value for value in values if type(value) not in _STORABLE), None)
    if odd is not None:
        raise AnnotationError(
            f"The id {odd!r} is of type {type(odd).__name__}, which is not kept in files. Use text or integers."
        )
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":")).encode()


def ids_from_json(data: bytes, role: str) -> npt.NDArray[Any]:
    """Return the ids that `json_of_ids` stored, as an array like those of `Annotations`.

    Parameters
    ----------
    data : bytes
        The list in JSON.
    role : str
        "worker" or "class", for error messages.

    Returns
    -------
    ndarray
    """
    return as_ids(json.loads(data), role)
