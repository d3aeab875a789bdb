"""`Reading`: the result of reading an export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.io.read.item_fields import ItemFields
from manyhands.io.read.ledger import Ledger

if TYPE_CHECKING:
    from manyhands.trust.worker_kinds import WorkerKind


@dataclass(frozen=True)
class Reading:
    """Result of reading an export.

    Attributes
    ----------
    annotations : Annotations
        The labels that count. With a `refusal` there are none, or they are no classes.
    columns : dict of str to str
        Where item, worker, label, time and gold were found in the file.
    ledger : Ledger
        Number of rows read, kept, and excluded by reason.
    notes : dict of str to str
        Warnings about the file: code -> sentence.
    source : str, default=""
        Name of the file.
    format : str, default="long"
        Name of the format that was recognised or given (docs/formats.md).
    question : str, default=""
        The question whose answers are the labels.
    questions : dict of str to int
        Number of rows that answer each question of the file.
    gold : dict
        Items whose label is known according to the file: item -> label.
    workers_known : bool, default=True
        False if the file counts votes without naming the workers.
    refusal : str or None, default=None
        Why no annotations can be read from this file; None if they can.
    encoding : str or None, default=None
        The text encoding that the caller named.
    renamed : dict of str to dict, default={}
        Role ("label", "worker") -> {spelling in the file: name}, for names that a map or merged spellings changed.
    kinds : dict of str to WorkerKind, default={}
        What the file says of workers: people or machines; worker as text -> kind.
    item_fields : ItemFields or None, default=None
        What the file says about each item; None unless it was asked for.
    times : ndarray of shape (n_annotations,) of int64 or None, default=None
        Microseconds since 1970 of each annotation, negative where it is unknown; None without times, and unless they
        were asked for.
    working_time : dict of object to ndarray, default={}
        Worker id -> seconds that they spent on each of their labels, where the file tells.
    groups : dict of str to str, default={}
        What a column of the file says of workers, such as their country: worker as text -> group; empty unless a
        column was named.
    """

    annotations: Annotations
    columns: dict[str, str]
    ledger: Ledger
    notes: dict[str, str] = field(default_factory=dict)
    source: str = ""
    format: str = "long"
    question: str = ""
    questions: dict[str, int] = field(default_factory=dict)
    gold: dict[Any, Any] = field(default_factory=dict)
    workers_known: bool = True
    refusal: str | None = None
    encoding: str | None = None
    renamed: dict[str, dict[str, str]] = field(default_factory=dict)
    kinds: dict[str, WorkerKind] = field(default_factory=dict)
    item_fields: ItemFields | None = None
    times: npt.NDArray[np.int64] | None = None
    working_time: dict[Any, npt.NDArray[np.float64]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
