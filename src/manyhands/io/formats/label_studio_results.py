"""Results of a Label Studio annotation: from the values of its controls to answers, and back."""

from __future__ import annotations

from typing import Any

from manyhands.io.read.json_files import as_text
from manyhands.io.read.other_kinds import FREE_TEXT, OTHERS, RANKINGS, RELATIONS, OtherKinds, kind_of_mark

Answer = str | list[str]

# Type of a result that answers a question -> key of the answer in its value.
VALUE_KEYS = {name: name for name in ("choices", "rating", "taxonomy", "number")} | {"pairwise": "selected"}
BETWEEN_LEVELS = " > "
# Keys that place a value on a part of the item: text, audio and time series, images, video.
_ON_A_LINE = {"start", "end", "startOffset", "endOffset", "globalOffsets", "instant", "ranges", "timeserieslabels"}
_ON_A_PLANE = {"x", "y", "width", "height", "points", "vertices", "rle", "radiusX", "radiusY", "bbox", "sequence"}
REGION_KEYS = frozenset(_ON_A_LINE | _ON_A_PLANE)


_OTHER_TYPES = {"textarea": FREE_TEXT, "ranker": RANKINGS, "relation": RELATIONS}


def read_results(results: list[Any], others: OtherKinds | None = None) -> tuple[dict[str, Answer], bool, bool]:
    """Return the answers about the whole item.

    Results that are not answers, such as free text, are counted, and so are values that do not match their type.

    Parameters
    ----------
    results : list
        Results of an annotation.
    others : OtherKinds or None, default=None
        Counts the results that are not answers about the whole item.

    Returns
    -------
    answers : dict of str to str or list of str
        Question -> answer.
    regional : bool
        Whether some result labels a part of the item.
    suggested : bool
        Whether an answer comes from a model's prediction.
    """
    answers: dict[str, Answer] = {}
    regional = suggested = False
    for result in results:
        if type(result) is not dict:
            continue
        value, kind, name = result.get("value"), result.get("type"), result.get("from_name")
        is_region = type(value) is dict and len(value) > 1 and not REGION_KEYS.isdisjoint(value)
        if is_region or type(kind) is not str or type(name) is not str or kind not in VALUE_KEYS:
            regional = regional or is_region
            if others is not None:
                _count(result, others)
            continue
        if type(value) is not dict:
            continue
        answer = value.get(VALUE_KEYS[kind])
        if kind == "choices" and type(answer) is list and len(answer) == 1 and type(answer[0]) is str:
            answer = answer[0]  # by far the most usual answer
        else:
            answer = as_answer(answer)
        if answer:
            answers[name] = answer if name not in answers else _as_list(answers[name]) + _as_list(answer)
            suggested = suggested or result.get("origin") == "prediction"
    return answers, regional, suggested


def _count(result: dict[str, Any], others: OtherKinds) -> None:
    """Count a result that does not answer a question about the whole item."""
    value, kind, name = result.get("value"), result.get("type"), result.get("from_name")
    found = _OTHER_TYPES.get(kind) if type(kind) is str else None
    if found is None and type(value) is dict:
        found = kind_of_mark(value) or (OTHERS if not REGION_KEYS.isdisjoint(value) else None)
    if found is not None:
        others.add(found, name if type(name) is str else None)


def as_answer(value: Any) -> Answer | None:
    """Return a JSON value as an answer.

    Parameters
    ----------
    value : object
        Value of a result.

    Returns
    -------
    str, list of str or None
        A choice or a number as text, several as a list, a path as its steps; None if it is neither.

    Examples
    --------
    >>> as_answer(4), as_answer(["a"]), as_answer([["food"], ["food", "fruit"]]), as_answer({})
    ('4', 'a', 'food > fruit', None)
    """
    if type(value) is not list:
        return _scalar(value)
    paths = [tuple(entry) if type(entry) is list else (entry,) for entry in value]
    texts = [tuple(map(_scalar, path)) for path in paths]
    whole = [path for path in texts if path and all(path)]
    begun = {path[:length] for path in whole for length in range(1, len(path))}  # parents that lead to a deeper choice
    found = [BETWEEN_LEVELS.join(map(str, path)) for path in dict.fromkeys(whole) if path not in begun]
    return found[0] if len(found) == 1 else found or None


def as_value(kind: str, label: str) -> dict[str, Any]:
    """Return the value of a result that gives this label; `read_results` is the inverse.

    Parameters
    ----------
    kind : str
        Type of the result, a key of `VALUE_KEYS`.
    label : str
        The label.

    Returns
    -------
    dict
        The value.
    """
    if kind == "choices":
        return {"choices": [label]}
    if kind == "taxonomy":
        return {"taxonomy": [label.split(BETWEEN_LEVELS)]}
    return {VALUE_KEYS[kind]: _number(label) if kind in ("rating", "number") else label}


def _scalar(value: Any) -> str | None:
    """Return a scalar as text; None for anything else."""
    return as_text(value) if isinstance(value, str | int | float) else None


def _as_list(answer: Answer) -> list[str]:
    """Return an answer as a list of choices."""
    return [answer] if isinstance(answer, str) else answer


def _number(label: str) -> int | float | str:
    """Return a label as a number, if its text is that of the number."""
    for convert in (int, float):
        try:
            number = convert(label)
        except ValueError:
            continue
        if as_text(number) == label:
            return number
    return label
