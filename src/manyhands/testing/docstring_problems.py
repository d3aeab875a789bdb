"""Differences between a signature, its constraints and its numpydoc docstring, as a list of sentences."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from manyhands.estimator import BaseEstimator
from manyhands.options import OptionGroup, Options
from manyhands.testing.documented_types import is_default, missing_from_type
from manyhands.testing.numpydoc import Entry, parse_docstring
from manyhands.validation import Constraint

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameter_problems(cls: type[BaseEstimator] | type[OptionGroup]) -> list[str]:
    """Compare the constructor of a class with its constraints and its docstring.

    Parameters
    ----------
    cls : type
        A class of estimators or a group of options; the groups among the parameters of an estimator are compared too.

    Returns
    -------
    list of str
        One sentence per difference, which begins with the names of class and parameter; empty if there is none.
    """
    signature = [*inspect.signature(cls).parameters.values()]
    found = [f"{cls.__name__}: the constructor hides parameters in {p}" for p in signature if p.kind in _VARIADIC]
    named = [p for p in signature if p.kind not in _VARIADIC]
    constraints = cls._constraints
    names = [p.name for p in named]
    found += [f"{cls.__name__}.{name}: has no constraint in _constraints" for name in names if name not in constraints]
    found += [
        f"{cls.__name__}.{name}: has a constraint, but is no parameter" for name in sorted(set(constraints) - {*names})
    ]
    docstring = parse_docstring(vars(cls).get("__doc__"))
    found += _entry_problems(cls.__name__, named, docstring.entries("Parameters"))
    types = {entry.name: entry.type for entry in docstring.entries("Parameters")}
    for name in names:
        if types.get(name) and name in constraints:
            missing = missing_from_type(types[name], constraints[name])
            if missing:
                found.append(
                    f"{cls.__name__}.{name}: the type {types[name]!r} does not name {', '.join(missing)}"
                    f"{_suggested_type(constraints[name])}"
                )
    groups = [constraint.group for constraint in constraints.values() if isinstance(constraint, Options)]
    return found + [problem for group in groups for problem in parameter_problems(group)]


def use_problems(cls: type[BaseEstimator]) -> list[str]:
    """Look for the summary and the examples of an estimator class, and for the parameters of its `fit`.

    Parameters
    ----------
    cls : type
        The estimator class.

    Returns
    -------
    list of str
        One sentence per problem; empty if there is none.
    """
    text = vars(cls).get("__doc__")
    found = _summary_problems(cls.__name__, text)
    if ">>>" not in parse_docstring(text).sections.get("Examples", ""):
        found.append(f"{cls.__name__}: no section Examples with code (>>>)")
    return found + function_problems(cls.fit, f"{cls.__name__}.fit")  # type: ignore[attr-defined]


def attribute_problems(method: BaseEstimator) -> list[str]:
    """Compare the section `Attributes` with the attributes of a fitted copy.

    An attribute that only some settings or data produce may be documented although the fitted copy lacks it; its
    description then contains the word "only".

    Parameters
    ----------
    method : BaseEstimator
        An unfitted estimator.

    Returns
    -------
    list of str
        One sentence per difference; empty if there is none.
    """
    name = type(method).__name__
    entries = {entry.name: entry for entry in parse_docstring(type(method).__doc__).entries("Attributes")}
    fitted = _fitted(method)
    there = {a for a in {*vars(fitted), *_properties(type(fitted))} if a.endswith("_") and not a.startswith("_")}
    found = [f"{name}.{a}: set by fit, but has no entry under Attributes" for a in sorted(there - {*entries})]
    for attribute, entry in entries.items():
        found += _text_problems(f"{name}.{attribute}", entry)
        if attribute not in there and not re.search(r"\bonly\b", entry.description, re.IGNORECASE):
            found.append(f'{name}.{attribute}: not set by fit; if it is set in some cases, write "only ..." when')
    return found


def function_problems(function: Callable[..., Any], name: str | None = None) -> list[str]:
    """Compare the signature of a function with its docstring.

    Parameters
    ----------
    function : callable
        A function or method.
    name : str, default=None
        Name of the function in the sentences; its qualified name if None.

    Returns
    -------
    list of str
        One sentence per problem; empty if there is none.
    """
    name = getattr(function, "__qualname__", repr(function)) if name is None else name
    docstring = parse_docstring(function.__doc__)
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    if _is_method(function) and parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    found = _summary_problems(name, function.__doc__)
    found += _entry_problems(name, parameters, docstring.entries("Parameters"))
    if _returns_something(signature) and not {"Returns", "Yields"} & set(docstring.sections):
        returned = inspect.formatannotation(signature.return_annotation)
        found.append(f"{name}: returns {returned}, but has no section Returns")
    return found + [
        f"{name}: the section {title} is empty"
        for title in ("Returns", "Yields")
        if title in docstring.sections and not docstring.sections[title].strip()
    ]


def class_problems(cls: type[Any]) -> list[str]:
    """Compare a public class that is no estimator, and its public methods, with their docstrings.

    Parameters
    ----------
    cls : type
        The class. Fields of a dataclass may be documented under `Parameters` or under `Attributes`.

    Returns
    -------
    list of str
        One sentence per problem; empty if there is none.
    """
    text = vars(cls).get("__doc__")
    found = _summary_problems(cls.__name__, text)
    if "__init__" in vars(cls) and not issubclass(cls, BaseException):
        docstring = parse_docstring(text)
        entries = docstring.entries("Parameters") or docstring.entries("Attributes")
        found += _entry_problems(cls.__name__, [*inspect.signature(cls).parameters.values()], entries)
    return found + method_problems(cls)


def method_problems(cls: type[Any]) -> list[str]:
    """Examine the docstrings of all public methods and properties of a class, inherited ones of ours included.

    Parameters
    ----------
    cls : type
        The class.

    Returns
    -------
    list of str
        One sentence per problem, which begins with the name of the class that defines the method.
    """
    found = []
    for owner in cls.__mro__:
        if not owner.__module__.startswith(cls.__module__.partition(".")[0]):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_"):
                continue
            member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if inspect.isfunction(member):
                found += function_problems(member, f"{owner.__name__}.{name}")
            elif isinstance(member, property):
                found += _summary_problems(f"{owner.__name__}.{name}", member.__doc__)
    return found


def _suggested_type(constraint: Constraint) -> str:
    """The end of a sentence: the type that the constraint itself states, if it does."""
    text = getattr(constraint, "type_text", None)
    return "" if text is None else f"; write `{text}`"


def _is_method(function: Callable[..., Any]) -> bool:
    """Whether a function was defined in a class."""
    return "." in getattr(function, "__qualname__", "").rpartition("<locals>.")[2]


def _summary_problems(name: str, text: str | None) -> list[str]:
    """A docstring opens with one line that ends with a period, and an empty line follows."""
    lines = inspect.cleandoc(text or "").split("\n")
    if not lines[0]:
        return [f"{name}: no docstring"]
    one_line = lines[0].rstrip().endswith((".", "?")) and (len(lines) == 1 or not lines[1].strip())
    return [] if one_line else [f"{name}: the summary is not one line that ends with a period"]


def _entry_problems(name: str, parameters: list[inspect.Parameter], entries: list[Entry]) -> list[str]:
    """Every parameter has an entry of its own, in the order of the signature, with type, default and description."""
    expected = {_shown(p): p for p in parameters}
    there = {entry.name: entry for entry in entries}
    found = [f"{name}: the entry {e.name!r} documents several parameters" for e in entries if "," in e.name]
    bundled = {part.strip() for entry in entries if "," in entry.name for part in entry.name.split(",")}
    found += [f"{name}.{p}: has no entry under Parameters" for p in expected if p not in there and p not in bundled]
    found += [f"{name}.{e}: documented, but is no parameter" for e in there if e not in expected and "," not in e]
    common = [p for p in expected if p in there]
    if common != [entry for entry in there if entry in expected]:
        found.append(f"{name}: the entries are not in the order of the signature: {', '.join(common)}")
    for shown in common:
        entry, parameter = there[shown], expected[shown]
        if parameter.kind in _VARIADIC:
            continue
        found += [*_text_problems(f"{name}.{shown}", entry), *_default_problems(f"{name}.{shown}", entry, parameter)]
    return found


def _shown(parameter: inspect.Parameter) -> str:
    """The name of a parameter as numpydoc writes it: with its stars."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return next((mark for kind, mark in stars.items() if parameter.kind is kind), "") + parameter.name


def _text_problems(name: str, entry: Entry) -> list[str]:
    missing = [what for what, text in (("type", entry.type), ("description", entry.description)) if not text]
    return [f"{name}: has no {' and no '.join(missing)}"] if missing else []


def _default_problems(name: str, entry: Entry, parameter: inspect.Parameter) -> list[str]:
    default = parameter.default
    if repr(default) == "<factory>":  # a field of a dataclass whose default is made by a function
        return []
    if default is parameter.empty:
        return [] if entry.default is None else [f"{name}: has no default, but default={entry.default} is documented"]
    if entry.default is None:
        return [f"{name}: the default is not documented; write `, default={default!r}` after the type"]
    if is_default(entry.default, default):
        return []
    return [f"{name}: documented default {entry.default}, but the signature has {default!r}"]


def _returns_something(signature: inspect.Signature) -> bool:
    return signature.return_annotation not in (None, "None", "NoReturn", "Never", signature.empty)


def _properties(cls: type[Any]) -> set[str]:
    return {name for name in dir(cls) if isinstance(inspect.getattr_static(cls, name), property)}


def _fitted(method: BaseEstimator) -> Any:
    """A copy of the method fitted to a small crowd, with features where `fit` takes X."""
    from manyhands.testing.assertions import fit
    from manyhands.testing.learners import fit_briefly
    from manyhands.testing.small_crowds import easy_crowd, feature_crowd

    if "X" in inspect.signature(method.fit).parameters:  # type: ignore[attr-defined]
        return fit_briefly(method, *feature_crowd(2)[:2])
    return fit(method, easy_crowd(2)[0])  # type: ignore[arg-type]
