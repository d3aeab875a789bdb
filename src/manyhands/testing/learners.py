"""Checks of methods with features: of all of them, of classifiers, of representation learners.

A check of something that a method does not have, such as early stopping or checkpoints, passes.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from manyhands._core.randomness import Seed, make_generator
from manyhands.aggregation.base import Inference
from manyhands.aggregation.voting import MajorityVote
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import check_training_data
from manyhands.em.e_step import Gold
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AlignmentError, AnnotationError, NotFittedError, ParameterError
from manyhands.testing.aggregators import (
    N_ITEMS,
    ROUNDING,
    assert_bad_values_are_refused,
    assert_clones_and_reprs_are_equal,
    assert_distribution,
    assert_parameters_are_read,
    assert_same_rows,
    in_other_codes,
    with_silent_item,
)
from manyhands.testing.crowds import (
    EPOCHS,
    NamedColumns,
    RowGetter,
    accuracy,
    add_noise,
    arrays_of,
    assert_close,
    assert_equal,
    assert_probabilities,
    brief_copy,
    degenerate_crowds,
    error_of,
    feature_crowd,
    features_of,
    fit_briefly,
    fit_quickly,
    global_states,
    is_network,
    known_to,
    linear,
    other_values,
    output,
    quick_copy,
    quietly,
    results_of,
    with_spammer,
    with_unlabelled,
)
from manyhands.validation import Constraint, NameOr, RandomState

# ----------------------------------------------------------------------------------------------------
# All methods with features: seeds, robustness to spammers, accepted and refused inputs, order of items.


def check_same_seed_gives_same_result(method: BaseEstimator) -> None:
    """The same seed gives bit-identical results; for networks, another seed gives another initialisation."""
    X, votes, _ = feature_crowd(3)
    one, again = fit_briefly(method, X, votes), fit_briefly(method, X, votes)
    assert_equal(output(again, X), output(one, X), "the same seed gives another result")
    assert_equal(again.posterior_, one.posterior_, "the same seed gives another posterior")
    if is_network(one):
        other = fit_briefly(method, X, votes, random_state=1)
        assert not np.array_equal(output(other, X), output(one, X)), "another seed changes nothing"


def check_global_generators_are_not_used(method: BaseEstimator) -> None:
    """`fit`, prediction and `score` neither read nor advance the global generators of numpy, random and torch."""
    X, votes, _ = feature_crowd(3)
    fit_briefly(method, X, votes)  # so that all imports are done
    before = global_states()
    fitted = fit_briefly(method, X, votes)
    output(fitted, X)
    if hasattr(fitted, "score"):
        fitted.score(X, votes)
    assert global_states() == before, "a global generator was used"


def check_one_spammer_hardly_lowers_accuracy(method: BaseEstimator) -> None:
    """With a worker who labels every item at random, at least 90% of new items are right."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    with_spammer_too = accuracy(fit_quickly(method, X, with_spammer(votes)), X, 3)
    assert with_spammer_too >= 0.9, f"with one spammer, the accuracy on new items is only {with_spammer_too:.2f}"


def check_random_workers_have_the_lowest_accuracy(method: BaseEstimator) -> None:
    """`worker_accuracy_` of a spammer with random labels is below that of every other worker."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.9)
    accuracies = fit_quickly(method, X, with_spammer(votes)).worker_accuracy_
    assert accuracies[-1] < accuracies[:-1].min(), "a spammer has a higher accuracy than an honest worker"


def check_sparse_features_equal_dense_features(method: BaseEstimator) -> None:
    """A sparse matrix gives the same results as the dense array, in training and in prediction."""
    from scipy.sparse import csr_array

    X, votes, _ = feature_crowd(3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    dense, sparse = fit_briefly(method, X, votes), fit_briefly(method, csr_array(X), votes)
    difference = np.abs(output(sparse, csr_array(X)) - output(dense, X)).max()
    bound = 0.0 if is_network(dense) else 1e-3  # networks convert to dense rows; solvers sum in another order
    assert difference <= bound, f"results of sparse and dense features differ by {difference:.3g}"


def check_row_getter_equals_array(method: BaseEstimator) -> None:
    """An object with a length that returns single rows gives the same results as the array."""
    X, votes, _ = feature_crowd(3)
    X = X.astype(np.float32)
    array, getter = fit_briefly(method, X, votes), fit_briefly(method, RowGetter(X), votes)
    assert_equal(output(getter, RowGetter(X)), output(array, X), "results of a row getter and of the array differ")


def check_degenerate_crowds_give_finite_results(method: BaseEstimator) -> None:
    """One item, one worker, one class, one label each, an unused class: results are finite, with no foreign warning."""
    for name, votes in degenerate_crowds(3).items():
        X = features_of(np.arange(votes.n_items) % 3)
        fitted = fit_briefly(method, X, votes)
        assert np.isfinite(fitted.posterior_).all() and np.isfinite(output(fitted, X)).all(), name


def check_inputs_are_not_modified(method: BaseEstimator) -> None:
    """Neither X, nor the annotations, nor gold, nor the constructor parameters are changed by any call."""
    X, votes, truth = feature_crowd(3)
    X.setflags(write=False)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    before = X.copy(), [array.copy() for array in arrays_of(votes)], dict(gold)
    fitted: Any = brief_copy(method)
    given = fitted.get_params(deep=False)
    quietly(lambda: fitted.fit(X, votes, gold))
    output(fitted, X)
    if hasattr(fitted, "score"):
        fitted.score(X, votes)
    assert_equal(X, before[0], "X was changed")
    assert all(np.array_equal(a, b) for a, b in zip(arrays_of(votes), before[1])), "the annotations were changed"
    assert gold == before[2], "the gold was changed"
    assert all(given[n] is v for n, v in fitted.get_params(deep=False).items()), "fit overwrote a parameter"


def check_columns_in_another_order_are_refused(method: BaseEstimator) -> None:
    """Column names are learned by `fit`; other names and another order are refused, and a fit without forgets them."""
    X, votes, _ = feature_crowd(2)
    names = [f"column {j}" for j in range(X.shape[1])]
    plain, fitted = fit_briefly(method, X, votes), fit_briefly(method, NamedColumns(names, X), votes)
    assert not hasattr(plain, "feature_names_in_"), "an array gave column names"
    assert plain.n_features_in_ == fitted.n_features_in_ == len(names), "n_features_in_ is not the number of columns"
    assert list(fitted.feature_names_in_) == names, "feature_names_in_ are not the columns of the data frame"
    assert_equal(output(fitted, NamedColumns(names, X)), output(plain, X), "column names change the result")
    for other in (names[::-1], [*names[:-1], "other"]):
        table = NamedColumns(other, X)
        error_of(lambda: output(fitted, table), AlignmentError, "other columns")  # noqa: B023
        if hasattr(fitted, "score"):
            error_of(lambda: fitted.score(table, votes), AlignmentError, "other columns in score")  # noqa: B023
    quietly(lambda: fitted.fit(X, votes))
    assert not hasattr(fitted, "feature_names_in_"), "a second fit without names keeps those of the first"


def check_invalid_features_are_refused(method: BaseEstimator) -> None:
    """NaN, text, a wrong number of rows or features, no X and no annotations raise the documented errors."""
    X, votes, _ = feature_crowd(2)
    hole = X.copy()
    hole[3, 1] = np.nan
    for bad in (hole, X[:-1], X[:, 0], X.astype(str), X.astype(object), X[:, :0], np.where(X > 9, X, np.inf)):
        error_of(lambda: fit_quickly(method, bad, votes), AlignmentError, "invalid features")  # noqa: B023
    error_of(lambda: fit_quickly(method, X, votes.label), AnnotationError, "labels without workers")  # type: ignore[arg-type]
    error_of(lambda: output(quick_copy(method), X), NotFittedError, "prediction before fit")
    fitted = fit_briefly(method, X, votes)
    for bad in (X[:, 1:], hole):
        error_of(lambda: output(fitted, bad), AlignmentError, "invalid features in prediction")  # noqa: B023
    if hasattr(fitted, "score"):
        error_of(lambda: fitted.score(X[:-1], votes), AlignmentError, "too few rows in score")


def check_item_order_does_not_matter_to_learners(method: BaseEstimator) -> None:
    """Items in another order, with their rows of X, give bit-identical results for each item, in that order."""
    X, votes, truth = feature_crowd(3, n_items=N_ITEMS)
    votes, order = with_silent_item(votes)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    one = fit_briefly(method, X, votes, gold)
    assert_same_rows(one, fit_briefly(method, X[order], votes[order], gold), order)


# ----------------------------------------------------------------------------------------------------
# All methods with features: what a training uses, early stopping, checkpoints, seeds, prediction mode.

_NOISE = 1.5  # standard deviation at which training on the truth reaches an accuracy of about 0.9


def check_held_out_labels_are_not_used_for_training(method: BaseEstimator) -> None:
    """Changing the labels held out for early stopping changes its metric, and nothing that is trained."""
    if "patience" not in method.get_params(deep=False):
        return
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    # Early stopping may restore the state before the adversarial epochs, and later training then differs: with an
    # imputer there are none.
    has_imputer = "imputer" in method.get_params(deep=False)
    one_round = {"round_patience": None, "generator_epochs": 1, "adversarial_epochs": 0 if has_imputer else 1}
    one_round |= {"generator__epochs": 1, "adversarial__epochs": 1}
    settings = {"dropout": 0.3, "validation": 0.2, "patience": 100} | known_to(method, one_round | {"members": 1})
    changed = _changed(quick_copy(method, **settings), X, votes)
    # With one epoch, early stopping has no choice, so that later training must be equal too.
    one, other = (fit_quickly(method, X, labels, max_epochs=1, **settings) for labels in (votes, changed))
    if not one.history_:
        return
    assert _without_heldout(one.history_) == _without_heldout(other.history_), "a held-out label was used for training"
    if no_choice := known_to(method, {"adversarial__epochs": 0}):
        settings_of_one = settings | no_choice
        one, other = (fit_quickly(method, X, labels, max_epochs=1, **settings_of_one) for labels in (votes, changed))
    # A classifier on top of an embedding is trained on all labels, without early stopping.
    predict = (
        (lambda fitted: fitted.transform(X)) if hasattr(method, "transform") else (lambda fitted: output(fitted, X))
    )
    assert_equal(predict(other), predict(one), "a held-out label was used for training")
    # With several epochs it may restore another one, from which later training starts; until then all is equal.
    names: list[str] = []
    with patch("manyhands.nn.train.report", lambda done, total, what: names.append(what)):
        one = fit_quickly(method, X, votes, max_epochs=EPOCHS, **settings)
    other = fit_quickly(method, X, changed, max_epochs=EPOCHS, **settings)
    scores = [[epoch["heldout"] for epoch in model.history_ if "heldout" in epoch] for model in (one, other)]
    assert scores[0] and scores[0] != scores[1], "the metric of early stopping does not depend on the held-out labels"
    chosen = next(name for name, epoch in zip(names, one.history_) if "heldout" in epoch)
    n = len(names) - names[::-1].index(chosen)
    assert _without_heldout(one.history_[:n]) == _without_heldout(other.history_[:n]), (
        "a held-out label was used for training"
    )


def check_resumed_fit_equals_uninterrupted_fit(method: BaseEstimator) -> None:
    """A fit interrupted early or late, after a checkpoint or while writing one, resumes to a bit-identical result."""
    if "checkpoint" not in method.get_params(deep=False):
        return
    X, votes, truth = feature_crowd(3, accuracy=0.5)
    X = add_noise(X, 3.0)  # so noisy that most methods stop early and restore an earlier epoch
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    settings = {"dropout": 0.3, "learning_rate": 0.1, "patience": 3, "max_epochs": 9}
    whole = fit_quickly(method, X, votes, gold, **settings)
    n_epochs = len(whole.history_)
    if not n_epochs:
        return
    for at, written in ((max(n_epochs // 3, 1), True), (n_epochs - 1, False)):
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "kept"
            with interrupted_at_checkpoint(at, written):
                fit_quickly(method, X, votes, gold, checkpoint=folder, **settings)
            assert [*folder.rglob("*.checkpoint")], "an interrupted fit leaves no checkpoint"
            with interrupted_at_checkpoint() as seen:
                resumed = fit_quickly(method, X, votes, gold, checkpoint=folder, **settings)
            n_left = n_epochs - at + (not written)
            assert len(seen) == n_left, f"{len(seen)} epochs were run after the interruption, not {n_left}"
            assert not [*folder.rglob("*")], "a finished fit leaves files in the folder"
        assert_same_fit(resumed, whole, X, f"interrupted at {at} of {n_epochs} epochs, the result differs")


def check_workers_without_labels_change_nothing(method: BaseEstimator) -> None:
    """A worker without labels, placed among the others, changes no result except their own.

    The tolerance is 1e-6: where all workers are in one array, its length changes the order of vectorised sums.
    """
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    place = 4
    ids = np.insert(votes.worker_ids.astype(object), place, "worker without labels").tolist()
    wider = Annotations(
        votes.item, votes.worker + (votes.worker >= place), votes.label,
        item_ids=votes.item_ids, worker_ids=ids, classes=votes.classes,
    )  # fmt: skip
    settings = known_to(method, {"dropout": 0.3, "max_epochs": EPOCHS})
    alone, with_worker = (fit_quickly(method, X, labels, **settings) for labels in (votes, wider))
    assert_close(output(with_worker, X), output(alone, X), "a worker without labels changes predictions")
    for name, array in _arrays_of(alone).items():
        actual = getattr(with_worker, name)
        actual = actual if len(actual) == len(array) else np.delete(actual, place, axis=0)
        assert_close(np.nan_to_num(actual), np.nan_to_num(array), f"a worker without labels changes {name}")


def check_perfect_workers_equal_supervised_training(method: BaseEstimator) -> None:
    """If every label is right, the accuracy on new items is that of training on the truth, within two points.

    Averaged over three seeds, because the accuracy of one network varies by 1.5 points with its initialisation.
    """
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    X = add_noise(X, _NOISE)
    settings = known_to(method, {"patience": None, "max_epochs": 10})
    seeds = [known_to(method, {"random_state": seed}) for seed in range(3)]
    ours = [fit_quickly(method, X, votes, **settings, **seed) for seed in seeds]
    by_truth = [_supervised(method, X, truth, votes, seed) for seed in range(3)]
    actual, expected = (float(np.mean([accuracy(m, X, 3, _NOISE) for m in models])) for models in (ours, by_truth))
    assert abs(actual - expected) <= 0.02 and expected > 0.8, (
        f"the accuracy is {actual:.3f}, trained on the truth {expected:.3f}"
    )


def check_weight_decay_makes_weights_smaller(method: BaseEstimator) -> None:
    """Every network method has `weight_decay`, and a strong one makes the weights of its networks smaller."""
    X, votes, _ = feature_crowd(3)
    settings = known_to(method, {"patience": None, "round_patience": None, "max_epochs": EPOCHS})
    plain = fit_quickly(method, X, votes, **settings)
    if not is_network(plain):
        return
    assert "weight_decay" in method.get_params(deep=False), "a network method has no weight_decay"
    decayed = fit_quickly(method, X, votes, **settings, weight_decay=1.0)
    sizes = [_size_of_weights(fitted.module_) for fitted in (plain, decayed)]
    assert sizes[1] < 0.95 * sizes[0], (
        f"with a strong weight_decay the squared weights sum to {sizes[1]}, not {sizes[0]}"
    )


def _size_of_weights(module: Any) -> float:
    """Sum of squared weights, without linear heads that are fitted after the training and have another penalty."""
    weights = [weight.detach() for name, weight in module.named_parameters() if ".head." not in name]
    return float(sum(weight[weight.isfinite()].square().sum() for weight in weights))


def check_prediction_is_deterministic(method: BaseEstimator) -> None:
    """With dropout, repeated predictions are equal, and the mode of the module is left as it was."""
    X, votes, _ = feature_crowd(3)
    fitted = fit_quickly(method, X, votes, **known_to(method, {"dropout": 0.5, "max_epochs": 2}))
    first = output(fitted, X)
    assert_equal(output(fitted, X), first, "two predictions differ")
    if is_network(fitted):
        assert not fitted.module_.training, "a fitted module is in training mode"
        fitted.module_.train()
        assert_equal(output(fitted, X), first, "prediction uses the training mode of the module")
        assert fitted.module_.training, "prediction changed the module's mode"


def check_wrapped_estimators_are_seeded(method: BaseEstimator) -> None:
    """A random aggregator, classifier or backbone without a seed of its own is seeded by `random_state`."""
    from sklearn.tree import DecisionTreeClassifier

    X, votes, _ = feature_crowd(3, accuracy=0.5)
    X = add_noise(X, _NOISE)
    tree = DecisionTreeClassifier(max_features=1, max_depth=2)
    random = {"fit_predict": _RandomPosterior(), "predict_proba": tree, "__call__": linear}
    takes = {name: c.method for name, c in method._constraints.items() if isinstance(c, NameOr)}
    wrapping = {name: random[kind] for name, kind in takes.items() if kind in random}
    for name, wrapped in wrapping.items():
        settings = known_to(method, {"max_epochs": 2}) | {name: wrapped}
        before = global_states()
        one, again = (fit_quickly(method, X, votes, **settings) for _ in range(2))
        assert global_states() == before, f"{name}={wrapped!r} uses a global generator"
        assert_equal(output(again, X), output(one, X), f"{name}={wrapped!r} is not seeded by random_state")
        assert_equal(again.posterior_, one.posterior_, f"{name}={wrapped!r} is not seeded by random_state")


def _changed(method: Any, X: Any, votes: Annotations) -> Annotations:
    """The same crowd with another class for every label that a fit with seed 0 holds out."""
    data = check_training_data(method, X, votes, None)
    held_out = method._hold_out(data, method.validation, np.random.default_rng(0))[1]
    assert held_out is not None
    pairs = set(zip(held_out.item.tolist(), held_out.worker.tolist()))
    is_held_out = np.array([pair in pairs for pair in zip(votes.item.tolist(), votes.worker.tolist())])
    label = np.where(is_held_out, (votes.label + 1 + votes.item % 2) % votes.n_classes, votes.label)
    ids: dict[str, Any] = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    return Annotations(votes.item, votes.worker, label, **ids)


def _without_heldout(history: list[dict[str, float]]) -> list[dict[str, float]]:
    """The history without the metric of early stopping."""
    return [{name: value for name, value in epoch.items() if name != "heldout"} for epoch in history]


class _RandomPosterior(MajorityVote):
    """An aggregator whose posterior is random and does not depend on the labels."""

    _constraints: ClassVar[dict[str, Constraint]] = {"random_state": RandomState()}

    def __init__(self, random_state: Seed = None) -> None:
        self.random_state = random_state

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        rng = make_generator(self.random_state)
        return Inference(rng.dirichlet(np.ones(annotations.n_classes), annotations.n_items))


class _Interrupted(BaseException):
    """Stands for the end of the process; no `except Exception` catches it."""


@contextmanager
def interrupted_at_checkpoint(number: int | None = None, written: bool = True) -> Iterator[list[Any]]:
    """Write a checkpoint after every epoch, and interrupt the fit at one of them."""
    from manyhands.nn.train import Checkpoint

    seen: list[Any] = []
    save = Checkpoint._save

    def save_or_interrupt(self: Checkpoint, *arguments: Any, **others: Any) -> None:
        seen.append(self)
        if written or len(seen) != number:
            save(self, *arguments, **others)
        if len(seen) == number:
            raise _Interrupted

    with (
        patch.object(Checkpoint, "_save", save_or_interrupt),
        patch("manyhands.nn.train.SECONDS", 0.0),
        suppress(_Interrupted),
    ):
        yield seen


def _arrays_of(fitted: Any) -> dict[str, npt.NDArray[Any]]:
    """All numeric arrays among the fitted attributes, by name."""
    results = results_of(fitted)
    return {name: v for name, v in results.items() if isinstance(v, np.ndarray) and v.ndim and v.dtype.kind in "fiu"}


def assert_same_fit(actual: Any, expected: Any, X: Any, what: str) -> None:
    """Assert that two fitted estimators have equal predictions and equal numeric attributes."""
    assert actual.history_ == expected.history_, f"{what}, in history_"
    assert_equal(output(actual, X), output(expected, X), what)
    for name, array in _arrays_of(expected).items():
        same = np.array_equal(getattr(actual, name), array, equal_nan=array.dtype.kind == "f")
        assert same, f"{what}, in {name}"


def _supervised(method: Any, X: Any, truth: npt.NDArray[np.int64], votes: Annotations, seed: int) -> Any:
    """A similar model trained on the truth: the same network, logistic regression, or the same embedding."""
    from manyhands.classifiers.two_stage import TwoStage

    right = Annotations(
        np.arange(len(truth)), np.zeros(len(truth), int), truth,
        item_ids=votes.item_ids, worker_ids=["truth"], classes=votes.classes,
    )  # fmt: skip
    if hasattr(method, "transform"):
        return fit_quickly(method, X, right, patience=None, max_epochs=10, random_state=seed)
    network = "hidden" in method.get_params(deep=False)
    like: Any = quick_copy(TwoStage("majority-vote", "network" if network else "logistic-regression"), patience=None)
    return quietly(lambda: like.set_params(max_epochs=10, random_state=seed).fit(X, right))


# ----------------------------------------------------------------------------------------------------
# All methods with features as estimators: parameters, repeated fits, pickles and saved models.


def check_clone_and_repr_round_trip(method: BaseEstimator) -> None:
    """scikit-learn can clone the estimator, `repr` reproduces it, and `set_params` refuses unknown parameters."""
    others: Any = (quick_copy(method, **{name: value}) for name, value in other_values(method).items())
    assert_clones_and_reprs_are_equal(fit_briefly(method, *feature_crowd(2)[:2]), [method, *others])


def check_every_parameter_is_validated(method: BaseEstimator) -> None:
    """Every constructor parameter has a constraint, and `fit` raises a ParameterError that names the parameter."""
    assert_bad_values_are_refused(quick_copy(method), *feature_crowd(2)[:2])


def check_every_parameter_is_read(method: BaseEstimator) -> None:
    """`fit` reads every constructor parameter, apart from its validation."""
    assert_parameters_are_read(brief_copy(method), *feature_crowd(2)[:2])


def check_second_fit_is_independent_of_the_first(method: BaseEstimator) -> None:
    """A second fit gives the results of a fresh copy, and no attribute of the first fit is left."""
    first, second = feature_crowd(3), feature_crowd(2, n_features=3, seed=1)
    twice = fit_briefly(method, *first[:2])
    twice.left_over_ = "an attribute of the first fit only"
    quietly(lambda: twice.fit(*second[:2]))
    once = fit_briefly(method, *second[:2])
    assert results_of(once).keys() == results_of(twice).keys(), "attributes of the first fit are left"
    assert_equal(output(twice, second[0]), output(once, second[0]), "the second fit depends on the first")


def check_copies_predict_the_same(method: BaseEstimator) -> None:
    """A pickled copy and a saved and loaded copy give bit-identical predictions and scores."""
    from manyhands.persistence import load_model

    X, votes, _ = feature_crowd(3)
    fitted = fit_briefly(method, X, votes)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        for again in (pickle.loads(pickle.dumps(fitted)), load_model(Path(folder) / "model")):
            assert type(again) is type(fitted) and repr(again) == repr(fitted), (
                "a copy has another type or other parameters"
            )
            assert_equal(output(again, X), output(fitted, X), "predictions of a copy differ")
            for name in (
                "posterior_",
                "worker_accuracy_",
                "worker_ids_",
                "classes_",
                "history_",
                "notes_",
                "n_features_in_",
            ):
                assert_equal(getattr(again, name), getattr(fitted, name), f"a copy has another {name}")
            if hasattr(fitted, "score"):
                assert again.score(X, votes) == fitted.score(X, votes), "the score of a copy differs"
    if is_network(fitted):
        error_of(lambda: fit_briefly(method, X, votes, backbone=linear).save("no such folder"), ParameterError)


# ----------------------------------------------------------------------------------------------------
# Classifiers: shapes, probabilities, classes, gold and score; grid search and pipelines.

CLASSIFIER_RESULTS = ("classes_", "worker_ids_", "worker_accuracy_", "posterior_", "history_", "module_", "notes_")


def check_classifier_results_have_documented_shapes(classifier: CrowdClassifier) -> None:
    """`fit` returns self and sets every documented result; probabilities sum to 1; labels are the caller's classes."""
    X, votes, _ = feature_crowd(3)
    fitted = brief_copy(classifier)
    assert quietly(lambda: fitted.fit(X, votes)) is fitted, "fit does not return self"
    missing = [name for name in CLASSIFIER_RESULTS if not hasattr(fitted, name)]
    assert not missing, f"fit does not set {missing}"
    assert fitted.posterior_.shape == (votes.n_items, votes.n_classes)
    assert len(fitted.worker_accuracy_) == len(fitted.worker_ids_) == votes.n_workers
    assert np.all((fitted.worker_accuracy_ >= 0) & (fitted.worker_accuracy_ <= 1))
    assert_probabilities(fitted.posterior_)
    proba = fitted.predict_proba(X)
    assert_probabilities(proba)
    assert_equal(
        fitted.predict(X), votes.classes[proba.argmax(axis=1)], "predict is not the class of the largest probability"
    )
    if hasattr(fitted, "confusion_"):
        assert fitted.confusion_.shape == (votes.n_workers, votes.n_classes, votes.n_classes)
        assert_probabilities(fitted.confusion_)
    assert len(fitted.predict(X[:0])) == 0


def check_classifier_accepts_many_classes(classifier: CrowdClassifier) -> None:
    """Two and seven classes are accepted, with two labels per item."""
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        proba = fit_briefly(classifier, X, votes).predict_proba(X)
        assert proba.shape == (140, n_classes)
        assert_probabilities(proba)


def check_items_without_labels_are_accepted(classifier: CrowdClassifier) -> None:
    """Items and workers without labels are accepted, and their results are finite."""
    X, votes, _ = feature_crowd(3)
    fitted = fit_briefly(classifier, np.vstack([X, X[:1]]), with_unlabelled(votes))
    assert_probabilities(fitted.posterior_)
    assert_probabilities(fitted.predict_proba(X))
    assert np.isfinite(fitted.worker_accuracy_).all()


def check_unseen_workers_and_unused_classes_are_accepted(classifier: CrowdClassifier) -> None:
    """Classes without labels and, in `score`, unseen workers are accepted; unknown classes are refused."""
    X, votes, _ = feature_crowd(3)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "unused class"],
    )  # fmt: skip
    fitted = fit_briefly(classifier, X, wider)
    assert_probabilities(fitted.predict_proba(X))
    unseen = [f"unseen worker {w}" for w in range(votes.n_workers)]
    ids: dict[str, Any] = {"item_ids": votes.item_ids, "worker_ids": unseen}
    assert np.isfinite(
        fitted.score(X, Annotations(votes.item, votes.worker, votes.label, classes=votes.classes, **ids))
    )
    other = Annotations(votes.item, votes.worker, votes.label, classes=["x", "y", "z"], **ids)
    error_of(lambda: fitted.score(X, other), AnnotationError, "an unknown class in score")


def check_classifier_uses_gold(classifier: CrowdClassifier) -> None:
    """A gold item has its gold class, also against all its labels and without any; unknown gold is refused."""
    X, votes, truth = feature_crowd(3)
    votes = with_unlabelled(votes)
    X = np.vstack([X, features_of(np.array([2]))])
    other = (truth[0] + 1) % 3  # against all labels
    gold = {votes.item_ids[0]: votes.classes[other], votes.item_ids[-1]: votes.classes[2]}
    fitted = fit_quickly(classifier, X, votes, gold)
    assert fitted.posterior_[0, other] > 0.99 and fitted.posterior_[-1, 2] > 0.99, (
        "a gold item does not have its gold class"
    )
    for bad in ({"no such item": votes.classes[0]}, {votes.item_ids[0]: "no such class"}):
        error_of(lambda: fit_quickly(classifier, X, votes, bad), AnnotationError, "unknown gold")  # noqa: B023


def check_score_is_higher_for_matching_features(classifier: CrowdClassifier) -> None:
    """`score` is finite and negative, and lower if the rows of X are shifted against the items."""
    X, votes, _ = feature_crowd(3, n_items=120)
    fitted = fit_quickly(classifier, X[:80], votes[:80])
    right, wrong = fitted.score(X[80:], votes[80:]), fitted.score(np.roll(X[80:], 1, axis=0), votes[80:])
    assert wrong < right < 0, f"score is {right} for matching rows and {wrong} for shifted ones"


def check_scores_of_labels_are_probabilities(classifier: CrowdClassifier) -> None:
    """`score` is the mean of `score_labels`, which are log-probabilities that sum to 1 over the labels of a worker.

    They do not depend on the codes of the held-out annotations, and `score_kind` names their likelihood.
    """
    X, votes, _ = feature_crowd(3, n_items=120)
    fitted, heldout = fit_briefly(classifier, X[:80], votes[:80]), votes[80:]
    assert_distribution(fitted, heldout, lambda labels: fitted.score_labels(X[80:], labels))
    assert fitted.score(X[80:], heldout) == fitted.score_labels(X[80:], heldout).mean(), "score is not the mean"
    again = fitted.score_labels(X[80:], in_other_codes(heldout))
    assert_close(np.sort(again), np.sort(fitted.score_labels(X[80:], heldout)), "the codes change scores", ROUNDING)


def check_grid_search_and_pipeline(classifier: CrowdClassifier) -> None:
    """The classifier works in a `Pipeline` and in `GridSearchCV` with `cv=KFold`, without any truth."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, votes, _ = feature_crowd(2)
    pipeline = make_pipeline(StandardScaler(), brief_copy(classifier))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{step}__random_state": [0, 1]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.predict(X)) <= set(votes.classes.tolist())


# ----------------------------------------------------------------------------------------------------
# Representation learners: shapes, separation of classes, aggregators, gold; pipelines and grid search.

REPRESENTATION_RESULTS = (
    "classes_",
    "worker_ids_",
    "worker_accuracy_",
    "aggregator_",
    "posterior_",
    "history_",
    "module_",
    "notes_",
)


def check_embedding_results_have_documented_shapes(learner: Any) -> None:
    """`fit` returns self and sets every documented result; embeddings are finite and have `embedding_size` columns."""
    X, votes, _ = feature_crowd(3)
    fitted: Any = brief_copy(learner, embedding_size=5)
    assert quietly(lambda: fitted.fit(X, votes)) is fitted, "fit does not return self"
    missing = [name for name in REPRESENTATION_RESULTS if not hasattr(fitted, name)]
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
    """Training reduces the scatter within classes relative to the total scatter by at least 30%."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    start, end = (
        fit_quickly(learner, X, votes, learning_rate=rate, patience=None).transform(X) for rate in (1e-9, 0.03)
    )
    assert _within_class_scatter(end, truth) < 0.7 * _within_class_scatter(start, truth), (
        "training did not separate classes"
    )


def check_any_aggregator_can_be_used(learner: Any) -> None:
    """`labels` accepts a name or an instance, which is not modified; another aggregator gives other posteriors."""
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


def check_embedding_accepts_many_classes(learner: Any) -> None:
    """Two and seven classes are accepted, with two labels per item, in batches of all classes and of some."""
    for n_classes in (2, 7):
        X, votes, _ = feature_crowd(n_classes, n_items=140, per_item=2, accuracy=0.95, n_features=8)
        for batch_size in (16, 64):
            embedding = fit_quickly(learner, X, votes, batch_size=batch_size, max_epochs=3).transform(X)
            assert embedding.shape == (140, learner.embedding_size) and np.isfinite(embedding).all()


def check_items_without_labels_are_not_used_for_training(learner: Any) -> None:
    """Items and workers without labels are accepted, and the features of such items have no influence."""
    X, votes, _ = feature_crowd(3)
    unlabelled = with_unlabelled(votes)
    one, other = (fit_briefly(learner, np.vstack([X, np.full((1, 4), far)]), unlabelled) for far in (0.0, 100.0))
    assert_probabilities(one.posterior_)
    assert np.isfinite(one.worker_accuracy_).all()
    assert_equal(other.transform(X), one.transform(X), "an item without labels influences the embedding")


def check_unused_classes_are_accepted(learner: Any) -> None:
    """With one more class that no label names, the embedding still separates the others."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=1.0)
    wider = Annotations(
        votes.item, votes.worker, votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids,
        classes=[*votes.classes.tolist(), "unused class"],
    )  # fmt: skip
    fitted = fit_quickly(learner, X, wider)
    assert accuracy(fitted, X, 3) >= 0.95


def check_embedding_uses_gold(learner: Any) -> None:
    """A gold item has its gold class, labelled or not, and changes the embedding; unknown gold is refused."""
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


def check_pipeline_and_grid_search(learner: Any) -> None:
    """The learner works in a `Pipeline` before `two-stage`, and `GridSearchCV` with `cv=KFold` tunes its parameters."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from manyhands.classifiers.two_stage import TwoStage

    X, votes, _ = feature_crowd(2)
    last = TwoStage("majority-vote", "logistic-regression")
    steps: Any = [("scale", StandardScaler()), ("embed", brief_copy(learner)), ("classify", last)]
    search = GridSearchCV(Pipeline(steps), {"embed__embedding_size": [2, 8]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.named_steps["embed"].transform(X).shape[1] in (2, 8)
    assert set(search.predict(X)) <= set(votes.classes.tolist())
