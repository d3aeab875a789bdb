"""A small parser of numpydoc docstrings: the summary, the sections, and the entries of a section."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_UNDERLINE = re.compile(r"^-{3,}\s*$")
_DEFAULT = re.compile(r"^(?P<type>.*?),?\s*\bdefault\s*[=:]\s*(?P<default>.+)$")


@dataclass(frozen=True)
class Entry:
    """One entry of a section such as ``Parameters``.

    Attributes
    ----------
    name : str
        What stands before the colon; several names if they share an entry (``"a, b"``).
    type : str, default=""
        What stands after the colon, without the default; empty if there is no colon.
    default : str or None, default=None
        What follows ``default=``, as it is written; None if no default is written.
    description : str, default=""
        The indented lines below, joined by spaces.
    """

    name: str
    type: str = ""
    default: str | None = None
    description: str = ""


@dataclass(frozen=True)
class Docstring:
    """A parsed docstring.

    Attributes
    ----------
    summary : str
        The first paragraph, its lines joined by spaces.
    sections : dict of str to str
        The text of each section by its title, without the underline and without common indentation.
    """

    summary: str
    sections: dict[str, str] = field(default_factory=dict)

    def entries(self, title: str) -> list[Entry]:
        """Parse the entries of a section.

        Parameters
        ----------
        title : str
            Title of the section, such as ``"Parameters"``.

        Returns
        -------
        list of Entry
            The entries in their order; empty if there is no such section.
        """
        return _parse_entries(self.sections.get(title, ""))


def parse_docstring(text: str | None) -> Docstring:
    """Split a numpydoc docstring into its summary and its sections.

    Parameters
    ----------
    text : str or None
        The docstring, indented or not.

    Returns
    -------
    Docstring
        The summary and the sections; both are empty for an empty docstring.

    Examples
    --------
    >>> parsed = parse_docstring('''Mean of two numbers.
    ...
    ... Parameters
    ... ----------
    ... a : float
    ...     The first number.
    ... b : float, default=0.0
    ...     The second number.
    ... ''')
    >>> parsed.summary
    'Mean of two numbers.'
    >>> [(entry.name, entry.type, entry.default) for entry in parsed.entries("Parameters")]
    [('a', 'float', None), ('b', 'float', '0.0')]
    """
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
    found = _DEFAULT.match(kind.strip())
    if found is None:
        return Entry(name.strip(), kind.strip(), None, description)
    return Entry(name.strip(), found["type"].strip(" ,"), found["default"].strip(), description)
