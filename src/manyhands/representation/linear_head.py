"""Logistic regression behind an embedding, its C chosen by cross-validation, as the last layer of a network."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.kernels import Array

CS = tuple(float(c) for c in np.logspace(-4, 4, 9))
_FOLDS = 5
_TINY = 1e-6  # the least probability of a class in a fold's score
_NEVER = -1e4  # the logit of a class that was never met: its probability is 0


class LinearHead(NamedTuple):
    """A logistic regression: logits = weight e + bias, and the C it was fitted with."""

    weight: Array  # (n_classes, embedding_size)
    bias: Array  # (n_classes,)
    C: float


class Classified(nn.Module):
    """An embedding with a linear layer behind it; the embedding alone is `embedder`."""

    def __init__(self, embedder: nn.Module, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.embedder = embedder
        self.head = nn.Linear(embedding_size, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.embedder(x))
        return logits

    @torch.no_grad()
    def take(self, head: LinearHead) -> None:
        """Classify by this regression from now on."""
        self.head.weight.copy_(torch.from_numpy(head.weight))
        self.head.bias.copy_(torch.from_numpy(head.bias))


def fit_head(embedding: Array, target: npt.NDArray[np.integer], n_classes: int, rng: np.random.Generator) -> LinearHead:
    """The regression of classes on an embedding, with the C by which left-out items were foretold best.

    Folds have equal shares of every class. With a single class there is nothing to tell apart.
    """
    met, code = np.unique(target, return_inverse=True)
    weight, bias = np.zeros((n_classes, embedding.shape[1])), np.full(n_classes, _NEVER)
    bias[met] = 0.0
    if len(met) < 2:
        return LinearHead(weight, bias, float("nan"))
    best = CS[int(np.argmax(_foretold(embedding, code, rng)))]
    (model,) = _path(embedding, code, (best,))
    coefficients, intercept = model.coef_, model.intercept_
    if len(met) == 2:  # scikit-learn has one row for two classes
        coefficients, intercept = np.vstack([-coefficients, coefficients]) / 2, np.hstack([-intercept, intercept]) / 2
    weight[met], bias[met] = coefficients, intercept
    return LinearHead(weight, bias, best)


def _foretold(embedding: Array, code: npt.NDArray[np.intp], rng: np.random.Generator) -> Array:
    """(len(CS),) the mean log-probability of the classes of left-out items, for each C."""
    shuffled = rng.permutation(len(code))
    fold = np.empty(len(code), np.intp)
    fold[shuffled[np.argsort(code[shuffled], kind="stable")]] = np.arange(len(code)) % _FOLDS  # class after class
    total = np.zeros(len(CS))
    for out in range(_FOLDS):
        left, kept = np.flatnonzero(fold == out), np.flatnonzero(fold != out)
        if len(left) == 0 or len(np.unique(code[kept])) < 2:
            continue
        for c, model in enumerate(_path(embedding[kept], code[kept], CS)):
            proba = np.zeros((len(left), code.max() + 1))
            proba[:, model.classes_] = model.predict_proba(embedding[left])
            total[c] += np.log(np.maximum(proba[np.arange(len(left)), code[left]], _TINY)).sum()
    return total / len(code)


def _path(embedding: Array, code: npt.NDArray[np.intp], strengths: tuple[float, ...]) -> list[Any]:
    """A regression for each C, each of which begins where the one before ended."""
    from copy import deepcopy

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model, found = LogisticRegression(max_iter=1000, warm_start=True), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a C that lets weights grow without end is a bad one
        for C in strengths:
            found.append(deepcopy(model.set_params(C=C).fit(embedding, code)))
    return found
