"""A fitted method with features as a folder: `model.json` for what is said, `model.safetensors` for what is counted.

Nothing is pickled, so a folder from a stranger runs no code. Networks of ours and logistic regression are saved; a
classifier or a backbone of the caller's own is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.writing import write_files

JSON, TENSORS = "model.json", "model.safetensors"
_SCHEMA = 1
_KINDS = ("classifier", "representation")
_COUNTED = ("_confusions", "_shares")  # what `score` needs beside the results


def save_model(model: Any, folder: str | Path, *, force: bool = False) -> None:
    """Write a fitted classifier or learner of representations; without `force`, nothing is replaced."""
    from safetensors.numpy import save

    module, arrays = _module_state(model)
    results = {name: v for name, v in vars(model).items() if name.endswith("_") and name not in ("module_",)}
    arrays |= {f"result/{name}": value for name, value in results.items() if _is_numeric(name, value)}
    arrays |= {f"result/{name}": getattr(model, name) for name in _COUNTED if hasattr(model, name)}
    tensors = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    said = {
        "schema": _SCHEMA,
        "method": _name_of(type(model)),
        "parameters": {name: _parameter(name, v) for name, v in model.get_params(deep=False).items()},
        "classes": _values(model.classes_, "class"),
        "worker_ids": _values(model.worker_ids_, "worker"),
        "row_shape": list(model._row_shape),
        "history": model.history_,
        "notes": model.notes_,
        "module": module,
        "tensors": hashlib.sha256(tensors).hexdigest(),  # the two files belong together
    }
    text = json.dumps(said, indent=1, ensure_ascii=False)
    write_files(folder, {TENSORS: tensors, JSON: text.encode()}, force=force)


def load_model(folder: str | os.PathLike[str]) -> Any:
    """A classifier that `save` wrote, ready to predict and to score; its aggregator is not kept."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    folder = Path(folder)
    try:
        said = json.loads((folder / JSON).read_text(encoding="utf-8"))
        content = (folder / TENSORS).read_bytes()
        if said["schema"] != _SCHEMA or said["tensors"] != hashlib.sha256(content).hexdigest():
            raise ValueError("its two files do not belong together, or come from another version")
        arrays = load(content)
        return _restored(said, arrays)
    except FileNotFoundError as error:
        raise ParameterError(f"{folder} is not a saved model: it has no {Path(error.filename).name}.") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ParameterError(f"{folder} is not a model that can be read: {error}") from None


def _restored(said: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Any:
    if not any(said["method"] in registry.names(kind) for kind in _KINDS):
        raise ValueError(f"it needs the method {said['method']!r}, which this version does not have")
    model = registry.create(said["method"], **{n: _made_parameter(v) for n, v in said["parameters"].items()})
    model.classes_, model.worker_ids_ = _array(said["classes"]), _array(said["worker_ids"])
    model._row_shape = tuple(said["row_shape"])
    for name, array in arrays.items():
        if name.startswith("result/"):
            setattr(model, name.removeprefix("result/"), array)
    model.history_, model.notes_ = said["history"], said["notes"]
    state = {name.removeprefix("module/"): array for name, array in arrays.items() if name.startswith("module/")}
    if said["module"]["kind"] == "logistic-regression":
        model.module_ = _logistic_regression(said["module"], state)
    else:
        model.module_ = _network(model, state)
    return model


def _module_state(model: Any) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    module = model.module_
    kind = type(module).__name__
    if kind == "LogisticRegression" and type(module).__module__.startswith("sklearn."):
        state = {f"module/{name}": getattr(module, name) for name in ("coef_", "intercept_", "classes_")}
        return {"kind": "logistic-regression", "parameters": module.get_params()}, state
    if not hasattr(module, "state_dict"):
        raise ParameterError(
            f"A {kind} cannot be saved without a pickle; networks and LogisticRegression can. "
            f"Use one of these, or keep the model with joblib yourself."
        )
    if callable(getattr(model, "backbone", None)):
        raise ParameterError(
            "A network made by a function of yours cannot be made again from a file; save module_.state_dict()."
        )
    return {"kind": "network"}, {f"module/{n}": t.detach().cpu().numpy() for n, t in module.state_dict().items()}


def _network(model: Any, state: dict[str, npt.NDArray[Any]]) -> Any:
    import torch

    with torch.random.fork_rng(devices=()):  # its first weights are drawn, and then replaced
        module = model._new_module(model._row_shape, len(model.classes_), len(model.worker_ids_))
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})
    return module.eval()


def _logistic_regression(said: dict[str, Any], state: dict[str, npt.NDArray[Any]]) -> Any:
    from sklearn.linear_model import LogisticRegression

    module = LogisticRegression(**said["parameters"])
    for name, array in state.items():
        setattr(module, name, array)
    module.n_features_in_ = module.coef_.shape[1]
    return module


def _name_of(cls: type[Any]) -> str:
    for name in [name for kind in _KINDS for name in registry.names(kind)]:
        if registry.get(name) is cls:
            return name
    raise ParameterError(f"{cls.__name__} is not a registered method, so no other process could load it.")


def _is_numeric(name: str, value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and name not in ("classes_", "worker_ids_")


def _parameter(name: str, value: Any) -> Any:
    """A constructor parameter as JSON; a wrapped aggregator by its registry name and parameters."""
    if isinstance(value, np.random.Generator | np.random.SeedSequence):
        return None  # it moved on during the fit
    if hasattr(value, "get_params"):
        names = [n for n in registry.names("aggregator") if registry.get(n) is type(value)]
        if names:
            return {"method": names[0], "parameters": {n: _parameter(n, v) for n, v in value.get_params().items()}}
        return "logistic-regression"  # nothing else gets this far; its own parameters are kept with it
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value.tolist() if isinstance(value, np.ndarray) else value


def _made_parameter(value: Any) -> Any:
    if isinstance(value, dict):
        return registry.create(value["method"], **value["parameters"])
    return tuple(value) if isinstance(value, list) else value


def _values(ids: npt.NDArray[Any], role: str) -> dict[str, Any]:
    """The caller's own values as JSON, with the type that brings them back."""
    values = ids.tolist()
    odd = [value for value in values if not isinstance(value, str | int | float | bool)]
    if odd:
        raise ParameterError(f"The {role} {odd[0]!r} is neither text nor a number, so it cannot be saved; rename it.")
    return {"dtype": str(ids.dtype), "values": values}


def _array(said: dict[str, Any]) -> npt.NDArray[Any]:
    dtype = np.dtype(said["dtype"])
    if dtype.kind == "O":
        array = np.empty(len(said["values"]), object)
        array[:] = said["values"]
        return array
    return np.array(said["values"], dtype)
