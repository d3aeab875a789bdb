"""Scores of held-out labels: finite, a distribution over the labels, and independent of names and codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.heldout import COMMON, OWN
from manyhands.testing.assertions import assert_close, fit, n_classes_for
from manyhands.testing.learners import fit_briefly
from manyhands.testing.small_crowds import easy_crowd, feature_crowd

_ROUNDING = 1e-4  # networks compute in single precision
Scores = npt.NDArray[np.float64]


def check_scores_of_labels_are_probabilities(classifier: CrowdClassifier) -> None:
    """`score` is the mean of `score_labels`, which are log-probabilities that sum to 1 over the labels of a worker.

    They do not depend on the codes of the held-out annotations, and `score_kind` names their likelihood.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3, n_items=120)
    fitted, heldout = fit_briefly(classifier, X[:80], votes[:80]), votes[80:]
    _assert_distribution(fitted, heldout, lambda labels: fitted.score_labels(X[80:], labels))
    assert fitted.score(X[80:], heldout) == fitted.score_labels(X[80:], heldout).mean(), "score is not the mean"
    again = fitted.score_labels(X[80:], _in_other_codes(heldout))
    assert_close(np.sort(again), np.sort(fitted.score_labels(X[80:], heldout)), "the codes change scores", _ROUNDING)


def check_scores_of_aggregators_are_probabilities(aggregator: Aggregator) -> None:
    """`score` is the mean of `score_labels`, which are log-probabilities that sum to 1 over the labels of a worker.

    They do not depend on the order of items, workers and classes, and `score_kind` names their likelihood.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    held_out = np.arange(votes.n_annotations) % 4 == 0
    training, heldout = votes.keep(~held_out), votes.keep(held_out)
    fitted = fit(aggregator, training)
    _assert_distribution(fitted, heldout, fitted.score_labels)
    assert fitted.score(heldout) == fitted.score_labels(heldout).mean(), "score is not the mean of score_labels"
    again = fit(aggregator, _in_other_codes(training)).score_labels(_in_other_codes(heldout))
    assert_close(np.sort(again), np.sort(fitted.score_labels(heldout)), "the codes change scores", _ROUNDING)


def _assert_distribution(fitted: Any, heldout: Annotations, score_labels: Callable[[Annotations], Scores]) -> None:
    """Assert that the first label of each item has probabilities that sum to 1, with its other labels as given."""
    assert fitted.score_kind in (OWN, COMMON), f"score_kind is {fitted.score_kind!r}"
    first = heldout.start[:-1][heldout.n_labels > 0]
    total = np.zeros(len(first))
    for k in range(heldout.n_classes):
        label = heldout.label.copy()
        label[first] = k
        scores = score_labels(_with_labels(heldout, label))
        assert np.isfinite(scores).all(), "a label has no finite log-likelihood"
        total += np.exp(scores[first])
    assert_close(total, np.ones(len(first)), "the probabilities of a worker's labels do not sum to 1", _ROUNDING)


def _with_labels(votes: Annotations, label: npt.NDArray[np.int32]) -> Annotations:
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    return Annotations(votes.item, votes.worker, label, **ids)


def _in_other_codes(votes: Annotations) -> Annotations:
    """The same labels of the same items and workers; workers and classes in reverse order."""
    worker, label = votes.n_workers - 1 - votes.worker, votes.n_classes - 1 - votes.label
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids[::-1], "classes": votes.classes[::-1]}
    return Annotations(votes.item, worker, label, **ids)
