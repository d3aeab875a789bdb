"""Metrics of labels: accuracy, calibration, inter-annotator agreement, class imbalance.

    truth          accuracy, balanced accuracy, macro F1
    truth_scorer   the same as a scorer of scikit-learn, by item id
    calibration    log loss, Brier score, expected calibration error (ECE)
    agreement      percent agreement, Fleiss' kappa, agreement per item
    alpha          Krippendorff's alpha, overall and per class
    weighted_kappa linear and quadratic kappa of ordered classes, of the crowd and of each worker
    worker_pairs   agreement and Cohen's kappa of every two workers
    imbalance      imbalance ratio

    vote_patterns distances scales bootstrap   what these are computed with

A metric that is undefined is NaN with a reason, never 0 or 1.
"""

from manyhands.metrics.agreement import Agreement, fleiss_kappa, item_agreement, percent_agreement
from manyhands.metrics.alpha import ClassAgreement, class_agreement, krippendorff_alpha
from manyhands.metrics.calibration import brier, ece, log_loss
from manyhands.metrics.imbalance import imbalance_ratio
from manyhands.metrics.truth import accuracy, balanced_accuracy, macro_f1
from manyhands.metrics.truth_scorer import TruthScorer, truth_scorer
from manyhands.metrics.weighted_kappa import weighted_kappa, worker_weighted_kappa
from manyhands.metrics.worker_pairs import PairAgreement, pair_agreement

__all__ = [
    "Agreement",
    "ClassAgreement",
    "PairAgreement",
    "TruthScorer",
    "accuracy",
    "balanced_accuracy",
    "brier",
    "class_agreement",
    "ece",
    "fleiss_kappa",
    "imbalance_ratio",
    "item_agreement",
    "krippendorff_alpha",
    "log_loss",
    "macro_f1",
    "pair_agreement",
    "percent_agreement",
    "truth_scorer",
    "weighted_kappa",
    "worker_weighted_kappa",
]
