"""scikit-learn's own checks of estimators, on methods that are given an ordinary target as the labels of one worker.

The numbers of checks that pass may rise and not fall. Those that fail are listed with the reason.
"""

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import manyhands as mh
from manyhands.classifiers import DifficultyEM, Raykar, TwoStage


class Target:
    """`fit` and `score` take `y`, which scikit-learn's checks give, as the labels of one worker."""

    def fit(self, X, y=None, gold=None, *, ids=None, verbose=1):
        return super().fit(X, as_labels(y), gold, ids=ids, verbose=verbose)

    def score(self, X, y, *, ids=None):
        return super().score(X, as_labels(y), ids=ids)


def as_labels(y):
    """Annotations of one worker; items are rows."""
    if y is None or isinstance(y, mh.Annotations):
        return y
    y = np.asarray(y).ravel()
    return mh.Annotations.from_triples(range(len(y)), ["one"] * len(y), y.tolist(), item_ids=range(len(y)))


class TargetRaykar(Target, Raykar):
    """EM with logistic regression."""


class TargetTwoStage(Target, TwoStage):
    """A vote, then logistic regression."""


class TargetDifficultyEM(Target, DifficultyEM):
    """EM with the difficulty of items."""


WORDING = "ends in our sentence, which says the same in other words"
KNOWN = {
    "check_n_features_in_after_fitting": WORDING,
    "check_complex_data": WORDING,
    "check_estimators_empty_data_messages": WORDING,
    "check_fit2d_predict1d": WORDING,
    "check_requires_y_none": WORDING,
    "check_dtype_object": "numbers in an array of objects are refused: they are usually text that was read wrongly",
}
METHODS = {
    "raykar": TargetRaykar(),
    "two-stage": TargetTwoStage("majority-vote", "logistic-regression"),
    "difficulty-em": TargetDifficultyEM(),
}
LEAST = {"raykar": 35, "two-stage": 35, "difficulty-em": 35}  # checks that pass; with scikit-learn 1.6 there are 36


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in METHODS if name != "raykar"]


@pytest.mark.parametrize("name", ["raykar", *SLOW])
def test_methods_with_features_pass_the_checks_that_apply(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one worker per item: notes on what that does not allow to conclude
        results = check_estimator(METHODS[name], on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed.keys() <= KNOWN.keys(), failed
    assert sum(result["status"] == "passed" for result in results) >= LEAST[name]


# Checks that need no data: `fit` of an aggregator takes annotations in the place of X, and networks train for longer.
WITHOUT_DATA = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
)


def test_every_method_passes_the_checks_without_data():
    """Of each class of the registry; in all, a number that may not fall."""
    pytest.importorskip("torch", reason="torch is not installed: networks are among the classes")
    import sklearn.utils.estimator_checks as checks

    passed, failed = 0, {}
    classes = {mh.registry.get(name) for name in mh.registry.names()}
    for kind in sorted(classes, key=lambda kind: kind.__name__):
        for name in WITHOUT_DATA:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    getattr(checks, name)(kind.__name__, mh.registry.create(mh.registry.name_of(kind)))
                passed += 1
            except Exception as error:
                failed[kind.__name__, name] = error
    grouped = {
        "CrowdInG",
        "ICED",
        "NeuCrowd",
    }  # their defaults are groups of options, unknown to scikit-learn
    assert failed.keys() <= {(name, "check_parameters_default_constructible") for name in grouped}, failed
    assert passed >= 387  # ten checks of 39 classes, less three
