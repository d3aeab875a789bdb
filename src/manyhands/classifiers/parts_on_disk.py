"""What every saved model says of itself: ids, results, history; and whether these fit together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError

Arrays = dict[str, npt.NDArray[Any]]
COUNTED = ("_confusions", "_shares")  # what `score` needs beside the results
_MOST_BYTES = 2**30  # of the classes or the workers


def below(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def checked_results(model: Any, arrays: Arrays) -> Arrays:
    """The results by name; those that every method has must be there, in the shapes they must have."""
    results = below("result/", arrays)
    n, k = len(model.worker_ids_), len(model.classes_)
    wanted: dict[str, tuple[int, ...]] = {"posterior_": (results["posterior_"].shape[0], k), "worker_accuracy_": (n,)}
    if hasattr(model, "score"):
        wanted |= {"_confusions": (n + 1, k, k), "_shares": (k,)}
        wanted |= {name: (k,) for name in model._for_each_class}
    for name, shape in wanted.items():
        if results[name].shape != shape or results[name].dtype.kind != "f":
            raise ValueError(f"{name} is {results[name].dtype} of shape {results[name].shape}, not floats of {shape}")
    for name in results:
        if hasattr(model, name) or not (name in COUNTED or (name.endswith("_") and not name.startswith("_"))):
            raise ValueError(f"{name[:60]!r} is not the name of a result")
    return results


def values(ids: npt.NDArray[Any], role: str) -> dict[str, Any]:
    """The caller's own values as JSON, with the type that brings them back."""
    values = ids.tolist()
    odd = [value for value in values if not isinstance(value, str | int | float | bool)]
    if odd:
        raise ParameterError(f"The {role} {odd[0]!r} is neither text nor a number, so it cannot be saved; rename it.")
    return {"dtype": str(ids.dtype), "values": values}


def array(said: dict[str, Any]) -> npt.NDArray[Any]:
    """The caller's own values again; no two are the same."""
    dtype, values = np.dtype(said["dtype"]), said["values"]
    if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
        raise ValueError("its classes or workers are neither texts nor numbers")
    if dtype.kind not in "biufUO" or len(values) * dtype.itemsize > _MOST_BYTES or len(set(values)) < len(values):
        raise ValueError("its classes or workers are not what they are said to be")
    found = np.empty(len(values), dtype)
    found[:] = values
    return found


def row_shape(said: Any) -> tuple[int, ...]:
    """The shape of one row of features."""
    if not isinstance(said, list) or not all(type(length) is int and length >= 0 for length in said):
        raise ValueError(f"{str(said)[:60]!r} is not the shape of a row")
    return tuple(said)


def history(said: Any) -> list[dict[str, float]]:
    """One dict per epoch."""
    if not isinstance(said, list) or not all(
        isinstance(epoch, dict) and all(isinstance(value, int | float) for value in epoch.values()) for epoch in said
    ):
        raise ValueError("its history is not a list of numbers by name")
    return said


def notes(said: Any) -> dict[str, str]:
    """Sentences by code."""
    if not isinstance(said, dict) or not all(isinstance(sentence, str) for sentence in said.values()):
        raise ValueError("its notes are not sentences by name")
    return said
