"""Types of arrays that most modules name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]  # in computations; `encoding.Codes` are those of annotations
Indices = npt.NDArray[np.intp]  # of rows
AnyArray = npt.NDArray[Any]  # values of the caller: features, classes, ids
