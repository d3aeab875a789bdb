"""SpeeLFC: what a worker says is a mixture of the rows of his confusion matrix, weighted by what the network believes.

    f = softmax(network(x)),   Pi_w[k, .] = softmax(A_w[k, .]),   p(label | x, w) = sum_k f_k(x) Pi_w[k, label]
    loss = mean over observed labels of -log p(label | x, w)

Unlike the crowd layer's logits, all of this are probabilities: no second softmax follows.

Reference: Z. Chen, H. Wang, H. Sun, P. Chen, T. Han, X. Liu and J. Yang (2020), Structured probabilistic end-to-end
learning from crowds, IJCAI.
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseLayerParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.worker_layers import Confusion
from manyhands.validation import Constraint, Number


class SpeeLFC(NoiseLayerClassifier):
    """A network and a confusion matrix per worker, trained together by the likelihood of the labels.

    The paper's variant with a difficulty for each item is not built.

    Parameters
    ----------
    diagonal : what the diagonal of every worker's matrix starts at where the start is "identity"
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
    >>> from manyhands import Annotations, SpeeLFC
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = SpeeLFC(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {"diagonal": Number(above=0, most=0.999)}

    def __init__(self, diagonal: float = 0.8, **others: Unpack[NoiseLayerParameters]) -> None:
        super().__init__(**others)
        self.diagonal = diagonal

    def _noise_layer(self, context: TrainingContext) -> Any:
        return Confusion(context.n_workers, context.n_classes, "softmax", self.diagonal)
