"""The folder of a saved model: `model.json` for text and parameters, `model.safetensors` for arrays.

Networks of this package and the usual scikit-learn classifiers can be saved; any other classifier, and a network built
by a function of the caller, is refused. Constructor parameters are stored by name, so the schema version is raised
whenever a parameter or a stored result is renamed; folders of an older schema are refused with one sentence.

Inconsistent files are refused when they are loaded, not when the model predicts.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.features import as_rows
from manyhands.persistence import aggregators, parts, sklearn_estimators
from manyhands.persistence.parameters import method_name, parameters_from_json, parameters_to_json
from manyhands.writing import write_files

JSON, TENSORS = "model.json", "model.safetensors"
_SCHEMA = 2  # raised with every renamed parameter or result
_MAX_FEATURES = 2**24  # of a scikit-learn classifier
_KINDS = ("classifier", "representation")

Arrays = dict[str, npt.NDArray[Any]]


def save_model(model: Any, folder: str | Path, *, force: bool = False) -> None:
    """Write a fitted aggregator, classifier or representation learner to a folder.

    Parameters
    ----------
    model : Aggregator, CrowdClassifier or representation learner
        A fitted method of the registry.
    folder : str or Path
        The folder to write; it is created where it does not exist.
    force : bool, default=False
        Replace a model that is already there. Without it, existing files are an error.

    Raises
    ------
    ParameterError
        If the model, or one of its parameters, cannot be saved without a pickle.

    See Also
    --------
    load_model : Load such a folder.
    """
    from safetensors.numpy import save

    description, arrays = _described(model)
    tensors = save({name: np.array(array, order="C") for name, array in arrays.items()})
    text = json.dumps(description | {"checksum": checksum(description, tensors)}, indent=1, ensure_ascii=False)
    write_files(folder, {TENSORS: tensors, JSON: text.encode()}, force=force)


def _described(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model as JSON and arrays; the fitted classifier that it wraps is part of it."""
    method = method_name(type(model))
    if method in registry.names("aggregator"):
        description, arrays = aggregators.to_json(model)
        return {"schema": _SCHEMA, "method": method, **description}, arrays
    wrapped, inside = _described(model.classifier_) if hasattr(model, "classifier_") else (None, {})
    module, arrays = ({"kind": "wrapped"}, {}) if wrapped else _module_state(model)
    arrays |= {f"wrapped/{name}": array for name, array in inside.items()}
    if getattr(model, "_noise_layer", None) is not None:
        arrays |= _weights("noise/", model._noise_layer)
    results = {name: v for name, v in vars(model).items() if name.endswith("_") and name not in ("module_",)}
    arrays |= {f"result/{name}": value for name, value in results.items() if _is_numeric(name, value)}
    arrays |= {f"result/{name}": getattr(model, name) for name in parts.COUNTED if hasattr(model, name)}
    parameters = parameters_to_json(model, arrays)
    description = {
        "schema": _SCHEMA,
        "method": method,
        "parameters": parameters,
        "classes": parts.values(model.classes_, "class"),
        "worker_ids": parts.values(model.worker_ids_, "worker"),
        "row_shape": list(model._row_shape),
        "feature_names": list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None,
        "history": model.history_,
        "rounds": getattr(model, "rounds_", None),
        "notes": model.notes_,
        "module": module,
    }
    return description | ({"wrapped": wrapped} if wrapped else {}), arrays


def load_model(folder: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """Load a model that `save` wrote.

    The loaded model predicts and scores as before. An aggregator has all of its results and its annotations; of a
    classifier, neither its aggregator nor its annotations are kept.

    Parameters
    ----------
    folder : str or PathLike
        The folder of the model.
    device : str or None, default=None
        Device of torch on which the network predicts: "cpu", "cuda", "auto" (a GPU where there is one) or another
        name, whatever device it was trained on; None is the CPU.

    Returns
    -------
    Aggregator, CrowdClassifier or representation learner
        The fitted model.

    Raises
    ------
    ParameterError
        If the folder is not a saved model, is damaged or was changed, if a version of manyhands with another schema
        saved it, or if a device is given that this machine does not have or that the model cannot use.
    MissingExtraError
        If a library that the model needs is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import manyhands as mh
    >>> from manyhands.datasets import make_blobs
    >>> data = make_blobs(60, 6, random_state=0)
    >>> model = mh.TwoStage().fit(data.X, data.annotations)  # doctest: +SKIP
    >>> with TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     model.save(f"{folder}/model")
    ...     again = mh.load_model(f"{folder}/model")
    """
    from safetensors.numpy import load

    folder = Path(folder)
    try:
        description = json.loads((folder / JSON).read_text(encoding="utf-8"))
        content = (folder / TENSORS).read_bytes()
        _check_schema(description["schema"], folder)
        if description.pop("checksum") != checksum(description, content):
            raise ValueError("it is cut off or was changed since it was saved")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # whatever is wrong in a file is an error below
            model = _restored(description, load(content))
    except FileNotFoundError as error:
        raise ParameterError(f"{folder} is not a saved model: it has no {Path(error.filename).name}.") from None
    except (MissingExtraError, PermissionError, _SchemaError):
        raise
    except Exception as error:  # whatever a changed file leads to, the file is the cause
        raise ParameterError(f"{folder} is not a model that can be read: {_reason(error)}") from None
    if device is not None:
        _move(model, device, folder)
    return model


def _move(model: Any, device: str, folder: Path) -> None:
    """Move the network of a model, and its noise layer, to a device."""
    wrapped = getattr(model, "classifier_", model)
    modules: list[Any] = [getattr(wrapped, name, None) for name in ("module_", "_noise_layer")]
    networks = [module for module in modules if hasattr(module, "state_dict")]
    if not networks:
        method = method_name(type(model))
        raise ParameterError(f"{folder} is a model of {method}, which has no network: leave out the device.")
    from manyhands.nn.inference import choose_device

    place = choose_device(device)
    for network in networks:
        network.to(place)


class _SchemaError(ParameterError):
    """A folder that another version of manyhands wrote."""


def _check_schema(schema: Any, folder: Path) -> None:
    """Refuse a folder of an older or newer schema, and say what to do about it."""
    if schema == _SCHEMA:
        return
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError(f"its schema is {str(schema)[:20]!r}, and this version reads {_SCHEMA}")
    versions = f"(schema {schema}; this version reads schema {_SCHEMA})"
    if schema < _SCHEMA:
        raise _SchemaError(
            f"{folder} was saved by an older version of manyhands {versions}: fit the model again with this version, "
            "or load it with the older one."
        )
    raise _SchemaError(f"{folder} was saved by a newer version of manyhands {versions}: upgrade manyhands to load it.")


def checksum(description: dict[str, Any], tensors: bytes) -> str:
    """Compute the checksum of both files together, independent of the layout of the JSON.

    Parameters
    ----------
    description : dict
        Content of `model.json` without the checksum.
    tensors : bytes
        Content of `model.safetensors`.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode() + tensors).hexdigest()


def _reason(error: Exception) -> str:
    """Return why a file could not be loaded, as the end of a sentence."""
    if isinstance(error, KeyError):
        return f"it lacks {str(error)[:100]}."
    if isinstance(error, RecursionError | MemoryError | OverflowError):
        return "something in it is too large."
    first = " ".join(str(error).split("\n")[0].split()).rstrip(".")[:240]
    return f"{first}." if isinstance(error, ValueError) else f"its parts are inconsistent ({first})."


def _restored(description: dict[str, Any], arrays: Arrays) -> Any:
    """Create the model from the content of both files."""
    if description["method"] in registry.names("aggregator"):
        return aggregators.from_json(description, arrays)
    if not any(description["method"] in registry.names(kind) for kind in _KINDS):
        raise ValueError(f"it needs the method {str(description['method'])[:60]!r}, which this version does not have")
    model = registry.create(description["method"], **parameters_from_json(description["parameters"], arrays))
    model._check_parameters()
    model.classes_, model.worker_ids_ = parts.array(description["classes"]), parts.array(description["worker_ids"])
    model._row_shape = parts.row_shape(description["row_shape"])
    for name, value in parts.features(model._row_shape, description.get("feature_names")).items():
        setattr(model, name, value)
    for name, array in parts.checked_results(model, arrays).items():
        setattr(model, name, array if array.ndim else array.item())
    if description.get("rounds") is not None:
        model.rounds_ = parts.history(description["rounds"])
    model.history_, model.notes_ = parts.history(description["history"]), parts.notes(description["notes"])
    if description["module"]["kind"] == "wrapped":
        _wrap(model, _restored(description["wrapped"], parts.below("wrapped/", arrays)))
    elif description["module"]["kind"] == "scikit-learn":
        model.module_ = _classifier(model, description["module"], arrays)
    elif description["module"]["kind"] == "network":
        model.module_ = _network(model, model._new_module, parts.below("module/", arrays))
    else:
        raise ValueError("it is neither a network nor a scikit-learn classifier")
    noise = parts.below("noise/", arrays)
    if noise:
        model._noise_layer = _network(model, model.noise_model().empty_layer, noise)
    return model


def _wrap(model: Any, inner: Any) -> None:
    """Set the fitted classifier of a model that wraps one, after a check that both were fitted to the same data."""
    same = (
        inner.classes_.tolist() == model.classes_.tolist() and inner.worker_ids_.tolist() == model.worker_ids_.tolist()
    )
    if not same or inner._row_shape != model._row_shape or not hasattr(model, "class_shares_"):
        raise ValueError("the classifier that it wraps was fitted to other data")
    model.classifier_, model.module_ = inner, inner.module_


def _module_state(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the description and the arrays of the trained network or scikit-learn classifier."""
    module = model.module_
    if not hasattr(module, "state_dict"):
        description, arrays = sklearn_estimators.to_tree(module, "module")
        return {"kind": "scikit-learn", **description}, arrays
    if callable(getattr(model, "backbone", None)):
        raise ParameterError(
            "A network made by a function of yours cannot be made again from a file; save module_.state_dict()."
        )
    return {"kind": "network"}, _weights("module/", module)


def _weights(prefix: str, module: Any) -> Arrays:
    """Return the weights of a network or a noise layer, by their names after a prefix."""
    return {f"{prefix}{name}": tensor.detach().cpu().numpy() for name, tensor in module.state_dict().items()}


def _network(model: Any, make: Callable[..., Any], state: Arrays) -> Any:
    """Make a network or a noise layer and set its weights, after their names, shapes and types were checked."""
    import torch

    sizes = (model._row_shape, len(model.classes_), len(model.worker_ids_))
    with torch.device("meta"):  # shapes without memory, so that a wrong size in the file allocates nothing
        wanted = {name: (tuple(t.shape), t.dtype) for name, t in make(*sizes).state_dict().items()}
    tensors = {name: torch.from_numpy(array.copy()) for name, array in state.items()}
    found = {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}
    if wanted != found:
        invalid = min(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        raise ValueError(f"the weights {invalid[:60]!r} are not those of the network that it describes")
    for name, array in state.items():
        parts.check_weights(name, array)
    with torch.random.fork_rng(devices=()):  # the initial weights are drawn, and then replaced
        module = make(*sizes)
    module.load_state_dict(tensors)
    return module.eval()


def _classifier(model: Any, description: dict[str, Any], arrays: Arrays) -> Any:
    """Create the scikit-learn classifier and check it with one prediction, whose result is not used."""
    module, n_features = sklearn_estimators.from_tree(description, arrays), math.prod(model._row_shape)
    if not hasattr(module, "predict_proba") or not hasattr(model, "predict_proba"):
        raise ValueError(f"a {type(module).__name__} cannot be the classifier of a {type(model).__name__}")
    codes = module.classes_
    if codes.dtype.kind not in "iu" or len(np.unique(codes)) != len(codes) or codes.max() >= len(model.classes_):
        raise ValueError("its classifier has other classes")
    if getattr(module, "n_features_in_", n_features) != n_features or codes.min() < 0:
        raise ValueError("its classifier was trained on rows of another shape")
    if n_features > _MAX_FEATURES:
        raise ValueError(f"a row of {n_features} features is too large")
    row = as_rows(np.zeros((1, *model._row_shape)))
    found = module.predict_proba(row.whole().reshape(1, -1))
    if found.shape != (1, len(codes)) or not np.isfinite(found).all():
        raise ValueError("its classifier does not give one probability for each class")
    model._proba(module, row)  # fails for methods that use networks only
    return module


def _is_numeric(name: str, value: Any) -> bool:
    """Whether a result is a number or an array of numbers, so that it is stored as a tensor."""
    is_number = isinstance(value, int | float) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
    return is_number and name not in ("classes_", "worker_ids_", "n_features_in_")
