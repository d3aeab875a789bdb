"""Every registered method passes every check of `manyhands.testing`."""

import inspect

import pytest

from manyhands import registry, testing


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in testing.aggregator_checks()])
@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_aggregator_passes_check(method, check):
    """The requirement is the first line of the docstring of the check."""
    check(registry.create(method))


# Six trainings each, compared by accuracy: `make test` runs them for one EM classifier, one network and one embedding.
SLOW = {"perfect_workers_equal_supervised_training", "training_separates_classes"}
QUICK = {"raykar", "crowd-layer", "triplet"}
# One class with four imputers, of which `make test` runs one.
IMPUTED = {"crowd-layer-self", "crowd-layer-graph", "crowd-layer-gan"}


def case(method, name, check):
    """A test case; marked as slow where it takes seconds."""
    is_slow = method in IMPUTED or (name in SLOW and method not in QUICK)
    marks = pytest.mark.slow if is_slow else ()
    return pytest.param(method, check, id=f"{method}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("method", "check"),
    [case(method, *named) for method in registry.names("classifier") for named in testing.classifier_checks()],
)
def test_classifier_passes_check(method, check, one_thread):
    """The requirement is the first line of the docstring of the check."""
    check(registry.create(method))


# Checks that a representation learner has passed as a classifier are not repeated.
DONE = {method: list(testing.classifier_checks()) for method in registry.names("classifier")}


@pytest.mark.parametrize(
    ("method", "check"),
    [
        case(method, *named)
        for method in registry.names("representation")
        for named in testing.representation_checks()
        if named not in DONE.get(method, [])
    ],
)
def test_representation_passes_check(method, check, one_thread):
    """The requirement is the first line of the docstring of the check."""
    check(registry.create(method))


def test_no_check_is_left_out():
    """Every `check_` function of the package is in the lists, and each has a summary line."""
    learners = (testing.learner_invariances, testing.training_invariances, testing.learner_estimator_checks)
    families = {
        testing.aggregator_checks: (
            testing.aggregator_invariances,
            testing.aggregator_results,
            testing.estimator_checks,
        ),
        testing.classifier_checks: (
            *learners,
            testing.classifier_invariances,
            testing.classifier_estimator_checks,
        ),
        testing.representation_checks: (
            *learners,
            testing.representation_invariances,
            testing.representation_estimator_checks,
        ),
    }
    scores = {name for name in vars(testing.score_checks) if name.startswith("check_scores")}  # one of each family
    scores |= {name for name in vars(testing.item_order_checks) if name.startswith("check_item_order")}
    of_other_things = {"check_docstring", "check_function_docstring"}  # not checks of an estimator
    for checks, modules in families.items():
        listed = {function.__name__ for _, function in checks()}
        written = {
            name
            for module in (*modules, testing.docstring_checks)
            for name, function in inspect.getmembers(module, inspect.isfunction)
            if name.startswith("check_") and function.__module__ == module.__name__ and name not in of_other_things
        }
        written |= listed & scores
        assert listed == written and len(listed) > 20
        assert all(function.__doc__.strip().split("\n")[0].endswith(".") for _, function in checks())
