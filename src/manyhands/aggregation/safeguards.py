"""From the posterior of a model to the one that is released: limited overruling, and the power learnt across crowds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.crowd_power import CROWD_POWER, blended_power, raise_to
from manyhands.aggregation.overruling import limit_overruling
from manyhands.aggregation.tempering import Tempering
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold
from manyhands.em.kernels import Array
from manyhands.validation import NameOrNumber, Number

RULES = ("never", "supported", "always")  # of the parameter `overrule`
TEMPER = NameOrNumber(("crowds", "none"), Number(above=0, most=10))  # constraint of the parameter `temper`


def chosen_power(temper: str | float, tempering: Tempering) -> float:
    """Power of the posterior by the parameter `temper`.

    Parameters
    ----------
    temper : {"crowds", "none"} or float
        The parameter.
    tempering : Tempering
        What held-out labels say of the independence of errors.

    Returns
    -------
    float
    """
    if isinstance(temper, str):
        return blended_power(CROWD_POWER, tempering.independence) if temper == "crowds" else 1.0
    return float(temper)


def release(
    annotations: Annotations, posterior: Array, gold: Gold, results: Mapping[str, Any]
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The posterior after overruling and the power of the crowds, and which items are withheld.

    Items with gold stay certain, and items without labels keep the class shares.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    posterior : ndarray of shape (n_items, n_classes)
        Posterior of the model.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    results : mapping
        `confusion_`, `collusion_group_`, `crowd_power_`, and `_used_rule` and `_is_sybil_group`.

    Returns
    -------
    posterior : ndarray of shape (n_items, n_classes)
        The released posterior.
    withheld : ndarray of shape (n_items,) of bool
        Items on which the plurality is named in place of the class of the model.
    """
    fixed = annotations.n_labels == 0
    fixed = fixed if gold is None else fixed | (gold >= 0)
    withheld = np.zeros(annotations.n_items, bool)
    if results["_used_rule"] != "always":
        posterior, withheld = limit_overruling(
            annotations,
            posterior,
            results["confusion_"],
            results["collusion_group_"],
            results["_used_rule"],
            fixed,
            always_collapse=results["_is_sybil_group"],
        )
    if results["crowd_power_"] == 1.0:
        return posterior, withheld
    raised = raise_to(posterior, results["crowd_power_"])
    raised[fixed] = posterior[fixed]
    return raised, withheld
