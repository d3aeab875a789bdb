"""Crowd layer: behind the network, a layer for each worker turns what is true into what the worker says.

    p = softmax(network(x)),   logits of worker w = p W_w  (MW),  p * v_w  (VW),  p + b_w  (VB),  p * v_w + b_w  (VW-B)
    loss = mean over observed labels of -log softmax(logits of worker w)[label]

Reference: F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import torch

from manyhands.classifiers.base import Learned
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, Bench, NetworkClassifier, NetworkParameters
from manyhands.nn.batches import Batch
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.noise_layers import CrowdLogits
from manyhands.nn.train import descend
from manyhands.validation import Constraint, OneOf


class CrowdLayer(NetworkClassifier):
    """A network with a layer per worker behind it, trained through both by the labels alone.

    Nothing ties the network's classes to the labels but the start at the identity: keep trainings short, or stop
    them by held-out labels as the defaults do.

    Parameters
    ----------
    form : "mw" a matrix per worker, "vw" a weight for each class, "vb" a bias, "vw-b" both
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes) how each worker would answer were the network sure of the truth

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, CrowdLayer
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = CrowdLayer(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {"form": OneOf(("mw", "vw", "vb", "vw-b"))}

    def __init__(self, form: str = "mw", **network: Unpack[NetworkParameters]) -> None:
        super().__init__(**network)
        self.form = form

    def _learn_network(self, bench: Bench) -> Learned:
        network = bench.network()
        noise = CrowdLogits(bench.n_workers, bench.n_classes, self.form).to(bench.device)
        optimizer = bench.adam(network, noise)

        def step(batch: Batch) -> torch.Tensor:
            logits = network(bench.x(batch))  # (n_rows, n_classes)
            loss = negative_log_likelihood(noise(logits.log_softmax(1), batch))
            return descend(optimizer, loss + gold_cross_entropy(logits, bench.gold(batch)))

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba: torch.Tensor = network(bench.x(batch)).log_softmax(1)
            return noise(log_proba, batch)

        modules = {"network": network, "noise": noise}
        evaluate = bench.heldout_score(log_label, *modules.values())
        history = bench.train(step, modules, {"adam": optimizer}, evaluate=evaluate)
        return Learned(network, history, results={"confusion_": noise.confusion()})
