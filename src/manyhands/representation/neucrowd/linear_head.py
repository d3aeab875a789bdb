"""Logistic regression behind an embedding, as the last layer of a network, and the C by which it foretells best.

    minimise  C sum_ik -r_ik log softmax(V e_i / s + b)_k  +  |V|^2 / 2

r are the classes of the items, and s^2 is the variance of all columns of e together: so one C means the same whatever
their number and scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.linear.principal_axes import rotate_to_principal_axes
from manyhands.linear.softmax_regression import newton_ascent
from manyhands.nn.inference import outputs

Places = npt.NDArray[np.intp]

CS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_FOLDS = 5
_ENOUGH = 4000
_STEPS = 30  # of Newton; the regression of one C begins where that of the smaller one ended
_NEVER = -1e4  # the logit of a class that was never met: its probability is 0


class Seen(nn.Module):
    """What a regression sees of an item: its embedding, and the features beside it if there are `n_features`.

    Features are scaled by `ratio`, so that both parts vary equally.
    """

    ratio: torch.Tensor

    def __init__(self, embedder: nn.Module, n_features: int) -> None:
        super().__init__()
        self.embedder, self.n_features = embedder, n_features
        self.register_buffer("ratio", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        embedding: torch.Tensor = self.embedder(x)
        return torch.hstack([embedding, self.ratio * x.flatten(1)]) if self.n_features else embedding

    def balance(self, rows: Rows, items: Places) -> Array:
        """(n, n_columns) these items as the regression sees them, from now on with a ratio that is right for them."""
        found = outputs(self, rows, items).numpy()
        if self.n_features:
            variance = found.var(axis=0)
            own, other = float(variance[: -self.n_features].sum()), float(variance[-self.n_features :].sum())
            ratio = np.sqrt(own / other) if own > 0 and other > 0 else 1.0
            found[:, -self.n_features :] *= ratio
            self.ratio.mul_(ratio)
        return np.asarray(found)


class Classified(nn.Module):
    """An embedding with a linear layer behind it; the embedding alone is `seen.embedder`."""

    def __init__(self, seen: Seen, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.seen = seen
        self.head = nn.Linear(embedding_size + seen.n_features, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.seen(x))
        return logits

    @torch.no_grad()
    def classify_by(self, weights: Array) -> None:
        """Take the weights of a regression (embedding_size + 1, n_classes), the intercepts last."""
        self.head.weight.copy_(torch.from_numpy(weights[:-1].T))
        self.head.bias.copy_(torch.from_numpy(weights[-1]))


class Split(NamedTuple):
    """One view of the items: where they are in an embedding, which of them teach, and which of them are foretold."""

    embedding: Array  # (n, embedding_size)
    taught: Places
    asked: Places


def choose_strength(sights: Sequence[Split], target: Array) -> float:
    """The C by which regressions on the items that teach foretell best the others' classes, over all sights."""
    total = np.zeros(len(CS))
    for embedding, all_taught, all_asked in sights:
        taught, asked = _thinned(all_taught), _thinned(all_asked)
        wanted = target[asked]
        for c, weights in enumerate(regressions(embedding[taught], target[taught], CS)):
            scores = embedding[asked] @ weights[:-1] + weights[-1]
            log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
            total[c] += (wanted * np.maximum(log_p, np.log(1e-6))).sum()
    return CS[int(np.argmax(total))]


def _thinned(places: Places) -> Places:
    """At most so many of them, evenly from first to last: a few thousand say which C is best."""
    return places[np.linspace(0, len(places) - 1, _ENOUGH).astype(np.intp)] if len(places) > _ENOUGH else places


def folds(embedding: Array, target: Array, rng: np.random.Generator) -> list[Split]:
    """Five sights of one embedding, in each of which another fifth of every class is asked for."""
    shuffled = rng.permutation(len(target))
    fold = np.empty(len(target), np.intp)
    fold[shuffled[np.argsort(target[shuffled].argmax(axis=1), kind="stable")]] = np.arange(len(target)) % _FOLDS
    parts = [(np.flatnonzero(fold != out), np.flatnonzero(fold == out)) for out in range(min(_FOLDS, len(target)))]
    return [Split(embedding, taught, asked) for taught, asked in parts if len(taught)]


def regressions(embedding: Array, target: Array, strengths: Sequence[float]) -> list[Array]:
    """(embedding_size + 1, n_classes) for each C, in increasing order, the intercepts last; targets' rows sum to 1.

    A class that no target names has no weight and no probability.
    """
    met = np.flatnonzero(target.any(axis=0))
    rows = rotate_to_principal_axes(embedding, standardise=False)
    weights, found = np.zeros((rows.X.shape[1] + 1, len(met))), []
    for C in strengths:
        if len(met) > 1:
            weights = newton_ascent(rows.X, target[:, met], weights, (rows.variance or 1.0) / C, _STEPS)
        whole = np.zeros((embedding.shape[1] + 1, target.shape[1]))
        whole[-1] = _NEVER
        whole[:, met] = rows.in_raw_features(weights)
        found.append(whole)
    return found
