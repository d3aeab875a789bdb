"""Estimators in scikit-learn's eyes."""

import numpy as np
import pytest

from manyhands import DawidSkene, MajorityVote, OneCoin
from manyhands.exceptions import NotFittedError, ParameterError
from manyhands.testing.small_crowds import easy_crowd


def test_parameters_are_listed_and_set():
    """`get_params` names all of them, `set_params` returns self."""
    model = DawidSkene(smoothing=0.5)
    assert list(model.get_params()) == ["smoothing", "prior", "max_iter", "tol", "n_init", "random_state"]
    assert model.set_params(tol=1e-3, n_init=2) is model
    assert (model.tol, model.n_init, model.smoothing) == (1e-3, 2, 0.5)
    assert MajorityVote().get_params() == {}


def test_unknown_parameters_are_refused():
    """The message says which parameters there are."""
    with pytest.raises(ParameterError, match=r"no parameter 'smooth'. It has: smoothing, prior"):
        DawidSkene().set_params(smooth=1)


def test_repr_shows_what_differs_from_the_defaults():
    """As in scikit-learn, and arrays do not break it."""
    assert repr(OneCoin()) == "OneCoin()"
    assert repr(OneCoin(tol=0.1, random_state=3)) == "OneCoin(tol=0.1, random_state=3)"
    assert repr(DawidSkene(prior=np.array([0.5, 0.5]))) == "DawidSkene(prior=array([0.5, 0.5]))"


def test_constructor_decides_nothing():
    """Nonsense is stored as it is and refused by `fit`."""
    model = DawidSkene(smoothing="much")
    assert model.smoothing == "much"
    with pytest.raises(ParameterError, match=r"'smoothing' of DawidSkene must be a number at least 0. Got 'much'"):
        model.fit(easy_crowd(2)[0])


def test_not_fitted_is_said_in_one_sentence():
    """The error is also an AttributeError, as scikit-learn expects."""
    with pytest.raises(NotFittedError, match=r"This DawidSkene is not fitted yet. Call fit\(annotations\) first."):
        DawidSkene()._check_fitted()
    assert issubclass(NotFittedError, AttributeError) and issubclass(NotFittedError, ValueError)


def test_grid_search_over_an_aggregator():
    """`GridSearchCV` clones, sets, fits and scores an aggregator on folds of items, with no truth in sight."""
    from sklearn.model_selection import GridSearchCV, KFold

    votes, _ = easy_crowd(3, n_items=90)
    search = GridSearchCV(DawidSkene(), {"smoothing": [0.01, 1000.0]}, cv=KFold(3)).fit(votes)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.posterior_.shape == (90, 3)
