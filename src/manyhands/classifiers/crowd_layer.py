"""Crowd layer: behind the network, a layer for each worker turns what is true into what the worker says.

    p = softmax(network(x)),   logits of worker w = p W_w  (MW),  p * v_w  (VW),  p + b_w  (VB),  p * v_w + b_w  (VW-B)
    loss = mean over observed labels of -log softmax(logits of worker w)[label]

Reference: F. Rodrigues and F. Pereira (2018), Deep learning from crowds, AAAI.
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseLayerParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.worker_layers import FORMS, CrowdLogits
from manyhands.validation import Constraint, OneOf


class CrowdLayer(NoiseLayerClassifier):
    """A network with a layer per worker behind it, trained through both by the labels alone.

    Nothing ties the network's classes to the labels but the start: keep trainings short, or stop them by held-out
    labels as the defaults do, and where many workers may be spammers, start at what an aggregator says of them.

    Parameters
    ----------
    form : "mw" a matrix per worker, "vw" a weight for each class, "vb" a bias, "vw-b" both, "sw" one weight
    start : "identity", where workers are believed, or an aggregator (by its name or as an instance) that judges them
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

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {"form": OneOf(FORMS)}

    def __init__(self, form: str = "mw", **others: Unpack[NoiseLayerParameters]) -> None:
        super().__init__(**others)
        self.form = form

    def _noise_layer(self, context: TrainingContext) -> Any:
        return CrowdLogits(context.n_workers, context.n_classes, self.form)
