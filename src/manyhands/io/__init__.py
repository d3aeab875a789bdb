"""From exports to `Annotations`, and from results to files.

Reading an export takes five steps, which `read_export` in `reading` calls in this order:

1. source     bytes of a file, folder, zip, gzip or standard input, within limits        sources
2. document   bytes parsed as a table, JSON records, words or a folder of files          documents (JSON, workbooks,
                  data frames), text_tables (CSV and encodings), parquet_limits
3. format     the document recognised as the export of one tool; its rows as judgements  formats/, one module per tool;
                  judgements has the table that each of them fills
4. question   the question that is meant, and one label per judgement                    reading
5. rows       the rows that count, as Annotations, and a ledger of all others            row_filtering

A *judgement* is one worker's answer to one item.

side_tables        tables beside an export: ground truth, gold, label maps, kinds of workers
questions          questions to an expert as a table, and their answers
item_fields        what an export says about its items and workers beside the labels
features           features of items from arrays, tables and exports, matched to items by id
feature_pipeline   from these features to numbers; saved with a trained model
overview           numbers that describe an export: coverage, class balance, agreement
messages           names and counts in error messages
stream/            long tables larger than memory, read in parts into a code folder on disk
write/             labels, worker scorecards and summaries as tables, and back into annotation tools
"""

from __future__ import annotations

from manyhands.frames import load_polars

load_polars()  # first: it explains why polars cannot be loaded, where it cannot

from manyhands._core.writing import verify_folder, write_files  # noqa: E402
from manyhands.io.reading import Reading, read_annotations, read_export  # noqa: E402
from manyhands.io.write.results import label_frame, training_frame, worker_frame  # noqa: E402
from manyhands.io.write.training_table import training_set  # noqa: E402

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
