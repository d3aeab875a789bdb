"""Annotations written as a code folder, for the tests of what reads one."""

from itertools import pairwise

import numpy as np

from manyhands._core.encoding import reorder_groups
from manyhands.em.kernels import pack
from manyhands.sharded.code_folder import CodeFolder, CodeFolderWriter
from manyhands.sharded.labels import N_BLOCKS, item_hashes, item_order, shard_of


def write_annotations(folder, annotations):
    """Write annotations to a code folder, in the order of items that every code folder has."""
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
