"""Difficulty EM on the paper's own data: its results, and the failure modes of some of its options."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from manyhands import DifficultyEM, FixedDifficultyEM
from manyhands.classifiers import Raykar
from manyhands.em.kernels import vote_share
from manyhands.exceptions import CrowdWarning
from manyhands.reproduce.cells import auc
from manyhands.simulate import make_difficulty_gaussians, thin
from manyhands.testing.crowds import feature_crowd

WITHOUT_PRIORS = {"floor": 0.0, "right": 1e-9, "wrong": 1e-9, "ridge": 1e-6}
SEEDS = [(1228, 1234), *((seed, seed + 1_000_000) for seed in range(1, 6))]  # the reference data first


@pytest.fixture(scope="module")
def gaussians():
    return [make_difficulty_gaussians(*seeds) for seeds in SEEDS]


@pytest.fixture(scope="module")
def fitted(gaussians):
    """Adaptive, Fixed and the original EM on each data set; the reference data come first."""
    return [
        {
            "adaptive": DifficultyEM(floor=0.0).fit(data.X, data.crowd.annotations),
            "fixed": FixedDifficultyEM.program().fit(data.X, data.crowd.annotations),
            "original": Raykar().fit(data.X, data.crowd.annotations),
        }
        for data in gaussians
    ]


def label_auc(posterior, data):
    return auc(data.crowd.truth, posterior, np.arange(2))


def expertise_error(model, data):
    found = model.expertise_ if hasattr(model, "expertise_") else np.einsum("wcc->wc", model.confusion_)
    return np.abs(found - data.crowd.expertise).mean()


def test_the_reference_data_are_those_of_the_paper(gaussians):
    """Majority vote has an accuracy of .647, the best linear classifier .941 on the test items."""
    data = gaussians[0]
    vote = vote_share(data.crowd.annotations).argmax(axis=1)
    assert np.mean(vote == data.crowd.truth) == 0.647
    assert np.mean((data.X_test.sum(axis=1) > 0) == data.truth_test) == 0.941


def test_labels_are_better_than_those_of_original_em_and_of_the_vote(gaussians, fitted):
    """Area under the ROC of the labels: Adaptive .01 above original EM, that .2 above the vote; on every data set."""
    for data, models in zip(gaussians, fitted):
        vote = label_auc(vote_share(data.crowd.annotations), data)
        found = {name: label_auc(model.posterior_, data) for name, model in models.items()}
        assert found["adaptive"] >= found["original"] + 0.01 and found["original"] >= vote + 0.2
        assert found["fixed"] > 0.96
    assert label_auc(fitted[0]["adaptive"].posterior_, gaussians[0]) == pytest.approx(0.973, abs=0.002)


def test_expertise_has_a_smaller_error_than_that_of_original_em(gaussians, fitted):
    """On the average of the data sets, and on the reference data."""
    errors = {
        name: [expertise_error(models[name], data) for data, models in zip(gaussians, fitted)]
        for name in ("adaptive", "original")
    }
    assert errors["adaptive"][0] < 0.04 < 0.055 < errors["original"][0]
    assert np.mean(errors["adaptive"]) < np.mean(errors["original"])


def test_new_items_are_classified_nearly_optimally(gaussians, fitted):
    """Within 2.5 points of the best linear classifier, for every variant."""
    for data, models in zip(gaussians, fitted):
        best = np.mean((data.X_test.sum(axis=1) > 0) == data.truth_test)
        for model in models.values():
            assert np.mean(model.predict(data.X_test) == data.truth_test) >= best - 0.025


def test_maximum_likelihood_abilities_are_too_high_where_difficulty_comes_from_votes(gaussians):
    """Fixed with a full M step: no label is wrong on an easy item, and posteriors are worse; MAP is between."""
    data = gaussians[0]
    votes = data.crowd.annotations
    program = {"prior": "classifier", "vote_smoothing": 1.0, "newton_steps": 5, "accelerate": True}
    mle = FixedDifficultyEM(ability_update="mle", **program, **WITHOUT_PRIORS).fit(data.X, votes)
    map_ = FixedDifficultyEM(ability_update="map", **program).fit(data.X, votes)
    assert (mle.expertise_ > 0.98).all() and (map_.expertise_ < 0.95).all() and expertise_error(mle, data) > 0.3
    assert label_auc(mle.posterior_, data) < 0.9 < 0.93 < label_auc(map_.posterior_, data)


def test_with_votes_as_prior_the_classifier_does_not_enter(gaussians):
    """Algorithm 3: posteriors are then hardly better than majority vote."""
    data = gaussians[0]
    model = FixedDifficultyEM().fit(data.X, data.crowd.annotations)
    assert label_auc(model.posterior_, data) < 0.75


def test_the_posterior_as_difficulty_does_not_converge(gaussians, fitted):
    """It reinforces itself: weights grow to twice those of Adaptive, and a warning says that EM did not converge."""
    data = gaussians[0]
    with pytest.warns(CrowdWarning, match="not_converged: EM stopped after 60 passes"):
        model = DifficultyEM(difficulty="posterior", max_iter=60, floor=0.0).fit(data.X, data.crowd.annotations)
    weights = [np.linalg.norm(one.module_.coef_) for one in (model, fitted[0]["adaptive"])]
    assert weights[0] > 1.5 * weights[1]


def test_without_an_l2_penalty_weights_grow(gaussians, fitted):
    """Fixed then has a lower accuracy on new items than with the penalty."""
    data = gaussians[0]
    free = FixedDifficultyEM.program(max_iter=1000, **WITHOUT_PRIORS).fit(data.X, data.crowd.annotations)
    weights = [np.linalg.norm(one.module_.coef_) for one in (free, fitted[0]["fixed"])]
    accuracy = [np.mean(one.predict(data.X_test) == data.truth_test) for one in (free, fitted[0]["fixed"])]
    assert weights[0] > 1.3 * weights[1] and accuracy[0] < accuracy[1] - 0.01


def test_a_third_of_the_labels_can_be_missing(gaussians):
    data = gaussians[0]
    votes = thin(data.crowd.annotations, 0.3, random_state=0)
    model = DifficultyEM.plus().fit(data.X, votes)
    assert votes.n_annotations == 3500 and label_auc(model.posterior_, data) > 0.9


def test_true_abilities_and_difficulties_are_recovered(gaussians, fitted):
    """By rank correlations; and labels of easier items are wrong less often."""
    for data, models in zip(gaussians, fitted):
        model, votes = models["adaptive"], data.crowd.annotations
        assert spearmanr(model.difficulty_, data.crowd.difficulty).statistic > 0.8
        assert spearmanr(model.expertise_.ravel(), data.crowd.expertise.ravel()).statistic > 0.4
        wrong = np.bincount(votes.item, weights=votes.label != data.crowd.truth[votes.item]) / 5
        assert spearmanr(1 - model.difficulty_, wrong).statistic < -0.05
    pooled = [m["adaptive"].expertise_.ravel() for m in fitted], [d.crowd.expertise.ravel() for d in gaussians]
    assert spearmanr(np.mean(pooled[0], axis=0), pooled[1][0]).statistic > 0.8


def test_intervals_cover_the_true_expertise(gaussians, fitted):
    """In more than 80 % of the cases, and the estimate always."""
    inside = []
    for data, models in zip(gaussians, fitted):
        model = models["adaptive"]
        assert (model.expertise_low_ <= model.expertise_).all() and (model.expertise_ <= model.expertise_high_).all()
        inside.append((model.expertise_low_ <= data.crowd.expertise) & (data.crowd.expertise <= model.expertise_high_))
    assert np.mean(inside) > 0.8
    assert np.mean(fitted[0]["adaptive"].expertise_high_ - fitted[0]["adaptive"].expertise_low_) < 0.4


def test_the_estimated_floor_is_low_only_where_difficulty_matters(gaussians):
    """Low where labels were drawn with difficulties; high where accuracy is the same on all items."""
    data = gaussians[0]
    assert DifficultyEM.plus().fit(data.X, data.crowd.annotations).floor_ < 0.4
    X, votes, _ = feature_crowd(2, n_items=300, accuracy=0.75)
    X = X + np.random.default_rng(0).normal(0, 2, X.shape)
    model = DifficultyEM.plus().fit(X, votes)
    assert model.floor_ > 0.6 and model.difficulty_.max() <= 1 - model.floor_ + 1e-12
