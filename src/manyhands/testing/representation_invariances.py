"""What every learner of representations promises beyond that: shapes, classes apart, aggregators, gold."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.representation.base import RepresentationLearner
from manyhands.testing.assertions import assert_equal, assert_probabilities, error_of, quietly
from manyhands.testing.learners import accuracy, brief, briefly, learn
from manyhands.testing.small_crowds import feature_crowd, features_of, with_silence

RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "aggregator_", "posterior_", "history_", "module_", "notes_")


def check_results_have_their_shapes(learner: RepresentationLearner) -> None:
    """After `fit`, which returns self, every result is there, and an embedding is finite and as wide as asked for."""
    X, votes, _ = feature_crowd(3)
    fitted: Any = brief(learner, embedding_size=5)
    assert quietly(lambda: fitted.fit(X, votes)) is fitted, "fit does not return self"
    missing = [name for name in RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit leaves no {missing}"
    embedding = fitted.transform(X)
    assert embedding.shape == (votes.n_items, 5) and embedding.dtype == np.float64
    assert np.isfinite(embedding).all(), "an embedding is not finite"
    assert np.ptp(embedding, axis=0).max() > 0, "all items are in one place"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    assert_probabilities(fitted.posterior_)
    assert len(fitted.worker_accuracy_) == len(fitted.worker_ids_) == votes.n_workers
    assert fitted.history_ and all("loss" in epoch and "heldout" in epoch for epoch in fitted.history_)
    assert fitted.transform(X[:0]).shape == (0, 5)
    again = quietly(lambda: brief(learner, embedding_size=5).fit_transform(X, votes))
    assert_equal(again, embedding, "fit_transform is not fit and transform")


def check_training_draws_classes_together(learner: RepresentationLearner) -> None:
    """An item is nearer to its class than to others, relative to what it was before training."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    start, end = (learn(learner, X, votes, learning_rate=rate, patience=None).transform(X) for rate in (1e-9, 0.03))
    assert _tightness(end, truth) < 0.7 * _tightness(start, truth), "training did not draw classes together"


def check_any_aggregator_gives_the_classes(learner: RepresentationLearner) -> None:
    """By name ("one-coin" is the "+EM" form) or as an instance, which stays as it was; another one, other classes."""
    from manyhands.aggregation.one_coin import OneCoin

    X, votes, _ = feature_crowd(3, accuracy=0.6, n_guessing=5)
    given = OneCoin(random_state=0)
    vote, named, made = (briefly(learner, X, votes, labels=labels) for labels in ("majority-vote", "one-coin", given))
    assert not hasattr(given, "posterior_"), "fit changed the aggregator it was given"
    assert type(named.aggregator_) is type(made.aggregator_) is OneCoin
    assert_equal(made.posterior_, OneCoin(random_state=0).fit(votes).posterior_, "the posterior is another's")
    assert not np.array_equal(vote.posterior_, made.posterior_)


def check_many_classes(learner: RepresentationLearner) -> None:
    """Two classes and seven, with few labels on each item, in batches of all classes and of some."""
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        for batch_size in (16, 64):
            embedding = learn(learner, X, votes, batch_size=batch_size, max_epochs=3).transform(X)
            assert embedding.shape == (140, learner.embedding_size) and np.isfinite(embedding).all()


def check_items_without_labels_teach_nothing(learner: RepresentationLearner) -> None:
    """Items nobody labelled and a worker who labelled nothing are legal, and their features do not matter."""
    X, votes, _ = feature_crowd(3)
    silent = with_silence(votes)
    one, other = (briefly(learner, np.vstack([X, np.full((1, 4), far)]), silent) for far in (0.0, 100.0))
    assert_probabilities(one.posterior_)
    assert np.isfinite(one.worker_accuracy_).all()
    assert_equal(other.transform(X), one.transform(X), "an item without labels was learnt from")


def check_a_class_nobody_chose_is_harmless(learner: RepresentationLearner) -> None:
    """With one more class that no label names, the embedding is finite and still tells the others apart."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "never chosen"],
    )  # fmt: skip
    fitted = learn(learner, X, wider)
    assert accuracy(fitted, X, 3) >= 0.95


def check_gold_teaches(learner: RepresentationLearner) -> None:
    """A gold item has its gold class, labelled or not, and is learnt from; gold that is not known is refused."""
    X, votes, truth = feature_crowd(3)
    votes = with_silence(votes)
    X = np.vstack([X, features_of(np.array([2]))])
    gold = {votes.item_ids[0]: votes.classes[truth[0]], votes.item_ids[-1]: votes.classes[2]}
    fitted, without = briefly(learner, X, votes, gold), briefly(learner, X, votes)
    assert fitted.posterior_[0].argmax() == truth[0] and fitted.posterior_[-1, 2] > 0.99, "gold does not win"
    assert not np.array_equal(fitted.transform(X), without.transform(X)), "gold changes nothing"
    for bad in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error_of(lambda: learn(learner, X, votes, bad), AnnotationError, "unknown gold")  # noqa: B023


def _tightness(embedding: Any, truth: Any) -> float:
    """Scatter within the classes, as a share of all scatter."""
    mean = np.stack([embedding[truth == k].mean(axis=0) for k in range(truth.max() + 1)])
    return float(np.square(embedding - mean[truth]).sum() / np.square(embedding - embedding.mean(axis=0)).sum())
