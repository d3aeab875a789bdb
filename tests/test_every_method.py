"""Every registered method passes every check of `manyhands.testing`, and its docstring says what it is."""

import inspect

import pytest

from docstrings import check_docstring
from manyhands import registry, testing


@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in testing.aggregator_checks()])
@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_aggregator_passes_check(method, check):
    """The requirement is the first line of the docstring of the check."""
    check(registry.create(method))


KINDS = ("aggregator", "classifier", "representation")
# Six trainings each, compared by accuracy: `make test` runs them for one EM classifier, one network and one embedding.
SLOW = {"perfect_workers_equal_supervised_training", "training_separates_classes"}
QUICK = {"raykar", "crowd-layer", "triplet"}
# One class with four imputers, of which `make test` runs one.
IMPUTED = {"crowd-layer-self", "crowd-layer-graph", "crowd-layer-gan"}
# Further names of a class, such as `iced-plus` of ICED: `make test` runs the checks for its first name.
FIRST = {registry.get(name): name for name in reversed(registry.names())}
VARIANTS = {name for name in registry.names() if FIRST[registry.get(name)] != name}


# The numbers of epochs of the other steps are for the imputer "generator", whose checks see that they are read.
NOT_READ = {(method, "every_parameter_is_read") for method in IMPUTED}


def case(method, name, check):
    """A test case; marked as slow where it takes seconds."""
    is_slow = method in IMPUTED | VARIANTS or (name in SLOW and method not in QUICK)
    marks = pytest.mark.slow if is_slow else ()
    return pytest.param(method, check, id=f"{method}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("method", "check"),
    [
        case(method, *named)
        for method in registry.names("classifier")
        for named in testing.classifier_checks()
        if (method, named[0]) not in NOT_READ
    ],
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


@pytest.mark.parametrize("method", sorted({n for kind in KINDS for n in registry.names(kind)} - IMPUTED))
def test_docstring(method, one_thread):
    """The parameters of a class, and the attributes that it and its bases set, have an entry with type and meaning."""
    check_docstring(registry.create(method))


def test_no_check_is_left_out():
    """Every `check_` function of the package is in a list, and each has a summary line."""
    families = (testing.aggregator_checks, testing.classifier_checks, testing.representation_checks)
    listed = {function for checks in families for _, function in checks()}
    written = {
        function
        for module in (testing.aggregators, testing.learners)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("check_") and function.__module__ == module.__name__
    }
    assert listed == written
    assert all(len(list(checks())) > 20 for checks in families)
    assert all(function.__doc__.strip().split("\n")[0].endswith(".") for function in listed)
