"""Columns of result tables for ordered classes: median and expected grade of items, agreement and errors of workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.class_order import grade_values
from manyhands.em.grades import bias_and_spread, expected_grades, median_grades
from manyhands.metrics import worker_weighted_kappa


def grade_order(model: Aggregator) -> npt.NDArray[np.int64] | None:
    """Codes of the classes from low to high; None where the classes have no order.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.

    Returns
    -------
    ndarray of int of shape (n_classes,) or None
    """
    if hasattr(model, "order_"):
        code_of = {value: code for code, value in enumerate(model.classes_.tolist())}
        return np.array([code_of[value] for value in model.order_.tolist()], np.int64)
    return np.arange(len(model.classes_)) if model.annotations_.is_ordered else None


def item_grades(model: Aggregator) -> dict[str, Any]:
    """Columns ``median`` and ``expected`` of every item; none where the classes have no order.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.

    Returns
    -------
    dict of str to list or polars.Series
        The median class of the posterior, as a list, and its expected value: of the numbers that the classes are,
        otherwise of their ranks from 1. Null for items without labels.
    """
    order = grade_order(model)
    if order is None:
        return {}
    median = model.classes_[median_grades(model.posterior_, order)].tolist()
    expected = expected_grades(model.posterior_[:, order], grade_values(model.classes_[order].tolist()))
    expected[model.unlabelled_] = np.nan
    return {
        "median": [None if none else value for value, none in zip(median, model.unlabelled_)],
        "expected": pl.Series(expected).fill_nan(None),
    }


def worker_grades(model: Aggregator) -> dict[str, Any]:
    """Columns on ordered classes of every worker; none where the classes have no order.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.

    Returns
    -------
    dict of str to polars.Series
        ``linear_kappa`` and ``quadratic_kappa`` against the other workers on the same items and, if the model has
        confusion matrices, ``grade_bias`` and ``grade_spread``: mean and standard deviation of label minus truth, in
        steps of the scale.
    """
    order = grade_order(model)
    if order is None:
        return {}
    ordered = model.classes_[order].tolist()
    columns = {
        f"{weights}_kappa": worker_weighted_kappa(model.annotations_, weights, ordered)
        for weights in ("linear", "quadratic")
    }
    confusion = getattr(model, "confusion_", None)
    if confusion is not None:
        rank, frequency = np.argsort(order).astype(float), model.posterior_.mean(axis=0)
        columns["grade_bias"], columns["grade_spread"] = bias_and_spread(confusion, frequency, rank)
    return {name: pl.Series(values).fill_nan(None) for name, values in columns.items()}
