"""Metrics of labels: accuracy, calibration, inter-annotator agreement, class imbalance, position bias.

    truth          accuracy, balanced accuracy, macro F1; log loss, Brier score, calibration error; imbalance; scorer
    agreement      percent agreement, Fleiss' kappa, Krippendorff's alpha, weighted kappa, pairs of workers
    position_bias  how the verdicts of judges depend on the order of presentation: first-position share, flip rate
    vote_patterns  what agreement is computed with: patterns of votes, bootstrap, distances

A metric that is undefined is NaN with a reason, never 0 or 1.
"""

from manyhands.metrics.agreement import (
    Agreement,
    ClassAgreement,
    PairAgreement,
    class_agreement,
    fleiss_kappa,
    item_agreement,
    krippendorff_alpha,
    pair_agreement,
    percent_agreement,
    weighted_kappa,
    worker_weighted_kappa,
)
from manyhands.metrics.position_bias import PositionBias, position_bias
from manyhands.metrics.truth import (
    TruthScorer,
    accuracy,
    balanced_accuracy,
    brier,
    ece,
    imbalance_ratio,
    log_loss,
    macro_f1,
    truth_scorer,
)

__all__ = [
    "Agreement",
    "ClassAgreement",
    "PairAgreement",
    "PositionBias",
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
    "position_bias",
    "truth_scorer",
    "weighted_kappa",
    "worker_weighted_kappa",
]
