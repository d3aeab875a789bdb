"""Names of the columns of X: learned by `fit`, compared by every later call, by the rules of scikit-learn.

A data frame is recognised by its attributes `shape` and `columns` (pandas, polars, narwhals and the like), so that no
library of data frames is imported here.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, CrowdWarning

Names = npt.NDArray[np.object_]

_SHOWN = 5  # names in a message
_ADVICE = "pass the columns in the order of fit: X[model.feature_names_in_]"


def feature_names_of(X: Any) -> Names | None:
    """Return the column names of a data frame.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor, table or dataset
        Features as for `fit`.

    Returns
    -------
    ndarray of str of shape (n_features,), or None
        The names, as an array of Python strings. None where X is no data frame, or where no name is a string, such as
        the numbers that pandas gives to columns without names.

    Raises
    ------
    AlignmentError
        Where some names are strings and others are not.

    Examples
    --------
    >>> feature_names_of([[1.0, 2.0]]) is None
    True
    """
    columns, shape = getattr(X, "columns", None), getattr(X, "shape", ())
    if not isinstance(columns, Iterable) or not isinstance(shape, tuple) or len(shape) != 2:
        return None
    names = list(columns)
    text = [isinstance(name, str) for name in names]
    if not any(text) or len(names) != shape[1]:
        return None
    if not all(text):
        other = names[text.index(False)]
        raise AlignmentError(
            f"Some column names of X are strings and others are not ({other!r} is {type(other).__name__}); make all of "
            "them strings: X.columns = X.columns.astype(str)."
        )
    found = np.empty(len(names), object)
    found[:] = [str(name) for name in names]
    return found


def check_feature_names(method: str, fitted: Names | None, given: Names | None) -> None:
    """Refuse columns with other names than those of `fit`, or in another order.

    Parameters
    ----------
    method : str
        Name of the estimator's class, for the message.
    fitted : ndarray of str or None
        Column names of X in `fit`.
    given : ndarray of str or None
        Column names of X now. Nothing is compared where either is None; see `warn_of_missing_names`.

    Raises
    ------
    AlignmentError
        Where the names or their order differ.

    Examples
    --------
    >>> a, b = np.array(["height", "width"], object), np.array(["width", "height"], object)
    >>> check_feature_names("TwoStage", a, a)
    >>> check_feature_names("TwoStage", a, b)
    Traceback (most recent call last):
    manyhands.exceptions.AlignmentError: X has its columns in another order ('width', 'height') than in the fit of \
this TwoStage ('height', 'width'); pass the columns in the order of fit: X[model.feature_names_in_].
    """
    if fitted is None or given is None or np.array_equal(fitted, given):
        return
    before, now = Counter(fitted.tolist()), Counter(given.tolist())
    unexpected, missing = [*(now - before).elements()], [*(before - now).elements()]
    if not unexpected and not missing:
        first = int(np.flatnonzero(fitted != given)[0])
        raise AlignmentError(
            f"X has its columns in another order ({_shown(given, first)}) than in the fit of this {method} "
            f"({_shown(fitted, first)}); {_ADVICE}."
        )
    parts = [f"lacks columns ({_shown(missing)}) that this {method} was fitted with"] if missing else []
    if unexpected:
        parts.append(f"has unexpected columns ({_shown(unexpected)}) that were not in the fit of this {method}")
    raise AlignmentError(f"X {' and '.join(parts)}; {_ADVICE}.")


def warn_of_missing_names(method: str, fitted: Names | None, given: Names | None) -> None:
    """Warn where only one of two X has column names, so that the order of the columns cannot be checked.

    Parameters
    ----------
    method : str
        Name of the estimator's class, for the message.
    fitted : ndarray of str or None
        Column names of X in `fit`.
    given : ndarray of str or None
        Column names of X now.

    Warns
    -----
    CrowdWarning
        With the code ``feature_names``; it points at the first caller outside this package.
    """
    if (fitted is None) == (given is None):
        return
    if given is None:
        sentence = f"X has no column names, but this {method} was fitted with names"
    else:
        sentence = f"X has column names, but this {method} was fitted without names"
    message = f"feature_names: {sentence}, so the order of the columns is not checked."
    warnings.warn(message, CrowdWarning, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """Return the `stacklevel`, seen from the function that calls this one, of the first frame outside the package."""
    package, level = __name__.partition(".")[0], 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def _shown(names: Any, first: int = 0) -> str:
    """Return a few names from a position on, in quotes, for a message."""
    few = ", ".join(repr(name) for name in names[first : first + _SHOWN])
    return ("..., " if first else "") + few + (", ..." if len(names) > first + _SHOWN else "")
