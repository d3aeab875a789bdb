"""Representation learners: shapes, separation of classes, aggregators, gold."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.testing.assertions import assert_equal, assert_probabilities, error_of, quietly
from manyhands.testing.learners import accuracy, brief_copy, fit_briefly, fit_quickly
from manyhands.testing.small_crowds import feature_crowd, features_of, with_unlabelled

RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "aggregator_", "posterior_", "history_", "module_", "notes_")


def check_results_have_documented_shapes(learner: Any) -> None:
    """`fit` returns self and sets every documented result; embeddings are finite and have `embedding_size` columns.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    fitted: Any = brief_copy(learner, embedding_size=5)
    assert quietly(lambda: fitted.fit(X, votes)) is fitted, "fit does not return self"
    missing = [name for name in RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit does not set {missing}"
    embedding = fitted.transform(X)
    assert embedding.shape == (votes.n_items, 5) and embedding.dtype == np.float64
    assert np.isfinite(embedding).all(), "an embedding is not finite"
    assert np.ptp(embedding, axis=0).max() > 0, "all embeddings are equal"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    assert_probabilities(fitted.posterior_)
    assert len(fitted.worker_accuracy_) == len(fitted.worker_ids_) == votes.n_workers
    assert all("loss" in epoch for epoch in fitted.history_) and "heldout" in fitted.history_[-1]
    assert fitted.transform(X[:0]).shape == (0, 5)
    again = quietly(lambda: brief_copy(learner, embedding_size=5).fit_transform(X, votes))
    assert_equal(again, embedding, "fit_transform is not fit and transform")


def check_training_separates_classes(learner: Any) -> None:
    """Training reduces the scatter within classes relative to the total scatter by at least 30%.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    start, end = (
        fit_quickly(learner, X, votes, learning_rate=rate, patience=None).transform(X) for rate in (1e-9, 0.03)
    )
    assert _within_class_scatter(end, truth) < 0.7 * _within_class_scatter(start, truth), (
        "training did not separate classes"
    )


def check_any_aggregator_can_be_used(learner: Any) -> None:
    """`labels` accepts a name or an instance, which is not modified; another aggregator gives other posteriors.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    from manyhands.aggregation.one_coin import OneCoin

    X, votes, _ = feature_crowd(3, accuracy=0.6, n_spammers=5)
    given = OneCoin(random_state=0)
    vote, named, made = (
        fit_briefly(learner, X, votes, labels=labels) for labels in ("majority-vote", "one-coin", given)
    )
    assert not hasattr(given, "posterior_"), "fit modified the given aggregator"
    assert type(named.aggregator_) is type(made.aggregator_) is OneCoin
    assert_equal(
        made.posterior_, OneCoin(random_state=0).fit(votes).posterior_, "the posterior is not that of the aggregator"
    )
    assert not np.array_equal(vote.posterior_, made.posterior_)


def check_many_classes_are_accepted(learner: Any) -> None:
    """Two and seven classes are accepted, with two labels per item, in batches of all classes and of some.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        for batch_size in (16, 64):
            embedding = fit_quickly(learner, X, votes, batch_size=batch_size, max_epochs=3).transform(X)
            assert embedding.shape == (140, learner.embedding_size) and np.isfinite(embedding).all()


def check_items_without_labels_are_not_used_for_training(learner: Any) -> None:
    """Items and workers without labels are accepted, and the features of such items have no influence.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3)
    unlabelled = with_unlabelled(votes)
    one, other = (fit_briefly(learner, np.vstack([X, np.full((1, 4), far)]), unlabelled) for far in (0.0, 100.0))
    assert_probabilities(one.posterior_)
    assert np.isfinite(one.worker_accuracy_).all()
    assert_equal(other.transform(X), one.transform(X), "an item without labels influences the embedding")


def check_unused_classes_are_accepted(learner: Any) -> None:
    """With one more class that no label names, the embedding still separates the others.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "unused class"],
    )  # fmt: skip
    fitted = fit_quickly(learner, X, wider)
    assert accuracy(fitted, X, 3) >= 0.95


def check_gold_is_used_for_training(learner: Any) -> None:
    """A gold item has its gold class, labelled or not, and changes the embedding; unknown gold is refused.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    X, votes, truth = feature_crowd(3)
    votes = with_unlabelled(votes)
    X = np.vstack([X, features_of(np.array([2]))])
    gold = {votes.item_ids[0]: votes.classes[truth[0]], votes.item_ids[-1]: votes.classes[2]}
    fitted, without = fit_briefly(learner, X, votes, gold), fit_briefly(learner, X, votes)
    assert fitted.posterior_[0].argmax() == truth[0] and fitted.posterior_[-1, 2] > 0.99, (
        "a gold item does not have its gold class"
    )
    assert not np.array_equal(fitted.transform(X), without.transform(X)), "gold changes nothing"
    for bad in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error_of(lambda: fit_quickly(learner, X, votes, bad), AnnotationError, "unknown gold")  # noqa: B023


def _within_class_scatter(embedding: Any, truth: Any) -> float:
    """Scatter within classes divided by the total scatter."""
    mean = np.stack([embedding[truth == k].mean(axis=0) for k in range(truth.max() + 1)])
    return float(np.square(embedding - mean[truth]).sum() / np.square(embedding - embedding.mean(axis=0)).sum())
