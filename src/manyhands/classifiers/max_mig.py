"""Max-MIG: a classifier of features and an aggregator of labels are trained to tell the same about each item.

    h(x) = softmax(network(x)),   g(y) = softmax( sum over the item's labels of A_w[., label]  +  log p )
    m_ij = sum_c h_c(x_i) g_c(y_j) / p_c        features of item i beside labels of item j
    loss = -mean_i (1 + log m_ii)  +  mean over i != j of m_ij

Minus the loss is a lower bound of the mutual information of features and labels (in its KL form). It is largest where
both forecast the truth, also where workers err together. For items with labels, h_c g_c / p_c joins both forecasts.

Reference: P. Cao, Y. Xu, Y. Kong and Y. Wang (2019), Max-MIG: an information theoretic approach for joint learning
from crowds, ICLR.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Unpack

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.classifier_em import initial_posterior, posterior_of
from manyhands.em.kernels import Array, pack
from manyhands.heldout import class_shares, worker_confusions
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.inference import probabilities
from manyhands.nn.losses import log_mixture
from manyhands.nn.train import descend
from manyhands.noise import safe_log
from manyhands.validation import Constraint, Number, OneOf

_FLOOR = 0.01  # added to the confusions from which A starts
_NEVER = -100.0  # logit of a class that gold excludes: finite, so that its gradient is


class MaxMIG(NetworkClassifier):
    """A network and a weighing of labels that inform each other as much as they can.

    The aggregator starts from the vote; without that start, constant forecasts would be a place to end. Gold stands in
    place of an item's aggregated labels.

    Parameters
    ----------
    prior : "votes", the share of each class among the labels, or "uniform"; it is not learnt
    aggregator_learning_rate : of Adam for the aggregator; `learning_rate` is the network's
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes) what the aggregator's weights say of each worker, as probabilities

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, MaxMIG
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = MaxMIG(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "prior": OneOf(("votes", "uniform")),
        "aggregator_learning_rate": Number(above=0),
    }

    def __init__(
        self, prior: str = "votes", aggregator_learning_rate: float = 1e-4, **network: Unpack[NetworkParameters]
    ) -> None:
        super().__init__(**network)
        self.prior = prior
        self.aggregator_learning_rate = aggregator_learning_rate

    def _learn_network(self, context: TrainingContext) -> FitResult:
        network = context.network()
        votes = initial_posterior(context.annotations, context.data.gold)
        shares = class_shares(context.annotations, votes)
        prior = shares if self.prior == "votes" else np.full(context.n_classes, 1 / context.n_classes)
        aggregator = Aggregating(worker_confusions(context.annotations, votes, strength=1.0)[:-1], prior)
        aggregator.to(context.device)
        optimizer = context.adam(network)
        optimizer.add_param_group({"params": list(aggregator.parameters()), "lr": self.aggregator_learning_rate})

        def step(batch: Batch) -> torch.Tensor:
            log_h = network(context.x(batch)).log_softmax(1)
            return descend(optimizer, mig_loss(log_h, aggregator(batch, context.gold(batch)), aggregator.log_prior))

        def log_label(batch: Batch) -> torch.Tensor:
            log_h = network(context.x(batch)).log_softmax(1)[batch.row]
            return log_mixture(log_h, aggregator.log_confusion()[batch.worker, :, batch.label])

        modules = {"network": network, "aggregator": aggregator}
        evaluate = context.heldout_score(log_label, *modules.values())
        batches = FullBatches(context.batches())
        history = context.train(step, modules, {"adam": optimizer}, evaluate=evaluate, batches=batches)
        weight = aggregator.weight.detach().double().cpu().transpose(1, 2)  # [worker, truth, label]
        log_h = safe_log(probabilities(network, context.data.rows))
        posterior, _ = posterior_of(
            pack(context.data.annotations), weight.numpy(), log_h, context.data.gold
        )  # ~ h g / p
        return FitResult(network, history, posterior, {"confusion_": weight.softmax(2).numpy()})


class Aggregating(nn.Module):
    """g(y): an item's forecast from its labels, starting at what the vote says of each worker."""

    def __init__(self, confusion: Array, prior: Array) -> None:
        super().__init__()
        start = np.log(confusion + _FLOOR).transpose(0, 2, 1)  # the label first: its column is one stretch of memory
        self.weight = nn.Parameter(torch.from_numpy(start.copy()).float())  # [worker, label, truth]
        self.log_prior: torch.Tensor
        self.register_buffer("log_prior", torch.from_numpy(np.log(prior)).float())

    def forward(self, batch: Batch, gold: torch.Tensor | None = None) -> torch.Tensor:
        """(n_rows, n_classes) log g(y) of a batch; a row without labels has the prior, one with gold its class."""
        n_classes = len(self.log_prior)
        said = self.weight.view(-1, n_classes).index_select(0, batch.worker * n_classes + batch.label)
        logits = self.log_prior.repeat(len(batch.item), 1).index_add(0, batch.row, said)
        if gold is not None:
            sure = torch.full_like(logits, _NEVER).scatter(1, gold.clamp(min=0).unsqueeze(1), 0.0)
            logits = torch.where((gold >= 0).unsqueeze(1), sure, logits)
        return logits.log_softmax(1)

    def log_confusion(self) -> torch.Tensor:
        """[worker, truth, label]"""
        return self.weight.transpose(1, 2).log_softmax(2)


def mig_loss(log_h: torch.Tensor, log_g: torch.Tensor, log_prior: torch.Tensor) -> torch.Tensor:
    """-mean_i (1 + log m_ii) + mean over i != j of m_ij; with a single row, nothing stands against it."""
    n = len(log_h)
    ratio = log_g - log_prior
    log_same = torch.logsumexp(log_h + ratio, 1)  # log m_ii
    others = (log_h.exp() @ ratio.exp().T).sum() - log_same.exp().sum()
    return others / max(n * (n - 1), 1) - (1 + log_same).mean()


class FullBatches:
    """Batches without a short last one, in which few items stand against each other; a single batch stays."""

    def __init__(self, batches: AnnotationBatches) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        for number, batch in enumerate(self.batches):
            if number == 0 or len(batch.item) >= self.batches.batch_size:
                yield batch
