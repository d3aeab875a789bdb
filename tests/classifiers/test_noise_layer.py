"""Where layers per worker start: what that ties, and that held-out labels have no part in it."""

import numpy as np
import pytest

from manyhands import Annotations, DawidSkene, MajorityVote, TwoStage, registry
from manyhands.exceptions import ParameterError
from manyhands.nn.worker_layers import FORMS, Confusion, CrowdLogits
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd, features_of

pytestmark = pytest.mark.usefixtures("one_thread")
METHODS = ("conal", "crowd-layer", "spee-lfc", "trace-reg")


def outvoted(n_classes):
    """Three who know against four who always give the first answer."""
    planted = np.arange(200) % n_classes
    rng = np.random.default_rng(0)
    wrong = (planted[:, None] + rng.integers(1, n_classes, (200, 3))) % n_classes
    known = np.where(rng.random((200, 3)) < 0.9, planted[:, None], wrong)
    return features_of(planted), Annotations.from_matrix(np.hstack([known, np.zeros((200, 4), int)])), planted


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_spammers_who_outvote_are_seen_through(method, n_classes):
    """The vote knows one class, layers that start at Dawid-Skene's matrices know them all."""
    X, votes, planted = outvoted(n_classes)
    fresh = features_of(planted, seed=7)
    settings = QUICK | {"max_epochs": 30, "random_state": 0}
    model = registry.create(method, start="dawid-skene", **settings).fit(X, votes)
    assert np.mean(model.predict(fresh) == planted) > 0.95
    assert np.mean(TwoStage("majority-vote", **settings).fit(X, votes).predict(fresh) == planted) < 0.6
    assert model.worker_accuracy_[:3].min() > 0.8 > 0.7 > model.worker_accuracy_[3:].max()


@pytest.mark.parametrize("layer", [CrowdLogits(4, 3), Confusion(4, 3), Confusion(4, 3, "softplus", None)])
def test_a_layer_starts_where_it_is_told(layer):
    """Its confusion matrices are those given; no answer is impossible, or no gradient would come back."""
    given = np.random.default_rng(0).dirichlet(np.ones(3), (4, 3))
    layer.initialise_at(given)
    np.testing.assert_allclose(layer.confusion(), given, rtol=1e-4, atol=2e-3)
    layer.initialise_at(np.repeat(np.eye(3)[None], 4, axis=0))
    np.testing.assert_allclose(layer.confusion()[:, 0, 1], 0.001, rtol=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_starts_with_the_right_diagonal(form):
    """One weight per class gives each worker the diagonal given; a bias gives the answers that come most often."""
    layer = CrowdLogits(2, 3, form)
    strong, weak = 0.9 * np.eye(3) + 0.05 * (1 - np.eye(3)), np.full((3, 3), 1 / 3)
    layer.initialise_at(np.array([strong, weak]))
    diagonal = layer.confusion().diagonal(axis1=1, axis2=2)
    if form == "vb":
        layer.initialise_at(np.repeat([[[0.8, 0.1, 0.1]]], 2, axis=0).repeat(3, axis=1))
        assert (layer.confusion()[..., 0] > 0.6).all()
    else:
        np.testing.assert_allclose(diagonal, [[0.9] * 3, [1 / 3] * 3], rtol=1e-4)


def test_the_aggregator_sees_no_held_out_label():
    """It is fitted to the labels to learn from alone, and stays as it is."""
    X, votes, _ = feature_crowd(3)
    seen = []

    class Watching(MajorityVote):
        def fit(self, annotations, gold=None):
            seen.append(annotations.n_annotations)
            return super().fit(annotations, gold)

    start = Watching()
    registry.create("spee-lfc", start=start, validation=0.2, random_state=0, **QUICK).fit(X, votes)
    assert seen == [round(0.8 * votes.n_annotations)]
    assert not hasattr(start, "posterior_")


def test_a_start_is_a_name_or_an_aggregator():
    """As an instance, it can be searched over; anything else is refused in one sentence."""
    X, votes, _ = feature_crowd(2)
    model = registry.create("crowd-layer", start=DawidSkene(smoothing=0.5), random_state=0, **QUICK).fit(X, votes)
    assert model.get_params()["start__smoothing"] == 0.5
    with pytest.raises(ParameterError, match="'start'"):
        registry.create("crowd-layer", start="nowhere").fit(X, votes)
