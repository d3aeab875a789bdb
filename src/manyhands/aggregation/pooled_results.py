"""From a fitted crowd to the attributes and notes of Pooled Dawid-Skene."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.pooled_fit import PooledFit
from manyhands.aggregation.vote_departure import FEW_LABELS, MIN_LOW_VOLUME_SHARE, Departure
from manyhands.em.collusion import CollusionGroups
from manyhands.em.kernels import Array
from manyhands.noise import safe_log

CORRELATED_ERRORS_BELOW = 0.5  # exponent below which a note reports that workers err on the same items


def worker_results(fit: PooledFit, members: npt.NDArray[np.bool_], n_labels: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Estimates for each worker; members of a colluding group share those of its representative.

    Parameters
    ----------
    fit : PooledFit
        The fitted crowd.
    members : ndarray of shape (n_workers,) of bool
        Workers of the colluding group.
    n_labels : ndarray of shape (n_workers,) of int
        Number of labels of each worker after the group was collapsed.

    Returns
    -------
    dict of str to object
        Fitted attributes, by name.
    """
    confusion, p_type = fit.confusion.copy(), fit.p_type.copy()
    if members.any():
        representative = int(np.argmax(np.where(members, n_labels, -1)))
        confusion[members], p_type[members] = confusion[representative], p_type[representative]
    return {"confusion_": confusion, "worker_types_": p_type, "types_": fit.types, "collusion_group_": members}


def tempered_results(fit: PooledFit, confusion: Array, exponent: float) -> dict[str, Any]:
    """The exponent, and the log confusion matrices and class prior multiplied by it.

    Parameters
    ----------
    fit : PooledFit
        The fitted crowd.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.
    exponent : float
        Exponent of the posterior.

    Returns
    -------
    dict of str to object
        Fitted attributes, by name.
    """
    if fit.no_redundancy:
        one_vote = fit.table.used_log_confusion[:1]  # the same for all workers
        table = np.repeat(one_vote, len(confusion) + 1, axis=0)
    else:
        table = safe_log(np.concatenate([confusion, fit.unseen_worker[None]]))
    raised = {"_log_confusion": exponent * table, "_log_prior": exponent * fit.log_prior}
    return raised | {"tempering_exponent_": exponent, "class_prior_": elementary.exp(fit.log_prior)}


def pooled_notes(
    worker_volume: npt.NDArray[Any],
    n_classes: int,
    exponent: float | None,
    group: CollusionGroups | None,
    departure: Departure,
) -> dict[str, str]:
    """Limitations of the result, by code.

    Parameters
    ----------
    worker_volume : ndarray of shape (n_workers,)
        Number of labels of each worker.
    n_classes : int
        Number of classes.
    exponent : float or None
        Exponent of the posterior; None where there were too few labels to choose one.
    group : CollusionGroups or None
        The colluding group.
    departure : Departure
        Difference between the fit and the majority vote.

    Returns
    -------
    dict of str to str
    """
    notes = {}
    vote = "the majority vote" if group is None else "the majority vote in which these workers count as one"
    if group is not None:
        who = f"{int(group.members.sum())} workers"
        who += "" if group.max_labels is None else f" with at most {group.max_labels} labels each, taken together,"
        notes["collusion_group"] = (
            f"{who} agree with one another on {group.agreement:.0%} of their common items, where {group.expected:.0%} "
            f"is expected of independent workers; they count as one."
        )
    if np.median(worker_volume[worker_volume > 0]) < 2 * n_classes:
        differs = 0.0 if departure.is_doubtful else departure.share
        notes["few_labels_per_worker"] = (
            f"Half of the workers gave fewer than {2 * n_classes} labels, so estimates are uncertain; "
            f"the result differs from {vote} on {differs:.1%} of the items on which the vote has one winner."
        )
    if departure.is_doubtful:
        notes["fell_back_to_vote"] = (
            f"At least {MIN_LOW_VOLUME_SHARE:.0%} of the labels come from workers with at most {FEW_LABELS} labels. "
            f"A model of their errors would change {departure.share:.0%} of the labels of {vote}, without naming an "
            f"overused class less often. Such a fit is not reliable, so the result is that vote. Gold items would show "
            f"which is right."
        )
    if exponent is not None and exponent < CORRELATED_ERRORS_BELOW:
        notes["correlated_errors"] = (
            f"Held-out labels show that workers err on the same items; the posterior is tempered by the exponent "
            f"{exponent:g}, where 1 means independent errors."
        )
    return notes
