"""Table of contents: method name -> "module:Class" and, for a variant, its fixed parameters; one line each."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from manyhands.exceptions import MissingExtraError, ParameterError

DEFAULT = "pooled-dawid-skene"

_AGGREGATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "dawid-skene": ("manyhands.aggregation.dawid_skene:DawidSkene", {}),
    "glad": ("manyhands.aggregation.glad:GLAD", {}),
    "ibcc": ("manyhands.aggregation.ibcc:IBCC", {}),
    "kos": ("manyhands.aggregation.kos:KOS", {}),
    "mace": ("manyhands.aggregation.mace:MACE", {}),
    "majority-vote": ("manyhands.aggregation.majority_vote:MajorityVote", {}),
    "one-coin": ("manyhands.aggregation.one_coin:OneCoin", {}),
    "pooled-dawid-skene": ("manyhands.aggregation.pooled_dawid_skene:PooledDawidSkene", {}),
    "vote-difficulty-em": ("manyhands.aggregation.vote_difficulty_em:VoteDifficultyEM", {}),
    "wawa": ("manyhands.aggregation.wawa:Wawa", {}),
}

_IMPUTED = "manyhands.classifiers.imputation.imputed_crowd_layer:ImputedCrowdLayer"  # four ways of filling in
_NEUCROWD = "manyhands.representation.neucrowd.neucrowd:NeuCrowd"  # a learner of representations that classifies too

_CLASSIFIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adaptive-difficulty-em": ("manyhands.classifiers.difficulty.difficulty_em:DifficultyEM", {}),
    "aggnet": ("manyhands.classifiers.aggnet:AggNet", {}),
    "conal": ("manyhands.classifiers.conal:CoNAL", {}),
    "cpc": ("manyhands.classifiers.cpc.cpc:CPC", {}),
    "crowd-layer": ("manyhands.classifiers.crowd_layer:CrowdLayer", {}),
    "crowd-layer-gan": (_IMPUTED, {"imputer": "gan", "most_likely": False}),
    "crowd-layer-generator": (_IMPUTED, {"imputer": "generator", "most_likely": False}),
    "crowd-layer-graph": (_IMPUTED, {"imputer": "graph"}),
    "crowd-layer-self": (_IMPUTED, {"imputer": "self"}),
    "crowding": ("manyhands.classifiers.crowding.crowding:CrowdInG", {}),
    "difficulty-network": ("manyhands.classifiers.difficulty.difficulty_network:DifficultyNetwork", {}),
    "doctor-net": ("manyhands.classifiers.doctor_net:DoctorNet", {}),
    "fixed-difficulty-em": ("manyhands.classifiers.difficulty.difficulty_em:FixedDifficultyEM", {}),
    "iced": ("manyhands.classifiers.iced.iced:ICED", {}),
    "max-mig": ("manyhands.classifiers.max_mig:MaxMIG", {}),
    "mbem": ("manyhands.classifiers.mbem:MBEM", {}),
    "neucrowd": (_NEUCROWD, {}),
    "raykar": ("manyhands.classifiers.raykar:Raykar", {}),
    "self-crowd": ("manyhands.classifiers.self_crowd.self_crowd:SelfCrowd", {}),
    "spee-lfc": ("manyhands.classifiers.spee_lfc:SpeeLFC", {}),
    "trace-reg": ("manyhands.classifiers.trace_reg:TraceReg", {}),
    "two-stage": ("manyhands.classifiers.two_stage:TwoStage", {}),
}

_REPRESENTATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "center": ("manyhands.representation.center:Center", {}),
    "contrastive": ("manyhands.representation.contrastive:Contrastive", {}),
    "lifted": ("manyhands.representation.lifted:Lifted", {}),
    "neucrowd": (_NEUCROWD, {}),
    "rll": ("manyhands.representation.rll:RLL", {}),
    "triplet": ("manyhands.representation.triplet:Triplet", {}),
}

_KINDS = {"aggregator": _AGGREGATORS, "classifier": _CLASSIFIERS, "representation": _REPRESENTATIONS}
_METHODS = dict(sorted((_AGGREGATORS | _CLASSIFIERS | _REPRESENTATIONS).items()))

_EXTRA_OF = {"torch": "learn"}


def names(kind: str | None = None) -> list[str]:
    """All method names, or those of one kind ("aggregator", "classifier", "representation"), sorted."""
    if kind is not None and kind not in _KINDS:
        raise ParameterError(f"There is no kind of method called {kind!r}. There are: {', '.join(_KINDS)}.")
    return list(_METHODS if kind is None else _KINDS[kind])


def get(name: str) -> type[Any]:
    """The class behind a name; its module is imported now and not before."""
    module, _, class_name = _entry(name)[0].partition(":")
    found: type[Any] = getattr(load_module(module), class_name)
    return found


def name_of(cls: type[Any]) -> str | None:
    """The name of a class, or None; no other method is imported to find it."""
    home = f"{cls.__module__}:{cls.__qualname__}"
    return next((name for name, (place, _) in _METHODS.items() if place == home), None)


def load_module(module: str) -> ModuleType:
    """Import a module of ours; where a library of an extra is missing, one sentence names the extra."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA_OF:
            raise
        raise MissingExtraError(
            f"{module} needs {error.name}, which is not installed. Install it with: "
            f"pip install 'manyhands[{_EXTRA_OF[error.name]}]'"
        ) from None


def summary(name: str) -> str:
    """The first line of a method's docstring, read from its source: no method is imported to be listed."""
    module, _, class_name = _entry(name)[0].partition(":")
    path = Path(__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    return (ast.get_docstring(found) or "").partition("\n")[0]


def create(name: str, **parameters: Any) -> Any:
    """A new estimator by name.

    >>> create("dawid-skene", smoothing=0.1)
    DawidSkene(smoothing=0.1)
    """
    return get(name)(**(_entry(name)[1] | parameters))


def create_seeded(name: str, seed: int) -> Any:
    """A new estimator by name, with the seed where it draws anything at random."""
    model = create(name)
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def _entry(name: str) -> tuple[str, dict[str, Any]]:
    if name not in _METHODS:
        raise ParameterError(f"There is no method called {name!r}. There are: {', '.join(_METHODS)}.")
    return _METHODS[name]
