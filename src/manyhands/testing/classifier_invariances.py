"""Classifiers: shapes, probabilities, classes, gold and score."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.exceptions import AnnotationError
from manyhands.testing.assertions import assert_equal, assert_probabilities, error_of, quietly
from manyhands.testing.learners import brief_copy, fit_briefly, fit_quickly
from manyhands.testing.small_crowds import feature_crowd, features_of, with_unlabelled

RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "posterior_", "history_", "module_", "notes_")


def check_results_have_documented_shapes(classifier: CrowdClassifier) -> None:
    """`fit` returns self and sets every documented result, probabilities sum to 1, and labels are the caller's classes.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    fitted = brief_copy(classifier)
    assert quietly(lambda: fitted.fit(X, votes)) is fitted, "fit does not return self"
    missing = [name for name in RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit does not set {missing}"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    assert len(fitted.worker_accuracy_) == len(fitted.worker_ids_) == votes.n_workers
    assert np.all((fitted.worker_accuracy_ >= 0) & (fitted.worker_accuracy_ <= 1))
    assert_probabilities(fitted.posterior_)
    proba = fitted.predict_proba(X)
    assert_probabilities(proba)
    assert_equal(
        fitted.predict(X), votes.classes[proba.argmax(axis=1)], "predict is not the class of the largest probability"
    )
    if hasattr(fitted, "confusion_"):
        assert fitted.confusion_.shape == (votes.n_workers, votes.n_classes, votes.n_classes)
        assert_probabilities(fitted.confusion_)
    assert len(fitted.predict(X[:0])) == 0


def check_many_classes_are_accepted(classifier: CrowdClassifier) -> None:
    """Two and seven classes are accepted, with two labels per item.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        proba = fit_briefly(classifier, X, votes).predict_proba(X)
        assert proba.shape == (140, n_classes)
        assert_probabilities(proba)


def check_items_without_labels_are_accepted(classifier: CrowdClassifier) -> None:
    """Items and workers without labels are accepted, and their results are finite.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    fitted = fit_briefly(classifier, np.vstack([X, X[:1]]), with_unlabelled(votes))
    assert_probabilities(fitted.posterior_)
    assert_probabilities(fitted.predict_proba(X))
    assert np.isfinite(fitted.worker_accuracy_).all()


def check_unseen_workers_and_unused_classes_are_accepted(classifier: CrowdClassifier) -> None:
    """Classes without labels and, in `score`, unseen workers are accepted; unknown classes are refused.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "unused class"],
    )  # fmt: skip
    fitted = fit_briefly(classifier, X, wider)
    assert_probabilities(fitted.predict_proba(X))
    unseen = [f"unseen worker {w}" for w in range(votes.n_workers)]
    ids: dict[str, Any] = {"item_ids": votes.item_ids, "worker_ids": unseen}
    assert np.isfinite(
        fitted.score(X, Annotations(votes.item, votes.worker, votes.label, classes=votes.classes, **ids))
    )
    other = Annotations(votes.item, votes.worker, votes.label, classes=["x", "y", "z"], **ids)
    error_of(lambda: fitted.score(X, other), AnnotationError, "an unknown class in score")


def check_gold_is_used_for_training(classifier: CrowdClassifier) -> None:
    """A gold item has its gold class, also against all its labels and without any; unknown gold is refused.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    X, votes, truth = feature_crowd(3)
    votes = with_unlabelled(votes)
    X = np.vstack([X, features_of(np.array([2]))])
    other = (truth[0] + 1) % 3  # against all labels
    gold = {votes.item_ids[0]: votes.classes[other], votes.item_ids[-1]: votes.classes[2]}
    fitted = fit_quickly(classifier, X, votes, gold)
    assert fitted.posterior_[0, other] > 0.99 and fitted.posterior_[-1, 2] > 0.99, (
        "a gold item does not have its gold class"
    )
    for bad in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error_of(lambda: fit_quickly(classifier, X, votes, bad), AnnotationError, "unknown gold")  # noqa: B023


def check_score_is_higher_for_matching_features(classifier: CrowdClassifier) -> None:
    """`score` is finite and negative, and lower if the rows of X are shifted against the items.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3, n_items=120)
    fitted = fit_quickly(classifier, X[:80], votes[:80])
    right, wrong = fitted.score(X[80:], votes[80:]), fitted.score(np.roll(X[80:], 1, axis=0), votes[80:])
    assert wrong < right < 0, f"score is {right} for matching rows and {wrong} for shifted ones"
