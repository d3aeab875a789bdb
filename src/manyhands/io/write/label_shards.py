"""Labels of items shard by shard, as pieces of labels.csv, labels.jsonl and labels.parquet.

The columns are those of `results.label_frame`, and so are the bytes of each line; only the order of items is that of
the shards. A piece is made by the thread that read the shard, and the pieces are written in the order of shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.em.packed import Packed
from manyhands.io.write.hugging_face import jsonl, parquet_frame
from manyhands.io.write.results import DECIMALS, class_names, id_column
from manyhands.io.write.spreadsheet import guard_table
from manyhands.sharded.connected_workers import Groups, join_by_items, join_groups, no_groups
from manyhands.sharded.items import FinalPass, ItemResults
from manyhands.sharded.labels import Shard

ITEMS_AT_ONCE = 1 << 17  # items that are one data frame in memory
CONFIDENT = 0.9
_UNIT = float(1 << 40)  # a probability is a whole number of such parts


@dataclass
class LabelFigures:
    """Sums over items, for the summary of a run; those of several shards are added in their order.

    Attributes
    ----------
    groups : ndarray of shape (n_workers,) of int32
        Group of each worker, connected by common items.
    labels : ndarray of shape (n_classes,) of int64
        Number of items with each label.
    n_items, n_unlabelled, n_tied, n_confident : int, default=0
        Number of items, of those without a label, of ties, and of labels with a posterior of at least 0.9.
    confidence : int, default=0
        Sum of the posterior of each label in units of 2^-40, which is exact whatever the order of items.
    """

    groups: Groups
    labels: npt.NDArray[np.int64]
    n_items: int = 0
    n_unlabelled: int = 0
    n_tied: int = 0
    n_confident: int = 0
    confidence: int = 0

    @classmethod
    def empty(cls, n_workers: int, n_classes: int) -> LabelFigures:
        """Return the figures of no items.

        Parameters
        ----------
        n_workers : int
            Number of workers.
        n_classes : int
            Number of classes.

        Returns
        -------
        LabelFigures
        """
        return cls(no_groups(n_workers), np.zeros(n_classes, np.int64))

    @property
    def mean_confidence(self) -> float | None:
        """Mean posterior of the labels; None without labels."""
        n_labelled = self.n_items - self.n_unlabelled
        return self.confidence / _UNIT / n_labelled if n_labelled else None

    def count(self, packed: Packed, found: ItemResults) -> None:
        """Add items.

        Parameters
        ----------
        packed : Packed
            Their labels.
        found : ItemResults
            Their results.
        """
        labelled = found.n_labels > 0
        confidence = found.posterior.max(axis=1)[labelled]
        self.groups = join_by_items(self.groups, packed)
        self.labels += np.bincount(found.code[labelled], minlength=len(self.labels))
        self.n_items += len(labelled)
        self.n_unlabelled += int(np.count_nonzero(~labelled))
        self.n_tied += int(np.count_nonzero(found.tied))
        self.n_confident += int(np.count_nonzero(confidence >= CONFIDENT))
        self.confidence += int(np.rint(confidence * _UNIT).astype(np.int64).sum())

    def add(self, other: LabelFigures) -> None:
        """Add the figures of other items.

        Parameters
        ----------
        other : LabelFigures
            Figures of the next shard.
        """
        self.groups = join_groups(self.groups, other.groups)
        self.labels += other.labels
        for name in ("n_items", "n_unlabelled", "n_tied", "n_confident", "confidence"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class LabelPiece:
    """What one shard adds to the files of labels.

    Attributes
    ----------
    figures : LabelFigures
        Sums over its items.
    csv, jsonl : list of bytes
        Lines of labels.csv and labels.jsonl, without a header.
    tables : list of polars.DataFrame
        Rows of labels.parquet.
    """

    figures: LabelFigures
    csv: list[bytes] = field(default_factory=list)
    jsonl: list[bytes] = field(default_factory=list)
    tables: list[pl.DataFrame] = field(default_factory=list)


@dataclass(frozen=True)
class LabelRows:
    """The task that makes the rows of the items of a shard.

    Parameters
    ----------
    final : FinalPass
        The task that computes the results of items.
    classes : ndarray of shape (n_classes,)
        The classes.
    kinds : sequence of str, default=()
        Further formats: "jsonl", "parquet".
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells of labels.csv as formulas.
    """

    final: FinalPass
    classes: npt.NDArray[Any]
    kinds: Sequence[str] = ()
    spreadsheet_safe: bool = False

    def __call__(self, shard: Shard) -> LabelPiece:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        LabelPiece
        """
        piece = LabelPiece(LabelFigures.empty(shard.packed.n_workers, shard.packed.n_classes))
        for part, ids in _parts(shard):
            found = self.final(part)
            piece.figures.count(part.packed, found)
            table = item_frame(ids, self.classes, part.packed, found)
            piece.csv.append(self.csv_lines(table))
            if "jsonl" in self.kinds:
                piece.jsonl.append(jsonl(table))
            if "parquet" in self.kinds:
                piece.tables.append(parquet_frame(table))
        return piece

    def csv_lines(self, table: pl.DataFrame, *, header: bool = False) -> bytes:
        """Return rows as CSV.

        Parameters
        ----------
        table : polars.DataFrame
            Rows of `item_frame`.
        header : bool, default=False
            Whether the names of the columns come first.

        Returns
        -------
        bytes
        """
        buffer = BytesIO()
        shown = guard_table(table) if self.spreadsheet_safe else table
        shown.write_csv(buffer, include_header=header, float_precision=DECIMALS)
        return buffer.getvalue()

    @property
    def header(self) -> bytes:
        """First line of labels.csv."""
        n_classes = len(self.classes)
        none = Packed(np.zeros(0, np.int32), None, np.zeros(1, np.int64), 0, n_classes)
        empty = np.zeros(0, bool)
        found = ItemResults(0, np.zeros((0, n_classes)), np.zeros(0, np.int32), empty, None, np.zeros(0, np.int64))
        return self.csv_lines(item_frame([], self.classes, none, found), header=True)


def _parts(shard: Shard) -> Iterator[tuple[Shard, Sequence[Any]]]:
    """Cut a shard into parts whose results fit into little memory, with their ids."""
    packed, ids = shard.packed, shard.item_ids()
    for first in range(0, packed.n_items, ITEMS_AT_ONCE):
        last = min(first + ITEMS_AT_ONCE, packed.n_items)
        start = packed.start[first : last + 1]
        part = Packed(packed.code[start[0] : start[-1]], None, start - start[0], packed.n_workers, packed.n_classes)
        own = ids[first:last]
        yield Shard(shard.number, part, lambda own=own: own), own  # type: ignore[misc]


def item_frame(ids: Sequence[Any], classes: npt.NDArray[Any], packed: Packed, found: ItemResults) -> pl.DataFrame:
    """Return one row per item, with the columns of `results.label_frame`.

    Parameters
    ----------
    ids : sequence
        Ids of the items.
    classes : ndarray of shape (n_classes,)
        The classes.
    packed : Packed
        Labels of the items.
    found : ItemResults
        Their results.

    Returns
    -------
    polars.DataFrame
        ``item``, ``label``, ``confidence``, ``n_labels``, ``flags`` and ``p_<class>`` for each class.
    """
    names = class_names(classes)
    labelled = found.n_labels > 0
    label = id_column(classes.tolist()).gather(pl.Series(np.where(labelled, found.code, 0)))
    confidence = found.posterior.max(axis=1, initial=0.0)
    return pl.DataFrame(
        {
            "item": pl.Series(ids) if isinstance(ids, np.ndarray) and ids.dtype.kind == "i" else id_column(list(ids)),
            "label": label,
            "confidence": confidence,
            "n_labels": found.n_labels,
            "flags": _flags(packed, found),
            **{f"p_{name}": found.posterior[:, k] for k, name in enumerate(names)},
            "labelled": labelled,
        }
    ).select(
        "item",
        *(pl.when("labelled").then(name).alias(name) for name in ("label", "confidence")),
        pl.all().exclude("item", "label", "confidence", "labelled"),
    )


def _flags(packed: Packed, found: ItemResults) -> pl.Series:
    """Return the flags of each item, joined by ";"; null without flags."""
    voted = np.zeros(packed.n_items, bool)
    item = np.repeat(np.arange(packed.n_items), found.n_labels)
    voted[item[found.code[item] == packed.code % np.int32(packed.n_classes)]] = True
    unlabelled = found.n_labels == 0
    state = found.tied + 2 * unlabelled + 4 * (~voted & ~unlabelled)
    words = ("tie", "unlabelled", "unvoted")
    texts = [";".join(word for bit, word in enumerate(words) if code >> bit & 1) or None for code in range(8)]
    return pl.Series(texts, dtype=pl.String).gather(pl.Series(state))
