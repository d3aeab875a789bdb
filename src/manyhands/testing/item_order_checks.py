"""The order of items: every result has the same bits for each item, in the order of the caller's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.estimator import BaseEstimator
from manyhands.testing.assertions import fit, n_classes_for
from manyhands.testing.learners import fit_briefly
from manyhands.testing.small_crowds import easy_crowd, feature_crowd

_N_ITEMS = 61  # the length of no other axis, so that an axis of items is recognised


def check_item_order_does_not_matter_to_aggregators(aggregator: Aggregator) -> None:
    """Items in another order give bit-identical results for each item, all in the order of `item_ids`.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes, order = _with_silent_item(easy_crowd(n_classes_for(aggregator, 3), n_items=_N_ITEMS)[0])
    gold = {votes.item_ids[0]: votes.classes[0], votes.item_ids[-2]: votes.classes[1]}
    one, other = fit(aggregator, votes, gold), fit(aggregator, votes[order], gold)
    assert_same_rows(one, other, order)
    assert other.annotations_.item_ids.tolist() == other.item_ids_.tolist() == votes.item_ids[order].tolist()
    assert np.array_equal(other.predict_proba(votes[order]), one.predict_proba(votes)[order]), "predict_proba"
    assert other.score(votes[order]) == one.score(votes), "score depends on the order of items"


def check_item_order_does_not_matter_to_learners(method: BaseEstimator) -> None:
    """Items in another order, with their rows of X, give bit-identical results for each item, in that order.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    X, votes, truth = feature_crowd(3, n_items=_N_ITEMS)
    votes, order = _with_silent_item(votes)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    one = fit_briefly(method, X, votes, gold)
    assert_same_rows(one, fit_briefly(method, X[order], votes[order], gold), order)


def assert_same_rows(one: Any, other: Any, order: npt.NDArray[np.intp], where: str = "") -> None:
    """Assert that two fits have the same attributes, those with a row per item in another order.

    Parameters
    ----------
    one : BaseEstimator
        Fitted to items in the order of their ids.
    other : BaseEstimator
        Fitted to the same items in another order.
    order : ndarray of int of shape (n_items,)
        The other order.
    where : str, default=""
        Beginning of the names of attributes in messages.
    """
    assert vars(one).keys() == vars(other).keys(), f"{where}: {vars(one).keys() ^ vars(other).keys()}"
    parameters = one.get_params(deep=False)
    for name, value in vars(one).items():
        if name not in parameters:
            _assert_same(value, getattr(other, name), order, f"{where}{name}")


def _assert_same(one: Any, other: Any, order: npt.NDArray[np.intp], name: str) -> None:
    """Assert that two values are equal, in the given order where they have a row per item."""
    if isinstance(one, BaseEstimator):
        assert_same_rows(one, other, order, f"{name}.")
    elif isinstance(one, dict) and not callable(one):
        assert one.keys() == other.keys(), name
        for key in one:
            _assert_same(one[key], other[key], order, f"{name}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), name
        for at, member in enumerate(one):
            _assert_same(member, other[at], order, f"{name}[{at}]")
    elif hasattr(one, "state_dict"):
        _assert_same(dict(one.state_dict()), dict(other.state_dict()), order, name)
    elif isinstance(one, Annotations):
        assert other == (one[order] if len(one) == len(order) else one), f"{name} depends on the order of items"
    elif isinstance(one, np.ndarray | float | int | str | bool) or hasattr(one, "detach"):
        found, expected = (np.asarray(value.detach() if hasattr(value, "detach") else value) for value in (other, one))
        assert len(order) not in expected.shape[1:], f"{name} has items on another axis than the first"
        has_rows = expected.ndim > 0 and len(expected) == len(order)
        equal = np.array_equal(found, expected[order] if has_rows else expected, equal_nan=expected.dtype.kind == "f")
        assert equal, f"{name} does not follow the order of items; is it named in _of_items?"


def _with_silent_item(votes: Annotations) -> tuple[Annotations, npt.NDArray[np.intp]]:
    """Return the crowd without the labels of one item, and another order of its items."""
    order = np.random.default_rng(3).permutation(votes.n_items)
    return votes.keep(votes.item != 7), order
