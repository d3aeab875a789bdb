"""What must be found, in easy crowds and in odd ones, with gold and with strangers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, ManyhandsError, NotFittedError
from manyhands.testing.assertions import (
    assert_close,
    assert_equal,
    assert_probabilities,
    copy_of,
    error_of,
    fit,
    n_classes_for,
)
from manyhands.testing.small_crowds import (
    coded,
    columns_of,
    easy_crowd,
    thin_crowds,
    with_silence,
)


def check_unanimous_labels_come_back(aggregator: Aggregator) -> None:
    """Where everybody agrees, everybody is right, and nothing is tied."""
    n_classes = n_classes_for(aggregator, 3)
    truth = np.arange(24) % n_classes
    votes = Annotations.from_matrix(np.repeat(truth[:, None], 4, axis=1))
    fitted = fit(aggregator, votes)
    assert_equal(fitted.labels_, truth, "unanimous labels were changed")
    assert not fitted.tied_.any(), "unanimous items are called tied"


def check_planted_truth_is_recovered(aggregator: Aggregator) -> None:
    """In an easy simulation nearly every truth is found, with two classes and, where they are taken, with six."""
    for n_classes in {2, n_classes_for(aggregator, 6)}:
        votes, truth = easy_crowd(n_classes, n_items=150, per_item=6)
        right = float(np.mean(fit(aggregator, votes).labels_ == votes.classes[truth]))
        assert right >= 0.95, f"only {right:.3f} of {n_classes} planted classes were found"


def check_bad_workers_are_seen(aggregator: Aggregator) -> None:
    """`worker_accuracy_` puts a worker who guesses below every worker who knows."""
    n_classes = n_classes_for(aggregator, 3)
    votes, _ = easy_crowd(n_classes, n_items=150, per_item=6, n_guessing=1)
    accuracy = fit(aggregator, votes).worker_accuracy_
    assert accuracy[0] < accuracy[1:].min(), f"the guessing worker stands at {accuracy[0]:.2f}, {accuracy.tolist()}"


def check_many_classes_or_a_clear_refusal(aggregator: Aggregator) -> None:
    """Twelve classes are taken; a method made for two says so in its error and in its docstring."""
    votes, truth = easy_crowd(12, n_items=150, per_item=6, accuracy=0.9)
    try:
        fitted = fit(aggregator, votes)
    except ManyhandsError as error:
        assert "two" in str(error), f"the refusal does not say that two classes are taken: {error}"
        assert "two classes" in (type(aggregator).__doc__ or ""), (
            "the docstring does not say that two classes are taken"
        )
        return
    assert_probabilities(fitted.posterior_)
    right = float(np.mean(fitted.labels_ == votes.classes[truth]))
    assert right >= 0.9, f"only {right:.3f} of twelve planted classes were found"


def check_one_more_vote_does_not_hurt_its_class(aggregator: Aggregator) -> None:
    """A further label by a good worker does not lower the probability of the class it names."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    fitted = fit(aggregator, votes)
    before = fitted.predict_proba(votes)
    items, workers = next(votes.unanswered())
    first = np.unique(items, return_index=True)[1]  # one open pair for each item that has one
    items, workers = items[first], workers[first]
    for k in range(votes.n_classes):
        after = fitted.predict_proba(votes.with_more(items, workers, np.full(len(items), k)))
        fall = before[items, k] - after[items, k]
        assert fall.max() <= 1e-9, f"a vote for class {k} lowered its probability by {fall.max():.3g}"


def check_score_prefers_the_better_posterior(aggregator: Aggregator) -> None:
    """`score` on held-out labels is finite, and higher than with the posteriors of the items shuffled."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    held_out = np.arange(votes.n_annotations) % 4 == 0
    fitted = fit(aggregator, votes.keep(~held_out))
    score = fitted.score(votes.keep(held_out))
    shuffled = copy.copy(fitted)
    shuffled.posterior_ = np.random.default_rng(4).permutation(fitted.posterior_)
    assert np.isfinite(score) and score <= 0, f"the score is {score}"
    assert score > shuffled.score(votes.keep(held_out)), "a shuffled posterior scores as well"


def check_thin_crowds_are_survived(aggregator: Aggregator) -> None:
    """One item, one worker, one class, one label each, a class nobody chose: no NaN, and no warning but our own."""
    for name, votes in thin_crowds(n_classes_for(aggregator, 3)).items():
        try:
            fitted = fit(aggregator, votes)
            assert_probabilities(fitted.posterior_)
            for attribute in ("worker_accuracy_", "confusion_", "class_prior_", "difficulty_", "history_"):
                values = np.asarray(getattr(fitted, attribute, 0.0), float)
                assert np.all(np.isfinite(values)), f"{attribute} is not finite: {values}"
            assert_probabilities(fitted.predict_proba(votes))
            assert np.isfinite(fitted.score(votes)), "the score is not finite"
        except (AssertionError, ArithmeticError, Warning, ManyhandsError) as error:
            raise AssertionError(f"with {name}: {error}") from error


def check_a_lone_label_is_kept(aggregator: Aggregator) -> None:
    """Where nobody can contradict, labels stay as given, and nobody is said to be perfect."""
    n_classes = n_classes_for(aggregator, 3)
    for name in ("one worker", "one label per item"):
        votes = thin_crowds(n_classes)[name]
        fitted = fit(aggregator, votes)
        assert_equal(fitted.labels_, votes.classes[votes.label], f"with {name}: labels were changed")
        assert fitted.worker_accuracy_.max() < 0.95, f"with {name}: a worker is said to be perfect"
        assert "no_redundancy" in fitted.notes_, f"with {name}: no note `no_redundancy`"


def check_unlabelled_items_get_no_label(aggregator: Aggregator) -> None:
    """An item without labels has label None, the prior for a posterior, and a flag; it is never called tied."""
    votes = with_silence(easy_crowd(n_classes_for(aggregator, 3))[0])
    fitted = fit(aggregator, votes)
    assert fitted.labels_[-1] is None and fitted.predict(votes)[-1] is None, "an item without labels got a label"
    assert None not in fitted.labels_[:-1].tolist(), "an item with labels got none"
    assert_equal(fitted.unlabelled_, votes.n_labels == 0, "unlabelled_ does not mark the items without labels")
    assert not fitted.tied_[-1], "an item without labels is called tied"
    assert_probabilities(fitted.posterior_[-1])
    if hasattr(fitted, "class_prior_"):
        assert_close(fitted.posterior_[-1], fitted.class_prior_, "its posterior is not the prior", 1e-3)


def check_repeated_pairs_are_legal(aggregator: Aggregator) -> None:
    """The same worker may label an item twice, in agreement with himself or not."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    other = (votes.label + 1) % votes.n_classes
    for label in (votes.label, other):
        fitted = fit(aggregator, votes.with_more(votes.item[:9], votes.worker[:9], label[:9]))
        assert_probabilities(fitted.posterior_)


def check_a_thousand_labels_on_one_item(aggregator: Aggregator) -> None:
    """A thousand labels on one item, with as many classes as fifty, neither overflow nor vanish."""
    n_classes = n_classes_for(aggregator, 50)
    label = np.where(np.arange(1000) % 3 > 0, 1, np.arange(1000) % n_classes)
    votes = coded(np.zeros(1000, int), np.arange(1000) % 100, label, n_items=1, n_workers=100, n_classes=n_classes)
    fitted = fit(aggregator, votes)
    assert_probabilities(fitted.posterior_, 1e-9)
    assert np.all(np.isfinite(fitted.worker_accuracy_))
    assert fitted.labels_[0] == votes.classes[1], "two thirds of a thousand labels were overruled"


def check_gold_wins(aggregator: Aggregator) -> None:
    """A gold item has its gold class, against all its workers, and gold may name an item without labels."""
    votes = with_silence(easy_crowd(n_classes_for(aggregator, 3))[0])
    unanimous = next(i for i in range(votes.n_items) if len(set(votes[i].label.tolist())) == 1)
    wrong = votes.classes[(int(votes[unanimous].label[0]) + 1) % votes.n_classes]
    gold = {votes.item_ids[unanimous]: wrong, votes.item_ids[-1]: wrong}
    fitted = fit(aggregator, votes, gold)
    for row in (unanimous, -1):
        assert fitted.labels_[row] == wrong, "gold does not decide its item"
        assert fitted.posterior_[row].max() > 1 - 1e-9, "gold is not certain"
        assert not fitted.unlabelled_[row], "a gold item is called unlabelled"


def check_answers_on_gold_items_count(aggregator: Aggregator) -> None:
    """Workers are judged by what they said on gold items too."""
    n_items, n_gold = 12, 2  # too few to doubt the majority everywhere
    label = np.repeat((np.arange(n_items) % 2)[:, None], 5, axis=1)  # five workers agree on everything, except that
    label[:n_gold, 0] = 1 - label[:n_gold, 0]  # the first alone is right on the gold items
    votes = Annotations.from_matrix(label)
    gold = {i: int(label[i, 0]) for i in range(n_gold)}
    without, with_gold = fit(aggregator, votes), fit(aggregator, votes, gold)
    fall = without.worker_accuracy_[1:] - with_gold.worker_accuracy_[1:]
    assert fall.min() > 0.1, f"being wrong on gold items costs a worker no more than {fall.min():.3f}"
    assert with_gold.worker_accuracy_[0] > without.worker_accuracy_[0], "being right on gold items does not pay"


def check_unknown_gold_is_refused(aggregator: Aggregator) -> None:
    """Gold for an item or with a class that is not in the annotations is an AnnotationError that names it."""
    votes, _ = easy_crowd(2)
    for gold in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error = error_of(lambda: fit(aggregator, votes, gold), AnnotationError)  # noqa: B023
        assert "no such" in str(error), f"the message does not name what is unknown: {error}"


def check_an_unseen_worker_counts_as_an_average_one(aggregator: Aggregator) -> None:
    """At `predict`, a worker whom `fit` did not see is believed as the crowd is; known items stay as they were."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    fitted = fit(aggregator, votes)
    triples = [ids[codes].tolist() for ids, codes in columns_of(votes)]
    for k, value in enumerate(votes.classes.tolist()):
        new = ([f"new item {k}"] * 2, ["stranger", "other stranger"], [value] * 2)
        more = Annotations.from_triples(*(old + extra for old, extra in zip(triples, new)), classes=votes.classes)
        row = {item: i for i, item in enumerate(more.item_ids.tolist())}
        posterior = fitted.predict_proba(more)
        assert_probabilities(posterior)
        assert posterior[row[f"new item {k}"]].argmax() == k, "two strangers who agree are not believed"
        old = posterior[[row[item] for item in votes.item_ids.tolist()]]
        assert_close(old, fitted.posterior_, "a stranger's labels change other items")


def check_an_unknown_class_is_refused(aggregator: Aggregator) -> None:
    """At `predict` and `score`, a class that `fit` did not see is an AnnotationError that lists it."""
    votes, _ = easy_crowd(2)
    fitted = fit(aggregator, votes)
    strange = Annotations.from_triples(["x", "x"], votes.worker_ids[:2], [votes.classes[0], "never seen"])
    for method in (fitted.predict, fitted.predict_proba, fitted.score):
        error = error_of(lambda: method(strange), AnnotationError)  # noqa: B023
        assert "'never seen'" in str(error), f"the message does not list the class: {error}"


def check_what_is_no_crowd_is_refused(aggregator: Aggregator) -> None:
    """A bare list, or annotations without a label, is an AnnotationError; results before `fit`, a NotFittedError."""
    votes, _ = easy_crowd(2)
    fresh = copy_of(aggregator)
    for method in (fresh.predict, fresh.predict_proba, fresh.score):
        error_of(lambda: method(votes), NotFittedError)  # noqa: B023
    fitted = fit(aggregator, votes)
    takers: list[Callable[[Any], Any]] = [fresh.fit, fitted.predict, fitted.predict_proba, fitted.score]
    for taker in takers:
        for nothing in ([[0, 1], [1, 1]], votes.keep(np.zeros(votes.n_annotations, bool))):
            error_of(lambda: taker(nothing), AnnotationError)  # noqa: B023
