"""Class-prior shift: any classifier, predicting for items whose class frequencies differ from the training data.

    p'(k | x) = p(k | x) prior_k / shares_k / sum_c p(c | x) prior_c / shares_c

with shares_k the mean posterior of class k over the training items. It is Bayes' rule with another prior, and valid
where p(x | k) is the same in both data sets.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.class_balance import estimated_shares, shift_prior
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.fitting import fit_method
from manyhands.classifiers.nested_methods import with_named_method
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.kernels import Array
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.features import Rows
from manyhands.randomness import Seed, seed_unset
from manyhands.validation import Constraint, NameOr, Probabilities, RandomState

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
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels, by the classifier; rows sum to 1.
    history_ : list of dict
        The history of the classifier.
    module_ : torch.nn.Module or scikit-learn classifier
        What the classifier trained; its outputs are not adjusted.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure, Neural Computation.

    Examples
    --------
    >>> from manyhands import Annotations, PriorAdjusted
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
        return super().set_params(**with_named_method(self, "classifier", parameters))

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
        self._wanted(context.data.annotations.n_classes)  # a prior of another length is refused before any training
        inner = self._new_classifier()
        seed_unset(inner, context.rng)._check_parameters()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # its notes are among those of this method, which warns once
            fit_method(inner, replace(context.data, given=None))
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
        return shift_prior(proba, self.class_shares_, self._wanted(proba.shape[1]))

    def _uniform_prior_proba(self, proba: Array) -> Array:
        wanted = self._wanted(proba.shape[1])
        return proba if wanted is None else shift_prior(proba, wanted)

    def _wanted(self, n_classes: int) -> Array | None:
        """Return the wanted class frequencies; None is uniform."""
        if isinstance(self.prior, str):
            return None
        prior = np.asarray(self.prior, float)
        if len(prior) != n_classes:
            raise ParameterError(f"The prior has {len(prior)} numbers, but there are {n_classes} classes.")
        return prior
