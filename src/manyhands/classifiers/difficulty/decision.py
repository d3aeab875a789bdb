"""What the classifiers of difficulty EM share: constraints of parameters, prior of the E step, threshold of classes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.ability_em import ABILITY_CONSTRAINTS, DIFFICULTIES
from manyhands.em.kernels import Array
from manyhands.exceptions import ParameterError
from manyhands.noise import safe_log
from manyhands.noise.difficulty import shrunk_share
from manyhands.validation import Boolean, Constraint, Number, OneOf

MIDDLE = 0.5  # the threshold that is not a choice: the most probable class

DIFFICULTY_CONSTRAINTS: dict[str, Constraint] = ABILITY_CONSTRAINTS | {
    "difficulty": OneOf(DIFFICULTIES),
    "difficulty_gradient": Boolean(),
    "prior": OneOf(("classifier", "votes")),
    "vote_smoothing": Number(least=0),
    "threshold": Number(least=0, most=1),
}


def log_item_prior(prior: str, smoothing: float, votes: Annotations, log_proba: Array) -> Array:
    """Log prior of the truth of each item in the E step.

    Parameters
    ----------
    prior : {"classifier", "votes"}
        Class probabilities of the classifier, or vote shares.
    smoothing : float
        Number of pseudo-votes on each item, spread evenly over the classes.
    votes : Annotations
        The labels.
    log_proba : ndarray of shape (n_items, n_classes)
        log p(k | x); items without votes have this prior in any case.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    if prior == "classifier":
        return log_proba
    share = safe_log(shrunk_share(votes, smoothing))
    return np.where(votes.n_labels[:, None] > 0, share, log_proba)


def check_threshold(threshold: float, n_classes: int) -> None:
    """Refuse a threshold where there are more than two classes.

    Parameters
    ----------
    threshold : float
        The threshold of class 1.
    n_classes : int
        Number of classes.

    Raises
    ------
    ParameterError
        With more than two classes, unless the threshold is 1/2.
    """
    if n_classes > 2 and threshold != MIDDLE:
        raise ParameterError(
            f"threshold is for two classes; with {n_classes} classes the most probable one is predicted. "
            f"Got {threshold!r}."
        )


def decide(proba: Array, threshold: float) -> npt.NDArray[np.intp]:
    """Class codes by a threshold of the second class, or the most probable class where there are not two.

    Parameters
    ----------
    proba : ndarray of shape (n_rows, n_classes)
        Class probabilities.
    threshold : float
        Smallest probability of the second class at which it is predicted.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    if proba.shape[1] != 2:
        return np.asarray(proba.argmax(axis=1))
    return (proba[:, 1] >= threshold).astype(np.intp)
