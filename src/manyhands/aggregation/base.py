"""The base of all aggregators: the door of `fit`, the one place that stores results, prediction and score."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em, has_no_redundancy, n_labels_with_gold
from manyhands.em.decisions import class_totals, overall, pick_classes
from manyhands.em.e_step import posterior_given
from manyhands.em.kernels import Array
from manyhands.em.priors import ClassPrior, gold_codes
from manyhands.em.starts import MIN_WRONG_ON_GOLD, wrong_on_gold
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import CrowdWarning
from manyhands.heldout import align, heldout_log_likelihood
from manyhands.noise import NoiseModel, safe_log
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, Number, Probabilities, RandomState, check_annotations

P = TypeVar("P")
Gold = npt.NDArray[np.int32] | None  # (n_items,) class codes, -1 where the truth is not known

PRIOR_ACCURACY = 0.7  # what is believed of a worker of whom nothing is known, worth one label


# What the parameters of a method that is EM with a table may be.
EM_CONSTRAINTS: dict[str, Constraint] = {
    "prior": Probabilities(("estimated", "uniform")),
    "max_iter": Number(whole=True, least=1),
    "tol": Number(least=0),
    "n_init": Number(whole=True, least=1),
    "random_state": RandomState(),
}


class EMMethod(Protocol):
    """A method with these parameters."""

    max_iter: int
    tol: float
    n_init: int
    random_state: Seed


def fit_by_em(
    method: EMMethod, annotations: Annotations, gold: Gold, noise: NoiseModel[P], prior: ClassPrior
) -> ConfusionEMFit[P]:
    """EM with a table, as the parameters of the method say."""
    return fit_confusion_em(
        annotations,
        noise,
        prior,
        gold=gold,
        max_iter=method.max_iter,
        tol=method.tol,
        n_init=method.n_init,
        rng=make_generator(method.random_state),
    )


@dataclass(frozen=True)
class Inference:
    """What a method found; the base stores it."""

    posterior: Array  # (n_items, n_classes)
    counts: Array | None = None  # expected, [worker, truth, label], where the method has them
    n_iter: int = 1
    converged: bool = True
    history: list[float] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)  # further attributes, by name
    notes: dict[str, str] = field(default_factory=dict)  # what the user should know, by code

    @classmethod
    def from_table(cls, fit: ConfusionEMFit[Any], confusion: Array, **results: Any) -> Inference:
        """The outcome of EM with a table model."""
        assert fit.final.posterior is not None
        log_prior = fit.params.log_prior
        table = {"_log_table": _with_unseen_worker(fit), "_log_prior": log_prior}
        results |= {
            "confusion_": confusion,
            "class_prior_": elementary.exp(log_prior),
            "restarts_": fit.restarts,
        } | table
        return cls(fit.final.posterior, fit.final.counts, fit.n_iter, fit.converged, fit.history, results)


class Aggregator(BaseEstimator, ABC):
    """Truth inference without features.

    A method implements `_infer`, and `_posterior` too unless it is a table model.

    Attributes
    ----------
    posterior_ : (n_items, n_classes), rows sum to 1
    labels_ : (n_items,) in the caller's own class values; None where an item has no label
    classes_, item_ids_, worker_ids_ : as in the annotations
    worker_accuracy_ : (n_workers,) expected share of right labels, drawn toward 0.7 by one label
    tied_, unlabelled_ : (n_items,) bool
    n_iter_, converged_, history_ : passes over the data, whether they sufficed, the objective after each
    notes_ : what the crowd does not allow to conclude, by code; each was raised as a CrowdWarning
    """

    classes_: npt.NDArray[Any]
    item_ids_: npt.NDArray[Any]
    worker_ids_: npt.NDArray[Any]
    posterior_: Array
    labels_: npt.NDArray[Any]
    worker_accuracy_: Array
    notes_: dict[str, str]
    _training: Annotations
    _gold: dict[Any, Any]
    _class_totals: Array
    _log_table: Array  # (n_workers + 1, n_classes, n_classes); the last worker is one never seen
    _log_prior: Array

    def fit(self, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Self:
        """Infer the truth of every item.

        Parameters
        ----------
        annotations : the crowd's labels
        gold : {item: class} where the truth is known; what workers said on gold items counts as ever
        """
        self._check_parameters()
        check_annotations(annotations)
        codes = gold_codes(gold, annotations.item_ids, annotations.classes)
        found = self._infer(annotations, codes)
        self._store(annotations, dict(gold or {}), codes, found)
        return self

    def fit_predict(self, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> npt.NDArray[Any]:
        """`fit`, then the inferred label of every item."""
        return self.fit(annotations, gold).labels_

    def predict_proba(self, annotations: Annotations) -> Array:
        """(n_items, n_classes) the posterior of these items, given what `fit` learnt of the workers.

        A worker whom `fit` did not see counts as an average one. Classes must be among `classes_`.
        """
        self._check_fitted()
        check_annotations(annotations)
        gold = self._known_gold(annotations)
        posterior = self._posterior(self._align(annotations), gold)
        if not hasattr(self, "_log_prior"):  # a vote: of a silent item it knows what the items of `fit` were
            posterior[_without_label(annotations, gold)] = overall(self._class_totals)
        return posterior

    def predict(self, annotations: Annotations) -> npt.NDArray[Any]:
        """The label of each of these items, given what `fit` learnt of the workers."""
        posterior = self.predict_proba(annotations)
        unlabelled = _without_label(annotations, self._known_gold(annotations))
        code, _ = pick_classes(posterior, unlabelled, self._class_totals)
        return _label_values(code, self.classes_)

    @property
    def annotations_(self) -> Annotations:
        """The annotations of `fit`."""
        self._check_fitted()
        return self._training

    def score(self, annotations: Annotations) -> float:
        """Mean log-likelihood of held-out annotations; no truth is needed.

        The same recipe for every method, so that scores compare: worker confusions from the training posterior,
        shrunk toward the crowd's, then log sum_k p(k | the item's other labels) confusion[worker, k, label].
        """
        self._check_fitted()
        check_annotations(annotations)
        return heldout_log_likelihood(self._training, self.posterior_, self._align(annotations))

    @abstractmethod
    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        """What the method finds in checked annotations."""

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """The posterior of aligned annotations: an E step with the table that `fit` found."""
        return posterior_given(annotations, self._log_table, self._log_prior, gold)[0]

    def _align(self, annotations: Annotations) -> Annotations:
        """These annotations in the codes of `fit`, with one more worker for all whom it did not see."""
        return align(annotations, self.worker_ids_, self.classes_, type(self).__name__)

    def _known_gold(self, annotations: Annotations) -> Gold:
        """The gold that `fit` was given, for these items."""
        known = {item: self._gold[item] for item in annotations.item_ids.tolist() if item in self._gold}
        return gold_codes(known, annotations.item_ids, self.classes_)

    def _store(self, annotations: Annotations, gold: dict[Any, Any], codes: Gold, found: Inference) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a second fit forgets the first
        self._training, self._gold = annotations, gold
        self.classes_, self.item_ids_ = annotations.classes, annotations.item_ids
        self.worker_ids_ = annotations.worker_ids
        self.posterior_ = found.posterior
        self.unlabelled_ = _without_label(annotations, codes)
        self._class_totals = class_totals(found.posterior, self.unlabelled_)
        code, self.tied_ = pick_classes(found.posterior, self.unlabelled_, self._class_totals)
        self.labels_ = _label_values(code, annotations.classes)
        self.worker_accuracy_ = _worker_accuracy(annotations, codes, found)
        self.n_iter_, self.converged_, self.history_ = int(found.n_iter), bool(found.converged), found.history
        for name, value in found.results.items():
            setattr(self, name, value)
        self.notes_ = _notes(annotations, codes, found) | found.notes
        for code_word, sentence in self.notes_.items():
            warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=3)


def _with_unseen_worker(fit: ConfusionEMFit[Any]) -> Array:
    """The table of the last E step with one more worker, who errs as the crowd does on average."""
    if fit.no_redundancy:
        return np.concatenate([fit.used_log_confusion, fit.used_log_confusion[:1]])
    counts = fit.final.counts.sum(axis=0) + 1.0 / fit.log_table.shape[2]  # (truth, label)
    crowd = safe_log(counts / counts.sum(axis=1, keepdims=True))
    return np.concatenate([fit.used_log_confusion, crowd[None]])


def _without_label(annotations: Annotations, gold: Gold) -> npt.NDArray[np.bool_]:
    unlabelled = annotations.n_labels == 0
    return unlabelled if gold is None else unlabelled & (gold < 0)


def _label_values(code: npt.NDArray[np.int32], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Codes as the caller's own values; None for -1."""
    if code.min(initial=0) >= 0:
        return classes[code]
    values = np.empty(len(code), object)
    values[code >= 0] = classes[code[code >= 0]].tolist()
    return values


def _worker_accuracy(annotations: Annotations, gold: Gold, found: Inference) -> Array:
    """Expected share of right labels among those gold or somebody else can speak to; a lone voice proves nothing."""
    n_workers = annotations.n_workers
    checked = n_labels_with_gold(annotations, gold) >= 2
    if found.counts is not None and np.all(checked | (annotations.n_labels == 0)):
        right, total = np.trace(found.counts, axis1=1, axis2=2), found.counts.sum(axis=(1, 2))
        return (right + PRIOR_ACCURACY) / (total + 1.0)
    weight = checked[annotations.item].astype(float)
    p_right = found.posterior[annotations.item, annotations.label]
    right = np.bincount(annotations.worker, weights=weight * p_right, minlength=n_workers)
    return (right + PRIOR_ACCURACY) / (np.bincount(annotations.worker, weights=weight, minlength=n_workers) + 1.0)


def _notes(annotations: Annotations, gold: Gold, found: Inference) -> dict[str, str]:
    notes = {}
    if has_no_redundancy(annotations, gold):
        notes["no_redundancy"] = (
            "No item has two labels, so nothing can be said about any worker; labels stay as given."
        )
    if annotations.n_annotations > 1 and annotations.label.min() == annotations.label.max():
        notes["single_class"] = "Every label names the same class; confidence rests on what was assumed beforehand."
    wrong, known = wrong_on_gold(annotations, gold)
    if wrong >= MIN_WRONG_ON_GOLD and 2 * wrong >= known:
        notes["vote_contradicts_gold"] = (
            f"The majority vote is wrong on {wrong} of {known} gold items that have labels: most workers err or read "
            f"the classes differently, or the gold is wrong. Check some of these items, and some without gold."
        )
    if not found.converged:
        notes["not_converged"] = f"EM stopped after {found.n_iter} passes before it had settled; raise max_iter."
    return notes
