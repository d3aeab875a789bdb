"""What every saved model has: class and worker ids, results, training history, notes; and the checks of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError

Arrays = dict[str, npt.NDArray[Any]]
COUNTED = ("_confusions", "_shares")  # attributes that `score` needs beside the results
_MAX_BYTES = 2**30  # of the classes or the workers

# The axes of each result. "all" is the number of workers plus one, for the confusion matrix of the whole crowd.
_SHAPES: dict[str, tuple[str, ...]] = {
    "posterior_": ("items", "classes"),
    "posterior_first_": ("items", "classes"),
    "posterior_original_": ("items", "classes"),
    "worker_accuracy_": ("workers",),
    "worker_weight_": ("workers",),
    "worker_coef_": ("workers", "any", "any"),
    "confusion_": ("workers", "classes", "classes"),
    "common_confusion_": ("classes", "classes"),
    "common_share_": ("workers",),
    "cluster_": ("workers",),
    "ability_": ("workers", "classes"),
    "expertise_": ("workers", "classes"),
    "expertise_low_": ("workers", "classes"),
    "expertise_high_": ("workers", "classes"),
    "difficulty_": ("items",),
    "item_accuracy_": ("items",),
    "certainty_": ("items",),
    "confidence_": ("items",),
    "safe_": ("items",),
    "class_prior_": ("classes",),
    "class_shares_": ("classes",),
    "log_shift_": ("classes",),
    "n_synthetic_": ("classes",),
    "selected_counts_": ("any", "classes"),
    "combined_counts_": ("any", "classes"),
    "centers_": ("classes", "any"),
    "distance_weight_": ("any",),
    "objective_": ("any",),
    "log_likelihood_": ("any",),
    "best_round_": (),
    "best_setting_": (),
    "floor_": (),
    "ridge_": (),
    "mu_": (),
    "C_": (),
    "_confusions": ("all", "classes", "classes"),
    "_shares": ("classes",),
}
_WHOLE = ("cluster_", "n_synthetic_", "selected_counts_", "combined_counts_", "best_round_", "best_setting_")
_MAY_BE_MISSING = ("confidence_", "centers_")  # NaN for items without labels, and for classes without items
_SHARES = {"class_shares_", "posterior_", "posterior_first_", "posterior_original_", "worker_accuracy_", "class_prior_"}
_SHARES |= {"confusion_", "common_confusion_", *COUNTED}
_ROUNDING = 1e-6


def below(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names begin with a prefix, by the rest of their names.

    Parameters
    ----------
    prefix : str
        Beginning of the names, such as ``"result/"``.
    arrays : dict of str to ndarray
        All arrays of a file.

    Returns
    -------
    dict of str to ndarray
        The selected arrays.
    """
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def checked_results(model: Any, arrays: Arrays) -> Arrays:
    """Return the results of a saved model, each with the type and shape that it must have.

    Parameters
    ----------
    model : object
        The model that is being loaded; its ``classes_`` and ``worker_ids_`` are set.
    arrays : dict of str to ndarray
        All arrays of the file.

    Returns
    -------
    dict of str to ndarray
        The results by name, such as ``posterior_`` of shape (n_items, n_classes).

    Raises
    ------
    ValueError
        If a result is unknown, or of another type or shape, or not finite.
    KeyError
        If a result that every method has is missing.
    """
    results = below("result/", arrays)
    needed = ["posterior_", "worker_accuracy_"]
    if hasattr(model, "score"):
        needed += [*COUNTED, *model._for_each_class]
    sizes = {
        "items": results["posterior_"].shape[:1],
        "workers": (len(model.worker_ids_),),
        "all": (len(model.worker_ids_) + 1,),
        "classes": (len(model.classes_),),
    }
    for name in [*needed, *results]:
        if name not in _SHAPES or hasattr(model, name):
            raise ValueError(f"{name[:60]!r} is not the name of a result")
        _check_result(name, results[name], [sizes.get(length) for length in _SHAPES[name]])
    return results


def _check_result(name: str, array: npt.NDArray[Any], lengths: list[tuple[int, ...] | None]) -> None:
    """Refuse an array of another type or shape than it must have, and values that no fit gives."""
    whole = name in _WHOLE
    fits = array.ndim == len(lengths) and array.dtype.kind == ("i" if whole else "f")
    if not fits or any(length is not None and length != (found,) for found, length in zip(array.shape, lengths)):
        description = ", ".join("any" if length is None else str(*length) for length in lengths)
        kind = "whole numbers" if whole else "floats"
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {kind} of ({description})")
    given = array[~np.isnan(array)] if name in _MAY_BE_MISSING else array
    if not np.isfinite(given).all():
        raise ValueError(f"{name} has numbers that are not finite")
    if name in _SHARES and given.size and (given.min() < -_ROUNDING or given.max() > 1 + _ROUNDING):
        raise ValueError(f"{name} has numbers that are not between 0 and 1")


def check_weights(name: str, array: npt.NDArray[Any]) -> None:
    """Refuse weights of a network that are not finite; a log-weight may be minus infinity.

    Parameters
    ----------
    name : str
        Name of the weights in the network.
    array : ndarray
        The weights.

    Raises
    ------
    ValueError
        If a weight is not finite.
    """
    if array.dtype.kind != "f":
        return
    may_be_zero = name.rpartition(".")[2].startswith("log_")
    if not (np.isfinite(array) | (np.isneginf(array) & may_be_zero)).all():
        raise ValueError(f"the weights {name[:60]!r} are not finite")


def values(ids: npt.NDArray[Any], role: str, *, missing: bool = False) -> dict[str, Any]:
    """Return class, worker or item ids as JSON, with the type that restores them.

    Parameters
    ----------
    ids : ndarray of shape (n,)
        The ids.
    role : str
        ``"class"``, ``"worker"`` or ``"item"``, for the error message.
    missing : bool, default=False
        Whether None is allowed.

    Returns
    -------
    dict
        ``{"dtype": str, "values": list}``.

    Raises
    ------
    ParameterError
        If an id is neither text nor a number.
    """
    listed = [value if missing and value is None else plain(value, role) for value in ids.tolist()]
    return {"dtype": str(ids.dtype), "values": listed}


def plain(value: Any, role: str) -> str | int | float:
    """Return an id that JSON can hold.

    Parameters
    ----------
    value : object
        The id.
    role : str
        What it is, for the error message.

    Returns
    -------
    str, int or float
        The id; a scalar of NumPy as Python's own.

    Raises
    ------
    ParameterError
        If it is neither text nor a number.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | int | float):
        return value
    raise ParameterError(f"The {role} {value!r} is neither text nor a number, so it cannot be saved; rename it.")


def array(description: dict[str, Any], *, repeats: bool = False) -> npt.NDArray[Any]:
    """Restore class, worker or item ids; `values` is the inverse.

    Parameters
    ----------
    description : dict
        ``{"dtype": str, "values": list}``.
    repeats : bool, default=False
        Whether an id may occur more than once, and None among them.

    Returns
    -------
    ndarray of shape (n,)
        The ids; no two are the same without `repeats`.

    Raises
    ------
    ValueError
        If the ids are of another type than the file states, or occur twice.
    """
    dtype, values = np.dtype(description["dtype"]), description["values"]
    allowed = str | int | float | (None if repeats else str)
    if not isinstance(values, list) or not all(isinstance(value, allowed) for value in values):
        raise ValueError("its classes or workers are neither texts nor numbers")
    is_unique = repeats or len(set(values)) == len(values)
    if dtype.kind not in "biufUO" or len(values) * dtype.itemsize > _MAX_BYTES or not is_unique:
        raise ValueError("its classes or workers are not of the stated type, or occur twice")
    found = np.empty(len(values), dtype)
    found[:] = values
    return found


def row_shape(description: Any) -> tuple[int, ...]:
    """Return the shape of one row of features.

    Parameters
    ----------
    description : list of int
        The shape as JSON.

    Returns
    -------
    tuple of int
        The shape.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    if not isinstance(description, list) or not all(type(length) is int and length >= 0 for length in description):
        raise ValueError(f"{str(description)[:60]!r} is not the shape of a row")
    return tuple(description)


def features(row_shape: tuple[int, ...], names: Any) -> dict[str, Any]:
    """Return the fitted attributes about the columns of X.

    Parameters
    ----------
    row_shape : tuple of int
        Shape of one row.
    names : list of str or None
        Column names as JSON; None where the model was fitted without names.

    Returns
    -------
    dict of str to object
        `n_features_in_` where a row is a vector, and `feature_names_in_` where there are names.

    Raises
    ------
    ValueError
        If the names are not one text for each column.
    """
    found: dict[str, Any] = {"n_features_in_": row_shape[0]} if len(row_shape) == 1 else {}
    if names is None:
        return found
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or (len(names),) != row_shape:
        raise ValueError("its feature names are not one text for each column")
    return found | {"feature_names_in_": np.array(names, object)}


def history(description: Any) -> list[dict[str, Any]]:
    """Return the training history: one dict of numbers, or lists of numbers, per epoch or round.

    Parameters
    ----------
    description : list of dict
        The history as JSON.

    Returns
    -------
    list of dict of str to float or list of float
        The same, checked.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    if not isinstance(description, list) or not all(
        isinstance(epoch, dict) and all(_is_figure(value) for value in epoch.values()) for epoch in description
    ):
        raise ValueError("its history is not a list of numbers by name")
    return description


def _is_figure(value: Any) -> bool:
    """Whether a value is a number, or a list of numbers such as the shares of all classes."""
    return all(isinstance(one, int | float) for one in (value if isinstance(value, list) else [value]))


def notes(description: Any) -> dict[str, str]:
    """Return the notes of a fit: sentences by code.

    Parameters
    ----------
    description : dict of str to str
        The notes as JSON.

    Returns
    -------
    dict of str to str
        The same, checked.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    if not isinstance(description, dict) or not all(isinstance(sentence, str) for sentence in description.values()):
        raise ValueError("its notes are not sentences by name")
    return description
