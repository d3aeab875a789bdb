"""Two stages: infer the truth of the training items with an aggregator, then train a classifier on it.

    r_i = posterior of the aggregator,  then  min sum_i -log f(x_i)[argmax r_i]  (hard)  or  sum_ik -r_ik log f(x_i)[k]

This gives the usual baselines: majority vote or Dawid-Skene followed by logistic regression or a network; with vote
shares as soft labels it is known as SoftProb.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, seed_unset
from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import AGGREGATOR, NETWORK_CONSTRAINTS, FitResult, TrainingContext, infer_truth
from manyhands.em.decisions import pick_classes
from manyhands.exceptions import ParameterError
from manyhands.features import Rows
from manyhands.validation import Boolean, Constraint, NameOr

if TYPE_CHECKING:
    from manyhands.aggregation.base import Aggregator

_LEAST = 1e-6  # a class of lower probability gets no copy of the row


class TwoStage(CrowdClassifier):
    """Aggregate the labels, then train a network or a scikit-learn classifier on the result.

    The simplest way from labels to a classifier, and the baseline for all others. Items without labels and gold are not
    used. The posterior is the aggregator's.

    Parameters
    ----------
    aggregator : str or Aggregator, default="pooled-dawid-skene"
        The first stage, by name or as an instance; the `random_state` of an instance is kept.
    classifier : {"network", "logistic-regression"} or scikit-learn classifier, default="network"
        The second stage; a classifier needs `predict_proba`.
    soft : bool, default=False
        Train on the posterior rather than on its most probable class; for scikit-learn, rows are repeated with weights.
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
        L2 penalty of Adam on all weights: `weight_decay` times the weights is added to their gradient.
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
    aggregator_ : Aggregator
        The fitted first stage.
    module_ : torch.nn.Module or scikit-learn classifier
        The fitted second stage.

    Examples
    --------
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import TwoStage
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = TwoStage("majority-vote", "logistic-regression").fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "aggregator_")
    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "aggregator": AGGREGATOR,
        "classifier": NameOr(("network", "logistic-regression"), "predict_proba", "a scikit-learn classifier"),
        "soft": Boolean(),
    }

    aggregator_: Aggregator

    def __init__(
        self,
        aggregator: Any = registry.DEFAULT,
        classifier: Any = "network",
        soft: bool = False,
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
        self.aggregator = aggregator
        self.classifier = classifier
        self.soft = soft
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

    def _trains_network(self) -> bool:
        return isinstance(self.classifier, str) and self.classifier == "network"

    def _learn(self, context: TrainingContext) -> FitResult:
        if self._trains_network():
            return self._learn_network(context)
        data = context.data
        first = infer_truth(self.aggregator, data, data.annotations, context.rng)
        items = np.flatnonzero(~first.unlabelled_)
        model = fit_classifier(self._new_classifier(context.rng), data.rows.whole(), items, self._target(first)[items])
        return _result(model, [], first)

    def _learn_network(self, context: TrainingContext) -> FitResult:
        # Held-out labels are hidden from both stages.
        first = infer_truth(self.aggregator, context.data, context.annotations, context.rng)
        network, history = context.train_on(self._target(first), first.posterior_)
        if context.heldout is not None:  # the posterior is that of all labels
            first = infer_truth(self.aggregator, context.data, context.data.annotations, context.rng)
        return _result(network, history, first)

    def _proba(self, module: Any, rows: Rows) -> Array:
        if hasattr(module, "predict_proba"):
            return classifier_proba(module, rows.whole(), len(self.classes_))
        return super()._proba(module, rows)

    def _uniform_prior_proba(self, proba: Array) -> Array:
        last = self.module_[-1] if hasattr(self.module_, "named_steps") else self.module_
        return proba if getattr(last, "class_weight", None) == "balanced" else super()._uniform_prior_proba(proba)

    def _target(self, first: Aggregator) -> Array:
        """Targets of the second stage, (n_items, n_classes); rows sum to 1."""
        if self.soft:
            return first.posterior_
        code, _ = pick_classes(first.posterior_, first.unlabelled_)
        return np.eye(first.posterior_.shape[1])[code]

    def _new_classifier(self, rng: np.random.Generator) -> Any:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression

        if isinstance(self.classifier, str):
            return LogisticRegression(max_iter=1000)
        return seed_unset(clone(self.classifier), rng)


def _result(module: Any, history: list[dict[str, float]], first: Aggregator) -> FitResult:
    return FitResult(module, history, first.posterior_, {"aggregator_": first}, first.notes_)


def fit_classifier(model: Any, X: Any, items: npt.NDArray[np.intp], target: Array) -> Any:
    """Fit a scikit-learn classifier on class codes; soft targets become repeated rows with weights.

    Shapes: target (len(items).
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.utils.validation import has_fit_parameter

    row, label = np.nonzero(target > _LEAST)
    if len(np.unique(label)) < 2:
        model = DummyClassifier()  # scikit-learn's linear models refuse a single class
    rows = X[items[row]]
    rows = rows if rows.ndim == 2 else rows.reshape(len(rows), -1)
    weight = target[row, label]
    if np.all(weight == 1):
        return model.fit(rows, label)
    if not has_fit_parameter(model, "sample_weight"):
        raise ParameterError(
            f"Soft labels need a classifier whose fit takes sample_weight; {type(model).__name__} does not. "
            f"Set soft=False."
        )
    return model.fit(rows, label, sample_weight=weight)


def classifier_proba(model: Any, X: Any, n_classes: int) -> Array:
    """Return the probabilities of a scikit-learn classifier, (n_rows, n_classes), with 0 for classes it never saw."""
    proba = np.zeros((X.shape[0], n_classes))
    proba[:, model.classes_] = model.predict_proba(X if X.ndim == 2 else X.reshape(len(X), -1))
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))
