"""Arrays of a .npz file, without running anything that might hide in it."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError

Arrays = dict[str, npt.NDArray[Any]]


def read_arrays(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """The needed arrays, and those of the welcome ones that the file has; all others are not read."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:  # np.load leaves a broken file open
            missing = [name for name in needed if name not in file.files]
            if not missing:
                return {name: file[name] for name in (*needed, *optional) if name in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise AnnotationError(f"The arrays in {path} cannot be read: {error}. Copy the file again.") from None
    raise AnnotationError(f"{path} is not whole: it has no array {' and no '.join(missing)}. Copy it again.")
