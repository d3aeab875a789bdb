"""Judgements: the table that every format is turned into, and what the formats share to make it.

A *judgement* is one worker's answer to one question about one item. The formats only find where items, workers,
answers and times are in a file. Which question is meant (`reading`) and which rows count (`row_filtering`) is decided
in one place for all formats.

The file: `ColumnOptions`, `Judgements` and `Collector`; columns by name; labels that are no classes; times; working
time; columns of text as codes; pairwise verdicts.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands._core import elementary
from manyhands._core.encoding import Codes
from manyhands.em.kernels import thread_count
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.documents import Table
from manyhands.io.messages import argument, counted, listed, normalise_name, shorten
from manyhands.io.text_tables import Locate
from manyhands.metrics.position_bias import PositionBias, recognise_answers

if TYPE_CHECKING:
    from manyhands.trust.machines import WorkerKind


# Reasons why a row does not count. Rows of the first group were not written by workers of the crowd.
NON_WORKER_REASONS = ("prediction", "gold_account", "aggregated")
REASONS = (*NON_WORKER_REASONS, "draft", "skipped", "rejected", "discarded", "tainted", "region", "no_worker", "blank")
_FileRows = tuple[str, int, Locate | None]  # name of a file, its number of rows, and how to find a row in it


@dataclass(frozen=True)
class ColumnOptions:
    """Options of the caller that say where things are in a file."""

    item: str | None = None  # name of the column or field with the item ids
    worker: str | None = None  # name of the column or field with the worker ids
    label: str | None = None  # name of the column or field with the labels
    question: str | None = None  # name of the question, possibly with a choice: ``"topic=refund"``
    missing: tuple[str, ...] = ()  # labels that mean "no label"
    weight: str | None = None  # name of the column with the weight of each label
    label_probs: str | None = None  # names of the columns with the probability of each class, separated by commas
    group_column: str | None = None  # name of a column that describes workers
    verdicts: str | None = None  # what the label of a pairwise verdict names: "position" or "answer"
    time: str | None = None  # name of the column with the time of each label
    seconds: str | None = None  # name of the column with the seconds that each label took

    def refuse(self, role: str, format_name: str, instead: str) -> None:
        """Refuse an option that a format cannot follow, rather than ignore it."""
        wanted = getattr(self, role)
        if wanted is not None:
            raise AnnotationError(
                f"{format_name} has its {role}s in {instead}, so {argument(role, shorten(wanted))} has no meaning."
            )


@dataclass
class Judgements:
    """One row per judgement of an export."""

    source: str  # name of the file
    format: str  # name of the format
    item: pl.Series  # item id of each row; null where there is none
    worker: pl.Series  # worker id of each row; null where there is none
    # question -> answer of each row: text, or lists of text where several choices may be selected; null or an empty
    # list where the question was not answered
    answers: dict[str, pl.Series]
    # why a row does not count (one of `REASONS`), null for an ordinary judgement; None if all rows are ordinary
    reason: pl.Series | None = None
    # microseconds since 1970, null where unknown; decides which of two answers is the later one
    time: pl.Series | None = None
    seconds: pl.Series | None = None  # seconds that the worker spent on the item, null where unknown
    # where item, worker, label, time and gold were found, in the terms of the file
    mapping: dict[str, str] = field(default_factory=dict)
    # question -> item -> tuple of the answers known to be right
    gold: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # warnings: code -> sentence
    workers_known: bool = True  # false if the file counts votes without naming the workers
    refusal: str | None = None  # why this file cannot be used at all, or None
    # all columns of a table; they distinguish a blank line from a row in which item, worker and label are empty
    other_columns: pl.DataFrame | None = None
    # true if items have no id but their number in the file, so that two files cannot be read together
    items_numbered: bool = False
    # number of rows of each question, if the rows are those of one question only
    questions: dict[str, int] | None = None
    # the files that were read together: name, number of rows, and a function that finds a row in the file
    files: tuple[_FileRows, ...] = ()
    kinds: dict[str, WorkerKind] = field(default_factory=dict)  # what the file says of workers: people or machines
    # weight of each row, such as the probability that a judge gives to its label; None for rows without weights
    weight: pl.Series | None = None
    # of pairwise verdicts: whether the second answer was shown first, and whether the label names the one shown first
    swapped: pl.Series | None = None
    names_first: pl.Series | None = None
    # what a column says of each worker, one for each file: worker -> value -> number of rows
    groups: list[dict[str, Counter[str]]] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.item)

    def place(self, row: int) -> str:
        """Return the file and position of a row, for error messages."""
        source, locate = self.source, None
        for piece in self.files:
            source, n_rows, locate = piece
            if row < n_rows:
                break
            row -= n_rows
        line = None if locate is None else locate(row)
        return f"{source}, {line or f'row {row + 1}' + (' after the header' if self.format == 'long' else '')}"

    def release(self) -> None:
        """Free the memory of items, workers and answers, once they are encoded."""
        self.item = self.worker = pl.Series([], dtype=pl.String)
        self.answers, self.other_columns = {}, None


class Collector:
    """Collects judgements row by row, for exports that are not tables.

    Examples
    --------
    >>> rows = Collector()
    >>> rows.add("item-1", "ann", {"sentiment": ["negative"]})
    >>> rows.add("item-2", "ann", {})
    >>> rows.judgements("export.json", "some-tool").answers["sentiment"].to_list()
    [['negative'], None]
    """

    def __init__(self) -> None:
        """Start without rows."""
        self.item: list[str | None] = []
        self.worker: list[str | None] = []
        self.reason: list[str | None] = []
        self.time: list[int | None] = []
        self.answers: dict[str, dict[int, str | Sequence[str]]] = defaultdict(dict)
        self.gold: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        self.others = OtherKinds()

    def add(
        self,
        item: str | None,
        worker: str | None,
        answers: Mapping[str, str | Sequence[str] | None],
        reason: str | None = None,
        time: int | None = None,
    ) -> None:
        """Add the response of one worker to one item."""
        row = len(self.item)
        self.item.append(item)
        self.worker.append(worker)
        self.reason.append(reason)
        self.time.append(time)
        for question, answer in answers.items():
            if answer is not None:
                self.answers[question][row] = answer

    def judgements(self, source: str, format_name: str, **more: Any) -> Judgements:
        """Return all rows so far; a question that a response does not answer is null in it."""
        if self.answers:  # otherwise the format refuses the export
            more["notes"] = more.get("notes", {}) | self.others.notes(source)
        return Judgements(
            source,
            format_name,
            item=pl.Series(self.item, dtype=pl.String),
            worker=pl.Series(self.worker, dtype=pl.String),
            answers={question: self._column(given) for question, given in self.answers.items()},
            reason=pl.Series(self.reason, dtype=pl.String) if any(self.reason) else None,
            time=pl.Series(self.time, dtype=pl.Int64) if any(t is not None for t in self.time) else None,
            gold=dict(self.gold),
            **more,
        )

    def _column(self, given: Mapping[int, str | Sequence[str]]) -> pl.Series:
        """Return the answers to one question: text if every answer is one choice, otherwise lists."""
        rows = range(len(self.item))
        if all(isinstance(answer, str) for answer in given.values()):
            return pl.Series([given.get(row) for row in rows], dtype=pl.String)
        lists = {row: (answer,) if isinstance(answer, str) else tuple(answer) for row, answer in given.items()}
        code = {answer: at for at, answer in enumerate(dict.fromkeys(lists.values()))}
        codes = pl.Series([code[lists[row]] if row in lists else None for row in rows], dtype=pl.UInt32)
        return pl.Series(list(code), dtype=pl.List(pl.String)).gather(codes)  # polars is slow to create many lists


# ----------------------------------------------------------------------------------------------------
# Columns by name: the column that an option names, found whatever its spelling.


def find_column(header: Sequence[str], wanted: str, role: str, source: str) -> int:
    """Find the column that the caller named; case, spaces, hyphens and underscores do not matter."""
    places = [at for at, name in enumerate(header) if name == wanted]
    places = places or [at for at, name in enumerate(header) if normalise_name(name) == normalise_name(wanted)]
    if not places:
        raise AnnotationError(
            f"Column {shorten(wanted)!r} is not in {source}. It has: {listed(header)}. {column_hint(role)}"
        )
    return single_column(header, places, role, source)


def single_column(header: Sequence[str], columns: Sequence[int], role: str, source: str) -> int:
    """Return the only column found for a role."""
    if len(columns) > 1:
        alike = list(dict.fromkeys(header[at] for at in columns))
        alike_names = " and ".join(repr(shorten(name)) for name in alike)
        remedy = column_hint(role) if len(alike) == len(columns) else "Rename all but one."
        raise AnnotationError(f"{source} has {len(columns)} columns for the {role}, called {alike_names}. {remedy}")
    return columns[0]


_PARAMETERS = {
    "column": "columns",
    "label-probs": "label_probs",
    "group-column": "group_column",
    "id-column": "id_column",
}


def column_hint(role: str) -> str:
    """Return the end of an error message: how to name a column."""
    return f"Name the right one with `{_PARAMETERS.get(role, role)}=`."


# ----------------------------------------------------------------------------------------------------
# Labels that are not classes of whole items: spans, boxes, relations, free text, rankings; found, named, not read.

SPANS, BOXES, POLYGONS, KEYPOINTS = "spans", "boxes", "polygons", "keypoints"
MASKS, RELATIONS, FREE_TEXT, RANKINGS = "masks", "relations", "free text", "rankings"
OTHERS = "labels of parts of items"
_READ = "manyhands reads labels of whole items: choices, ratings, taxonomies, numbers."
_AS_ITEMS = "To compare the classes of parts, write a table in which each part is an item: item, worker, label."
_REMEDIES = {
    FREE_TEXT: "To compare texts, group them into classes first: a table with item, worker, label.",
    RANKINGS: "To compare rankings, make each pair an item, whose label is the preferred one.",
}
# Keys of a mark -> its kind, the most particular first; all keys of a set must be there.
_BY_KEYS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(keys.split()), kind)
    for keys, kind in (
        ("from_id to_id", RELATIONS),
        ("head child", RELATIONS),
        ("head tail", RELATIONS),
        ("rank", RANKINGS),
        ("ranker", RANKINGS),
        ("rle", MASKS),
        ("mask", MASKS),
        ("counts size", MASKS),
        ("points", POLYGONS),
        ("vertices", POLYGONS),
        ("polygon", POLYGONS),
        ("line", POLYGONS),
        ("width height", BOXES),
        ("bbox", BOXES),
        ("bounding_box", BOXES),
        ("xmin xmax", BOXES),
        ("radiusX radiusY", BOXES),
        ("sequence", BOXES),
        ("x y", KEYPOINTS),
        ("point", KEYPOINTS),
        ("start end", SPANS),
        ("startOffset endOffset", SPANS),
        ("start_offset end_offset", SPANS),
        ("token_start token_end", SPANS),
        ("globalOffsets", SPANS),
        ("location", SPANS),
        ("ranges", SPANS),
        ("instant", SPANS),
    )
)


def kind_of_mark(value: Any) -> str | None:
    """Return what kind of mark a JSON value is.

    Examples
    --------
    >>> kind_of_mark({"start": 0, "end": 4, "labels": ["PER"]})
    'spans'
    >>> kind_of_mark([{"left": 1, "top": 2, "width": 9, "height": 9, "label": "cat"}])
    'boxes'
    >>> kind_of_mark({"choices": ["a"]}) is None
    True
    """
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if isinstance(entry, Mapping):
            return next((kind for keys, kind in _BY_KEYS if keys <= entry.keys()), None)
        if isinstance(entry, list) and len(entry) == 3 and [type(part) for part in entry[:2]] == [int, int]:
            return SPANS  # [start, end, label]
    return None


class OtherKinds:
    """Counts what an export has beside classes of whole items.

    Examples
    --------
    >>> found = OtherKinds()
    >>> found.add("spans", "ner")
    >>> found.add("free text", "comment")
    >>> print(found)
    spans (ner) and free text (comment)
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._found: dict[str, Counter[str]] = {}

    def add(self, kind: str, name: str | None = None) -> None:
        """Count one mark or text."""
        counts = self._found.setdefault(kind, Counter())
        if name:
            counts[name] += 1

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return bool(self._found)

    def __str__(self) -> str:
        """Return what was found, with the names of its questions."""
        parts = [f"{kind} ({_names(names)})" if names else kind for kind, names in self._found.items()]
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

    def notes(self, source: str) -> dict[str, str]:
        """Return the note on what was not read, for an export that has classes as well."""
        return {"not_read": f"{source} also has {self}, which were not read: {_READ}"} if self else {}

    def refusal(self, source: str) -> str:
        """Return the sentence for an export that has nothing else."""
        remedies = dict.fromkeys(_REMEDIES.get(kind, _AS_ITEMS) for kind in self._found)
        return f"{source} has only {self}, not classes of whole items. {_READ} {' '.join(remedies)}"


def _names(names: Iterable[str]) -> str:
    """Return the names of questions."""
    return listed([shorten(name) for name in names])


# ----------------------------------------------------------------------------------------------------
# Times as annotation tools write them, in microseconds since 1970.
#
# They only decide which of two answers is the later one. A time that cannot be parsed is null and counted in a note.

Notes = dict[str, str]

# Abbreviations of time zones that MTurk and others use, in hours from UTC; ambiguous abbreviations are left out.
_ZONES = {"UTC": 0, "GMT": 0, "Z": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "EST": -5, "EDT": -4, "CET": 1}
_ZONES |= {"CEST": 2, "BST": 1, "JST": 9}
_YEAR = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTHS = {_YEAR[at : at + 3]: at // 3 + 1 for at in range(0, len(_YEAR), 3)}
_ZONE = r"\s*(?P<zone>[A-Z]{1,4}|[+-]\d\d(?::?\d\d)?)?"
_CLOCK = r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[T ]{_CLOCK}{_ZONE}",
        rf"(?:[A-Z][a-z]{{2}},? )?(?P<name>[A-Z][a-z]{{2}}) +(?P<day>\d\d?) {_CLOCK}{_ZONE} (?P<year>\d{{4}})",
        rf"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{{4}}) {_CLOCK}(?: (?P<half>[AP]M))?{_ZONE}",
        rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{{4}}),? {_CLOCK}(?: Uhr)?{_ZONE}",  # the day first
    )
)
_ISO_FORMAT = "%Y-%m-%dT%H:%M:%S%.fZ"  # the most usual format; a column of it is parsed at once
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# (smallest number, factor to microseconds): times since 1973 in nano-, micro-, milliseconds and seconds do not overlap.
_EPOCHS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (0.0, 1e6))
_BEYOND = 1e19  # larger numbers are no times, and do not fit into 64 bits


def parse_times(column: pl.Series) -> tuple[pl.Series, Notes]:
    """Parse a column of times."""
    result = column.str.to_datetime(_ISO_FORMAT, time_unit="us", strict=False).dt.epoch("us")
    rest = column.filter(result.is_null()).unique().drop_nulls()
    if len(rest):
        parsed = {text: parse_time(text) for text in rest}
        result = result.fill_null(column.replace_strict(parsed, default=None, return_dtype=pl.Int64))
    unread = column.filter(result.is_null() & column.is_not_null())
    unread = unread.filter(unread.str.strip_chars() != "")
    if not len(unread):
        return result, {}
    message = (
        f"{len(unread)} time(s) could not be read (such as {unread[0][:40]!r}); those rows count as the older ones."
    )
    return result, {"unparsed_times": message}


def parse_time(value: object) -> int | None:
    """Parse one time.

    Examples
    --------
    >>> parse_time("1970-01-01T00:00:01Z"), parse_time("Thu Jan 01 01:00:00 PST 1970"), parse_time(1.5), parse_time("?")
    (1000000, 32400000000, 1500000, None)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_epoch(value)
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text):
        return _from_epoch(float(text))
    if re.fullmatch(r"\d{4}-\d\d-\d\d|\d\d?\.\d\d?\.\d{4}", text, re.ASCII):
        text += " 00:00"
    return _from_words(text)


def _from_epoch(number: float) -> int | None:
    """Convert a number since 1970; its size shows the unit."""
    if not abs(number) < _BEYOND:  # true for NaN, too
        return None
    scale = next(scale for least, scale in _EPOCHS if abs(number) >= least)
    return math.floor(number * scale + 0.5)


def _from_words(text: str) -> int | None:
    """Parse a written time."""
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if match is None:
        return None
    part = match.groupdict()
    offset = _offset(part["zone"] or "UTC")
    month = _MONTHS.get(part["name"]) if "name" in part else int(part["month"])
    hour, half = int(part["hour"]), part.get("half")
    if half and not 1 <= hour <= 12:
        return None
    hour = hour if not half else hour % 12 + (12 if half == "PM" else 0)
    if offset is None or month is None:
        return None
    micro = int((part["fraction"] or "0")[:6].ljust(6, "0"))
    clock = (hour, int(part["minute"]), int(part["second"] or 0), micro)
    try:
        return _since_epoch(datetime(int(part["year"]), month, int(part["day"]), *clock, tzinfo=timezone(offset)))
    except ValueError:
        return None


def _offset(zone: str) -> timedelta | None:
    """Return the difference of a time zone from UTC; None if it is unknown."""
    if zone[0] not in "+-":
        hours = _ZONES.get(zone)
        return None if hours is None else timedelta(hours=hours)
    size = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return None if size >= timedelta(days=1) else -size if zone[0] == "-" else size


def _since_epoch(when: datetime) -> int:
    """Return microseconds since 1970."""
    return (when - _EPOCH) // _MICROSECOND


# ----------------------------------------------------------------------------------------------------
# Working time: how many seconds a worker spent on a label, as annotation tools write it.
#
# Label Studio has ``lead_time``, MTurk ``WorkTimeInSeconds``; other tools write when a task was begun and submitted.
# Times are used for a summary of each worker only; a time that cannot be read is null, and counted in a note.

_CLOCK_DURATION = r"^(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)$"
_MICROSECONDS = 1e6  # of a second


_DECIMAL_COMMA = r"^-?(\d{1,3}(\.\d{3})+|\d+),\d+$"  # 5,4 and 1.234,5
_THOUSANDS = r"^-?\d{1,3}(,\d{3})+$"  # 1,234 may be either


def parse_decimals(text: pl.Series) -> pl.Series:
    """Parse a column of numbers, with decimal points or decimal commas; what is no number is null.

    A comma is decimal if some number of the column shows it: 5,4 does, and 1,234 does not. A column in which other
    numbers have a decimal point has no decimal commas.
    """
    numbers = text.cast(pl.Float64, strict=False)
    others = text.filter(numbers.is_null() & text.is_not_null())
    commas = others.filter(others.str.contains(_DECIMAL_COMMA))
    if not len(commas) or commas.str.contains(_THOUSANDS).all():
        return numbers
    if text.filter(numbers.is_not_null()).str.contains(".", literal=True).any():
        return numbers
    is_comma = text.str.contains(_DECIMAL_COMMA).fill_null(False)
    plain = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return numbers.fill_null(plain.set(~is_comma, None).cast(pl.Float64, strict=False))


def parse_seconds(column: pl.Series) -> tuple[pl.Series, Notes]:
    """Parse a column of durations."""
    text = column.cast(pl.String).str.strip_chars()
    seconds = parse_decimals(text)
    if seconds.null_count() > text.null_count():
        parts = pl.DataFrame({"text": text}).select(
            pl.col("text").str.extract(_CLOCK_DURATION, group).cast(pl.Float64, strict=False).alias(name)
            for group, name in ((1, "hours"), (2, "minutes"), (3, "seconds"))
        )
        clock = parts["hours"].fill_null(0.0) * 3600 + parts["minutes"] * 60 + parts["seconds"]
        seconds = seconds.fill_null(clock)
    seconds = pl.select(pl.when(seconds.is_finite() & (seconds >= 0)).then(seconds)).to_series()
    unread = text.filter(seconds.is_null() & text.is_not_null())
    unread = unread.filter(unread != "")
    if not len(unread):
        return seconds, {}
    message = f"{len(unread)} working time(s) could not be read (such as {unread[0][:40]!r}); they are left out."
    return seconds, {"unparsed_working_times": message}


def seconds_between(begun: pl.Series, submitted: pl.Series) -> pl.Series | None:
    """Seconds between two columns of times."""
    start, end = parse_times(begun)[0], parse_times(submitted)[0]
    seconds = (end - start).cast(pl.Float64) / _MICROSECONDS
    seconds = pl.select(pl.when(seconds >= 0).then(seconds)).to_series()
    return seconds if seconds.count() else None


def divide_by_task(seconds: pl.Series | None, *keys: pl.Series) -> pl.Series | None:
    """Divide the time of a task that shows several items by their number."""
    if seconds is None:
        return None
    rows = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(keys)])
    n_rows = rows.select(pl.len().over(rows.columns)).to_series()
    return seconds / n_rows


NAMES = (  # of columns with a number of seconds, as tools and people name them
    "lead_time", "worktimeinseconds", "work_time_in_seconds", "working_time", "work_time", "seconds",
    "duration_seconds", "duration_in_seconds", "time_spent", "time_spent_seconds", "timespentinseconds",
    "time_spent_in_seconds", "response_time", "answer_time", "elapsed_seconds", "seconds_spent", "seconds_to_label",
    "seconds_to_create",
)  # fmt: skip
_MILLISECONDS = ("lead_time_ms", "duration_ms", "response_time_ms", "time_spent_ms", "elapsed_ms", "working_time_ms")
ROLE = "working_time"  # in the mapping of a file


def seconds_of(values: Sequence[Any]) -> tuple[pl.Series | None, Notes]:
    """Parse the durations of JSON objects."""
    texts = [
        str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None for value in values
    ]
    seconds, notes = parse_seconds(pl.Series(texts, dtype=pl.String))
    return (seconds if seconds.count() else None), notes


def find_seconds(
    table: Table, taken: Collection[int], wanted: str | None = None
) -> tuple[pl.Series | None, dict[str, str], Notes]:
    """Find and parse the column of working times of a table, by its usual names or the name that is wanted."""
    if wanted is not None:
        at = find_column(table.header, wanted, "seconds", table.name)
        seconds, notes = parse_seconds(table.column(at))
        if not seconds.count():
            raise AnnotationError(f"The column {table.header[at]!r} of {table.name} has no numbers of seconds.")
        return seconds, {ROLE: table.header[at]}, notes
    names = [normalise_name(name) for name in table.header]
    for usual, factor in ((NAMES, 1.0), (_MILLISECONDS, 1e-3)):
        places = [at for at, name in enumerate(names) if name in map(normalise_name, usual) and at not in taken]
        if places:
            seconds, notes = parse_seconds(table.column(places[0]))
            return (seconds * factor, {ROLE: table.header[places[0]]}, notes) if seconds.count() else (None, {}, {})
    return None, {}, {}


# ----------------------------------------------------------------------------------------------------
# Columns of text as integer codes, fast for long tables.

_columns = elementary.load("_columns")
# Python draws it for each process, so that no file can be made whose texts all have the same hash.
_SEED = (hash("manyhands") | 1) % 2**64
_WORTH_A_THREAD = 100_000  # cells; shorter columns are encoded faster than threads start


class Coded(NamedTuple):
    """A column of text as codes."""

    codes: Codes  # index into `values`; -1 where a cell is null
    values: pl.Series  # the distinct texts, in the order of Python's `sorted`, or in that of their first appearance


def code_text(column: pl.Series, by_appearance: bool = False) -> Coded:
    """Encode a column of text.

    Examples
    --------
    >>> codes, values = code_text(pl.Series(["b", None, "a", "b"]))
    >>> codes.tolist(), values.to_list()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    coded = None if _columns is None else _code_in_table(column, by_appearance)
    return _code_as_enum(column, by_appearance) if coded is None else coded


def order_of_texts(values: pl.Series) -> npt.NDArray[np.intp]:
    """Return the order that sorts texts as Python's `sorted` does.

    Examples
    --------
    >>> order_of_texts(pl.Series(["b", "c", "a"])).tolist()
    [2, 0, 1]
    """
    order = np.empty(len(values), np.int32)
    if _columns is None or _columns.order_text(values.__arrow_c_stream__(), order) < 0:
        return values.arg_sort().to_numpy().astype(np.intp)
    return order.astype(np.intp)


def code_columns(columns: Mapping[str, pl.Series]) -> dict[str, Coded]:
    """Encode items, workers and labels in parallel threads: items by first appearance, the others sorted."""
    if sum(map(len, columns.values())) < _WORTH_A_THREAD:
        return {role: code_text(column, role == "item") for role, column in columns.items()}
    with ThreadPoolExecutor(min(thread_count(), max(len(columns), 1))) as pool:
        return dict(zip(columns, pool.map(code_text, columns.values(), [role == "item" for role in columns])))


def _code_in_table(column: pl.Series, by_appearance: bool) -> Coded | None:
    """Encode by a hash table over the memory of the column; None if polars stores it in an unknown layout."""
    codes = np.empty(len(column), np.int32)
    first = np.empty(len(column), np.int64)  # only the written part takes memory, one entry per distinct text
    n_distinct = _columns.code_text(column.__arrow_c_stream__(), _SEED, codes, first)
    if n_distinct < 0:
        return None
    distinct = column.gather(first[:n_distinct].copy())
    del first
    if by_appearance:  # the table numbers texts in this order
        return Coded(codes, distinct)
    order = np.empty(n_distinct, np.int32)
    _columns.order_text(distinct.__arrow_c_stream__(), order)
    place = np.empty(n_distinct + 1, np.int32)
    place[0] = -1  # of null
    place[order + 1] = np.arange(n_distinct, dtype=np.int32)
    _columns.look_up(-1, codes, place, codes)
    return Coded(codes, distinct.gather(order))


def _code_as_enum(column: pl.Series, by_appearance: bool) -> Coded:
    """Encode by polars only: slower, with the same result."""
    texts = column.drop_nulls()
    values = texts.unique(maintain_order=True) if by_appearance else texts.unique().sort()
    codes = column.cast(pl.Enum(values)).to_physical().cast(pl.Int32).fill_null(-1)
    return Coded(codes.to_numpy(writable=True), values)


# ----------------------------------------------------------------------------------------------------
# Pairwise verdicts in tables: the column with the presentation order, and whether a label names a place or an answer.
#
# A judge compares two answers, often twice, with the answers in both orders. The order is then part of what was asked:
# two verdicts of a judge on one pair in two orders are not repeated answers. A label may name the place of the better
# answer ("the first one") or the answer itself; after reading it names the answer, by its place in the original order.

POSITION, ANSWER = "position", "answer"
VERDICTS = (POSITION, ANSWER)  # what a label names
ORDER = "presentation_order"  # in the mapping of a file

_SURE_NAMES = ("swapped", "isswapped")  # names of columns that can hardly mean anything else
_ORDER_NAMES = (*_SURE_NAMES, "order", "position", "presentationorder")  # as `normalise_name` returns them
_ORDERS = (("ab", "ba"), ("original", "swapped"), ("0", "1"), ("false", "true"), ("1", "2"))  # original order, swapped
_SURE_ORDERS = _ORDERS[:2]
_TELLING = ({"first", "second"}, {"left", "right"})  # labels that can only name places
_ALLOWED = "ab and ba, 0 and 1, false and true, 1 and 2, or original and swapped"


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of a table: their order of presentation, and what they name."""

    at: int  # column of the order
    swapped: pl.Series  # whether the second answer was shown first; null on rows without a label
    label: pl.Series  # labels that name the answer
    names_first: pl.Series  # whether the label names the answer that was shown first; null for ties, or if unknown


def check_verdicts(verdicts: str | None) -> None:
    """Refuse a word that says nothing about labels."""
    if verdicts is not None and verdicts not in VERDICTS:
        raise ParameterError(f"`verdicts` is {verdicts!r}; it may be position or answer: what a label names.")


def find_verdicts(table: Table, place: Mapping[str, int], verdicts: str | None) -> Verdicts | None:
    """Return the verdicts of a table, or None where it has no column with the order of presentation.

    Without `verdicts`, a column called order or position with numbers is one only if a worker gave an item two labels
    under two values, and the labels name two answers: in other tables such a column is the order of the tasks.
    """
    column = _find_column(table, place.values(), verdicts)
    if column is None:
        return None
    at, words, (_, other) = column
    label = table.column(place["label"])
    if verdicts is None and not _is_sure(table, column) and not _asked_twice(table, place, words):
        return None
    has_label = (label.fill_null("").str.strip_chars() != "").fill_null(False)
    blank = (has_label & (words == "")).arg_true()
    if len(blank):
        raise AnnotationError(
            f"{table.place(int(blank[0]))}: the presentation order ({table.header[at]}) is blank. Fill it in or remove "
            f"the row; {len(blank)} such row(s) in all."
        )
    swapped = pl.select(pl.when(words != "").then(words == other)).to_series()
    labels = label.drop_nulls().unique().sort().to_list()
    places = recognise_answers(labels)
    verdicts = verdicts or _told_by_labels(labels)
    if verdicts is None:
        seen = " and ".join(sorted(words.filter(words != "").unique().to_list()))
        raise AnnotationError(
            f"{table.name} has pairwise verdicts, with the order of presentation in {table.header[at]!r} ({seen}). Say "
            f"what a label names: `verdicts=answer` if it names the answer itself, whatever its place, or "
            f"`verdicts=position` if it names the place, such as the answer shown first. If the column is something "
            f"else, rename it."
        )
    if verdicts == POSITION:
        label = _turned(label, swapped, places, table, labels)
    return Verdicts(at, swapped, label, _names_first(label, swapped, places))


def note_unused(table: Table, place: Mapping[str, int]) -> dict[str, str]:
    """Return the note on an order of presentation that is not read, since labels have weights."""
    column = _find_column(table, place.values(), None)
    if column is None or not _is_sure(table, column):
        return {}
    return {
        "order_unused": f"{table.name} has an order of presentation ({table.header[column[0]]}), which is not used, "
        f"since labels have weights: verdicts of a judge on a pair in both orders count as repeated answers."
    }


def _is_sure(table: Table, column: tuple[int, pl.Series, tuple[str, str]]) -> bool:
    """Whether a column can hardly be anything but an order of presentation, by its values or its name."""
    at, _, orders = column
    return orders in _SURE_ORDERS or normalise_name(table.header[at]) in _SURE_NAMES


def _find_column(
    table: Table, taken: Collection[int], verdicts: str | None
) -> tuple[int, pl.Series, tuple[str, str]] | None:
    """Return the column of the order, its words, and those of the two orders."""
    candidates = [
        at for at, name in enumerate(table.header) if at not in taken and normalise_name(name) in _ORDER_NAMES
    ]
    fitting, unfit = [], []
    for at in candidates:
        words = table.column(at).fill_null("").str.strip_chars().str.to_lowercase()
        values = set(words.unique().to_list()) - {""}
        orders = [pair for pair in _ORDERS if values and values <= set(pair)]
        if values == {"1"}:  # of 0 and 1, or of 1 and 2
            orders = orders[:1] if normalise_name(table.header[at]) in _SURE_NAMES else []
        if orders:
            fitting.append((at, words, orders[0]))
        elif verdicts is not None or any(values >= set(pair) for pair in _SURE_ORDERS):
            unfit.append(f"{table.header[at]!r} has {listed(sorted(map(shorten, values)) or ['no value'])}")
    if len(fitting) > 1:  # numbers in a column called order may be something else
        fitting = [one for one in fitting if _is_sure(table, one)] or fitting
    if len(fitting) > 1:
        names = " and ".join(repr(table.header[at]) for at, _, _ in fitting)
        raise AnnotationError(f"{table.name} has two columns of the presentation order, {names}. Rename one of them.")
    if fitting:
        return fitting[0]
    if unfit:
        raise AnnotationError(
            f"{table.name}: the presentation order is one of two values, {_ALLOWED}, but {unfit[0]}. Correct the rows, "
            f"or rename the column if it is something else."
        )
    if verdicts is not None:
        raise AnnotationError(
            f"{table.name} has no column with the presentation order of pairs (order, swapped or position), which "
            f"`verdicts` needs. It has: {listed(table.header)}."
        )
    return None


def _asked_twice(table: Table, place: Mapping[str, int], words: pl.Series) -> bool:
    """Whether a worker gave an item labels under two values, and the labels name two answers."""
    label = table.column(place["label"])
    if not recognise_answers(label.drop_nulls().unique().to_list()):
        return False
    keys = [table.column(place[role]).rename(role) for role in ("item", "worker")]
    rows = pl.DataFrame([*keys, words.rename("order")]).filter(label.fill_null("").str.strip_chars() != "")
    n_values = rows.group_by("item", "worker").agg(pl.col("order").n_unique())["order"]
    return bool((n_values > 1).any())


def _told_by_labels(labels: Collection[str]) -> str | None:
    """Return what labels name, where their words can only be places."""
    words = {text.strip().casefold() for text in labels}
    return POSITION if any(pair <= words for pair in _TELLING) else None


def _turned(
    label: pl.Series, swapped: pl.Series, places: Mapping[str, int], table: Table, labels: Collection[str]
) -> pl.Series:
    """Return labels that name answers, from labels that name places; the most frequent spelling of each is used."""
    if not places:
        raise AnnotationError(
            f"{table.name}: the labels ({listed(sorted(map(shorten, labels)))}) do not name two places. They may be 1 "
            f"and 2, 0 and 1, A and B, first and second, or left and right, and others for ties. Rename them in the "
            f"file."
        )
    counts: dict[str, int] = dict(label.value_counts().iter_rows())
    usual = [
        max((text for text in places if places[text] == at), key=lambda text: (counts[text], text)) for at in (0, 1)
    ]
    turned = label.replace({text: usual[1 - at] for text, at in places.items()})
    return label.zip_with(~swapped.fill_null(False), turned)


def _names_first(label: pl.Series, swapped: pl.Series, places: Mapping[str, int]) -> pl.Series:
    """Return whether each label names the answer shown first; null for other labels, or if answers are unknown."""
    if not places:
        return pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(label))
    place = label.replace_strict(places, default=None, return_dtype=pl.Int8)
    return (place == 1) == swapped


# ----------------------------------------------------------------------------------------------------
# What was found, as columns of codes and as a note.

UNKNOWN_ORDER = 2  # code of an order that is not known: of files without the column, read together with others


def order_codes(swapped: pl.Series) -> npt.NDArray[np.int8]:
    """Return the order of each row: 0 original, 1 swapped, 2 unknown."""
    return swapped.cast(pl.Int8).fill_null(UNKNOWN_ORDER).to_numpy(writable=True)


def note_on_verdicts(biases: Mapping[Any, PositionBias], column: str) -> dict[str, str]:
    """Return the note on verdicts in both orders, or on those of which nothing can be said."""
    n_pairs = sum(one.n_pairs for one in biases.values())
    if not n_pairs:
        return {
            "one_order": f"No judge saw a pair in both orders of presentation ({column}), so that preferences for a "
            f"place cannot be told from those for an answer. Ask some pairs in the other order too."
        }
    flips = sum(one.n_flips for one in biases.values()) / n_pairs
    n_verdicts = sum(one.n_verdicts for one in biases.values())
    share = sum(one.n_first for one in biases.values()) / max(n_verdicts, 1)
    first = f"; {share:.0%} of the verdicts name the answer shown first" if n_verdicts else ""
    judges = counted(sum(one.n_pairs > 0 for one in biases.values()), "judge")
    return {
        "both_orders": f"Labels are verdicts on pairs in both orders of presentation ({column}), and both count. "
        f"{judges} saw pairs in both orders, {counted(n_pairs, 'time')} in all: the verdict changed with the order in "
        f"{flips:.0%}{first}."
    }
