"""AggNet: a network and the workers' confusion matrices by EM, an epoch at a time.

    E: r_ik ~ f_k(x_i) prod_w confusion[w, k, label_iw]
    M: confusion[w, k, l] ~ smoothing + sum of r_ik over the items that w called l;   f by one epoch on the targets r

EM begins with r = the vote shares. This is `raykar` with a network where its logistic regression stands, and with an
M step of the network that is not carried to its end: the likelihood may fall.

Reference: S. Albarqouni et al. (2016), AggNet: deep learning from crowds for mitosis detection in breast cancer
histology images, IEEE Transactions on Medical Imaging 35. The paper has two classes; this is its form for many.
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
from manyhands.em.classifier_em import initial_posterior, log_confusions, posterior_of
from manyhands.em.kernels import Array, pack
from manyhands.nn.batches import Batch
from manyhands.nn.inference import probabilities
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import descend
from manyhands.noise import safe_log
from manyhands.validation import Constraint, Number


class AggNet(NetworkClassifier):
    """A network that learns from a posterior, and a posterior that learns from the network, epoch by epoch.

    Gold is part of the posterior. The posterior at the end is that of all labels, held-out ones included.

    Parameters
    ----------
    smoothing : labels added to every cell of every confusion matrix
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes), rows (over the label) sum to 1

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import AggNet, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = AggNet(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {"smoothing": Number(above=0)}

    def __init__(self, smoothing: float = 0.1, **network: Unpack[NetworkParameters]) -> None:
        super().__init__(**network)
        self.smoothing = smoothing

    def _learn_network(self, context: TrainingContext) -> FitResult:
        network = context.network()
        optimizer = context.adam(network)
        belief = Belief(context, self.smoothing)

        def step(batch: Batch) -> torch.Tensor:
            return descend(optimizer, soft_cross_entropy(network(context.x(batch)), belief.target(batch)))

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(context.x(batch)).log_softmax(1)[batch.row]
            return log_mixture(log_proba, belief.log_column(batch))

        modules = {"network": network, "belief": belief}  # the best epoch has its own confusion matrices
        evaluate = context.heldout_score(log_label, network)
        rounds = Rounds(context, network, belief)
        history = context.train(step, modules, {"adam": optimizer}, evaluate=evaluate, batches=rounds)
        table = belief.table()
        posterior = posterior_of(pack(context.data.annotations), table, _log_f(network, context), context.data.gold)[0]
        return FitResult(network, history, posterior, {"confusion_": np.exp(table)})


class Belief(nn.Module):
    """What EM believes between epochs: buffers, so that checkpoints and early stopping keep them."""

    posterior: torch.Tensor  # (n_items, n_classes)
    log_table: torch.Tensor  # (n_workers, n_classes of the truth, n_classes of the label)

    def __init__(self, context: TrainingContext, smoothing: float) -> None:
        super().__init__()
        self.packed, self.gold, self.smoothing = pack(context.annotations), context.data.gold, smoothing
        start = initial_posterior(context.annotations, self.gold)
        self.register_buffer("posterior", torch.from_numpy(start))
        self.register_buffer("log_table", torch.from_numpy(log_confusions(self.packed, start, smoothing)))
        self.to(context.device)

    def update(self, log_f: Array) -> None:
        """An E step, then the M step of the confusion matrices."""
        posterior, _ = posterior_of(self.packed, self.table(), log_f, self.gold)
        table = log_confusions(self.packed, posterior, self.smoothing)
        self.posterior.copy_(torch.from_numpy(posterior))
        self.log_table.copy_(torch.from_numpy(table))

    def table(self) -> Array:
        return self.log_table.double().cpu().numpy()

    def target(self, batch: Batch) -> torch.Tensor:
        return self.posterior[torch.from_numpy(batch.item)].float()

    def log_column(self, batch: Batch) -> torch.Tensor:
        """(n_labels, n_classes) log p(label | truth) of the labels of a batch."""
        return self.log_table[batch.worker, :, batch.label].float()


class Rounds:
    """The batches of an epoch, at whose end the belief is brought up to date."""

    def __init__(self, context: TrainingContext, network: nn.Module, belief: Belief) -> None:
        self.context, self.network, self.belief = context, network, belief
        self.batches = context.batches()

    def __iter__(self) -> Iterator[Batch]:
        yield from self.batches
        self.belief.update(_log_f(self.network, self.context))


def _log_f(network: nn.Module, context: TrainingContext) -> Array:
    """(n_items, n_classes) what the network says of the training items."""
    return safe_log(probabilities(network, context.data.rows))
