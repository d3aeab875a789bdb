"""A model as a folder: which scikit-learn classifiers come back to the last bit, and which refuse."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from manyhands import Annotations, DawidSkene, load_model
from manyhands.classifiers import TwoStage
from manyhands.exceptions import ParameterError
from manyhands.persistence import checksum
from manyhands.persistence_sklearn import from_tree, to_tree
from manyhands.testing.crowds import feature_crowd

CLASSIFIERS = {
    "logistic": LogisticRegression(C=0.5, class_weight={0: 1.0, 1: 2.0, 2: 1.5}),
    "logistic-cv": LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, max_iter=300, use_legacy_attributes=False),
    "sgd": SGDClassifier(loss="log_loss", random_state=0),
    "sgd-averaged": SGDClassifier(loss="log_loss", average=True, early_stopping=True, random_state=0),
    "gaussian-nb": GaussianNB(priors=np.array([0.2, 0.3, 0.5])),
    "multinomial-nb": MultinomialNB(),
    "complement-nb": ComplementNB(norm=True),
    "bernoulli-nb": BernoulliNB(binarize=1.0),
    "lda": LinearDiscriminantAnalysis(),
    "lda-lsqr": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "neighbours": KNeighborsClassifier(4, weights="distance"),
    "neighbours-ball": KNeighborsClassifier(algorithm="ball_tree", metric="minkowski", p=3),
    "neighbours-brute": KNeighborsClassifier(algorithm="brute", metric="cosine"),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "stump": DecisionTreeClassifier(max_leaf_nodes=4, random_state=0),
    "forest": RandomForestClassifier(n_estimators=4, oob_score=False, random_state=np.random.RandomState(0)),
    "extra-trees": ExtraTreesClassifier(n_estimators=4, bootstrap=True, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=4, random_state=0),
    "boosting-zero": GradientBoostingClassifier(n_estimators=3, init="zero", subsample=0.7, random_state=0),
    "hist-boosting": HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3, random_state=0),
    "mlp": MLPClassifier((7, 5), max_iter=4, random_state=0),
    "mlp-lbfgs": MLPClassifier((5,), solver="lbfgs", max_iter=9, random_state=0),
    "svc": SVC(probability=True, random_state=0),
    "svc-poly": SVC(kernel="poly", degree=2, probability=True, random_state=0),
    "calibrated": CalibratedClassifierCV(cv=StratifiedKFold(3, shuffle=True, random_state=0)),
    "calibrated-isotonic": CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3),
    "calibrated-svc": CalibratedClassifierCV(SVC(), ensemble=False, cv=3),
    "scaled": make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    "whitened": make_pipeline(MinMaxScaler(), PCA(2, whiten=True), RandomForestClassifier(3, random_state=0)),
    "nested": make_pipeline(
        make_pipeline(MaxAbsScaler(), "passthrough", Normalizer()), TruncatedSVD(2), SVC(probability=True)
    ),
}
WORK_WITH_SPARSE = ["logistic", "sgd", "complement-nb", "neighbours-brute", "forest", "boosting", "svc", "svc-poly"]


def crowd(n_classes=3):
    X, votes, _ = feature_crowd(n_classes)
    return X - X.min(axis=0), votes  # counts, for the sake of the naive ones


def fitted(classifier, X, votes, **others):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn: few rows, few iterations
        return TwoStage(DawidSkene(smoothing=0.3), classifier, **others).fit(X, votes)


def again(model, folder):
    model.save(folder)
    return load_model(folder)


def quiet_proba(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.predict_proba(X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_is_loaded_predicts_to_the_last_bit(name, n_classes, tmp_path):
    """And scores the same, can be cloned, and shows the parameters of what it wraps."""
    X, votes = crowd(n_classes)
    classifier = clone(CLASSIFIERS[name])
    if n_classes == 2 and name in ("logistic", "gaussian-nb"):
        classifier.set_params(**{"class_weight" if name == "logistic" else "priors": None})
    model = fitted(classifier, X, votes)
    found = again(model, tmp_path / "model")
    np.testing.assert_array_equal(quiet_proba(found, X), quiet_proba(model, X))
    assert type(found.module_) is type(model.module_)
    random = {n for n in classifier.get_params() if n.rpartition("__")[2] == "random_state" and name == "forest"}
    shown = {n: repr(v) for n, v in found.get_params().items() if n.removeprefix("classifier__") not in random}
    wanted = {n: repr(v) for n, v in model.get_params().items() if n.removeprefix("classifier__") not in random}
    if random:  # a generator moved on during the fit
        assert found.classifier.random_state is None
        del shown["classifier"], wanted["classifier"]
    assert shown == wanted
    assert repr(clone(found)) == repr(found)


@pytest.mark.parametrize("name", WORK_WITH_SPARSE)
def test_trained_on_sparse_rows(name, tmp_path):
    """As from the words of a text."""
    X, votes = crowd()
    rows = sparse.csr_matrix(np.where(X > 1, X, 0))
    model = fitted(clone(CLASSIFIERS[name]), rows, votes)
    np.testing.assert_array_equal(quiet_proba(again(model, tmp_path / "m"), rows), quiet_proba(model, rows))


@pytest.mark.parametrize("name", ["tree", "boosting", "hist-boosting", "mlp", "scaled"])
def test_soft_labels_and_short_floats(name, tmp_path):
    """Rows of 32 bits stay such in what is remembered."""
    X, votes = crowd()
    model = fitted(clone(CLASSIFIERS[name]), X.astype(np.float32), votes, soft=name not in ("mlp", "scaled"))
    X = X.astype(np.float32)
    np.testing.assert_array_equal(quiet_proba(again(model, tmp_path / "m"), X), quiet_proba(model, X))


def test_order_and_width_of_numbers_are_kept():
    """The last bits of a product depend on both."""
    X, _ = crowd()
    model = PCA(2).fit(X.astype(np.float32))
    model.components_ = np.asfortranarray(model.components_)
    found = from_tree(*to_tree(model, "module"))
    assert found.components_.flags.f_contiguous and not found.components_.flags.c_contiguous
    assert type(model.noise_variance_) is type(found.noise_variance_) is np.float32


@pytest.mark.parametrize("second", ["logistic-regression", RandomForestClassifier(3)])
def test_a_single_class_is_saved(second, tmp_path):
    """What stands in for the classifier then is saved, and the classifier comes back as a parameter."""
    votes = Annotations.from_matrix([[1, 1], [1, 1]], classes=[0, 1])
    model = fitted(second, [[0.0], [1.0]], votes)
    found = again(model, tmp_path / "m")
    assert type(found.module_).__name__ == "DummyClassifier" and repr(found.classifier) == repr(second)
    np.testing.assert_array_equal(found.predict_proba([[5.0]]), model.predict_proba([[5.0]]))


class OwnForest(RandomForestClassifier):
    """A class that no other process knows."""


REFUSED = {
    "A AdaBoostClassifier cannot be saved without a pickle; networks and": AdaBoostClassifier(n_estimators=2),
    "A OwnForest cannot be saved without a pickle": OwnForest(2),
    "A FunctionTransformer cannot be saved": make_pipeline(FunctionTransformer(), GaussianNB()),
    r"KNeighborsClassifier\.weights is a function, which cannot": KNeighborsClassifier(weights=lambda d: 1 / (1 + d)),
    "with an estimator as init": GradientBoostingClassifier(n_estimators=2, init=LogisticRegression()),
    "with categorical features cannot be saved": HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_any_other_refuses_and_nothing_is_written(sentence, tmp_path):
    """In one sentence."""
    X, votes = crowd()
    model = fitted(REFUSED[sentence], np.round(X), votes)
    with pytest.raises(ParameterError, match=sentence):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_an_aggregator_of_ones_own_refuses(tmp_path):
    """No other process could make it."""

    class Own(DawidSkene):
        pass

    X, votes = crowd()
    model = TwoStage(Own(), GaussianNB()).fit(X, votes)
    with pytest.raises(ParameterError, match="The aggregator Own is not a registered method, so it cannot be saved"):
        model.save(tmp_path / "m")


@pytest.mark.parametrize("name", ["scaled", "forest"])
def test_another_version_reads_documented_attributes_only(name, tmp_path):
    """A forest is compiled state; a scaler and a regression are not."""
    X, votes = crowd()
    model = fitted(clone(CLASSIFIERS[name]), X, votes)
    model.save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    said = json.loads(path.read_text())
    said["module"]["scikit_learn"] = said["parameters"]["classifier"]["scikit_learn"] = "1.2"
    del said["checksum"]
    tensors = (tmp_path / "m" / "model.safetensors").read_bytes()
    path.write_text(json.dumps(said | {"checksum": checksum(said, tensors)}))
    if name == "scaled":
        np.testing.assert_array_equal(load_model(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    else:
        with pytest.raises(ParameterError, match=r"scikit-learn 1\.2 wrote its RandomForestClassifier, and this is"):
            load_model(tmp_path / "m")


def test_a_fresh_process_predicts_the_same(tmp_path):
    """Where nothing of scikit-learn was imported before."""
    X, votes = crowd()
    np.save(tmp_path / "X.npy", X)
    names = ["nested", "boosting", "hist-boosting", "calibrated-isotonic"]
    models = [fitted(clone(CLASSIFIERS[name]), X, votes) for name in names]
    for name, model in zip(names, models):
        model.save(tmp_path / name)
    program = (
        "import sys, numpy as np, manyhands, warnings; from pathlib import Path; warnings.simplefilter('ignore')\n"
        "folder = Path(sys.argv[1]); X = np.load(folder / 'X.npy')\n"
        "for name in sys.argv[2:]: np.save(folder / name / 'p', manyhands.load_model(folder / name).predict_proba(X))"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path), *names], check=True)
    for name, model in zip(names, models):
        np.testing.assert_array_equal(np.load(tmp_path / name / "p.npy"), quiet_proba(model, X))


def test_a_changed_file_is_noticed(tmp_path):
    """Other class names would be predicted without a word."""
    X, votes = crowd()
    fitted(GaussianNB(), X, votes).save(tmp_path)
    said = json.loads((tmp_path / "model.json").read_text())
    said["classes"]["values"] = said["classes"]["values"][::-1]
    (tmp_path / "model.json").write_text(json.dumps(said))
    with pytest.raises(ParameterError, match="was changed since it was saved"):
        load_model(tmp_path)
