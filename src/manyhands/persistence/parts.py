"""What every saved model says of itself: ids, results, history; and whether these fit together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError

Arrays = dict[str, npt.NDArray[Any]]
COUNTED = ("_confusions", "_shares")  # what `score` needs beside the results
_MAX_BYTES = 2**30  # of the classes or the workers

# What each result has along its axes: as many as there are items, workers, workers and all of them, or classes; or any.
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
    "log_shift_": ("classes",),
    "n_synthetic_": ("classes",),
    "selected_counts_": ("any", "classes"),
    "combined_counts_": ("any", "classes"),
    "centers_": ("classes", "any"),
    "objective_": ("any",),
    "log_likelihood_": ("any",),
    "best_round_": (),
    "floor_": (),
    "ridge_": (),
    "mu_": (),
    "C_": (),
    "_confusions": ("all", "classes", "classes"),
    "_shares": ("classes",),
}
_WHOLE = ("cluster_", "n_synthetic_", "selected_counts_", "combined_counts_", "best_round_")
_MAY_BE_MISSING = ("confidence_", "centers_")  # NaN for items without labels, and for classes without items
_SHARES = {"posterior_", "posterior_first_", "posterior_original_", "worker_accuracy_", "class_prior_"}
_SHARES |= {"confusion_", "common_confusion_", *COUNTED}
_ROUNDING = 1e-6


def below(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def checked_results(model: Any, arrays: Arrays) -> Arrays:
    """The results by name, each with the type and shape that it must have; none that every method has may lack."""
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
    """Refuse an array of another type or shape than it must have, and numbers that no fit gives."""
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
        raise ValueError(f"{name} has numbers that are no shares")


def check_weights(name: str, array: npt.NDArray[Any]) -> None:
    """Refuse weights of a network that are not finite; the logarithm of a weight may be that of 0."""
    if array.dtype.kind != "f":
        return
    may_be_zero = name.rpartition(".")[2].startswith("log_")
    if not (np.isfinite(array) | (np.isneginf(array) & may_be_zero)).all():
        raise ValueError(f"the weights {name[:60]!r} are not finite")


def values(ids: npt.NDArray[Any], role: str) -> dict[str, Any]:
    """The caller's own values as JSON, with the type that brings them back."""
    values = ids.tolist()
    invalid = [value for value in values if not isinstance(value, str | int | float | bool)]
    if invalid:
        raise ParameterError(
            f"The {role} {invalid[0]!r} is neither text nor a number, so it cannot be saved; rename it."
        )
    return {"dtype": str(ids.dtype), "values": values}


def array(description: dict[str, Any]) -> npt.NDArray[Any]:
    """The caller's own values again; no two are the same."""
    dtype, values = np.dtype(description["dtype"]), description["values"]
    if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
        raise ValueError("its classes or workers are neither texts nor numbers")
    if dtype.kind not in "biufUO" or len(values) * dtype.itemsize > _MAX_BYTES or len(set(values)) < len(values):
        raise ValueError("its classes or workers are not what they are said to be")
    found = np.empty(len(values), dtype)
    found[:] = values
    return found


def row_shape(description: Any) -> tuple[int, ...]:
    """The shape of one row of features."""
    if not isinstance(description, list) or not all(type(length) is int and length >= 0 for length in description):
        raise ValueError(f"{str(description)[:60]!r} is not the shape of a row")
    return tuple(description)


def history(description: Any) -> list[dict[str, float]]:
    """One dict per epoch."""
    if not isinstance(description, list) or not all(
        isinstance(epoch, dict) and all(isinstance(value, int | float) for value in epoch.values())
        for epoch in description
    ):
        raise ValueError("its history is not a list of numbers by name")
    return description


def notes(description: Any) -> dict[str, str]:
    """Sentences by code."""
    if not isinstance(description, dict) or not all(isinstance(sentence, str) for sentence in description.values()):
        raise ValueError("its notes are not sentences by name")
    return description
