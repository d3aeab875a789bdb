"""Two stages: infer the truth of the training items, then train any classifier on it.

    r_i = posterior of an aggregator,  then  min sum_i -log f(x_i)[argmax r_i]  (hard)  or  sum_ik -r_ik log f(x_i)[k]

This gives the usual baselines: majority vote or Dawid-Skene followed by logistic regression or a network; votes with
soft labels are known as SoftProb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.classifiers.base import AGGREGATOR, FitResult, TrainingData, infer_truth
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.decisions import pick_classes
from manyhands.em.kernels import Array
from manyhands.exceptions import ParameterError
from manyhands.features import Rows
from manyhands.randomness import make_generator, seed_unset
from manyhands.validation import Constraint, NameOr, Switch

if TYPE_CHECKING:
    from manyhands.aggregation.base import Aggregator

_SOME = 1e-6  # a class less probable than this gets no copy of the row


class TwoStage(NetworkClassifier):
    """Aggregate the labels, then train a network or a scikit-learn classifier on the result.

    Items without labels and gold teach nothing. The posterior is the aggregator's.

    Parameters
    ----------
    aggregator : the first stage, by its name or as an instance, whose own random_state then counts
    classifier : "network", "logistic-regression", or any scikit-learn classifier with predict_proba
    soft : train on the posterior rather than on its largest class; rows are repeated with weights for scikit-learn
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    aggregator_ : the first stage, fitted

    Examples
    --------
    >>> from manyhands import Annotations, TwoStage
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = TwoStage("majority-vote", "logistic-regression").fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "aggregator": AGGREGATOR,
        "classifier": NameOr(("network", "logistic-regression"), "predict_proba", "a scikit-learn classifier"),
        "soft": Switch(),
    }

    def __init__(
        self,
        aggregator: Any = registry.DEFAULT,
        classifier: Any = "network",
        soft: bool = False,
        **network: Unpack[NetworkParameters],
    ) -> None:
        super().__init__(**network)
        self.aggregator = aggregator
        self.classifier = classifier
        self.soft = soft

    def _learn(self, data: TrainingData) -> FitResult:
        if isinstance(self.classifier, str) and self.classifier == "network":
            return super()._learn(data)
        rng = make_generator(self.random_state)
        first = self._aggregate(data, data.annotations, rng)
        items = np.flatnonzero(~first.unlabelled_)  # those that teach something
        model = fit_classifier(self._new_classifier(rng), data.rows.whole(), items, self._target(first)[items])
        return _learned(model, [], first)

    def _learn_network(self, context: TrainingContext) -> FitResult:
        first = self._aggregate(
            context.data, context.annotations, context.rng
        )  # held-out labels are unknown to both stages
        network, history = context.train_on(self._target(first), first.posterior_)
        if context.heldout is not None:
            first = self._aggregate(
                context.data, context.data.annotations, context.rng
            )  # for the posterior of all items
        return _learned(network, history, first)

    def _proba(self, module: Any, rows: Rows) -> Array:
        if hasattr(module, "predict_proba"):
            return classifier_proba(module, rows.whole(), len(self.classes_))
        return super()._proba(module, rows)

    def _aggregate(self, data: TrainingData, annotations: Annotations, rng: np.random.Generator) -> Aggregator:
        return infer_truth(self.aggregator, data, annotations, rng)

    def _target(self, first: Aggregator) -> Array:
        """(n_items, n_classes) what the second stage learns; rows sum to 1."""
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


def _learned(module: Any, history: list[dict[str, float]], first: Aggregator) -> FitResult:
    return FitResult(module, history, first.posterior_, {"aggregator_": first}, first.notes_)


def fit_classifier(model: Any, X: Any, items: npt.NDArray[np.intp], target: Array) -> Any:
    """Fit a scikit-learn classifier on class codes; soft targets become repeated rows with weights."""
    from sklearn.dummy import DummyClassifier
    from sklearn.utils.validation import has_fit_parameter

    row, label = np.nonzero(target > _SOME)
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
    """(n_rows, n_classes) a scikit-learn classifier's probabilities, with 0 for classes it never met."""
    proba = np.zeros((X.shape[0], n_classes))
    proba[:, model.classes_] = model.predict_proba(X if X.ndim == 2 else X.reshape(len(X), -1))
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))
