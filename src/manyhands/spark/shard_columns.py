"""Columns of the tables of blocks and of shards.

shard or block    its number
n_items           number of items
n_labels          number of labels
n_identical       rows left out because a worker gave an item the same label again
n_conflicting     rows left out because a worker gave an item another label too
check             CRC-32 of counts and codes
id_check          CRC-32 of the ids
counts            labels of each item, uint32
codes             worker * n_classes + label of each label, int32
id_lengths        bytes of each id, uint32
id_text           the ids, UTF-8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NUMBERS = ("n_items", "n_labels", "n_identical", "n_conflicting", "check", "id_check")
BINARY = ("counts", "codes", "id_lengths", "id_text")  # one after the other for a shard
SEEN = "seen"
PASS_COLUMNS = ("shard", "check", "counts", "codes")  # what a pass reads
SCHEMA = ", ".join([*(f"{name} bigint" for name in NUMBERS), *(f"{name} binary" for name in (SEEN, *BINARY))])


@dataclass(frozen=True)
class LayoutSettings:
    """What an executor must know to code labels.

    Attributes
    ----------
    workers : list
        The workers, in the order of their codes.
    classes : list
        The classes, in the order of their codes.
    has_order : bool
        Whether a column says which of a worker's labels on an item is the last.
    """

    workers: list[Any]
    classes: list[Any]
    has_order: bool
