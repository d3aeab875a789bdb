"""Trace regularisation: of all confusion matrices that explain the labels, prefer those that blame the workers most.

    f = softmax(network(x)),   Pi_w = softplus(P_w) / its row sums,   p(label | x, w) = sum_k f_k(x) Pi_w[k, label]
    loss = sum over observed labels of -log p(label | x, w), per item,  +  penalty * mean over workers of trace(Pi_w)

Labels alone cannot tell a noisy network before able workers from an able network before noisy workers. Matrices start
near the identity, where the network is the noisy one; the penalty lowers their diagonal as far as the labels allow.

Reference: R. Tanno, A. Saeedi, S. Sankaranarayanan, D. C. Alexander and N. Silberman (2019), Learning from noisy labels
by regularized estimation of annotator confusion, CVPR.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Unpack

import torch
from torch import nn

from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseLayerParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.batches import Batch
from manyhands.nn.losses import gold_cross_entropy
from manyhands.nn.train import History, descend
from manyhands.nn.worker_layers import Confusion
from manyhands.validation import Constraint, Maybe, Number


class TraceReg(NoiseLayerClassifier):
    """A network and a confusion matrix per worker, with a penalty on the traces of the matrices.

    The mean trace of a batch is that of the workers who labelled in it, so that a batch costs the same in any crowd.

    Parameters
    ----------
    penalty : how much the mean trace counts
    warm_up : so many of the first epochs go without the penalty, until the network knows more than the start does
    diagonal : what the diagonal of every worker's matrix starts at; None is the paper's start, P = 6 I - 5
    start : "identity", where workers are believed, or an aggregator (by its name or as an instance) that judges them
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes) Pi, how each worker answers to each true class; rows sum to 1

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, TraceReg
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = TraceReg(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "penalty": Number(least=0),
        "warm_up": Number(whole=True, least=0),
        "diagonal": Maybe(Number(above=0, most=0.999)),
    }

    def __init__(
        self,
        penalty: float = 0.01,
        warm_up: int = 5,
        diagonal: float | None = None,
        **others: Unpack[NoiseLayerParameters],
    ) -> None:
        super().__init__(**others)
        self.penalty = penalty
        self.warm_up = warm_up
        self.diagonal = diagonal

    def _noise_layer(self, context: TrainingContext) -> Any:
        return Confusion(context.n_workers, context.n_classes, "softplus", self.diagonal)

    def _learn_layers(self, context: TrainingContext, network: nn.Module, noise: Any, *, warm: bool = False) -> History:
        optimizer = context.adam(network, noise)

        def descend_with(penalty: float, batch: Batch) -> torch.Tensor:
            logits = network(context.x(batch))  # (n_rows, n_classes)
            log_label, trace = noise.with_trace(logits.log_softmax(1), batch)
            counted = log_label if batch.weight is None else batch.weight * log_label
            loss = penalty * trace - counted.sum() / len(batch.item)
            return descend(optimizer, loss + gold_cross_entropy(logits, context.gold(batch)))

        modules, optimizers = {"network": network, "noise": noise}, {"adam": optimizer}
        # A training of its own: early stopping cannot give back a state that never felt the penalty.
        n_first = 0 if warm else min(self.warm_up, self.max_epochs)
        history = context.train(partial(descend_with, 0.0), modules, optimizers, max_epochs=n_first, name="warm-up")
        step = partial(descend_with, self.penalty)
        n_left, evaluate = self.max_epochs - n_first, self._evaluate(context, network, noise)
        return history + context.train(step, modules, optimizers, evaluate=evaluate, max_epochs=n_left)
