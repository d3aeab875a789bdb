"""Every public name has a numpydoc docstring that agrees with its signature."""

import inspect
from importlib import import_module

import manyhands
from docstrings import class_problems, function_problems, method_problems, parameter_problems, use_problems
from manyhands.estimator import BaseEstimator

PACKAGES = (  # with __all__; those of `spark` need pyspark, and `report` exports what panels are made of
    "aggregation",
    "classifiers",
    "comparison",
    "datasets",
    "io",
    "metrics",
    "representation",
    "reproduce",
    "scorecards",
    "simulate",
    "testing",
    "trust",
)
MODULES = ("exceptions", "registry")  # without __all__: their own public functions and classes


def public_objects():
    """Every public function and class, with the name under which it is found; each object once."""
    places = [("manyhands", manyhands.__all__)]
    for name in PACKAGES:
        places.append((f"manyhands.{name}", import_module(f"manyhands.{name}").__all__))
    for name in MODULES:
        module = import_module(f"manyhands.{name}")
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
        places.append((module.__name__, [n for n in own if not n.startswith("_")]))
    objects = {}
    for place, names in places:
        for name in names:
            value = getattr(import_module(place), name)
            if inspect.isfunction(value) or inspect.isclass(value):
                objects.setdefault(id(value), (f"{place}.{name}", value))
    return list(objects.values())


def problems_of(value):
    """The differences between a public object and its docstring, except for what only a fit can show."""
    if inspect.isfunction(value):
        return function_problems(value)
    if inspect.isabstract(value):  # the base of a family of methods
        return method_problems(value)
    if issubclass(value, BaseEstimator):
        return [*parameter_problems(value), *use_problems(value), *method_problems(value)]
    return class_problems(value)


def test_public_names_are_documented():
    """One list of every difference between a signature and its docstring, over the whole public interface."""
    objects = public_objects()
    assert len(objects) > 120, "the walk over public names finds too few"
    problems = [(value.__module__, problem) for _, value in objects for problem in problems_of(value)]
    offenders = {problem: module for module, problem in reversed(problems)}  # what is inherited, once
    assert not offenders, f"{len(offenders)} problems:\n" + "\n".join(
        f"{module}: {problem}" for problem, module in offenders.items()
    )
