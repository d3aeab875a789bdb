"""Fast training of classifiers and representation learners in the checks, and their predictions."""

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
from manyhands.testing.small_crowds import features_of, with_unlabelled

M = TypeVar("M", bound=BaseEstimator)

# A network that fits the data of the checks in a tenth of a second; each method uses the parameters that it has.
QUICK = {"hidden": (8,), "dropout": 0.0, "learning_rate": 0.03, "batch_size": 16, "max_epochs": 25}
_FEW_ROUNDS = {"rounds": 2, "members": 2, "generator_epochs": 2, "discriminator_epochs": 1, "adversarial_epochs": 2}
_FEW_ROUNDS |= {"generator__epochs": 2, "discriminator__epochs": 1, "adversarial__epochs": 2}  # in groups of options
_LITTLE_WORK = {
    "tuplets__batches_per_epoch": 1,
    "search": None,
    "warm_up": 1,
    "labels": "majority-vote",
    "aggregator": "dawid-skene",
}
EPOCHS = 7  # more than the five of a warm-up, so that every phase of a training is reached


def quick_copy(method: M, /, **changes: Any) -> M:
    """Copy an estimator with parameters for fast training.

    Parameters
    ----------
    method : BaseEstimator
        A classifier or representation learner.
    **changes : object
        Parameters with other values.

    Returns
    -------
    BaseEstimator
        An unfitted copy with a seed; small where it is a network.
    """
    small = known_to(method, QUICK | _FEW_ROUNDS | _LITTLE_WORK)
    if not isinstance(getattr(method, "warm_up", None), int):  # of ICED, a group of options
        small.pop("warm_up", None)
    groups = {name.partition("__")[0] for name in changes if "__" in name}
    small = {name: value for name, value in small.items() if value is not None or name not in groups}
    copy: M = copy_of(method, **(small | changes))
    return copy


def brief_copy(method: M, /, **changes: Any) -> M:
    """Copy an estimator for training of a few epochs, for checks that do not depend on the accuracy reached.

    Parameters
    ----------
    method : BaseEstimator
        A classifier or representation learner.
    **changes : object
        Parameters with other values.

    Returns
    -------
    BaseEstimator
        An unfitted copy.
    """
    return quick_copy(method, **(known_to(method, {"max_epochs": EPOCHS}) | changes))


def known_to(method: BaseEstimator, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Select the parameters that an estimator has.

    Parameters
    ----------
    method : BaseEstimator
        An estimator.
    parameters : mapping
        Values by name.

    Returns
    -------
    dict
        Those that are parameters of the estimator, or options of its groups.
    """
    return {name: value for name, value in parameters.items() if name in method.get_params()}


def fit_quickly(
    method: BaseEstimator, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """Fit the copy made by `quick_copy`.

    Parameters
    ----------
    method : BaseEstimator
        A classifier or representation learner.
    X : array-like
        Features.
    votes : Annotations
        The crowd's labels.
    gold : dict, default=None
        ``{item: class}`` where the truth is known.
    **changes : object
        Parameters with other values.

    Returns
    -------
    BaseEstimator
        The fitted copy; typed as Any, because every method has attributes of its own.
    """
    copy: Any = quick_copy(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def fit_briefly(
    method: BaseEstimator, X: Any, votes: Annotations, gold: Mapping[Any, Any] | None = None, /, **changes: Any
) -> Any:
    """Fit the copy made by `brief_copy`.

    Parameters
    ----------
    method : BaseEstimator
        A classifier or representation learner.
    X : array-like
        Features.
    votes : Annotations
        The crowd's labels.
    gold : dict, default=None
        ``{item: class}`` where the truth is known.
    **changes : object
        Parameters with other values.

    Returns
    -------
    BaseEstimator
        The fitted copy; typed as Any, because every method has attributes of its own.
    """
    copy: Any = brief_copy(method, **changes)
    return quietly(lambda: copy.fit(X, votes, gold))


def output(fitted: Any, X: Any) -> npt.NDArray[np.float64]:
    """Predict with a fitted estimator of either family.

    Parameters
    ----------
    fitted : BaseEstimator
        A fitted classifier or representation learner.
    X : array-like
        Features.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
        Class probabilities of a classifier, embeddings of a representation learner.
    """
    found: npt.NDArray[np.float64] = (
        fitted.predict_proba(X) if hasattr(fitted, "predict_proba") else fitted.transform(X)
    )
    return found


def is_network(fitted: Any) -> bool:
    """Whether a fitted estimator contains a torch module.

    Parameters
    ----------
    fitted : BaseEstimator
        A fitted estimator.

    Returns
    -------
    bool
        True for networks.
    """
    return hasattr(fitted.module_, "state_dict")


def accuracy(fitted: Any, X: Any, n_classes: int, noise: float = 0.0) -> float:
    """Accuracy on new items.

    Parameters
    ----------
    fitted : BaseEstimator
        A fitted estimator; for a representation learner, logistic regression is trained on the embedding.
    X : array-like
        Features of the training items.
    n_classes : int
        Number of classes.
    noise : float, default=0.0
        Standard deviation of the noise added to the new features.

    Returns
    -------
    float
        Share of right predictions on 300 items.
    """
    truth = np.arange(300) % n_classes
    fresh = add_noise(features_of(truth, seed=7), noise, seed=8)
    if hasattr(fitted, "predict"):
        return float(np.mean(fitted.predict(fresh) == fitted.classes_[truth]))
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000).fit(fitted.transform(X), fitted.posterior_.argmax(axis=1))
    return float(np.mean(model.predict(fitted.transform(fresh)) == truth))


def add_noise(X: npt.NDArray[np.float64], noise: float, seed: int = 5) -> npt.NDArray[np.float64]:
    """Add normal noise to features, so that classes overlap.

    Parameters
    ----------
    X : ndarray of shape (n_items, n_features)
        Features.
    noise : float
        Standard deviation of the noise.
    seed : int, default=5
        Seed of the noise.

    Returns
    -------
    ndarray of shape (n_items, n_features)
        Noisy features.
    """
    return X + np.random.default_rng(seed).normal(0, 1, X.shape) * noise


class RowGetter:
    """An object that returns single rows, as a torch Dataset does.

    Parameters
    ----------
    rows : ndarray of shape (n_items, n_features)
        Features.
    """

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: int) -> npt.NDArray[Any]:
        if not isinstance(i, int):
            raise TypeError("rows are returned one at a time")
        return np.asarray(self._rows[i])


class NamedColumns:
    """A table with named columns that has what all data frames have in common; no library is needed.

    Parameters
    ----------
    columns : list of str
        Names of the columns.
    values : ndarray of shape (n_items, n_columns)
        Features.
    """

    def __init__(self, columns: list[str], values: npt.NDArray[Any]) -> None:
        self.columns = columns
        self._values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""
        return self._values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._values, dtype)


def linear(n_features: int, n_outputs: int) -> Any:
    """Build a linear network, as an example of a backbone given by a user.

    Parameters
    ----------
    n_features : int
        Number of inputs.
    n_outputs : int
        Number of outputs.

    Returns
    -------
    torch.nn.Module
        The network.
    """
    from manyhands.nn.backbones import mlp

    return mlp((n_features, n_outputs))


def with_spammer(votes: Annotations) -> Annotations:
    """Add a worker who labels every item at random.

    Parameters
    ----------
    votes : Annotations
        The crowd's labels.

    Returns
    -------
    Annotations
        The labels with those of the spammer, who is the last worker.
    """
    wider = with_unlabelled(votes)[: votes.n_items]
    label = np.random.default_rng(4).integers(0, votes.n_classes, votes.n_items)
    return wider.with_more(np.arange(votes.n_items), np.full(votes.n_items, votes.n_workers), label)


def global_states() -> list[bytes]:
    """Serialise the states of the global random generators.

    Returns
    -------
    list of bytes
        States of random and numpy, and of torch if it is imported.
    """
    torch: Any = sys.modules.get("torch")
    states = [pickle.dumps(random.getstate()), pickle.dumps(np.random.get_state())]  # noqa: NPY002
    return states + ([] if torch is None else [torch.get_rng_state().numpy().tobytes()])
