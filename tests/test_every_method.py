"""Every registered method keeps every promise of `manyhands.testing`."""

import inspect

import pytest

from manyhands import registry, testing


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in testing.aggregator_checks()])
@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_method_keeps_its_promise(method, check):
    """The promise is the first line of the check's docstring."""
    check(registry.create(method))


# Six trainings each, compared by accuracy: of these, `make test` takes one classifier by EM and one network.
SLOW = {"perfect_workers_are_training_on_the_truth", "training_draws_classes_together"}
QUICK = {"raykar", "crowd-layer", "triplet"}
# One class with four fillers, of which `make test` takes one.
FILLED = {"crowd-layer-self", "crowd-layer-graph", "crowd-layer-gan"}


def promise(method, name, check):
    """A case of a test; marked where it takes seconds."""
    is_slow = method in FILLED or (name in SLOW and method not in QUICK)
    marks = pytest.mark.slow if is_slow else ()
    return pytest.param(method, check, id=f"{method}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("method", "check"),
    [promise(method, *named) for method in registry.names("classifier") for named in testing.classifier_checks()],
)
def test_classifier_keeps_its_promise(method, check, one_thread):
    """The promise is the first line of the check's docstring."""
    check(registry.create(method))


# What all learners promise, a representation that is a classifier too has shown as such.
SHOWN = {method: list(testing.classifier_checks()) for method in registry.names("classifier")}


@pytest.mark.parametrize(
    ("method", "check"),
    [
        promise(method, *named)
        for method in registry.names("representation")
        for named in testing.representation_checks()
        if named not in SHOWN.get(method, [])
    ],
)
def test_representation_keeps_its_promise(method, check, one_thread):
    """The promise is the first line of the check's docstring."""
    check(registry.create(method))


def test_no_check_is_left_out():
    """Every `check_` function of the package is handed out, and each has a sentence."""
    learners = (testing.learner_promises, testing.training_promises, testing.learner_estimator)
    families = {
        testing.aggregator_checks: (testing.promises, testing.answers, testing.estimator),
        testing.classifier_checks: (*learners, testing.classifier_promises, testing.classifier_estimator),
        testing.representation_checks: (*learners, testing.representation_promises, testing.representation_estimator),
    }
    for checks, modules in families.items():
        handed_out = {function.__name__ for _, function in checks()}
        written = {
            name for m in modules for name, _ in inspect.getmembers(m, inspect.isfunction) if name.startswith("check_")
        }
        assert handed_out == written and len(handed_out) > 20
        assert all(function.__doc__.strip().split("\n")[0].endswith(".") for _, function in checks())
