"""Scorecards for the tests: the report of one worker on gold items, and the reports after the default method."""

import warnings

import numpy as np

from manyhands import Annotations, registry
from manyhands.exceptions import CrowdWarning
from manyhands.scorecards import score_workers


def on_gold(labels, truth, classes=("cat", "dog")):
    """The report of one worker whose items are all gold."""
    votes = Annotations.from_triples(range(len(labels)), ["ann"] * len(labels), labels, classes=classes)
    flat = np.full((len(labels), len(classes)), 1 / len(classes))
    return score_workers(votes, flat, gold=dict(enumerate(truth)))[0]


def scored(votes):
    """The reports that follow from the default method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = registry.create("pooled-dawid-skene").fit(votes)
    settings = {
        "confusion": model.confusion_,
        "tempering_exponent": model.tempering_exponent_,
        "collusion_group": model.collusion_group_,
    }
    return score_workers(votes, model.posterior_, **settings)
