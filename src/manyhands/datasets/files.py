"""Files of data sets, read by the readers of `manyhands.io`.

`manyhands.io` loads polars, so it is imported when a file is read and not with `manyhands.datasets`. Limits and error
messages are those of `manyhands.io.read`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]  # int64, or Python text as objects
Arrays = dict[str, npt.NDArray[Any]]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # int() would also accept the 42_0 of snow2008/temp


def read_table(folder: Path, name: str, file: str, wanted: Sequence[str]) -> list[Column]:
    """Read columns of a CSV file of a data set.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    name : str
        Name of the data set; error messages call the file ``name/file``.
    file : str
        Name of the file.
    wanted : sequence of str
        Names of the columns.

    Returns
    -------
    list of ndarray of shape (n_rows,)
        int64, or Python strings as objects; see `manyhands.io.read.known_tables.read_columns`.

    Raises
    ------
    AnnotationError
        If the file is damaged or lacks a column.
    """
    from manyhands.io.read.known_tables import read_columns
    from manyhands.io.read.sources import Source

    return read_columns(Source(f"{name}/{file}", folder / file), wanted)


def read_packed_tables(path: Path, wanted: dict[str, list[Sequence[str]]]) -> dict[str, list[Column]]:
    """Read columns of CSV files in a zip archive.

    Parameters
    ----------
    path : Path
        The archive.
    wanted : dict of str to list of sequences of str
        For each member, by its file name, the columns; each column may have one of several names.

    Returns
    -------
    dict of str to list of ndarray of shape (n_rows,)
        The columns of each member, as `read_table` returns them.

    Raises
    ------
    AnnotationError
        If the archive is damaged, or lacks a member or a column.
    LimitError
        If the archive unpacks to more than `manyhands.io.read.archives` allows.
    """
    from manyhands.io.read.archives import read_members
    from manyhands.io.read.known_tables import read_columns
    from manyhands.io.read.sources import Source

    with Source(str(path), path).opened() as file:
        members = read_members(file, str(path), sorted(wanted))
    return {name: read_columns(Source(f"{path}/{name}", content=members[name]), wanted[name]) for name in wanted}


def read_bz2(path: Path) -> bytes:
    """Read the content of a bz2 file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bytes
        The unpacked content.

    Raises
    ------
    AnnotationError
        If the file is damaged or not complete.
    LimitError
        If it unpacks to more than `manyhands.io.read.archives` allows.
    """
    from manyhands.io.read.archives import bunzip2
    from manyhands.io.read.sources import Source

    return bunzip2(Source(str(path), path).read(), str(path))


def read_arrays(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """Read some arrays of an .npz file, without pickles.

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
        The arrays that were found.

    Raises
    ------
    AnnotationError
        If the file is damaged, lacks an array, or holds Python objects.
    """
    from manyhands.io.read import numpy_files

    return numpy_files.read_arrays(path, needed, optional)


def as_column(values: Sequence[str] | Column) -> Column:
    """Return text as integers where every entry is one; anything else stays text.

    Parameters
    ----------
    values : sequence of str or ndarray of shape (n,)
        Texts or integers.

    Returns
    -------
    ndarray of shape (n,)
        int64, or Python strings as objects.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return values.astype(np.int64)
    text = [str(value) for value in values]
    if all(map(_INTEGER.fullmatch, text)):
        return np.array([int(value) for value in text], np.int64)
    column = np.empty(len(text), object)
    column[:] = text
    return column
