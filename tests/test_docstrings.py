"""Every public name has a numpydoc docstring that agrees with its signature."""

import inspect
from importlib import import_module

import manyhands
from manyhands.estimator import BaseEstimator
from manyhands.testing.docstring_problems import (
    class_problems,
    function_problems,
    method_problems,
    parameter_problems,
    use_problems,
)

PACKAGES = ("metrics", "simulate", "datasets", "scorecards", "io", "model_selection", "testing", "persistence", "trust")
MODULES = ("registry", "exceptions")  # without __all__: their own public functions and classes


def public_objects():
    """Every public function and class, with the name under which it is found; each object once."""
    places = [("manyhands", manyhands.__all__)]
    for name in PACKAGES:
        places.append((f"manyhands.{name}", getattr(import_module(f"manyhands.{name}"), "__all__", [])))
    for name in MODULES:
        module = import_module(f"manyhands.{name}")
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
        places.append((module.__name__, [n for n in own if not n.startswith("_")]))
    found = {}
    for place, names in places:
        for name in names:
            value = getattr(import_module(place), name)
            if inspect.isfunction(value) or inspect.isclass(value):
                found.setdefault(id(value), (f"{place}.{name}", value))
    return list(found.values())


def problems_of(value):
    """The differences between a public object and its docstring, except for what only a fit can show."""
    if inspect.isfunction(value):
        return function_problems(value)
    if issubclass(value, BaseEstimator):
        return [*parameter_problems(value), *use_problems(value), *method_problems(value)]
    return class_problems(value)


def test_public_names_are_documented():
    """One list of every difference between a signature and its docstring, over the whole public interface."""
    objects = public_objects()
    assert len(objects) > 120, "the walk over public names finds too few"
    found = [(value.__module__, problem) for _, value in objects for problem in problems_of(value)]
    offenders = {problem: module for module, problem in reversed(found)}  # what is inherited, once
    assert not offenders, f"{len(offenders)} problems:\n" + "\n".join(
        f"{module}: {problem}" for problem, module in offenders.items()
    )
