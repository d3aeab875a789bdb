"""Table of contents: method name -> "module:Class" and, for a variant, its fixed parameters; one line each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from manyhands.exceptions import ParameterError

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
    "wawa": ("manyhands.aggregation.wawa:Wawa", {}),
}

_METHODS = dict(sorted(_AGGREGATORS.items()))


def names(kind: str | None = None) -> list[str]:
    """All method names, or those of one kind ("aggregator"), sorted."""
    if kind not in (None, "aggregator"):
        raise ParameterError(f"There is no kind of method called {kind!r}. There is: aggregator.")
    return list(_METHODS)


def get(name: str) -> type[Any]:
    """The class behind a name; its module is imported now and not before."""
    module, _, class_name = _entry(name)[0].partition(":")
    found: type[Any] = getattr(import_module(module), class_name)
    return found


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
