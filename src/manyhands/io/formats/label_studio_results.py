"""What an annotation of Label Studio says of its item: the values of its controls, and back."""

from __future__ import annotations

from typing import Any

from manyhands.io.read.json_files import as_text

Answer = str | list[str]

# What kind of result answers a question -> where its value has the answer.
VALUE_KEYS = {name: name for name in ("choices", "rating", "taxonomy", "number")} | {"pairwise": "selected"}
BETWEEN_LEVELS = " > "
# What places a value on a part of the item: text, sound and time, images, video.
_ON_A_LINE = {"start", "end", "startOffset", "endOffset", "globalOffsets", "instant", "ranges", "timeserieslabels"}
_ON_A_PLANE = {"x", "y", "width", "height", "points", "vertices", "rle", "radiusX", "radiusY", "bbox", "sequence"}
REGION_KEYS = frozenset(_ON_A_LINE | _ON_A_PLANE)


def read_results(results: list[Any]) -> tuple[dict[str, Answer], bool, bool]:
    """The answers on the item as a whole by question; whether a part was spoken of; whether a model spoke first.

    Results that are no answers, such as free text, are passed over; so are values that are not what their type says.
    """
    answers: dict[str, Answer] = {}
    regional = suggested = False
    for result in results:
        if type(result) is not dict:
            continue
        value, kind, name = result.get("value"), result.get("type"), result.get("from_name")
        if type(value) is not dict:
            continue
        if len(value) > 1 and not REGION_KEYS.isdisjoint(value):
            regional = True
            continue
        if type(kind) is not str or type(name) is not str or kind not in VALUE_KEYS:
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


def as_answer(value: Any) -> Answer | None:
    """A choice or a number as text, several as a list, a path as its steps; None where it is neither.

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
    """The value of a result that gives this label: what `read_results` would read as it."""
    if kind == "choices":
        return {"choices": [label]}
    if kind == "taxonomy":
        return {"taxonomy": [label.split(BETWEEN_LEVELS)]}
    return {VALUE_KEYS[kind]: _number(label) if kind in ("rating", "number") else label}


def _scalar(value: Any) -> str | None:
    return as_text(value) if isinstance(value, str | int | float) else None


def _as_list(answer: Answer) -> list[str]:
    return [answer] if isinstance(answer, str) else answer


def _number(label: str) -> int | float | str:
    for convert in (int, float):
        try:
            number = convert(label)
        except ValueError:
            continue
        if as_text(number) == label:
            return number
    return label
