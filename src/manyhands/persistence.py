"""Saving and loading of fitted methods, without pickles.

models                the folder of a saved model: `save_model`, `load_model`, schema version, checksum
aggregators           all results of a fitted aggregator, and its annotations
parameters            constructor parameters
parts                 what every model has: class and worker ids, results, training history; and their checks
sklearn_estimators    scikit-learn estimators as a JSON tree and arrays, for a fixed list of classes
compiled_estimators   those of them whose compiled code does not check its input: trees, forests, boosting, SVC

A folder holds `model.json` (names, parameters, ids) and `model.safetensors` (all arrays). Loading creates objects of
known classes from numbers, text and arrays only, so a folder from an unknown source runs no code. Everything is
checked when it is loaded: types, shapes, finite values, and a checksum over both files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import persistence_sklearn, registry
from manyhands._core.system import read_limited, read_tensors
from manyhands._core.writing import write_files
from manyhands.annotations import Annotations
from manyhands.em.ability import Abilities
from manyhands.estimator import REQUESTS, BaseEstimator, OptionGroup
from manyhands.exceptions import LimitError, MissingExtraError, ParameterError
from manyhands.features import as_rows

# ----------------------------------------------------------------------------------------------------
# Constructor parameters of a saved model as JSON and arrays.

Arrays = dict[str, npt.NDArray[Any]]
_NOT_KEPT = ("checkpoint",)  # a folder on the machine that trained; a fit writes there, and empties it


def parameters_to_json(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Return the constructor parameters of a model as JSON."""
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_KEPT}
    return {name: _parameter(name, value, arrays) for name, value in given.items()}


def parameters_from_json(description: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return constructor parameters; `parameters_to_json` is the inverse."""
    return {name: _made_parameter(value, arrays) for name, value in description.items() if name not in _NOT_KEPT}


def method_name(cls: type[Any]) -> str:
    """Return the name of a method in the registry."""
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

        description, parts = persistence_sklearn.to_tree(clone(value), f"parameter/{name}")
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
        return persistence_sklearn.from_tree(value, arrays)
    if isinstance(value, dict):
        if value["method"] not in registry.names():
            raise ValueError(f"{str(value['method'])[:60]!r} is not the name of a method")
        inner = {name: _made_parameter(v, arrays) for name, v in value["parameters"].items()}
        method = registry.create(value["method"], **inner)
        method.check_parameters()
        return method
    return tuple(value) if isinstance(value, list) else value


# ----------------------------------------------------------------------------------------------------
# Groups of options as JSON; only those listed here are read from a file.

_CROWDING = "manyhands.classifiers.crowding_game"
_ICED, _NEUCROWD = "manyhands.classifiers.iced", "manyhands.representation.neucrowd_training"

# Name of a group in JSON -> module and class.
_GROUPS: dict[str, tuple[str, str]] = {
    "crowding.Adversarial": (_CROWDING, "Adversarial"),
    "crowding.DiscriminatorTraining": (_CROWDING, "DiscriminatorTraining"),
    "crowding.GeneratorTraining": (_CROWDING, "GeneratorTraining"),
    "iced.Certainty": (_ICED, "Certainty"),
    "iced.Synthesis": (_ICED, "Synthesis"),
    "iced.TruthInference": (_ICED, "TruthInference"),
    "iced.WarmUp": (_ICED, "WarmUp"),
    "neucrowd.HeldoutSearch": (_NEUCROWD, "HeldoutSearch"),
    "neucrowd.LabelConfidence": (_NEUCROWD, "LabelConfidence"),
    "neucrowd.LogisticHead": (_NEUCROWD, "LogisticHead"),
    "neucrowd.SafetyAwareSampling": (_NEUCROWD, "SafetyAwareSampling"),
    "neucrowd.TupletLoss": (_NEUCROWD, "TupletLoss"),
    "neucrowd.Tuplets": (_NEUCROWD, "Tuplets"),
}


def options_to_json(options: OptionGroup) -> dict[str, Any]:
    """Return a group of options as values of JSON.

    Examples
    --------
    >>> from manyhands.classifiers.iced import WarmUp
    >>> options_to_json(WarmUp(epochs=2))
    {'options': 'iced.WarmUp', 'values': {'kind': 'grouped', 'epochs': 2, 'batch_size': None, 'stratified': False}}
    """
    home = (type(options).__module__, type(options).__qualname__)
    name = next((name for name, place in _GROUPS.items() if place == home), None)
    if name is None:
        raise ParameterError(f"{type(options).__name__} is not a group of options of manyhands, so it cannot be saved.")
    names = [field.name for field in fields(options)]  # type: ignore[arg-type]
    return {"options": name, "values": {option: _plain_option(option, getattr(options, option)) for option in names}}


def options_from_json(value: Mapping[str, Any]) -> OptionGroup:
    """Return the group of options that `options_to_json` wrote.

    The values are not validated: the method that takes the group does that.

    Examples
    --------
    >>> options_from_json({"options": "iced.WarmUp", "values": {"epochs": 2}})
    WarmUp(epochs=2)
    """
    name, values = value.get("options"), value.get("values")
    if not isinstance(name, str) or name not in _GROUPS:
        raise ParameterError(f"{str(name)[:60]!r} is not the name of a group of options.")
    if not isinstance(values, Mapping):
        raise ParameterError(f"The values of the group of options {name!r} are missing.")
    module, cls = _GROUPS[name]
    group: type[OptionGroup] = getattr(import_module(module), cls)
    return group(**{str(option): tuple(v) if isinstance(v, list) else v for option, v in values.items()})


def _plain_option(name: str, value: Any) -> Any:
    """Return a value as JSON has it: numbers, text, None, and lists of these."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain_option(name, each) for each in value]
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ParameterError(f"The option {name!r} is of type {type(value).__name__}, which cannot be saved.")
    return value


# ----------------------------------------------------------------------------------------------------
# What every saved model has: class and worker ids, results, training history, notes; and the checks of each.

COUNTED = ("_confusions", "_shares")  # attributes that `score` needs beside the results
_MAX_BYTES = 2**30  # of the classes or the workers, and of model.json: ids of some ten million items

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
    """Return the arrays whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def checked_results(model: Any, arrays: Arrays) -> Arrays:
    """Return the results of a saved model, each with the type and shape that it must have."""
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
    if not fits or any(length is not None and length != (actual,) for actual, length in zip(array.shape, lengths)):
        description = ", ".join("any" if length is None else str(*length) for length in lengths)
        kind = "whole numbers" if whole else "floats"
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {kind} of ({description})")
    given = array[~np.isnan(array)] if name in _MAY_BE_MISSING else array
    if not np.isfinite(given).all():
        raise ValueError(f"{name} has numbers that are not finite")
    if name in _SHARES and given.size and (given.min() < -_ROUNDING or given.max() > 1 + _ROUNDING):
        raise ValueError(f"{name} has numbers that are not between 0 and 1")


def check_weights(name: str, array: npt.NDArray[Any]) -> None:
    """Refuse weights of a network that are not finite; a log-weight may be minus infinity."""
    if array.dtype.kind != "f":
        return
    may_be_zero = name.rpartition(".")[2].startswith("log_")
    if not (np.isfinite(array) | (np.isneginf(array) & may_be_zero)).all():
        raise ValueError(f"the weights {name[:60]!r} are not finite")


def values(ids: npt.NDArray[Any], role: str, *, missing: bool = False) -> dict[str, Any]:
    """Return class, worker or item ids as JSON, with the type that restores them.

    Shapes: ids (n,).
    """
    listed = [value if missing and value is None else plain(value, role) for value in ids.tolist()]
    return {"dtype": str(ids.dtype), "values": listed}


def plain(value: Any, role: str) -> str | int | float:
    """Return an id that JSON can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | int | float):
        return value
    raise ParameterError(f"The {role} {value!r} is neither text nor a number, so it cannot be saved; rename it.")


def array(description: dict[str, Any], *, repeats: bool = False) -> npt.NDArray[Any]:
    """Restore class, worker or item ids; `values` is the inverse.

    Shapes: returns (n,).
    """
    dtype, values = np.dtype(description["dtype"]), description["values"]
    allowed = str | int | float | (None if repeats else str)
    if not isinstance(values, list) or not all(isinstance(value, allowed) for value in values):
        raise ValueError("its classes or workers are neither texts nor numbers")
    is_unique = repeats or len(set(values)) == len(values)
    if dtype.kind not in "biufUO" or len(values) * dtype.itemsize > _MAX_BYTES or not is_unique:
        raise ValueError("its classes or workers are not of the stated type, or occur twice")
    restored = np.empty(len(values), dtype)
    restored[:] = values
    return restored


def row_shape(description: Any) -> tuple[int, ...]:
    """Return the shape of one row of features."""
    if not isinstance(description, list) or not all(type(length) is int and length >= 0 for length in description):
        raise ValueError(f"{str(description)[:60]!r} is not the shape of a row")
    return tuple(description)


def features(row_shape: tuple[int, ...], names: Any) -> dict[str, Any]:
    """Return the fitted attributes about the columns of X."""
    attributes: dict[str, Any] = {"n_features_in_": row_shape[0]} if len(row_shape) == 1 else {}
    if names is None:
        return attributes
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or (len(names),) != row_shape:
        raise ValueError("its feature names are not one text for each column")
    return attributes | {"feature_names_in_": np.array(names, object)}


def history(description: Any) -> list[dict[str, Any]]:
    """Return the training history: one dict of numbers, or lists of numbers, per epoch or round."""
    if not isinstance(description, list) or not all(
        isinstance(epoch, dict) and all(_is_figure(value) for value in epoch.values()) for epoch in description
    ):
        raise ValueError("its history is not a list of numbers by name")
    return description


def _is_figure(value: Any) -> bool:
    """Whether a value is a number, or a list of numbers such as the shares of all classes."""
    return all(isinstance(one, int | float) for one in (value if isinstance(value, list) else [value]))


def notes(description: Any) -> dict[str, str]:
    """Return the notes of a fit: sentences by code."""
    if not isinstance(description, dict) or not all(isinstance(sentence, str) for sentence in description.values()):
        raise ValueError("its notes are not sentences by name")
    return description


# ----------------------------------------------------------------------------------------------------
# Fitted aggregators as JSON and arrays: their annotations, gold, and every result.
#
# The results are stored as a tree of plain values, so a new aggregator is saved without a line of its own here. A
# loaded aggregator has to predict and score its own annotations before it is returned, so that a file whose arrays do
# not fit together is refused.

_RECORDS = {cls.__name__: cls for cls in (Abilities,)}  # dataclasses that a result may be
_CODES = ("item", "worker", "label")
_IDS = ("item_ids", "worker_ids", "classes")
_FROM_ANNOTATIONS = ("_training", "_gold", "item_ids_", "worker_ids_", "classes_")  # stored in another form, or twice
_NEEDED: tuple[str, ...] = (
    "posterior_",
    "labels_",
    "worker_accuracy_",
    "tied_",
    "unlabelled_",
    "n_iter_",
    "converged_",
    "history_",
)
_NEEDED += ("notes_", "_class_totals")
_MAX_DEPTH = 8
_UNSEEN = "\0"  # id of a worker, and an item, that no export has

# The axes of results that several aggregators have under one name; "all" as above: the last is an unseen worker.
_AGGREGATOR_SHAPES: dict[str, tuple[str, ...]] = {
    "confusion_": ("workers", "classes", "classes"),
    "class_prior_": ("classes",),
    "collusion_group_": ("workers",),
    "_class_totals": ("classes",),
    "_log_confusion": ("all", "classes", "classes"),
    "_log_prior": ("classes",),
    "_weight": ("all",),
    "_ability": ("all",),
    "_ease": ("items",),
}
_MAY_BE_MINUS_INFINITY = ("_log_confusion", "_log_prior")  # the logarithm of 0


def to_json(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted aggregator as JSON and arrays."""
    annotations = model.annotations_
    arrays: Arrays = {f"codes/{name}": getattr(annotations, name) for name in _CODES}
    if annotations.weight is not None:
        arrays["codes/weight"] = annotations.weight
    ids = {name: values(getattr(annotations, name), name.removesuffix("_ids")) for name in _IDS}
    gold = [[plain(value, "gold item or class") for value in pair] for pair in model._gold.items()]
    parameters = parameters_to_json(model, arrays)
    left_out = {*_FROM_ANNOTATIONS, *model._parameter_names(), REQUESTS}
    own = {n: v for n, v in vars(model).items() if n not in left_out}
    results = {name: _as_tree(value, f"result/{name}", arrays) for name, value in own.items()}
    return {"parameters": parameters, "ids": ids, "gold": gold, "results": results}, arrays


def from_json(description: dict[str, Any], arrays: Arrays) -> Any:
    """Return the fitted aggregator of a file; `to_json` is the inverse."""
    model = registry.create(description["method"], **parameters_from_json(description["parameters"], arrays))
    model.check_parameters()
    ids = {name: array(description["ids"][name], repeats=name == "item_ids") for name in _IDS}
    annotations = Annotations(*(arrays[f"codes/{name}"] for name in _CODES), **ids, weight=arrays.get("codes/weight"))
    model._training, model._gold = annotations, {item: label for item, label in description["gold"]}
    model.item_ids_, model.worker_ids_, model.classes_ = (getattr(annotations, name) for name in _IDS)
    for name, tree in description["results"].items():
        if not name.isidentifier() or hasattr(model, name) or name.startswith("__"):
            raise ValueError(f"{name[:60]!r} is not the name of a result")
        setattr(model, name, _from_tree(tree, arrays))
    _check(model)
    return model


def _check(model: Any) -> None:
    """Refuse results of other types or shapes than a fit gives, and those that do not predict."""
    for name in _NEEDED:
        vars(model)[name]  # a KeyError where it is missing
    annotations, n_classes = model.annotations_, model.annotations_.n_classes
    shapes: dict[str, tuple[int, ...]] = {name: (annotations.n_items,) for name in ("labels_", "tied_", "unlabelled_")}
    shapes |= {"posterior_": (annotations.n_items, n_classes), "worker_accuracy_": (annotations.n_workers,)}
    for name, shape in shapes.items():
        if getattr(getattr(model, name), "shape", None) != shape:
            raise ValueError(f"{name} does not have the shape {shape}")
    numbers = [model.posterior_, model.worker_accuracy_]
    if any(a.dtype != np.float64 or not np.all((a >= 0) & (a <= 1 + 1e-6)) for a in numbers):
        raise ValueError("its probabilities are not between 0 and 1")
    if (
        model.tied_.dtype != bool
        or model.unlabelled_.dtype != bool
        or not set(model.labels_.tolist())
        <= {
            None,
            *model.classes_.tolist(),
        }
    ):
        raise ValueError("its labels are not among its classes")
    kinds = type(model.n_iter_) is int and type(model.converged_) is bool and isinstance(model.history_, list)
    if not kinds or not all(isinstance(value, float) for value in model.history_):
        raise ValueError("its number of iterations or its history are not numbers")
    notes(model.notes_)
    _check_own_arrays(model)
    _check_predictions(model)


def _check_own_arrays(model: Any) -> None:
    """Refuse arrays of a method that have another type or shape than its fit gives them, or numbers that are none."""
    annotations = model.annotations_
    lengths = {"items": annotations.n_items, "workers": annotations.n_workers, "classes": annotations.n_classes}
    lengths["all"] = annotations.n_workers + 1
    for name, axes in _AGGREGATOR_SHAPES.items():
        value = vars(model).get(name)
        if value is None:
            continue
        shape = tuple(lengths[axis] for axis in axes)
        dtype = bool if name == "collusion_group_" else np.float64
        if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
            raise ValueError(f"{name} is not an array of {np.dtype(dtype)} of shape {shape}")
        if not (np.isfinite(value) | (np.isneginf(value) & (name in _MAY_BE_MINUS_INFINITY))).all():
            raise ValueError(f"{name} has numbers that are not finite")
        if name in _SHARES and value.size and (value.min() < -_ROUNDING or value.max() > 1 + _ROUNDING):
            raise ValueError(f"{name} has numbers that are not between 0 and 1")
    ordered = vars(model).get("order_", model.classes_)
    is_array = isinstance(ordered, np.ndarray) and ordered.shape == model.classes_.shape
    if not is_array or set(ordered.tolist()) != set(model.classes_.tolist()):
        raise ValueError("order_ does not have each class once")


def _check_predictions(model: Any) -> None:
    """Refuse a model that does not predict and score its own labels, and a label of a worker whom it does not know."""
    annotations, n_classes = model.annotations_, model.annotations_.n_classes
    is_whole = annotations.n_annotations > 0  # otherwise it was fitted on labels in shards, and cannot score
    if not is_whole:
        ids = {name: getattr(annotations, name) for name in ("worker_ids", "classes")}
        annotations = Annotations([0], [0], [0], item_ids=[0], **ids)
    proba, score = model.predict_proba(annotations), model.score(annotations) if is_whole else 0.0
    shape = (annotations.n_items, n_classes)
    if proba.shape != shape or not np.isfinite(proba).all() or not math.isfinite(score):
        raise ValueError("it gives no probabilities for its own labels")
    unseen = Annotations([0], [0], [0], item_ids=[_UNSEEN], worker_ids=[_UNSEEN], classes=annotations.classes)
    if not np.isfinite(model.predict_proba(unseen)).all():
        raise ValueError("it gives no probabilities for a worker whom it does not know")


def _as_tree(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a result as JSON; arrays of numbers are put aside under the name of their place."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.ndarray):
        return {"ids": values(value, "class", missing=True)}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_as_tree(one, f"{name}/{at}", arrays) for at, one in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _as_tree(one, f"{name}/{key}", arrays) for key, one in value.items()}}
    if type(value).__name__ in _RECORDS:
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"record": type(value).__name__, "fields": _as_tree(own, name, arrays)}
    raise ParameterError(
        f"The result {name.removeprefix('result/')} is a {type(value).__name__}, which cannot be saved."
    )


def _from_tree(tree: Any, arrays: Arrays, depth: int = 0) -> Any:
    """Return a result; `_as_tree` is the inverse."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if not isinstance(tree, dict) or depth > _MAX_DEPTH:
        raise ValueError("one of its results is not a value that a fit gives")
    if "record" in tree:
        return _RECORDS[tree["record"]](**_from_tree(tree["fields"], arrays, depth + 1))
    ((kind, content),) = tree.items()
    if kind == "array":
        return arrays[content]
    if kind == "ids":
        return array(content, repeats=True)
    if kind == "dict":
        return {str(name): _from_tree(one, arrays, depth + 1) for name, one in content.items()}
    made = [_from_tree(one, arrays, depth + 1) for one in content]
    return {"list": list, "tuple": tuple}[kind](made)


# ----------------------------------------------------------------------------------------------------
# The folder of a saved model: `model.json` for text and parameters, `model.safetensors` for arrays.
#
# Networks of this package and the usual scikit-learn classifiers can be saved; any other classifier, and a network
# built by a function of the caller, is refused. Constructor parameters are stored by name, so the schema version is
# raised whenever a parameter or a stored result is renamed; folders of an older schema are refused with one sentence.
#
# Inconsistent files are refused when they are loaded, not when the model predicts.

JSON, TENSORS = "model.json", "model.safetensors"
_SCHEMA = 2  # raised with every renamed parameter or result
_MAX_FEATURES = 2**24  # of a scikit-learn classifier
_KINDS = ("classifier", "representation")


def save_model(model: Any, folder: str | Path, *, force: bool = False) -> None:
    """Write a fitted aggregator, classifier or representation learner to a folder."""
    from safetensors.numpy import save

    description, arrays = _described(model)
    tensors = save({name: np.array(array, order="C") for name, array in arrays.items()})
    text = json.dumps(description | {"checksum": checksum(description, tensors)}, indent=1, ensure_ascii=False)
    write_files(folder, {TENSORS: tensors, JSON: text.encode()}, force=force)


def _described(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model as JSON and arrays; the fitted classifier that it wraps is part of it."""
    method = method_name(type(model))
    if method in registry.names("aggregator"):
        description, arrays = to_json(model)
        return {"schema": _SCHEMA, "method": method, **description}, arrays
    wrapped, inside = _described(model.classifier_) if hasattr(model, "classifier_") else (None, {})
    module, arrays = ({"kind": "wrapped"}, {}) if wrapped else _module_state(model)
    arrays |= {f"wrapped/{name}": array for name, array in inside.items()}
    if getattr(model, "_noise_layer", None) is not None:
        arrays |= _weights("noise/", model._noise_layer)
    results = {name: v for name, v in vars(model).items() if name.endswith("_") and name not in ("module_",)}
    arrays |= {f"result/{name}": value for name, value in results.items() if _is_numeric(name, value)}
    arrays |= {f"result/{name}": getattr(model, name) for name in COUNTED if hasattr(model, name)}
    parameters = parameters_to_json(model, arrays)
    description = {
        "schema": _SCHEMA,
        "method": method,
        "parameters": parameters,
        "classes": values(model.classes_, "class"),
        "worker_ids": values(model.worker_ids_, "worker"),
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
    LimitError
        If a file of the folder is larger than a model's, or than memory.
    MissingExtraError
        If a library that the model needs is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import manyhands as mh
    >>> from manyhands.datasets import make_blobs
    >>> data = make_blobs(60, 6, random_state=0)
    >>> model = mh.classifiers.TwoStage().fit(data.X, data.annotations)  # doctest: +SKIP
    >>> with TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     model.save(f"{folder}/model")
    ...     again = mh.load_model(f"{folder}/model")
    """
    from safetensors.numpy import load

    folder = Path(folder)
    try:
        text, content = _read_files(folder)
        description = json.loads(text)
        _check_schema(description["schema"], folder)
        if description.pop("checksum") != checksum(description, content):
            raise ValueError("it is cut off or was changed since it was saved")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # whatever is wrong in a file is an error below
            model = _restored(description, load(content))
    except FileNotFoundError as error:
        raise ParameterError(f"{folder} is not a saved model: it has no {Path(error.filename).name}.") from None
    except (_FileTooLarge, MissingExtraError, PermissionError, _SchemaError):
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
    from manyhands.nn.backbones import choose_device

    place = choose_device(device)
    for network in networks:
        network.to(place)


class _FileTooLarge(LimitError):
    """A file of the folder that is not read."""


def _read_files(folder: Path) -> tuple[str, bytes]:
    """Read both files within their limits."""
    try:
        return read_limited(folder / JSON, _MAX_BYTES).decode("utf-8"), read_tensors(folder / TENSORS)
    except LimitError as error:
        raise _FileTooLarge(str(error)) from None


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
    """Compute the checksum of both files together, independent of the layout of the JSON."""
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
        return from_json(description, arrays)
    if not any(description["method"] in registry.names(kind) for kind in _KINDS):
        raise ValueError(f"it needs the method {str(description['method'])[:60]!r}, which this version does not have")
    model = registry.create(description["method"], **parameters_from_json(description["parameters"], arrays))
    model.check_parameters()
    model.classes_, model.worker_ids_ = array(description["classes"]), array(description["worker_ids"])
    model._row_shape = row_shape(description["row_shape"])
    for name, value in features(model._row_shape, description.get("feature_names")).items():
        setattr(model, name, value)
    for name, value in checked_results(model, arrays).items():
        setattr(model, name, value if value.ndim else value.item())
    if description.get("rounds") is not None:
        model.rounds_ = history(description["rounds"])
    model.history_, model.notes_ = history(description["history"]), notes(description["notes"])
    if description["module"]["kind"] == "wrapped":
        _wrap(model, _restored(description["wrapped"], below("wrapped/", arrays)))
    elif description["module"]["kind"] == "scikit-learn":
        model.module_ = _classifier(model, description["module"], arrays)
    elif description["module"]["kind"] == "network":
        model.module_ = _network(model, model._new_module, below("module/", arrays))
    else:
        raise ValueError("it is neither a network nor a scikit-learn classifier")
    noise = below("noise/", arrays)
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
        description, arrays = persistence_sklearn.to_tree(module, "module")
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
    shapes = {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}
    if wanted != shapes:
        invalid = min(name for name in wanted.keys() | shapes.keys() if wanted.get(name) != shapes.get(name))
        raise ValueError(f"the weights {invalid[:60]!r} are not those of the network that it describes")
    for name, array in state.items():
        check_weights(name, array)
    with torch.random.fork_rng(devices=()):  # the initial weights are drawn, and then replaced
        module = make(*sizes)
    module.load_state_dict(tensors)
    return module.eval()


def _classifier(model: Any, description: dict[str, Any], arrays: Arrays) -> Any:
    """Create the scikit-learn classifier and check it with one prediction, whose result is not used."""
    module, n_features = persistence_sklearn.from_tree(description, arrays), math.prod(model._row_shape)
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
    proba = module.predict_proba(row.whole().reshape(1, -1))
    if proba.shape != (1, len(codes)) or not np.isfinite(proba).all():
        raise ValueError("its classifier does not give one probability for each class")
    model._proba(module, row)  # fails for methods that use networks only
    return module


def _is_numeric(name: str, value: Any) -> bool:
    """Whether a result is a number or an array of numbers, so that it is stored as a tensor."""
    is_number = isinstance(value, int | float) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
    return is_number and name not in ("classes_", "worker_ids_", "n_features_in_")
