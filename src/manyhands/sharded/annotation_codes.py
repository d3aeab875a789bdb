"""Annotations as a code folder."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from manyhands.annotations import Annotations
from manyhands.em.packed import pack
from manyhands.grouping import reorder_groups
from manyhands.sharded.code_files import CodeFolder, CodeFolderWriter
from manyhands.sharded.layout import N_BLOCKS, item_hashes, item_order, shard_of


def write_annotations(folder: str | Path, annotations: Annotations) -> CodeFolder:
    """Write annotations to a code folder, in the order of items that every code folder has.

    Parameters
    ----------
    folder : str or Path
        The folder to write; it must not exist.
    annotations : Annotations
        The crowd's labels, without weights; of several labels of a worker on an item, all are written.

    Returns
    -------
    CodeFolder
        The folder, opened for reading.
    """
    hashes = item_hashes(annotations.item_ids.tolist())
    order = item_order(annotations.item_ids, hashes)
    edges = np.searchsorted(shard_of(hashes[order], N_BLOCKS), np.arange(N_BLOCKS + 1))
    counts = annotations.n_labels[order]
    _, codes = reorder_groups(annotations.start, order, (pack(annotations).code,))
    at = np.concatenate([[0], np.cumsum(counts)])
    with CodeFolderWriter(folder, annotations.worker_ids, annotations.classes) as writer:
        for number, (first, last) in enumerate(pairwise(edges)):
            ids = annotations.item_ids[order[first:last]]
            writer.add_block(number, counts[first:last], codes[at[first] : at[last]], ids)
        writer.finish({"rows_read": len(codes), "kept": len(codes), "excluded": {}})
    return CodeFolder(folder)
