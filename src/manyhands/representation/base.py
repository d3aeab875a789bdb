"""The base of all representation learners: `transform` embeds; `fit` is that of all methods with features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.classifiers.base import FeatureMethod
from manyhands.classifiers.network import (
    AGGREGATOR,
    NETWORK_CONSTRAINTS,
    FitResult,
    NetworkOptions,
    TrainingContext,
    infer_truth,
    new_backbone,
    rows_as_fitted,
)
from manyhands.em.decisions import pick_classes
from manyhands.heldout import worker_confusions
from manyhands.validation import Constraint, Number

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import ClassBatch, ClassBatches

# What the parameters of every representation learner may be.
REPRESENTATION_CONSTRAINTS: dict[str, Constraint] = NETWORK_CONSTRAINTS | {
    "labels": AGGREGATOR,
    "embedding_size": Number(whole=True, least=1),
}


class RepresentationLearner(FeatureMethod):
    """Network from features to embeddings in which items of one class are near each other.

    A method implements `_learn(context) -> FitResult`, whose module is the network, and has at least the parameters of
    `REPRESENTATION_CONSTRAINTS`.

    Attributes
    ----------
    aggregator_ : Aggregator
        The aggregator that gave items their classes, fitted to all labels; not kept by `save`.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items by the aggregator; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to embeddings.
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS
    _of_items: ClassVar[tuple[str, ...]] = ("posterior_", "aggregator_")  # attributes with a row per item

    labels: Any
    embedding_size: int
    aggregator_: Aggregator

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a method that transforms features; embeddings are float64 whatever X is."""
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def transform(self, X: Any) -> Array:
        """Return the embedding of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Features, of the same shape per row as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, embedding_size)
        """
        self._check_fitted()
        return embed(self, [self.module_], self.embedding_size, X)

    def fit_transform(
        self,
        X: Any,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | Sequence[Any] | None = None,
        *,
        ids: Any = None,
        verbose: int = 1,
    ) -> Array:
        """Learn an embedding, and return that of each training row.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features, matched with items as in `fit`.
        annotations : Annotations or data frame
            The crowd's labels.
        gold : mapping of item id to class or sequence of shape (n_items,), default=None
            Known classes of some items, or the class of each item of the annotations, None where it is not known.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        ndarray of shape (n_rows, embedding_size)
            In the order of the rows of X.
        """
        return self.fit(X, annotations, gold, ids=ids, verbose=verbose).transform(X)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return an untrained `module_`, for a fit and for `load_model`."""
        return new_backbone(NetworkOptions.of(self), row_shape, self.embedding_size)


def embed(method: FeatureMethod, networks: Sequence[nn.Module], embedding_size: int, X: Any) -> Array:
    """Return the outputs of networks side by side.

    Shapes: X (n_rows, ...); returns (n_rows, embedding_size).
    """
    from manyhands.nn.backbones import outputs

    rows = rows_as_fitted(method, X)
    if len(rows) == 0:
        return np.zeros((0, embedding_size))
    return np.hstack([outputs(network, rows).numpy() for network in networks])


# ----------------------------------------------------------------------------------------------------
# What all representation learners train with: a class for each item, mini-batches, and the held-out log-likelihood.
#
# Early stopping maximises the held-out log-likelihood of a nearest-class-mean classifier on the embedding e,
#
#     p(k | e) ~ share_k exp(-|e - mean_k|^2 / (2 s^2)),   p(label of w | e) = sum_k p(k | e) C_w[k, label]
#
# with means, shares and s^2 = mean |e - mean_k|^2 from the training items, and confusion matrices C from the labels to
# learn from: the same metric for all losses. (With one variance for each of 32 correlated dimensions the classifier
# would be overconfident.)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The items to learn from and their classes by an aggregator.

    Held-out labels are hidden from the aggregator too, until the training has ended.
    """

    context: TrainingContext
    labels: Any

    @cached_property
    def aggregator(self) -> Aggregator:
        """The aggregator, fitted to the labels to learn from."""
        return infer_truth(self.labels, self.context.data, self.context.annotations, self.context.rng)

    @cached_property
    def items(self) -> npt.NDArray[np.intp]:
        """Items with a label or gold, of shape (n,)."""
        return np.flatnonzero(~self.aggregator.unlabelled_)

    @cached_property
    def target(self) -> npt.NDArray[np.int32]:
        """Classes of these items, of shape (n,)."""
        posterior = self.aggregator.posterior_[self.items]
        return pick_classes(posterior, np.zeros(len(self.items), bool))[0]

    @cached_property
    def batches(self) -> ClassBatches:
        """Mini-batches with equal shares of their classes."""
        from manyhands.nn.batches import ClassBatches

        context = self.context
        return ClassBatches(self.items, self.target, context.options.batch_size, context.rng, device=context.device)

    def x(self, batch: ClassBatch) -> torch.Tensor:
        """Return the features of a mini-batch, of shape (n_rows, ...)."""
        from manyhands.nn.backbones import as_tensor

        return as_tensor(self.context.data.rows, batch.item, self.context.device)

    def fit_embedding(
        self,
        loss: Callable[[torch.Tensor, ClassBatch], torch.Tensor],
        modules: Mapping[str, nn.Module] | None = None,
        optimizers: Mapping[str, torch.optim.Optimizer] | None = None,
        results: Mapping[str, Callable[[], Any]] | None = None,
    ) -> FitResult:
        """Train a network, and modules beside it, by a loss of the embeddings of a mini-batch.

        The network is `modules["network"]`, by default a new one; by default Adam trains all modules. `results` gives
        further fitted attributes once the training has ended.
        """
        context = self.context
        modules = {"network": context.network()} if modules is None else modules
        optimizers = {"adam": context.adam(*modules.values())} if optimizers is None else optimizers
        network = modules["network"]

        def step(batch: ClassBatch) -> torch.Tensor:
            value = loss(network(self.x(batch)), batch)
            for optimizer in optimizers.values():
                optimizer.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
            for optimizer in optimizers.values():
                optimizer.step()
            return value.detach()

        def evaluate() -> float:
            return self.heldout_log_likelihood(network)

        history = context.train(step, modules, optimizers, evaluate=evaluate, batches=self.batches)
        aggregator = self.aggregator
        if context.heldout is not None:
            aggregator = infer_truth(self.labels, context.data, context.data.annotations, context.rng)
        attributes = {"aggregator_": aggregator} | {name: result() for name, result in (results or {}).items()}
        return FitResult(network, history, aggregator.posterior_, attributes, aggregator.notes_)

    def heldout_log_likelihood(self, network: nn.Module) -> float:
        """Return the mean log-likelihood of the held-out labels by the classifier of this module's docstring."""
        from manyhands.nn.backbones import outputs
        from manyhands.nn.losses import log_mixture

        heldout = self.context.heldout
        assert heldout is not None
        item, row = np.unique(heldout.item.astype(np.intp), return_inverse=True)
        rows = self.context.data.rows
        training, query = outputs(network, rows, self.items), outputs(network, rows, item)
        log_proba = class_mean_log_proba(training, self.batches.code, query)
        log_column = self._log_column[heldout.worker.astype(np.intp), heldout.label.astype(np.intp)]
        return float(log_mixture(log_proba[row], log_column).mean())

    @cached_property
    def _log_column(self) -> torch.Tensor:
        """Return log p(label | truth) as [worker, label, truth], for the truths that some item has."""
        import torch

        confusion = worker_confusions(self.context.annotations, self.aggregator.posterior_)
        return torch.from_numpy(np.log(confusion)).transpose(1, 2)[:, :, self.batches.classes]


def class_mean_log_proba(embedding: torch.Tensor, code: npt.NDArray[np.intp], query: torch.Tensor) -> torch.Tensor:
    """Return log p(k | e) by the distance to class means, with one variance for all classes and dimensions.

    Shapes: embedding (n, embedding_size); query (n_query, embedding_size); returns (n_query, n_codes).
    """
    import torch

    from manyhands.nn.losses import squared_distances

    index = torch.from_numpy(code)
    size = torch.bincount(index).to(embedding.dtype)
    mean = embedding.new_zeros(len(size), embedding.shape[1]).index_add_(0, index, embedding) / size.unsqueeze(1)
    spread = (embedding - embedding.mean(0)).square().sum(1).mean()
    # Without the two small terms it would be 0 where classes collapsed to points, or all items to one.
    scatter = (embedding - mean[index]).square().sum(1).mean() + 1e-6 * spread + 1e-12
    return (size.log() - squared_distances(query, mean) / (2 * scatter)).log_softmax(1)


# ----------------------------------------------------------------------------------------------------
# Confidence in the class of an item, computed from its labels.
#
# An item has d labels; v of them are the item's class, and u the most frequent one of the other classes:
#
#     mle        v / d
#     assurance  (v - u) / d, at least 0: 0 at a tie, 1 for unanimous labels; with two classes it is |1 - 2 v / d|, the
#                label assurance of NeuCrowd (Definition 2)
#     bayesian   (v + pi d) / (2 d), with pi the share of that class among the items
#     posterior  margin of the class over the second most probable one in the aggregator's posterior


def label_confidence(training_set: TrainingSet, kind: str, *, shrink: bool = False) -> Array:
    """Return the confidence in the class of each item.

    Shapes: returns (n_items,).
    """
    votes, gold = training_set.context.annotations, training_set.context.data.gold
    code = np.full(votes.n_items, -1)
    code[training_set.items] = training_set.target
    if kind == "posterior":
        confidence = _margin(training_set.aggregator.posterior_, code)
    else:
        count = np.zeros((votes.n_items, votes.n_classes))
        np.add.at(count, (votes.item, votes.label), 1.0)
        weight = _margin(count, code) if kind == "assurance" else _own(count, code)
        confidence = weight / np.maximum(votes.n_labels, 1)
    if kind == "bayesian":
        share = np.bincount(training_set.target, minlength=votes.n_classes)[code] / len(training_set.items)
        confidence = (confidence + share) / 2
    if shrink:
        confidence = confidence * votes.n_labels / (votes.n_labels + 1)
    if gold is not None:
        confidence = np.where(gold >= 0, 1.0, confidence)
    return np.where(code >= 0, confidence, np.nan)


def _own(count: Array, code: npt.NDArray[np.int_]) -> Array:
    """Return the entry of each row in the column of its class, of shape (n_items,)."""
    return np.asarray(np.take_along_axis(count, code[:, None], axis=1)[:, 0])


def _margin(count: Array, code: npt.NDArray[np.int_]) -> Array:
    """Return the difference of that entry to the largest other one of the row, at least 0."""
    rest = count.copy()
    np.put_along_axis(rest, code[:, None], 0.0, axis=1)
    return np.maximum(_own(count, code) - rest.max(axis=1), 0.0)
