"""What every learner of representations promises: shapes, seeds, classes apart, the inputs it takes and refuses."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, NotFittedError
from manyhands.representation.base import RepresentationLearner
from manyhands.testing.classifier_promises import Getter, global_states, learn, quick, with_spammer
from manyhands.testing.compare import assert_equal, assert_probabilities, error_of, quietly
from manyhands.testing.crowds import arrays_of, feature_crowd, features_of, thin_crowds, with_silence

RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "aggregator_", "posterior_", "history_", "module_", "notes_")


def accuracy(fitted: Any, X: Any, n_classes: int) -> float:
    """Of a logistic regression on the embedding and the inferred classes, on fresh items of the checks' data."""
    from sklearn.linear_model import LogisticRegression

    truth = np.arange(120) % n_classes
    model = LogisticRegression(max_iter=1000).fit(fitted.transform(X), fitted.posterior_.argmax(axis=1))
    return float(np.mean(model.predict(fitted.transform(features_of(truth, seed=7))) == truth))


def check_results_have_their_shapes(learner: RepresentationLearner) -> None:
    """After `fit`, which returns self, every result is there, and an embedding is finite and as wide as asked for."""
    X, votes, _ = feature_crowd(3)
    fitted: Any = quick(learner, embedding_size=5)
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
    again = quietly(lambda: quick(learner, embedding_size=5).fit_transform(X, votes))
    assert_equal(again, embedding, "fit_transform is not fit and transform")


def check_same_seed_same_result(learner: RepresentationLearner) -> None:
    """The same seed gives the same bits; another seed gives another start."""
    X, votes, _ = feature_crowd(3)
    one, again, other = learn(learner, X, votes), learn(learner, X, votes), learn(learner, X, votes, random_state=1)
    assert_equal(again.transform(X), one.transform(X), "the same seed gives another result")
    assert not np.array_equal(other.transform(X), one.transform(X)), "another seed changes nothing"


def check_global_generators_stay_as_they_were(learner: RepresentationLearner) -> None:
    """`fit` neither reads nor moves the global generators of numpy, of random and of torch."""
    X, votes, _ = feature_crowd(3)
    learn(learner, X, votes)  # whatever it imports is imported by now
    before = global_states()
    learn(learner, X, votes).transform(X)
    assert global_states() == before, "a global generator was used"


def check_perfect_workers_teach_the_truth(learner: RepresentationLearner) -> None:
    """Where every label is right, a logistic regression on the embedding has nearly all new items right."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    found = accuracy(learn(learner, X, votes), X, 3)
    assert found >= 0.95, f"only {found:.2f} of new items are right though every label was"


def check_a_spammer_does_little_harm(learner: RepresentationLearner) -> None:
    """A worker who labels every item at random leaves nearly all new items right."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = accuracy(learn(learner, X, with_spammer(votes)), X, 3)
    assert found >= 0.9, f"with one spammer, only {found:.2f} of new items are right"


def check_bad_workers_are_seen(learner: RepresentationLearner) -> None:
    """`worker_accuracy_` puts a worker who guesses below every other."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = learn(learner, X, with_spammer(votes), max_epochs=1).worker_accuracy_
    assert found[-1] < found[:-1].min(), "a worker who guesses is trusted more than one who knows"


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
    vote, named, made = (learn(learner, X, votes, labels=labels) for labels in ("majority-vote", "one-coin", given))
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
    one, other = (learn(learner, np.vstack([X, np.full((1, 4), far)]), silent) for far in (0.0, 100.0))
    assert_probabilities(one.posterior_)
    assert np.isfinite(one.worker_accuracy_).all()
    assert_equal(other.transform(X), one.transform(X), "an item without labels was learnt from")


def check_sparse_rows_are_dense_rows(learner: RepresentationLearner) -> None:
    """A scipy matrix gives what the same numbers give as an array, at `fit` and at `transform`."""
    from scipy.sparse import csr_array

    X, votes, _ = feature_crowd(3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    dense, sparse = learn(learner, X, votes), learn(learner, csr_array(X), votes)
    assert_equal(sparse.transform(csr_array(X)), dense.transform(X), "sparse rows are not read as dense ones")


def check_a_getter_of_rows_is_an_array(learner: RepresentationLearner) -> None:
    """Something with a length that hands out rows gives what the array gives."""
    X, votes, _ = feature_crowd(3)
    X = X.astype(np.float32)
    array, getter = learn(learner, X, votes), learn(learner, Getter(X), votes)
    assert_equal(getter.transform(Getter(X)), array.transform(X), "a getter is not read as the array")


def check_a_class_nobody_chose_is_harmless(learner: RepresentationLearner) -> None:
    """With one more class that no label names, the embedding is finite and still tells the others apart."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "never chosen"],
    )  # fmt: skip
    fitted = learn(learner, X, wider)
    assert accuracy(fitted, X, 3) >= 0.95


def check_thin_crowds_are_survived(learner: RepresentationLearner) -> None:
    """One item, one worker, one class, one label each, a class nobody chose: no NaN, and no warning but our own."""
    for name, votes in thin_crowds(3).items():
        X = features_of(np.arange(votes.n_items) % 3)
        fitted = learn(learner, X, votes, max_epochs=3)
        assert np.isfinite(fitted.transform(X)).all() and np.isfinite(fitted.posterior_).all(), name


def check_gold_teaches(learner: RepresentationLearner) -> None:
    """A gold item has its gold class, labelled or not, and is learnt from; gold that is not known is refused."""
    X, votes, truth = feature_crowd(3)
    votes = with_silence(votes)
    X = np.vstack([X, features_of(np.array([2]))])
    gold = {votes.item_ids[0]: votes.classes[truth[0]], votes.item_ids[-1]: votes.classes[2]}
    fitted, without = learn(learner, X, votes, gold), learn(learner, X, votes)
    assert fitted.posterior_[0].argmax() == truth[0] and fitted.posterior_[-1, 2] > 0.99, "gold does not win"
    assert not np.array_equal(fitted.transform(X), without.transform(X)), "gold changes nothing"
    for bad in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error_of(lambda: learn(learner, X, votes, bad), AnnotationError, "unknown gold")  # noqa: B023


def check_inputs_stay_as_they_were(learner: RepresentationLearner) -> None:
    """`fit` and `transform` change neither X, nor the annotations, nor gold, nor the constructor parameters."""
    X, votes, truth = feature_crowd(3)
    X.setflags(write=False)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    before = X.copy(), [array.copy() for array in arrays_of(votes)], dict(gold)
    fitted: Any = quick(learner)
    given = fitted.get_params(deep=False)
    quietly(lambda: fitted.fit_transform(X, votes, gold))
    assert_equal(X, before[0], "X was changed")
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(votes), before[1])), "the annotations were changed"
    assert gold == before[2], "the gold was changed"
    assert all(given[n] is v for n, v in fitted.get_params(deep=False).items()), "fit overwrote a parameter"


def check_bad_rows_are_refused(learner: RepresentationLearner) -> None:
    """NaN, text, the wrong number of rows or of features, no X and no crowd are refused with errors of ours."""
    X, votes, _ = feature_crowd(2)
    hole = X.copy()
    hole[3, 1] = np.nan
    for bad in (hole, X[:-1], X[:, 0], X.astype(str), X.astype(object), X[:, :0], np.where(X > 9, X, np.inf)):
        error_of(lambda: learn(learner, bad, votes), AlignmentError, "bad rows")  # noqa: B023
    error_of(lambda: learn(learner, X, votes.label), AnnotationError, "labels without workers")  # type: ignore[arg-type]
    unfitted: Any = quick(learner)
    error_of(lambda: unfitted.transform(X), NotFittedError, "transform before fit")
    fitted = learn(learner, X, votes)
    for bad in (X[:, 1:], hole):
        error_of(lambda: fitted.transform(bad), AlignmentError, "bad rows at transform")  # noqa: B023


def _tightness(embedding: Any, truth: Any) -> float:
    """Scatter within the classes, as a share of all scatter."""
    mean = np.stack([embedding[truth == k].mean(axis=0) for k in range(truth.max() + 1)])
    return float(np.square(embedding - mean[truth]).sum() / np.square(embedding - embedding.mean(axis=0)).sum())
