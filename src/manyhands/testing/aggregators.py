"""Checks of aggregators: invariances, results on easy and degenerate crowds, parameters, order of items, scores.

The assertions at the end of a section also serve the checks of methods with features, in `learners`.
"""

from __future__ import annotations

import copy
import pickle
import random
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.estimator import BaseEstimator, OptionGroup, with_nested_options
from manyhands.exceptions import AnnotationError, ManyhandsError, NotFittedError, ParameterError
from manyhands.heldout import COMMON, OWN
from manyhands.testing.crowds import (
    OF_ITEMS,
    OF_WORKERS,
    RESULTS,
    arrays_of,
    assert_close,
    assert_equal,
    assert_invariant_to_names,
    assert_probabilities,
    assert_same_results,
    bad_values,
    columns_of,
    copy_of,
    crowd_from_codes,
    degenerate_crowds,
    easy_crowd,
    error_of,
    fit,
    hard_crowd,
    n_classes_for,
    other_values,
    quietly,
    results_of,
    with_unlabelled,
)

# ----------------------------------------------------------------------------------------------------
# Invariances of aggregators: shapes, probabilities, seeds, and what results must not depend on.


def check_results_have_documented_shapes(aggregator: Aggregator) -> None:
    """`fit` returns self and sets every documented result, with one entry per item or worker."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    fitted = copy_of(aggregator)
    assert quietly(lambda: fitted.fit(votes)) is fitted, "fit does not return self"
    missing = [name for name in RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit does not set {missing}"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    for names, size in ((OF_ITEMS, votes.n_items), (OF_WORKERS, votes.n_workers)):
        wrong = [name for name in names if len(getattr(fitted, name)) != size]
        assert not wrong, f"{wrong} should have {size} entries"
    assert np.all((fitted.worker_accuracy_ >= 0) & (fitted.worker_accuracy_ <= 1))
    assert set(fitted.labels_.tolist()) <= set(votes.classes.tolist()), "labels_ are not the caller's classes"


def check_posterior_rows_sum_to_one(aggregator: Aggregator) -> None:
    """Posteriors and confusion matrices are finite, in [0, 1], and their rows sum to 1."""
    for votes in (easy_crowd(n_classes_for(aggregator, 4))[0], with_unlabelled(easy_crowd(2)[0])):
        fitted = fit(aggregator, votes)
        assert_probabilities(fitted.posterior_)
        if hasattr(fitted, "confusion_"):
            assert_probabilities(fitted.confusion_)


def check_predict_equals_fit_on_training_data(aggregator: Aggregator) -> None:
    """With and without gold, `fit(a).predict(a)` equals `fit_predict(a)`; `predict_proba(a)` equals `posterior_`."""
    votes = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0])
    for gold in (None, {votes.item_ids[0]: votes.classes[0], votes.item_ids[-1]: votes.classes[1]}):
        fitted = fit(aggregator, votes, gold)
        labels = quietly(lambda: copy_of(aggregator).fit_predict(votes, gold))  # noqa: B023
        assert_equal(labels, fitted.labels_, "fit_predict differs from fit")
        assert_equal(fitted.predict(votes), labels, "predict differs from fit_predict")
        assert_close(fitted.predict_proba(votes), fitted.posterior_, "predict_proba differs from posterior_", 1e-12)


def check_objective_never_decreases(aggregator: Aggregator) -> None:
    """The objective in `history_` is finite and never decreases, and has at most `n_iter_` entries."""
    for votes in (easy_crowd(n_classes_for(aggregator, 3))[0], hard_crowd(n_classes_for(aggregator, 4))):
        fitted = fit(aggregator, votes)
        history = np.array(fitted.history_, float)
        assert np.all(np.isfinite(history)), "the objective is not finite"
        assert len(history) <= fitted.n_iter_, "history_ is longer than n_iter_"
        fall = np.diff(history) + 1e-8 * np.maximum(np.abs(history[1:]), 1.0)
        assert np.all(fall >= 0), f"the objective decreases in step {int(np.argmin(fall)) + 1}: {history.tolist()}"


def check_max_iter_is_respected(aggregator: Aggregator) -> None:
    """With `max_iter=1` there is one iteration, a valid result, `converged_` is False and a warning is raised."""
    if "max_iter" not in aggregator.get_params():
        return
    limited = copy_of(aggregator, max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        limited.fit(hard_crowd(n_classes_for(aggregator, 3)))
    assert_probabilities(limited.posterior_)
    assert limited.n_iter_ <= 1, f"max_iter=1 made {limited.n_iter_} iterations"
    warned = any("not_converged" in str(w.message) for w in caught)
    assert warned == (not limited.converged_) == ("not_converged" in limited.notes_), "converged_ and warning disagree"
    assert not limited.converged_, "converged_ is True after one iteration"


def check_restarts_differ(aggregator: Aggregator) -> None:
    """`n_init` restarts have different starting points, and the one with the best objective is kept."""
    if "n_init" not in aggregator.get_params():
        return
    votes = hard_crowd(n_classes_for(aggregator, 3))
    one_iteration = {"max_iter": 1} if "max_iter" in aggregator.get_params() else {}
    fitted = fit(copy_of(aggregator, n_init=4, **one_iteration), votes)
    assert len(fitted.restarts_) == 4, f"n_init=4 left {len(fitted.restarts_)} entries in restarts_"
    assert len(set(fitted.restarts_)) == 4, f"several restarts are equal: {fitted.restarts_}"
    assert fitted.history_[-1] == max(fitted.restarts_), "the best restart was not kept"


def check_same_seed_gives_same_result(aggregator: Aggregator) -> None:
    """The same seed gives bit-identical results; another seed gives other random starts."""
    if "random_state" not in aggregator.get_params():
        return
    votes = hard_crowd(n_classes_for(aggregator, 3))
    many = {"n_init": 3} if "n_init" in aggregator.get_params() else {}
    one, same = (fit(copy_of(aggregator, random_state=7, **many), votes) for _ in range(2))
    assert_same_results(one, same, "the same seed gives another result")
    if many and "max_iter" in aggregator.get_params():
        first, other = (fit(copy_of(aggregator, random_state=s, max_iter=1, **many), votes).restarts_ for s in (7, 8))
        assert first != other, "another seed gives the same starts"


def check_row_order_does_not_matter(aggregator: Aggregator) -> None:
    """Triples in another order give bit-identical results."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    order = np.random.default_rng(1).permutation(votes.n_annotations)
    triples = [ids[codes][order] for ids, codes in columns_of(votes)]
    shuffled = Annotations.from_triples(
        *triples, item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=votes.classes
    )
    assert_same_results(fit(aggregator, votes), fit(aggregator, shuffled), "results depend on the order of rows")


def check_worker_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering workers permutes the worker results and changes nothing else."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    order = np.random.default_rng(2).permutation(votes.n_workers)
    assert_invariant_to_names(aggregator, votes, workers=order)


def check_item_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering items permutes the item results and changes nothing else."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    order = np.random.default_rng(3).permutation(votes.n_items)
    assert_invariant_to_names(aggregator, votes, items=order)


def check_class_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering classes permutes the class columns and changes nothing else, except for tied items.

    The order of ordered classes (methods with a parameter `order`) is reversed, which must mirror the results.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    codes = np.arange(votes.n_classes)
    order = codes[::-1] if "order" in aggregator.get_params() else np.roll(codes, 1)
    assert_invariant_to_names(aggregator, votes, classes=order)


def check_items_and_workers_without_labels_change_nothing(aggregator: Aggregator) -> None:
    """An item and a worker without labels do not change the results of other items and workers."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    fitted, more = fit(aggregator, votes), fit(aggregator, with_unlabelled(votes))
    assert_close(more.posterior_[:-1], fitted.posterior_, "an item or worker without labels changes the posterior")
    assert_equal(more.labels_[:-1], fitted.labels_, "an item or worker without labels changes labels")
    assert_close(
        more.worker_accuracy_[:-1],
        fitted.worker_accuracy_,
        "an item or worker without labels changes the accuracy of others",
    )


def check_inputs_are_not_modified(aggregator: Aggregator) -> None:
    """`fit`, `predict` and `score` change neither the annotations, nor gold, nor the constructor parameters."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    gold = {votes.item_ids[0]: votes.classes[0]}
    before = [array.copy() for array in arrays_of(votes)], dict(gold), aggregator.get_params()
    fitted = copy_of(aggregator)
    given = fitted.get_params()
    quietly(lambda: fitted.fit(votes, gold))
    fitted.predict(votes)
    fitted.score(votes)
    for array, old in zip(arrays_of(votes), before[0]):
        assert_equal(array, old, "the annotations were changed")
        assert not array.flags.writeable, "the annotations can be written to"
    assert gold == before[1], "the gold was changed"
    assert all(given[name] is value for name, value in fitted.get_params().items()), "fit overwrote a parameter"


def check_global_generators_are_not_used(aggregator: Aggregator) -> None:
    """`fit`, `predict` and `score` neither read nor advance the global generators of numpy and random."""
    votes = hard_crowd(n_classes_for(aggregator, 3))
    many = {"n_init": 2} if "n_init" in aggregator.get_params() else {}
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    fitted = fit(copy_of(aggregator, **many), votes)
    fitted.predict(votes)
    fitted.score(votes)
    assert random.getstate() == before[0], "Python's global generator was used"
    assert repr(np.random.get_state()) == before[1], "NumPy's global generator was used"  # noqa: NPY002


# ----------------------------------------------------------------------------------------------------
# Results of aggregators on easy crowds and on degenerate ones, with gold, and errors for invalid inputs.


def check_unanimous_labels_are_kept(aggregator: Aggregator) -> None:
    """Where all labels of an item agree, its label is this class, and no item is tied."""
    n_classes = n_classes_for(aggregator, 3)
    truth = np.arange(24) % n_classes
    votes = Annotations.from_matrix(np.repeat(truth[:, None], 4, axis=1))
    fitted = fit(aggregator, votes)
    assert_equal(fitted.labels_, truth, "unanimous labels were changed")
    assert not fitted.tied_.any(), "unanimous items are marked as tied"


def check_known_truth_is_recovered(aggregator: Aggregator) -> None:
    """In an easy simulation at least 95% of the labels are right, with two classes and, if accepted, with six."""
    for n_classes in {2, n_classes_for(aggregator, 6)}:
        votes, truth = easy_crowd(n_classes, n_items=150, per_item=6)
        right = float(np.mean(fit(aggregator, votes).labels_ == votes.classes[truth]))
        assert right >= 0.95, f"the accuracy is only {right:.3f} with {n_classes} classes"


def check_random_workers_have_the_lowest_accuracy(aggregator: Aggregator) -> None:
    """`worker_accuracy_` of a spammer with random labels is below that of every honest worker."""
    n_classes = n_classes_for(aggregator, 3)
    votes, _ = easy_crowd(n_classes, n_items=150, per_item=6, n_spammers=1)
    accuracy = fit(aggregator, votes).worker_accuracy_
    assert accuracy[0] < accuracy[1:].min(), f"the spammer has accuracy {accuracy[0]:.2f} among {accuracy.tolist()}"


def check_many_classes_are_accepted_or_refused_with_a_reason(aggregator: Aggregator) -> None:
    """Twelve classes are accepted; a method for two classes states so in its error and in its docstring."""
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
    """A further label by a good worker does not lower the probability of the class it names."""
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
    """`score` on held-out labels is finite, and higher than with the posteriors of the items shuffled."""
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
    """One item, one worker, one class, one label each, an unused class: results are finite, with no foreign warning."""
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
    """Without items of two labels, labels are kept, no accuracy is near 1, and a note `no_redundancy` is given."""
    n_classes = n_classes_for(aggregator, 3)
    for name in ("one worker", "one label per item"):
        votes = degenerate_crowds(n_classes)[name]
        fitted = fit(aggregator, votes)
        assert_equal(fitted.labels_, votes.classes[votes.label], f"with {name}: labels were changed")
        assert fitted.worker_accuracy_.max() < 0.95, f"with {name}: a worker has an accuracy near 1"
        assert "no_redundancy" in fitted.notes_, f"with {name}: no note `no_redundancy`"


def check_unlabelled_items_get_no_label(aggregator: Aggregator) -> None:
    """An item without labels has label None, the class prior as posterior, and a flag; it is not tied."""
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
    """A worker may label an item twice, with the same label or with another one."""
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    other = (votes.label + 1) % votes.n_classes
    for label in (votes.label, other):
        fitted = fit(aggregator, votes.with_more(votes.item[:9], votes.worker[:9], label[:9]))
        assert_probabilities(fitted.posterior_)


def check_a_thousand_labels_on_one_item_are_accepted(aggregator: Aggregator) -> None:
    """A thousand labels on one item, with up to fifty classes, cause neither overflow nor underflow."""
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
    """A gold item has its gold class, also against all its labels and without any label."""
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
    """Labels on gold items enter the workers' accuracies."""
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
    """Gold with an item or a class that is not in the annotations raises an AnnotationError that names it."""
    votes, _ = easy_crowd(2)
    for gold in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error = error_of(lambda: fit(aggregator, votes, gold), AnnotationError)  # noqa: B023
        assert "no such" in str(error), f"the message does not name the unknown value: {error}"


def check_unseen_workers_have_average_accuracy(aggregator: Aggregator) -> None:
    """In `predict`, a worker unseen in `fit` counts as an average worker; known items do not change."""
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
    """In `predict` and `score`, a class unseen in `fit` raises an AnnotationError that names it."""
    votes, _ = easy_crowd(2)
    fitted = fit(aggregator, votes)
    strange = Annotations.from_triples(["x", "x"], votes.worker_ids[:2], [votes.classes[0], "never seen"])
    for method in (fitted.predict, fitted.predict_proba, fitted.score):
        error = error_of(lambda: method(strange), AnnotationError)  # noqa: B023
        assert "'never seen'" in str(error), f"the message does not list the class: {error}"


def check_invalid_annotations_are_refused(aggregator: Aggregator) -> None:
    """A list, or annotations without labels, raise an AnnotationError; results before `fit` a NotFittedError."""
    votes, _ = easy_crowd(2)
    fresh = copy_of(aggregator)
    for method in (fresh.predict, fresh.predict_proba, fresh.score):
        error_of(lambda: method(votes), NotFittedError)  # noqa: B023
    fitted = fit(aggregator, votes)
    takers: list[Callable[[Any], Any]] = [fresh.fit, fitted.predict, fitted.predict_proba, fitted.score]
    for taker in takers:
        for nothing in ([[0, 1], [1, 1]], votes.keep(np.zeros(votes.n_annotations, bool))):
            error_of(lambda: taker(nothing), AnnotationError)  # noqa: B023


# ----------------------------------------------------------------------------------------------------
# Aggregators as estimators of scikit-learn: parameters, clones, pickles, repeated fits.


def check_clone_and_repr_round_trip(aggregator: Aggregator) -> None:
    """scikit-learn can clone the estimator, `repr` reproduces it, and `set_params` refuses unknown parameters."""
    others = (copy_of(aggregator, **{name: value}) for name, value in other_values(aggregator).items())
    assert_clones_and_reprs_are_equal(fit(aggregator, easy_crowd(2)[0]), others)


def check_copies_are_equal(aggregator: Aggregator) -> None:
    """A pickled copy and a saved and loaded copy have the same results and give bit-identical predictions.

    A method that is not registered cannot be saved, so only its pickled copy is checked.
    """
    votes = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0])
    fitted = fit(aggregator, votes, {votes.item_ids[0]: votes.classes[0]})
    others = easy_crowd(n_classes_for(aggregator, 3), seed=1)[0]
    for again in _copies(fitted):
        assert type(again) is type(fitted) and repr(again) == repr(fitted), "a copy has another type or parameters"
        assert_same_results(fitted, again, "results of a copy differ")
        assert again.annotations_ == fitted.annotations_, "the annotations of a copy differ"
        for labels in (votes, others):
            assert_equal(again.predict_proba(labels), fitted.predict_proba(labels), "predictions of a copy differ")
            assert again.score(labels) == fitted.score(labels), "the score of a copy differs"


def _copies(fitted: Any) -> Iterator[Any]:
    """Yield a pickled copy, and a saved one where the method is registered."""
    from manyhands.persistence import load_model

    yield pickle.loads(pickle.dumps(fitted))
    if registry.name_of(type(fitted)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            fitted.save(Path(folder) / "model")
            yield load_model(Path(folder) / "model")


def check_second_fit_is_independent_of_the_first(aggregator: Aggregator) -> None:
    """A second fit gives the results of a fresh aggregator, and no attribute of the first fit is left."""
    first, second = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0]), easy_crowd(2)[0]
    twice = fit(aggregator, first, {first.item_ids[0]: first.classes[0]})
    twice.left_over_ = "an attribute of the first fit only"
    quietly(lambda: twice.fit(second))
    once = fit(aggregator, second)
    assert_same_results(once, twice, "the second fit depends on the first")
    assert_equal(twice.predict_proba(second), once.predict_proba(second), "predictions depend on the first fit")


def check_every_parameter_is_validated(aggregator: Aggregator) -> None:
    """Every constructor parameter has a constraint, and `fit` raises a ParameterError that names the parameter."""
    assert_bad_values_are_refused(copy_of(aggregator), easy_crowd(2)[0])


def check_every_parameter_is_read(aggregator: Aggregator) -> None:
    """`fit` reads every constructor parameter, apart from its validation."""
    assert_parameters_are_read(copy_of(aggregator), easy_crowd(2)[0])


def assert_clones_and_reprs_are_equal(fitted: Any, variants: Iterable[Any]) -> None:
    """Assert that a clone and the evaluated `repr` have the same parameters."""
    from sklearn.base import clone

    for original in (fitted, *variants):
        assert repr(clone(original).get_params()) == repr(original.get_params()), (
            f"clone changes the parameters of {original}"
        )
        groups = [type(value) for value in original.get_params(deep=False).values() if isinstance(value, OptionGroup)]
        again = eval(repr(original), {cls.__name__: cls for cls in (type(original), *groups)})
        assert repr(again.get_params()) == repr(original.get_params()), f"{original!r} does not reproduce itself"
    assert not results_of(clone(fitted)), "a clone has fitted attributes"
    error_of(lambda: clone(fitted).set_params(no_such_parameter=1), ParameterError)


def assert_bad_values_are_refused(method: Any, *data: Any) -> None:
    """Assert that `fit` refuses values that a constraint forbids, naming the parameter and before storing results."""
    parameters = method.get_params(deep=False)
    assert set(method._constraints) == set(parameters), "constraints and constructor parameters differ"
    for name, constraint in with_nested_options(parameters, method._constraints)[1].items():
        for bad in bad_values(constraint):
            broken = copy_of(method, **{name: bad})
            error = error_of(lambda: broken.fit(*data), ParameterError, f"{name}={bad!r}")  # noqa: B023
            assert f"`{name}`" in str(error), f"the message does not name {name!r}: {error}"
            assert not results_of(broken), f"{name}={bad!r} was refused only after results were stored"


def assert_parameters_are_read(method: Any, *data: Any) -> None:
    """Assert that `fit` reads every constructor parameter, and every option of a group."""
    read: set[str] = set()

    class Spy(type(method)):  # type: ignore[misc]
        def check_parameters(self) -> None:
            super().check_parameters()
            read.clear()

        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    def watch(parameter: str) -> Callable[[Any, str], Any]:
        def get(self: Any, name: str) -> Any:
            read.add(f"{parameter}__{name}")
            return object.__getattribute__(self, name)

        return get

    parameters = method.get_params(deep=False)
    groups = {name: type(value) for name, value in parameters.items() if isinstance(value, OptionGroup)}
    with ExitStack() as stack:
        for name, group in groups.items():
            stack.enter_context(patch.object(group, "__getattribute__", watch(name)))
        quietly(lambda: Spy(**parameters).fit(*data))
    options = {f"{name}__{field.name}" for name, group in groups.items() for field in fields(group)}  # type: ignore[arg-type]
    unread = (set(parameters) | options) - read
    assert not unread, f"fit never reads {sorted(unread)}"


# ----------------------------------------------------------------------------------------------------
# The order of items: every result has the same bits for each item, in the order of the caller's rows.

N_ITEMS = 61  # the length of no other axis, so that an axis of items is recognised


def check_item_order_does_not_matter_to_aggregators(aggregator: Aggregator) -> None:
    """Items in another order give bit-identical results for each item, all in the order of `item_ids`."""
    votes, order = with_silent_item(easy_crowd(n_classes_for(aggregator, 3), n_items=N_ITEMS)[0])
    gold = {votes.item_ids[0]: votes.classes[0], votes.item_ids[-2]: votes.classes[1]}
    one, other = fit(aggregator, votes, gold), fit(aggregator, votes[order], gold)
    assert_same_rows(one, other, order)
    assert other.annotations_.item_ids.tolist() == other.item_ids_.tolist() == votes.item_ids[order].tolist()
    assert np.array_equal(other.predict_proba(votes[order]), one.predict_proba(votes)[order]), "predict_proba"
    assert other.score(votes[order]) == one.score(votes), "score depends on the order of items"


def assert_same_rows(one: Any, other: Any, order: npt.NDArray[np.intp], where: str = "") -> None:
    """Assert that two fits have the same attributes, those with a row per item in another order.

    Shapes: order (n_items,).
    """
    assert vars(one).keys() == vars(other).keys(), f"{where}: {vars(one).keys() ^ vars(other).keys()}"
    parameters = one.get_params(deep=False)
    for name, value in vars(one).items():
        if name not in parameters:
            _assert_same(value, getattr(other, name), order, f"{where}{name}")


def _assert_same(one: Any, other: Any, order: npt.NDArray[np.intp], name: str) -> None:
    """Assert that two values are equal, in the given order where they have a row per item."""
    if isinstance(one, BaseEstimator):
        assert_same_rows(one, other, order, f"{name}.")
    elif isinstance(one, dict) and not callable(one):
        assert one.keys() == other.keys(), name
        for key in one:
            _assert_same(one[key], other[key], order, f"{name}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), name
        for at, member in enumerate(one):
            _assert_same(member, other[at], order, f"{name}[{at}]")
    elif hasattr(one, "state_dict"):
        _assert_same(dict(one.state_dict()), dict(other.state_dict()), order, name)
    elif isinstance(one, Annotations):
        assert other == (one[order] if len(one) == len(order) else one), f"{name} depends on the order of items"
    elif isinstance(one, np.ndarray | float | int | str | bool) or hasattr(one, "detach"):
        actual, expected = (np.asarray(value.detach() if hasattr(value, "detach") else value) for value in (other, one))
        assert len(order) not in expected.shape[1:], f"{name} has items on another axis than the first"
        has_rows = expected.ndim > 0 and len(expected) == len(order)
        equal = np.array_equal(actual, expected[order] if has_rows else expected, equal_nan=expected.dtype.kind == "f")
        assert equal, f"{name} does not follow the order of items; is it named in _of_items?"


def with_silent_item(votes: Annotations) -> tuple[Annotations, npt.NDArray[np.intp]]:
    """Return the crowd without the labels of one item, and another order of its items."""
    order = np.random.default_rng(3).permutation(votes.n_items)
    return votes.keep(votes.item != 7), order


# ----------------------------------------------------------------------------------------------------
# Scores of held-out labels: finite, a distribution over the labels, and independent of names and codes.

ROUNDING = 1e-4  # of scores; networks compute in single precision
Scores = npt.NDArray[np.float64]


def check_scores_of_aggregators_are_probabilities(aggregator: Aggregator) -> None:
    """`score` is the mean of `score_labels`, which are log-probabilities that sum to 1 over the labels of a worker.

    They do not depend on the order of items, workers and classes, and `score_kind` names their likelihood.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    held_out = np.arange(votes.n_annotations) % 4 == 0
    training, heldout = votes.keep(~held_out), votes.keep(held_out)
    fitted = fit(aggregator, training)
    assert_distribution(fitted, heldout, fitted.score_labels)
    assert fitted.score(heldout) == fitted.score_labels(heldout).mean(), "score is not the mean of score_labels"
    again = fit(aggregator, in_other_codes(training)).score_labels(in_other_codes(heldout))
    assert_close(np.sort(again), np.sort(fitted.score_labels(heldout)), "the codes change scores", ROUNDING)


def assert_distribution(fitted: Any, heldout: Annotations, score_labels: Callable[[Annotations], Scores]) -> None:
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
    assert_close(total, np.ones(len(first)), "the probabilities of a worker's labels do not sum to 1", ROUNDING)


def _with_labels(votes: Annotations, label: npt.NDArray[np.int32]) -> Annotations:
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    return Annotations(votes.item, votes.worker, label, **ids)


def in_other_codes(votes: Annotations) -> Annotations:
    """The same labels of the same items and workers; workers and classes in reverse order."""
    worker, label = votes.n_workers - 1 - votes.worker, votes.n_classes - 1 - votes.label
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids[::-1], "classes": votes.classes[::-1]}
    return Annotations(votes.item, worker, label, **ids)
