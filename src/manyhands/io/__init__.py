"""From exports to `Annotations`, and from results to files.

Reading an export takes five steps; each has its modules below `read/` and `formats/`:

1. source     bytes of a file, folder, zip, gzip or standard input, within limits        read/sources, read/archives
2. document   bytes parsed as a table, JSON records, words or a folder of files          read/documents and the parsers
                  text_tables (CSV), workbooks (XLSX), parquet, json_files, frames, text (encodings)
3. format     the document recognised as the export of one tool; its rows as judgements  formats/, one module per tool
4. question   the question that is meant, and one label per judgement                    read/question_selection
5. rows       the rows that count, as Annotations, and a ledger of all others            read/row_filtering

`read/reading.py` calls them in this order (`read_export`). A *judgement* is one worker's answer to one item.

stream/            long tables larger than memory, read in parts into a code folder on disk
features/          features of items: arrays and tables, matched to items by id; the pipeline saved with a model
write/             labels, worker scorecards and summaries as tables, and back into annotation tools
overview           numbers that describe an export: coverage, class balance, agreement
messages           names and counts in error messages
frames_library     loads polars, or says why this processor cannot run it
"""

import manyhands.io.frames_library  # noqa: F401  # first: it explains why polars cannot be loaded, where it cannot
from manyhands.io.read.reading import Reading, read_annotations, read_export
from manyhands.io.write.results import label_frame, training_frame
from manyhands.io.write.training_table import training_set
from manyhands.io.write.worker_tables import worker_frame
from manyhands.writing import verify_folder, write_files

__all__ = [
    "Reading",
    "label_frame",
    "read_export",
    "read_annotations",
    "training_frame",
    "training_set",
    "verify_folder",
    "worker_frame",
    "write_files",
]
