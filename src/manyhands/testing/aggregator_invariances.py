"""Invariances of aggregators: shapes, probabilities, seeds, and what results must not depend on."""

from __future__ import annotations

import random
import warnings

import numpy as np

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.testing.assertions import (
    OF_ITEMS,
    OF_WORKERS,
    RESULTS,
    assert_close,
    assert_equal,
    assert_invariant_to_names,
    assert_probabilities,
    assert_same_results,
    copy_of,
    fit,
    n_classes_for,
    quietly,
)
from manyhands.testing.small_crowds import (
    arrays_of,
    columns_of,
    easy_crowd,
    hard_crowd,
    with_unlabelled,
)


def check_results_have_documented_shapes(aggregator: Aggregator) -> None:
    """`fit` returns self and sets every documented result, with one entry per item or worker.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
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
    """Posteriors and confusion matrices are finite, in [0, 1], and their rows sum to 1.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    for votes in (easy_crowd(n_classes_for(aggregator, 4))[0], with_unlabelled(easy_crowd(2)[0])):
        fitted = fit(aggregator, votes)
        assert_probabilities(fitted.posterior_)
        if hasattr(fitted, "confusion_"):
            assert_probabilities(fitted.confusion_)


def check_predict_equals_fit_on_training_data(aggregator: Aggregator) -> None:
    """`fit(a).predict(a)` equals `fit_predict(a)`, and `predict_proba(a)` equals `posterior_`, with and without gold.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0])
    for gold in (None, {votes.item_ids[0]: votes.classes[0], votes.item_ids[-1]: votes.classes[1]}):
        fitted = fit(aggregator, votes, gold)
        labels = quietly(lambda: copy_of(aggregator).fit_predict(votes, gold))  # noqa: B023
        assert_equal(labels, fitted.labels_, "fit_predict differs from fit")
        assert_equal(fitted.predict(votes), labels, "predict differs from fit_predict")
        assert_close(fitted.predict_proba(votes), fitted.posterior_, "predict_proba differs from posterior_", 1e-12)


def check_objective_never_decreases(aggregator: Aggregator) -> None:
    """The objective in `history_` is finite and never decreases, and has at most `n_iter_` entries.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    for votes in (easy_crowd(n_classes_for(aggregator, 3))[0], hard_crowd(n_classes_for(aggregator, 4))):
        fitted = fit(aggregator, votes)
        history = np.array(fitted.history_, float)
        assert np.all(np.isfinite(history)), "the objective is not finite"
        assert len(history) <= fitted.n_iter_, "history_ is longer than n_iter_"
        fall = np.diff(history) + 1e-8 * np.maximum(np.abs(history[1:]), 1.0)
        assert np.all(fall >= 0), f"the objective decreases in step {int(np.argmin(fall)) + 1}: {history.tolist()}"


def check_max_iter_is_respected(aggregator: Aggregator) -> None:
    """With `max_iter=1` there is one iteration, a valid result, `converged_` is False and a warning is raised.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
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
    """`n_init` restarts have different starting points, and the one with the best objective is kept.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    if "n_init" not in aggregator.get_params():
        return
    votes = hard_crowd(n_classes_for(aggregator, 3))
    one_iteration = {"max_iter": 1} if "max_iter" in aggregator.get_params() else {}
    fitted = fit(copy_of(aggregator, n_init=4, **one_iteration), votes)
    assert len(fitted.restarts_) == 4, f"n_init=4 left {len(fitted.restarts_)} entries in restarts_"
    assert len(set(fitted.restarts_)) == 4, f"several restarts are equal: {fitted.restarts_}"
    assert fitted.history_[-1] == max(fitted.restarts_), "the best restart was not kept"


def check_same_seed_gives_same_result(aggregator: Aggregator) -> None:
    """The same seed gives bit-identical results; another seed gives other random starts.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
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
    """Triples in another order give bit-identical results.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    order = np.random.default_rng(1).permutation(votes.n_annotations)
    triples = [ids[codes][order] for ids, codes in columns_of(votes)]
    shuffled = Annotations.from_triples(
        *triples, item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=votes.classes
    )
    assert_same_results(fit(aggregator, votes), fit(aggregator, shuffled), "results depend on the order of rows")


def check_worker_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering workers permutes the worker results and changes nothing else.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    order = np.random.default_rng(2).permutation(votes.n_workers)
    assert_invariant_to_names(aggregator, votes, workers=order)


def check_item_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering items permutes the item results and changes nothing else.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    order = np.random.default_rng(3).permutation(votes.n_items)
    assert_invariant_to_names(aggregator, votes, items=order)


def check_class_names_do_not_matter(aggregator: Aggregator) -> None:
    """Renaming and reordering classes permutes the class columns and changes nothing else, except for tied items.

    The order of ordered classes (methods with a parameter `order`) is reversed, which must mirror the results.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, _ = easy_crowd(n_classes_for(aggregator, 3))
    codes = np.arange(votes.n_classes)
    order = codes[::-1] if "order" in aggregator.get_params() else np.roll(codes, 1)
    assert_invariant_to_names(aggregator, votes, classes=order)


def check_items_and_workers_without_labels_change_nothing(aggregator: Aggregator) -> None:
    """An item and a worker without labels do not change the results of other items and workers.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
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
    """`fit`, `predict` and `score` change neither the annotations, nor gold, nor the constructor parameters.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
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
    """`fit`, `predict` and `score` neither read nor advance the global generators of numpy and random.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes = hard_crowd(n_classes_for(aggregator, 3))
    many = {"n_init": 2} if "n_init" in aggregator.get_params() else {}
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    fitted = fit(copy_of(aggregator, **many), votes)
    fitted.predict(votes)
    fitted.score(votes)
    assert random.getstate() == before[0], "Python's global generator was used"
    assert repr(np.random.get_state()) == before[1], "NumPy's global generator was used"  # noqa: NPY002
