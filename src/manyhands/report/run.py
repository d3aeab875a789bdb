"""`Run`: everything that a report may show; what is absent is None."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import LimitError
from manyhands.io.read.reading import Reading
from manyhands.io.write.pseudonyms import pseudonyms_of, rename_workers
from manyhands.io.write.worker_tables import worker_cards
from manyhands.report.wording import names
from manyhands.scorecards import Scorecards
from manyhands.trust.answers import Answers

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


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
        found = [row for row, item in enumerate(self.annotations.item_ids.tolist()) if item in gold] if gold else []
        return np.array(found, np.int64)

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
        shown, hide = pseudonyms_of(annotations, key)
        model = _renamed(model, shown, hide)
        if groups is not None:
            new_name = dict(zip(annotations.worker_ids.tolist(), shown))
            groups = {new_name[worker]: group for worker, group in groups.items() if worker in new_name}
        if reading is not None:
            reading = _hidden(reading, model.annotations_, hide)
    try:
        cards = worker_cards(model, None if reading is None else reading.working_time)
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
        fields.drop_values(set(map(str, reading.annotations.worker_ids.tolist())))
    notes = {code: hide(text) for code, text in reading.notes.items()}
    new_name = dict(zip(map(str, reading.annotations.worker_ids.tolist()), annotations.worker_ids.tolist()))
    kinds = {new_name[worker]: kind for worker, kind in reading.kinds.items() if worker in new_name}
    groups = {new_name[worker]: group for worker, group in reading.groups.items() if worker in new_name}
    time = rename_workers(reading.working_time, reading.annotations, annotations)
    shown = replace(reading, annotations=annotations, notes=notes, source=hide(reading.source), item_fields=fields)
    return replace(shown, kinds=kinds, working_time=time, groups=groups)
