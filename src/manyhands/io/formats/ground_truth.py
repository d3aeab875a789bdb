"""SageMaker Ground Truth: the answer of each worker, in the folder of a labelling job.

Item: the number of the data object, given by a directory or ``datasetObjectId``, which is a line of the job's manifest
(``source-ref`` or ``source``). Worker: ``workerMetadata.identityData.sub`` of a private workforce, otherwise
``workerId``. Label: the value under the name of the template's element in ``answerContent``.
The output manifest alone holds consolidated labels only, so nothing can be aggregated from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import orjson

from manyhands.exceptions import AnnotationError
from manyhands.io import documents
from manyhands.io.documents import Document, Folder, Records, as_text, parse
from manyhands.io.judgements import (
    OTHERS,
    ROLE,
    Collector,
    ColumnOptions,
    Judgements,
    find_column,
    parse_time,
    seconds_of,
)
from manyhands.io.messages import listed

_FORMAT = "ground-truth"
_RESPONSES, _REQUESTS = "worker-response", "consolidation-request"
_OUTPUT = "manifests/output/output.manifest"
# Keys of an element whose workers mark parts of an item rather than choose a label.
_REGIONS = {"boundingBoxes", "polygons", "polylines", "keypoints", "cuboids", "entities", "labeledImage", "instances"}
_REGIONS |= {"annotatedResult"}
_Answers = dict[str, str | list[str]]


class _Response(NamedTuple):
    """One worker's answer to a data object."""

    place: str  # place in the file, for error messages
    number: str  # number of the data object
    worker: str | None  # worker id; None if there is no answer
    content: Any  # content of the answer; None if there is none
    time: Any = None
    seconds: Any = None  # seconds that the worker spent on it


def recognise(document: Document) -> str | None:
    """Recognise the directories of a job, or the keys of its files."""
    if isinstance(document, Folder):
        return _FORMAT if any(_kind(name) or f"/{name}".endswith(f"/{_OUTPUT}") for name in document.members) else None
    if isinstance(document, Records):
        is_part_of_job = _is_response(document.value) or _is_request(document.value) or _is_manifest(document)
        return _FORMAT if is_part_of_job else None
    return None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read worker responses, or else consolidation requests, or else the labels of the manifest."""
    options.refuse("worker", format_name, "workerMetadata.identityData.sub and workerId")
    if isinstance(document, Folder):
        return _read_folder(document, options)
    if isinstance(document, Records) and _is_manifest(document):
        return _read_manifest(document, options)
    if isinstance(document, Records) and (_is_response(document.value) or _is_request(document.value)):
        notes = _unnumbered(document)
        return _judgements(document.name, _responses(document), _Manifest([]), options, notes)
    raise AnnotationError(
        f"{document.name} is no part of a Ground Truth job. Give the folder that has annotations/ in it."
    )


def _read_folder(folder: Folder, options: ColumnOptions) -> Judgements:
    """Read the folder of a job."""
    kinds = {name: kind for name in folder.members if (kind := _kind(name))}
    used = _RESPONSES if _RESPONSES in kinds.values() else _REQUESTS
    files = [name for name, kind in kinds.items() if kind == used]
    above = -4 if used == _RESPONSES else -3
    jobs = sorted({"/".join(PurePosixPath(name).parts[:above]) for name in files})
    if len(jobs) > 1:
        raise AnnotationError(f"{folder.name} holds several jobs ({listed(jobs)}). Give the folder of one of them.")
    manifest, called = _manifest_of(folder)
    if not files:
        if manifest is None:
            raise AnnotationError(
                f"{folder.name} has no {_RESPONSES}/iteration-*/ in it. Give the folder of a whole job."
            )
        return _read_manifest(manifest, options)
    message = f"Answers were read from {len(files)} file(s) of {used}"
    message += (
        f", and the names of items from {called}." if called else "; there is no manifest that names their items."
    )
    lines = _Manifest(manifest.objects, called) if manifest is not None else _Manifest([])
    return _judgements(folder.name, _all_responses(folder, files), lines, options, {"files_used": message})


def _all_responses(folder: Folder, files: list[str]) -> Iterator[_Response]:
    """Yield the answers of all files."""
    for name in files:
        document = parse(folder.members[name])
        is_response = isinstance(document, Records) and (_is_response(document.value) or _is_request(document.value))
        if not is_response:
            raise AnnotationError(
                f"{document.name} has no `answers` of workers, which its folder should hold. Remove it."
            )
        assert isinstance(document, Records)
        yield from _responses(document)


def _responses(document: Records) -> Iterator[_Response]:
    """Yield the answers of one file: to one data object in a worker response, to several in a consolidation request."""
    if isinstance(document.value, dict):
        index = _index_in(document.name) or PurePosixPath(document.name).stem or document.name
        answers = document.value["answers"]
        if not answers:
            yield _Response(document.name, index, None, None)
        for at, answer in enumerate(answers, start=1):
            place = f"{document.name}, answer {at}"
            if not isinstance(answer, dict):
                raise AnnotationError(f"{place}: not an object but {type(answer).__name__}. Fetch the file again.")
            time, seconds = answer.get("submissionTime"), answer.get("timeSpentInSeconds")
            yield _Response(place, index, _worker_of(answer), answer.get("answerContent"), time, seconds)
        return
    for at, entry in enumerate(document.value, start=1):
        yield from _requested(entry, f"{document.name}, object {at}")


def _requested(entry: Any, place: str) -> Iterator[_Response]:
    """Yield the answers to one data object of a consolidation request; their content is JSON in a text."""
    index = entry.get("datasetObjectId") if isinstance(entry, dict) else None
    if not isinstance(index, str | int) or isinstance(index, bool) or str(index).strip() == "":
        raise AnnotationError(f"{place}: no datasetObjectId, so its item is unknown. Fetch the file again.")
    annotations = entry.get("annotations") or []
    if not isinstance(annotations, list) or not all(isinstance(annotation, dict) for annotation in annotations):
        raise AnnotationError(f"{place}: `annotations` is not a list of objects. Fetch the file again.")
    if not annotations:
        yield _Response(place, str(index), None, None)
    for annotation in annotations:
        data = annotation.get("annotationData")
        content = data.get("content") if isinstance(data, dict) else None
        try:
            content = documents.loads(content) if isinstance(content, str) and content.strip() else content
        except orjson.JSONDecodeError as error:
            raise AnnotationError(f"{place}: the content of an annotation is not JSON: {error.msg}.") from None
        yield _Response(place, str(index), _worker_of(annotation), content, annotation.get("submissionTime"))


def _judgements(
    source: str,
    responses: Iterator[_Response],
    manifest: _Manifest,
    options: ColumnOptions,
    notes: Mapping[str, str],
) -> Judgements:
    """Return all responses under the names of their items, and the objects of the manifest without an answer."""
    given = [(response, *answers_of(response.content)) for response in responses]
    answered = {response.number for response, _, _ in given}
    items, item_location, more = manifest.items(answered, options.item)
    elements = {element for _, answers, _ in given for element in answers}
    if options.label is not None and options.label not in elements:
        raise AnnotationError(f"{source} has no element {options.label!r}. It has: {listed(sorted(elements))}.")
    rows, unread = Collector(), 0
    for response, answers, marks_regions in given:
        if options.label is not None:
            answers = {options.label: answers[options.label]} if options.label in answers else {}
        reason = "no_worker" if answers and not response.worker else None
        if marks_regions:
            rows.others.add(OTHERS)
            reason = reason if answers else "region"
        time = parse_time(response.time)
        unread += time is None and response.time is not None
        rows.add(items.get(response.number, response.number), response.worker, answers, reason, time)
    for index, name in items.items():
        if index not in answered:
            rows.add(name, None, {})
    mapping = {
        "item": item_location,
        "worker": "workerMetadata.identityData.sub or workerId",
        "label": "answerContent.<element>",
        "time": "submissionTime",
    }
    notes = {**notes, **more}
    if unread:
        notes["unparsed_times"] = f"{unread} time(s) could not be read; those answers count as the older ones."
    refusal = rows.others.refusal(source) if rows.others and not rows.answers else None
    unanswered = [None] * (len(rows.item) - len(given))
    seconds, unread_seconds = seconds_of([*(response.seconds for response, _, _ in given), *unanswered])
    mapping |= {} if seconds is None else {ROLE: "timeSpentInSeconds"}
    notes |= unread_seconds
    return rows.judgements(source, _FORMAT, mapping=mapping, notes=notes, refusal=refusal, seconds=seconds)


def _worker_of(answer: Mapping[str, Any]) -> str | None:
    """Return the worker of an answer."""
    metadata = answer.get("workerMetadata")
    identity = metadata.get("identityData") if isinstance(metadata, dict) else None
    sub = identity.get("sub") if isinstance(identity, dict) else None
    name = sub if isinstance(sub, str) and sub.strip() else answer.get("workerId")
    return as_text(name) if isinstance(name, str | int) and str(name).strip() else None


def answers_of(content: Any) -> tuple[_Answers, bool]:
    """Return the answers in the content of a response."""
    answers: _Answers = {}
    marks_regions = False
    for element, value in content.items() if isinstance(content, dict) else ():
        answer = _answer(value)
        if answer is not None:
            answers[element] = answer
        elif isinstance(value, dict):
            marks_regions = marks_regions or not _REGIONS.isdisjoint(value)
    return answers, marks_regions


def _answer(value: Any) -> str | list[str] | None:
    """Return a label, several, the ticked options, or a scalar; None if it is none of these."""
    if isinstance(value, dict):
        for key in ("label", "labels"):
            if key in value:
                return None if isinstance(value[key], dict) else _answer(value[key])
        ticked = value and all(isinstance(option, bool) for option in value.values())
        return [option for option, is_ticked in value.items() if is_ticked] if ticked else None
    if isinstance(value, list):
        return [text for entry in value if not isinstance(entry, dict | list) and (text := as_text(entry)) is not None]
    return as_text(value)


def _is_response(value: Any) -> bool:
    """Whether a value is a worker response."""
    answers = value.get("answers") if isinstance(value, dict) else None
    if not isinstance(answers, list):
        return False
    has_keys = all("workerId" in entry or "answerContent" in entry for entry in answers if isinstance(entry, dict))
    return has_keys and (any(isinstance(entry, dict) for entry in answers) or len(value) == 1)


def _is_request(value: Any) -> bool:
    """Whether a value is a consolidation request."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "datasetObjectId" in first and "annotations" in first


def _unnumbered(document: Records) -> dict[str, str]:
    """Return a note if the item is unknown: only the directory of a worker response names it."""
    if not isinstance(document.value, dict) or _index_in(document.name):
        return {}
    message = "The file does not name its item, so the name of the file is used; give the folder of the job instead."
    return {"item_unknown": message}


def _index_in(name: str) -> str | None:
    """Return the number of the data object from the directory around a worker response."""
    parts = PurePosixPath(name).parts
    return parts[-2] if len(parts) > 1 and parts[-2].isdecimal() else None


def _kind(name: str) -> str | None:
    """Return what a file in the folder of a job holds, by its directories."""
    parts = PurePosixPath(name).parts
    if not name.endswith(".json"):
        return None
    if len(parts) > 2 and parts[-3].startswith("iteration-") and parts[-2].isdecimal():
        return _RESPONSES if len(parts) == 3 or parts[-4] == _RESPONSES else None
    requests = len(parts) > 2 and parts[-2].startswith("iteration-") and parts[-3] == _REQUESTS
    return _REQUESTS if requests else None


def _manifest_of(folder: Folder) -> tuple[Records | None, str]:
    """Return the output manifest of the job, or the only manifest there is, and its name."""
    names = [name for name in folder.members if name.endswith(".manifest")]
    output = [name for name in names if f"/{name}".endswith(f"/{_OUTPUT}")]
    chosen = output if len(output) == 1 else names
    document = parse(folder.members[chosen[0]]) if len(chosen) == 1 else None
    is_one = isinstance(document, Records) and _names_sources(document)
    return (document, chosen[0]) if is_one and isinstance(document, Records) else (None, "")


# ----------------------------------------------------------------------------------------------------
# The manifest of a Ground Truth job: JSON lines, one data object each, with its consolidated label.

_SOURCES = ("source-ref", "source")
_BY_NUMBER = ("index", "datasetObjectId")  # names of the number of the object as an item
_LINES_LOOKED_AT = 1000  # lines that are searched; the first ones may have no label
_METADATA = "-metadata"


class _Manifest:
    """Names of the items of a job: item 0 is in the first line."""

    def __init__(self, lines: Sequence[dict[str, Any]], name: str = "the manifest") -> None:
        """Keep the lines."""
        self.lines = lines
        self.name = name

    def items(self, answered: set[str], wanted: str | None) -> tuple[dict[str, str], str, dict[str, str]]:
        """Return the name of every item.

        Items keep their numbers if the manifest cannot name each of them by a name of its own.
        """
        by_number = {str(at): str(at) for at in range(len(self.lines))}
        location = "the number of the data object"
        if wanted is not None and wanted not in _BY_NUMBER and not self.lines:
            raise AnnotationError(f"There is no manifest that could name the items by {wanted!r}. Leave `item` out.")
        if not answered <= by_number.keys():
            message = f"{self.name} has no line for some objects, so it was not used to name items."
            return {}, location, {"manifest_mismatch": message} if self.lines else {}
        if wanted in _BY_NUMBER or not self.lines:
            return by_number, location, {}
        keys = _SOURCES if wanted is None else (self._find(wanted),)
        ids = [next((as_text(line[key]) for key in keys if line.get(key) is not None), None) for line in self.lines]
        names = [name for name in ids if name and name.strip()]
        if len(names) < len(ids) or len(set(names)) < len(names):
            message = f"{self.name} names some items twice or not at all, so items are called by their number."
            return by_number, location, {"items_by_number": message}
        used = [key for key in keys if any(key in line for line in self.lines)]
        return dict(zip(by_number, names)), " or ".join(used) + " in the manifest", {}

    def _find(self, wanted: str) -> str:
        """Return the key that the caller named."""
        keys = list(dict.fromkeys(key for line in self.lines for key in line))
        return keys[find_column(keys, wanted, "item", self.name)]


def _is_manifest(document: Records) -> bool:
    """Whether a file is the manifest of a job: lines with a source, some with an attribute and its metadata."""
    if not _names_sources(document):
        return False
    looked_at = document.objects[:_LINES_LOOKED_AT]
    return "source-ref" in looked_at[0] or any(_attributes(line) for line in looked_at)


def _names_sources(document: Records) -> bool:
    """Whether every line has a source, which is enough for a file in the place of a manifest."""
    return bool(document.objects) and all(any(key in line for key in _SOURCES) for line in document.objects)


def _read_manifest(document: Records, options: ColumnOptions) -> Judgements:
    """Read one row per line and attribute; these are consolidated labels, which cannot be aggregated."""
    rows = Collector()
    items, location, notes = _Manifest(document.objects, document.name).items(set(), options.item)
    for item, line in zip(items.values(), document.objects):
        attributes = _attributes(line)
        for metadata in attributes.values():
            by_machine = metadata.get("human-annotated") == "no"
            rows.add(item, None, {}, "prediction" if by_machine else "aggregated")
        if not attributes:
            rows.add(item, None, {})
    refusal = (
        f"{document.name} holds one consolidated label per item and not the workers' answers, so nothing can be "
        "aggregated. Give the job's folder with annotations/worker-response in it."
    )
    mapping = {"item": location, "label": "<attribute>-metadata.class-name"}
    return rows.judgements(document.name, "ground-truth", mapping=mapping, notes=notes, refusal=refusal)


def _attributes(line: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the attributes of a line that a job wrote, each with its metadata; chained jobs write several."""
    attributes = {}
    for key, value in line.items():
        if key.endswith(_METADATA) and isinstance(value, dict) and ("human-annotated" in value or "job-name" in value):
            attributes[key.removesuffix(_METADATA)] = value
    return attributes
