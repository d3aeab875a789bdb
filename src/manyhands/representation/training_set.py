"""What all representation learners train with: a class for each item, mini-batches, and the held-out log-likelihood.

Early stopping maximises the held-out log-likelihood of a nearest-class-mean classifier on the embedding e,

    p(k | e) ~ share_k exp(-|e - mean_k|^2 / (2 s^2)),   p(label of w | e) = sum_k p(k | e) C_w[k, label]

with means, shares and s^2 = mean |e - mean_k|^2 from the training items, and confusion matrices C from the labels to
learn from: the same metric for all losses. (With one variance for each of 32 correlated dimensions the classifier would
be overconfident.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.fitting import infer_truth
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.decisions import pick_classes
from manyhands.heldout import worker_confusions

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.class_batches import ClassBatch, ClassBatches


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The items to learn from and their classes by an aggregator.

    Held-out labels are hidden from the aggregator too, until the training has ended.

    Attributes
    ----------
    context : TrainingContext
        Data, options, generator.
    labels : str or Aggregator
        The aggregator.
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
        from manyhands.nn.class_batches import ClassBatches

        context = self.context
        return ClassBatches(self.items, self.target, context.options.batch_size, context.rng, device=context.device)

    def x(self, batch: ClassBatch) -> torch.Tensor:
        """Return the features of a mini-batch, of shape (n_rows, ...)."""
        from manyhands.nn.inference import as_tensor

        return as_tensor(self.context.data.rows, batch.item, self.context.device)

    def fit_embedding(self, loss: Callable[[torch.Tensor, ClassBatch], torch.Tensor]) -> FitResult:
        """Train a new network by one loss.

        Parameters
        ----------
        loss : callable (embedding, ClassBatch) -> torch.Tensor
            Loss of a mini-batch, given its embeddings of shape (n_rows, embedding_size).

        Returns
        -------
        FitResult
        """
        from manyhands.nn.train import descend

        network = self.context.network()
        optimizer = self.context.adam(network)

        def step(batch: ClassBatch) -> torch.Tensor:
            return descend(optimizer, loss(network(self.x(batch)), batch))

        return self.train(step, {"network": network}, {"adam": optimizer})

    def train(
        self,
        step: Callable[[ClassBatch], Any],
        modules: Mapping[str, nn.Module],
        optimizers: Mapping[str, torch.optim.Optimizer],
        results: Mapping[str, Callable[[], Any]] | None = None,
    ) -> FitResult:
        """Train modules by a step function.

        Parameters
        ----------
        step : callable (ClassBatch) -> loss
            One optimisation step.
        modules : mapping of str to torch.nn.Module
            All modules that steps change; "network" is the one from features to embeddings.
        optimizers : mapping of str to torch.optim.Optimizer
            All optimizers that steps use.
        results : mapping of str to callable () -> object, default=None
            Further fitted attributes, which are computed after the training.

        Returns
        -------
        FitResult
            With the posterior of the aggregator, fitted to all labels.
        """
        network, context = modules["network"], self.context

        def evaluate() -> float:
            return self.heldout_log_likelihood(network)

        history = context.train(step, modules, optimizers, evaluate=evaluate, batches=self.batches)
        aggregator = self.aggregator
        if context.heldout is not None:
            aggregator = infer_truth(self.labels, context.data, context.data.annotations, context.rng)
        found = {name: result() for name, result in (results or {}).items()}
        attributes = {"aggregator_": aggregator} | found
        return FitResult(network, history, aggregator.posterior_, attributes, aggregator.notes_)

    def heldout_log_likelihood(self, network: nn.Module) -> float:
        """Return the mean log-likelihood of the held-out labels by the classifier of this module's docstring.

        Parameters
        ----------
        network : torch.nn.Module
            From features to embeddings.

        Returns
        -------
        float
        """
        from manyhands.nn.inference import outputs
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

    Parameters
    ----------
    embedding : torch.Tensor of shape (n, embedding_size)
        Embeddings of the training items.
    code : ndarray of int, shape (n,)
        Their classes, from 0 to n_codes - 1.
    query : torch.Tensor of shape (n_query, embedding_size)
        Embeddings to classify.

    Returns
    -------
    torch.Tensor of shape (n_query, n_codes)
    """
    import torch

    from manyhands.nn.metric_losses import squared_distances

    index = torch.from_numpy(code)
    size = torch.bincount(index).to(embedding.dtype)
    mean = embedding.new_zeros(len(size), embedding.shape[1]).index_add_(0, index, embedding) / size.unsqueeze(1)
    spread = (embedding - embedding.mean(0)).square().sum(1).mean()
    scatter = (embedding - mean[index]).square().sum(1).mean() + 1e-6 * spread + 1e-12  # 0 where classes collapsed
    return (size.log() - squared_distances(query, mean) / (2 * scatter)).log_softmax(1)
