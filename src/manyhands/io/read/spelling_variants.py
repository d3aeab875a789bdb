"""Classes and worker ids that differ in spelling only: found, and merged into the most frequent spelling on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from unicodedata import normalize

# Final characters that people add or omit. Others may distinguish classes: "A-" and "A", "C#" and "C", ":)" and ":(".
_FINAL_PUNCTUATION = ".,;:!\u2026\u3002\uff0c\uff1b\uff1a\uff01"


def fold_id(name: str) -> str:
    """Return the same text for ids that differ in case, outer space or Unicode form only.

    Parameters
    ----------
    name : str
        A worker id or a class.

    Returns
    -------
    str
        The text by which spellings are compared.

    Examples
    --------
    >>> fold_id(" Ann@example.org") == fold_id("ann@example.org")
    True
    """
    return normalize("NFKC", normalize("NFKC", name).casefold()).strip()


def fold_class(name: str) -> str:
    """Return the same text for classes that differ in case, outer space, Unicode form or final punctuation only.

    Parameters
    ----------
    name : str
        A class.

    Returns
    -------
    str
        The text by which spellings are compared; punctuation alone is kept.

    Examples
    --------
    >>> fold_class("YES ") == fold_class("yes."), fold_class("A-") == fold_class("A"), fold_class("!")
    (True, False, '!')
    """
    folded = fold_id(name)
    return folded.rstrip(_FINAL_PUNCTUATION).rstrip() or folded


def spelling_groups(counts: Mapping[str, int], fold: Callable[[str], str]) -> list[list[str]]:
    """Return the groups of names that differ in spelling only, the most frequent name of each group first.

    Parameters
    ----------
    counts : mapping of str to int
        Name -> number of rows. A name without outer space precedes equally frequent ones, then the alphabet decides.
    fold : callable (str) -> str
        `fold_id` or `fold_class`.

    Returns
    -------
    list of list of str
        Groups of two names or more.

    Examples
    --------
    >>> spelling_groups({"yes": 2, "no": 7, "Yes": 5}, fold_class)
    [['Yes', 'yes']]
    """
    alike: dict[str, list[str]] = {}
    for name in counts:
        alike.setdefault(fold(name), []).append(name)
    return [
        sorted(names, key=lambda name: (-counts[name], name != name.strip(), name))
        for names in alike.values()
        if len(names) > 1
    ]
