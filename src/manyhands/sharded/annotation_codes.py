"""Annotations as a code folder."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from manyhands.annotations import Annotations
from manyhands.sharded.code_files import N_BLOCKS, CodeFolder, CodeFolderWriter

_BLOCK_SHIFT = 24  # the first eight bits of the CRC-32 are the number of the block


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
    texts = [str(value).encode() for value in annotations.item_ids.tolist()]
    keys = [(zlib.crc32(text), text) for text in texts]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.intp)
    block = np.array([keys[item][0] >> _BLOCK_SHIFT for item in order], np.int64)
    counts = annotations.n_labels[order]
    code = annotations.worker * np.int32(annotations.n_classes) + annotations.label
    with CodeFolderWriter(folder, annotations.worker_ids, annotations.classes) as writer:
        for number in range(N_BLOCKS):
            first, last = np.searchsorted(block, [number, number + 1])
            rows = [np.arange(annotations.start[i], annotations.start[i + 1]) for i in order[first:last]]
            codes = code[np.concatenate(rows)] if rows else code[:0]
            writer.add_block(number, counts[first:last], codes, annotations.item_ids[order[first:last]])
        writer.finish({"rows_read": len(code), "kept": len(code), "excluded": {}})
    return CodeFolder(folder)
