"""Pages of the API reference: one for each package, and one for each class and function that a package exports.

What a class inherits from an exported class stands on its page in a table, with links to the place that documents it;
bases that are not exported are documented as parts of the class. The texts are those of the docstrings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString

PACKAGES = {  # module -> what it is for, in the order of the reference; an object stands on the page of the first one
    "manyhands.aggregation": "Aggregators: the truth of every item inferred from the labels alone.",
    "manyhands.classifiers": "Classifiers trained on crowd labels, and the groups of options that they take.",
    "manyhands.representation": "Representation learners: embeddings of features, learned from a crowd's labels.",
    "manyhands.comparison": "Methods ranked by held-out labels, without truth.",
    "manyhands.trust": "Answers of experts: accuracy with an interval, calibration, guarantees, machines in the crowd.",
    "manyhands.scorecards": "A quality report for each worker.",
    "manyhands.metrics": "Agreement of workers, accuracy, calibration.",
    "manyhands.simulate": "Simulated crowds with known truth.",
    "manyhands.datasets": "Real data sets, and simulated ones with features.",
    "manyhands.io": "Reading of exports, and what is written for annotation tools.",
    "manyhands.report": "The HTML report: its data and its panels.",
    "manyhands.plots": "Pictures of the report, one function for each panel.",
    "manyhands.registry": "Methods by name.",
    "manyhands.reproduce": "The papers' tables: what they measure and how they are run.",
    "manyhands.testing": "The checks that every method passes, also one of your own.",
    "manyhands.spark": "Aggregation on Spark, with the same bits as on one machine.",
    "manyhands.jobs.aggregate": "What `manyhands aggregate` does, as a function: files to labels and workers.",
    "manyhands.jobs.agree": "What `manyhands agree` and `alt-test` do.",
    "manyhands.jobs.ask": "What `manyhands ask` does.",
    "manyhands.jobs.convert": "What `manyhands convert` and `inspect` do.",
    "manyhands.jobs.doctor": "What `manyhands doctor` does.",
    "manyhands.jobs.report": "What `manyhands report` does.",
    "manyhands.jobs.simulate": "What `manyhands simulate` and `demo` do.",
    "manyhands.jobs.train": "What `manyhands train`, `predict` and `evaluate` do.",
    "manyhands.exceptions": "All errors and warnings.",
    "manyhands": "What is needed most: labels, aggregators, the five papers' systems, and what follows a fit.",
}
_NO_LIST = {"manyhands.registry", "manyhands.exceptions"}  # modules without `__all__`: their own public names


@dataclass(eq=False)
class Entry:
    """An exported object: where it is exported, and its name there."""

    module: str
    name: str
    value: Any
    aliases: list[str] = field(default_factory=list)  # further places, such as manyhands.DawidSkene

    @property
    def path(self) -> str:
        """The name under which the object is imported."""
        return f"{self.module}.{self.name}"

    @property
    def page(self) -> str:
        """Name of its page; constants have none of their own."""
        return f"api/{self.path}"

    @cached_property
    def kind(self) -> str:
        """What it is: class, exception, function or constant."""
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) else "constant"

    @property
    def summary(self) -> str:
        """First sentence of its docstring, or the comment of a constant."""
        if self.kind == "constant":
            return _comment_of(self.module, self.name)
        return _first_sentence(self.value)


def exported_names(module: str) -> list[str]:
    """The public names of a package, submodules left out."""
    found = import_module(module)
    if module in _NO_LIST:
        own = [n for n, v in vars(found).items() if getattr(v, "__module__", None) == module and callable(v)]
        return [name for name in own if not name.startswith("_")]
    if module.startswith("manyhands.jobs."):  # functions of commands, whose helpers are public within the package only
        own = [n for n, v in vars(found).items() if getattr(v, "__module__", None) == module and not n.startswith("_")]
        return [n for n in own if n == module.rpartition(".")[2] or _is_documented(getattr(found, n))]
    return [name for name in found.__all__ if not inspect.ismodule(getattr(found, name))]


def _is_documented(value: Any) -> bool:
    """Whether the docstring has parameters or attributes."""
    return re.search(r"^(Parameters|Attributes)\n---", inspect.getdoc(value) or "", re.MULTILINE) is not None


@cache
def entries() -> tuple[Entry, ...]:
    """Every exported object once, with all places that export it."""
    found: dict[Any, Entry] = {}
    for module in PACKAGES:
        for name in exported_names(module):
            value = getattr(import_module(module), name)
            shared = inspect.isclass(value) or inspect.isfunction(value)
            key = (id(value), name) if shared and module != "manyhands.plots" else (module, name)
            if key in found:
                found[key].aliases.append(f"{module}.{name}")
            else:
                found[key] = Entry(module, name, value)
    return tuple(found.values())


@cache
def class_entries() -> dict[type, Entry]:
    """The exported classes."""
    return {entry.value: entry for entry in entries() if inspect.isclass(entry.value)}


def pages() -> dict[str, str]:
    """All pages of the reference: place -> text."""
    texts = {f"api/{module}.rst": _module_page(module) for module in PACKAGES}
    for entry in entries():
        if entry.kind == "function":
            texts[f"{entry.page}.rst"] = _function_page(entry)
        elif entry.kind != "constant":
            texts[f"{entry.page}.rst"] = _class_page(entry)
    return texts


# ----------------------------------------------------------------------------------------------------
# Pages.


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"


def _indent(text: str, by: int = 3) -> str:
    return "\n".join(" " * by + row if row.strip() else "" for row in text.splitlines())


def _table(rows: list[tuple[str, str]], widths: str) -> str:
    """A table of two columns without a head."""
    lines = [f".. list-table::\n   :widths: {widths}\n   :class: api-table\n"]
    for left, right in rows:
        lines.append(f"   * - {_hang(left)}\n     - {_hang(right)}")
    return "\n".join(lines) + "\n\n"


def _hang(text: str) -> str:
    """Text of a cell, with the rows after the first indented."""
    return _indent(text or "\\ ", 7).lstrip()


def _module_page(module: str) -> str:
    """A package: its classes, functions and constants in tables."""
    own = [entry for entry in entries() if entry.module == module]
    elsewhere = [entry for entry in entries() if any(a.rpartition(".")[0] == module for a in entry.aliases)]
    text = _title(module) + f".. py:module:: {module}\n   :no-index-entry:\n\n{PACKAGES[module]}\n\n"
    for title, kinds in (("Classes", ("class",)), ("Exceptions", ("exception",)), ("Functions", ("function",))):
        chosen = sorted((e for e in own if e.kind in kinds), key=lambda entry: entry.name.lower())
        if chosen:
            text += _title(title, "-") + _table([(_link(e), e.summary) for e in chosen], "30 70")
    constants = [entry for entry in own if entry.kind == "constant"]
    if constants:
        text += _title("Constants", "-") + "".join(_constant(entry) for entry in constants)
    if elsewhere:
        title = "Also here" if own else "Names"
        text += _title(title, "-") + "The same objects as in the packages that document them.\n\n"
        rows = sorted(((_link(e), e.summary) for e in elsewhere), key=lambda row: row[0].lower())
        text += _table(rows, "30 70")
    listed = [f"   {entry.path}" for entry in own if entry.kind != "constant"]
    if listed:
        text += ".. toctree::\n   :hidden:\n\n" + "\n".join(sorted(listed, key=str.lower)) + "\n"
    return text


def _link(entry: Entry) -> str:
    role = {"class": "class", "exception": "exc", "function": "func", "constant": "data"}[entry.kind]
    return f":py:{role}:`~{entry.path}`"


def _constant(entry: Entry) -> str:
    """A constant: its comment in the source, and its value or its keys."""
    value = entry.value
    if isinstance(value, dict):
        said = "Keys: " + ", ".join(f"``{key!r}``" for key in value) + "."
    elif isinstance(value, (tuple, list, set, frozenset)):
        members = sorted(value) if isinstance(value, (set, frozenset)) else value
        said = "Members: " + ", ".join(f"``{member!r}``" for member in members) + "."
    else:
        said = f"Value: ``{value!r}``."
    said = re.sub(r"<function (\w+) at 0x\w+>", r"\1", said)
    body = _indent(f"{entry.summary}\n\n{said}")
    return f".. py:data:: {entry.name}\n   :type: {type(value).__name__}\n\n{body}\n\n"


def _function_page(entry: Entry) -> str:
    return _title(_shown(entry)) + f".. autofunction:: {entry.path}\n"


def _shown(entry: Entry) -> str:
    """Title of a page; a name of two packages is shown with its package."""
    first = next(e for e in entries() if e.name == entry.name)
    return entry.name if first is entry else entry.path.removeprefix("manyhands.")


def _class_page(entry: Entry) -> str:
    """A class: its docstring, its own attributes and methods, and tables of what it inherits."""
    own, inherited = members_of(entry.value)
    directive = "autoexception" if entry.kind == "exception" else "autoclass"
    text = _title(_shown(entry)) + f".. {directive}:: {entry.path}\n\n"
    methods = [member for member in own if member.is_method]
    attributes = [member for member in own if not member.is_method]
    if attributes:
        text += _title("Attributes", "-") + "".join(_attribute(entry, member) for member in attributes)
    if methods:
        text += _title("Methods", "-")
        text += "".join(f".. automethod:: {entry.path}.{member.name}\n\n" for member in methods)
    for base, members in inherited.items():
        text += _title(f"Inherited from {base.name}", "-")
        text += f"{_link(base)} documents them.\n\n"
        rows = [(_member_link(base, member), member.text) for member in members]
        text += _table(rows, "32 68")
    return text


def _attribute(entry: Entry, member: Member) -> str:
    head = f".. py:attribute:: {entry.path}.{member.name}\n\n"
    body = f"*{_escaped(member.type)}*\n\n" if member.type else ""
    return head + _indent(body + member.text) + "\n\n"


def _member_link(base: Entry, member: Member) -> str:
    role = "meth" if member.is_method else "attr"
    shown = f"{member.name}()" if member.is_method else member.name
    kind = f"\n\n*{_escaped(member.type)}*" if member.type else ""
    return f":py:{role}:`{shown} <{_home_of(base, member).path}.{member.name}>`{kind}"


def _home_of(base: Entry, member: Member) -> Entry:
    """The exported class on whose page a member is documented: the base, or the one that it inherits it from."""
    own, inherited = members_of(base.value)
    if any(one.name == member.name for one in own):
        return base
    return next(_home_of(b, member) for b, members in inherited.items() if any(m.name == member.name for m in members))


def _escaped(text: str) -> str:
    """Text that stands between asterisks."""
    return re.sub(r"([*`_|\\])", r"\\\1", text)


# ----------------------------------------------------------------------------------------------------
# Members of classes.


@dataclass
class Member:
    """An attribute or a method of a class."""

    name: str
    is_method: bool
    text: str = ""
    type: str = ""


@cache
def members_of(cls: type) -> tuple[list[Member], dict[Entry, list[Member]]]:
    """The members that a class is to document itself, and what each exported base documents.

    A member that the class defines anew is its own.
    """
    known = class_entries()
    own: dict[str, Member] = {}
    for base in _until_exported(cls):
        for member in _defined_in(base):
            own.setdefault(member.name, member)
    inherited: dict[Entry, list[Member]] = {}
    seen = set(own)
    for base in cls.__mro__[1:]:
        if base in known:
            its_own, its_inherited = members_of(base)
            everything = [*its_own, *(m for members in its_inherited.values() for m in members)]
            fresh = [member for member in everything if member.name not in seen]
            seen |= {member.name for member in fresh}
            if fresh:
                inherited[known[base]] = fresh
    return list(own.values()), inherited


def _until_exported(cls: type) -> Iterator[type]:
    """The class and those of its bases that no exported base has."""
    exported = [base for base in cls.__mro__[1:] if base in class_entries()]
    covered = {b for base in exported for b in base.__mro__}
    for base in cls.__mro__:
        if base is cls or (base not in covered and base.__module__.startswith("manyhands")):
            yield base


def _defined_in(cls: type) -> Iterator[Member]:
    """Attributes of its docstring and public methods and properties of its body, in the order of the source."""
    documented = set()
    parsed = NumpyDocString(inspect.cleandoc(cls.__dict__.get("__doc__") or ""))
    fields = getattr(cls, "__dataclass_fields__", {})
    for parameter in parsed["Attributes"]:
        for name in (part.strip() for part in parameter.name.split(",")):
            documented.add(name)
            yield Member(name, False, "\n".join(parameter.desc), parameter.type)
    for name, value in vars(cls).items():
        if name.startswith("_") or name in documented or name in fields:
            continue
        if isinstance(value, (property, cached_property)):
            yield Member(name, False, _first_sentence(value) + _rest(value), _returns(value))
        elif callable(value) or isinstance(value, (classmethod, staticmethod)):
            yield Member(name, True, _first_sentence(getattr(cls, name)))


def _rest(value: Any) -> str:
    """What the docstring of a property says after its first paragraph, without sections."""
    extended = NumpyDocString(inspect.getdoc(value) or "")["Extended Summary"]
    return "\n\n" + "\n".join(extended) if extended else ""


def _returns(value: Any) -> str:
    """Type of a property by its docstring."""
    returned = NumpyDocString(inspect.getdoc(value) or "")["Returns"]
    return returned[0].type if returned else ""


def _first_sentence(value: Any) -> str:
    """First paragraph of a docstring."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _comment_of(module: str, name: str) -> str:
    """The comment at the assignment of a constant: in its line, or in the lines before."""
    found = import_module(module)
    home = getattr(found, "_HOMES", {}).get(name, module)
    lines = Path(inspect.getsourcefile(import_module(home)) or "").read_text(encoding="utf-8").splitlines()
    at = next((i for i, row in enumerate(lines) if re.match(rf"{name}\b.*=", row)), None)
    if at is None:
        return ""
    comments = [lines[at].partition("  # ")[2]] if "  # " in lines[at] else []
    while not comments or lines[at - 1].startswith("# "):
        if not lines[at - 1].startswith("# "):
            break
        at -= 1
        comments.insert(0, lines[at][2:])
    said = " ".join(comment for comment in comments if comment)
    return said[:1].upper() + said[1:] + ("" if not said or said.endswith(".") else ".")
