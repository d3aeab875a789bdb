"""Results of aggregators on easy crowds and on degenerate ones, with gold, and errors for invalid inputs."""

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
    columns_of,
    crowd_from_codes,
    degenerate_crowds,
    easy_crowd,
    with_unlabelled,
)


def check_unanimous_labels_are_kept(aggregator: Aggregator) -> None:
    """Where all labels of an item agree, its label is this class, and no item is tied.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    n_classes = n_classes_for(aggregator, 3)
    truth = np.arange(24) % n_classes
    votes = Annotations.from_matrix(np.repeat(truth[:, None], 4, axis=1))
    fitted = fit(aggregator, votes)
    assert_equal(fitted.labels_, truth, "unanimous labels were changed")
    assert not fitted.tied_.any(), "unanimous items are marked as tied"


def check_known_truth_is_recovered(aggregator: Aggregator) -> None:
    """In an easy simulation at least 95% of the labels are right, with two classes and, if accepted, with six.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    for n_classes in {2, n_classes_for(aggregator, 6)}:
        votes, truth = easy_crowd(n_classes, n_items=150, per_item=6)
        right = float(np.mean(fit(aggregator, votes).labels_ == votes.classes[truth]))
        assert right >= 0.95, f"the accuracy is only {right:.3f} with {n_classes} classes"


def check_random_workers_have_the_lowest_accuracy(aggregator: Aggregator) -> None:
    """`worker_accuracy_` of a spammer with random labels is below that of every honest worker.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    n_classes = n_classes_for(aggregator, 3)
    votes, _ = easy_crowd(n_classes, n_items=150, per_item=6, n_spammers=1)
    accuracy = fit(aggregator, votes).worker_accuracy_
    assert accuracy[0] < accuracy[1:].min(), f"the spammer has accuracy {accuracy[0]:.2f} among {accuracy.tolist()}"


def check_many_classes_are_accepted_or_refused_with_a_reason(aggregator: Aggregator) -> None:
    """Twelve classes are accepted; a method for two classes states so in its error and in its docstring.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, truth = easy_crowd(12, n_items=150, per_item=6, accuracy=0.9)
    try:
        fitted = fit(aggregator, votes)
    except ManyhandsError as error:
        assert "two" in str(error), f"the error does not state that only two classes are supported: {error}"
        assert "two classes" in (type(aggregator).__doc__ or ""), (
            "the docstring does not state that only two classes are supported"
        )
        return
    assert_probabilities(fitted.posterior_)
    right = float(np.mean(fitted.labels_ == votes.classes[truth]))
    assert right >= 0.9, f"the accuracy is only {right:.3f} with twelve classes"


def check_one_more_label_does_not_lower_its_class(aggregator: Aggregator) -> None:
    """A further label by a good worker does not lower the probability of the class it names.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    fitted = fit(aggregator, votes)
    before = fitted.predict_proba(votes)
    items, workers = next(votes.unanswered())
    first = np.unique(items, return_index=True)[1]  # one pair without label for each item that has one
    items, workers = items[first], workers[first]
    for k in range(votes.n_classes):
        after = fitted.predict_proba(votes.with_more(items, workers, np.full(len(items), k)))
        fall = before[items, k] - after[items, k]
        assert fall.max() <= 1e-9, f"a label of class {k} lowered its probability by {fall.max():.3g}"


def check_score_is_higher_for_better_posteriors(aggregator: Aggregator) -> None:
    """`score` on held-out labels is finite, and higher than with the posteriors of the items shuffled.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    held_out = np.arange(votes.n_annotations) % 4 == 0
    fitted = fit(aggregator, votes.keep(~held_out))
    score = fitted.score(votes.keep(held_out))
    shuffled = copy.copy(fitted)
    order = np.random.default_rng(4).permutation(len(fitted.posterior_))
    for name in ("posterior_", "_model_posterior"):  # the second before safeguards, where a method has them
        if name in vars(fitted):
            setattr(shuffled, name, getattr(fitted, name)[order])
    assert np.isfinite(score) and score <= 0, f"the score is {score}"
    assert score > shuffled.score(votes.keep(held_out)), "a shuffled posterior scores as well"


def check_degenerate_crowds_give_finite_results(aggregator: Aggregator) -> None:
    """One item, one worker, one class, one label each, an unused class: results are finite, with no foreign warning.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    for name, votes in degenerate_crowds(n_classes_for(aggregator, 3)).items():
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


def check_single_labels_are_kept(aggregator: Aggregator) -> None:
    """Without items of two labels, labels are kept, no accuracy is near 1, and a note `no_redundancy` is given.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    n_classes = n_classes_for(aggregator, 3)
    for name in ("one worker", "one label per item"):
        votes = degenerate_crowds(n_classes)[name]
        fitted = fit(aggregator, votes)
        assert_equal(fitted.labels_, votes.classes[votes.label], f"with {name}: labels were changed")
        assert fitted.worker_accuracy_.max() < 0.95, f"with {name}: a worker has an accuracy near 1"
        assert "no_redundancy" in fitted.notes_, f"with {name}: no note `no_redundancy`"


def check_unlabelled_items_get_no_label(aggregator: Aggregator) -> None:
    """An item without labels has label None, the class prior as posterior, and a flag; it is not tied.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0])
    fitted = fit(aggregator, votes)
    assert fitted.labels_[-1] is None and fitted.predict(votes)[-1] is None, "an item without labels got a label"
    assert None not in fitted.labels_[:-1].tolist(), "an item with labels got none"
    assert_equal(fitted.unlabelled_, votes.n_labels == 0, "unlabelled_ does not mark the items without labels")
    assert not fitted.tied_[-1], "an item without labels is marked as tied"
    assert_probabilities(fitted.posterior_[-1])
    if hasattr(fitted, "class_prior_"):
        assert_close(fitted.posterior_[-1], fitted.class_prior_, "its posterior is not the prior", 1e-3)


def check_repeated_labels_are_accepted(aggregator: Aggregator) -> None:
    """A worker may label an item twice, with the same label or with another one.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    other = (votes.label + 1) % votes.n_classes
    for label in (votes.label, other):
        fitted = fit(aggregator, votes.with_more(votes.item[:9], votes.worker[:9], label[:9]))
        assert_probabilities(fitted.posterior_)


def check_a_thousand_labels_on_one_item_are_accepted(aggregator: Aggregator) -> None:
    """A thousand labels on one item, with up to fifty classes, cause neither overflow nor underflow.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    n_classes = n_classes_for(aggregator, 50)
    label = np.where(np.arange(1000) % 3 > 0, 1, np.arange(1000) % n_classes)
    votes = crowd_from_codes(
        np.zeros(1000, int), np.arange(1000) % 100, label, n_items=1, n_workers=100, n_classes=n_classes
    )
    fitted = fit(aggregator, votes)
    assert_probabilities(fitted.posterior_, 1e-9)
    assert np.all(np.isfinite(fitted.worker_accuracy_))
    assert fitted.labels_[0] == votes.classes[1], "the label is not that of two thirds of a thousand labels"


def check_gold_determines_its_items(aggregator: Aggregator) -> None:
    """A gold item has its gold class, also against all its labels and without any label.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0])
    unanimous = next(i for i in range(votes.n_items) if len(set(votes[i].label.tolist())) == 1)
    wrong = votes.classes[(int(votes[unanimous].label[0]) + 1) % votes.n_classes]
    gold = {votes.item_ids[unanimous]: wrong, votes.item_ids[-1]: wrong}
    fitted = fit(aggregator, votes, gold)
    for row in (unanimous, -1):
        assert fitted.labels_[row] == wrong, "a gold item does not have its gold class"
        assert fitted.posterior_[row].max() > 1 - 1e-9, "the posterior of a gold item is not 1"
        assert not fitted.unlabelled_[row], "a gold item is marked as unlabelled"


def check_labels_on_gold_items_are_used(aggregator: Aggregator) -> None:
    """Labels on gold items enter the workers' accuracies.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    n_items, n_gold = 12, 2  # too few to contradict the majority on all items
    label = np.repeat((np.arange(n_items) % 2)[:, None], 5, axis=1)  # five workers agree on everything, except that
    label[:n_gold, 0] = 1 - label[:n_gold, 0]  # the first alone is right on the gold items
    votes = Annotations.from_matrix(label)
    gold = {i: int(label[i, 0]) for i in range(n_gold)}
    without, with_gold = fit(aggregator, votes), fit(aggregator, votes, gold)
    fall = without.worker_accuracy_[1:] - with_gold.worker_accuracy_[1:]
    assert fall.min() > 0.1, f"errors on gold items lower the accuracy by no more than {fall.min():.3f}"
    assert with_gold.worker_accuracy_[0] > without.worker_accuracy_[0], (
        "right labels on gold items do not raise the accuracy"
    )


def check_unknown_gold_is_refused(aggregator: Aggregator) -> None:
    """Gold with an item or a class that is not in the annotations raises an AnnotationError that names it.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(2)
    for gold in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error = error_of(lambda: fit(aggregator, votes, gold), AnnotationError)  # noqa: B023
        assert "no such" in str(error), f"the message does not name the unknown value: {error}"


def check_unseen_workers_have_average_accuracy(aggregator: Aggregator) -> None:
    """In `predict`, labels of a worker unseen in `fit` count as those of an average worker; known items do not change.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    fitted = fit(aggregator, votes)
    triples = [ids[codes].tolist() for ids, codes in columns_of(votes)]
    for k, value in enumerate(votes.classes.tolist()):
        new = ([f"new item {k}"] * 2, ["unseen worker", "other unseen worker"], [value] * 2)
        more = Annotations.from_triples(*(old + extra for old, extra in zip(triples, new)), classes=votes.classes)
        row = {item: i for i, item in enumerate(more.item_ids.tolist())}
        posterior = fitted.predict_proba(more)
        assert_probabilities(posterior)
        assert posterior[row[f"new item {k}"]].argmax() == k, (
            "two equal labels of unseen workers do not determine the label"
        )
        old = posterior[[row[item] for item in votes.item_ids.tolist()]]
        assert_close(old, fitted.posterior_, "labels of unseen workers change other items")


def check_unknown_classes_are_refused(aggregator: Aggregator) -> None:
    """In `predict` and `score`, a class unseen in `fit` raises an AnnotationError that names it.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(2)
    fitted = fit(aggregator, votes)
    strange = Annotations.from_triples(["x", "x"], votes.worker_ids[:2], [votes.classes[0], "never seen"])
    for method in (fitted.predict, fitted.predict_proba, fitted.score):
        error = error_of(lambda: method(strange), AnnotationError)  # noqa: B023
        assert "'never seen'" in str(error), f"the message does not list the class: {error}"


def check_invalid_annotations_are_refused(aggregator: Aggregator) -> None:
    """A list, or annotations without labels, raise an AnnotationError; results before `fit` a NotFittedError.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(2)
    fresh = copy_of(aggregator)
    for method in (fresh.predict, fresh.predict_proba, fresh.score):
        error_of(lambda: method(votes), NotFittedError)  # noqa: B023
    fitted = fit(aggregator, votes)
    takers: list[Callable[[Any], Any]] = [fresh.fit, fitted.predict, fitted.predict_proba, fitted.score]
    for taker in takers:
        for nothing in ([[0, 1], [1, 1]], votes.keep(np.zeros(votes.n_annotations, bool))):
            error_of(lambda: taker(nothing), AnnotationError)  # noqa: B023
