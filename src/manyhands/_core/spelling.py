"""The name that a mistyped one most likely stands for: "Did you mean ...?"."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CUTOFF = 0.5  # similarity (difflib's ratio) below which a suggestion would only confuse
_NEARLY = 0.85  # similarity of words that differ by one letter, such as seed and seeds: 8/9


def closest_match(word: object, candidates: Iterable[str]) -> str | None:
    """The candidate that is most similar to a word.

    Case does not matter. In this order: the same word; one that differs by about a letter; the candidate of which the
    word is the initials (``lr`` for ``learning_rate``); one of which the word is a whole part (``rate`` for
    ``learning_rate``); the most similar one by difflib's ratio, at least 0.5. The first candidate wins a tie.

    Examples
    --------
    >>> closest_match("learning_rat", ["learning_rate", "dropout"])
    'learning_rate'
    >>> closest_match("lr", ["learning_rate", "dropout"])
    'learning_rate'
    >>> closest_match("DS", ["majority-vote", "dawid-skene"])
    'dawid-skene'
    >>> closest_match("colour", ["learning_rate", "dropout"]) is None
    True
    """
    from difflib import get_close_matches  # only errors need it

    typed = str(word).lower()
    names: dict[str, str] = {}
    for candidate in candidates:
        names.setdefault(candidate.lower(), candidate)
    if typed in names:
        return names[typed]
    nearly = get_close_matches(typed, names, n=1, cutoff=_NEARLY)
    if nearly:
        return names[nearly[0]]
    parts = {name: [part for part in re.split(r"[_\-. ]+", name) if part] for name in names}
    initials = [name for name in names if typed == "".join(part[0] for part in parts[name])]
    containing = [name for name in names if typed in parts[name]]
    exact = (initials or containing) if len(typed) > 1 else []
    matches = exact or get_close_matches(typed, names, n=1, cutoff=_CUTOFF)
    return names[matches[0]] if matches else None


def did_you_mean(word: object, candidates: Iterable[str]) -> str:
    """Return " Did you mean 'name'?", or "" where no candidate is similar to a word."""
    match = closest_match(word, candidates)
    return "" if match is None else f" Did you mean {match!r}?"


def suggest(word: object, candidates: Iterable[str], beginning: str = "There are") -> str:
    """Return the nearest name as a question, or the list of all names where none is similar.

    Examples
    --------
    >>> suggest("wava", ["wawa", "kos"]), suggest("zzz", ["wawa", "kos"])
    (" Did you mean 'wawa'?", ' There are: wawa, kos.')
    """
    names = list(candidates)
    return did_you_mean(word, names) or f" {beginning}: {', '.join(names)}."


def nearest(word: object, candidates: Iterable[str], otherwise: str | None = None) -> str:
    """Return the nearest name as the end of a sentence; where none is similar, `otherwise` or the list of all names.

    Examples
    --------
    >>> nearest("acuracy", ["accuracy", "ece"]), nearest("zzz", ["accuracy", "ece"])
    ("; the nearest is 'accuracy'", '; there are: accuracy, ece')
    """
    names = list(candidates)
    name = closest_match(word, names)
    if name is not None:
        return f"; the nearest is {name!r}"
    return f"; there are: {', '.join(names) or 'none'}" if otherwise is None else otherwise
