"""Constructor parameters of a saved model as JSON and arrays."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import ParameterError
from manyhands.options import OptionGroup, options_from_json, options_to_json
from manyhands.persistence import sklearn_estimators

Arrays = dict[str, npt.NDArray[Any]]
_NOT_KEPT = ("checkpoint",)  # a folder on the machine that trained; a fit writes there, and empties it


def parameters_to_json(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Return the constructor parameters of a model as JSON.

    Parameters
    ----------
    model : BaseEstimator
        The model.
    arrays : dict of str to ndarray
        Arrays of the parameters are added to it.

    Returns
    -------
    dict of str to object
        Parameters by name, as JSON.

    Raises
    ------
    ParameterError
        If a parameter cannot be stored without a pickle.
    """
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_KEPT}
    return {name: _parameter(name, value, arrays) for name, value in given.items()}


def parameters_from_json(description: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return constructor parameters; `parameters_to_json` is the inverse.

    Parameters
    ----------
    description : dict of str to object
        Parameters by name, as JSON.
    arrays : dict of str to ndarray
        All arrays of the file.

    Returns
    -------
    dict of str to object
    """
    return {name: _made_parameter(value, arrays) for name, value in description.items() if name not in _NOT_KEPT}


def method_name(cls: type[Any]) -> str:
    """Return the name of a method in the registry.

    Parameters
    ----------
    cls : type
        Class of the method.

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        If it has none.
    """
    name = registry.name_of(cls)
    if name is not None:
        return name
    raise ParameterError(f"{cls.__name__} is not a registered method, so no other process could load it.")


def _parameter(name: str, value: Any, arrays: Arrays) -> Any:
    """Return a constructor parameter as JSON: a method by its registry name, a scikit-learn estimator as its tree."""
    if isinstance(value, np.random.Generator | np.random.SeedSequence | np.random.RandomState):
        return None  # its state changed during the fit
    if isinstance(value, OptionGroup):
        return options_to_json(value)
    if hasattr(value, "get_params"):
        method = registry.name_of(type(value))
        if method is not None:
            inner = value.get_params(deep=False)
            return {"method": method, "parameters": {n: _parameter(n, v, arrays) for n, v in inner.items()}}
        if isinstance(value, BaseEstimator):
            raise ParameterError(
                f"The {name} {type(value).__name__} is not a registered method, so it cannot be saved."
            )
        from sklearn.base import clone

        description, parts = sklearn_estimators.to_tree(clone(value), f"parameter/{name}")
        arrays |= parts
        return description
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value.tolist() if isinstance(value, np.ndarray) else value


def _made_parameter(value: Any, arrays: Arrays) -> Any:
    """Create a constructor parameter from its JSON."""
    if isinstance(value, dict) and "options" in value:
        return options_from_json(value)
    if isinstance(value, dict) and "estimator" in value:
        return sklearn_estimators.from_tree(value, arrays)
    if isinstance(value, dict):
        if value["method"] not in registry.names():
            raise ValueError(f"{str(value['method'])[:60]!r} is not the name of a method")
        inner = {name: _made_parameter(v, arrays) for name, v in value["parameters"].items()}
        method = registry.create(value["method"], **inner)
        method._check_parameters()
        return method
    return tuple(value) if isinstance(value, list) else value
