"""Answers of a Labelbox label: its classifications, and those nested in their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.fields import one_text

Answers = dict[str, str | list[str]]


@dataclass(frozen=True)
class Place:
    """A row of a file, for error messages.

    Attributes
    ----------
    source : str
        Name of the file.
    row : int
        Number of the row, from 1.
    """

    source: str
    row: int

    def text(self, value: Any, what: str) -> str | None:
        """Return a text, or a number as text; see `fields.one_text`."""
        return one_text(value, self.source, self.row, what)

    def part(self, value: Any, kind: type[Any], what: str) -> Any:
        """Return an object or a list; an empty one for null."""
        if value is None:
            return kind()
        if not isinstance(value, kind):
            named = "an object" if kind is dict else "a list"
            raise AnnotationError(f"{self.source}, row {self.row}: {what} is not {named}. Export the file again.")
        return value

    def objects(self, value: Any, what: str) -> list[dict[str, Any]]:
        """Return a list of objects, or refuse anything else."""
        entries: list[dict[str, Any]] = self.part(value, list, what)
        for entry in entries:
            if not isinstance(entry, dict):
                raise AnnotationError(
                    f"{self.source}, row {self.row}: an entry of {what} is not an object. Export again."
                )
        return entries


def read_answers(classifications: Any, place: Place) -> Answers:
    """Return the answers of a label; nested ones are visited without recursion, however deep they are.

    Parameters
    ----------
    classifications : list of dict or None
        Classifications of a label.
    place : Place
        The row, for error messages.

    Returns
    -------
    dict of str to str or list of str
        Question -> answer.
    """
    answers: Answers = {}
    left = [("", classifications)]
    while left:
        above, found = left.pop()
        for one in place.objects(found, "classifications"):
            question = above + (_named(one, place) or "?")
            several = one.get("checklist_answers") or one.get("answers")
            single = one.get("radio_answer") or one.get("answer")
            if isinstance(single, list):
                single, several = None, single
            if several:
                chosen = [(_named(option, place), option) for option in place.objects(several, f"{question}: answers")]
                answers[question] = [text for text, _ in chosen if text]
                left += [(f"{question}/{text}/", option.get("classifications")) for text, option in chosen]
            elif isinstance(single, dict):
                text = _named(single, place)
                answers |= {question: text} if text else {}
                left.append((f"{question}/", single.get("classifications")))
            else:
                content = place.part(one.get("text_answer"), dict, f"{question}: text_answer").get("content")
                text = place.text(content if single is None else single, question)
                answers |= {question: text} if text else {}
    return answers


def _named(entry: Mapping[str, Any], place: Place) -> str | None:
    """Return the stable name of a question or an answer, or else the displayed one, which may change."""
    value, name = place.text(entry.get("value"), "value"), place.text(entry.get("name"), "name")
    return value or name or place.text(entry.get("title"), "title")


def shown_names(entries: Sequence[Mapping[str, Any]], question: str) -> tuple[str, bool, dict[str, str]]:
    """Return how the ontology shows a question and its answers, by which Labelbox imports predictions.

    Parameters
    ----------
    entries : sequence of mapping
        Entries of an export, v1 or v2.
    question : str
        The question, as `read_answers` names it; with several projects ``project/question``.

    Returns
    -------
    name : str
        Name of the question.
    several : bool
        Whether several answers may be chosen.
    options : dict of str to str
        Answer, as `read_answers` names it -> its name; empty for free text.

    Raises
    ------
    AnnotationError
        If no label has this question, or it is asked within another answer.
    """
    name, several, options = "", False, dict[str, str]()
    for entry in entries:
        for prefix, one in _classifications(entry):
            place = Place("the export", 1)
            if question not in (_named(one, place), prefix + (_named(one, place) or "")):
                continue
            name = str(one.get("name") or one.get("title") or question)
            single = one.get("radio_answer") or one.get("answer")
            many = one.get("checklist_answers") or one.get("answers") or (single if isinstance(single, list) else [])
            several = several or bool(many)
            for option in [*many, single]:
                if isinstance(option, dict):
                    options[_named(option, place) or ""] = str(option.get("name") or option.get("title"))
    if not name:
        raise AnnotationError(
            f"{question!r} is a question within an answer, or of an export without names. Labelbox imports predictions "
            "for questions of the whole data row only."
        )
    return name, several, options


def _classifications(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the classifications of all labels of an entry, with the prefix of their project."""
    for key, project in (entry.get("projects") or {}).items():
        names = [key, str(project.get("name"))]
        for label in project.get("labels") or ():
            for one in (label.get("annotations") or {}).get("classifications") or ():
                yield from ((f"{name}/", one) for name in names)
    label = entry.get("Label")
    if isinstance(label, dict):
        yield from (("", one) for one in label.get("classifications") or ())


def one_or_several(answer: Any, question: str, place: Place) -> str | list[str]:
    """Return an answer of the oldest format as text, or as a list of texts.

    Parameters
    ----------
    answer : object
        The answer.
    question : str
        Its question, for error messages.
    place : Place
        The row, for error messages.

    Returns
    -------
    str or list of str
        The answer.
    """
    if isinstance(answer, list):
        return [text for text in (place.text(entry, question) for entry in answer) if text]
    return place.text(answer, question) or ""
