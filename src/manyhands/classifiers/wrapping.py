"""A network method inside another one, which gives it the parameters that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands import registry
from manyhands.classifiers.network import NETWORK_CONSTRAINTS
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import ParameterError


def wrapped_method(owner: BaseEstimator, parameter: str, also: Sequence[str] = ()) -> Any:
    """The method that `parameter` names or is, with the network's parameters, `start` and `also` as its owner's are.

    An instance keeps what is its own; what it has otherwise than by default and otherwise than its owner is refused,
    since one of the two would be ignored.
    """
    inner = getattr(owner, parameter)
    theirs = owner.get_params(deep=False)
    kind = registry.get(inner) if isinstance(inner, str) else type(inner)
    wanted = {*NETWORK_CONSTRAINTS, "start", *also}
    shared = {name: theirs[name] for name in kind._parameter_names() if name in theirs and name in wanted}
    if isinstance(inner, str):
        return registry.create(inner, **shared)
    given, default = inner.get_params(deep=False), kind._defaults()
    for name in sorted(shared.keys() - {"random_state"}):  # a seed is the one thing that others give it
        if _plain(given[name]) not in (_plain(default[name]), _plain(shared[name])):
            whose = type(owner).__name__
            raise ParameterError(
                f"The {parameter} of a {whose} has {name}={given[name]!r}; give {name} to {whose} instead, "
                f"which makes the networks."
            )
    made = kind(**(given | shared))
    made._check_parameters()
    return made


def _plain(value: Any) -> Any:
    """A parameter as text that equal values share."""
    value = tuple(value) if isinstance(value, list) else value.item() if isinstance(value, np.generic) else value
    return repr(value)
