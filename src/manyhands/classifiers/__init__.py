"""Classifiers that learn from features and a crowd's labels: ``fit(X, annotations)``; one file per method.

The papers' systems are `iced`, `self_crowd`, `crowding` (with its generator and discriminator in `crowding_game`) and
`difficulty_em` (with a network: `difficulty_network`). What methods share: `base` (the class `CrowdClassifier`),
`network` (from checked input to a trained network) and `noise_layer` (methods with a noise layer per worker).
torch is loaded with the first method that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands._core.exports import exported_on_first_use

if TYPE_CHECKING:
    from manyhands.classifiers.aggnet import AggNet
    from manyhands.classifiers.base import CrowdClassifier
    from manyhands.classifiers.conal import CoNAL
    from manyhands.classifiers.cpc import CPC
    from manyhands.classifiers.crowd_layer import CrowdLayer
    from manyhands.classifiers.crowding import CrowdInG
    from manyhands.classifiers.crowding_game import Adversarial, DiscriminatorTraining, GeneratorTraining
    from manyhands.classifiers.difficulty_em import DifficultyEM, FixedDifficultyEM
    from manyhands.classifiers.difficulty_network import DifficultyNetwork
    from manyhands.classifiers.doctor_net import DoctorNet
    from manyhands.classifiers.iced import ICED, Certainty, Synthesis, TruthInference, WarmUp
    from manyhands.classifiers.imputation import ImputedCrowdLayer
    from manyhands.classifiers.max_mig import MaxMIG
    from manyhands.classifiers.mbem import MBEM
    from manyhands.classifiers.raykar import Raykar
    from manyhands.classifiers.self_crowd import SelfCrowd
    from manyhands.classifiers.spee_lfc import SpeeLFC
    from manyhands.classifiers.trace_reg import TraceReg
    from manyhands.classifiers.two_stage import TwoStage
    from manyhands.classifiers.wrappers import Ensemble, PriorAdjusted

_HOMES = {  # public name -> module
    "Adversarial": "manyhands.classifiers.crowding_game",
    "AggNet": "manyhands.classifiers.aggnet",
    "CPC": "manyhands.classifiers.cpc",
    "Certainty": "manyhands.classifiers.iced",
    "CoNAL": "manyhands.classifiers.conal",
    "CrowdClassifier": "manyhands.classifiers.base",
    "CrowdInG": "manyhands.classifiers.crowding",
    "CrowdLayer": "manyhands.classifiers.crowd_layer",
    "DifficultyEM": "manyhands.classifiers.difficulty_em",
    "DifficultyNetwork": "manyhands.classifiers.difficulty_network",
    "DiscriminatorTraining": "manyhands.classifiers.crowding_game",
    "DoctorNet": "manyhands.classifiers.doctor_net",
    "Ensemble": "manyhands.classifiers.wrappers",
    "FixedDifficultyEM": "manyhands.classifiers.difficulty_em",
    "GeneratorTraining": "manyhands.classifiers.crowding_game",
    "ICED": "manyhands.classifiers.iced",
    "ImputedCrowdLayer": "manyhands.classifiers.imputation",
    "MBEM": "manyhands.classifiers.mbem",
    "MaxMIG": "manyhands.classifiers.max_mig",
    "PriorAdjusted": "manyhands.classifiers.wrappers",
    "Raykar": "manyhands.classifiers.raykar",
    "SelfCrowd": "manyhands.classifiers.self_crowd",
    "SpeeLFC": "manyhands.classifiers.spee_lfc",
    "Synthesis": "manyhands.classifiers.iced",
    "TraceReg": "manyhands.classifiers.trace_reg",
    "TruthInference": "manyhands.classifiers.iced",
    "TwoStage": "manyhands.classifiers.two_stage",
    "WarmUp": "manyhands.classifiers.iced",
}
__all__ = [
    "Adversarial",
    "AggNet",
    "CPC",
    "Certainty",
    "CoNAL",
    "CrowdClassifier",
    "CrowdInG",
    "CrowdLayer",
    "DifficultyEM",
    "DifficultyNetwork",
    "DiscriminatorTraining",
    "DoctorNet",
    "Ensemble",
    "FixedDifficultyEM",
    "GeneratorTraining",
    "ICED",
    "ImputedCrowdLayer",
    "MBEM",
    "MaxMIG",
    "PriorAdjusted",
    "Raykar",
    "SelfCrowd",
    "SpeeLFC",
    "Synthesis",
    "TraceReg",
    "TruthInference",
    "TwoStage",
    "WarmUp",
]
__getattr__, __dir__ = exported_on_first_use(__name__, _HOMES)
