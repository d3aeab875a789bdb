"""Names and counts as error messages and notes show them, and names of columns as people write them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from manyhands.exceptions import AnnotationError, SeveralQuestionsError
from manyhands.spelling import did_you_mean

_MAX_NAME = 40  # characters of a name in a message
_MAX_NAMES = 10
_MAX_PAIRS = 3


def normalise_name(name: str) -> str:
    """Return a column's name without case, spaces (also those without width), hyphens and underscores.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str
        The normalised name.

    Examples
    --------
    >>> normalise_name(" Worker-ID ") == normalise_name("worker_id") == normalise_name("WorkerId")
    True
    """
    return re.sub(r"[\s_\u200b-\u200d\ufeff-]+", "", name).lower()


def shorten(name: str) -> str:
    r"""Return the beginning of a long name, on one line and without control characters.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str
        At most 40 characters, and "..." if the name is longer.

    Examples
    --------
    >>> shorten("two\nlines")
    'two lines'
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in name[:_MAX_NAME])
    return shown if len(name) <= _MAX_NAME else f"{shown}..."


def listed(names: Sequence[str]) -> str:
    """Join names with commas; of more than ten names, the first ten and the number of the others.

    Parameters
    ----------
    names : sequence of str
        The names.

    Returns
    -------
    str
        The list.

    Examples
    --------
    >>> listed(["a", "b"])
    'a, b'
    """
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(shorten, names[:_MAX_NAMES])) + more


def split_question(question: str, names: Iterable[str]) -> tuple[str, str | None] | None:
    """Split ``"question=choice"`` into an existing question and the choice.

    Parameters
    ----------
    question : str
        What the caller typed; both parts may contain "=".
    names : iterable of str
        The questions of the file.

    Returns
    -------
    (name, choice) : tuple of (str, str or None), or None
        The question and the choice that is asked about, if any; None if there is no such question.

    Examples
    --------
    >>> split_question("topic=a=b", ["topic"]), split_question("x=y", ["x=y"]), split_question("z", ["x"])
    (('topic', 'a=b'), ('x=y', None), None)
    """
    names = set(names)
    if question in names:
        return question, None
    files = question.split("=")
    splits = (("=".join(files[:n]), "=".join(files[n:])) for n in range(len(files) - 1, 0, -1))
    return next((split for split in splits if split[0] in names), None)


def find_question(question: str | None, names: Sequence[str], source: str) -> tuple[str, str | None]:
    """Return the question of a file that is meant, and the choice that is asked about.

    Parameters
    ----------
    question : str or None
        What the caller typed.
    names : sequence of str
        The questions of the file.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    (name, choice) : tuple of (str, str or None)
        The question and the choice, if any.

    Raises
    ------
    SeveralQuestionsError
        If no question was given.
    AnnotationError
        If there is none of this name; the message lists the questions.
    """
    if question is None:
        raise SeveralQuestionsError(
            f"{source} holds answers to several questions: {listed(names)}. Pick one with --question NAME; inspect "
            f"describes them all, and aggregate --all-questions takes each in turn.",
            names,
        )
    found = split_question(question, names)
    if found is None:
        hint = did_you_mean(question, names)
        raise AnnotationError(f"{source} has no question {shorten(question)!r}. It has: {listed(names)}.{hint}")
    return found


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in singular or plural.

    Parameters
    ----------
    number : int
        The number.
    noun : str
        The noun in singular.

    Returns
    -------
    str
        Such as ``"2 items"``.

    Examples
    --------
    >>> counted(1, "item"), counted(0, "class")
    ('1 item', '0 classes')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def find_look_alikes(ids: Iterable[str]) -> list[tuple[str, str]]:
    """Find pairs of different ids that are equal after Unicode normalisation, such as two ways to write an accent.

    Parameters
    ----------
    ids : iterable of str
        The ids.

    Returns
    -------
    list of (str, str)
        The pairs, sorted.

    Examples
    --------
    >>> pairs = find_look_alikes(["caf" + chr(0xE9), "cafe" + chr(0x301), "cafe"])
    >>> [tuple(map(len, pair)) for pair in pairs]
    [(5, 4)]
    """
    ids = list(ids)
    alike = defaultdict(set)
    for value in ids:
        if not value.isascii():
            alike[normalize("NFC", value)].add(value)
    if any(form.isascii() for form in alike):  # the Kelvin sign is normalised to K
        for value in alike.keys() & set(ids):
            alike[value].add(value)
    groups = (sorted(group) for group in alike.values())
    return sorted((group[0], other) for group in groups for other in group[1:])


def look_alike_note(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the note on ids that look alike, with their characters escaped.

    Parameters
    ----------
    pairs : sequence of (str, str)
        The pairs.

    Returns
    -------
    str
        The sentence.
    """
    shown = "; ".join(f"{shorten(ascii(a))} and {shorten(ascii(b))}" for a, b in pairs[:_MAX_PAIRS])
    more = f"; {len(pairs)} pairs in all" if len(pairs) > _MAX_PAIRS else ""
    return f"Some ids look alike but are spelled differently, and were kept apart: {shown}{more}."
