"""Checks that signatures, constraints and numpydoc docstrings agree: names, order, types, defaults, attributes."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from manyhands.estimator import BaseEstimator, OptionGroup, Options
from manyhands.validation import (
    Boolean,
    Constraint,
    Device,
    Folder,
    FractionOrCount,
    LayerSizes,
    NameOr,
    NoneOr,
    Number,
    OneOf,
    Probabilities,
    RandomState,
)

# ----------------------------------------------------------------------------------------------------
# What a documented type and default must contain: the words of a constraint, and the value in the signature.


def is_default(text: str, default: Any) -> bool:
    """Compare a documented default with the default in the signature."""
    if text == repr(default) or text == getattr(default, "__name__", None):
        return True
    if text == f"{type(default).__name__}()":
        return True
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    same_kind = isinstance(value, bool) == isinstance(default, bool)
    return bool(same_kind and type(value == default) is bool and value == default)


def missing_from_type(text: str, constraint: Constraint) -> list[str]:
    """List the words that a documented type must contain because of a constraint, and does not."""
    return [words[0] for words in _words_of(constraint) if not any(_contains(text, word) for word in words)]


def _words_of(constraint: Constraint) -> Iterator[tuple[str, ...]]:
    """For each word that a type must contain, the ways to write it."""
    if isinstance(constraint, NoneOr):
        yield ("None",)
        yield from _words_of(constraint.other)
    elif isinstance(constraint, Options):
        yield (constraint.group.__name__,)
        yield from [("None",)] if constraint.optional else []
    elif isinstance(constraint, Number):
        yield ("int",) if constraint.whole else ("float",)
    elif isinstance(constraint, FractionOrCount):
        yield from (("int",), ("float",))
    elif isinstance(constraint, Device):
        yield ("str",)
    elif isinstance(constraint, Folder):
        yield ("None",)
    elif isinstance(constraint, Boolean):
        yield ("bool",)
    elif isinstance(constraint, LayerSizes):
        yield ("tuple of int",)
    elif isinstance(constraint, RandomState):
        yield from (("int",), ("Generator",), ("None",))
    elif isinstance(constraint, OneOf):
        yield from (_spellings(value) for value in constraint.values)
    elif isinstance(constraint, Probabilities):
        yield from (_spellings(value) for value in constraint.names)
    elif isinstance(constraint, NameOr):  # the names of all aggregators are too many for a type
        yield from ((*_spellings(value), "str") for value in constraint.names)


def _spellings(value: Any) -> tuple[str, ...]:
    """The ways to write a value in a type; `bool` stands for True and False."""
    if isinstance(value, str):
        return f'"{value}"', f"'{value}'"
    return (repr(value), "bool") if isinstance(value, bool) else (repr(value),)


def _contains(text: str, word: str) -> bool:
    """Whether the text contains the word, and not only as a part of a longer one; it may follow a dotted module."""
    before = r"(?<!\w)" if word[0].isalpha() else r"(?<![\w.])"
    return re.search(rf"{before}{re.escape(word)}(?!\w)", text) is not None


# ----------------------------------------------------------------------------------------------------
# A small parser of numpydoc docstrings: the summary, the sections, and the entries of a section.

_UNDERLINE = re.compile(r"^-{3,}\s*$")
_DEFAULT = re.compile(r"^(?P<type>.*?),?\s*\bdefault\s*[=:]\s*(?P<default>.+)$")


@dataclass(frozen=True)
class Entry:
    """One entry of a section such as ``Parameters``."""

    name: str  # what stands before the colon; several names if they share an entry ("a, b")
    type: str = ""  # what stands after the colon, without the default
    default: str | None = None  # what follows `default=`, as it is written
    description: str = ""  # the indented lines below, joined by spaces


@dataclass(frozen=True)
class Docstring:
    """A parsed docstring."""

    summary: str
    sections: dict[str, str] = field(default_factory=dict)  # text by title, without underline and common indentation

    def entries(self, title: str) -> list[Entry]:
        """Parse the entries of a section."""
        return _parse_entries(self.sections.get(title, ""))


def parse_docstring(text: str | None) -> Docstring:
    """Split a numpydoc docstring into its summary and its sections."""
    lines = inspect.cleandoc(text or "").split("\n")
    summary = " ".join(line.strip() for line in lines[: lines.index("")] if line) if "" in lines else " ".join(lines)
    titles = [i for i in range(len(lines) - 1) if _is_title(lines[i], lines[i + 1])]
    ends = [*titles[1:], len(lines)]
    sections = {lines[i].strip(): "\n".join(lines[i + 2 : end]).strip("\n") for i, end in zip(titles, ends)}
    return Docstring(summary, sections)


def _is_title(line: str, following: str) -> bool:
    """Whether these two lines are a title and its underline."""
    return bool(line) and not line[0].isspace() and _UNDERLINE.match(following) is not None


def _parse_entries(text: str) -> list[Entry]:
    """The entries of a section: a line without indentation starts one, indented lines describe it."""
    blocks: list[list[str]] = []
    for line in text.split("\n"):
        if line and not line[0].isspace():
            blocks.append([line])
        elif line.strip() and blocks:
            blocks[-1].append(line.strip())
    return [_parse_entry(block[0], " ".join(block[1:])) for block in blocks]


def _parse_entry(header: str, description: str) -> Entry:
    name, _, kind = header.partition(" : ") if " : " in header else (header.rstrip(" :"), "", "")
    match = _DEFAULT.match(kind.strip())
    if match is None:
        return Entry(name.strip(), kind.strip(), None, description)
    return Entry(name.strip(), match["type"].strip(" ,"), match["default"].strip(), description)


# ----------------------------------------------------------------------------------------------------
# Differences between a signature, its constraints, the fitted attributes and the docstring, as lists of sentences.

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameter_problems(cls: type[BaseEstimator] | type[OptionGroup]) -> list[str]:
    """Compare the constructor of a class with its constraints and its docstring."""
    signature = [*inspect.signature(cls).parameters.values()]
    problems = [f"{cls.__name__}: the constructor hides parameters in {p}" for p in signature if p.kind in _VARIADIC]
    named = [p for p in signature if p.kind not in _VARIADIC]
    constraints = cls._constraints
    names = [p.name for p in named]
    problems += [
        f"{cls.__name__}.{name}: has no constraint in _constraints" for name in names if name not in constraints
    ]
    problems += [
        f"{cls.__name__}.{name}: has a constraint, but is no parameter" for name in sorted(set(constraints) - {*names})
    ]
    docstring = parse_docstring(vars(cls).get("__doc__"))
    problems += _entry_problems(cls.__name__, named, docstring.entries("Parameters"))
    types = {entry.name: entry.type for entry in docstring.entries("Parameters")}
    for name in names:
        if types.get(name) and name in constraints:
            missing = missing_from_type(types[name], constraints[name])
            if missing:
                problems.append(
                    f"{cls.__name__}.{name}: the type {types[name]!r} does not name {', '.join(missing)}"
                    f"{_suggested_type(constraints[name])}"
                )
    groups = [constraint.group for constraint in constraints.values() if isinstance(constraint, Options)]
    return problems + [problem for group in groups for problem in parameter_problems(group)]


def use_problems(cls: type[BaseEstimator]) -> list[str]:
    """Look for the summary and the examples of an estimator class, and for the parameters of its `fit`."""
    text = vars(cls).get("__doc__")
    problems = _summary_problems(cls.__name__, text)
    if ">>>" not in parse_docstring(text).sections.get("Examples", ""):
        problems.append(f"{cls.__name__}: no section Examples with code (>>>)")
    return problems + function_problems(cls.fit, f"{cls.__name__}.fit")  # type: ignore[attr-defined]


def attribute_problems(method: BaseEstimator) -> list[str]:
    """Compare the sections `Attributes` of a class and of its bases with the attributes of a fitted copy.

    A base class documents the attributes that it sets; a class documents its own, and those of a base about which it
    says something different. An attribute that only some settings or data produce may be documented although the
    fitted copy lacks it; its description then contains the word "only".
    """
    cls, fitted = type(method), _fitted(method)
    own, inherited = _attribute_entries(cls), {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= {name: (base, entry) for name, entry in _attribute_entries(base).items()}
    is_set = {a for a in {*vars(fitted), *_properties(cls)} if a.endswith("_") and not a.startswith("_")}
    problems = [
        f"{cls.__name__}.{name}: set by fit, but has no entry under Attributes, in the class or in a base"
        for name in sorted(is_set - {*own, *inherited})
    ]
    for name, entry in own.items():
        if name in inherited and inherited[name][1] == entry:
            problems.append(f"{cls.__name__}.{name}: has the entry of {inherited[name][0].__name__}; leave it out")
    for name, entry in ({name: entry for name, (_, entry) in inherited.items()} | own).items():
        problems += _text_problems(f"{cls.__name__}.{name}", entry)
        if name not in is_set and not re.search(r"\bonly\b", entry.description, re.IGNORECASE):
            problems.append(f'{cls.__name__}.{name}: not set by fit; if it is set in some cases, write "only ..." when')
    return problems


def _attribute_entries(cls: type[Any]) -> dict[str, Entry]:
    """The entries under `Attributes` in the docstring of the class itself, by name."""
    if not issubclass(cls, BaseEstimator):
        return {}
    return {entry.name: entry for entry in parse_docstring(vars(cls).get("__doc__")).entries("Attributes")}


def function_problems(function: Callable[..., Any], name: str | None = None) -> list[str]:
    """Compare the signature of a function with its docstring."""
    name = getattr(function, "__qualname__", repr(function)) if name is None else name
    docstring = parse_docstring(function.__doc__)
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    if _is_method(function) and parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    problems = _summary_problems(name, function.__doc__)
    problems += _entry_problems(name, parameters, docstring.entries("Parameters"))
    if _returns_something(signature) and not {"Returns", "Yields"} & set(docstring.sections):
        returned = inspect.formatannotation(signature.return_annotation)
        problems.append(f"{name}: returns {returned}, but has no section Returns")
    return problems + [
        f"{name}: the section {title} is empty"
        for title in ("Returns", "Yields")
        if title in docstring.sections and not docstring.sections[title].strip()
    ]


def class_problems(cls: type[Any]) -> list[str]:
    """Compare a public class that is no estimator, and its public methods, with their docstrings."""
    text = vars(cls).get("__doc__")
    problems = _summary_problems(cls.__name__, text)
    if "__init__" in vars(cls) and not issubclass(cls, BaseException):
        docstring = parse_docstring(text)
        entries = docstring.entries("Parameters") or docstring.entries("Attributes")
        problems += _entry_problems(cls.__name__, [*inspect.signature(cls).parameters.values()], entries)
    return problems + method_problems(cls)


def method_problems(cls: type[Any]) -> list[str]:
    """Examine the docstrings of all public methods and properties of a class, inherited ones of ours included."""
    problems = []
    for owner in cls.__mro__:
        if not owner.__module__.startswith(cls.__module__.partition(".")[0]):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_"):
                continue
            member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if inspect.isfunction(member):
                problems += function_problems(member, f"{owner.__name__}.{name}")
            elif isinstance(member, property):
                problems += _summary_problems(f"{owner.__name__}.{name}", member.__doc__)
    return problems


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
    problems = [f"{name}: the entry {e.name!r} documents several parameters" for e in entries if "," in e.name]
    bundled = {part.strip() for entry in entries if "," in entry.name for part in entry.name.split(",")}
    problems += [f"{name}.{p}: has no entry under Parameters" for p in expected if p not in there and p not in bundled]
    problems += [f"{name}.{e}: documented, but is no parameter" for e in there if e not in expected and "," not in e]
    common = [p for p in expected if p in there]
    if common != [entry for entry in there if entry in expected]:
        problems.append(f"{name}: the entries are not in the order of the signature: {', '.join(common)}")
    for shown in common:
        entry, parameter = there[shown], expected[shown]
        if parameter.kind in _VARIADIC:
            continue
        problems += [*_text_problems(f"{name}.{shown}", entry), *_default_problems(f"{name}.{shown}", entry, parameter)]
    return problems


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
    from manyhands.testing.crowds import easy_crowd, feature_crowd, fit, fit_briefly

    if "X" in inspect.signature(method.fit).parameters:  # type: ignore[attr-defined]
        return fit_briefly(method, *feature_crowd(2)[:2])
    return fit(method, easy_crowd(2)[0])  # type: ignore[arg-type]


def check_docstring(method: BaseEstimator) -> None:
    """Signature, constraints, docstring and fitted attributes of the class of an unfitted method agree."""
    _report([*parameter_problems(type(method)), *use_problems(type(method)), *attribute_problems(method)])


def check_function_docstring(function: Callable[..., Any]) -> None:
    """Every parameter of a function has an entry with type and default, and what it returns has a section."""
    _report(function_problems(function))


def _report(problems: list[str]) -> None:
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems)
