"""Papers' tables, measured: a table names data sets, methods and published values; `run` measures its cells.

A *cell* is one method on one data set with one seed. Its path: `workflow` -> `runner` -> `cells.run_cell`, which calls
`splits`, `estimators` and `measures`; its result is one JSON line (`records`).

tables, keys, parsing        a table as data, read from TOML (parsing_rows, parsing_datasets, table_checks);
table_files                  the tables that come with manyhands
splits, data_builder         training and test items of a cell, each data set built once per run
estimators, cells            the estimator of a cell, and what is measured with it
measures, metric_names       metrics of a fitted method
runner, processes,           cells in processes, results as JSON lines, from which an interrupted run resumes;
process_memory, provenance   memory of a process; versions, commit and machine of a result
records, revisions,          result rows: on disk, valid as long as the revisions of their methods are the same,
row_folders, staleness       where they are, and which are no longer used
verdicts, significance       mean, deviation, comparison with the published value and between methods
pages, rendering,            all results of a table as one object (a page); as text, Markdown, CSV and plots
markdown, plots
leaderboard, standings       every method on every data set
workflow                     complete runs, as the command line calls them
"""

from manyhands.reproduce.runner import run
from manyhands.reproduce.table_files import load_table, table_names

__all__ = ["load_table", "run", "table_names"]
