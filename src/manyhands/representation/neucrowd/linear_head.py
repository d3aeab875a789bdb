"""Logistic regression on an embedding, as the last layer of a network, with C chosen by held-out log-likelihood.

    minimise  C sum_ik -r_ik log softmax(V e_i / s + b)_k  +  |V|^2 / 2

r are the (soft) classes of the items, and s^2 is the variance of all columns of e together, so that one C means the
same whatever the number and the scale of the columns.
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

Indices = npt.NDArray[np.intp]

GRIDS = {
    "decades": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4),
    "fine": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
}
_N_FOLDS = 5
_MAX_ITEMS = 4000  # of a fold: a few thousand items are enough to choose C
_NEWTON_STEPS = 30  # at most; the regression of one C starts at the solution of the next smaller C
_IMPOSSIBLE = -1e4  # logit of a class that no target has: its probability is 0


class HeadInput(nn.Module):
    """Input of the regression: the embedding and, if there are any `n_features`, the features beside it.

    Features are multiplied by `ratio`, so that both parts have the same variance.

    Parameters
    ----------
    embedder : torch.nn.Module
        From features to embeddings.
    n_features : int
        Number of features to append; 0 for the embedding alone.
    """

    ratio: torch.Tensor

    def __init__(self, embedder: nn.Module, n_features: int) -> None:
        super().__init__()
        self.embedder, self.n_features = embedder, n_features
        self.register_buffer("ratio", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input of the regression, of shape (n_rows, embedding_size + n_features)."""
        embedding: torch.Tensor = self.embedder(x)
        return torch.hstack([embedding, self.ratio * x.flatten(1)]) if self.n_features else embedding

    def fit_ratio(self, rows: Rows, items: Indices) -> Array:
        """Set `ratio` from these items, and return their input of the regression.

        Parameters
        ----------
        rows : Rows
            Features.
        items : ndarray of int, shape (n,)
            Rows to use.

        Returns
        -------
        ndarray of shape (n, embedding_size + n_features)
        """
        found = outputs(self, rows, items).numpy()
        if self.n_features:
            variance = found.var(axis=0)
            own, other = float(variance[: -self.n_features].sum()), float(variance[-self.n_features :].sum())
            ratio = np.sqrt(own / other) if own > 0 and other > 0 else 1.0
            found[:, -self.n_features :] *= ratio
            self.ratio.mul_(ratio)
        return np.asarray(found)


class EmbeddingClassifier(nn.Module):
    """An embedding followed by a linear layer; the network of the embedding alone is `inputs.embedder`.

    Parameters
    ----------
    inputs : HeadInput
        From features to the input of the linear layer.
    embedding_size : int
        Size of the embedding.
    n_classes : int
        Number of logits.
    """

    def __init__(self, inputs: HeadInput, embedding_size: int, n_classes: int) -> None:
        super().__init__()
        self.inputs = inputs
        self.head = nn.Linear(embedding_size + inputs.n_features, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits, of shape (n_rows, n_classes)."""
        logits: torch.Tensor = self.head(self.inputs(x))
        return logits

    @torch.no_grad()
    def set_head(self, weights: Array) -> None:
        """Set the linear layer to the weights of a regression.

        Parameters
        ----------
        weights : ndarray of shape (n_inputs + 1, n_classes)
            Coefficients, the intercepts last.
        """
        self.head.weight.copy_(torch.from_numpy(weights[:-1].T))
        self.head.bias.copy_(torch.from_numpy(weights[-1]))


class Split(NamedTuple):
    """One split into training and held-out items.

    Attributes
    ----------
    embedding : ndarray of shape (n_items, n_inputs)
        Input of the regression, of all items.
    train : ndarray of int
        Items to fit to.
    test : ndarray of int
        Held-out items.
    """

    embedding: Array
    train: Indices
    test: Indices


class ChosenC(NamedTuple):
    """The C with the largest held-out log-likelihood.

    Attributes
    ----------
    C : float
        The value.
    score : float
        Its mean log-likelihood of the held-out classes.
    """

    C: float
    score: float


def choose_C(splits: Sequence[Split], target: Array, grid: Sequence[float]) -> ChosenC:
    """Return the C with the largest held-out log-likelihood, summed over all splits.

    Parameters
    ----------
    splits : sequence of Split
        Training and held-out items.
    target : ndarray of shape (n_items, n_classes)
        (Soft) classes; rows sum to 1.
    grid : sequence of float
        Values of C to choose from, in increasing order.

    Returns
    -------
    ChosenC
        The smallest C of those with the largest log-likelihood.
    """
    total, n_heldout = np.zeros(len(grid)), 0
    for embedding, all_train, all_test in splits:
        train, test = _thinned(all_train), _thinned(all_test)
        wanted = target[test]
        n_heldout += len(test)
        for c, weights in enumerate(regressions(embedding[train], target[train], grid)):
            scores = embedding[test] @ weights[:-1] + weights[-1]
            log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
            total[c] += (wanted * np.maximum(log_p, np.log(1e-6))).sum()
    best = int(np.argmax(total))
    return ChosenC(grid[best], float(total[best]) / max(n_heldout, 1))


def _thinned(items: Indices) -> Indices:
    """Return at most `_MAX_ITEMS` of the items, evenly spaced from first to last."""
    return items[np.linspace(0, len(items) - 1, _MAX_ITEMS).astype(np.intp)] if len(items) > _MAX_ITEMS else items


def cross_validation_splits(embedding: Array, target: Array, rng: np.random.Generator) -> list[Split]:
    """Return five splits of the items, stratified by the most probable class.

    Parameters
    ----------
    embedding : ndarray of shape (n_items, n_inputs)
        Input of the regression.
    target : ndarray of shape (n_items, n_classes)
        (Soft) classes.
    rng : numpy.random.Generator
        Shuffles the items.

    Returns
    -------
    list of Split
        Each item is held out once; there are fewer splits where there are fewer than five items.
    """
    shuffled = rng.permutation(len(target))
    fold = np.empty(len(target), np.intp)
    fold[shuffled[np.argsort(target[shuffled].argmax(axis=1), kind="stable")]] = np.arange(len(target)) % _N_FOLDS
    parts = [(np.flatnonzero(fold != out), np.flatnonzero(fold == out)) for out in range(min(_N_FOLDS, len(target)))]
    return [Split(embedding, train, test) for train, test in parts if len(train)]


def regressions(embedding: Array, target: Array, strengths: Sequence[float]) -> list[Array]:
    """Fit one logistic regression for each C.

    Parameters
    ----------
    embedding : ndarray of shape (n_items, n_inputs)
        Inputs.
    target : ndarray of shape (n_items, n_classes)
        (Soft) classes; rows sum to 1.
    strengths : sequence of float
        Values of C, in increasing order.

    Returns
    -------
    list of ndarray of shape (n_inputs + 1, n_classes)
        Coefficients, the intercepts last. A class without any target has coefficients and probability 0.
    """
    present = np.flatnonzero(target.any(axis=0))
    rows = rotate_to_principal_axes(embedding, standardise=False)
    weights, found = np.zeros((rows.X.shape[1] + 1, len(present))), []
    for C in strengths:
        if len(present) > 1:
            weights = newton_ascent(rows.X, target[:, present], weights, (rows.variance or 1.0) / C, _NEWTON_STEPS)
        whole = np.zeros((embedding.shape[1] + 1, target.shape[1]))
        whole[-1] = _IMPOSSIBLE
        whole[:, present] = rows.in_raw_features(weights)
        found.append(whole)
    return found
