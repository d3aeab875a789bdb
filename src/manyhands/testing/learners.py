"""How the checks train what learns from features, classifiers and learners of representations alike, and ask it."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.estimator import BaseEstimator
from manyhands.testing.assertions import copy_of, quietly
from manyhands.testing.small_crowds import features_of, with_silence

M = TypeVar("M", bound=BaseEstimator)

# A network that learns the checks' data in a tenth of a second; a method takes those that it has.
QUICK = {"hidden": (8,), "dropout": 0.0, "learning_rate": 0.03, "batch_size": 16, "max_epochs": 25}
_FEW_ROUNDS = {"rounds": 2, "members": 2, "generator_epochs": 2, "discriminator_epochs": 1, "adversarial_epochs": 2}
_LITTLE_WORK = {"batches_per_epoch": 1, "labels": "majority-vote", "aggregator": "dawid-skene"}
EPOCHS = 7  # more than the five of a warm-up: every part of a training is reached, whatever it has learnt by then


def quick(method: M, /, **changes: Any) -> M:
    """A fresh copy with a seed, small and fast where it is a network."""
    copy: M = copy_of(method, **(known_to(method, QUICK | _FEW_ROUNDS | _LITTLE_WORK) | changes))
    return copy


def brief(method: M, /, **changes: Any) -> M:
    """Such a copy that trains for a few epochs, for promises that hold however well it learns."""
    return quick(method, **(known_to(method, {"max_epochs": EPOCHS}) | changes))


def known_to(method: BaseEstimator, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these parameters that the method has."""
    return {name: value for name, value in parameters.items() if name in method.get_params(deep=False)}


def learn(
    method: BaseEstimator, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """A fitted copy; Any, because every method has results of its own."""
    copy: Any = quick(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def briefly(
    method: BaseEstimator, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """A fitted copy of the kind `brief` makes."""
    copy: Any = brief(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def output(fitted: Any, X: Any) -> npt.NDArray[np.float64]:
    """What it makes of features: the probabilities of a classifier, the embedding of a learner of representations."""
    found: npt.NDArray[np.float64] = (
        fitted.predict_proba(X) if hasattr(fitted, "predict_proba") else fitted.transform(X)
    )
    return found


def is_network(fitted: Any) -> bool:
    return hasattr(fitted.module_, "state_dict")


def accuracy(fitted: Any, X: Any, n_classes: int, noise: float = 0.0) -> float:
    """On fresh items of the checks' data; of an embedding, by logistic regression on the training items' classes."""
    truth = np.arange(300) % n_classes
    fresh = blurred(features_of(truth, seed=7), noise, seed=8)
    if hasattr(fitted, "predict"):
        return float(np.mean(fitted.predict(fresh) == fitted.classes_[truth]))
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(fitted.transform(X), fitted.posterior_.argmax(axis=1))
    return float(np.mean(model.predict(fitted.transform(fresh)) == truth))


def blurred(X: npt.NDArray[np.float64], noise: float, seed: int = 5) -> npt.NDArray[np.float64]:
    """Features whose classes overlap the more, the more noise."""
    return X + np.random.default_rng(seed).normal(0, 1, X.shape) * noise


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


def linear(n_features: int, n_outputs: int) -> Any:
    """A backbone of the caller's own."""
    from manyhands.nn.backbones import mlp

    return mlp((n_features, n_outputs))


def with_spammer(votes: Annotations) -> Annotations:
    """One more worker, who labels everything at random."""
    wider = with_silence(votes)[: votes.n_items]
    label = np.random.default_rng(4).integers(0, votes.n_classes, votes.n_items)
    return wider.with_more(np.arange(votes.n_items), np.full(votes.n_items, votes.n_workers), label)


def global_states() -> list[bytes]:
    """What the global generators would give next; torch's only where a method has loaded it."""
    torch: Any = sys.modules.get("torch")
    states = [pickle.dumps(random.getstate()), pickle.dumps(np.random.get_state())]  # noqa: NPY002
    return states + ([] if torch is None else [torch.get_rng_state().numpy().tobytes()])
