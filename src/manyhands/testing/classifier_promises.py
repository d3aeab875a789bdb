"""What every classifier promises: shapes, seeds, robustness, the inputs it takes and those it refuses."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.exceptions import AlignmentError, AnnotationError, NotFittedError
from manyhands.parameters import Parameters
from manyhands.testing.compare import assert_equal, assert_probabilities, copy_of, error_of, quietly
from manyhands.testing.crowds import arrays_of, feature_crowd, features_of, thin_crowds, with_silence

M = TypeVar("M", bound=Parameters)

RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "posterior_", "history_", "module_", "notes_")

# A network that learns the checks' data in a tenth of a second; a method takes those that it has.
QUICK = {"hidden": (8,), "dropout": 0.0, "learning_rate": 0.03, "batch_size": 16, "max_epochs": 25}


def quick(method: M, /, **changes: Any) -> M:
    """A fresh copy with a seed, small and fast where it is a network."""
    own = {name: value for name, value in QUICK.items() if name in method.get_params(deep=False)}
    copy: M = copy_of(method, **(own | changes))
    return copy


def learn(
    method: Parameters, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """A fitted copy; Any, because every method has results of its own."""
    copy: Any = quick(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def accuracy(fitted: CrowdClassifier, n_classes: int) -> float:
    """On fresh items of the checks' data."""
    truth = np.arange(120) % n_classes
    found = fitted.predict(features_of(truth, seed=7))
    return float(np.mean(found == fitted.classes_[truth]))


def check_results_have_their_shapes(classifier: CrowdClassifier) -> None:
    """After `fit`, which returns self, every result is there, probabilities sum to 1 and labels are the caller's."""
    X, votes, _ = feature_crowd(3)
    fitted = quick(classifier)
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


def check_same_seed_same_result(classifier: CrowdClassifier) -> None:
    """The same seed gives the same bits; where there is training, another seed gives another start."""
    X, votes, _ = feature_crowd(3)
    one, again = learn(classifier, X, votes), learn(classifier, X, votes)
    assert_equal(again.predict_proba(X), one.predict_proba(X), "the same seed gives another result")
    assert_equal(again.posterior_, one.posterior_, "the same seed gives another posterior")
    if one.history_:
        other = learn(classifier, X, votes, random_state=1)
        assert not np.array_equal(other.predict_proba(X), one.predict_proba(X)), "another seed changes nothing"


def check_global_generators_stay_as_they_were(classifier: CrowdClassifier) -> None:
    """`fit` neither reads nor moves the global generators of numpy, of random and of torch."""
    X, votes, _ = feature_crowd(3)
    learn(classifier, X, votes)  # whatever it imports is imported by now
    before = global_states()
    fitted = learn(classifier, X, votes)
    fitted.score(X, votes)
    assert global_states() == before, "a global generator was used"


def check_perfect_workers_teach_the_truth(classifier: CrowdClassifier) -> None:
    """Where every label is right, new items are classified as by training on the truth: here, nearly all rightly."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    found = accuracy(learn(classifier, X, votes), 3)
    assert found >= 0.95, f"only {found:.2f} of new items are right though every label was"


def check_a_spammer_does_little_harm(classifier: CrowdClassifier) -> None:
    """A worker who labels every item at random leaves nearly all new items right."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = accuracy(learn(classifier, X, with_spammer(votes)), 3)
    assert found >= 0.9, f"with one spammer, only {found:.2f} of new items are right"


def check_bad_workers_are_seen(classifier: CrowdClassifier) -> None:
    """`worker_accuracy_` puts a worker who guesses below every other."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    found = learn(classifier, X, with_spammer(votes)).worker_accuracy_
    assert found[-1] < found[:-1].min(), "a worker who guesses is trusted more than one who knows"


def check_many_classes(classifier: CrowdClassifier) -> None:
    """Two classes and seven, with few labels on each item."""
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        proba = learn(classifier, X, votes).predict_proba(X)
        assert proba.shape == (140, n_classes)
        assert_probabilities(proba)


def check_items_without_labels_are_accepted(classifier: CrowdClassifier) -> None:
    """Items nobody labelled and a worker who labelled nothing are legal, and have finite results."""
    X, votes, _ = feature_crowd(3)
    fitted = learn(classifier, np.vstack([X, X[:1]]), with_silence(votes))
    assert_probabilities(fitted.posterior_)
    assert_probabilities(fitted.predict_proba(X))
    assert np.isfinite(fitted.worker_accuracy_).all()


def check_sparse_rows_are_dense_rows(classifier: CrowdClassifier) -> None:
    """A scipy matrix gives what the same numbers give as an array, at `fit` and at `predict`."""
    from scipy.sparse import csr_array

    X, votes, _ = feature_crowd(3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    dense, sparse = learn(classifier, X, votes), learn(classifier, csr_array(X), votes)
    found, expected = sparse.predict_proba(csr_array(X)), dense.predict_proba(X)
    assert np.abs(found - expected).max() < 1e-3, "sparse rows are not read as dense ones"


def check_a_getter_of_rows_is_an_array(classifier: CrowdClassifier) -> None:
    """Something with a length that hands out rows gives what the array gives."""
    X, votes, _ = feature_crowd(3)
    X = X.astype(np.float32)
    array, getter = learn(classifier, X, votes), learn(classifier, Getter(X), votes)
    assert_equal(getter.predict_proba(Getter(X)), array.predict_proba(X), "a getter is not read as the array")


def check_unseen_workers_and_classes(classifier: CrowdClassifier) -> None:
    """A class nobody chose here and, at `score`, a worker never seen are legal; an unknown class is refused."""
    X, votes, _ = feature_crowd(3)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "never chosen"],
    )  # fmt: skip
    fitted = learn(classifier, X, wider)
    assert_probabilities(fitted.predict_proba(X))
    strangers = [f"stranger {w}" for w in range(votes.n_workers)]
    ids: dict[str, Any] = {"item_ids": votes.item_ids, "worker_ids": strangers}
    assert np.isfinite(
        fitted.score(X, Annotations(votes.item, votes.worker, votes.label, classes=votes.classes, **ids))
    )
    other = Annotations(votes.item, votes.worker, votes.label, classes=["x", "y", "z"], **ids)
    error_of(lambda: fitted.score(X, other), AnnotationError, "an unknown class at score")


def check_thin_crowds_are_survived(classifier: CrowdClassifier) -> None:
    """One item, one worker, one class, one label each, a class nobody chose: no NaN, and no warning but our own."""
    for name, votes in thin_crowds(3).items():
        X = features_of(np.arange(votes.n_items) % 3)
        fitted = learn(classifier, X, votes)
        assert np.isfinite(fitted.posterior_).all() and np.isfinite(fitted.predict_proba(X)).all(), name


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


def check_inputs_stay_as_they_were(classifier: CrowdClassifier) -> None:
    """`fit`, `predict` and `score` change neither X, nor the annotations, nor gold, nor the constructor parameters."""
    X, votes, truth = feature_crowd(3)
    X.setflags(write=False)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    before = X.copy(), [array.copy() for array in arrays_of(votes)], dict(gold)
    fitted = quick(classifier)
    given = fitted.get_params(deep=False)
    quietly(lambda: fitted.fit(X, votes, gold))
    fitted.predict(X)
    fitted.score(X, votes)
    assert_equal(X, before[0], "X was changed")
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(votes), before[1])), "the annotations were changed"
    assert gold == before[2], "the gold was changed"
    assert all(given[n] is v for n, v in fitted.get_params(deep=False).items()), "fit overwrote a parameter"


def check_bad_rows_are_refused(classifier: CrowdClassifier) -> None:
    """NaN, text, the wrong number of rows or of features, no X and no crowd are refused with errors of ours."""
    X, votes, _ = feature_crowd(2)
    hole = X.copy()
    hole[3, 1] = np.nan
    for bad in (hole, X[:-1], X[:, 0], X.astype(str), X.astype(object), X[:, :0], np.where(X > 9, X, np.inf)):
        error_of(lambda: learn(classifier, bad, votes), AlignmentError, "bad rows")  # noqa: B023
    error_of(lambda: learn(classifier, X, votes.label), AnnotationError, "labels without workers")  # type: ignore[arg-type]
    error_of(lambda: quick(classifier).predict(X), NotFittedError, "predict before fit")
    fitted = learn(classifier, X, votes)
    for bad in (X[:, 1:], hole):
        error_of(lambda: fitted.predict(bad), AlignmentError, "bad rows at predict")  # noqa: B023
    error_of(lambda: fitted.score(X[:-1], votes), AlignmentError, "too few rows at score")


class Getter:
    """Hands out rows, as a torch Dataset does."""

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: int) -> npt.NDArray[Any]:
        if not isinstance(i, int):
            raise TypeError("one row at a time")
        return np.asarray(self._rows[i])


def with_spammer(votes: Annotations) -> Annotations:
    """One more worker, who labels everything at random."""
    wider = with_silence(votes)[: votes.n_items]
    label = np.random.default_rng(4).integers(0, votes.n_classes, votes.n_items)
    return wider.with_more(np.arange(votes.n_items), np.full(votes.n_items, votes.n_workers), label)


def global_states() -> list[str]:
    """What the global generators would give next; torch's only where a method has loaded it."""
    torch: Any = sys.modules.get("torch")
    states = [repr(random.getstate()), repr(np.random.get_state())]  # noqa: NPY002
    return states + ([] if torch is None else [repr(torch.get_rng_state().numpy().tobytes())])
