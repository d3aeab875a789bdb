"""What scikit-learn asks of an estimator beyond `fit`: arguments that pipelines and searches pass on, and tags."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import manyhands as mh
from manyhands.classifiers import Raykar
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError

N = 60


@pytest.fixture
def crowd():
    """Features, labels of five workers who are right in 7 of 10 cases, and the truth."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 2
    wrong = rng.random((N, 5)) < 0.3
    votes = mh.Annotations.from_matrix(
        np.where(wrong, 1 - truth[:, None], truth[:, None]), item_ids=[f"i{n}" for n in range(N)]
    )
    return rng.normal(size=(N, 2)) + truth[:, None], votes, truth


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def golden(truth, known):
    """The class of each item, None beyond the first `known`."""
    return [*truth[:known].tolist(), *[None] * (len(truth) - known)]


def test_gold_may_be_a_list_with_an_entry_for_each_item(crowd):
    """Lists, tuples and arrays, with None or NaN for what is not known, do what the mapping does."""
    X, votes, truth = crowd
    mapping = {f"i{n}": int(truth[n]) for n in range(20)}
    entries = golden(truth, 20)
    expected, without = mh.DawidSkene().fit(votes, mapping), mh.DawidSkene().fit(votes)
    assert not np.array_equal(expected.posterior_, without.posterior_)
    floats = np.where(np.arange(N) < 20, truth, np.nan)
    for gold in (entries, tuple(entries), np.array(entries, dtype=object), floats):
        assert np.array_equal(mh.DawidSkene().fit(votes, gold).posterior_, expected.posterior_)
    assert np.array_equal(Raykar().fit(X, votes, entries).posterior_, Raykar().fit(X, votes, mapping).posterior_)
    with pytest.raises(AnnotationError, match=r"Gold has 59 entries, but the annotations have 60 items\. Give one"):
        mh.DawidSkene().fit(votes, entries[1:])


def test_gold_given_as_a_list_follows_the_items_of_the_annotations(crowd):
    """Items are sorted inside `fit`, i10 before i2; an entry belongs to the item at its place before that."""
    _, votes, truth = crowd
    with pytest.warns(CrowdWarning, match="vote_contradicts_gold"):
        model = mh.MajorityVote().fit(votes, golden(1 - truth, 20))
    assert model.labels_[:20].tolist() == (1 - truth[:20]).tolist()


def test_a_pipeline_passes_gold_on(crowd):
    X, votes, truth = crowd
    pipeline = make_pipeline(StandardScaler(), Raykar().set_fit_request(gold=True))
    gold = golden(truth, 30)
    fitted = pipeline.fit(X, votes, gold=gold)
    direct = Raykar().fit(StandardScaler().fit_transform(X), votes, gold)
    assert np.array_equal(fitted[-1].posterior_, direct.posterior_)
    assert not np.array_equal(direct.posterior_, Raykar().fit(StandardScaler().fit_transform(X), votes).posterior_)


def test_a_search_gives_each_fold_its_part_of_the_gold(crowd):
    """Also through a pipeline, and for aggregators; the scores are those of fits by hand."""
    X, votes, truth = crowd
    gold, folds = golden(truth, 30), KFold(3)
    step = make_pipeline(StandardScaler(), Raykar().set_fit_request(gold=True))
    search = GridSearchCV(step, {"raykar__max_iter": [3, 5]}, cv=folds, error_score="raise").fit(X, votes, gold=gold)
    train, test = next(folds.split(X))
    by_hand = clone(step).set_params(raykar__max_iter=3).fit(X[train], votes[train], gold=[gold[at] for at in train])
    assert search.cv_results_["split0_test_score"][0] == by_hand.score(X[test], votes[test])
    model = mh.DawidSkene().set_fit_request(gold=True)
    search = GridSearchCV(model, {"smoothing": [0.01, 1.0]}, cv=folds, error_score="raise").fit(votes, gold=gold)
    by_hand = mh.DawidSkene(smoothing=0.01).fit(votes[train], [gold[at] for at in train])
    assert search.cv_results_["split0_test_score"][0] == by_hand.score(votes[test])
    assert np.array_equal(search.best_estimator_.posterior_[:30].argmax(1), truth[:30])


def test_gold_that_nobody_asked_for_is_refused(crowd):
    """scikit-learn's own rule: an argument that is neither requested nor refused is an error, not ignored."""
    X, votes, truth = crowd
    with pytest.raises(ValueError, match="gold"):
        make_pipeline(StandardScaler(), Raykar()).fit(X, votes, gold=golden(truth, 30))
    refused = make_pipeline(StandardScaler(), Raykar().set_fit_request(gold=False))
    with pytest.raises(TypeError, match="gold"):
        refused.fit(X, votes, gold=golden(truth, 30))


def test_requests_are_copied_by_clone_and_do_not_change_the_parameters():
    model = Raykar().set_fit_request(gold="known").set_score_request(ids=True)
    copied = clone(model).get_metadata_routing()
    assert copied.fit.requests == {"gold": "known", "ids": None, "verbose": None}
    assert copied.score.requests == {"ids": True, "sample_weight": None}
    assert model.get_params() == Raykar().get_params() and repr(model) == "Raykar()"
    assert Raykar().get_metadata_routing().fit.requests["gold"] is None
    assert mh.CrowdInG().get_metadata_routing().fit.requests.keys() == {"gold", "worker_features", "ids", "verbose"}


def test_requests_are_not_part_of_a_saved_model(crowd, tmp_path):
    _, votes, _ = crowd
    model = mh.DawidSkene().set_fit_request(gold=True).fit(votes)
    model.save(tmp_path / "model")
    loaded = mh.load_model(tmp_path / "model")
    assert np.array_equal(loaded.posterior_, model.posterior_)
    assert loaded.get_metadata_routing().fit.requests["gold"] is None


def test_weights_of_samples_are_refused_by_the_score_of_a_pipeline(crowd):
    """`Pipeline.score` names them always; only a value that is not None is an error."""
    X, votes, _ = crowd
    fitted = make_pipeline(StandardScaler(), Raykar()).fit(X, votes)
    assert np.isfinite(fitted.score(X, votes))
    with pytest.raises(ValueError, match="sample_weight"):
        fitted.score(X, votes, sample_weight=np.ones(N))


def test_wrong_requests_end_in_one_sentence():
    with pytest.raises(
        ParameterError, match=r"fit of Raykar has no argument 'golt' that can be passed on\. Did you mean"
    ):
        Raykar().set_fit_request(golt=True)
    with (
        config_context(enable_metadata_routing=False),
        pytest.raises(ParameterError, match=r"Call sklearn\.set_config\(enable_metadata_routing=True\) first"),
    ):
        Raykar().set_fit_request(gold=True)


def test_tags_say_what_the_methods_take():
    """Classifiers of features need annotations and take sparse rows; none asks for stratified folds."""
    learner, aggregator = get_tags(Raykar()), get_tags(mh.DawidSkene())
    assert learner.target_tags.required and not aggregator.target_tags.required
    assert learner.input_tags.sparse and learner.input_tags.two_d_array and not aggregator.input_tags.two_d_array
    assert learner.estimator_type is aggregator.estimator_type is None
    assert not learner.target_tags.one_d_labels
