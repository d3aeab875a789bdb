"""Regression on the embedding of any learner: which items it holds out, and what they choose."""

import numpy as np
import pytest
import torch

from manyhands import MajorityVote
from manyhands.exceptions import ParameterError
from manyhands.representation import Contrastive, Lifted, Triplet
from manyhands.representation.neucrowd import GRIDS, HeldoutRegression, regressions
from manyhands.testing.crowds import QUICK, add_noise, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = ({}, {"learning_rate": 0.02}, {"embedding_size": 9, "weight_decay": 0.01})
SMALL = QUICK | {"random_state": 0, "max_epochs": 3, "embedding_size": 6}


def noisy_crowd(n_items=60):
    """Three classes that overlap."""
    X, votes, _ = feature_crowd(3, n_items=n_items, accuracy=0.7)
    return add_noise(X, 2.0), votes


@pytest.fixture
def learned(monkeypatch):
    """The learner, the context and the network of each setting."""
    found = []
    original = Triplet._learn

    def remember(self, context):
        result = original(self, context)
        found.append((self, context, result.module))
        return result

    monkeypatch.setattr(Triplet, "_learn", remember)
    return found


def test_held_out_items_choose_setting_and_c(learned):
    """The largest log-likelihood of their voted classes, by a plain loop; a fifth of the items, the same for all."""
    X, votes = noisy_crowd()
    model = HeldoutRegression(Triplet(**SMALL), SETTINGS).fit(X, votes)
    heldout = [set(context.heldout.item.tolist()) for _, context, _ in learned]
    assert heldout == [heldout[0]] * 3 and len(heldout[0]) == 12
    assert not any(heldout[0] & set(context.annotations.item.tolist()) for _, context, _ in learned)
    target = np.eye(3)[np.searchsorted(model.classes_, MajorityVote().fit(votes).labels_)]
    out, best = np.isin(np.arange(60), list(heldout[0])), []
    for setting, (_, _, network) in zip(SETTINGS, learned):
        with torch.no_grad():
            embedding = network.eval()(torch.from_numpy(X).float()).numpy()
        for C, weights in zip(GRIDS["decades"], regressions(embedding[~out], target[~out], GRIDS["decades"])):
            total = 0.0
            for row, wanted in zip(embedding[out], target[out]):
                scores = row @ weights[:-1] + weights[-1]
                total += max((wanted * (scores - np.log(np.exp(scores).sum()))).sum(), np.log(1e-6))
            best.append((total, C, setting))
    _, C, setting = max(best, key=lambda found: found[0])
    assert (model.C_, model.setting_) == (C, setting)


def test_the_regression_learns_all_items():
    """Of the chosen embedding, with the chosen C; `transform` gives that embedding."""
    X, votes = noisy_crowd()
    model = HeldoutRegression(Lifted(**SMALL), SETTINGS).fit(X, votes)
    embedding = model.transform(X)
    assert embedding.shape == (60, model.setting_.get("embedding_size", 6))
    target = np.eye(3)[np.searchsorted(model.classes_, MajorityVote().fit(votes).labels_)]
    weights = regressions(embedding, target, (model.C_,))[0]
    scores = embedding @ weights[:-1] + weights[-1]
    expected = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)
    np.testing.assert_array_equal(model.posterior_, MajorityVote().fit(votes).posterior_)


@pytest.mark.parametrize("share, n_items", [(0.0, 60), (0.2, 12)])
def test_without_held_out_items_the_first_setting_is_used(share, n_items, learned):
    """There is nothing to choose by; C is chosen by cross-validation on the embedding."""
    X, votes = noisy_crowd(n_items)
    model = HeldoutRegression(Triplet(**SMALL), SETTINGS, share).fit(X, votes)
    assert len(learned) == 1 and model.setting_ == {} and model.C_ in GRIDS["decades"]


def test_the_seed_is_the_learners():
    """The same seed gives the same result, another one another; the learner that was given is not fitted."""
    X, votes = noisy_crowd()
    first, again, other = (
        HeldoutRegression(Contrastive(**SMALL | {"random_state": seed}), SETTINGS[:1]).fit(X, votes)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))
    assert not hasattr(first.learner, "module_")


def test_a_wrong_parameter_is_named():
    """Of the learner and of the search."""
    X, votes = noisy_crowd()
    with pytest.raises(ParameterError, match="margin"):
        HeldoutRegression(Triplet(**SMALL, margin=-1.0)).fit(X, votes)
    with pytest.raises(ParameterError, match="heldout_share"):
        HeldoutRegression(Triplet(**SMALL), heldout_share=0.7).fit(X, votes)
