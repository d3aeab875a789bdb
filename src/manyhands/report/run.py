"""`Run`: everything that a report may show; what is absent is None."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Codes
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import LimitError
from manyhands.io.reading import Reading
from manyhands.io.write.pseudonyms import pseudonyms_of, rename_workers
from manyhands.io.write.results import worker_cards
from manyhands.metrics.vote_patterns import Z_95
from manyhands.report.drawing import Picture
from manyhands.report.wording import names, visible
from manyhands.scorecards import Scorecards
from manyhands.trust.answers import Answers


@dataclass(frozen=True)
class ComparedMethods:
    """Several methods on the same labels.

    Attributes
    ----------
    rows : sequence of dict
        One per method, the best first, as in ``methods.csv``.
    differences : mapping of str to list
        Columns of ``differences.csv``: ``item``, ``votes`` and the label of each method, of the items on which not all
        methods agree.
    """

    rows: Sequence[Mapping[str, Any]]
    differences: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class WithoutFlagged:
    """What the labels would be without the workers whom alerts accuse.

    Attributes
    ----------
    n_workers : int
        Number of these workers.
    n_labels : int
        Number of their labels.
    n_items : int
        Number of items with a label.
    changed : sequence of tuple
        Item, label, and the label without these workers (None if no label is left), of each item whose label changes.
    full : str or None, default=None
        File beside the page with all changed items.
    """

    n_workers: int
    n_labels: int
    n_items: int
    changed: Sequence[tuple[Any, Any, Any]]
    full: str | None = None


@dataclass(frozen=True)
class Provenance:
    """Where a report comes from.

    Attributes
    ----------
    version : str
        Version of manyhands.
    method : str
        Name of the method in the registry, or of its class.
    seed : int or None, default=None
        Seed of the random numbers.
    command : str or None, default=None
        The command line.
    created : str or None, default=None
        Date and time, UTC.
    files : mapping of str to str, default={}
        Name of each file that was read -> its SHA-256.
    platform : mapping of str to str, default={}
        Versions of Python and of libraries.
    """

    version: str
    method: str
    seed: int | None = None
    command: str | None = None
    created: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Run:
    """What a report shows.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    title : str, default="Crowd labels"
        Name of the data.
    reading : Reading or None, default=None
        The export: ledger, notes, fields of items.
    cards : Scorecards or None, default=None
        Quality report of each worker.
    comparison : ComparedMethods or None, default=None
        Other methods on the same labels.
    answers : Answers or None, default=None
        Answers of an expert, which entered the fit.
    trust : mapping or None, default=None
        The block ``trust`` of summary.json.
    truth : mapping of item to class or None, default=None
        Known classes that did not enter the fit; they only evaluate.
    groups : mapping of worker to str or None, default=None
        Group of each worker, by the id that is shown.
    plan : object or None, default=None
        What to label next.
    classifier : object or None, default=None
        A classifier that was trained on the labels.
    without_flagged : WithoutFlagged or None, default=None
        What the labels would be without the flagged workers.
    provenance : Provenance or None, default=None
        Versions, seed, files.
    full_labels : str or None, default=None
        File beside the page with the label of every item.
    full_workers : str or None, default=None
        File beside the page with the report of every worker.
    guarded : bool, default=False
        Whether cells of these files that a spreadsheet would run as formulas have a quote before them.
    """

    model: Aggregator
    title: str = "Crowd labels"
    reading: Reading | None = None
    cards: Scorecards | None = None
    comparison: ComparedMethods | None = None
    answers: Answers | None = None
    trust: Mapping[str, Any] | None = None
    truth: Mapping[Any, Any] | None = None
    groups: Mapping[Any, str] | None = None
    plan: Any = None
    classifier: Any = None
    without_flagged: WithoutFlagged | None = None
    provenance: Provenance | None = None
    full_labels: str | None = None
    full_workers: str | None = None
    guarded: bool = False

    @cached_property
    def annotations(self) -> Annotations:
        """The labels; of labels with weights, the strongest one of each worker and item."""
        return self.model.annotations_.strongest_labels()

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes as they are shown."""
        return names(self.annotations.classes.tolist())

    @cached_property
    def workers(self) -> list[str]:
        """Names of the workers as they are shown."""
        return names(self.annotations.worker_ids.tolist())

    @cached_property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Whether each item has a label, shape (n_items,)."""
        return ~self.model.unlabelled_

    @cached_property
    def open(self) -> npt.NDArray[np.bool_]:
        """Whether each item has a label whose class was not given, as gold or as an answer, shape (n_items,)."""
        is_open = self.labelled.copy()
        is_open[self.gold_rows] = False
        return is_open

    @cached_property
    def confidence(self) -> Array:
        """Posterior of each item's label, NaN without one, shape (n_items,)."""
        return np.where(self.labelled, self.model.posterior_.max(axis=1), np.nan)

    @cached_property
    def codes(self) -> Codes:
        """Class code of each item's label, -1 without one, shape (n_items,)."""
        code_of = {value: k for k, value in enumerate(self.annotations.classes.tolist())}
        return np.array([code_of.get(value, -1) for value in self.model.labels_.tolist()], np.int64)

    @cached_property
    def votes(self) -> npt.NDArray[np.int64]:
        """Number of votes for each class, shape (n_items, n_classes)."""
        a = self.annotations
        cell = a.item.astype(np.int64) * a.n_classes + a.label
        return np.bincount(cell, minlength=a.n_items * a.n_classes).reshape(a.n_items, a.n_classes)

    @cached_property
    def gold_rows(self) -> Codes:
        """Positions of the items whose class was given to the fit."""
        gold = self.model._gold
        rows = [row for row, item in enumerate(self.annotations.item_ids.tolist()) if item in gold] if gold else []
        return np.array(rows, np.int64)

    def item_name(self, row: int) -> str:
        """Return the id of an item as it is shown.

        Parameters
        ----------
        row : int
            Position of the item.

        Returns
        -------
        str
            Text of one line.
        """
        return names([self.annotations.item_ids[row]])[0]


def make_run(model: Aggregator, *, reveal: bool = False, key: bytes | None = None, **parts: Any) -> Run:
    """Return the run of a fitted model, with scorecards and with pseudonyms in place of worker ids.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    reveal : bool, default=False
        Keep the worker ids.
    key : bytes or None, default=None
        Secret from which pseudonyms are derived; None numbers the workers.
    **parts : object
        Further parameters of `Run`.

    Returns
    -------
    Run
        What a report shows.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    """
    annotations = model.annotations_  # raises an error if the model is not fitted
    reading: Reading | None = parts.pop("reading", None)
    groups: Mapping[Any, str] | None = parts.pop("groups", None)
    if not reveal:
        shown, hide = pseudonyms_of(annotations, key, () if reading is None else reading.left_out_workers)
        model = _renamed(model, shown, hide)
        if groups is not None:
            new_name = dict(zip(annotations.worker_ids.tolist(), shown))
            groups = {new_name[worker]: group for worker, group in groups.items() if worker in new_name}
        if reading is not None:
            reading = _hidden(reading, model.annotations_, hide)
        provenance: Provenance | None = parts.get("provenance")
        if provenance is not None and provenance.command is not None:
            parts["provenance"] = replace(provenance, command=hide(provenance.command))
    try:
        cards = worker_cards(model, reading)
    except LimitError:
        cards = None
    return Run(model=model, reading=reading, cards=cards, groups=groups, **parts)


def _renamed(model: Aggregator, shown: list[str], hide: Callable[[str], str]) -> Aggregator:
    """Return a copy of a model whose workers have other ids."""
    a, new = model.annotations_, copy.copy(model)
    renamed = Annotations(
        a.item, a.worker, a.label, item_ids=a.item_ids, worker_ids=shown, classes=a.classes, weight=a.weight
    ).marked_like(a)
    new._training, new.worker_ids_ = renamed, renamed.worker_ids
    new.notes_ = {code: hide(sentence) for code, sentence in model.notes_.items()}
    return new


def _hidden(reading: Reading, annotations: Annotations, hide: Callable[[str], str]) -> Reading:
    """Return what was read without worker ids in notes, file names and fields."""
    fields = copy.copy(reading.item_fields)
    if fields is not None:
        fields.fields, fields.hidden = dict(fields.fields), list(fields.hidden)  # those of the caller stay
        fields.drop_values({*map(str, reading.annotations.worker_ids.tolist()), *reading.left_out_workers})
    notes = {code: hide(text) for code, text in reading.notes.items()}
    new_name = dict(zip(map(str, reading.annotations.worker_ids.tolist()), annotations.worker_ids.tolist()))
    kinds = {new_name[worker]: kind for worker, kind in reading.kinds.items() if worker in new_name}
    groups = {new_name[worker]: group for worker, group in reading.groups.items() if worker in new_name}
    time = rename_workers(reading.working_time, reading.annotations, annotations)
    bias = rename_workers(reading.position_bias, reading.annotations, annotations)
    shown = replace(reading, annotations=annotations, notes=notes, source=hide(reading.source), item_fields=fields)
    return replace(shown, kinds=kinds, working_time=time, position_bias=bias, groups=groups, left_out_workers=())


# ----------------------------------------------------------------------------------------------------
# Which field of the export says what an item is, and its values.

_USUAL = ("text", "sentence", "content", "body", "review", "comment", "title", "question", "prompt", "image", "url")
_N_TRIED = 200


def item_texts(run: Run, rows: Sequence[int]) -> tuple[str, dict[int, str]]:
    """Return the field with the items' text or address, and its values for some items.

    Pictures are never loaded: of an item that is a picture, its address is shown as text.
    """
    fields = None if run.reading is None else run.reading.item_fields
    if fields is None or not len(fields):
        return "", {}
    name = max(fields.fields, key=lambda field: _score(field, fields.values(field)))
    values = fields.values(name)
    ids = run.annotations.item_ids
    texts = {row: values.get(str(ids[row])) for row in rows}
    return visible(name, 40), {row: str(value) for row, value in texts.items() if value is not None}


def _score(name: str, values: dict[str, Any]) -> tuple[float, float]:
    """Return how likely a field is the one to show: a usual name, then the length of its text."""
    usual = -_USUAL.index(name.lower()) if name.lower() in _USUAL else -len(_USUAL) - 1
    sample = [str(value) for value, _ in zip(values.values(), range(_N_TRIED)) if isinstance(value, str)]
    return float(usual), sum(map(len, sample)) / max(len(sample), 1)


# ----------------------------------------------------------------------------------------------------
# Times of labels: days, weeks, and the seconds between two labels of a worker.

Times = npt.NDArray[np.int64]
DAY = 86_400_000_000  # microseconds
_PAUSE = 600.0  # seconds between two labels that are a pause


def dated(run: Run) -> Times | None:
    """Return the time of each label.

    Shapes: returns (n_annotations,).
    """
    times = None if run.reading is None else run.reading.times
    if times is None or len(times) != run.annotations.n_annotations:
        return None
    valid = times[times >= 0]
    return times if len(valid) and valid.min() < valid.max() else None


def pace(when: Times) -> float:
    """Return the median number of seconds between two labels of a worker, pauses left out."""
    gaps = np.diff(np.sort(when[when >= 0]).astype(float)) / 1e6
    usual = gaps[(gaps > 0) & (gaps < _PAUSE)]
    return float(np.median(usual)) if len(usual) >= 5 else math.nan


def day_names(times: Sequence[int]) -> list[str]:
    """Return dates as text."""
    return [f"{at.day} {at:%b}" for at in (datetime.fromtimestamp(time / 1e6, UTC) for time in times)]


# ----------------------------------------------------------------------------------------------------
# `Panel`: one finding with its picture and its table; `Table`, `Chips` and `Bar`: what a table shows.

_MOST_CHIPS = 12  # classes of one item
SEVERITIES = ("alert", "warning", "note")  # the most severe first


@dataclass(frozen=True)
class Chips:
    """Votes of one item, the most frequent class first.

    Attributes
    ----------
    votes : tuple of (str, int)
        Class and its number of votes.
    """

    votes: tuple[tuple[str, int], ...]
    drawn_as: ClassVar[str] = "chips"

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self.votes)


def chips(names: Sequence[str], votes: Sequence[int]) -> Chips:
    """Return the votes of an item."""
    order = sorted((k for k, count in enumerate(votes) if count), key=lambda k: (-votes[k], k))
    pairs = [(names[k], int(votes[k])) for k in order[:_MOST_CHIPS]]
    rest = order[_MOST_CHIPS:]
    if rest:
        pairs.append((f"{len(rest)} more", sum(int(votes[k]) for k in rest)))
    return Chips(tuple(pairs))


@dataclass(frozen=True)
class Bar:
    """A share that a table shows as a bar beside its number.

    Attributes
    ----------
    share : float
        From 0 to 1.
    """

    share: float
    drawn_as: ClassVar[str] = "bar"

    def __str__(self) -> str:
        return f"{self.share:.3f}"


@dataclass(frozen=True)
class Table:
    """A table of a panel.

    Attributes
    ----------
    caption : str
        What the rows are.
    columns : tuple of str
        Names of the columns.
    rows : tuple of tuple
        Cells: text, numbers, None, `Chips` or `Bar`.
    n_rows : int or None, default=None
        Number of rows before the table was cut; None if it is whole.
    full : str or None, default=None
        Where all rows are, if the table was cut.
    is_open : bool, default=False
        Whether the page shows the table at once, and not after a click.
    short : str, default=""
        What is shown in place of the caption while the table is closed; the caption without it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    n_rows: int | None = None
    full: str | None = None
    is_open: bool = False
    short: str = ""

    @property
    def n_left_out(self) -> int:
        """Number of rows that are not shown."""
        return 0 if self.n_rows is None else max(self.n_rows - len(self.rows), 0)

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers, which are aligned to the right."""
        columns = ([row[at] for row in self.rows if row[at] is not None] for at in range(len(self.columns)))
        return tuple(bool(cells) and all(_is_number(cell) for cell in cells) for cells in columns)


@dataclass(frozen=True)
class Notice:
    """Something that a reader should know or do.

    Attributes
    ----------
    severity : {"alert", "warning", "note"}
        How urgent it is.
    text : str
        One sentence.
    count : int or None, default=None
        How many items, workers or rows it concerns.
    panel : str or None, default=None
        Key of the panel that shows more.
    """

    severity: str
    text: str
    count: int | None = None
    panel: str | None = None


@dataclass(frozen=True)
class Panel:
    """One finding: a sentence, how to read the picture, the picture and the numbers behind it.

    Attributes
    ----------
    key : str
        Name of the panel, an anchor of the page.
    title : str
        The finding, one sentence.
    how_to_read : str
        What the picture shows.
    n : str
        What the finding is based on, such as ``"1,000 items"``.
    svg : tuple of Picture, default=()
        Pictures, as SVG elements that take their colours from the page, with the data that they show.
    table : tuple of Table, default=()
        The same numbers, and more.
    notes : tuple of str, default=()
        Limits of the finding and what to do about it.
    values : dict, default={}
        The main numbers, for programs and tests.
    notices : tuple of Notice, default=()
        What the head of the page says about this panel.
    parts : tuple of Panel, default=()
        Smaller panels inside this one, such as the card of each worker.
    """

    key: str
    title: str
    how_to_read: str
    n: str
    svg: tuple[Picture, ...] = ()
    table: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    parts: tuple[Panel, ...] = ()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the panel with its own style."""
        from manyhands.report.html import panels_html

        return panels_html([self])


@dataclass(frozen=True)
class Report:
    """The panels of one run.

    Attributes
    ----------
    title : str
        Name of the data.
    summary : Panel
        Verdict, key figures, notices.
    panels : tuple of Panel
        All others, in the order of the page.
    """

    title: str
    summary: Panel
    panels: tuple[Panel, ...]


def cut(rows: Sequence[Any], most: int) -> tuple[tuple[Any, ...], int | None]:
    """Return the first rows, and the number of all if some are left out."""
    return tuple(rows[:most]), (len(rows) if len(rows) > most else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Bar) and not isinstance(value, bool)


# ----------------------------------------------------------------------------------------------------
# Intervals and rates that several panels need.


def mean_interval(values: Array) -> tuple[Array, Array, Array]:
    """Return column means with 95% intervals from the spread of the rows.

    Shapes: values (n_rows, n_columns); returns mean (n_columns,); returns low (n_columns,); returns high
    (n_columns,).
    """
    n = max(len(values), 1)
    mean = values.sum(axis=0) / n
    half = Z_95 * np.sqrt(((values - mean) ** 2).sum(axis=0)) / n
    return mean, np.maximum(mean - half, 0), np.minimum(mean + half, 1)


def ratio_interval(above: Array, below: Array) -> tuple[Array, Array, Array]:
    """Return ratios of column sums with 95% intervals over rows (linearised).

    Shapes: above (n_rows, n_columns); below (n_rows,); returns ratio (n_columns,); returns low (n_columns,); returns
    high (n_columns,).
    """
    total = max(float(below.sum()), 1.0)
    ratio = above.sum(axis=0) / total
    half = Z_95 * np.sqrt(((above - ratio * below[:, None]) ** 2).sum(axis=0)) / total
    return ratio, np.maximum(ratio - half, 0), np.minimum(ratio + half, 1)
