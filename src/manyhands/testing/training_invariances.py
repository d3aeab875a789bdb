"""What every training promises, of classifiers and of learners of representations: blindness, resumption, seeds, modes.

A promise about something that a method does not have, as a stop rule or a checkpoint, is kept by not having it.
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
from manyhands.estimator import BaseEstimator
from manyhands.randomness import Seed, make_generator
from manyhands.testing.assertions import assert_close, assert_equal, quietly, results_of
from manyhands.testing.learners import (
    EPOCHS,
    accuracy,
    blurred,
    global_states,
    is_network,
    known_to,
    learn,
    linear,
    output,
    quick,
)
from manyhands.testing.small_crowds import feature_crowd
from manyhands.validation import Constraint, NameOr, RandomState

_NOISE = 1.5  # at which training on the truth has nine of ten new items right


def check_held_out_labels_teach_nothing(method: BaseEstimator) -> None:
    """Other labels where the stop rule looks change what it sees, and not one bit of what is trained."""
    if "patience" not in method.get_params(deep=False):
        return
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    # A game may end where it began, and then what is trained after it differs: with a filler, none is played.
    has_filler = "imputer" in method.get_params(deep=False)
    one_round = {"round_patience": None, "generator_epochs": 1, "adversarial_epochs": 0 if has_filler else 1}
    settings = {"dropout": 0.3, "validation": 0.2, "patience": 100} | known_to(method, one_round | {"members": 1})
    changed = _changed(quick(method, **settings), X, votes)
    # Of one epoch the rule can choose no other, so whatever is trained after it must be the same too.
    one, other = (learn(method, X, labels, max_epochs=1, **settings) for labels in (votes, changed))
    if not one.history_:
        return
    assert _blind(one.history_) == _blind(other.history_), "a held-out label was learnt from"
    # What classifies behind an embedding learns from all labels, when nothing is left to stop.
    ask = (lambda fitted: fitted.transform(X)) if hasattr(method, "transform") else (lambda fitted: output(fitted, X))
    assert_equal(ask(other), ask(one), "a held-out label was learnt from")
    # Of several it may choose another one, from which a second training goes on; before that, all is the same.
    names: list[str] = []
    with patch("manyhands.nn.train.report", lambda done, total, what: names.append(what)):
        one = learn(method, X, votes, max_epochs=EPOCHS, **settings)
    other = learn(method, X, changed, max_epochs=EPOCHS, **settings)
    scores = [[epoch["heldout"] for epoch in model.history_ if "heldout" in epoch] for model in (one, other)]
    assert scores[0] and scores[0] != scores[1], "the stop rule sees other labels than those that are held out"
    chosen = next(name for name, epoch in zip(names, one.history_) if "heldout" in epoch)
    n = len(names) - names[::-1].index(chosen)
    assert _blind(one.history_[:n]) == _blind(other.history_[:n]), "a held-out label was learnt from"


def check_a_killed_fit_goes_on_with_the_same_result(method: BaseEstimator) -> None:
    """Killed early or late, after a checkpoint or in the middle of writing one, it ends as if nobody had killed it."""
    if "checkpoint" not in method.get_params(deep=False):
        return
    X, votes, truth = feature_crowd(3, accuracy=0.5)
    X = blurred(X, 3.0)  # so hard that most stop by their rule, and go back to an epoch from before the end
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    settings = {"dropout": 0.3, "learning_rate": 0.1, "patience": 3, "max_epochs": 9}
    whole = learn(method, X, votes, gold, **settings)
    n_epochs = len(whole.history_)
    if not n_epochs:
        return
    for at, written in ((max(n_epochs // 3, 1), True), (n_epochs - 1, False)):
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "kept"
            with _killed_at_checkpoint(at, written):
                learn(method, X, votes, gold, checkpoint=folder, **settings)
            assert [*folder.rglob("*.checkpoint")], "a killed fit leaves no checkpoint"
            with _killed_at_checkpoint() as seen:
                resumed = learn(method, X, votes, gold, checkpoint=folder, **settings)
            assert len(seen) == n_epochs - at + (not written), f"{len(seen)} epochs were run after {at} of {n_epochs}"
            assert not [*folder.rglob("*")], "a finished fit leaves something in the folder"
        _assert_same_fit(resumed, whole, X, f"killed at {at} of {n_epochs} epochs, it ended elsewhere")


def check_a_silent_worker_changes_nothing(method: BaseEstimator) -> None:
    """One who gave no label, in the midst of the others, moves nothing that is said of anything but himself.

    To 1e-6: where all workers stand in one array, its length decides in which lanes the last bits are rounded.
    """
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    place = 4
    ids = np.insert(votes.worker_ids.astype(object), place, "silent").tolist()
    wider = Annotations(
        votes.item, votes.worker + (votes.worker >= place), votes.label,
        item_ids=votes.item_ids, worker_ids=ids, classes=votes.classes,
    )  # fmt: skip
    settings = known_to(method, {"dropout": 0.3, "max_epochs": EPOCHS})
    alone, with_him = (learn(method, X, labels, **settings) for labels in (votes, wider))
    assert_close(output(with_him, X), output(alone, X), "a silent worker shows in what was learnt")
    for name, array in _arrays_of(alone).items():
        found = getattr(with_him, name)
        found = found if len(found) == len(array) else np.delete(found, place, axis=0)
        assert_close(np.nan_to_num(found), np.nan_to_num(array), f"a silent worker shows in {name}")


def check_perfect_workers_are_training_on_the_truth(method: BaseEstimator) -> None:
    """Where every label is right, new items are classified as by training on the truth, within two points.

    On the average of three seeds: from other first weights, one and the same network differs by a point and a half.
    """
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    X = blurred(X, _NOISE)
    settings = known_to(method, {"patience": None, "max_epochs": 10})
    seeds = [known_to(method, {"random_state": seed}) for seed in range(3)]
    ours = [learn(method, X, votes, **settings, **seed) for seed in seeds]
    by_truth = [_supervised(method, X, truth, votes, seed) for seed in range(3)]
    found, expected = (float(np.mean([accuracy(m, X, 3, _NOISE) for m in models])) for models in (ours, by_truth))
    assert abs(found - expected) <= 0.02 and expected > 0.8, f"{found:.3f} are right, by the truth {expected:.3f}"


def check_prediction_is_at_rest(method: BaseEstimator) -> None:
    """Whatever is dropped in training, the same rows give the same output, and the module's mode is left as it was."""
    X, votes, _ = feature_crowd(3)
    fitted = learn(method, X, votes, **known_to(method, {"dropout": 0.5, "max_epochs": 2}))
    first = output(fitted, X)
    assert_equal(output(fitted, X), first, "two predictions differ")
    if is_network(fitted):
        assert not fitted.module_.training, "a fitted module is in training mode"
        fitted.module_.train()
        assert_equal(output(fitted, X), first, "a module in training mode predicts as it trains")
        assert fitted.module_.training, "prediction changed the module's mode"


def check_what_is_wrapped_is_seeded(method: BaseEstimator) -> None:
    """A random aggregator, classifier or backbone without a seed of its own draws from `random_state` alone."""
    from sklearn.tree import DecisionTreeClassifier

    X, votes, _ = feature_crowd(3, accuracy=0.5)
    X = blurred(X, _NOISE)
    tree = DecisionTreeClassifier(max_features=1, max_depth=2)
    random = {"fit_predict": _Dice(), "predict_proba": tree, "__call__": linear}
    takes = {name: c.method for name, c in method._constraints.items() if isinstance(c, NameOr)}
    wrapping = {name: random[kind] for name, kind in takes.items() if kind in random}
    for name, wrapped in wrapping.items():
        settings = known_to(method, {"max_epochs": 2}) | {name: wrapped}
        before = global_states()
        one, again = (learn(method, X, votes, **settings) for _ in range(2))
        assert global_states() == before, f"{name}={wrapped!r} uses a global generator"
        assert_equal(output(again, X), output(one, X), f"{name}={wrapped!r} is not seeded by random_state")
        assert_equal(again.posterior_, one.posterior_, f"{name}={wrapped!r} is not seeded by random_state")


def _changed(method: Any, X: Any, votes: Annotations) -> Annotations:
    """The same crowd, but that every label which a fit with seed 0 holds out names another class."""
    held_out = method._hold_out(method._task(X, votes, None), method.validation, np.random.default_rng(0))[1]
    assert held_out is not None
    pairs = set(zip(held_out.item.tolist(), held_out.worker.tolist()))
    away = np.array([pair in pairs for pair in zip(votes.item.tolist(), votes.worker.tolist())])
    label = np.where(away, (votes.label + 1 + votes.item % 2) % votes.n_classes, votes.label)
    ids: dict[str, Any] = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    return Annotations(votes.item, votes.worker, label, **ids)


def _blind(history: list[dict[str, float]]) -> list[dict[str, float]]:
    return [{name: value for name, value in epoch.items() if name != "heldout"} for epoch in history]


class _Dice(MajorityVote):
    """An aggregator that asks nobody: its posterior is drawn."""

    _constraints: ClassVar[dict[str, Constraint]] = {"random_state": RandomState()}

    def __init__(self, random_state: Seed = None) -> None:
        self.random_state = random_state

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        rng = make_generator(self.random_state)
        return Inference(rng.dirichlet(np.ones(annotations.n_classes), annotations.n_items))


class _Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def _killed_at_checkpoint(number: int | None = None, written: bool = True) -> Iterator[list[Any]]:
    """Every epoch makes a checkpoint, at this one of which the fit ends: when it is written, or just before."""
    from manyhands.nn.checkpoint import Checkpoint

    seen: list[Any] = []
    save = Checkpoint._save

    def dying(self: Checkpoint, *arguments: Any, **others: Any) -> None:
        seen.append(self)
        if written or len(seen) != number:
            save(self, *arguments, **others)
        if len(seen) == number:
            raise _Killed

    with (
        patch.object(Checkpoint, "_save", dying),
        patch("manyhands.nn.checkpoint.SECONDS", 0.0),
        suppress(_Killed),
    ):
        yield seen


def _arrays_of(fitted: Any) -> dict[str, npt.NDArray[Any]]:
    """Everything numeric that a fit has left, by name."""
    found = results_of(fitted)
    return {name: v for name, v in found.items() if isinstance(v, np.ndarray) and v.ndim and v.dtype.kind in "fiu"}


def _assert_same_fit(found: Any, expected: Any, X: Any, what: str) -> None:
    assert found.history_ == expected.history_, f"{what}, in history_"
    assert_equal(output(found, X), output(expected, X), what)
    for name, array in _arrays_of(expected).items():
        same = np.array_equal(getattr(found, name), array, equal_nan=array.dtype.kind == "f")
        assert same, f"{what}, in {name}"


def _supervised(method: Any, X: Any, truth: npt.NDArray[np.int64], votes: Annotations, seed: int) -> Any:
    """The truth, learnt by a like classifier: the same network, or logistic regression; or by the same embedding."""
    from manyhands.classifiers.two_stage import TwoStage

    right = Annotations(
        np.arange(len(truth)), np.zeros(len(truth), int), truth,
        item_ids=votes.item_ids, worker_ids=["truth"], classes=votes.classes,
    )  # fmt: skip
    if hasattr(method, "transform"):
        return learn(method, X, right, patience=None, max_epochs=10, random_state=seed)
    network = "hidden" in method.get_params(deep=False)
    like: Any = quick(TwoStage("majority-vote", "network" if network else "logistic-regression"), patience=None)
    return quietly(lambda: like.set_params(max_epochs=10, random_state=seed).fit(X, right))
