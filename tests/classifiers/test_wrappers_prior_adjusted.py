"""Class-prior shift of any classifier: Bayes' rule by plain loops, what stays the same, nesting, saving, bad input."""

import numpy as np
import pytest
from sklearn.base import clone

from manyhands import ICED, load_model
from manyhands.classifiers import AggNet, CoNAL, PriorAdjusted, Raykar
from manyhands.exceptions import ParameterError
from manyhands.testing.crowds import QUICK, feature_crowd, quietly

pytestmark = pytest.mark.usefixtures("one_thread")


def imbalanced_crowd():
    """Features that overlap, and nine items in ten of one class."""
    X, votes, truth = feature_crowd(2, n_items=200)
    rows = np.concatenate([np.flatnonzero(truth == 0), np.flatnonzero(truth == 1)[:12]])
    X = X + np.random.default_rng(0).normal(scale=1.5, size=X.shape)
    return X[rows], votes[rows]


@pytest.mark.parametrize("prior", ["uniform", [1, 3]])
def test_against_plain_loops(prior):
    """Divided by the mean posterior of each class, times the wanted share, normalised."""
    X, votes = imbalanced_crowd()
    model, plain = PriorAdjusted("raykar", prior=prior).fit(X, votes), Raykar().fit(X, votes)
    shares = [sum(row[k] for row in plain.posterior_.tolist()) / len(X) for k in range(2)]
    wanted = [0.5, 0.5] if prior == "uniform" else [0.25, 0.75]
    for found, p in zip(model.predict_proba(X), plain.predict_proba(X), strict=True):
        weighted = [p[k] / shares[k] * wanted[k] for k in range(2)]
        assert found == pytest.approx([value / sum(weighted) for value in weighted], rel=1e-6)
    assert (model.predict(X) == votes.classes[1]).sum() > (plain.predict(X) == votes.classes[1]).sum()
    np.testing.assert_allclose(model.class_shares_, shares)


def test_fit_posterior_and_score_are_those_of_the_classifier():
    X, votes = imbalanced_crowd()
    model, plain = PriorAdjusted(Raykar()).fit(X, votes), Raykar().fit(X, votes)
    np.testing.assert_array_equal(model.posterior_, plain.posterior_)
    assert model.score(X, votes) == plain.score(X, votes) and model.score_kind == plain.score_kind
    own = quietly(lambda: PriorAdjusted("difficulty-em").fit(X, votes))
    assert own.score_kind == "own" and own.score(X, votes) == own.classifier_.score(X, votes)


def test_a_class_that_nobody_named_stays_finite():
    """Its share is taken as half an item; the given classes are shifted as before."""
    X, votes = imbalanced_crowd()
    wider = type(votes)(
        votes.item, votes.worker, votes.label,
        item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=[*votes.classes.tolist(), "unused"],
    )  # fmt: skip
    model = PriorAdjusted("raykar").fit(X, wider)
    assert model.class_shares_[2] >= 0.5 / len(X) and np.isfinite(model.predict_proba(X)).all()


def test_a_method_for_balanced_classes_is_not_shifted_twice():
    """ICED with a balanced loss predicts under a uniform prior; its probabilities are taken back to training first."""
    X, votes = imbalanced_crowd()
    inner = ICED.plus(random_state=0).set_params(**(QUICK | {"max_epochs": 6}))
    model = quietly(lambda: PriorAdjusted(inner).fit(X, votes))
    raw = model.classifier_._training_prior_proba(model.classifier_.predict_proba(X))
    expected = raw / model.class_shares_
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)


@pytest.mark.parametrize("inner", [Raykar(), AggNet(**QUICK), CoNAL(**QUICK)])
def test_saved_and_cloned(inner, tmp_path):
    """The folder holds the classifier too; a clone is unfitted and has the same parameters."""
    X, votes = imbalanced_crowd()
    model = quietly(lambda: PriorAdjusted(inner, prior=[2, 1], random_state=1).fit(X, votes))
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.score(X, votes) == model.score(X, votes) and again.score_kind == model.score_kind
    assert type(again.classifier_) is type(inner) and repr(clone(model)) == repr(
        PriorAdjusted(**model.get_params(False))
    )


def test_parameters_of_the_classifier_are_nested():
    """By `classifier__name`, for an instance and for a name, which then becomes an instance; the seed is passed on."""
    assert PriorAdjusted(Raykar()).set_params(classifier__max_iter=7).classifier.max_iter == 7
    assert PriorAdjusted("raykar").set_params(classifier__max_iter=7).classifier.max_iter == 7
    changed = PriorAdjusted().set_params(classifier="aggnet", classifier__max_epochs=3)
    assert isinstance(changed.classifier, AggNet) and changed.classifier.max_epochs == 3
    X, votes = imbalanced_crowd()
    fits = [quietly(lambda: PriorAdjusted(AggNet(**QUICK), random_state=4).fit(X, votes)) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


def test_bad_parameters():
    X, votes = imbalanced_crowd()
    for wrong in ({"prior": "balanced"}, {"prior": [1, -1]}, {"classifier": "dawid-skene"}, {"classifier": None}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            PriorAdjusted(**wrong).fit(X, votes)
    with pytest.raises(ParameterError, match="The prior has 3 numbers, but there are 2 classes"):
        PriorAdjusted(prior=[1, 1, 1]).fit(X, votes)
    with pytest.raises(ParameterError, match="max_iter"):
        PriorAdjusted(Raykar(max_iter=0)).fit(X, votes)
