"""The truth scorer: the accuracy of a split by item id, in searches and cross-validation of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyhands import Annotations, DawidSkene, MajorityVote
from manyhands.classifiers import TwoStage
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.metrics import balanced_accuracy, truth_scorer
from manyhands.testing.crowds import easy_crowd, feature_crowd

X, VOTES, TRUTH = feature_crowd(2)
NAMED = Annotations(
    VOTES.item, VOTES.worker, VOTES.label,
    item_ids=[f"item {i}" for i in range(len(VOTES))], worker_ids=VOTES.worker_ids, classes=["no", "yes"],
)  # fmt: skip
BY_ID = {f"item {i}": ["no", "yes"][code] for i, code in enumerate(TRUTH)}
FOLDS = KFold(3, shuffle=True, random_state=0)
SIMPLE = TwoStage("majority-vote", LogisticRegression())


def slow_scores(model, metric):
    """A plain loop over the folds and the items."""
    found = []
    for train, test in FOLDS.split(X):
        predicted = model.fit(X[train], NAMED[train]).predict(X[test])
        right = [BY_ID[f"item {i}"] for i in test]
        found.append(metric(right, list(predicted)))
    return found


def share_right(truth, predicted):
    return sum(a == b for a, b in zip(truth, predicted, strict=True)) / len(truth)


@pytest.mark.parametrize(("metric", "slow"), [("accuracy", share_right), ("balanced_accuracy", balanced_accuracy)])
def test_cross_validation_of_a_classifier(metric, slow):
    found = cross_val_score(SIMPLE, X, NAMED, scoring=truth_scorer(BY_ID, metric=metric), cv=FOLDS)
    assert found.tolist() == pytest.approx(slow_scores(SIMPLE, slow))


def test_a_search_over_settings_of_a_classifier():
    """Settings are ranked by the truth of held-out items; a pipeline is searched in the same way."""
    grid = {"classifier__C": [1e-6, 1.0]}
    search = GridSearchCV(SIMPLE, grid, scoring=truth_scorer(BY_ID), cv=FOLDS).fit(X, NAMED)
    expected = [
        np.mean(slow_scores(TwoStage("majority-vote", LogisticRegression(C=c)), share_right)) for c in (1e-6, 1)
    ]
    assert search.cv_results_["mean_test_score"].tolist() == pytest.approx(expected)
    pipeline = make_pipeline(StandardScaler(), SIMPLE)
    both = {"accuracy": truth_scorer(BY_ID), "balanced": truth_scorer(BY_ID, metric="balanced_accuracy")}
    nested = {f"twostage__{name}": values for name, values in grid.items()}
    found = GridSearchCV(pipeline, nested, scoring=both, refit="accuracy", cv=FOLDS).fit(X, NAMED)
    assert found.best_score_ == found.cv_results_["mean_test_accuracy"].max()


def test_a_search_over_settings_of_an_aggregator():
    """Annotations take the place of X, and there is no y."""
    votes, codes = easy_crowd(2, accuracy=0.7)
    truth = votes.classes[codes]
    scorer = truth_scorer(truth, item_ids=votes.item_ids)
    search = GridSearchCV(DawidSkene(), {"smoothing": [0.01, 1.0]}, scoring=scorer, cv=FOLDS).fit(votes)
    for s, smoothing in enumerate([0.01, 1.0]):
        for f, (train, test) in enumerate(FOLDS.split(votes)):
            predicted = DawidSkene(smoothing=smoothing).fit(votes[train]).predict(votes[test])
            right = share_right([truth[i] for i in test], list(predicted))
            assert search.cv_results_[f"split{f}_test_score"][s] == pytest.approx(right)
    assert cross_val_score(MajorityVote(), votes, scoring=scorer, cv=FOLDS).shape == (3,)


def test_the_truth_may_come_as_a_mapping_a_series_or_an_array():
    model = SIMPLE.fit(X, NAMED)
    values = [BY_ID[item] for item in NAMED.item_ids]
    series = pd.Series(values, index=NAMED.item_ids)
    for scorer in (truth_scorer(BY_ID), truth_scorer(series), truth_scorer(values, item_ids=NAMED.item_ids)):
        assert scorer(model, X, NAMED) == share_right(values, list(model.predict(X)))
        assert pickle.loads(pickle.dumps(scorer))(model, X, NAMED) == scorer(model, X, NAMED)


def test_items_without_truth_do_not_count():
    """Nor does a truth of items that are not in the split; an item without labels counts as wrong."""
    votes = Annotations.from_triples(["a", "a", "b"], [1, 2, 1], ["x", "x", "y"], item_ids=["a", "b", "c"])
    model = MajorityVote().fit(votes)
    assert truth_scorer({"a": "x", "zz": "y"})(model, votes) == 1.0
    assert truth_scorer({"b": "y"})(model, votes) == 1.0  # the second item alone
    assert truth_scorer({"a": "x", "b": "x", "c": "x"})(model, votes) == pytest.approx(1 / 3)


def test_a_metric_of_the_caller():
    assert truth_scorer(BY_ID, metric=lambda truth, predicted: -len(truth))(SIMPLE.fit(X, NAMED), X, NAMED) == -len(X)


def test_bad_input():
    with pytest.raises(ParameterError, match=r"no metric called 'acuracy'. Did you mean 'accuracy'\?"):
        truth_scorer(BY_ID, metric="acuracy")
    with pytest.raises(ParameterError, match="metric must be a name or a function"):
        truth_scorer(BY_ID, metric=3)
    with pytest.raises(AlignmentError, match=r"item_ids=annotations\.item_ids"):
        truth_scorer(["yes", "no"])
    with pytest.raises(AlignmentError, match="There are 1 ids but 2 true classes"):
        truth_scorer(["yes", "no"], item_ids=["a"])
    model = SIMPLE.fit(X, NAMED)
    with pytest.raises(AnnotationError, match="No item of this split has a truth: its items are such as 'item 0'"):
        truth_scorer({0: "yes"})(model, X, NAMED)
    with pytest.raises(AnnotationError, match="finds items by the ids of Annotations"):
        truth_scorer(BY_ID)(model, X, np.zeros(len(X)))
