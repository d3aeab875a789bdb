"""From exports to Annotations, and from results to files.

reading      read_export: any known export -> Annotations and a ledger; it uses, in this order,
sources        files, folders, zip, gzip, standard input
documents      tables, JSON, bare words (text_tables, workbooks, frames, json_files, text)
formats/       what stands where in the exports of each tool
choosing       which question is meant
settling       which rows count (coding: text to codes, fast)
results      what a fitted method says, as data frames
write_back   labels as annotation tools import them (raw_members: where ids and data stand in JSON)
"""

import manyhands.io.frames_library  # noqa: F401  # first: it says why polars cannot be loaded, where it cannot
from manyhands.io.read.reading import Reading, read_annotations, read_export
from manyhands.io.write.results import label_frame, training_frame, worker_frame
from manyhands.writing import verify_folder, write_files

__all__ = [
    "Reading",
    "label_frame",
    "read_export",
    "read_annotations",
    "training_frame",
    "verify_folder",
    "worker_frame",
    "write_files",
]
