"""Settings of `NeuCrowd.plus()`: what helped in our comparisons on a few hundred items."""

from __future__ import annotations

from typing import Any

from manyhands import registry
from manyhands.representation.neucrowd.options import LogisticHead

PLUS: dict[str, Any] = {
    "sampler": False,
    "members": 5,
    "head": LogisticHead(soft_targets=True, skip=True, grid="fine"),
    "search": None,
    "activation": "tanh",
    "warm_up": 1,
    "labels": registry.DEFAULT,
    "embedding_size": 160,
    "learning_rate": 3e-3,
    "batch_size": 64,
    "max_epochs": 29,
    "patience": 5,
    "validation": 0.1,
}
