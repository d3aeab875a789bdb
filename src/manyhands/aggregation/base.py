"""The base of all aggregators: `fit`, the storage of its results, prediction, and held-out score."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.em_fit import PRIOR_ACCURACY as PRIOR_ACCURACY
from manyhands.aggregation.em_fit import Inference as Inference
from manyhands.aggregation.em_fit import worker_accuracy
from manyhands.aggregation.limitations import NO_REDUNDANCY, NO_TRAINING_LABELS, NOT_CONVERGED, SINGLE_CLASS
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import has_no_redundancy
from manyhands.em.decisions import class_totals, overall, pick_classes
from manyhands.em.e_step import Gold as Gold
from manyhands.em.e_step import posterior_given
from manyhands.em.kernels import Array
from manyhands.em.priors import gold_codes
from manyhands.em.starts import MIN_WRONG_ON_GOLD, wrong_on_gold
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.heldout import COMMON, OWN, align, leave_one_out_log_likelihoods, mean_score
from manyhands.progress_display import showing
from manyhands.result_rows import restore_rows
from manyhands.validation import check_annotations


class Aggregator(BaseEstimator, ABC):
    """Base class of aggregators: truth inference from crowd labels, without features of the items.

    A method implements `_infer`, and also `_posterior` unless it is fitted by `fit_by_em`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `posterior_`.
    item_ids_ : ndarray of shape (n_items,)
        The items, in the order of the rows of `posterior_`.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers.
    posterior_ : ndarray of shape (n_items, n_classes)
        p(truth | labels) of each item; rows sum to 1.
    labels_ : ndarray of shape (n_items,)
        Inferred class of each item, in the caller's own values; None for an item without labels.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of right labels under `posterior_`, with one pseudo-count of accuracy 0.7.
    tied_ : ndarray of shape (n_items,) of bool
        Items on which several classes have the largest probability.
    unlabelled_ : ndarray of shape (n_items,) of bool
        Items without a label and without gold.
    n_iter_ : int
        Number of passes over the data.
    converged_ : bool
        Whether the method converged within `max_iter`.
    history_ : list of float
        Objective after each iteration; empty for methods without one.
    notes_ : dict of str to str
        Limitations of the result, by code, such as "no_redundancy"; each was also issued as a CrowdWarning.
    annotations_ : Annotations
        The annotations that were passed to `fit`.
    """

    # Attributes with a row per item; a method with more of them adds their names.
    _of_items: ClassVar[tuple[str, ...]] = ("item_ids_", "posterior_", "labels_", "tied_", "unlabelled_", "_training")

    _takes_weights: ClassVar[bool] = False  # whether labels may have weights (`Annotations.weight`)

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
    _log_confusion: Array  # (n_workers + 1, n_classes, n_classes); the last worker is an unseen one
    _log_prior: Array

    def fit(self, annotations: Annotations | Any, gold: Mapping[Any, Any] | None = None, *, verbose: int = 1) -> Self:
        """Infer the truth of every item.

        The method runs on the items in the order of their sorted ids, so that the results of an item do not depend on
        the order of rows; all results have their rows in the order of `annotations.item_ids`.

        Parameters
        ----------
        annotations : Annotations or data frame
            The crowd's labels. A frame is read as `manyhands.read_annotations` reads it.
        gold : mapping, default=None
            Known truth of some items, {item: class}. The posterior of a gold item is certain; the labels on it are used
            to estimate the workers.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            Where a constructor parameter is out of its range.
        AnnotationError
            Where the annotations are empty, or gold names unknown items or classes.
        """
        self._check_parameters()
        annotations = self._checked(annotations)
        in_order = annotations._with_sorted_items()
        codes = gold_codes(gold, in_order.item_ids, in_order.classes)
        with showing(verbose):
            found = self._infer(in_order, codes)
        self._store(in_order, dict(gold or {}), codes, found)
        restore_rows(self, annotations, in_order)
        return self

    def fit_predict(
        self, annotations: Annotations | Any, gold: Mapping[Any, Any] | None = None, *, verbose: int = 1
    ) -> npt.NDArray[Any]:
        """Fit, then return the inferred class of every item.

        Parameters
        ----------
        annotations : Annotations or data frame
            The crowd's labels.
        gold : mapping, default=None
            Known truth of some items, {item: class}.
        verbose : {0, 1}, default=1
            1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

        Returns
        -------
        ndarray of shape (n_items,)
            `labels_`.
        """
        return self.fit(annotations, gold, verbose=verbose).labels_

    def predict_proba(self, annotations: Annotations | Any) -> Array:
        """Posterior of items given their labels and the worker parameters estimated by `fit`.

        Parameters
        ----------
        annotations : Annotations or data frame
            Labels of any items, by workers who need not have been in `fit`: an unseen worker counts as an average one.
            Classes must be among `classes_`.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Rows sum to 1. Items that had gold in `fit` are certain.
        """
        self._check_fitted()
        annotations = self._checked(annotations)
        gold = self._known_gold(annotations)
        posterior = self._posterior(self._align(annotations), gold)
        if not hasattr(self, "_log_prior"):  # a voting method: unlabelled items get the class shares of `fit`
            posterior[_without_label(annotations, gold)] = overall(self._class_totals)
        return posterior

    def predict(self, annotations: Annotations | Any) -> npt.NDArray[Any]:
        """Most probable class of items given their labels and the worker parameters estimated by `fit`.

        Parameters
        ----------
        annotations : Annotations or data frame
            Labels of any items, see `predict_proba`.

        Returns
        -------
        ndarray of shape (n_items,)
            Classes in the caller's own values; None for an item without labels.
        """
        self._check_fitted()
        annotations = self._checked(annotations)
        posterior = self.predict_proba(annotations)
        unlabelled = _without_label(annotations, self._known_gold(annotations))
        code, _ = pick_classes(posterior, unlabelled, self._class_totals)
        return _label_values(code, self.classes_)

    @property
    def annotations_(self) -> Annotations:
        """The annotations that were passed to `fit`."""
        self._check_fitted()
        return self._training

    def score(self, annotations: Annotations | Any) -> float:
        """Mean held-out log-likelihood of labels that `fit` did not see; no truth is needed.

        The mean of `score_labels`; `score_kind` says which likelihood a label has.

        Parameters
        ----------
        annotations : Annotations or data frame
            Held-out labels.

        Returns
        -------
        float
            Higher is better; NaN without labels.
        """
        annotations = self._checked(annotations)._with_sorted_items()
        return mean_score(self.score_labels(annotations), annotations.weight)

    def score_labels(self, annotations: Annotations | Any) -> Array:
        """Held-out log-likelihood of each label: log sum_k p(k | the other labels of the item) p(label | k, ...).

        p(label | k, ...) is the confusion matrix of the worker, estimated from the training posterior and shrunk
        toward the pooled one, or that of the method where it models the difficulty of items (`score_kind`). Both sum
        to 1 over the labels, so that scores are comparable. See `manyhands.heldout`.

        Parameters
        ----------
        annotations : Annotations or data frame
            Held-out labels.

        Returns
        -------
        ndarray of shape (n_annotations,)
            In the order of the annotations.

        Raises
        ------
        AnnotationError
            Where the model was fitted on labels in shards.
        """
        self._check_fitted()
        if self._training.n_annotations == 0:
            raise AnnotationError(NO_TRAINING_LABELS)
        annotations = self._checked(annotations)
        aligned = self._align(annotations)
        own = self._label_given_truth(aligned)
        order, posterior = self._training._sorting_order, self._scoring_posterior()
        posterior = posterior if order is None else posterior[order]
        return leave_one_out_log_likelihoods(self._training._with_sorted_items(), posterior, aligned, own)

    @property
    def score_kind(self) -> str:
        """Likelihood of a label in `score`: "own" (of the method), or "confusion matrices" (the common recipe)."""
        self._check_fitted()
        is_own = type(self)._label_given_truth is not Aggregator._label_given_truth
        return OWN if is_own else COMMON

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the fitted aggregator to a folder as JSON and safetensors; `manyhands.load_model` reads it.

        The folder holds all results and the labels that `fit` was given, with the ids of items and workers.

        Parameters
        ----------
        folder : str or Path
            The folder to write.
        force : bool, default=False
            Replace the folder if it exists.
        """
        from manyhands.persistence.models import save_model

        self._check_fitted()
        save_model(self, folder, force=force)

    def _scoring_posterior(self) -> Array:
        """The posterior of the training items from which `score` estimates confusion matrices."""
        return self.posterior_

    def _checked(self, annotations: Any) -> Annotations:
        """Return checked annotations; weights of labels are refused by methods that do not take them."""
        checked: Annotations = check_annotations(
            annotations, takes_weights=self._takes_weights, who=type(self).__name__
        )
        return checked

    def _label_given_truth(self, annotations: Annotations) -> Array | None:
        """Return log p(label | truth) of aligned labels, (n_annotations, n_classes), by the method; None has none."""
        return None

    @abstractmethod
    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        """Run the method on checked annotations; `gold` has a class code per item, -1 where unknown, or is None."""

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """The posterior of aligned annotations: an E step with the confusion matrices that `fit` estimated."""
        return posterior_given(annotations, self._log_confusion, self._log_prior, gold)[0]

    def _align(self, annotations: Annotations) -> Annotations:
        """These annotations in the codes of `fit`, with one additional worker for all whom it did not see."""
        return align(annotations, self.worker_ids_, self.classes_, type(self).__name__)

    def _known_gold(self, annotations: Annotations) -> Gold:
        """The gold that `fit` was given, for these items."""
        known = {item: self._gold[item] for item in annotations.item_ids.tolist() if item in self._gold}
        return gold_codes(known, annotations.item_ids, self.classes_)

    def _store(self, annotations: Annotations, gold: dict[Any, Any], codes: Gold, found: Inference) -> None:
        """Set all fitted attributes and issue the notes as warnings; attributes of an earlier fit are removed."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # results of an earlier fit
        self._training, self._gold = annotations, gold
        self.classes_, self.item_ids_ = annotations.classes, annotations.item_ids
        self.worker_ids_ = annotations.worker_ids
        self.posterior_ = found.posterior
        self.unlabelled_ = _without_label(annotations, codes)
        self._class_totals = class_totals(found.posterior, self.unlabelled_)
        code, self.tied_ = pick_classes(found.posterior, self.unlabelled_, self._class_totals)
        self.labels_ = _label_values(code, annotations.classes)
        self.worker_accuracy_ = worker_accuracy(annotations, codes, found)
        self.n_iter_, self.converged_, self.history_ = int(found.n_iter), bool(found.converged), found.history
        for name, value in found.results.items():
            setattr(self, name, value)
        self.notes_ = _notes(annotations, codes, found) | found.notes
        for code_word, sentence in self.notes_.items():
            warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=3)


def _without_label(annotations: Annotations, gold: Gold) -> npt.NDArray[np.bool_]:
    """Whether each item has neither a label nor gold, shape (n_items,)."""
    unlabelled = annotations.n_labels == 0
    return unlabelled if gold is None else unlabelled & (gold < 0)


def _label_values(code: npt.NDArray[np.int32], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Codes as the caller's own values; None for -1."""
    if code.min(initial=0) >= 0:
        return classes[code]
    values = np.empty(len(code), object)
    values[code >= 0] = classes[code[code >= 0]].tolist()
    return values


def _notes(annotations: Annotations, gold: Gold, found: Inference) -> dict[str, str]:
    """Limitations of the result that apply to all methods, by code."""
    notes = {}
    if has_no_redundancy(annotations, gold):
        notes["no_redundancy"] = NO_REDUNDANCY
    if annotations.n_annotations > 1 and annotations.label.min() == annotations.label.max():
        notes["single_class"] = SINGLE_CLASS
    wrong, known = wrong_on_gold(annotations, gold)
    if wrong >= MIN_WRONG_ON_GOLD and 2 * wrong >= known:
        notes["vote_contradicts_gold"] = (
            f"The majority vote is wrong on {wrong} of {known} gold items that have labels: most workers err or read "
            f"the classes differently, or the gold is wrong. Check some of these items, and some without gold."
        )
    if not found.converged:
        notes["not_converged"] = NOT_CONVERGED.format(found.n_iter)
    return notes
