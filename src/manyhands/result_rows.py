"""Results of a fit in the order of the caller's items: fits run in the order of sorted ids."""

from __future__ import annotations

from typing import Any

from manyhands.annotations import Annotations
from manyhands.item_order import Order, inverse


def restore_rows(estimator: Any, given: Annotations) -> None:
    """Bring all results of a fit that have a row per item into the order of the annotations that were given.

    This is the one place where it is done. A class names such attributes in `_of_items`, also those that hold fitted
    estimators; the checks of `manyhands.testing` find an attribute that is not named there.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted to `given._with_sorted_items()`; changed in place.
    given : Annotations
        The annotations in the order of the caller.
    """
    if given._sorting_order is not None:
        _restore(estimator, inverse(given._sorting_order))


def _restore(estimator: Any, back: Order) -> None:
    """Bring the results of one estimator, and of those that it holds, into the order of the caller."""
    for name in estimator._of_items:
        if vars(estimator).get(name) is not None:
            setattr(estimator, name, _restored(getattr(estimator, name), back))


def _restored(value: Any, back: Order) -> Any:
    """Return a result in the order of the caller: an array or annotations with a row per item, or an estimator."""
    if hasattr(value, "_of_items"):
        _restore(value, back)
        return value
    return value[back]
