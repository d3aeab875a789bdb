"""Ensembles: members and their mean, parameters of the members, saving."""

import numpy as np
import pytest

from manyhands import load_model, registry
from manyhands.classifiers import AggNet, CrowdLayer, Ensemble, Raykar, TwoStage
from manyhands.classifiers.network import NETWORK_CONSTRAINTS
from manyhands.classifiers.wrappers import _METHODS
from manyhands.exceptions import ParameterError
from manyhands.features import as_rows
from manyhands.nn.backbones import probabilities
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")
SHORT = QUICK | {"random_state": 0, "max_epochs": 4}


def member_probabilities(model, X):
    """p(k | x) of each member, by its own network."""
    return [probabilities(network, as_rows(X)) for network in model.module_.networks]


def test_it_predicts_the_mean_probability_of_its_members():
    """The members differ, and each epoch of each is in the history."""
    X, votes, _ = feature_crowd(3)
    model = Ensemble("crowd-layer", members=3, patience=None, **SHORT).fit(X, votes)
    each = member_probabilities(model, X)
    np.testing.assert_allclose(model.predict_proba(X), (each[0] + each[1] + each[2]) / 3, rtol=1e-6)
    assert np.abs(each[0] - each[1]).max() > 1e-3 and np.abs(each[1] - each[2]).max() > 1e-3
    assert len(model.history_) == 3 * 4


@pytest.mark.parametrize("name", _METHODS)
def test_an_ensemble_of_one_is_its_member(name):
    """Every method that it takes by name, with a posterior of its own or without."""
    X, votes, _ = feature_crowd(3)
    one, single = Ensemble(name, members=1, **SHORT).fit(X, votes), registry.create(name, **SHORT).fit(X, votes)
    np.testing.assert_allclose(one.predict_proba(X), single.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(one.posterior_, single.posterior_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", _METHODS)
def test_its_network_options_have_the_defaults_of_its_members(name):
    """Otherwise an ensemble of a method would have other settings than the method."""
    ours, theirs = Ensemble().get_params(), registry.create(name).get_params()
    assert all(ours[option] == theirs[option] for option in NETWORK_CONSTRAINTS)


def test_the_posterior_is_the_mean_of_those_of_members():
    """Of EM with networks, whose members are fitted one after the other with one generator."""
    X, votes, _ = feature_crowd(3, accuracy=0.5)
    model = Ensemble(AggNet(), members=2, **SHORT).fit(X, votes)
    first = AggNet(**SHORT).fit(X, votes)
    second = 2 * model.posterior_ - first.posterior_
    assert np.abs(second - first.posterior_).max() > 1e-3  # not the first alone
    np.testing.assert_allclose(second.sum(axis=1), 1, rtol=1e-9)
    assert second.min() > -1e-9


def test_parameters_of_the_members_can_be_set_by_name(tmp_path):
    """As in tables and on the command line; a saved ensemble keeps them."""
    X, votes, _ = feature_crowd(3)
    by_name = registry.create("ensemble", classifier="crowd-layer", classifier__form="vw", members=2, **SHORT)
    by_instance = Ensemble(CrowdLayer(form="vw"), members=2, **SHORT).fit(X, votes)
    found = by_name.fit(X, votes).predict_proba(X)
    np.testing.assert_array_equal(found, by_instance.predict_proba(X))
    plain = Ensemble("crowd-layer", members=2, **SHORT).fit(X, votes)
    assert np.abs(found - plain.predict_proba(X)).max() > 1e-4
    by_name.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.classifier.form == "vw" and again.members == 2
    np.testing.assert_array_equal(again.predict_proba(X), found)
    with pytest.raises(ParameterError, match="no parameter 'forms'"):
        Ensemble("crowd-layer").set_params(classifier__forms="vw")


@pytest.mark.parametrize("classifier", [Raykar(), TwoStage("majority-vote", "logistic-regression")])
def test_a_classifier_without_a_network_is_refused(classifier):
    """Its fits are all the same."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match="must train a network"):
        Ensemble(classifier).fit(X, votes)


def test_network_options_belong_to_the_ensemble():
    """An instance with another value is refused, as one of the two would be ignored."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match="give hidden to Ensemble instead"):
        Ensemble(CrowdLayer(hidden=(3,))).fit(X, votes)
