"""The registry: method name -> where its constructor lives, and the fixed parameters of a variant; one line each.

A constructor is a class (`module:Class`) or a class method (`module:Class.plus`). Nothing is imported before a method
is asked for, and nothing registers itself: this file lists every method of the package.

Other packages add methods by entry points of the group ``manyhands.methods``, in their pyproject.toml:

    [project.entry-points."manyhands.methods"]
    my-vote = "my_package:MyVote"

The kind of such a method follows from the class that it derives from. Entry points are read when all names are asked
for, or a name that is not in this file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from warnings import warn

from manyhands._core.spelling import suggest
from manyhands.exceptions import CrowdWarning, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DEFAULT = "pooled-dawid-skene"
VOTE = "majority-vote"  # the one aggregator that needs no worker ids
DEFAULT_ORDINAL = "ordinal-dawid-skene"  # for ordered classes
DEFAULT_VERDICTS = "order-consistency-vote"  # for pairwise verdicts in both orders of presentation

_AGGREGATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "dawid-skene": ("manyhands.aggregation.dawid_skene:DawidSkene", {}),
    "firing-naive-bayes": ("manyhands.aggregation.firing_naive_bayes:FiringNaiveBayes", {}),
    "glad": ("manyhands.aggregation.glad:GLAD", {}),
    "ibcc": ("manyhands.aggregation.ibcc:IBCC", {}),
    "kos": ("manyhands.aggregation.kos:KOS", {}),
    "mace": ("manyhands.aggregation.mace:MACE", {}),
    "majority-vote": ("manyhands.aggregation.voting:MajorityVote", {}),
    "one-coin": ("manyhands.aggregation.one_coin:OneCoin", {}),
    "order-consistency-vote": ("manyhands.aggregation.order_consistency_vote:OrderConsistencyVote", {}),
    "ordinal-dawid-skene": ("manyhands.aggregation.ordinal:OrdinalDawidSkene", {}),
    "pooled-dawid-skene": ("manyhands.aggregation.pooled:PooledDawidSkene", {}),
    "vote-difficulty-em": ("manyhands.aggregation.vote_difficulty_em:VoteDifficultyEM", {}),
    "wawa": ("manyhands.aggregation.voting:Wawa", {}),
}

_DOCTOR_NET = "manyhands.classifiers.doctor_net:DoctorNet"  # three ways to weight the heads
_IMPUTED = "manyhands.classifiers.imputation:ImputedCrowdLayer"  # four models that impute
_NEUCROWD = "manyhands.representation.neucrowd:NeuCrowd"  # a representation learner that classifies too

# A paper's name gives the paper's method; "-plus" names ours, which is built on it, and "-program" the form of the
# authors' program where that is another method.
_CLASSIFIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "aggnet": ("manyhands.classifiers.aggnet:AggNet", {}),
    "conal": ("manyhands.classifiers.conal:CoNAL", {}),
    "cpc": ("manyhands.classifiers.cpc:CPC", {}),
    "crowd-layer": ("manyhands.classifiers.crowd_layer:CrowdLayer", {}),
    "crowd-layer-gan": (_IMPUTED, {"imputer": "gan"}),
    "crowd-layer-generator": (_IMPUTED, {"imputer": "generator"}),
    "crowd-layer-graph": (_IMPUTED, {"imputer": "graph", "most_likely": True}),
    "crowd-layer-self": (_IMPUTED, {"imputer": "self", "most_likely": True}),
    "crowding": ("manyhands.classifiers.crowding:CrowdInG", {}),
    "crowding-plus": ("manyhands.classifiers.crowding:CrowdInG.plus", {}),
    "difficulty-em": ("manyhands.classifiers.difficulty_em:DifficultyEM", {}),
    "difficulty-em-plus": ("manyhands.classifiers.difficulty_em:DifficultyEM.plus", {}),
    "difficulty-network": ("manyhands.classifiers.difficulty_network:DifficultyNetwork", {}),
    "doctor-net": (_DOCTOR_NET, {}),
    "doctor-net-biwdn": (_DOCTOR_NET, {"weights": "item-bottleneck"}),
    "doctor-net-iwdn": (_DOCTOR_NET, {"weights": "item"}),
    "ensemble": ("manyhands.classifiers.wrappers:Ensemble", {}),
    "fixed-difficulty-em": ("manyhands.classifiers.difficulty_em:FixedDifficultyEM", {}),
    "fixed-difficulty-em-program": ("manyhands.classifiers.difficulty_em:FixedDifficultyEM.program", {}),
    "iced": ("manyhands.classifiers.iced:ICED", {}),
    "iced-plus": ("manyhands.classifiers.iced:ICED.plus", {}),
    "max-mig": ("manyhands.classifiers.max_mig:MaxMIG", {}),
    "mbem": ("manyhands.classifiers.mbem:MBEM", {}),
    "neucrowd": (_NEUCROWD, {}),
    "neucrowd-plus": (f"{_NEUCROWD}.plus", {}),
    "prior-adjusted": ("manyhands.classifiers.wrappers:PriorAdjusted", {}),
    "raykar": ("manyhands.classifiers.raykar:Raykar", {}),
    "self-crowd": ("manyhands.classifiers.self_crowd:SelfCrowd", {}),
    "self-crowd-plus": ("manyhands.classifiers.self_crowd:SelfCrowd.plus", {}),
    "spee-lfc": ("manyhands.classifiers.spee_lfc:SpeeLFC", {}),
    "spee-lfc-d": ("manyhands.classifiers.spee_lfc:SpeeLFC", {"difficulty": True}),
    "trace-reg": ("manyhands.classifiers.trace_reg:TraceReg", {}),
    "two-stage": ("manyhands.classifiers.two_stage:TwoStage", {}),
}

_REPRESENTATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "center": ("manyhands.representation.metric_learners:Center", {}),
    "contrastive": ("manyhands.representation.metric_learners:Contrastive", {}),
    "lifted": ("manyhands.representation.metric_learners:Lifted", {}),
    "neucrowd": (_NEUCROWD, {}),
    "neucrowd-plus": (f"{_NEUCROWD}.plus", {}),
    "rll": ("manyhands.representation.metric_learners:RLL", {}),
    "siamese": ("manyhands.representation.metric_learners:Contrastive", {"loss": "koch"}),
    "triplet": ("manyhands.representation.metric_learners:Triplet", {}),
}

_KINDS = {"aggregator": _AGGREGATORS, "classifier": _CLASSIFIERS, "representation": _REPRESENTATIONS}
_METHODS = dict(sorted((_AGGREGATORS | _CLASSIFIERS | _REPRESENTATIONS).items()))

_GROUP = "manyhands.methods"  # of entry points
_BASES = {  # base class -> the kind of the methods that derive from it
    "manyhands.aggregation.base:Aggregator": "aggregator",
    "manyhands.classifiers.base:CrowdClassifier": "classifier",
    "manyhands.representation.base:RepresentationLearner": "representation",
}

_EXTRA_OF = {"torch": "learn"}
# What else a command that installs an extra must name: the version of torch that is tested (constraints.txt), since the
# newest one brings gigabytes of libraries for GPUs.
_ALSO_INSTALL = {"learn": " torch==2.13.0"}


def install_command(extra: str) -> str:
    """Return the command that installs an extra without what it does not need.

    Parameters
    ----------
    extra : str
        Name of the extra.

    Returns
    -------
    str
        The command.

    Examples
    --------
    >>> install_command("plot")
    "pip install 'manyhands[plot]'"
    """
    return f"pip install 'manyhands[{extra}]'{_ALSO_INSTALL.get(extra, '')}"


def names(kind: str | None = None) -> list[str]:
    """Return the names of all methods, sorted.

    Parameters
    ----------
    kind : {"aggregator", "classifier", "representation"} or None, default=None
        Only methods of this kind; None returns all.

    Returns
    -------
    list of str
    """
    if kind is not None and kind not in _KINDS:
        raise ParameterError(f"There is no kind of method called {kind!r}.{suggest(kind, _KINDS)}")
    plugged = [name for name, (_, _, its_kind) in _plugged().items() if kind in (None, its_kind)]
    return sorted([*(_METHODS if kind is None else _KINDS[kind]), *plugged])


def get(name: str) -> type[Any]:
    """Return the class behind a name; its module is imported now and not before.

    Parameters
    ----------
    name : str
        A name of the registry.

    Returns
    -------
    type
        The class, also where the name stands for a class method such as `ICED.plus`.
    """
    module, class_name, _ = _place(name)
    found: type[Any] = getattr(load_module(module), class_name)
    return found


def check_name(name: str, kind: str) -> None:
    """Refuse a name that is not that of a method of one kind.

    Parameters
    ----------
    name : str
        What was typed.
    kind : {"aggregator", "classifier", "representation"}
        The kind that is needed; only its names are suggested.

    Raises
    ------
    ParameterError
        If there is no such method.
    """
    if name not in names(kind):
        raise ParameterError(f"There is no {kind} called {name!r}.{suggest(name, names(kind))}")


def name_of(cls: type[Any]) -> str | None:
    """Return the name under which a class is registered, or None; no method is imported to find it.

    Parameters
    ----------
    cls : type
        A class of estimators.

    Returns
    -------
    str or None
        The first name whose constructor is the class itself.
    """
    home = f"{cls.__module__}:{cls.__qualname__}"
    own = next((name for name, (place, _) in _METHODS.items() if place == home), None)
    return own or next((name for name, (place, _, _) in _plugged().items() if place == home), None)


def load_module(module: str) -> ModuleType:
    """Import a module of the package; where the library of an extra is missing, the error names the extra.

    Parameters
    ----------
    module : str
        Dotted name.

    Returns
    -------
    module
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA_OF:
            raise
        raise MissingExtraError(
            f"{module} needs {error.name}, which is not installed. Install it with: "
            f"{install_command(_EXTRA_OF[error.name])}"
        ) from None


def summary(name: str) -> str:
    """Return the first line of a method's docstring, read from its source: no method is imported to be listed.

    Parameters
    ----------
    name : str
        A name of the registry.

    Returns
    -------
    str
        The summary of the class or, for `Class.plus`, of the class method; a variant adds its fixed parameters.
    """
    module, class_name, constructor = _place(name)
    if name not in _METHODS:  # of another package, whose classes are loaded by now
        cls = get(name)
        return (getdoc(getattr(cls, constructor) if constructor else cls) or "").partition("\n")[0]
    path = Path(__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for wanted in filter(None, (class_name, constructor)):
        inside = ast.iter_child_nodes(node)
        node = next(n for n in inside if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == wanted)
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    first = (ast.get_docstring(node) or "").partition("\n")[0]
    fixed = ", ".join(f"{parameter}={value!r}" for parameter, value in _entry(name)[1].items())
    return f"{first.removesuffix('.')} ({fixed})." if fixed else first


def create(name: str, **parameters: Any) -> Any:
    """Return a new estimator by name.

    Parameters
    ----------
    name : str
        A name of the registry.
    **parameters : object
        Constructor parameters; `group__option` sets one option of a group.

    Returns
    -------
    BaseEstimator

    Examples
    --------
    >>> create("dawid-skene", smoothing=0.1)
    DawidSkene(smoothing=0.1)
    """
    _, _, constructor = _place(name)
    cls = get(name)
    make: Callable[..., Any] = getattr(cls, constructor) if constructor else cls
    nested = {name: value for name, value in parameters.items() if "__" in name}
    plain = {name: value for name, value in parameters.items() if name not in nested}
    model = make(**(_entry(name)[1] | plain))
    return model.set_params(**nested) if nested else model


def create_seeded(name: str, seed: int) -> Any:
    """Return a new estimator by name, with this seed where it has a `random_state`.

    Parameters
    ----------
    name : str
        A name of the registry.
    seed : int
        The seed.

    Returns
    -------
    BaseEstimator
    """
    model = create(name)
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def _place(name: str) -> tuple[str, str, str]:
    """Module, class and constructor of a name; the constructor is "" where it is the class itself."""
    module, _, rest = _entry(name)[0].partition(":")
    class_name, _, constructor = rest.partition(".")
    return module, class_name, constructor


def _entry(name: str) -> tuple[str, dict[str, Any]]:
    """Where a method lives, and the fixed parameters of a variant."""
    if name in _METHODS:
        return _METHODS[name]
    if name in _plugged():
        return _plugged()[name][0], {}
    raise ParameterError(f"There is no method called {name!r}.{suggest(name, names())}")


@cache
def _plugged() -> dict[str, tuple[str, dict[str, Any], str]]:
    """Return methods of other packages: name -> place, fixed parameters, kind; the unusable ones give a warning."""
    from importlib.metadata import entry_points  # scans the installed packages

    methods: dict[str, tuple[str, dict[str, Any], str]] = {}
    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: (entry.name, entry.value)):
        package = entry.dist.name if entry.dist is not None else entry.module
        problem = kind = None
        if entry.name in _METHODS:
            problem = f"manyhands has a method of this name ({_METHODS[entry.name][0]})"
        elif entry.name in methods:
            problem = f"another package has a method of this name ({methods[entry.name][0]})"
        else:
            kind, problem = _kind_of(entry)
        if kind is None:
            warn(f"The method {entry.name!r} of {package} ({entry.value}) is left out: {problem}.", CrowdWarning, 2)
        else:
            methods[entry.name] = (entry.value, {}, kind)
    return methods


def _kind_of(entry: EntryPoint) -> tuple[str | None, str | None]:
    """The kind of a method of another package, or why it cannot be used."""
    try:
        cls = getattr(import_module(entry.module), entry.attr.partition(".")[0])
    except Exception as error:  # whatever another package raises while it is imported
        return None, f"it cannot be imported ({type(error).__name__}: {error})"
    homes = [f"{base.__module__}:{base.__qualname__}" for base in getattr(cls, "__mro__", ())]
    kind = next((_BASES[home] for home in homes if home in _BASES), None)
    return kind, None if kind else "it derives from none of Aggregator, CrowdClassifier and the base of representations"
