"""Initial noise layers: they tie the network's outputs to classes, and held-out labels do not enter them."""

import numpy as np
import pytest

from manyhands import Annotations, DawidSkene, MajorityVote, registry
from manyhands.classifiers import TwoStage
from manyhands.exceptions import ParameterError
from manyhands.nn.worker_layers import FORMS, Confusion, CrowdLogits
from manyhands.testing.crowds import QUICK, feature_crowd, features_of

pytestmark = pytest.mark.usefixtures("one_thread")
METHODS = ("conal", "crowd-layer", "spee-lfc", "trace-reg")


def spammer_majority(n_classes):
    """Three workers who are mostly correct and four spammers who always give the first class."""
    truth = np.arange(200) % n_classes
    rng = np.random.default_rng(0)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (200, 3))) % n_classes
    correct = np.where(rng.random((200, 3)) < 0.9, truth[:, None], wrong)
    return features_of(truth), Annotations.from_matrix(np.hstack([correct, np.zeros((200, 4), int)])), truth


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_initialised_by_dawid_skene_a_majority_of_spammers_is_identified(method, n_classes):
    """Majority vote predicts one class; layers initialised with Dawid-Skene's confusion matrices find them all."""
    X, votes, truth = spammer_majority(n_classes)
    fresh = features_of(truth, seed=7)
    settings = QUICK | {"max_epochs": 30, "random_state": 0}
    model = registry.create(method, init="dawid-skene", **settings).fit(X, votes)
    assert np.mean(model.predict(fresh) == truth) > 0.95
    assert np.mean(TwoStage("majority-vote", **settings).fit(X, votes).predict(fresh) == truth) < 0.6
    assert model.worker_accuracy_[:3].min() > 0.8 > 0.7 > model.worker_accuracy_[3:].max()


@pytest.mark.parametrize("layer", [CrowdLogits(4, 3), Confusion(4, 3), Confusion(4, 3, "softplus", None)])
def test_a_layer_is_initialised_at_given_matrices(layer):
    """Its confusion matrices are those given, with every probability at least 0.001, so that all have gradients."""
    given = np.random.default_rng(0).dirichlet(np.ones(3), (4, 3))
    layer.initialise_at(given)
    np.testing.assert_allclose(layer.confusion(), given, rtol=1e-4, atol=2e-3)
    layer.initialise_at(np.repeat(np.eye(3)[None], 4, axis=0))
    np.testing.assert_allclose(layer.confusion()[:, 0, 1], 0.001, rtol=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_initialised_at_the_given_diagonal(form):
    """A weight per class reproduces the diagonal, a bias per class the mean label distribution."""
    layer = CrowdLogits(2, 3, form)
    strong, weak = 0.9 * np.eye(3) + 0.05 * (1 - np.eye(3)), np.full((3, 3), 1 / 3)
    layer.initialise_at(np.array([strong, weak]))
    diagonal = layer.confusion().diagonal(axis1=1, axis2=2)
    if form == "vb":
        layer.initialise_at(np.repeat([[[0.8, 0.1, 0.1]]], 2, axis=0).repeat(3, axis=1))
        assert (layer.confusion()[..., 0] > 0.6).all()
    else:
        np.testing.assert_allclose(diagonal, [[0.9] * 3, [1 / 3] * 3], rtol=1e-4)


def test_held_out_labels_are_hidden_from_the_aggregator():
    """It is fitted to the training labels alone, and the instance given stays unfitted."""
    X, votes, _ = feature_crowd(3)
    seen = []

    class Watching(MajorityVote):
        def fit(self, annotations, gold=None):
            seen.append(annotations.n_annotations)
            return super().fit(annotations, gold)

    init = Watching()
    registry.create("spee-lfc", init=init, validation=0.2, random_state=0, **QUICK).fit(X, votes)
    assert seen == [round(0.8 * votes.n_annotations)]
    assert not hasattr(init, "posterior_")


def test_init_is_a_name_or_an_aggregator():
    """Parameters of an instance are addressed as `init__name`; anything else is refused."""
    X, votes, _ = feature_crowd(2)
    model = registry.create("crowd-layer", init=DawidSkene(smoothing=0.5), random_state=0, **QUICK).fit(X, votes)
    assert model.get_params()["init__smoothing"] == 0.5
    with pytest.raises(ParameterError, match="`init`"):
        registry.create("crowd-layer", init="nowhere").fit(X, votes)
