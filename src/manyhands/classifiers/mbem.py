"""MBEM: the network's own view of the items says how workers err, even where each item has a single label.

    1. train f on the vote shares, 2. t_i = argmax f(x_i), 3. confusion matrices and class frequencies q by counting
    the labels against t, 4. r_ik ~ q_k prod_w confusion[w, k, label_iw], 5. train f afresh on r; from 2. again

Reference: A. Khetan, Z. Lipton, A. Anandkumar (2018), Learning from noisy singly-labeled data, ICLR. Their program
leaves out q in step 4; here it is as in the paper.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.base import FitResult
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.classifier_em import Gold, initial_posterior, log_confusions, posterior_of
from manyhands.em.kernels import Array, pack
from manyhands.nn.inference import probabilities
from manyhands.noise import safe_log
from manyhands.validation import Constraint, Number


class MBEM(NetworkClassifier):
    """Networks trained one after the other, each on the labels as seen through the eyes of the one before.

    Made for one label per item. A class that the network never answers leaves rows of the confusion matrices empty,
    and these say nothing: where classes are rare, look at `confusion_` first.

    Parameters
    ----------
    rounds : how often the network is trained afresh after the first time
    smoothing : labels added to every cell of every confusion matrix, and items added to every class
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how each is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes), rows (over the label) sum to 1; the last network's view
    class_prior_ : (n_classes,) the class frequencies, the last network's view

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import MBEM, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = MBEM(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "rounds": Number(whole=True, least=1),
        "smoothing": Number(above=0),
    }

    def __init__(self, rounds: int = 2, smoothing: float = 0.01, **network: Unpack[NetworkParameters]) -> None:
        super().__init__(**network)
        self.rounds = rounds
        self.smoothing = smoothing

    def _learn_network(self, context: TrainingContext) -> FitResult:
        gold = context.data.gold
        target = initial_posterior(context.annotations, gold)
        network, history = _train(context, target, 0)
        for number in range(1, self.rounds + 1):
            proba = probabilities(network, context.data.rows)
            target, _, _ = see_labels(proba, context.annotations, gold, self.smoothing)
            network, found = _train(context, target, number)
            history += found
        proba = probabilities(network, context.data.rows)
        posterior, confusion, prior = see_labels(proba, context.data.annotations, gold, self.smoothing)
        return FitResult(network, history, posterior, {"confusion_": confusion, "class_prior_": prior})


def see_labels(proba: Array, annotations: Annotations, gold: Gold, smoothing: float) -> tuple[Array, Array, Array]:
    """Steps 2 to 4: the posterior, confusion matrices and class frequencies that follow from a network's answers.

    Gold is known better than any answer; of an item without labels, what the network says is all there is.
    """
    packed, n_classes = pack(annotations), annotations.n_classes
    answer = proba.argmax(axis=1) if gold is None else np.where(gold >= 0, gold, proba.argmax(axis=1))
    table = log_confusions(packed, np.eye(n_classes)[answer], smoothing)
    labelled = annotations.n_labels > 0
    prior: Array = np.bincount(answer[labelled], minlength=n_classes) + np.float64(smoothing)
    prior /= prior.sum()
    before = np.where(labelled[:, None], np.log(prior), safe_log(proba))
    posterior, _ = posterior_of(packed, table, before, gold)
    return posterior, np.exp(table), prior


def _train(context: TrainingContext, posterior: Array, number: int) -> tuple[nn.Module, list[dict[str, float]]]:
    network, history = context.train_on(posterior, posterior, name=f"round-{number}")
    return network, [epoch | {"round": float(number)} for epoch in history]
