"""Columns of X by name: learned by `fit`, compared by every later call, as scikit-learn does."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyhands import CrowdInG, load_model
from manyhands.classifiers import CrowdLayer, Raykar, TwoStage
from manyhands.comparison import compare
from manyhands.exceptions import AlignmentError, CrowdWarning, ParameterError
from manyhands.features import feature_names_of
from manyhands.persistence import checksum
from manyhands.representation import Triplet
from manyhands.testing.crowds import feature_crowd

X, VOTES, _ = feature_crowd(3)
NAMES = ["height", "width", "depth", "mass"]
KINDS = {"pandas": lambda X, names: pd.DataFrame(X, columns=names), "polars": lambda X, names: pl.DataFrame(X, names)}
QUICK = {"max_epochs": 1, "hidden": (3,), "random_state": 0}


@pytest.fixture(autouse=True)
def _no_warnings():
    """Whatever warns unexpectedly is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CrowdWarning)
        yield


@pytest.fixture(params=sorted(KINDS))
def frame(request):
    """A function (names of the columns) -> data frame with the features in their order of the fit."""
    return lambda names=tuple(NAMES), rows=X: KINDS[request.param](rows[:, : len(names)], list(names))


def refusal(call, *arguments):
    """The sentence of an AlignmentError."""
    with pytest.raises(AlignmentError) as found:
        call(*arguments)
    assert "\n" not in str(found.value) and str(found.value).endswith("X[model.feature_names_in_].")
    return str(found.value)


def test_fit_learns_names_and_their_number(frame):
    """As ndarray of str and int; arrays have a number only, and the results are the same bits."""
    named, plain = Raykar().fit(frame(), VOTES), Raykar().fit(X, VOTES)
    assert isinstance(named.feature_names_in_, np.ndarray) and named.feature_names_in_.tolist() == NAMES
    assert named.feature_names_in_.dtype == object and type(named.n_features_in_) is int
    assert named.n_features_in_ == plain.n_features_in_ == 4 and not hasattr(plain, "feature_names_in_")
    assert np.array_equal(named.predict_proba(frame()), plain.predict_proba(X))
    assert np.array_equal(named.posterior_, plain.posterior_)


def test_images_have_no_columns():
    """`n_features_in_` is about tables alone."""
    images = np.random.default_rng(0).random((len(X), 1, 8, 8))
    model = CrowdLayer(backbone="convnet", max_epochs=1, random_state=0).fit(images, VOTES)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")


def test_another_order_is_refused(frame):
    """By every method that takes X; the sentence shows both orders, and its advice works."""
    model = Raykar().fit(frame(), VOTES)
    other = frame()[["width", "height", "depth", "mass"]]
    for call in (model.predict, model.predict_proba, lambda X: model.score(X, VOTES)):
        sentence = refusal(call, other)
    assert sentence == (
        "X has its columns in another order ('width', 'height', 'depth', 'mass') than in the fit of this Raykar "
        "('height', 'width', 'depth', 'mass'); pass the columns in the order of fit: X[model.feature_names_in_]."
    )
    assert np.array_equal(model.predict(other[model.feature_names_in_]), model.predict(frame()))
    learner = Triplet(**QUICK).fit(frame(), VOTES)
    assert "another order" in refusal(learner.transform, other)


def test_crowding_compares_names_everywhere(frame):
    """`augment`, `explain_worker` and `least_sure` take X too."""
    few = {"generator__epochs": 1, "discriminator__epochs": 1, "adversarial__epochs": 0}
    model = CrowdInG(**QUICK).set_params(**few).fit(frame(), VOTES)
    other = frame()[NAMES[::-1]]
    refusal(model.augment, other, VOTES)
    refusal(model.explain_worker, VOTES.worker_ids[0], other)
    refusal(model.least_sure, other, VOTES)
    model.explain_worker(VOTES.worker_ids[0], frame())


def test_missing_and_unexpected_columns_are_named(frame):
    """The first few of them; text columns are seen as unexpected before they are seen as text."""
    model = Raykar().fit(frame(), VOTES)
    assert "lacks columns ('mass') that" in refusal(model.predict, frame(NAMES[:3]))
    both = refusal(model.predict, frame([*NAMES[:3], "colour"]))
    assert "lacks columns ('mass')" in both and "unexpected columns ('colour')" in both
    assert "lacks" not in refusal(model.predict, frame([*NAMES, "colour"], np.column_stack([X, X])))
    wide = frame([f"c{j}" for j in range(40)], np.tile(X, 10))
    assert "'c4', ...)" in refusal(model.predict, wide) and "'c5'" not in refusal(model.predict, wide)
    text = pd.DataFrame(X, columns=NAMES).assign(note="x")
    assert "unexpected columns ('note')" in refusal(model.predict, text)


def test_wide_frames_show_the_first_difference():
    """Of a thousand columns, those that moved."""
    names = [f"c{j}" for j in range(1000)]
    many = np.tile(X, 250)
    model = TwoStage(classifier=LogisticRegression()).fit(pd.DataFrame(many, columns=names), VOTES)
    names[700], names[701] = names[701], names[700]
    assert "(..., 'c701', 'c700', 'c702'" in refusal(model.predict, pd.DataFrame(many, columns=names))


def test_names_on_one_side_warn(frame):
    """With a code, once per call, at the line of the caller; the number of columns is compared as before."""
    named, plain = Raykar().fit(frame(), VOTES), Raykar().fit(X, VOTES)
    for model, given, part in ((named, X, "no column names"), (plain, frame(), "has column names")):
        for call in (model.predict, model.predict_proba, lambda X, model=model: model.score(X, VOTES)):
            with pytest.warns(CrowdWarning, match=f"^feature_names: .*{part}") as found:
                call(given)
            assert len(found) == 1 and found[0].filename == __file__
    for model, given in ((named, X[:, :3]), (plain, frame(NAMES[:3]))):
        with pytest.raises(
            AlignmentError, match=r"A row of X has shape \(3,\), but this Raykar was fitted with \(4,\)"
        ):
            model.predict(given)


def test_names_that_are_no_strings():
    """None are strings: ignored, as an array; some are: refused by `fit`, by later calls and by `compare`."""
    numbered, mixed = pd.DataFrame(X), pd.DataFrame(X, columns=["a", "b", 3, 4])
    model = Raykar().fit(numbered, VOTES)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 4
    model.predict(numbered), model.predict(X)
    for call in (
        lambda: Raykar().fit(mixed, VOTES),
        lambda: model.predict(mixed),
        lambda: compare(["raykar", "cpc"], VOTES, mixed, n_folds=2),
    ):
        with pytest.raises(AlignmentError, match=r"3 is int\); make all of them strings"):
            call()
    assert feature_names_of(pd.DataFrame(X[:, :2], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))) is None
    assert feature_names_of(X) is None and feature_names_of(pd.Series([1.0], name="a")) is None


def test_second_fit_replaces_names(frame):
    """Or removes them; `clone` copies parameters alone."""
    model = Raykar().fit(frame(), VOTES)
    assert model.fit(frame(["a", "b", "c", "d"]), VOTES).feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert not hasattr(clone(model), "feature_names_in_") and not hasattr(clone(model), "n_features_in_")
    assert not hasattr(model.fit(X, VOTES), "feature_names_in_")
    model.predict(X)


@pytest.mark.parametrize("make", [Raykar, lambda: CrowdLayer(**QUICK), lambda: Triplet(**QUICK)])
def test_copies_keep_names(make, frame, tmp_path):
    """Pickles and folders; a folder of a model without names has none."""
    model = make().fit(frame(), VOTES)
    model.save(tmp_path / "named")
    for copy in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "named")):
        assert copy.feature_names_in_.tolist() == NAMES and copy.n_features_in_ == 4
        assert copy.feature_names_in_.dtype == object and type(copy.n_features_in_) is int
        call = copy.predict if hasattr(copy, "predict") else copy.transform
        call(frame())
        refusal(call, frame()[NAMES[::-1]])
    make().fit(X, VOTES).save(tmp_path / "plain")
    plain = load_model(tmp_path / "plain")
    assert not hasattr(plain, "feature_names_in_") and plain.n_features_in_ == 4


def test_saved_names_are_validated(tmp_path):
    """One text for each column, or none at all."""
    Raykar().fit(pd.DataFrame(X, columns=NAMES), VOTES).save(tmp_path)
    said = json.loads((tmp_path / "model.json").read_text())
    assert said["feature_names"] == NAMES
    del said["checksum"]
    tensors = (tmp_path / "model.safetensors").read_bytes()
    for bad in (NAMES[:3], [*NAMES[:3], 4], "abcd", {"a": 1}, 4, []):
        changed = said | {"feature_names": bad}
        (tmp_path / "model.json").write_text(json.dumps(changed | {"checksum": checksum(changed, tensors)}))
        with pytest.raises(ParameterError, match="its feature names are not one text for each column"):
            load_model(tmp_path)


def test_pipelines_and_searches(frame):
    """Frames that are sliced keep their names; a scaler returns arrays to `fit` and to `predict`: no warning."""
    pipeline = make_pipeline(StandardScaler(), Raykar()).fit(frame(), VOTES)
    pipeline.predict(frame()), pipeline.score(frame(), VOTES)
    assert not hasattr(pipeline[-1], "feature_names_in_") and pipeline.feature_names_in_.tolist() == NAMES
    search = GridSearchCV(Raykar(), {"max_iter": [2, 3]}, cv=KFold(2), error_score="raise").fit(frame(), VOTES)
    assert search.feature_names_in_.tolist() == NAMES and search.n_features_in_ == 4
    refusal(search.predict, frame()[NAMES[::-1]])
    first = make_pipeline(Triplet(**QUICK), Raykar())
    learners = GridSearchCV(first, {"raykar__max_iter": [2]}, cv=KFold(2), error_score="raise").fit(frame(), VOTES)
    assert learners.best_estimator_.feature_names_in_.tolist() == NAMES


def test_scalers_that_return_frames():
    """With `set_output`, the names reach the method."""
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), Raykar())
    pipeline.fit(pd.DataFrame(X, columns=NAMES), VOTES).predict(pd.DataFrame(X, columns=NAMES))
    assert pipeline[-1].feature_names_in_.tolist() == NAMES


def test_compare_keeps_names(frame):
    """The same scores as of the array; steps that select columns by name work too."""
    methods = ["raykar", ("cpc", {})]
    assert np.array_equal(
        compare(methods, VOTES, frame(), n_folds=2).scores, compare(methods, VOTES, X, n_folds=2).scores
    )
    chosen = make_pipeline(make_column_transformer((StandardScaler(), ["mass", "width"])), Raykar())
    assert np.isfinite(compare(["raykar", chosen], VOTES, frame(), n_folds=2).scores).all()
