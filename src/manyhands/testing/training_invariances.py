"""Training of classifiers and representation learners: early stopping, checkpoints, seeds, prediction mode.

A check of something that a method does not have, such as early stopping or checkpoints, passes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Gold, Inference
from manyhands.aggregation.majority_vote import MajorityVote
from manyhands.annotations import Annotations
from manyhands.classifiers.training_data import check_training_data
from manyhands.estimator import BaseEstimator
from manyhands.randomness import Seed, make_generator
from manyhands.testing.assertions import assert_close, assert_equal, quietly, results_of
from manyhands.testing.learners import (
    EPOCHS,
    accuracy,
    add_noise,
    fit_quickly,
    global_states,
    is_network,
    known_to,
    linear,
    output,
    quick_copy,
)
from manyhands.testing.small_crowds import feature_crowd
from manyhands.validation import Constraint, NameOr, RandomState

_NOISE = 1.5  # standard deviation at which training on the truth reaches an accuracy of about 0.9


def check_held_out_labels_are_not_used_for_training(method: BaseEstimator) -> None:
    """Changing the labels held out for early stopping changes its metric, and nothing that is trained.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
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
    """A fit interrupted early or late, after a checkpoint or while writing one, resumes to a bit-identical result.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
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

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
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
        found = getattr(with_worker, name)
        found = found if len(found) == len(array) else np.delete(found, place, axis=0)
        assert_close(np.nan_to_num(found), np.nan_to_num(array), f"a worker without labels changes {name}")


def check_perfect_workers_equal_supervised_training(method: BaseEstimator) -> None:
    """If every label is right, the accuracy on new items is that of training on the truth, within two points.

    Averaged over three seeds, because the accuracy of one network varies by 1.5 points with its initialisation.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    X = add_noise(X, _NOISE)
    settings = known_to(method, {"patience": None, "max_epochs": 10})
    seeds = [known_to(method, {"random_state": seed}) for seed in range(3)]
    ours = [fit_quickly(method, X, votes, **settings, **seed) for seed in seeds]
    by_truth = [_supervised(method, X, truth, votes, seed) for seed in range(3)]
    found, expected = (float(np.mean([accuracy(m, X, 3, _NOISE) for m in models])) for models in (ours, by_truth))
    assert abs(found - expected) <= 0.02 and expected > 0.8, (
        f"the accuracy is {found:.3f}, trained on the truth {expected:.3f}"
    )


def check_weight_decay_makes_weights_smaller(method: BaseEstimator) -> None:
    """Every network method has `weight_decay`, and a strong one makes the weights of its networks smaller.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
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
    """With dropout, repeated predictions are equal, and the mode of the module is left as it was.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
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
    """A random aggregator, classifier or backbone without a seed of its own is seeded by `random_state`.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
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
    """Write a checkpoint after every epoch, and interrupt the fit at one of them.

    Parameters
    ----------
    number : int or None, default=None
        The checkpoint at which the fit ends, counted from 1; None for no interruption.
    written : bool, default=True
        Whether this checkpoint is written before the fit ends.

    Yields
    ------
    list
        One entry for each checkpoint so far.
    """
    from manyhands.nn.checkpoint import Checkpoint

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
        patch("manyhands.nn.checkpoint.SECONDS", 0.0),
        suppress(_Interrupted),
    ):
        yield seen


def _arrays_of(fitted: Any) -> dict[str, npt.NDArray[Any]]:
    """All numeric arrays among the fitted attributes, by name."""
    found = results_of(fitted)
    return {name: v for name, v in found.items() if isinstance(v, np.ndarray) and v.ndim and v.dtype.kind in "fiu"}


def assert_same_fit(found: Any, expected: Any, X: Any, what: str) -> None:
    """Assert that two fitted estimators have equal predictions and equal numeric attributes.

    Parameters
    ----------
    found : BaseEstimator
        A fitted estimator.
    expected : BaseEstimator
        The fitted estimator to compare with.
    X : array-like
        Features to predict on.
    what : str
        Beginning of the error message.
    """
    assert found.history_ == expected.history_, f"{what}, in history_"
    assert_equal(output(found, X), output(expected, X), what)
    for name, array in _arrays_of(expected).items():
        same = np.array_equal(getattr(found, name), array, equal_nan=array.dtype.kind == "f")
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
