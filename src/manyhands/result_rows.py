"""Results of a fit in the order of the caller's items: fits run in the order of sorted ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.item_order import Order, inverse


def restore_rows(estimator: Any, given: Annotations, in_order: Annotations) -> None:
    """Bring all results of a fit that have a row per item into the order of the annotations that were given.

    This is the one place where it is done. A class names such attributes in `_of_items`, also those that hold fitted
    estimators; the checks of `manyhands.testing` find an attribute that is not named there.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted to `in_order`; changed in place.
    given : Annotations
        The annotations in the order of the caller.
    in_order : Annotations
        The same annotations with sorted items.
    """
    if given._sorting_order is not None:
        _restore(estimator, inverse(given._sorting_order), given, in_order)


def _restore(estimator: Any, back: Order, given: Annotations, in_order: Annotations) -> None:
    """Bring the results of one estimator, and of those that it holds, into the order of the caller."""
    for name in estimator._of_items:
        value = vars(estimator).get(name)
        if hasattr(value, "_of_items"):
            _restore(value, back, given, in_order)
        elif value is in_order:
            setattr(estimator, name, given)
        elif value is not None:
            setattr(estimator, name, np.take(value, back, axis=0) if isinstance(value, np.ndarray) else value[back])
