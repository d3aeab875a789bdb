"""manyhands: noisy crowd labels in; labels one can trust and an honest account of every worker out.

>>> import manyhands as mh
>>> votes = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
>>> mh.DawidSkene().fit(votes).labels_.tolist()
[0, 1, 0]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manyhands import exceptions, registry
from manyhands.annotations import Annotations

if TYPE_CHECKING:
    from manyhands.aggregation.dawid_skene import DawidSkene as DawidSkene
    from manyhands.aggregation.majority_vote import MajorityVote as MajorityVote
    from manyhands.aggregation.one_coin import OneCoin as OneCoin

__version__ = "0.1.0"

_LAZY = {  # public name -> where it lives; loaded on first use
    "DawidSkene": "manyhands.aggregation.dawid_skene",
    "MajorityVote": "manyhands.aggregation.majority_vote",
    "OneCoin": "manyhands.aggregation.one_coin",
}

__all__ = ["Annotations", "exceptions", "registry", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'manyhands' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
