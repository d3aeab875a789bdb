"""manyhands: noisy crowd labels in; labels one can trust and a quality report for each worker out.

>>> import manyhands as mh
>>> votes = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
>>> mh.DawidSkene().fit(votes).labels_.tolist()
[0, 1, 0]

What is here, and what is in the modules:

    Annotations, read_annotations     labels as (item, worker, label); any export or data frame as such labels
    DawidSkene, MajorityVote, ...     aggregators: the truth from the labels alone (all of `manyhands.aggregation`)
    ICED, SelfCrowd, CrowdInG, NeuCrowd, DifficultyEM, FixedDifficultyEM    the five papers' systems
    compare                           methods ranked by held-out labels, without truth
    label_frame, worker_frame, training_frame, training_set    results as data frames; labels joined with features
    score_workers, write_report       scorecards of the workers; everything on one HTML page
    contested, calibrate, guarantee   what to ask an expert, and what the answers allow to promise
    load_model                        a saved model

    aggregation, classifiers, representation    all methods; `registry` has them by name
    trust          answers of experts, accuracy and its interval, machines as annotators
    metrics, scorecards     agreement, accuracy, calibration; workers
    simulate, datasets      simulated crowds; real and simulated data sets
    io             reading and writing of exports        report, plots    the report and its panels
    exceptions     all errors and warnings               testing          the checks that every method passes

Everything is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands._core.exports import exported_on_first_use

if TYPE_CHECKING:
    from manyhands import (
        aggregation,
        classifiers,
        datasets,
        exceptions,
        io,
        metrics,
        plots,
        registry,
        report,
        representation,
        scorecards,
        simulate,
        testing,
        trust,
    )
    from manyhands.aggregation.dawid_skene import DawidSkene
    from manyhands.aggregation.firing_naive_bayes import FiringNaiveBayes
    from manyhands.aggregation.glad import GLAD
    from manyhands.aggregation.ibcc import IBCC
    from manyhands.aggregation.kos import KOS
    from manyhands.aggregation.mace import MACE
    from manyhands.aggregation.one_coin import OneCoin
    from manyhands.aggregation.order_consistency_vote import OrderConsistencyVote
    from manyhands.aggregation.ordinal import OrdinalDawidSkene
    from manyhands.aggregation.pooled import PooledDawidSkene
    from manyhands.aggregation.vote_difficulty_em import VoteDifficultyEM
    from manyhands.aggregation.voting import MajorityVote, Wawa
    from manyhands.annotations import Annotations
    from manyhands.classifiers.crowding import CrowdInG
    from manyhands.classifiers.difficulty_em import DifficultyEM, FixedDifficultyEM
    from manyhands.classifiers.iced import ICED
    from manyhands.classifiers.self_crowd import SelfCrowd
    from manyhands.comparison import compare
    from manyhands.io.reading import read_annotations
    from manyhands.io.write.results import label_frame, training_frame, worker_frame
    from manyhands.io.write.training_table import training_set
    from manyhands.persistence import load_model
    from manyhands.report.page import write_report
    from manyhands.representation.neucrowd import NeuCrowd
    from manyhands.scorecards.cards import score_workers
    from manyhands.trust.calibration import calibrate
    from manyhands.trust.guarantees import guarantee
    from manyhands.trust.sampling import contested

__version__ = "0.2.0"

_HOMES = {  # public name -> module
    "Annotations": "manyhands.annotations",
    "CrowdInG": "manyhands.classifiers.crowding",
    "DawidSkene": "manyhands.aggregation.dawid_skene",
    "DifficultyEM": "manyhands.classifiers.difficulty_em",
    "FixedDifficultyEM": "manyhands.classifiers.difficulty_em",
    "FiringNaiveBayes": "manyhands.aggregation.firing_naive_bayes",
    "GLAD": "manyhands.aggregation.glad",
    "IBCC": "manyhands.aggregation.ibcc",
    "ICED": "manyhands.classifiers.iced",
    "KOS": "manyhands.aggregation.kos",
    "MACE": "manyhands.aggregation.mace",
    "MajorityVote": "manyhands.aggregation.voting",
    "NeuCrowd": "manyhands.representation.neucrowd",
    "OneCoin": "manyhands.aggregation.one_coin",
    "OrderConsistencyVote": "manyhands.aggregation.order_consistency_vote",
    "OrdinalDawidSkene": "manyhands.aggregation.ordinal",
    "PooledDawidSkene": "manyhands.aggregation.pooled",
    "SelfCrowd": "manyhands.classifiers.self_crowd",
    "VoteDifficultyEM": "manyhands.aggregation.vote_difficulty_em",
    "Wawa": "manyhands.aggregation.voting",
    "calibrate": "manyhands.trust.calibration",
    "compare": "manyhands.comparison",
    "contested": "manyhands.trust.sampling",
    "guarantee": "manyhands.trust.guarantees",
    "label_frame": "manyhands.io.write.results",
    "load_model": "manyhands.persistence",
    "read_annotations": "manyhands.io.reading",
    "score_workers": "manyhands.scorecards.cards",
    "training_frame": "manyhands.io.write.results",
    "training_set": "manyhands.io.write.training_table",
    "worker_frame": "manyhands.io.write.results",
    "write_report": "manyhands.report.page",
} | dict.fromkeys(
    (
        "aggregation",
        "classifiers",
        "datasets",
        "exceptions",
        "io",
        "metrics",
        "plots",
        "registry",
        "report",
        "representation",
        "scorecards",
        "simulate",
        "testing",
        "trust",
    ),
    __name__,
)
__all__ = [
    "Annotations",
    "CrowdInG",
    "DawidSkene",
    "DifficultyEM",
    "FixedDifficultyEM",
    "FiringNaiveBayes",
    "GLAD",
    "IBCC",
    "ICED",
    "KOS",
    "MACE",
    "MajorityVote",
    "NeuCrowd",
    "OneCoin",
    "OrderConsistencyVote",
    "OrdinalDawidSkene",
    "PooledDawidSkene",
    "SelfCrowd",
    "VoteDifficultyEM",
    "Wawa",
    "aggregation",
    "calibrate",
    "classifiers",
    "compare",
    "contested",
    "datasets",
    "exceptions",
    "guarantee",
    "io",
    "label_frame",
    "load_model",
    "metrics",
    "plots",
    "read_annotations",
    "registry",
    "report",
    "representation",
    "score_workers",
    "scorecards",
    "simulate",
    "testing",
    "training_frame",
    "training_set",
    "trust",
    "worker_frame",
    "write_report",
]
__getattr__, __dir__ = exported_on_first_use(__name__, _HOMES)
