"""From rows on disk to the code folder: classes and workers in their order, blocks one after the other, the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.read.ledger import Ledger
from manyhands.io.read.stray_classes import MOST_LABELS, Strays
from manyhands.io.stream.coding import RowCoder
from manyhands.io.stream.name_checks import notes_on_names
from manyhands.io.stream.packing import Numbering, PackedRows, pack_rows
from manyhands.io.stream.spill import Spill
from manyhands.io.stream.stray_labels import LabelCounts
from manyhands.progress import report
from manyhands.sharded.code_ids import TextIds
from manyhands.sharded.code_writer import CodeFolderWriter
from manyhands.sharded.layout import N_BLOCKS

_TABLES = 6  # arrays of the size of all confusion matrices that EM holds at a time
_BYTES_PER_ROW = 140  # of rows that are sorted together; 70 to 140 were measured
_LARGEST_CODE = 2**31 - 1


@dataclass(frozen=True)
class Table:
    """What is written, and how.

    Attributes
    ----------
    folder : Path
        The code folder.
    rare_classes : {"drop", "keep", "error"}
        What is done with classes that may be typing errors.
    keep_integers : bool
        Whether ids from integer columns stay integers.
    max_memory : int
        Bytes of memory to stay within.
    with_tables : bool
        Whether confusion matrices of all workers must fit into it.
    """

    folder: Path
    rare_classes: str
    keep_integers: bool
    max_memory: int
    with_tables: bool


def check_tables(n_workers: int, n_classes: int, limit: int) -> None:
    """Refuse a crowd whose confusion matrices do not fit into a limit of memory.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    limit : int
        Bytes.

    Raises
    ------
    LimitError
        Where they are larger.
    """
    needed = 8.0 * _TABLES * n_workers * n_classes**2
    if needed > limit:
        raise LimitError(
            f"Confusion matrices for {n_workers:,} workers and {n_classes:,} classes take about {needed / 1e9:,.1f} "
            f"GB; {limit / 1e9:,.1f} GB are allowed. Raise --max-memory, use majority-vote, or merge rare classes."
        )


def write_codes(spill: Spill, coder: RowCoder, table: Table, mapping: dict[str, str], integers: set[str]) -> None:
    """Write the code folder.

    Parameters
    ----------
    spill : Spill
        The rows.
    coder : RowCoder
        Texts of workers and labels, and the rows that were left out so far.
    table : Table
        What is written, and how.
    mapping : dict of str to str
        Role -> name of the column.
    integers : set of str
        Roles whose columns hold integers in all files.

    Raises
    ------
    AnnotationError
        Where no row has a label, or rare classes are refused.
    LimitError
        Where codes or confusion matrices would be too large.
    """
    names, workers = list(coder.labels.number_of), list(coder.workers.number_of)
    if not names:
        raise AnnotationError(
            f"None of the {coder.counts['rows_read']:,} rows has a label in column {mapping['label']!r}. Check the "
            f"file, or name another column with --label."
        )
    common = int((coder.label_counts > MOST_LABELS).sum())
    if table.with_tables:
        check_tables(len(workers), common, table.max_memory)
    _check_ranges(spill, table.max_memory)
    kept_types = integers if table.keep_integers else set()
    dropped = np.zeros(len(names), bool)
    note: dict[str, str] = {}
    while True:
        writer = _Blocks(spill, table, workers, names, dropped, kept_types)
        found = writer.write(coder, mapping, note, is_last=bool(dropped.any()))
        if found is None:
            return
        dropped, strays = found  # rare: labels that are left out change the codes of all others
        note = {"stray_classes": strays.note(table.rare_classes)} if strays.counts else {}


def _check_ranges(spill: Spill, limit: int) -> None:
    """Refuse a range of items that does not fit into memory: an item that has a large part of all rows."""
    most = max(map(spill.n_rows, range(spill.n_parts)))
    if most * _BYTES_PER_ROW > limit:
        raise LimitError(
            f"{most:,} rows must be sorted together, about {most * _BYTES_PER_ROW / 1e9:,.1f} GB, and "
            f"{limit / 1e9:,.1f} GB of memory are allowed: one item may have a large part of all rows. Check the item "
            f"column, or raise --max-memory."
        )


class _Blocks:
    """One attempt to write the code folder, with some labels left out."""

    def __init__(
        self,
        spill: Spill,
        table: Table,
        workers: list[str],
        names: list[str],
        dropped: npt.NDArray[np.bool_],
        integers: set[str],
    ) -> None:
        self._spill, self._table, self._names, self._dropped = spill, table, names, dropped
        self._integer_items = "item" in integers
        self._workers, of_worker = _in_order(workers, range(len(workers)), "worker" in integers)
        self._classes, self._of_label = _in_order(names, np.flatnonzero(~dropped).tolist(), "label" in integers)
        self._numbering = Numbering(of_worker, len(workers), dropped)
        if len(workers) * len(self._classes) > _LARGEST_CODE:
            raise LimitError(
                f"{len(workers):,} workers times {len(self._classes):,} classes are more than the {_LARGEST_CODE:,} "
                f"codes that a label can have. Check the columns, or merge rare classes."
            )

    def write(
        self, coder: RowCoder, mapping: dict[str, str], note: dict[str, str], is_last: bool
    ) -> tuple[npt.NDArray[np.bool_], Strays] | None:
        """Write all blocks; labels that must be left out are returned, and the folder is then not kept."""
        counts, n_repeats, n_dropped = LabelCounts(len(self._names)), 0, 0
        per_block = self._spill.n_parts // N_BLOCKS
        with CodeFolderWriter(self._table.folder, self._workers, self._classes) as writer:
            for block in range(N_BLOCKS):
                parts = []
                for part in range(block * per_block, (block + 1) * per_block):
                    parts.append(pack_rows(self._spill.read(part), self._numbering))
                    counts.add(parts[-1])
                    n_repeats += parts[-1].n_repeats
                    n_dropped += parts[-1].n_dropped
                self._add(writer, block, parts)
                report(block + 1, N_BLOCKS, "sorting labels")
            if not is_last:
                is_stray, strays = counts.strays(self._names)
                if strays.counts and self._table.rare_classes == "error":
                    raise AnnotationError(f"stray_classes: {strays.note('error')}")
                if strays.counts and self._table.rare_classes == "keep":
                    is_stray[:], note = False, {"stray_classes": strays.note("keep")}
                missing = is_stray | (counts.counts == 0)
                if missing.any():
                    return missing, strays
            excluded = {"blank": coder.counts["blank"], "no_label": coder.counts["no_label"]}
            excluded |= {"duplicate": n_repeats, "stray_class": n_dropped}
            kept = int(counts.counts.sum())
            of_class = {name: int(n) for name, n in zip(self._names, counts.counts) if n}
            notes = coder.notes | note | notes_on_names(of_class, self._workers)
            ledger = Ledger(coder.counts["rows_read"], kept, {reason: n for reason, n in excluded.items() if n})
            writer.finish(ledger.as_dict() | {"notes": notes, "mapping": mapping})
        return None

    def _add(self, writer: CodeFolderWriter, block: int, parts: list[PackedRows]) -> None:
        """Write the parts of a block."""
        worker, label = (np.concatenate([getattr(part, name) for part in parts]) for name in ("worker", "label"))
        codes = worker * len(self._classes) + self._of_label[label]
        ids = TextIds(np.concatenate([part.ids.n_bytes for part in parts]), b"".join(part.ids.data for part in parts))
        n_labels = np.concatenate([part.n_labels for part in parts])
        own_ids: Any = [int(text) for text in ids.decoded()] if self._integer_items else ids
        writer.add_block(block, n_labels, codes.astype(np.int32), own_ids)


def _in_order(texts: list[str], chosen: Any, integers: bool) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Return values in the order of `Annotations`, and the code of each text; -1 for those that are not chosen."""
    values = {number: int(texts[number]) if integers else texts[number] for number in chosen}
    order = sorted(values, key=values.__getitem__)
    code = np.full(len(texts), -1, np.int64)
    code[order] = np.arange(len(order))
    return [values[number] for number in order], code
