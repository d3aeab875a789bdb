"""Calibration: what the confidence is worth, learnt from answers about random items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.trust.answer_map import CROWD_SCALE, KINDS, Consensus, MapParameters, fit_map
from manyhands.trust.answers import Answers, as_answers
from manyhands.trust.calibrated_model import CalibratedAggregator
from manyhands.trust.candidates import fit_one, gold_of
from manyhands.trust.representative import power_of, shares_of, usable_answers, without_answers
from manyhands.validation import Constraint, NoneOr, Number, OneOf, check_parameters

MIN_FOR_KINDS = 20  # answers from which on a kind other than plain may be chosen
N_FOLDS, N_REPEATS = 5, 2

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """How the posterior was recalibrated, and how certain that is.

    Attributes
    ----------
    parameters : MapParameters
        The fitted parameters.
    n_answers : int
        Number of answers that were used.
    scale_interval : tuple of float
        Interval of the scale.
    shift_interval : tuple of float
        Interval of the shift.
    expected_accuracy : float
        Mean confidence after calibration: the expected share of right labels.
    accuracy_interval : tuple of float
        Interval of the share of right labels, by the held-out answers; `estimate_accuracy` assumes less.
    level : float
        Probability of the intervals.
    log_loss : dict of str to float
        Mean log loss on held-out answers of every kind that was tried.
    heldout : dict of item to class
        Label of each answered item by a calibration that has not seen its answer.
    """

    parameters: MapParameters
    n_answers: int
    scale_interval: tuple[float, float]
    shift_interval: tuple[float, float]
    expected_accuracy: float
    accuracy_interval: tuple[float, float]
    level: float
    log_loss: dict[str, float]
    heldout: dict[Any, Any]

    @property
    def kind(self) -> str:
        """The kind that was chosen: "plain", "classwise" or "map"."""
        return self.parameters.kind

    def __str__(self) -> str:
        what = {"plain": "scale and shift", "classwise": "scale, shift and a shift per class", "map": "the answer map"}
        low, high = self.accuracy_interval
        scale = f"scale {self.parameters.scale:.2f} ({self.scale_interval[0]:.2f} to {self.scale_interval[1]:.2f})"
        return (
            f"Confidence is calibrated on {self.n_answers} random answers by {what[self.kind]}: {scale}, shift "
            f"{self.parameters.shift:+.2f} ({self.shift_interval[0]:+.2f} to {self.shift_interval[1]:+.2f}); its mean "
            f"is {self.expected_accuracy:.1%} ({low:.1%} to {high:.1%})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the main values for a summary.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {
            "kind": self.kind,
            "n_answers": self.n_answers,
            "scale": round(self.parameters.scale, 6),
            "scale_interval": [round(x, 6) for x in self.scale_interval],
            "shift": round(self.parameters.shift, 6),
            "shift_interval": [round(x, 6) for x in self.shift_interval],
            "expected_accuracy": round(self.expected_accuracy, 6),
            "accuracy_interval": [round(x, 6) for x in self.accuracy_interval],
            "level": self.level,
            "heldout_log_loss": {kind: round(loss, 6) for kind, loss in self.log_loss.items()},
            "sentence": str(self),
        }


def calibrate(
    model: Aggregator, answers: Answers | Mapping[Any, Any], *, kind: str | None = None, level: float = 0.9
) -> CalibratedAggregator:
    """Recalibrate the posterior of a fitted method by answers about random items.

    Scale and shift are fitted by maximum a posteriori (`manyhands.trust.answer_map`). With at least 20 answers, a
    shift per class and the K x K answer map are tried too, and the kind with the lowest log loss on held-out answers is
    used (five folds, twice). The map may change labels; so may the shifts.

    The posterior that is calibrated has not seen the answers: if they were gold of the fit, it is repeated without
    them. Afterwards the answered items are certain.

    Parameters
    ----------
    model : Aggregator
        A fitted method.
    answers : Answers
        Answers about items that were drawn at random. Contested ones are used too, weighted by stratum, if random
        ones are among them and every stratum has answers.
    kind : {"plain", "classwise", "map"} or None, default=None
        Which parameters to fit; None chooses.
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    CalibratedAggregator
        A fitted model with the new posterior; ``calibration_`` is a `Calibration`, which prints as a sentence.

    Raises
    ------
    AnnotationError
        If the answers are not about random items.

    Examples
    --------
    >>> import manyhands as mh
    >>> crowd = mh.simulate.make_crowd(n_items=300, n_workers=20, random_state=0)
    >>> truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    >>> drawn = mh.random_items(crowd.annotations, n=50)
    >>> model = mh.DawidSkene().fit(crowd.annotations)
    >>> calibrated = mh.calibrate(model, drawn.answer({item: truth[item] for item in drawn}))
    >>> calibrated.posterior_.shape
    (300, 2)
    """
    constraints: dict[str, Constraint] = {"kind": NoneOr(OneOf(KINDS)), "level": Number(above=0, most=0.9999)}
    check_parameters("calibrate", {"kind": kind, "level": level}, constraints)
    given, weights = usable_answers(as_answers(answers), "Calibration")
    annotations = model.annotations_
    rows, truth = given.codes(annotations)
    weight = np.array([weights[item] for item in annotations.item_ids[rows].tolist()])
    weight *= weight.sum() / (weight @ weight)  # as many answers as have the same precision (Kish)
    reference = without_answers(model, given)
    prior_scale = CROWD_SCALE / power_of(reference)
    everything = Consensus.of(reference.posterior_, shares_of(annotations))
    seen = everything[rows]
    fitted, heldout, loss = choose_map(seen, truth, weight, prior_scale, None if kind is None else [kind])
    labels = dict(zip(annotations.item_ids[rows].tolist(), annotations.classes[heldout.argmax(axis=1)].tolist()))
    labelled = np.flatnonzero(annotations.n_labels > 0)
    gap = _heldout_gap(heldout, truth)
    calibration = _describe(fitted, everything[labelled], gap, level, loss, labels)
    return _refit(model, given, calibration)


def _refit(model: Aggregator, answers: Answers, calibration: Calibration) -> CalibratedAggregator:
    """The calibrated model, fitted like the given one, with the answers known afterwards."""
    hidden, method = tuple(answers.values), model
    if isinstance(model, CalibratedAggregator):
        hidden, method = (*model.hidden, *hidden), model.model
    calibrated = CalibratedAggregator(method, calibration.parameters, hidden)
    fit_one(calibrated, model.annotations_, gold_of(model) | dict(answers.values))
    calibrated.calibration_ = calibration
    return calibrated


def choose_map(
    seen: Consensus, truth: Codes, weight: Array, prior_scale: float, kinds: Sequence[str] | None = None
) -> tuple[MapParameters, Array, dict[str, float]]:
    """Fit the kind with the lowest log loss on held-out answers.

    Parameters
    ----------
    seen : Consensus
        What the crowd says of the answered items.
    truth : ndarray of shape (n_answers,)
        Class codes of the answers.
    weight : ndarray of shape (n_answers,)
        Weights of the answers.
    prior_scale : float
        Median of the prior of the scale.
    kinds : sequence of str or None, default=None
        Kinds to try; None tries all if there are at least 20 answers, else "plain".

    Returns
    -------
    fitted : MapParameters
        The chosen kind, fitted to all answers.
    heldout : ndarray of shape (n_answers, n_classes)
        Its probabilities in cross-validation.
    loss : dict of str to float
        Mean log loss on held-out answers of each kind.
    """
    tried = list(kinds or (KINDS if len(truth) >= MIN_FOR_KINDS else KINDS[:1]))
    heldout = {one: heldout_probabilities(seen, truth, one, weight, prior_scale) for one in tried}
    loss = {one: _log_loss(q, truth, weight) for one, q in heldout.items()}
    best = min(tried, key=loss.__getitem__)
    return fit_map(seen, truth, best, weight=weight, prior_scale=prior_scale), heldout[best], loss


def heldout_probabilities(seen: Consensus, truth: Codes, kind: str, weight: Array, prior_scale: float) -> Array:
    """Return the calibrated probabilities of each answered item, by fits that have not seen its answer.

    Parameters
    ----------
    seen : Consensus
        What the crowd says of the answered items.
    truth : ndarray of shape (n_answers,)
        Class codes of the answers.
    kind : {"plain", "classwise", "map"}
        Which parameters to fit.
    weight : ndarray of shape (n_answers,)
        Weights of the answers.
    prior_scale : float
        Median of the prior of the scale.

    Returns
    -------
    ndarray of shape (n_answers, n_classes)
        Mean over the repeated cross-validation.
    """
    rng = np.random.default_rng(0)
    found = np.zeros(seen.share.shape)
    for _ in range(N_REPEATS):
        fold = rng.permutation(len(truth)) % min(N_FOLDS, max(len(truth), 2))
        for k in np.unique(fold):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            fitted = fit_map(seen[train], truth[train], kind, weight=weight[train], prior_scale=prior_scale)
            found[test] += fitted.apply(seen[test]) / N_REPEATS
    return found


def _log_loss(q: Array, truth: Codes, weight: Array) -> float:
    """Weighted mean log loss."""
    return -float(weight @ np.log(np.maximum(q[np.arange(len(q)), truth], 1e-12)) / weight.sum())


def _heldout_gap(q: Array, truth: Codes) -> Array:
    """Right or not, minus the confidence, of each answered item by a calibration that has not seen its answer."""
    return np.asarray((q.argmax(axis=1) == truth) - q.max(axis=1), np.float64)


def expected_accuracy(confidence: Array, gap: Array, level: float) -> tuple[float, float, float]:
    """Return the mean confidence, and an interval of the accuracy by the held-out answers.

    Parameters
    ----------
    confidence : ndarray of shape (n_items,)
        Calibrated confidence of all items.
    gap : ndarray of shape (n_answers,)
        Right (1) or wrong (0), minus the confidence, of the answered items, by fits that have not seen their answers.
    level : float
        Probability of the interval.

    Returns
    -------
    (mean, low, high) : tuple of float
        The interval is that of the mean confidence plus the mean gap (Student's t); it always contains the mean
        confidence. The gap corrects that a map which was chosen by the answers is too sure of itself.
    """
    from scipy.special import stdtrit

    mean, n = float(confidence.mean()), len(gap)
    if n < 3:
        return mean, 0.0, 1.0
    # One answer at either end is added, so that a sample without an error is not taken for certainty.
    spread = float(np.std(np.r_[gap, 1.0 - mean, -mean], ddof=1))
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * spread / np.sqrt(n)
    centre = mean + float(gap.mean())
    return mean, max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)


def _describe(
    fitted: MapParameters, items: Consensus, gap: Array, level: float, loss: dict[str, float], heldout: dict[Any, Any]
) -> Calibration:
    """Collect the parameters and their intervals."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    spread = np.sqrt(np.diag(fitted.covariance))
    ratio = float(np.exp(z * spread[0] / fitted.scale))  # the scale is positive
    mean, low, high = expected_accuracy(fitted.apply(items).max(axis=1), gap, level)
    return Calibration(
        parameters=fitted,
        n_answers=len(gap),
        scale_interval=(fitted.scale / ratio, fitted.scale * ratio),
        shift_interval=(fitted.shift - z * float(spread[1]), fitted.shift + z * float(spread[1])),
        expected_accuracy=mean,
        accuracy_interval=(low, high),
        level=level,
        log_loss=loss,
        heldout=heldout,
    )
