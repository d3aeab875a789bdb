"""What every classifier promises beyond that: shapes, probabilities, classes, gold and score."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.exceptions import AnnotationError
from manyhands.testing.assertions import assert_equal, assert_probabilities, error_of, quietly
from manyhands.testing.learners import brief, briefly, learn
from manyhands.testing.small_crowds import feature_crowd, features_of, with_silence

RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "posterior_", "history_", "module_", "notes_")


def check_results_have_their_shapes(classifier: CrowdClassifier) -> None:
    """After `fit`, which returns self, every result is there, probabilities sum to 1 and labels are the caller's."""
    X, votes, _ = feature_crowd(3)
    fitted = brief(classifier)
    assert quietly(lambda: fitted.fit(X, votes)) is fitted, "fit does not return self"
    missing = [name for name in RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit leaves no {missing}"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    assert len(fitted.worker_accuracy_) == len(fitted.worker_ids_) == votes.n_workers
    assert np.all((fitted.worker_accuracy_ >= 0) & (fitted.worker_accuracy_ <= 1))
    assert_probabilities(fitted.posterior_)
    proba = fitted.predict_proba(X)
    assert_probabilities(proba)
    assert_equal(fitted.predict(X), votes.classes[proba.argmax(axis=1)], "predict is not the largest predict_proba")
    if hasattr(fitted, "confusion_"):
        assert fitted.confusion_.shape == (votes.n_workers, votes.n_classes, votes.n_classes)
        assert_probabilities(fitted.confusion_)
    assert len(fitted.predict(X[:0])) == 0


def check_many_classes(classifier: CrowdClassifier) -> None:
    """Two classes and seven, with few labels on each item."""
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        proba = briefly(classifier, X, votes).predict_proba(X)
        assert proba.shape == (140, n_classes)
        assert_probabilities(proba)


def check_items_without_labels_are_accepted(classifier: CrowdClassifier) -> None:
    """Items nobody labelled and a worker who labelled nothing are legal, and have finite results."""
    X, votes, _ = feature_crowd(3)
    fitted = briefly(classifier, np.vstack([X, X[:1]]), with_silence(votes))
    assert_probabilities(fitted.posterior_)
    assert_probabilities(fitted.predict_proba(X))
    assert np.isfinite(fitted.worker_accuracy_).all()


def check_unseen_workers_and_classes(classifier: CrowdClassifier) -> None:
    """A class nobody chose here and, at `score`, a worker never seen are legal; an unknown class is refused."""
    X, votes, _ = feature_crowd(3)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "never chosen"],
    )  # fmt: skip
    fitted = briefly(classifier, X, wider)
    assert_probabilities(fitted.predict_proba(X))
    strangers = [f"stranger {w}" for w in range(votes.n_workers)]
    ids: dict[str, Any] = {"item_ids": votes.item_ids, "worker_ids": strangers}
    assert np.isfinite(
        fitted.score(X, Annotations(votes.item, votes.worker, votes.label, classes=votes.classes, **ids))
    )
    other = Annotations(votes.item, votes.worker, votes.label, classes=["x", "y", "z"], **ids)
    error_of(lambda: fitted.score(X, other), AnnotationError, "an unknown class at score")


def check_gold_teaches(classifier: CrowdClassifier) -> None:
    """A gold item has its gold class, against all labels or without any; unknown gold is refused."""
    X, votes, truth = feature_crowd(3)
    votes = with_silence(votes)
    X = np.vstack([X, features_of(np.array([2]))])
    other = (truth[0] + 1) % 3  # against all labels
    gold = {votes.item_ids[0]: votes.classes[other], votes.item_ids[-1]: votes.classes[2]}
    fitted = learn(classifier, X, votes, gold)
    assert fitted.posterior_[0, other] > 0.99 and fitted.posterior_[-1, 2] > 0.99, "gold does not win"
    for bad in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error_of(lambda: learn(classifier, X, votes, bad), AnnotationError, "unknown gold")  # noqa: B023


def check_score_prefers_the_right_rows(classifier: CrowdClassifier) -> None:
    """`score` is finite and negative, and lower where rows of X are given to the wrong items."""
    X, votes, _ = feature_crowd(3, n_items=120)
    fitted = learn(classifier, X[:80], votes[:80])
    right, wrong = fitted.score(X[80:], votes[80:]), fitted.score(np.roll(X[80:], 1, axis=0), votes[80:])
    assert wrong < right < 0, f"score is {right} for the right rows and {wrong} for wrong ones"
