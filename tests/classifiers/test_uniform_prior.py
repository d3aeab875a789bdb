"""Predictions for equally frequent classes, the control of tables: every method is shifted once, and no more."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyhands import ICED, Annotations
from manyhands.classifiers import PriorAdjusted, Raykar, TwoStage
from manyhands.testing.crowds import QUICK

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def crowd():
    """Two overlapping classes of 80 and 16 items, labelled by three workers who are mostly right."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [80, 16])
    X = rng.normal(size=(96, 2)) + 1.5 * truth[:, None]
    votes = np.where(rng.random((96, 3)) < 0.85, truth[:, None], 1 - truth[:, None])
    return X, Annotations.from_matrix(votes)


def divided(proba, shares):
    """Rows divided by shares and normalised, number by number."""
    return [[p / s / sum(q / t for q, t in zip(row, shares)) for p, s in zip(row, shares)] for row in proba]


def test_predictions_are_divided_by_the_class_shares_of_the_posterior(crowd):
    """A class has at least half an item."""
    X, votes = crowd
    model = Raykar().fit(X, votes)
    proba = model.predict_proba(X[:5])
    shares = [max(model.posterior_[:, k].mean(), 0.5 / len(X)) for k in (0, 1)]
    np.testing.assert_allclose(model._uniform_prior_proba(proba), divided(proba, shares))
    assert not np.allclose(model._uniform_prior_proba(proba), proba, atol=0.05)


@pytest.mark.parametrize(
    "model",
    [
        ICED.plus(random_state=0, **QUICK),
        ICED(balanced_loss=True, random_state=0, **QUICK),
        PriorAdjusted("raykar"),
        TwoStage("majority-vote", LogisticRegression(class_weight="balanced")),
        TwoStage("majority-vote", make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))),
    ],
    ids=["iced-plus", "iced with a balanced loss", "prior-adjusted", "balanced regression", "in a pipeline"],
)
def test_methods_that_assume_equal_classes_are_not_shifted_again(model, crowd):
    """The control is then the plain metric."""
    X, votes = crowd
    proba = model.fit(X, votes).predict_proba(X)
    np.testing.assert_array_equal(model._uniform_prior_proba(proba), proba)


def test_another_wanted_prior_is_divided_out(crowd):
    """PriorAdjusted has it exactly: the result is that of a uniform prior."""
    X, votes = crowd
    wanted, uniform = (PriorAdjusted("raykar", prior).fit(X, votes) for prior in ([0.9, 0.1], "uniform"))
    shifted = wanted._uniform_prior_proba(wanted.predict_proba(X))
    np.testing.assert_allclose(shifted, uniform.predict_proba(X))
