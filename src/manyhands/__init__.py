"""manyhands: noisy crowd labels in; labels one can trust and a quality report for each worker out.

>>> import manyhands as mh
>>> votes = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
>>> mh.DawidSkene().fit(votes).labels_.tolist()
[0, 1, 0]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyhands import datasets as datasets
    from manyhands import exceptions as exceptions
    from manyhands import io as io
    from manyhands import metrics as metrics
    from manyhands import model_selection as model_selection
    from manyhands import plots as plots
    from manyhands import registry as registry
    from manyhands import report as report
    from manyhands import scorecards as scorecards
    from manyhands import simulate as simulate
    from manyhands import testing as testing
    from manyhands import trust as trust
    from manyhands import workflows as workflows
    from manyhands.aggregation.dawid_skene import DawidSkene as DawidSkene
    from manyhands.aggregation.glad import GLAD as GLAD
    from manyhands.aggregation.ibcc import IBCC as IBCC
    from manyhands.aggregation.kos import KOS as KOS
    from manyhands.aggregation.mace import MACE as MACE
    from manyhands.aggregation.majority_vote import MajorityVote as MajorityVote
    from manyhands.aggregation.one_coin import OneCoin as OneCoin
    from manyhands.aggregation.ordinal_dawid_skene import OrdinalDawidSkene as OrdinalDawidSkene
    from manyhands.aggregation.pooled_dawid_skene import PooledDawidSkene as PooledDawidSkene
    from manyhands.aggregation.vote_difficulty_em import VoteDifficultyEM as VoteDifficultyEM
    from manyhands.aggregation.wawa import Wawa as Wawa
    from manyhands.annotations import Annotations as Annotations
    from manyhands.classifiers.aggnet import AggNet as AggNet
    from manyhands.classifiers.conal import CoNAL as CoNAL
    from manyhands.classifiers.cpc.cpc import CPC as CPC
    from manyhands.classifiers.crowd_layer import CrowdLayer as CrowdLayer
    from manyhands.classifiers.crowding.crowding import CrowdInG as CrowdInG
    from manyhands.classifiers.deep_ensemble import Ensemble as Ensemble
    from manyhands.classifiers.difficulty.difficulty_em import DifficultyEM as DifficultyEM
    from manyhands.classifiers.difficulty.difficulty_network import DifficultyNetwork as DifficultyNetwork
    from manyhands.classifiers.difficulty.fixed_difficulty_em import FixedDifficultyEM as FixedDifficultyEM
    from manyhands.classifiers.doctor_net import DoctorNet as DoctorNet
    from manyhands.classifiers.iced.iced import ICED as ICED
    from manyhands.classifiers.imputation.imputed_crowd_layer import ImputedCrowdLayer as ImputedCrowdLayer
    from manyhands.classifiers.max_mig import MaxMIG as MaxMIG
    from manyhands.classifiers.mbem import MBEM as MBEM
    from manyhands.classifiers.prior_adjusted import PriorAdjusted as PriorAdjusted
    from manyhands.classifiers.raykar import Raykar as Raykar
    from manyhands.classifiers.self_crowd.self_crowd import SelfCrowd as SelfCrowd
    from manyhands.classifiers.spee_lfc import SpeeLFC as SpeeLFC
    from manyhands.classifiers.trace_reg import TraceReg as TraceReg
    from manyhands.classifiers.two_stage import TwoStage as TwoStage
    from manyhands.io.read.reading import read_annotations as read_annotations
    from manyhands.io.write.results import label_frame as label_frame
    from manyhands.io.write.results import training_frame as training_frame
    from manyhands.io.write.training_table import training_set as training_set
    from manyhands.io.write.worker_tables import worker_frame as worker_frame
    from manyhands.model_selection.comparison import compare as compare
    from manyhands.persistence.models import load_model as load_model
    from manyhands.representation.center import Center as Center
    from manyhands.representation.contrastive import Contrastive as Contrastive
    from manyhands.representation.lifted import Lifted as Lifted
    from manyhands.representation.neucrowd.neucrowd import NeuCrowd as NeuCrowd
    from manyhands.representation.rll import RLL as RLL
    from manyhands.representation.triplet import Triplet as Triplet
    from manyhands.trust.accuracy_estimate import estimate_accuracy as estimate_accuracy
    from manyhands.trust.alternative_annotator import alt_test as alt_test
    from manyhands.trust.answers import Answers as Answers
    from manyhands.trust.effective_votes import effective_votes as effective_votes
    from manyhands.trust.family_weights import down_weight_families as down_weight_families
    from manyhands.trust.guarantee import guarantee as guarantee
    from manyhands.trust.label_sets import label_sets as label_sets
    from manyhands.trust.recalibration import calibrate as calibrate
    from manyhands.trust.sampling import contested as contested
    from manyhands.trust.sampling import random_items as random_items
    from manyhands.trust.selection import select_by_answers as select_by_answers

__version__ = "0.1.0"

_LAZY = {  # public name -> where it lives; loaded on first use
    "AggNet": "manyhands.classifiers.aggnet",
    "Annotations": "manyhands.annotations",
    "Answers": "manyhands.trust.answers",
    "Center": "manyhands.representation.center",
    "CPC": "manyhands.classifiers.cpc.cpc",
    "CoNAL": "manyhands.classifiers.conal",
    "Contrastive": "manyhands.representation.contrastive",
    "CrowdInG": "manyhands.classifiers.crowding.crowding",
    "CrowdLayer": "manyhands.classifiers.crowd_layer",
    "DawidSkene": "manyhands.aggregation.dawid_skene",
    "DifficultyEM": "manyhands.classifiers.difficulty.difficulty_em",
    "DifficultyNetwork": "manyhands.classifiers.difficulty.difficulty_network",
    "DoctorNet": "manyhands.classifiers.doctor_net",
    "Ensemble": "manyhands.classifiers.deep_ensemble",
    "ImputedCrowdLayer": "manyhands.classifiers.imputation.imputed_crowd_layer",
    "FixedDifficultyEM": "manyhands.classifiers.difficulty.fixed_difficulty_em",
    "GLAD": "manyhands.aggregation.glad",
    "IBCC": "manyhands.aggregation.ibcc",
    "ICED": "manyhands.classifiers.iced.iced",
    "KOS": "manyhands.aggregation.kos",
    "Lifted": "manyhands.representation.lifted",
    "MACE": "manyhands.aggregation.mace",
    "MBEM": "manyhands.classifiers.mbem",
    "MajorityVote": "manyhands.aggregation.majority_vote",
    "MaxMIG": "manyhands.classifiers.max_mig",
    "NeuCrowd": "manyhands.representation.neucrowd.neucrowd",
    "OneCoin": "manyhands.aggregation.one_coin",
    "OrdinalDawidSkene": "manyhands.aggregation.ordinal_dawid_skene",
    "PooledDawidSkene": "manyhands.aggregation.pooled_dawid_skene",
    "PriorAdjusted": "manyhands.classifiers.prior_adjusted",
    "RLL": "manyhands.representation.rll",
    "Raykar": "manyhands.classifiers.raykar",
    "SelfCrowd": "manyhands.classifiers.self_crowd.self_crowd",
    "SpeeLFC": "manyhands.classifiers.spee_lfc",
    "TraceReg": "manyhands.classifiers.trace_reg",
    "Triplet": "manyhands.representation.triplet",
    "TwoStage": "manyhands.classifiers.two_stage",
    "VoteDifficultyEM": "manyhands.aggregation.vote_difficulty_em",
    "Wawa": "manyhands.aggregation.wawa",
    "alt_test": "manyhands.trust.alternative_annotator",
    "calibrate": "manyhands.trust.recalibration",
    "compare": "manyhands.model_selection.comparison",
    "contested": "manyhands.trust.sampling",
    "datasets": "manyhands",
    "down_weight_families": "manyhands.trust.family_weights",
    "effective_votes": "manyhands.trust.effective_votes",
    "estimate_accuracy": "manyhands.trust.accuracy_estimate",
    "exceptions": "manyhands",
    "guarantee": "manyhands.trust.guarantee",
    "io": "manyhands",
    "label_frame": "manyhands.io.write.results",
    "label_sets": "manyhands.trust.label_sets",
    "load_model": "manyhands.persistence.models",
    "metrics": "manyhands",
    "model_selection": "manyhands",
    "plots": "manyhands",
    "random_items": "manyhands.trust.sampling",
    "read_annotations": "manyhands.io.read.reading",
    "registry": "manyhands",
    "report": "manyhands",
    "scorecards": "manyhands",
    "select_by_answers": "manyhands.trust.selection",
    "simulate": "manyhands",
    "testing": "manyhands",
    "training_frame": "manyhands.io.write.results",
    "training_set": "manyhands.io.write.training_table",
    "trust": "manyhands",
    "worker_frame": "manyhands.io.write.worker_tables",
    "workflows": "manyhands",
}

__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        hint = ""
        if not name.startswith("_"):
            hint = import_module("manyhands.spelling").did_you_mean(name, _LAZY)
        raise AttributeError(f"module 'manyhands' has no attribute {name!r}.{hint}")
    home = _LAZY[name]
    if home == __name__:
        return import_module(f"{home}.{name}")
    return getattr(import_module("manyhands.registry").load_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
