"""Fitted aggregators as JSON and arrays: their annotations, gold, and every result.

The results are stored as a tree of plain values, so a new aggregator is saved without a line of its own here. A loaded
aggregator has to predict and score its own annotations before it is returned, so that a file whose arrays do not fit
together is refused.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.noise.difficulty import Abilities
from manyhands.persistence import parts
from manyhands.persistence.parameters import parameters_from_json, parameters_to_json

Arrays = dict[str, npt.NDArray[Any]]

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


def to_json(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted aggregator as JSON and arrays.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.

    Returns
    -------
    description : dict
        Values for JSON: parameters, ids, gold and results.
    arrays : dict of str to ndarray
        All arrays of numbers, by the names that the description uses.

    Raises
    ------
    ParameterError
        If an id is neither text nor a number, or a parameter cannot be stored.
    """
    annotations = model.annotations_
    arrays: Arrays = {f"codes/{name}": getattr(annotations, name) for name in _CODES}
    if annotations.weight is not None:
        arrays["codes/weight"] = annotations.weight
    ids = {name: parts.values(getattr(annotations, name), name.removesuffix("_ids")) for name in _IDS}
    gold = [[parts.plain(value, "gold item or class") for value in pair] for pair in model._gold.items()]
    parameters = parameters_to_json(model, arrays)
    own = {n: v for n, v in vars(model).items() if n not in _FROM_ANNOTATIONS and n not in model._parameter_names()}
    results = {name: _as_tree(value, f"result/{name}", arrays) for name, value in own.items()}
    return {"parameters": parameters, "ids": ids, "gold": gold, "results": results}, arrays


def from_json(description: dict[str, Any], arrays: Arrays) -> Any:
    """Return the fitted aggregator of a file; `to_json` is the inverse.

    Parameters
    ----------
    description : dict
        Content of the JSON file.
    arrays : dict of str to ndarray
        Content of the array file.

    Returns
    -------
    Aggregator

    Raises
    ------
    ValueError
        If the parts of the file do not fit together.
    KeyError
        If one of them is missing.
    """
    model = registry.create(description["method"], **parameters_from_json(description["parameters"], arrays))
    model._check_parameters()
    ids = {name: parts.array(description["ids"][name], repeats=name == "item_ids") for name in _IDS}
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
    for name, shape in (shapes | {"_class_totals": (n_classes,)}).items():
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
    parts.notes(model.notes_)
    is_whole = annotations.n_annotations > 0  # otherwise it was fitted on labels in shards, and cannot score
    if not is_whole:
        ids = {name: getattr(annotations, name) for name in ("worker_ids", "classes")}
        annotations = Annotations([0], [0], [0], item_ids=[0], **ids)
    proba, score = model.predict_proba(annotations), model.score(annotations) if is_whole else 0.0
    shape = (annotations.n_items, n_classes)
    if proba.shape != shape or not np.isfinite(proba).all() or not math.isfinite(score):
        raise ValueError("it gives no probabilities for its own labels")


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
        return {"ids": parts.values(value, "class", missing=True)}
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
        return parts.array(content, repeats=True)
    if kind == "dict":
        return {str(name): _from_tree(one, arrays, depth + 1) for name, one in content.items()}
    made = [_from_tree(one, arrays, depth + 1) for one in content]
    return {"list": list, "tuple": tuple}[kind](made)
