"""Max-MIG: a classifier of features and an aggregator of labels are trained to agree about each item.

    h(x) = softmax(network(x)),   g(y) = softmax( sum over the item's labels of A_w[., label]  +  log p )
    m_ij = sum_c h_c(x_i) g_c(y_j) / p_c        features of item i with labels of item j
    loss = -mean_i (1 + log m_ii)  +  mean over i != j of m_ij

The negative loss is a lower bound of the mutual information of features and labels (in its KL form). It is largest
where both predict the truth, also where workers make correlated errors. The posterior of a labelled item is
proportional to h_c g_c / p_c.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, FitResult, TrainingContext
from manyhands.em.e_step import initial_posterior, posterior_given
from manyhands.em.kernels import pack
from manyhands.em.noise import safe_log
from manyhands.heldout import class_shares, worker_confusions
from manyhands.nn.backbones import probabilities
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.losses import log_mixture
from manyhands.nn.train import descend
from manyhands.validation import Constraint, Number, OneOf

_FLOOR = 0.01  # added to the confusion matrices from which A starts
_EXCLUDED = -100.0  # logit of a class that gold excludes; finite, so that gradients are


class MaxMIG(CrowdClassifier):
    """Network and label aggregator trained jointly by mutual information, for workers with correlated errors.

    The aggregator starts from the vote; without that, constant predictions would be a local optimum. Gold replaces the
    aggregated labels of an item. Use it where workers' errors are not independent given the truth.

    Parameters
    ----------
    prior : {"votes", "uniform"}, default="votes"
        Class prior p: the share of each class among the votes, or uniform; it is not learned.
    aggregator_learning_rate : float, default=0.0001
        Step size of Adam for the aggregator; `learning_rate` is the network's.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to logits: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, n_classes) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights, those of the aggregator included: `weight_decay` times the weights is added
        to their gradient.
    batch_size : int, default=64
        Items per mini-batch.
    max_epochs : int, default=50
        Maximal number of epochs.
    patience : int or None, default=10
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.1
        Share of the labels held out for early stopping; nothing is held out with 0, or with fewer than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        The aggregator's weights as label distributions given the true class; rows sum to 1.

    References
    ----------
    P. Cao, Y. Xu, Y. Kong and Y. Wang (2019), Max-MIG: an information theoretic approach for joint learning from
    crowds, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import MaxMIG
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

    confusion_: Array

    def __init__(
        self,
        prior: str = "votes",
        aggregator_learning_rate: float = 1e-4,
        *,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_epochs: int = 50,
        patience: int | None = 10,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.prior = prior
        self.aggregator_learning_rate = aggregator_learning_rate
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _learn(self, context: TrainingContext) -> FitResult:
        network = context.network()
        votes = initial_posterior(context.annotations, context.data.gold)
        shares = class_shares(context.annotations, votes)
        prior = shares if self.prior == "votes" else np.full(context.n_classes, 1 / context.n_classes)
        aggregator = LabelAggregator(worker_confusions(context.annotations, votes, strength=1.0)[:-1], prior)
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
        weight = aggregator.weight.detach().cpu().double().transpose(1, 2)  # [worker, truth, label]
        log_h = safe_log(probabilities(network, context.data.rows))
        # The posterior ~ h g / p.
        posterior, _ = posterior_given(pack(context.data.annotations), weight.numpy(), log_h, context.data.gold)
        return FitResult(network, history, posterior, {"confusion_": weight.softmax(2).numpy()})


class LabelAggregator(nn.Module):
    """g(y): class distribution of an item from its labels, starting at confusion matrices.

    Shapes: confusion (n_workers, n_classes, n_classes); prior (n_classes,).
    """

    def __init__(self, confusion: Array, prior: Array) -> None:
        super().__init__()
        start = np.log(confusion + _FLOOR).transpose(0, 2, 1)  # label first, so that a column is contiguous
        self.weight = nn.Parameter(torch.from_numpy(start.copy()).float())  # [worker, label, truth]
        self.log_prior: torch.Tensor
        self.register_buffer("log_prior", torch.from_numpy(np.log(prior)).float())

    def forward(self, batch: Batch, gold: torch.Tensor | None = None) -> torch.Tensor:
        """Return log g(y) of a mini-batch, (n_rows, n_classes): the prior without labels, the known class with gold."""
        n_classes = len(self.log_prior)
        columns = self.weight.view(-1, n_classes).index_select(0, batch.worker * n_classes + batch.label)
        logits = self.log_prior.repeat(len(batch.item), 1).index_add(0, batch.row, columns)
        if gold is not None:
            certain = torch.full_like(logits, _EXCLUDED).scatter(1, gold.clamp(min=0).unsqueeze(1), 0.0)
            logits = torch.where((gold >= 0).unsqueeze(1), certain, logits)
        return logits.log_softmax(1)

    def log_confusion(self) -> torch.Tensor:
        """Return the weights as log label distributions, [worker, truth, label]."""
        return self.weight.transpose(1, 2).log_softmax(2)


def mig_loss(log_h: torch.Tensor, log_g: torch.Tensor, log_prior: torch.Tensor) -> torch.Tensor:
    """Return -mean_i (1 + log m_ii) + mean over i != j of m_ij.

    Shapes: log_h (n_rows, n_classes); log_g (n_rows, n_classes); log_prior (n_classes,).
    """
    n = len(log_h)
    ratio = log_g - log_prior
    log_same = torch.logsumexp(log_h + ratio, 1)  # log m_ii
    others = (log_h.exp() @ ratio.exp().T).sum() - log_same.exp().sum()
    return others / max(n * (n - 1), 1) - (1 + log_same).mean()


class FullBatches:
    """Mini-batches without a short last one, which would have too few pairs i != j; a single mini-batch stays."""

    def __init__(self, batches: AnnotationBatches) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        for number, batch in enumerate(self.batches):
            if number == 0 or len(batch.item) >= self.batches.batch_size:
                yield batch
