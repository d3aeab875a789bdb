"""Names as people write them and see them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from unicodedata import normalize

from manyhands.exceptions import AnnotationError

_MAX_NAME = 40  # letters of a name in a sentence
_MAX_NAMES = 10
_MAX_PAIRS = 3


def normalise_name(name: str) -> str:
    """A column's name without case, spaces, hyphens and underscores.

    >>> plain(" Worker-ID ") == plain("worker_id") == plain("WorkerId")
    True
    """
    return re.sub(r"[\s_-]+", "", name).lower()


def shorten(name: str) -> str:
    """The beginning of a long name, on one line and without what a terminal would obey."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name[:_MAX_NAME])
    return shown if len(name) <= _MAX_NAME else f"{shown}..."


def listed(names: Sequence[str]) -> str:
    """Names with commas between them; of many, the first few and how many there are besides."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(shorten, names[:_MAX_NAMES])) + more


def split_question(question: str, names: Iterable[str]) -> tuple[str, str | None] | None:
    """The question that is meant, and the choice that is asked about; None where there is no such question.

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
    """The question of a file that is meant, and the choice that is asked about; errors list what there is."""
    if question is None:
        raise AnnotationError(
            f"{source} holds answers to several questions: {listed(names)}. Pick one with --question NAME."
        )
    found = split_question(question, names)
    if found is None:
        raise AnnotationError(f"{source} has no question {shorten(question)!r}. It has: {listed(names)}.")
    return found


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "item"), counted(0, "class")
    ('1 item', '0 classes')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def find_look_alikes(ids: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of different ids that Unicode takes for the same text, such as an accent on its letter and after it.

    >>> [tuple(map(ascii, pair)) for pair in find_look_alikes(["caf\u00e9", "cafe\u0301", "cafe"])]
    [("'cafe\\\\u0301'", "'caf\\\\xe9'")]
    """
    ids = list(ids)
    alike = defaultdict(set)
    for value in ids:
        if not value.isascii():
            alike[normalize("NFC", value)].add(value)
    if any(form.isascii() for form in alike):  # the sign of Kelvin is a K
        for value in alike.keys() & set(ids):
            alike[value].add(value)
    groups = (sorted(group) for group in alike.values())
    return sorted((group[0], other) for group in groups for other in group[1:])


def look_alike_note(pairs: Sequence[tuple[str, str]]) -> str:
    """The sentence about them, in which each shows what it is made of."""
    shown = "; ".join(f"{shorten(ascii(a))} and {shorten(ascii(b))}" for a, b in pairs[:_MAX_PAIRS])
    more = f"; {len(pairs)} pairs in all" if len(pairs) > _MAX_PAIRS else ""
    return f"Some ids look alike but are spelled differently, and were kept apart: {shown}{more}."
