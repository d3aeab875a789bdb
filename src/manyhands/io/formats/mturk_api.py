"""Assignments that the API of MTurk returns, whose answers are XML in a text."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.fields import assignments_of
from manyhands.io.formats.item_columns import keep_wanted
from manyhands.io.formats.mturk_answers import Answer, as_column, read_answers
from manyhands.io.messages import listed, shorten
from manyhands.io.read.documents import Document, Records
from manyhands.io.read.durations import seconds_between
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import ROLE

HIT_AS_ITEM = "The HIT was taken for the item, as its content is not in the file; one item may be in several HITs."
_MARKS = ("AssignmentId", "WorkerId")
_SELECTIONS = ("SelectionIdentifier", "OtherSelectionText")
_TEXTS = ("FreeText", "UploadedFileKey")


def assignments_in(value: Any) -> list[Any] | None:
    """Return the assignments of one response, of several, or of a bare list.

    Parameters
    ----------
    value : object
        A JSON value.

    Returns
    -------
    list or None
        The assignments; None if the first is not one.
    """
    responses = value if isinstance(value, list) else [value]
    found: list[Any] = []
    for response in responses:
        if not isinstance(response, dict):
            return None
        inside = response.get("Assignments")
        if isinstance(inside, list):
            found += inside
        elif all(mark in response for mark in _MARKS):
            found.append(response)
        else:
            return None
    first = found[0] if found else dict.fromkeys(_MARKS)
    known = bool(responses) and isinstance(first, dict) and all(mark in first for mark in _MARKS)
    return found if known else None


def read_assignments(document: Document, options: ColumnOptions) -> Judgements:
    """Read one judgement per assignment; the item is the HIT, unless the caller names another field.

    Parameters
    ----------
    document : Document
        A parsed file.
    options : ColumnOptions
        Columns and question that the caller named.

    Returns
    -------
    Judgements
        One row per assignment.

    Raises
    ------
    AnnotationError
        If the document is not such a list, or inconsistent.
    """
    assignments = assignments_of(document, assignments_in, "the API of MTurk")
    if options.worker != "WorkerId":
        options.refuse("worker", "mturk-api", "WorkerId")
    for at, assignment in enumerate(assignments, start=1):
        if not isinstance(assignment, dict):
            raise AnnotationError(f"{document.name}, assignment {at} is not an object. Fetch it again.")
    key = options.item or "HITId"
    if assignments and not any(key in assignment for assignment in assignments):
        keys = sorted({key for assignment in assignments for key in assignment})
        raise AnnotationError(
            f"{document.name}: no assignment has {key!r}. Name one of these with --item: {listed(keys)}."
        )
    answers, locations = _read_all(assignments, document.name)
    answers = keep_wanted(answers, options.label, "", document.name)
    time, notes = parse_times(_column(assignments, "SubmitTime"))
    seconds = seconds_between(_column(assignments, "AcceptTime"), _column(assignments, "SubmitTime"))
    status = _column(assignments, "AssignmentStatus").str.to_lowercase()
    rejected = status == "rejected"
    label = next(locations[question] for question in answers) if len(answers) == 1 else "each QuestionIdentifier"
    return Judgements(
        document.name,
        "mturk-api",
        item=_column(assignments, key),
        worker=_column(assignments, "WorkerId"),
        answers=answers,
        reason=pl.Series([None], dtype=pl.String).new_from_index(0, len(rejected)).set(rejected, "rejected"),
        time=time,
        seconds=seconds,
        mapping={"item": key, "worker": "WorkerId", "label": f"Answer: {label}", "time": "SubmitTime"}
        | ({} if seconds is None else {ROLE: "AcceptTime to SubmitTime"}),
        notes=notes
        | ({} if options.item else {"item_is_hit": HIT_AS_ITEM})
        | (document.notes if isinstance(document, Records) else {}),
    )


def parse_answers(xml: str) -> dict[str, Answer]:
    """Parse a QuestionFormAnswers document; declarations and external references are refused.

    Parameters
    ----------
    xml : str
        The document.

    Returns
    -------
    dict of str to str or list of str
        Question -> answer.

    Examples
    --------
    >>> parse_answers("<Q><Answer><QuestionIdentifier>q</QuestionIdentifier><FreeText>yes</FreeText></Answer></Q>")
    {'q': 'yes'}
    """
    from defusedxml.ElementTree import fromstring

    found: dict[str, Answer] = {}
    for answer in fromstring(xml, forbid_dtd=True):
        question, texts, selections = "", [], []
        for part in answer:
            name, text = _local_name(part), part.text or ""
            if name == "QuestionIdentifier":
                question = text.strip()
            elif name in _SELECTIONS:
                selections.append(text)
            elif name in _TEXTS:
                texts.append(text)
        if question and (selections or texts):
            found[question] = selections or texts[0]
    return found


def _read_all(assignments: list[dict[str, Any]], source: str) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Return the answers of all assignments by question, and where they were found."""

    def place(row: int) -> str:
        return f"{source}, assignment {shorten(str(as_text(assignments[row].get('AssignmentId'))))}"

    given: dict[str, dict[int, Answer]] = defaultdict(dict)
    for row, assignment in enumerate(assignments):
        xml = assignment.get("Answer")
        for question, answer in (_parse(xml, place(row)) if xml is not None else {}).items():
            given[question][row] = answer
    return read_answers({name: as_column(rows, len(assignments)) for name, rows in given.items()}, place)


def _parse(xml: Any, where: str) -> dict[str, Answer]:
    """Parse the answers of one assignment."""
    from defusedxml import DefusedXmlException

    if not isinstance(xml, str):
        raise AnnotationError(f"{where}: Answer is not text, so it is not XML. Fetch it again.")
    try:
        return parse_answers(xml)
    except ParseError as error:
        raise AnnotationError(f"{where}: Answer is not complete XML ({error}). Fetch it again.") from None
    except DefusedXmlException:
        cause = "declares a document type or entities, as MTurk never does"
        raise AnnotationError(f"{where}: Answer {cause}, so it was not read. Fetch it again.") from None


def _column(assignments: list[dict[str, Any]], key: str) -> pl.Series:
    """Return a field of all assignments as text."""
    return pl.Series([_text(assignment.get(key)) for assignment in assignments], dtype=pl.String)


def _text(value: Any) -> str | None:
    """Return a scalar as text; None for anything else."""
    return None if isinstance(value, dict | list) else as_text(value)


def _local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]
