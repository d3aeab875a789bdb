"""compare: cross-validated log-likelihood on shared folds, without ground truth."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyhands import Annotations, MajorityVote
from manyhands.classifiers import TwoStage
from manyhands.comparison import compare
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.heldout import split_labels
from manyhands.testing.crowds import feature_crowd

pytestmark = pytest.mark.fast

LOGISTIC = ("two-stage", {"aggregator": "majority-vote", "classifier": "logistic-regression"})


def crowd(n_items=60, seed=0):
    """Features that separate the classes; three workers with an accuracy of 0.8."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_items)
    message = np.where(rng.random((n_items, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    return rng.normal(size=(n_items, 2)) + 4 * truth[:, None], Annotations.from_matrix(message)


def test_informative_features_have_the_higher_likelihood():
    """The method that sees the features ranks first; ranks, means and best agree."""
    X, votes = crowd()
    good = TwoStage("majority-vote", "logistic-regression")
    blind = make_pipeline(StandardScaler(with_mean=True), _Blind("majority-vote", "logistic-regression"))
    found = compare([blind, good], votes, X, random_state=0)
    assert found.rank.tolist() == [2, 1] and found.best == repr(good)
    assert found.mean[1] > found.mean[0] + 0.05
    assert found.difference_to_best[1] == 0 and found.difference_standard_error[1] == 0
    assert not hasattr(found.best_estimator, "classes_")
    assert [row["rank"] for row in found.table()] == [1, 2] and found.table()[0]["method"] == found.best


class _Blind(TwoStage):
    """A classifier whose features are all the same."""

    def fit(self, X, annotations, gold=None):
        return super().fit(np.zeros_like(X) + 1e-9, annotations, gold)

    def predict_proba(self, X):
        return super().predict_proba(np.zeros_like(X))


def test_scores_are_those_of_the_folds():
    """By hand: every labelled item is held out once, items without labels never, and `score` is the criterion."""
    X, votes = crowd(20)
    votes = votes.keep(votes.item != 3)  # the fourth item has no label
    found = compare([LOGISTIC], votes, X, n_folds=4, random_state=5)
    labelled = np.random.default_rng(5).permutation(np.delete(np.arange(20), 3))
    for fold in range(4):
        out = np.sort(labelled[fold::4])
        rest = np.setdiff1d(np.arange(20), out)
        model = TwoStage("majority-vote", "logistic-regression").fit(X[rest], votes[rest])
        assert found.scores[0, fold] == model.score(X[out], votes[out])
    assert found.n_heldout.sum() == votes.n_annotations
    expected = np.average(found.scores[0], weights=found.n_heldout)
    np.testing.assert_allclose(found.mean, [expected])
    np.testing.assert_allclose(found.standard_error, [found.scores[0].std(ddof=1) / 2])


def test_aggregators_are_compared_by_labels():
    """Without features, folds are those of `split_labels`."""
    _, votes = crowd()
    found = compare(["majority-vote", "dawid-skene"], votes, n_folds=3)
    fold = split_labels(votes, 3)
    expected = [MajorityVote().fit(votes.keep(fold != f)).score(votes.keep(fold == f)) for f in range(3)]
    np.testing.assert_array_equal(found.scores[0], expected)


def test_a_seed_decides_and_global_generators_are_left_alone():
    X, votes = crowd(30)
    network = ("crowd-layer", {"hidden": (4,), "max_epochs": 2})
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (compare([network], votes, X, n_folds=2, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first.scores, second.scores)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    other = compare([network], votes, X, n_folds=2, random_state=2)
    assert not np.array_equal(first.scores, other.scores)


@pytest.mark.parametrize("form", [csr_array, list, lambda X: _Getter(X)])
def test_features_of_any_kind(form):
    """Sparse matrices, lists and row getters are split into the same folds."""
    X, votes = crowd(24)
    expected = compare([LOGISTIC], votes, X, n_folds=2, random_state=0).scores
    np.testing.assert_allclose(compare([LOGISTIC], votes, form(X), n_folds=2, random_state=0).scores, expected, 1e-3)


class _Getter:
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]


def test_it_reads_as_a_table():
    """The best first, with errors; the settings are part of the name."""
    _, votes = crowd(12)
    lines = repr(compare(["majority-vote", ("one-coin", {"max_iter": 5})], votes, n_folds=3)).splitlines()
    assert lines[0] == "Mean log-likelihood of 36 labels, each held out once in 3 folds"
    assert lines[1].startswith("  1  ") and lines[1].endswith("best") and lines[2].endswith("below the best")
    assert "one-coin(max_iter=5)" in lines[1] + lines[2]


@pytest.mark.parametrize(
    ("methods", "with_features", "sentence"),
    [
        ([], True, "takes a list of methods"),
        ("two-stage", True, "takes a list of methods"),
        (["no-such"], True, "no classifier called 'no-such'"),
        ([("two-stage", {"no": 1})], True, "has no parameter 'no'"),
        (["two-stage", "two-stage"], True, "two-stage is given twice"),
        (["majority-vote"], True, "does not use features"),
        (["two-stage"], False, "learns from features: give X"),
        ([3], True, "A method is a name"),
    ],
)
def test_what_cannot_be_compared(methods, with_features, sentence):
    X, votes = crowd(10)
    with pytest.raises(ParameterError, match=sentence):
        compare(methods, votes, X if with_features else None)


def test_too_little_to_hold_out():
    one = Annotations.from_matrix([[0], [-1]])
    with pytest.raises(AnnotationError, match="too few to hold some out"):
        compare([LOGISTIC], one, np.ones((2, 1)))
    with pytest.raises(AlignmentError, match="X has 3 rows"):
        compare([LOGISTIC], one, np.ones((3, 1)))
    with pytest.raises(ParameterError, match="`n_folds` of compare must be a whole number at least 2"):
        compare([LOGISTIC], one, np.ones((2, 1)), n_folds=1)


def test_a_representation_alone_is_refused_before_any_fit():
    """A representation learner needs a classifier after it."""
    X, votes, _ = feature_crowd(3)
    with pytest.raises(ParameterError, match="triplet predicts no labels; put a classifier after it"):
        compare(["triplet"], votes, X)


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_gold_is_given_to_every_fit():
    """By hand, for aggregators and classifiers; held-out annotations include those on gold items."""
    X, votes = crowd(30)
    gold = {item: 0 for item in votes.item_ids[:10].tolist()}
    found = compare(["majority-vote"], votes, gold=gold, n_folds=3)
    fold = split_labels(votes, 3)
    for f in range(3):
        model = MajorityVote().fit(votes.keep(fold != f), gold=gold)
        assert found.scores[0, f] == model.score(votes.keep(fold == f))
    assert found.n_heldout.sum() == votes.n_annotations
    assert not np.array_equal(found.scores, compare(["majority-vote"], votes, n_folds=3).scores)
    found = compare([LOGISTIC], votes, X, gold=gold, n_folds=3, random_state=5)
    labelled = np.random.default_rng(5).permutation(30)
    for f in range(3):
        out = np.sort(labelled[f::3])
        rest = np.setdiff1d(np.arange(30), out)
        here = {item: value for item, value in gold.items() if item in votes.item_ids[rest]}
        model = TwoStage("majority-vote", "logistic-regression").fit(X[rest], votes[rest], here)
        logs = model.score_labels(X[out], votes[out]).tolist()
        for x, item in zip(X[out], votes.item_ids[out].tolist(), strict=True):  # a known class is one more label
            if item in gold:
                p = model.predict_proba([x])[0, model.classes_.tolist().index(gold[item])]
                logs.append(math.log((p + 0.01 / len(model.classes_)) / 1.01))
        assert found.n_heldout[f] == len(logs) and found.scores[0, f] == pytest.approx(math.fsum(logs) / len(logs))


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_gold_without_labels_is_held_out_too():
    """Items with gold and no label are in one held-out part each, and count as one label."""
    X, votes = crowd(30)
    votes = votes.keep(votes.item >= 5)
    gold = {item: 0 for item in votes.item_ids[:5].tolist()}
    found = compare([LOGISTIC], votes, X, gold=gold, n_folds=3)
    assert found.n_heldout.sum() == votes.n_annotations + 5
    assert compare([LOGISTIC], votes, X, n_folds=3).n_heldout.sum() == votes.n_annotations


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_gold_decides_where_labels_are_noise():
    """With random labels the known classes tell a classifier that uses the features from one that does not."""
    X, votes = crowd(60)
    rng = np.random.default_rng(0)
    noise = Annotations(
        votes.item, votes.worker, rng.integers(0, votes.n_classes, votes.n_annotations),
        item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=votes.classes,
    )  # fmt: skip
    truth = MajorityVote().fit_predict(votes)
    gold = dict(zip(votes.item_ids.tolist(), truth.tolist(), strict=True))
    found = compare([LOGISTIC, _Blind("majority-vote", "logistic-regression")], noise, X, gold=gold, n_folds=3)
    assert found.mean[0] > found.mean[1] + 0.02


def test_gold_reaches_the_classifier_of_a_pipeline():
    """Steps of scikit-learn, whose fit has no gold, do not get it."""
    X, votes = crowd(30)
    gold = dict.fromkeys(votes.item_ids[:10].tolist(), 0)
    pipeline = make_pipeline(StandardScaler(), TwoStage("majority-vote", "logistic-regression"))
    scores = [compare([pipeline], votes, X, gold=known, n_folds=3).scores for known in (gold, None)]
    assert not np.array_equal(*scores)


def test_features_in_the_place_of_annotations_are_pointed_out():
    """`fit` takes X first, compare the annotations."""
    X, votes = crowd(10)
    with pytest.raises(ParameterError, match=r"annotations before the features: compare\(methods, annotations, X\)"):
        compare([LOGISTIC], X, votes)
