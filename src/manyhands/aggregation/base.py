"""The base of all aggregators: `fit`, the storage of its results, prediction, and held-out score."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands._core.progress import showing
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em
from manyhands.em.decisions import class_totals, overall, pick_classes
from manyhands.em.e_step import (
    MIN_WRONG_ON_GOLD,
    Gold,
    has_no_redundancy,
    n_labels_with_gold,
    posterior_given,
    wrong_on_gold,
)
from manyhands.em.noise import NoiseModel, safe_log
from manyhands.em.priors import PRIOR_ACCURACY, ClassPrior, gold_by_item, gold_codes
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.features import restore_rows
from manyhands.heldout import COMMON, OWN, align, leave_one_out_log_likelihoods, mean_score
from manyhands.validation import Constraint, Number, Probabilities, RandomState, check_annotations

if TYPE_CHECKING:  # executors of Spark import this module, and may lack SciPy
    from manyhands.em.copies import Copies

# ----------------------------------------------------------------------------------------------------
# What an aggregator infers.


@dataclass(frozen=True)
class Inference:
    """Outcome of a method, which the base stores as attributes.

    Attributes
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    counts : ndarray of shape (n_workers, n_classes, n_classes) or None, default=None
        Expected counts [worker, truth, label], where the method has them.
    n_iter : int, default=1
        Number of passes over the data.
    converged : bool, default=True
        Whether the method converged.
    history : list of float
        Objective after each iteration.
    results : dict of str to object
        Further attributes, by name.
    notes : dict of str to str
        Limitations of the result, by code.
    """

    posterior: Array
    counts: Array | None = None
    n_iter: int = 1
    converged: bool = True
    history: list[float] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_confusion_em(cls, fit: ConfusionEMFit[Any], confusion: Array, **results: Any) -> Inference:
        """The outcome of EM with confusion matrices.

        Parameters
        ----------
        fit : ConfusionEMFit
            The fitted model.
        confusion : ndarray of shape (n_workers, n_classes, n_classes)
            Estimated confusion matrices.
        **results : object
            Further attributes, by name.

        Returns
        -------
        Inference
        """
        assert fit.final.posterior is not None
        results |= results_of_em(fit, confusion)
        return cls(fit.final.posterior, fit.final.counts, fit.n_iter, fit.converged, fit.history, results)


def results_of_em(fit: ConfusionEMFit[Any], confusion: Array) -> dict[str, Any]:
    """The attributes of every fit by EM with confusion matrices.

    Shapes: confusion (n_workers, n_classes, n_classes).
    """
    log_prior = fit.params.log_prior
    table = {"_log_confusion": _with_unseen_worker(fit), "_log_prior": log_prior}
    return {"confusion_": confusion, "class_prior_": elementary.exp(log_prior), "restarts_": fit.restarts} | table


def worker_accuracy(annotations: Annotations, gold: Gold, inference: Inference) -> Array:
    """Expected share of right labels of each worker, on items that have gold or labels of other workers too.

    Shapes: gold (n_items,); returns (n_workers,).
    """
    checked = n_labels_with_gold(annotations, gold) >= 2
    if inference.counts is not None and np.all(checked | (annotations.n_labels == 0)):
        right, total = np.trace(inference.counts, axis1=1, axis2=2), inference.counts.sum(axis=(1, 2))
        return (right + PRIOR_ACCURACY) / (total + 1.0)
    weight = checked[annotations.item].astype(float)
    if annotations.weight is not None:
        weight *= annotations.weight
    return expected_accuracy(annotations, inference.posterior, weight)


def expected_accuracy(annotations: Annotations, posterior: Array, weight: Array | None = None) -> Array:
    """Expected share of right labels of each worker, with one pseudo-count of accuracy 0.7; `weight` None is 1 each.

    Shapes: posterior (n_items, n_classes); weight (n_annotations,); returns (n_workers,).
    """
    weight = np.ones(annotations.n_annotations) if weight is None else weight
    p_right = posterior[annotations.item, annotations.label]
    right = np.bincount(annotations.worker, weights=weight * p_right, minlength=annotations.n_workers)
    total = np.bincount(annotations.worker, weights=weight, minlength=annotations.n_workers)
    return (right + PRIOR_ACCURACY) / (total + 1.0)


def _with_unseen_worker(fit: ConfusionEMFit[Any]) -> Array:
    """The log confusion matrices of the last E step with one more worker, who has the pooled confusion matrix."""
    if fit.no_redundancy:
        return np.concatenate([fit.used_log_confusion, fit.used_log_confusion[:1]])
    counts = fit.final.counts.sum(axis=0) + 1.0 / fit.log_confusion.shape[2]  # (truth, label)
    crowd = safe_log(counts / counts.sum(axis=1, keepdims=True))
    return np.concatenate([fit.used_log_confusion, crowd[None]])


# ----------------------------------------------------------------------------------------------------
# Sentences on limitations of a result that apply to all aggregators, by the code of their note.

NO_REDUNDANCY = "No item has two labels, so nothing can be inferred about any worker; labels stay as given."
SINGLE_CLASS = "Every label names the same class; the posterior rests on the priors."
NOT_CONVERGED = "The method stopped after {} iterations before it converged; raise max_iter."
NO_TRAINING_LABELS = (
    "This model was fitted on labels in shards and does not hold them, so that it cannot score others. It predicts; "
    "fit the method in memory, on a part of the items if need be, to score labels."
)


class Aggregator(BaseEstimator, ABC):
    """Base class of aggregators: truth inference from crowd labels, without features of the items.

    A method implements `_infer`, and also `_posterior` unless it is EM with confusion matrices (`EMAggregator`).

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
    tied_: npt.NDArray[np.bool_]
    unlabelled_: npt.NDArray[np.bool_]
    n_iter_: int
    converged_: bool
    history_: list[float]
    notes_: dict[str, str]
    _training: Annotations
    _gold: dict[Any, Any]
    _class_totals: Array
    _log_confusion: Array  # (n_workers + 1, n_classes, n_classes); the last worker is an unseen one
    _log_prior: Array

    def fit(
        self,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | Sequence[Any] | None = None,
        *,
        verbose: int = 1,
    ) -> Self:
        """Infer the truth of every item.

        The method runs on the items in the order of their sorted ids, so that the results of an item do not depend on
        the order of rows; all results have their rows in the order of `annotations.item_ids`.

        Parameters
        ----------
        annotations : Annotations or data frame
            The crowd's labels. A frame is read as `manyhands.read_annotations` reads it.
        gold : mapping or sequence of shape (n_items,), default=None
            Known truth of some items, {item: class}, or the class of each item, None where it is not known. The
            posterior of a gold item is certain; the labels on it are used to estimate the workers.
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
        self.check_parameters()
        annotations = self._checked(annotations)
        gold = gold_by_item(gold, annotations.item_ids)
        in_order = annotations.with_sorted_items()
        codes = gold_codes(gold, in_order.item_ids, in_order.classes)
        with showing(verbose):
            inference = self._infer(in_order, codes)
        self._store(in_order, dict(gold or {}), codes, inference)
        restore_rows(self, annotations, in_order)
        return self

    def fit_predict(
        self,
        annotations: Annotations | Any,
        gold: Mapping[Any, Any] | Sequence[Any] | None = None,
        *,
        verbose: int = 1,
    ) -> npt.NDArray[Any]:
        """Fit, then return the inferred class of every item.

        Parameters
        ----------
        annotations : Annotations or data frame
            The crowd's labels.
        gold : mapping or sequence of shape (n_items,), default=None
            Known truth of some items, as in `fit`.
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
            posterior[without_label(annotations, gold)] = overall(self._class_totals)
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
        unlabelled = without_label(annotations, self._known_gold(annotations))
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
        annotations = self._checked(annotations).with_sorted_items()
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
        order, posterior = self._training.sorting_order, self._scoring_posterior()
        posterior = posterior if order is None else posterior[order]
        return leave_one_out_log_likelihoods(self._training.with_sorted_items(), posterior, aligned, own)

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
        from manyhands.persistence import save_model

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
        gold_here = {item: self._gold[item] for item in annotations.item_ids.tolist() if item in self._gold}
        return gold_codes(gold_here, annotations.item_ids, self.classes_)

    def _store(self, annotations: Annotations, gold: dict[Any, Any], codes: Gold, inference: Inference) -> None:
        """Set all fitted attributes and issue the notes as warnings; attributes of an earlier fit are removed."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # results of an earlier fit
        self._training, self._gold = annotations, gold
        self.classes_, self.item_ids_ = annotations.classes, annotations.item_ids
        self.worker_ids_ = annotations.worker_ids
        self.posterior_ = inference.posterior
        self.unlabelled_ = without_label(annotations, codes)
        self._class_totals = class_totals(inference.posterior, self.unlabelled_)
        code, self.tied_ = pick_classes(inference.posterior, self.unlabelled_, self._class_totals)
        self.labels_ = _label_values(code, annotations.classes)
        self.worker_accuracy_ = worker_accuracy(annotations, codes, inference)
        self.n_iter_, self.converged_, self.history_ = (
            int(inference.n_iter),
            bool(inference.converged),
            inference.history,
        )
        for name, value in inference.results.items():
            setattr(self, name, value)
        self.notes_ = _notes(annotations, codes, inference) | inference.notes
        for code_word, sentence in self.notes_.items():
            warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=3)


def without_label(annotations: Annotations, gold: Gold) -> npt.NDArray[np.bool_]:
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


def _notes(annotations: Annotations, gold: Gold, inference: Inference) -> dict[str, str]:
    """Limitations of the result that apply to all methods, by code."""
    notes = {}
    if has_no_redundancy(annotations, gold):
        notes["no_redundancy"] = NO_REDUNDANCY
    if annotations.n_annotations > 1 and annotations.label.min() == annotations.label.max():
        notes["single_class"] = SINGLE_CLASS
    wrong, n_gold = wrong_on_gold(annotations, gold)
    if wrong >= MIN_WRONG_ON_GOLD and 2 * wrong >= n_gold:
        notes["vote_contradicts_gold"] = (
            f"The majority vote is wrong on {wrong} of {n_gold} gold items that have labels: most workers err or read "
            f"the classes differently, or the gold is wrong. Check some of these items, and some without gold."
        )
    if not inference.converged:
        notes["not_converged"] = NOT_CONVERGED.format(inference.n_iter)
    return notes


# ----------------------------------------------------------------------------------------------------
# EM with confusion matrices, with the parameters that several aggregators share.

P = TypeVar("P")

# Constraints of the parameters of every method that is EM with confusion matrices.
EM_CONSTRAINTS: dict[str, Constraint] = {
    "prior": Probabilities(("estimated", "uniform")),
    "max_iter": Number(whole=True, least=1),
    "tol": Number(least=0),
    "n_init": Number(whole=True, least=1),
    "random_state": RandomState(),
}


class EMAggregator(Aggregator):
    """Base class of methods that are EM with confusion matrices; a method implements `_em_model`.

    A method with an `_em_model` runs on labels in shards too (`manyhands.sharded`).

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices p(label | truth), indexed [worker, truth, label]; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.
    restarts_ : list of float
        Final objective of each start; one more than `n_init` where a start from gold was tried.
    """

    max_iter: int
    tol: float
    n_init: int
    random_state: Seed
    confusion_: Array
    class_prior_: Array
    restarts_: list[float]

    def _em_model(self, n_classes: int) -> tuple[NoiseModel[Any], ClassPrior]:
        """How workers err, and the prior of the truth; not needed by a method with an `_infer` of its own."""
        raise NotImplementedError

    def _em_results(self, fit: ConfusionEMFit[Any]) -> dict[str, Any]:
        """Further attributes of the method, by name."""
        return {}

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        fit = self._fit_by_em(annotations, gold, *self._em_model(annotations.n_classes))
        return Inference.from_confusion_em(fit, elementary.exp(fit.log_confusion), **self._em_results(fit))

    def _fit_by_em(
        self, annotations: Annotations, gold: Gold, noise: NoiseModel[P], prior: ClassPrior
    ) -> ConfusionEMFit[P]:
        """Fit a noise model with confusion matrices by EM.

        Shapes: gold (n_items,).
        """
        return fit_confusion_em(
            annotations,
            noise,
            prior,
            gold=gold,
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            rng=make_generator(self.random_state),
        )


# ----------------------------------------------------------------------------------------------------
# Copies count as one vote: how a method fits the labels that count, and the note on what this changed.

Infer = Callable[[Annotations, Gold], Inference]
MAX_NAMES = 5  # of workers in the note
_MAX_CHARACTERS = 40  # of a name


def infer_without_copies(
    infer: Infer, annotations: Annotations, gold: Gold, copies: Copies, of_workers: tuple[str, ...]
) -> Inference:
    """Run a method on the labels that count, and say in a note which groups copy and how many labels this changes.

    Where there are copies, the method is also run on all labels, for the comparison. Workers without a label that
    counts get the estimates of the worker who counts for them, in the results whose names are `of_workers`.

    Shapes: gold (n_items,).
    """
    counted = copies.without(annotations)
    inference = infer(counted, gold)
    results = inference.results
    results |= {"copy_groups_": copies.group, "_copy_rank": copies.rank}
    if not copies:
        return inference
    n_labels = np.bincount(counted.worker, minlength=counted.n_workers)
    for name in of_workers:
        results[name] = with_estimates_of_leads(results[name], copies, n_labels)
    labelled = annotations.n_labels > 0
    before = infer(annotations, gold).posterior[labelled].argmax(axis=1)
    n_changed = int(np.count_nonzero(before != inference.posterior[labelled].argmax(axis=1)))
    notes = inference.notes | {"copies": copies_note(copies, annotations.worker_ids, n_changed)}
    return replace(inference, counts=None, notes=notes)  # copies have no counts of their own


def copies_note(copies: Copies, worker_ids: npt.NDArray[np.generic], n_changed: int | None) -> str:
    """The sentence about the groups of copies, with at most `MAX_NAMES` workers by name.

    Shapes: worker_ids (n_workers,).
    """
    groups = copies.groups()
    n_members = sum(map(len, groups))
    first = int(np.argmax(copies.n_equal - copies.n_expected))
    x, y = (_name(worker_ids[code]) for code in (copies.x[first], copies.y[first]))
    named = [_name(worker_ids[code]) for group in groups for code in group][:MAX_NAMES]
    rest = n_members - len(named)
    who = ", ".join(named) + (f" and {rest} more" if rest else "")
    text = (
        f"{n_members} workers give copied labels ({who}): for example, {x} and {y} agree on {copies.n_equal[first]} of "
        f"{copies.n_common[first]} common items, where {copies.n_expected[first]:.0f} are expected of independent "
        f"workers. "
    )
    text += "The group counts" if len(groups) == 1 else f"Each of the {len(groups)} groups counts"
    text += " as one vote on an item"
    if n_changed is None:
        return text + "."
    return f"{text}, which changes {n_changed} label{'' if n_changed == 1 else 's'}."


def _name(value: object) -> str:
    """A name for a sentence in one line."""
    text = str(value)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


def with_estimates_of_leads(values: Array, copies: Copies, n_labels: npt.NDArray[np.int64]) -> Array:
    """Estimates of workers; copies without a label that counts have those of the worker who counts for them.

    Rows after those of the workers, such as that of an unseen worker, stay.

    Shapes: values (n_rows, ...); n_labels (n_workers,); returns (n_rows, ...).
    """
    source = np.arange(len(values))
    idle = np.flatnonzero(copies.members & (n_labels == 0))
    source[idle] = copies.lead()[idle]
    return values[source] if len(idle) else values
