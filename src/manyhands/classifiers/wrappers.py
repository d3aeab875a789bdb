"""Methods around another classifier: `Ensemble` averages several fits of it, `PriorAdjusted` shifts its class prior."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, seed_unset
from manyhands.annotations import Annotations
from manyhands.classes import estimated_shares, shift_prior
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import (
    NETWORK_CONSTRAINTS,
    FitResult,
    TrainingContext,
    context_for,
    nested_method,
)
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.features import Rows
from manyhands.validation import Constraint, NameOr, Number, Probabilities, RandomState

if TYPE_CHECKING:
    from torch import nn


def _with_named_method(owner: BaseEstimator, parameter: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for `set_params` in which a method given by its name is an instance, if its own are set too."""
    method = changes.get(parameter, getattr(owner, parameter))
    has_nested = any(name.startswith(f"{parameter}__") for name in changes)
    if not (has_nested and isinstance(method, str) and method in registry.names("classifier")):
        return dict(changes)
    return {parameter: registry.create(method)} | {name: v for name, v in changes.items() if name != parameter}


# ----------------------------------------------------------------------------------------------------
# Ensemble: several networks of one method, trained from different random numbers; their mean probability predicts.
#
# p(k | x) = 1/M sum_m p_m(k | x),   m = 1 .. M members that differ in initial weights, mini-batches and dropout

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
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1. Where members estimate it themselves,
        the mean of theirs.
    history_ : list of dict
        One dict per epoch, member after member: the mean of each loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained networks as one from features to logits.

    References
    ----------
    B. Lakshminarayanan, A. Pritzel and C. Blundell (2017), Simple and scalable predictive uncertainty estimation using
    deep ensembles, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import Ensemble
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
        return super().set_params(**_with_named_method(self, "classifier", parameters))

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


# ----------------------------------------------------------------------------------------------------
# Class-prior shift: any classifier, predicting for items whose class frequencies differ from the training data.
#
#     p'(k | x) = p(k | x) prior_k / shares_k / sum_c p(c | x) prior_c / shares_c
#
# with shares_k the mean posterior of class k over the training items. It is Bayes' rule with another prior, and valid
# where p(x | k) is the same in both data sets.

_NAMES = tuple(
    name for name in registry.names("classifier") if name not in ("prior-adjusted", "neucrowd", "neucrowd-plus")
)


class PriorAdjusted(CrowdClassifier):
    """Any classifier, with predictions for items whose class frequencies differ from those of the training items.

    The probabilities of the classifier are divided by the class frequencies of its training posterior and multiplied by
    `prior`. The fit, `posterior_` and `score` are those of the classifier; only `predict` and `predict_proba` change.

    Use it where the class frequencies of the items to predict are known and differ from those in training, for
    instance balanced test items after imbalanced training. Where both have the same frequencies it costs accuracy.
    It is also the control for claims about methods for imbalanced classes.

    Parameters
    ----------
    classifier : str or CrowdClassifier, default="raykar"
        The classifier, by its registry name with default parameters, or as an instance.
    prior : {"uniform"} or array-like of shape (n_classes,), default="uniform"
        Class frequencies of the items to predict, in the order of `classes_`; they need not sum to 1.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of a classifier that has none of its own.

    Attributes
    ----------
    classifier_ : CrowdClassifier
        The fitted classifier.
    class_shares_ : ndarray of shape (n_classes,)
        Class frequencies of the training items by its posterior, at least half an item of each class.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels, by the classifier; rows sum to 1.
    history_ : list of dict
        The history of the classifier.
    module_ : torch.nn.Module or scikit-learn classifier
        What the classifier trained; its outputs are not adjusted.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure, Neural Computation.

    Examples
    --------
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import PriorAdjusted
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]])
    >>> model = PriorAdjusted("raykar", prior=[1, 4]).fit([[0.0], [1.0], [0.0], [1.0], [0.2]], votes)
    >>> plain = model.classifier_.predict_proba([[0.5]])
    >>> bool(model.predict_proba([[0.5]])[0, 1] > plain[0, 1])
    True
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "classifier_")
    _constraints: ClassVar[dict[str, Constraint]] = {
        "classifier": NameOr(_NAMES, "score_labels", "a classifier of crowd labels"),
        "prior": Probabilities(("uniform",)),
        "random_state": RandomState(),
    }

    classifier_: CrowdClassifier
    class_shares_: Array

    def __init__(
        self, classifier: Any = "raykar", prior: str | npt.ArrayLike = "uniform", *, random_state: Seed = None
    ) -> None:
        self.classifier = classifier
        self.prior = prior
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
        return super().set_params(**_with_named_method(self, "classifier", parameters))

    def score_labels(self, X: Any, annotations: Annotations, *, ids: Any = None) -> Array:
        """Return the log-likelihood of each held-out label, under the class frequencies of the training items.

        Parameters
        ----------
        X : array-like of shape (n_items, ...)
            Features of the held-out items.
        annotations : Annotations
            Labels of these items.
        ids : sequence of shape (n_rows,) or str, default=None
            Item id of each row of X, or the name of the column that has them.

        Returns
        -------
        ndarray of shape (n_annotations,)
            That of the classifier: held-out labels have its class frequencies, not those of `prior`.
        """
        self._check_fitted()
        return self.classifier_.score_labels(X, annotations, ids=ids)

    def _has_own_likelihood(self) -> bool:
        return self.classifier_._has_own_likelihood()

    def _trains_network(self) -> bool:
        return False  # the classifier makes a training context of its own

    def _learn(self, context: TrainingContext) -> FitResult:
        self._new_prior(context.data.annotations.n_classes)  # a prior of another length is refused before any training
        inner = self._new_classifier()
        seed_unset(inner, context.rng).check_parameters()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # its notes are among those of this method, which warns once
            inner._fit(replace(context.data, given=None))
        results = {"classifier_": inner, "class_shares_": estimated_shares(inner.posterior_)}
        return FitResult(inner.module_, inner.history_, inner.posterior_, results, inner.notes_)

    def _new_classifier(self) -> Any:
        """Return an unfitted copy of the classifier."""
        if isinstance(self.classifier, str):
            return registry.create(self.classifier)
        from sklearn.base import clone

        return clone(self.classifier)

    def _proba(self, module: Any, rows: Rows) -> Array:
        inner = self.classifier_
        proba = inner._training_prior_proba(inner._proba(module, rows))
        return shift_prior(proba, self.class_shares_, self._new_prior(proba.shape[1]))

    def _uniform_prior_proba(self, proba: Array) -> Array:
        prior = self._new_prior(proba.shape[1])
        return proba if prior is None else shift_prior(proba, prior)

    def _new_prior(self, n_classes: int) -> Array | None:
        """Return the class frequencies of the items to predict; None is uniform."""
        if isinstance(self.prior, str):
            return None
        prior = np.asarray(self.prior, float)
        if len(prior) != n_classes:
            raise ParameterError(f"The prior has {len(prior)} numbers, but there are {n_classes} classes.")
        return prior
