"""Ensemble: several networks of one method, trained from different random numbers; their mean probability predicts.

p(k | x) = 1/M sum_m p_m(k | x),   m = 1 .. M members that differ in initial weights, mini-batches and dropout
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.nested_methods import nested_method, with_named_method
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, context_for
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed
from manyhands.validation import Constraint, NameOr, Number

if TYPE_CHECKING:
    from torch import nn

_METHODS = (
    *("aggnet", "conal", "crowd-layer", "doctor-net", "doctor-net-biwdn", "doctor-net-iwdn", "max-mig", "mbem"),
    *("spee-lfc", "spee-lfc-d", "trace-reg", "two-stage"),
)


class Ensemble(CrowdClassifier):
    """Several networks of one method, whose class probabilities are averaged.

    Use it to compare a method that is itself an ensemble, such as `CrowdInG.plus` or `NeuCrowd`, with another one, or
    where one or two more points of accuracy are worth the time of several fits. All members see the same labels; the
    same ones are held out for early stopping.

    Parameters
    ----------
    classifier : str or estimator, default="aggnet"
        The method of the members, by its registry name or with parameters of its own, as in ``CrowdLayer(form="vw")``:
        a classifier that trains one network. ``set_params(classifier__form="vw")`` does the same. The network options
        are those given here.
    members : int, default=5
        Number of networks.
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
        L2 penalty of Adam on all weights, those of noise layers included: `weight_decay` times the weights is added to
        their gradient.
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
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1. Where members estimate it themselves,
        the mean of theirs.
    history_ : list of dict
        One dict per epoch, member after member: the mean of each loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained networks as one from features to logits.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    B. Lakshminarayanan, A. Pritzel and C. Blundell (2017), Simple and scalable predictive uncertainty estimation using
    deep ensembles, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, Ensemble
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = Ensemble("crowd-layer", members=2, learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "classifier": NameOr(_METHODS, "_trains_network", "a network classifier"),
        "members": Number(whole=True, least=1),
    }

    def __init__(
        self,
        classifier: Any = "aggnet",
        members: int = 5,
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
        self.classifier = classifier
        self.members = members
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

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; `classifier__name` also where the classifier is given by its registry name.

        Parameters
        ----------
        **parameters : object
            New values; `classifier__parameter` sets one of the classifier, which then is an instance.

        Returns
        -------
        self
        """
        return super().set_params(**with_named_method(self, "classifier", parameters))

    def _learn(self, context: TrainingContext) -> FitResult:
        method = self._member()
        each = [method._learn(context_for(method, context, f"member-{member}-")) for member in range(self.members)]
        posteriors = [result.posterior for result in each if result.posterior is not None]
        posterior = np.mean(posteriors, axis=0) if len(posteriors) == len(each) else None
        history = [epoch for result in each for epoch in result.history]
        notes = {code: sentence for result in each for code, sentence in result.notes.items()}
        return FitResult(_mean_of([result.module for result in each]), history, posterior, notes=notes)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        method = self._member()
        return _mean_of([method._new_module(row_shape, n_classes, n_workers) for _ in range(self.members)])

    def _member(self) -> Any:
        """Return the method of the members, with the network options of the ensemble."""
        method = nested_method(self, "classifier")
        if not (set(NETWORK_CONSTRAINTS) <= set(method.get_params(deep=False)) and method._trains_network()):
            raise ParameterError(
                f"The classifier of an Ensemble must train a network, as {', '.join(_METHODS)} do. "
                f"Got {self.classifier!r}."
            )
        return method


def _mean_of(modules: list[nn.Module]) -> nn.Module:
    from manyhands.nn.backbones import Ensemble as MeanProbability

    return MeanProbability(modules)
