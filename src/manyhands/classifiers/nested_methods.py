"""Network methods nested in another one, such as the base method of Self-Crowd: how they get their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyhands import registry
from manyhands.classifiers.network import NETWORK_CONSTRAINTS
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import ParameterError


def nested_method(owner: BaseEstimator, parameter: str, also: Sequence[str] = ()) -> Any:
    """Return the method that a parameter names or is, with the parameters that it shares with its owner.

    The network options, `init` and the parameters in `also` are those of the owner, which builds the networks. An
    instance keeps its other parameters. If it was given a shared parameter that differs both from the default and
    from the owner's value, one of the two would be ignored, so it is refused.

    Parameters
    ----------
    owner : BaseEstimator
        The outer method.
    parameter : str
        The owner's parameter that holds a name of the registry or an estimator.
    also : sequence of str, default=()
        Further parameters that are shared.

    Returns
    -------
    BaseEstimator
        A new estimator.
    """
    inner = getattr(owner, parameter)
    kind = registry.get(inner) if isinstance(inner, str) else type(inner)
    shared = shared_parameters(owner, kind, {*NETWORK_CONSTRAINTS, "init", *also})
    if isinstance(inner, str):
        return registry.create(inner, **shared)
    given, default = inner.get_params(deep=False), kind().get_params(deep=False)
    for name in sorted(shared.keys() - {"random_state"}):  # the seed always comes from the owner
        if _comparable(given[name]) not in (_comparable(default[name]), _comparable(shared[name])):
            whose = type(owner).__name__
            raise ParameterError(
                f"The {parameter} of a {whose} has {name}={given[name]!r}; give {name} to {whose} instead, "
                f"which builds the networks."
            )
    made = kind(**(given | shared))
    made._check_parameters()
    return made


def with_named_method(owner: BaseEstimator, parameter: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for `set_params` in which a method given by its name is an instance, if its own are set too.

    Parameters
    ----------
    owner : BaseEstimator
        The outer method.
    parameter : str
        The owner's parameter that holds a name of the registry or an estimator.
    changes : mapping of str to object
        Parameters of the owner and, as `parameter__name`, of the nested method.

    Returns
    -------
    dict of str to object
    """
    named = changes.get(parameter, getattr(owner, parameter))
    nested = any(name.startswith(f"{parameter}__") for name in changes)
    if not (nested and isinstance(named, str) and named in registry.names("classifier")):
        return dict(changes)
    return {parameter: registry.create(named)} | {name: v for name, v in changes.items() if name != parameter}


def shared_parameters(owner: BaseEstimator, kind: type[Any], names: set[str] | None = None) -> dict[str, Any]:
    """Return the owner's values of the parameters that a class of estimators has too.

    Parameters
    ----------
    owner : BaseEstimator
        The estimator whose values are taken.
    kind : type
        A class of estimators.
    names : set of str, default=None
        Only these parameters; None takes all that both have.

    Returns
    -------
    dict of str to object
    """
    theirs = owner.get_params(deep=False)
    return {
        name: theirs[name] for name in kind().get_params(deep=False) if name in theirs and (not names or name in names)
    }


def _comparable(value: Any) -> str:
    """A parameter as text that is the same for equal values of different types."""
    value = tuple(value) if isinstance(value, list) else value.item() if isinstance(value, np.generic) else value
    return repr(value)
