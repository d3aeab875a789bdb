"""The closest match of a misspelt name: "did you mean ...?"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest_match(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `word` most probably stands for.

    Case, underscores, hyphens and spaces are ignored. A word matches a candidate by the same letters, by the initials
    of its parts, as its beginning, or by similar spelling, in this order.

    Parameters
    ----------
    word : str
        What was written.
    candidates : iterable of str
        The names that exist.

    Returns
    -------
    str or None
        The closest candidate, or None where none is similar.

    Examples
    --------
    >>> closest_match("lr", ["learning_rate", "batch_size"])
    'learning_rate'
    >>> closest_match("dawid_skene", ["dawid-skene", "glad"])
    'dawid-skene'
    >>> closest_match("xyz", ["learning_rate"]) is None
    True
    """
    names = list(candidates)
    plain = {name: _letters(name) for name in names}
    wanted = _letters(word)
    if not wanted:
        return None
    rules = (
        [name for name in names if plain[name] == wanted],
        [name for name in names if len(wanted) > 1 and _initials(name) == wanted],
        [name for name in names if len(wanted) > 2 and plain[name].startswith(wanted)],
    )
    for found in rules:
        if found:
            return found[0]
    close = get_close_matches(wanted, list(plain.values()), n=1)
    return next((name for name in names if close and plain[name] == close[0]), None)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return " Did you mean 'name'?", or "" where no candidate is similar to `word`.

    Parameters
    ----------
    word : str
        What was written.
    candidates : iterable of str
        The names that exist.

    Returns
    -------
    str
        A sentence with a leading space, to be appended to an error message.
    """
    found = closest_match(word, candidates)
    return "" if found is None else f" Did you mean {found!r}?"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in "_- ")


def _initials(name: str) -> str:
    return "".join(part[0] for part in name.lower().replace("-", "_").replace(" ", "_").split("_") if part)
