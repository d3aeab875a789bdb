"""What every method must satisfy: one function with a sentence for each promise.

`check_aggregator` runs all checks on one aggregator; `aggregator_checks` hands them out one by one, for pytest:

    @pytest.mark.parametrize("name, check", aggregator_checks())
    def test_my_method(name, check):
        check(MyMethod())

A check fits copies of what it is given, with `random_state=0` where there is such a parameter, and raises
AssertionError where a promise is broken. All data are simulated here, in a few dozen lines at the end.
"""

from __future__ import annotations

import copy
import pickle
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning, ManyhandsError, NotFittedError, ParameterError
from manyhands.validation import Constraint, Number

Check = Callable[[Aggregator], None]
Truth = npt.NDArray[np.int64]

_CLOSE = 1e-6  # EM stops near its optimum, and where it stops may depend on the order of a sum
_OF_ITEMS = ("posterior_", "labels_", "tied_", "unlabelled_", "item_ids_")
_OF_WORKERS = ("worker_accuracy_", "worker_ids_")
_RESULTS = (*_OF_ITEMS, *_OF_WORKERS, "classes_", "n_iter_", "converged_", "history_", "notes_")


def check_aggregator(aggregator: Aggregator) -> None:
    """Run every check on an aggregator.

    >>> from manyhands import MajorityVote
    >>> check_aggregator(MajorityVote())
    """
    for _, check in aggregator_checks():
        check(aggregator)


def aggregator_checks() -> Iterator[tuple[str, Check]]:
    """(name, check) for every check; a check takes an unfitted aggregator."""
    for check in _AGGREGATOR_CHECKS:
        yield check.__name__.removeprefix("check_"), check


# The results -------------------------------------------------------------------------------------------------------


def check_results_have_their_shapes(aggregator: Aggregator) -> None:
    """After `fit`, which returns self, every promised result is there, and in the shape of its items or workers."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    fitted = _copy(aggregator)
    assert _quietly(lambda: fitted.fit(votes)) is fitted, "fit does not return self"
    missing = [name for name in _RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit leaves no {missing}"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    for names, size in ((_OF_ITEMS, votes.n_items), (_OF_WORKERS, votes.n_workers)):
        wrong = [name for name in names if len(getattr(fitted, name)) != size]
        assert not wrong, f"{wrong} should have {size} entries"
    assert np.all((fitted.worker_accuracy_ >= 0) & (fitted.worker_accuracy_ <= 1))
    assert set(fitted.labels_.tolist()) <= set(votes.classes.tolist()), "labels_ are not the caller's own values"


def check_posterior_rows_sum_to_one(aggregator: Aggregator) -> None:
    """Posteriors are probabilities: finite, in [0, 1], each row summing to 1; so are confusion matrices, if any."""
    for votes in (_easy_crowd(_n_classes(aggregator, 4))[0], _with_silence(_easy_crowd(2)[0])):
        fitted = _fit(aggregator, votes)
        _assert_probabilities(fitted.posterior_)
        if hasattr(fitted, "confusion_"):
            _assert_probabilities(fitted.confusion_)


def check_predict_repeats_fit(aggregator: Aggregator) -> None:
    """`fit(a).predict(a)` equals `fit_predict(a)`, and `predict_proba(a)` equals `posterior_`, gold and silence too."""
    votes = _with_silence(_easy_crowd(_n_classes(aggregator, 3))[0])
    for gold in (None, {votes.item_ids[0]: votes.classes[0], votes.item_ids[-1]: votes.classes[1]}):
        fitted = _fit(aggregator, votes, gold)
        labels = _quietly(lambda: _copy(aggregator).fit_predict(votes, gold))  # noqa: B023
        _assert_equal(labels, fitted.labels_, "fit_predict differs from fit")
        _assert_equal(fitted.predict(votes), labels, "predict differs from fit_predict")
        _assert_close(fitted.predict_proba(votes), fitted.posterior_, "predict_proba differs from posterior_", 1e-12)


def check_objective_never_falls(aggregator: Aggregator) -> None:
    """The objective in `history_` never falls, and its length does not exceed the passes that were made."""
    for votes in (_easy_crowd(_n_classes(aggregator, 3))[0], _hard_crowd(_n_classes(aggregator, 4))):
        fitted = _fit(aggregator, votes)
        history = np.array(fitted.history_, float)
        assert np.all(np.isfinite(history)), "the objective is not finite"
        assert len(history) <= fitted.n_iter_, "history_ is longer than n_iter_"
        fall = np.diff(history) + 1e-8 * np.maximum(np.abs(history[1:]), 1.0)
        assert np.all(fall >= 0), f"the objective falls in step {int(np.argmin(fall)) + 1}: {history.tolist()}"


def check_a_limit_of_passes_is_honoured(aggregator: Aggregator) -> None:
    """With `max_iter=1` there is one pass, the result is valid, and `converged_` with a warning says the truth."""
    if "max_iter" not in aggregator.get_params():
        return
    limited = _copy(aggregator, max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        limited.fit(_hard_crowd(_n_classes(aggregator, 3)))
    _assert_probabilities(limited.posterior_)
    assert limited.n_iter_ <= 1, f"max_iter=1 made {limited.n_iter_} passes"
    warned = any("not_converged" in str(w.message) for w in caught)
    assert warned == (not limited.converged_) == ("not_converged" in limited.notes_), "converged_ and warning disagree"
    assert not limited.converged_, "one pass is said to have been enough"


def check_restarts_differ(aggregator: Aggregator) -> None:
    """`n_init` starts are `n_init` different ones, and the best of them is kept."""
    if "n_init" not in aggregator.get_params():
        return
    votes = _hard_crowd(_n_classes(aggregator, 3))
    cut_short = {"max_iter": 1} if "max_iter" in aggregator.get_params() else {}
    fitted = _fit(_copy(aggregator, n_init=4, **cut_short), votes)
    assert len(fitted.restarts_) == 4, f"n_init=4 left {len(fitted.restarts_)} entries in restarts_"
    assert len(set(fitted.restarts_)) == 4, f"several starts were the same: {fitted.restarts_}"
    assert fitted.history_[-1] == max(fitted.restarts_), "the best start was not kept"


def check_same_seed_same_result(aggregator: Aggregator) -> None:
    """The same seed gives the same bits; another seed gives other random starts."""
    if "random_state" not in aggregator.get_params():
        return
    votes = _hard_crowd(_n_classes(aggregator, 3))
    many = {"n_init": 3} if "n_init" in aggregator.get_params() else {}
    one, same = (_fit(_copy(aggregator, random_state=7, **many), votes) for _ in range(2))
    _assert_same_results(one, same, "the same seed gave another result")
    if many and "max_iter" in aggregator.get_params():
        first, other = (_fit(_copy(aggregator, random_state=s, max_iter=1, **many), votes).restarts_ for s in (7, 8))
        assert first != other, "another seed gave the same starts"


# What must not matter ----------------------------------------------------------------------------------------------


def check_order_of_rows_does_not_matter(aggregator: Aggregator) -> None:
    """Triples in another order give the same bits."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    order = np.random.default_rng(1).permutation(votes.n_annotations)
    triples = [ids[codes][order] for ids, codes in _columns(votes)]
    shuffled = Annotations.from_triples(
        *triples, item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=votes.classes
    )
    _assert_same_results(_fit(aggregator, votes), _fit(aggregator, shuffled), "the order of rows shows")


def check_worker_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering workers permutes the worker results and changes nothing else."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    order = np.random.default_rng(2).permutation(votes.n_workers)
    _assert_renamed(aggregator, votes, workers=order)


def check_item_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering items permutes the item results and changes nothing else."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    order = np.random.default_rng(3).permutation(votes.n_items)
    _assert_renamed(aggregator, votes, items=order)


def check_class_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering classes permutes the columns and changes nothing else; tied items are exempt."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    order = np.roll(np.arange(votes.n_classes), 1)
    _assert_renamed(aggregator, votes, classes=order)


def check_silence_changes_nothing(aggregator: Aggregator) -> None:
    """An item nobody labelled and a worker who labelled nothing leave everybody else's results as they were."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    fitted, more = _fit(aggregator, votes), _fit(aggregator, _with_silence(votes))
    _assert_close(more.posterior_[:-1], fitted.posterior_, "a silent item or worker changes the posterior")
    _assert_equal(more.labels_[:-1], fitted.labels_, "a silent item or worker changes labels")
    _assert_close(more.worker_accuracy_[:-1], fitted.worker_accuracy_, "silence changes the accuracy of others")


def check_inputs_stay_as_they_were(aggregator: Aggregator) -> None:
    """`fit`, `predict` and `score` change neither the annotations, nor the gold, nor the constructor parameters."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    gold = {votes.item_ids[0]: votes.classes[0]}
    before = [array.copy() for array in _arrays(votes)], dict(gold), aggregator.get_params()
    fitted = _copy(aggregator)
    given = fitted.get_params()
    _quietly(lambda: fitted.fit(votes, gold))
    fitted.predict(votes)
    fitted.score(votes)
    for array, old in zip(_arrays(votes), before[0]):
        _assert_equal(array, old, "the annotations were changed")
        assert not array.flags.writeable, "the annotations can be written to"
    assert gold == before[1], "the gold was changed"
    assert all(given[name] is value for name, value in fitted.get_params().items()), "fit overwrote a parameter"


def check_global_generators_stay_as_they_were(aggregator: Aggregator) -> None:
    """`fit` neither reads nor moves the global generators of numpy and of random."""
    votes = _hard_crowd(_n_classes(aggregator, 3))
    many = {"n_init": 2} if "n_init" in aggregator.get_params() else {}
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    fitted = _fit(_copy(aggregator, **many), votes)
    fitted.predict(votes)
    fitted.score(votes)
    assert random.getstate() == before[0], "Python's global generator was used"
    assert repr(np.random.get_state()) == before[1], "NumPy's global generator was used"  # noqa: NPY002


# What must be found ------------------------------------------------------------------------------------------------


def check_unanimous_labels_come_back(aggregator: Aggregator) -> None:
    """Where everybody agrees, everybody is right, and nothing is tied."""
    n_classes = _n_classes(aggregator, 3)
    truth = np.arange(24) % n_classes
    votes = Annotations.from_matrix(np.repeat(truth[:, None], 4, axis=1))
    fitted = _fit(aggregator, votes)
    _assert_equal(fitted.labels_, truth, "unanimous labels were changed")
    assert not fitted.tied_.any(), "unanimous items are called tied"


def check_planted_truth_is_recovered(aggregator: Aggregator) -> None:
    """In an easy simulation nearly every truth is found, with two classes and, where they are taken, with six."""
    for n_classes in {2, _n_classes(aggregator, 6)}:
        votes, truth = _easy_crowd(n_classes, n_items=150, per_item=6)
        right = float(np.mean(_fit(aggregator, votes).labels_ == votes.classes[truth]))
        assert right >= 0.95, f"only {right:.3f} of {n_classes} planted classes were found"


def check_bad_workers_are_seen(aggregator: Aggregator) -> None:
    """`worker_accuracy_` puts a worker who guesses below every worker who knows."""
    n_classes = _n_classes(aggregator, 3)
    votes, _ = _easy_crowd(n_classes, n_items=150, per_item=6, n_guessing=1)
    accuracy = _fit(aggregator, votes).worker_accuracy_
    assert accuracy[0] < accuracy[1:].min(), f"the guessing worker stands at {accuracy[0]:.2f}, {accuracy.tolist()}"


def check_many_classes_or_a_clear_refusal(aggregator: Aggregator) -> None:
    """Twelve classes are taken; a method made for two says so in its error and in its docstring."""
    votes, truth = _easy_crowd(12, n_items=150, per_item=6, accuracy=0.9)
    try:
        fitted = _fit(aggregator, votes)
    except ManyhandsError as error:
        assert "two" in str(error), f"the refusal does not say that two classes are taken: {error}"
        assert "two classes" in (type(aggregator).__doc__ or ""), (
            "the docstring does not say that two classes are taken"
        )
        return
    _assert_probabilities(fitted.posterior_)
    right = float(np.mean(fitted.labels_ == votes.classes[truth]))
    assert right >= 0.9, f"only {right:.3f} of twelve planted classes were found"


def check_one_more_vote_does_not_hurt_its_class(aggregator: Aggregator) -> None:
    """A further label by a good worker does not lower the probability of the class it names."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    fitted = _fit(aggregator, votes)
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
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    held_out = np.arange(votes.n_annotations) % 4 == 0
    fitted = _fit(aggregator, votes.keep(~held_out))
    score = fitted.score(votes.keep(held_out))
    shuffled = copy.copy(fitted)
    shuffled.posterior_ = np.random.default_rng(4).permutation(fitted.posterior_)
    assert np.isfinite(score) and score <= 0, f"the score is {score}"
    assert score > shuffled.score(votes.keep(held_out)), "a shuffled posterior scores as well"


# Thin and odd crowds -----------------------------------------------------------------------------------------------


def check_thin_crowds_are_survived(aggregator: Aggregator) -> None:
    """One item, one worker, one class, one label each, a class nobody chose: no NaN, and no warning but our own."""
    for name, votes in _thin_crowds(_n_classes(aggregator, 3)).items():
        try:
            fitted = _fit(aggregator, votes)
            _assert_probabilities(fitted.posterior_)
            for attribute in ("worker_accuracy_", "confusion_", "class_prior_", "difficulty_", "history_"):
                values = np.asarray(getattr(fitted, attribute, 0.0), float)
                assert np.all(np.isfinite(values)), f"{attribute} is not finite: {values}"
            _assert_probabilities(fitted.predict_proba(votes))
            assert np.isfinite(fitted.score(votes)), "the score is not finite"
        except (AssertionError, ArithmeticError, Warning, ManyhandsError) as error:
            raise AssertionError(f"with {name}: {error}") from error


def check_a_lone_label_is_kept(aggregator: Aggregator) -> None:
    """Where nobody can contradict, labels stay as given, and nobody is said to be perfect."""
    n_classes = _n_classes(aggregator, 3)
    for name in ("one worker", "one label per item"):
        votes = _thin_crowds(n_classes)[name]
        fitted = _fit(aggregator, votes)
        _assert_equal(fitted.labels_, votes.classes[votes.label], f"with {name}: labels were changed")
        assert fitted.worker_accuracy_.max() < 0.95, f"with {name}: a worker is said to be perfect"
        assert "no_redundancy" in fitted.notes_, f"with {name}: no note `no_redundancy`"


def check_unlabelled_items_get_no_label(aggregator: Aggregator) -> None:
    """An item without labels has label None, the prior for a posterior, and a flag; it is never called tied."""
    votes = _with_silence(_easy_crowd(_n_classes(aggregator, 3))[0])
    fitted = _fit(aggregator, votes)
    assert fitted.labels_[-1] is None and fitted.predict(votes)[-1] is None, "an item without labels got a label"
    assert None not in fitted.labels_[:-1].tolist(), "an item with labels got none"
    _assert_equal(fitted.unlabelled_, votes.n_labels == 0, "unlabelled_ does not mark the items without labels")
    assert not fitted.tied_[-1], "an item without labels is called tied"
    _assert_probabilities(fitted.posterior_[-1])
    if hasattr(fitted, "class_prior_"):
        _assert_close(fitted.posterior_[-1], fitted.class_prior_, "its posterior is not the prior", 1e-3)


def check_repeated_pairs_are_legal(aggregator: Aggregator) -> None:
    """The same worker may label an item twice, in agreement with himself or not."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    other = (votes.label + 1) % votes.n_classes
    for label in (votes.label, other):
        fitted = _fit(aggregator, votes.with_more(votes.item[:9], votes.worker[:9], label[:9]))
        _assert_probabilities(fitted.posterior_)


def check_a_thousand_labels_on_one_item(aggregator: Aggregator) -> None:
    """A thousand labels on one item, with as many classes as fifty, neither overflow nor vanish."""
    n_classes = _n_classes(aggregator, 50)
    label = np.where(np.arange(1000) % 3 > 0, 1, np.arange(1000) % n_classes)
    votes = _coded(np.zeros(1000, int), np.arange(1000) % 100, label, n_items=1, n_workers=100, n_classes=n_classes)
    fitted = _fit(aggregator, votes)
    _assert_probabilities(fitted.posterior_, 1e-9)
    assert np.all(np.isfinite(fitted.worker_accuracy_))
    assert fitted.labels_[0] == votes.classes[1], "two thirds of a thousand labels were overruled"


# Gold and strangers ------------------------------------------------------------------------------------------------


def check_gold_wins(aggregator: Aggregator) -> None:
    """A gold item has its gold class, against all its workers, and gold may name an item without labels."""
    votes = _with_silence(_easy_crowd(_n_classes(aggregator, 3))[0])
    unanimous = next(i for i in range(votes.n_items) if len(set(votes[i].label.tolist())) == 1)
    wrong = votes.classes[(int(votes[unanimous].label[0]) + 1) % votes.n_classes]
    gold = {votes.item_ids[unanimous]: wrong, votes.item_ids[-1]: wrong}
    fitted = _fit(aggregator, votes, gold)
    for row in (unanimous, -1):
        assert fitted.labels_[row] == wrong, "gold does not decide its item"
        assert fitted.posterior_[row].max() > 1 - 1e-9, "gold is not certain"
        assert not fitted.unlabelled_[row], "a gold item is called unlabelled"


def check_answers_on_gold_items_count(aggregator: Aggregator) -> None:
    """Workers are judged by what they said on gold items too."""
    n_items, n_gold = 36, 6  # too few to doubt the majority everywhere
    label = np.repeat((np.arange(n_items) % 2)[:, None], 5, axis=1)  # five workers agree on everything, except that
    label[:n_gold, 0] = 1 - label[:n_gold, 0]  # the first alone is right on the gold items
    votes = Annotations.from_matrix(label)
    gold = {i: int(label[i, 0]) for i in range(n_gold)}
    without, with_gold = _fit(aggregator, votes), _fit(aggregator, votes, gold)
    fall = without.worker_accuracy_[1:] - with_gold.worker_accuracy_[1:]
    assert fall.min() > 0.1, f"being wrong on gold items costs a worker no more than {fall.min():.3f}"
    assert with_gold.worker_accuracy_[0] > without.worker_accuracy_[0], "being right on gold items does not pay"


def check_unknown_gold_is_refused(aggregator: Aggregator) -> None:
    """Gold for an item or with a class that is not in the annotations is an AnnotationError that names it."""
    votes, _ = _easy_crowd(2)
    for gold in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error = _error_of(lambda: _fit(aggregator, votes, gold), AnnotationError)  # noqa: B023
        assert "no such" in str(error), f"the message does not name what is unknown: {error}"


def check_an_unseen_worker_counts_as_an_average_one(aggregator: Aggregator) -> None:
    """At `predict`, a worker whom `fit` did not see is believed as the crowd is; known items stay as they were."""
    votes, _ = _easy_crowd(_n_classes(aggregator, 3))
    fitted = _fit(aggregator, votes)
    triples = [ids[codes].tolist() for ids, codes in _columns(votes)]
    for k, value in enumerate(votes.classes.tolist()):
        new = ([f"new item {k}"] * 2, ["stranger", "other stranger"], [value] * 2)
        more = Annotations.from_triples(*(old + extra for old, extra in zip(triples, new)), classes=votes.classes)
        row = {item: i for i, item in enumerate(more.item_ids.tolist())}
        posterior = fitted.predict_proba(more)
        _assert_probabilities(posterior)
        assert posterior[row[f"new item {k}"]].argmax() == k, "two strangers who agree are not believed"
        old = posterior[[row[item] for item in votes.item_ids.tolist()]]
        _assert_close(old, fitted.posterior_, "a stranger's labels change other items")


def check_an_unknown_class_is_refused(aggregator: Aggregator) -> None:
    """At `predict` and `score`, a class that `fit` did not see is an AnnotationError that lists it."""
    votes, _ = _easy_crowd(2)
    fitted = _fit(aggregator, votes)
    strange = Annotations.from_triples(["x", "x"], votes.worker_ids[:2], [votes.classes[0], "never seen"])
    for method in (fitted.predict, fitted.predict_proba, fitted.score):
        error = _error_of(lambda: method(strange), AnnotationError)  # noqa: B023
        assert "'never seen'" in str(error), f"the message does not list the class: {error}"


def check_what_is_no_crowd_is_refused(aggregator: Aggregator) -> None:
    """A bare list, or annotations without a label, is an AnnotationError; results before `fit`, a NotFittedError."""
    votes, _ = _easy_crowd(2)
    fresh = _copy(aggregator)
    for method in (fresh.predict, fresh.predict_proba, fresh.score):
        _error_of(lambda: method(votes), NotFittedError)  # noqa: B023
    fitted = _fit(aggregator, votes)
    takers: list[Callable[[Any], Any]] = [fresh.fit, fitted.predict, fitted.predict_proba, fitted.score]
    for taker in takers:
        for nothing in ([[0, 1], [1, 1]], votes.keep(np.zeros(votes.n_annotations, bool))):
            _error_of(lambda: taker(nothing), AnnotationError)  # noqa: B023


# The estimator -----------------------------------------------------------------------------------------------------


def check_clone_and_repr_round_trip(aggregator: Aggregator) -> None:
    """scikit-learn can clone it, `repr` shows how to make it again, and `set_params` refuses what is unknown."""
    from sklearn.base import clone

    for original in (aggregator, *(_copy(aggregator, **{n: v}) for n, v in _other_values(aggregator).items())):
        assert repr(clone(original).get_params()) == repr(original.get_params()), f"clone changes {original}"
        again = eval(repr(original), {type(original).__name__: type(original)})
        assert repr(again.get_params()) == repr(original.get_params()), f"{original!r} does not make itself again"
    fitted = _fit(aggregator, _easy_crowd(2)[0])
    assert not _results(clone(fitted)), "a clone keeps results"
    _error_of(lambda: _copy(aggregator).set_params(no_such_parameter=1), ParameterError)


def check_pickle_round_trip(aggregator: Aggregator) -> None:
    """A fitted aggregator that was pickled and read again has the same results and predicts the same bits."""
    votes = _with_silence(_easy_crowd(_n_classes(aggregator, 3))[0])
    fitted = _fit(aggregator, votes, {votes.item_ids[0]: votes.classes[0]})
    again = pickle.loads(pickle.dumps(fitted))
    _assert_same_results(fitted, again, "a pickle loses results")
    _assert_equal(again.predict_proba(votes), fitted.predict_proba(votes), "a pickle predicts otherwise")
    assert again.score(votes) == fitted.score(votes), "a pickle scores otherwise"


def check_a_second_fit_forgets_the_first(aggregator: Aggregator) -> None:
    """Fitting again gives what a fresh aggregator gives, and nothing is left of the first fit."""
    first, second = _with_silence(_easy_crowd(_n_classes(aggregator, 3))[0]), _easy_crowd(2)[0]
    twice = _fit(aggregator, first, {first.item_ids[0]: first.classes[0]})
    twice.left_over_ = "a result that only the first fit had"
    _quietly(lambda: twice.fit(second))
    once = _fit(aggregator, second)
    _assert_same_results(once, twice, "the second fit remembers the first")
    _assert_equal(twice.predict_proba(second), once.predict_proba(second), "predictions remember the first fit")


def check_every_parameter_is_documented(aggregator: Aggregator) -> None:
    """Every constructor parameter stands in the class docstring under Parameters, and no other does."""
    section = re.search(r"Parameters\n\s*-+\n(.*?)(\n\s*\n|\Z)", type(aggregator).__doc__ or "", re.DOTALL)
    named = re.findall(r"^\s*([\w, ]+?) :", section.group(1), re.MULTILINE) if section else []
    documented = {name.strip() for names in named for name in names.split(",")}
    parameters = set(aggregator.get_params())
    assert documented == parameters, f"documented: {sorted(documented)}; in the signature: {sorted(parameters)}"


def check_every_parameter_is_validated(aggregator: Aggregator) -> None:
    """Every constructor parameter has a constraint, and `fit` refuses what the constraint forbids, by its name."""
    constraints = aggregator._constraints
    assert set(constraints) == set(aggregator.get_params()), "constraints and constructor parameters differ"
    votes, _ = _easy_crowd(2)
    for name, constraint in constraints.items():
        for bad in _bad_values(constraint):
            broken = _copy(aggregator, **{name: bad})
            error = _error_of(lambda: broken.fit(votes), ParameterError, f"{name}={bad!r}")  # noqa: B023
            assert repr(name) in str(error), f"the message does not name {name!r}: {error}"
            assert not _results(broken), f"{name}={bad!r} was refused only after results were stored"


def check_every_parameter_is_read(aggregator: Aggregator) -> None:
    """`fit` reads every constructor parameter, beyond the check that its value is legal."""
    read: set[str] = set()

    class Spy(type(aggregator)):  # type: ignore[misc]
        def _check_parameters(self) -> None:
            super()._check_parameters()
            read.clear()

        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    votes, _ = _easy_crowd(2)
    spy = Spy(**_copy(aggregator).get_params())
    _quietly(lambda: spy.fit(votes))
    unread = set(aggregator.get_params()) - read
    assert not unread, f"fit never reads {sorted(unread)}"


_AGGREGATOR_CHECKS: tuple[Check, ...] = (
    check_results_have_their_shapes,
    check_posterior_rows_sum_to_one,
    check_predict_repeats_fit,
    check_objective_never_falls,
    check_a_limit_of_passes_is_honoured,
    check_restarts_differ,
    check_same_seed_same_result,
    check_order_of_rows_does_not_matter,
    check_worker_names_do_not_matter,
    check_item_names_do_not_matter,
    check_class_names_do_not_matter,
    check_silence_changes_nothing,
    check_inputs_stay_as_they_were,
    check_global_generators_stay_as_they_were,
    check_unanimous_labels_come_back,
    check_planted_truth_is_recovered,
    check_bad_workers_are_seen,
    check_many_classes_or_a_clear_refusal,
    check_one_more_vote_does_not_hurt_its_class,
    check_score_prefers_the_better_posterior,
    check_thin_crowds_are_survived,
    check_a_lone_label_is_kept,
    check_unlabelled_items_get_no_label,
    check_repeated_pairs_are_legal,
    check_a_thousand_labels_on_one_item,
    check_gold_wins,
    check_answers_on_gold_items_count,
    check_unknown_gold_is_refused,
    check_an_unseen_worker_counts_as_an_average_one,
    check_an_unknown_class_is_refused,
    check_what_is_no_crowd_is_refused,
    check_clone_and_repr_round_trip,
    check_pickle_round_trip,
    check_a_second_fit_forgets_the_first,
    check_every_parameter_is_documented,
    check_every_parameter_is_validated,
    check_every_parameter_is_read,
)


# How the checks fit and compare ------------------------------------------------------------------------------------


def _copy(aggregator: Aggregator, **changes: Any) -> Aggregator:
    """A fresh aggregator with the same parameters, these changes, and a seed where none was given."""
    parameters = aggregator.get_params()
    if parameters.get("random_state", 0) is None:
        parameters["random_state"] = 0
    return type(aggregator)(**(parameters | changes))


def _quietly(call: Callable[[], Any]) -> Any:
    """What the call returns; a warning of ours is fine, any other is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdWarning)
        return call()


def _fit(aggregator: Aggregator, votes: Annotations, gold: Mapping[Any, Any] | None = None) -> Any:
    """A fitted copy; Any, because every method has results of its own."""
    return _quietly(lambda: _copy(aggregator).fit(votes, gold))


def _n_classes(aggregator: Aggregator, wanted: int) -> int:
    """The wanted number of classes, or two for a method that refuses more with an error of ours."""
    votes = Annotations.from_matrix(np.repeat(np.arange(6)[:, None] % 3, 3, axis=1))
    try:
        _fit(aggregator, votes)
    except ManyhandsError:
        return min(wanted, 2)
    return wanted


def _results(fitted: Aggregator) -> dict[str, Any]:
    return {name: v for name, v in vars(fitted).items() if name.endswith("_") and not name.startswith("_")}


def _assert_same_results(one: Aggregator, other: Aggregator, what: str) -> None:
    assert _results(one).keys() == _results(other).keys(), f"{what}: {_results(one).keys() ^ _results(other).keys()}"
    for name, value in _results(one).items():
        _assert_equal(getattr(other, name), value, f"{what}, in {name}")


def _assert_equal(found: Any, expected: Any, what: str) -> None:
    equal = np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected
    assert equal, f"{what}: {found!r} is not {expected!r}"


def _assert_close(found: Any, expected: Any, what: str, tolerance: float = _CLOSE) -> None:
    assert np.shape(found) == np.shape(expected), f"{what}: shapes {np.shape(found)} and {np.shape(expected)}"
    difference = float(np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0))
    assert difference <= tolerance, f"{what}: by {difference:.3g}"


def _assert_probabilities(array: npt.NDArray[np.float64], tolerance: float = 1e-9) -> None:
    assert np.all(np.isfinite(array)), "there are probabilities that are not finite"
    assert np.all((array >= 0) & (array <= 1 + tolerance)), "there are probabilities outside [0, 1]"
    _assert_close(array.sum(axis=-1), np.ones(array.shape[:-1]), "probabilities do not sum to 1", tolerance)


def _assert_renamed(
    aggregator: Aggregator,
    votes: Annotations,
    *,
    items: npt.ArrayLike | None = None,
    workers: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
) -> None:
    """Fit with everything in another order under other names, and put the results back into the old order."""
    i, w, k = (
        np.arange(n) if order is None else np.asarray(order)
        for order, n in zip((items, workers, classes), (votes.n_items, votes.n_workers, votes.n_classes))
    )
    renamed = Annotations(
        np.argsort(i)[votes.item],
        np.argsort(w)[votes.worker],
        np.argsort(k)[votes.label],
        item_ids=[f"i{n}" for n in range(votes.n_items)],
        worker_ids=[f"w{n}" for n in range(votes.n_workers)],
        classes=[f"k{n}" for n in range(votes.n_classes)],
    )
    old, new = _fit(aggregator, votes), _fit(aggregator, renamed)
    clear = ~old.tied_[i]
    _assert_close(new.posterior_, old.posterior_[i][:, k], "names show in the posterior")
    _assert_close(new.worker_accuracy_, old.worker_accuracy_[w], "names show in worker_accuracy_")
    new_labels = np.array([int(value[1:]) for value in new.labels_.tolist()])
    old_values = votes.classes[k][new_labels]
    _assert_equal(old_values[clear], old.labels_[i][clear], "names show in the labels")
    if hasattr(old, "confusion_") and hasattr(new, "confusion_"):
        _assert_close(new.confusion_, old.confusion_[w][:, k][:, :, k], "names show in confusion_")
    if hasattr(old, "difficulty_") and hasattr(new, "difficulty_"):
        _assert_close(new.difficulty_, old.difficulty_[i], "names show in difficulty_", 1e-4)


def _error_of(call: Callable[[], Any], kind: type[Exception], what: str = "this") -> Exception:
    """The error of this kind that the call raises."""
    try:
        _quietly(call)
    except kind as error:
        return error
    raise AssertionError(f"{what} should raise {kind.__name__}")


def _bad_values(constraint: Constraint) -> list[Any]:
    """Values that no reading of the constraint allows."""
    bad: list[Any] = [object(), "no such value"]
    if isinstance(constraint, Number):
        bad += [float("nan"), float("inf"), True, [1]]
        bad += [constraint.least - 1] if constraint.least is not None else []
        bad += [constraint.above] if constraint.above is not None else []
        bad += [constraint.most + 1] if constraint.most is not None else []
        bad += [1.5] if constraint.whole else []
    return bad


def _other_values(aggregator: Aggregator) -> dict[str, Any]:
    """For each numeric parameter, a legal value that is not the present one."""
    candidates = (0.25, 0.75, 3, 2)
    return {
        name: next(value for value in candidates if constraint.allows(value) and value != aggregator.get_params()[name])
        for name, constraint in aggregator._constraints.items()
        if isinstance(constraint, Number)
    }


# Small simulations -------------------------------------------------------------------------------------------------


def _easy_crowd(
    n_classes: int,
    *,
    n_items: int = 60,
    n_workers: int = 10,
    per_item: int = 5,
    accuracy: float = 0.85,
    n_guessing: int = 0,
    seed: int = 0,
) -> tuple[Annotations, Truth]:
    """Workers who are right with one probability and err evenly, the first `n_guessing` of whom only guess."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_items) % n_classes)
    item = np.repeat(np.arange(n_items), per_item)
    worker = rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item].ravel()
    right = rng.random(len(item)) < np.where(worker < n_guessing, 1 / n_classes, accuracy)
    wrong = (truth[item] + rng.integers(1, max(n_classes, 2), len(item))) % n_classes
    label = np.where(right, truth[item], wrong)
    return _coded(item, worker, label, n_items=n_items, n_workers=n_workers, n_classes=n_classes), truth


def _hard_crowd(n_classes: int) -> Annotations:
    """Few labels of little worth, so that starts end in different places and EM takes its time."""
    return _easy_crowd(n_classes, n_items=50, n_workers=14, per_item=3, accuracy=0.55, seed=5)[0]


def _thin_crowds(n_classes: int) -> dict[str, Annotations]:
    """The smallest crowds there are, by name."""
    pairs = np.arange(12)
    label = pairs % n_classes
    return {
        "one label": Annotations.from_triples(["i"], ["w"], ["k"]),
        "one item": Annotations.from_triples(["i"] * 3, ["a", "b", "c"], ["k", "k", "l"]),
        "one item and one class": Annotations.from_triples(["i"] * 3, ["a", "b", "c"], ["k"] * 3),
        "one worker": Annotations.from_triples(pairs, ["w"] * 12, label),
        "one class": Annotations.from_matrix(np.zeros((4, 3), int)),
        "one class of two in use": Annotations.from_matrix(np.zeros((4, 3), int), classes=[0, 1]),
        "one label per item": Annotations.from_triples(pairs, pairs, label),
        "a class nobody chose": Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [0] * 4, classes=range(n_classes)),
        "a tie": Annotations.from_matrix([[0, 1], [1, 0]]),
        "a silent worker and item": Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]]),
        "two crowds without contact": Annotations.from_triples(
            np.repeat(np.arange(8), 2), np.arange(16) % 2 + 2 * (np.arange(16) // 8), np.repeat(np.arange(8) % 2, 2)
        ),
    }


def _with_silence(votes: Annotations) -> Annotations:
    """The same labels with one more item and one more worker, about whom nothing is known."""
    return Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=[*votes.item_ids.tolist(), "silent item"],
        worker_ids=[*votes.worker_ids.tolist(), "silent worker"],
        classes=votes.classes,
    )


def _coded(
    item: npt.ArrayLike, worker: npt.ArrayLike, label: npt.ArrayLike, *, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    return Annotations(
        item,
        worker,
        label,
        item_ids=[f"item {i:04d}" for i in range(n_items)],
        worker_ids=[f"worker {w:04d}" for w in range(n_workers)],
        classes=[f"class {k:02d}" for k in range(n_classes)],
    )


def _columns(votes: Annotations) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    return [(votes.item_ids, votes.item), (votes.worker_ids, votes.worker), (votes.classes, votes.label)]


def _arrays(votes: Annotations) -> list[npt.NDArray[Any]]:
    return [votes.item, votes.worker, votes.label, votes.item_ids, votes.worker_ids, votes.classes]
