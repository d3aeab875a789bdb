"""Representation learners: embeddings of features, learned from a crowd's labels.

All have ``fit(X, annotations)`` and ``transform(X)``, so that any classifier can follow in a scikit-learn pipeline.
`neucrowd` is the paper's system (its network and sampler are trained in `neucrowd_training`), `metric_learners` has the
methods that it is compared with, `base` what all share. torch is loaded with the first method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands._core.exports import exported_on_first_use

if TYPE_CHECKING:
    from manyhands.representation.metric_learners import RLL, Center, Contrastive, Lifted, Triplet
    from manyhands.representation.neucrowd import NeuCrowd
    from manyhands.representation.neucrowd_training import (
        HeldoutSearch,
        LabelConfidence,
        LogisticHead,
        SafetyAwareSampling,
        TupletLoss,
        Tuplets,
    )

_HOMES = {  # public name -> module
    "Center": "manyhands.representation.metric_learners",
    "Contrastive": "manyhands.representation.metric_learners",
    "HeldoutSearch": "manyhands.representation.neucrowd_training",
    "LabelConfidence": "manyhands.representation.neucrowd_training",
    "Lifted": "manyhands.representation.metric_learners",
    "LogisticHead": "manyhands.representation.neucrowd_training",
    "NeuCrowd": "manyhands.representation.neucrowd",
    "RLL": "manyhands.representation.metric_learners",
    "SafetyAwareSampling": "manyhands.representation.neucrowd_training",
    "Triplet": "manyhands.representation.metric_learners",
    "TupletLoss": "manyhands.representation.neucrowd_training",
    "Tuplets": "manyhands.representation.neucrowd_training",
}
__all__ = [
    "Center",
    "Contrastive",
    "HeldoutSearch",
    "LabelConfidence",
    "Lifted",
    "LogisticHead",
    "NeuCrowd",
    "RLL",
    "SafetyAwareSampling",
    "Triplet",
    "TupletLoss",
    "Tuplets",
]
__getattr__, __dir__ = exported_on_first_use(__name__, _HOMES)
