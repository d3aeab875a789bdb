"""Errors of executors as the sentences that were raised there: an engine wraps them into pages of stack traces."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from manyhands.exceptions import AnnotationError, ManyhandsError

P = ParamSpec("P")
R = TypeVar("R")

_RAISED = re.compile(r"manyhands\.exceptions\.(\w+): (.+)")


def raised_clearly(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise the errors of tasks as they were raised on the executor, without the engine's traces.

    Parameters
    ----------
    function : callable
        Runs actions.

    Returns
    -------
    callable
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ManyhandsError:
            raise
        except Exception as error:
            found = _RAISED.search(str(error))
            if found is None:
                raise
            kind = AnnotationError if found[1] == "AnnotationError" else ManyhandsError
            raise kind(found[2].strip()) from error

    return run
