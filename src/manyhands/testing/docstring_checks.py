"""Checks that signatures, constraints and numpydoc docstrings agree: names, order, types, defaults, attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyhands.estimator import BaseEstimator
from manyhands.testing.docstring_problems import (
    attribute_problems,
    function_problems,
    parameter_problems,
    use_problems,
)


def check_docstring(estimator_class: type[BaseEstimator]) -> None:
    """Signature, constraints, docstring and fitted attributes of an estimator class agree.

    Runs :func:`check_every_parameter_is_documented`, :func:`check_use_is_documented` and
    :func:`check_every_attribute_is_documented` on an estimator with default parameters, and reports all differences
    at once.

    Parameters
    ----------
    estimator_class : type
        A class of aggregators, classifiers or representation learners.

    Raises
    ------
    AssertionError
        If anything is missing; the message has one line per problem, with class and parameter.

    Examples
    --------
    >>> from manyhands import MajorityVote
    >>> check_docstring(MajorityVote)
    """
    problems = [*parameter_problems(estimator_class), *use_problems(estimator_class)]
    _report([*problems, *attribute_problems(estimator_class())])


def check_every_parameter_is_documented(method: BaseEstimator) -> None:
    """Constructor signature, constraints and docstring have the same parameters, types and defaults.

    Parameters
    ----------
    method : BaseEstimator
        An estimator; its class is examined.
    """
    _report(parameter_problems(type(method)))


def check_use_is_documented(method: BaseEstimator) -> None:
    """The class docstring has a one-line summary and examples, and the docstring of `fit` has its parameters.

    Parameters
    ----------
    method : BaseEstimator
        An estimator; its class is examined.
    """
    _report(use_problems(type(method)))


def check_every_attribute_is_documented(method: BaseEstimator) -> None:
    """Every attribute ending in `_` that `fit` sets, inherited or not, has an entry under `Attributes`.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted estimator; a copy is fitted to a small simulated crowd.
    """
    _report(attribute_problems(method))


def check_function_docstring(function: Callable[..., Any]) -> None:
    """Every parameter of a function has an entry with type and default, and what it returns has a section.

    Parameters
    ----------
    function : callable
        A function or method.

    Raises
    ------
    AssertionError
        If anything is missing; the message has one line per problem.

    Examples
    --------
    >>> from manyhands.metrics import fleiss_kappa
    >>> check_function_docstring(fleiss_kappa)
    """
    _report(function_problems(function))


def _report(problems: list[str]) -> None:
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems)
