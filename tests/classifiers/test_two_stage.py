"""Two stages: targets of the second stage, and its classifiers."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from manyhands import Annotations, DawidSkene, MajorityVote, load_model
from manyhands.classifiers import TwoStage
from manyhands.exceptions import ParameterError
from manyhands.testing import classifier_checks
from manyhands.testing.crowds import QUICK, feature_crowd, quietly, with_unlabelled

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.slow
def test_logistic_regression_passes_all_checks(soft):
    """All but that every parameter is used, since those of the network are not."""
    for name, check in classifier_checks():
        if name != "every_parameter_is_read":
            check(TwoStage("majority-vote", "logistic-regression", soft=soft))


def test_hard_labels_are_training_on_the_aggregated_labels():
    """The same coefficients as fitting the classifier on the labels of the aggregator."""
    X, votes, _ = feature_crowd(3)
    model = TwoStage(MajorityVote(), LogisticRegression(C=0.5)).fit(X, votes)
    code = np.searchsorted(votes.classes, MajorityVote().fit_predict(votes))
    expected = LogisticRegression(C=0.5).fit(X, code)
    np.testing.assert_array_equal(model.module_.coef_, expected.coef_)


def test_soft_labels_are_training_on_all_labels():
    """SoftProb: votes as soft labels are all (row, label) pairs, each with the weight of one over its item's labels."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    model = TwoStage("majority-vote", LogisticRegression(tol=1e-8), soft=True).fit(X, votes)
    weight = 1 / votes.n_labels[votes.item]
    expected = LogisticRegression(tol=1e-8).fit(X[votes.item], votes.label, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-4)


def test_items_without_labels_are_left_out():
    """Whatever their features are."""
    X, votes, _ = feature_crowd(3)
    models = [
        TwoStage("majority-vote", "logistic-regression").fit(
            np.vstack([X, np.full((1, 4), far)]), with_unlabelled(votes)
        )
        for far in (0.0, 1e6)
    ]
    np.testing.assert_array_equal(models[0].module_.coef_, models[1].module_.coef_)


def test_any_classifier_with_probabilities():
    """Trees, nearest neighbours; a class that no item has gets probability 0."""
    X, votes, truth = feature_crowd(3, accuracy=1.0)
    few = votes[np.flatnonzero(truth < 2)]
    for second in (DecisionTreeClassifier(random_state=0), KNeighborsClassifier(3)):
        model = TwoStage(DawidSkene(), second).fit(X[truth < 2], few)
        assert (model.predict_proba(X)[:, 2] == 0).all()
    with pytest.raises(ParameterError, match=r"takes sample_weight; KNeighborsClassifier does not. Set soft=False"):
        TwoStage("majority-vote", KNeighborsClassifier(3), soft=True).fit(*feature_crowd(3)[:2])


def test_nested_parameters_can_be_set():
    """As scikit-learn's searches do."""
    model = TwoStage(DawidSkene(), LogisticRegression())
    model.set_params(aggregator__smoothing=0.5, classifier__C=3.0, soft=True)
    assert (model.aggregator.smoothing, model.classifier.C, model.soft) == (0.5, 3.0, True)
    assert model.get_params()["aggregator__smoothing"] == 0.5
    with pytest.raises(ParameterError, match="no parameter 'soft__x'"):
        model.set_params(soft__x=1)


def test_a_single_class_is_always_predicted():
    """Where all labels are of one class; a warning says so."""
    votes = Annotations.from_matrix([[1, 1], [1, 1]], classes=[0, 1])
    with pytest.warns(match="single_class"):
        model = TwoStage("majority-vote", "logistic-regression").fit([[0.0], [1.0]], votes)
    assert model.predict([[5.0]]).tolist() == [1] and "single_class" in model.notes_


def test_logistic_regression_is_saved_and_other_classifiers_are_refused(tmp_path):
    """With the parameters of aggregator and classifier; a Gaussian process is refused, and nothing is written."""
    X, votes, _ = feature_crowd(3)
    model = TwoStage(DawidSkene(smoothing=0.3), LogisticRegression(C=0.5)).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.aggregator.smoothing == 0.3 and again.module_.C == 0.5
    with pytest.raises(ParameterError, match="A GaussianProcessClassifier cannot be saved"):
        TwoStage("majority-vote", GaussianProcessClassifier()).fit(X, votes).save(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_perfect_workers_are_supervised_training():
    """To the last bit: five correct labels per item are the same as the truth as the label of one worker."""
    X, votes, truth = feature_crowd(3, accuracy=1.0)
    alone = Annotations(
        np.arange(60), np.zeros(60, int), truth, item_ids=votes.item_ids, worker_ids=["truth"], classes=votes.classes
    )
    for aggregator in ("majority-vote", "dawid-skene"):
        model = TwoStage(aggregator, patience=None, random_state=0, **QUICK)
        crowd, supervised = (quietly(lambda: model.fit(X, labels).predict_proba(X)) for labels in (votes, alone))  # noqa: B023
        np.testing.assert_array_equal(crowd, supervised)
