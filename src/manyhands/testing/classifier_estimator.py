"""What makes a classifier an estimator: parameters, copies, files, searches and pipelines."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from manyhands.classifiers.base import CrowdClassifier
from manyhands.exceptions import ParameterError
from manyhands.testing.classifier_promises import learn, quick
from manyhands.testing.compare import assert_equal, bad_values, error_of, other_values, quietly, results_of
from manyhands.testing.crowds import feature_crowd
from manyhands.testing.estimator import documented_parameters


def check_clone_and_repr_round_trip(classifier: CrowdClassifier) -> None:
    """scikit-learn can clone it, `repr` shows how to make it again, and `set_params` refuses what is unknown."""
    from sklearn.base import clone

    model: Any = classifier
    for original in (model, *(quick(model, **{name: value}) for name, value in other_values(model).items())):
        assert repr(clone(original).get_params()) == repr(original.get_params()), f"clone changes {original}"
        again = eval(repr(original), {type(original).__name__: type(original)})
        assert repr(again.get_params()) == repr(original.get_params()), f"{original!r} does not make itself again"
    X, votes, _ = feature_crowd(2)
    assert not results_of(clone(learn(classifier, X, votes))), "a clone keeps results"
    error_of(lambda: quick(classifier).set_params(no_such_parameter=1), ParameterError)


def check_copies_predict_the_same(classifier: CrowdClassifier) -> None:
    """Pickled and read again, or saved as a folder and loaded, it predicts and scores to the last bit the same."""
    from manyhands.classifiers.saving import load_model

    X, votes, _ = feature_crowd(3)
    fitted = learn(classifier, X, votes)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        for again in (pickle.loads(pickle.dumps(fitted)), load_model(Path(folder) / "model")):
            assert_equal(again.predict_proba(X), fitted.predict_proba(X), "a copy predicts otherwise")
            assert again.score(X, votes) == fitted.score(X, votes), "a copy scores otherwise"
            assert_equal(again.predict(X), fitted.predict(X), "a copy speaks of other classes")
            for name in ("posterior_", "worker_accuracy_", "worker_ids_", "history_", "notes_"):
                assert_equal(getattr(again, name), getattr(fitted, name), f"a copy has another {name}")


def check_a_second_fit_forgets_the_first(classifier: CrowdClassifier) -> None:
    """Fitting again gives what a fresh classifier gives, and nothing is left of the first fit."""
    first, second = feature_crowd(3), feature_crowd(2, n_features=3, seed=1)
    twice = learn(classifier, *first[:2])
    twice.left_over_ = "a result that only the first fit had"
    quietly(lambda: twice.fit(*second[:2]))
    once = learn(classifier, *second[:2])
    assert results_of(once).keys() == results_of(twice).keys(), "something is left of the first fit"
    assert_equal(twice.predict_proba(second[0]), once.predict_proba(second[0]), "predictions remember the first fit")


def check_search_and_pipeline(classifier: CrowdClassifier) -> None:
    """`GridSearchCV` with `cv=KFold` and a `Pipeline` take it, with no truth in sight."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, votes, _ = feature_crowd(2)
    pipeline = make_pipeline(StandardScaler(), quick(classifier))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{step}__random_state": [0, 1]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.predict(X)) <= set(votes.classes.tolist())


def check_every_parameter_is_documented(classifier: CrowdClassifier) -> None:
    """Every constructor parameter stands in the class docstring under Parameters, and no other does."""
    documented, parameters = documented_parameters(type(classifier)), set(classifier.get_params(deep=False))
    assert documented == parameters, f"documented: {sorted(documented)}; in the signature: {sorted(parameters)}"


def check_every_parameter_is_validated(classifier: CrowdClassifier) -> None:
    """Every constructor parameter has a constraint, and `fit` refuses what the constraint forbids, by its name."""
    constraints = classifier._constraints
    assert set(constraints) == set(classifier.get_params(deep=False)), "constraints and constructor parameters differ"
    X, votes, _ = feature_crowd(2)
    for name, constraint in constraints.items():
        for bad in bad_values(constraint):
            broken = quick(classifier, **{name: bad})
            error = error_of(lambda: broken.fit(X, votes), ParameterError, f"{name}={bad!r}")  # noqa: B023
            assert repr(name) in str(error), f"the message does not name {name!r}: {error}"
            assert not results_of(broken), f"{name}={bad!r} was refused only after results were stored"  # type: ignore[arg-type]


def check_every_parameter_is_read(classifier: CrowdClassifier) -> None:
    """`fit` reads every constructor parameter, beyond the check that its value is legal."""
    read: set[str] = set()

    class Spy(type(classifier)):  # type: ignore[misc]
        def _check_parameters(self) -> None:
            super()._check_parameters()
            read.clear()

        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    X, votes, _ = feature_crowd(2)
    spy = Spy(**quick(classifier).get_params(deep=False))
    quietly(lambda: spy.fit(X, votes))
    unread = set(classifier.get_params(deep=False)) - read
    assert not unread, f"fit never reads {sorted(unread)}"
