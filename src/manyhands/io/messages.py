"""Names and counts as error messages and notes show them, and names of columns as people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from manyhands._core.spelling import did_you_mean
from manyhands.exceptions import AnnotationError, SeveralQuestionsError

_MAX_NAME = 40  # characters of a name in a message: an id such as a UUID (36) is whole
_MAX_NAMES = 10  # names in a message: two lines of a terminal


def normalise_name(name: str) -> str:
    """Return a column's name without case, spaces (also those without width), hyphens and underscores.

    Examples
    --------
    >>> normalise_name(" Worker-ID ") == normalise_name("worker_id") == normalise_name("WorkerId")
    True
    """
    return re.sub(r"[\s_\u200b-\u200d\ufeff-]+", "", name).lower()


def shorten(name: str) -> str:
    r"""Return the beginning of a long name, on one line and without control characters.

    Examples
    --------
    >>> shorten("two\nlines")
    'two lines'
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in name[:_MAX_NAME])
    return shown if len(name) <= _MAX_NAME else f"{shown}..."


def listed(names: Sequence[str]) -> str:
    """Join names with commas; of more than ten names, the first ten and the number of the others.

    Examples
    --------
    >>> listed(["a", "b"])
    'a, b'
    """
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(map(shorten, names[:_MAX_NAMES])) + more


def split_question(question: str, names: Iterable[str]) -> tuple[str, str | None] | None:
    """Split ``"question=choice"`` into an existing question and the choice.

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
    """Return the question of a file that is meant, and the choice that is asked about."""
    if question is None:
        raise SeveralQuestionsError(
            f"{source} holds answers to several questions: {listed(names)}. Pick one with `question=`; inspect "
            f"describes them all, and aggregate with `all_questions=True` takes each in turn.",
            names,
        )
    question_and_choice = split_question(question, names)
    if question_and_choice is None:
        hint = did_you_mean(question, names)
        raise AnnotationError(f"{source} has no question {shorten(question)!r}. It has: {listed(names)}.{hint}")
    return question_and_choice


def argument(parameter: str, *values: str) -> str:
    """Return a Python argument as messages name it; the command line shows it as its own option.

    Examples
    --------
    >>> print(argument("item", "clip"), argument("missing", "?", "n/a"))
    `item="clip"` `missing=["?", "n/a"]`
    """
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"`{parameter}={texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}`"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in singular or plural.

    Examples
    --------
    >>> counted(1, "item"), counted(0, "class")
    ('1 item', '0 classes')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
