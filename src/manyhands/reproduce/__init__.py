"""Papers' tables, measured: a table names data sets, methods and published values; `run` measures its cells.

tables, keys, parsing      a table as data, read from TOML; table_files: the tables that come with manyhands
splits, data_builder       training and test items of a cell, each data set built once per run
estimators, cells          one method on one data set with one seed
measures, metric_names     metrics of a fitted method
runner, processes, memory  cells in processes, results as JSON lines, from which an interrupted run resumes
records, revisions,        result rows: on disk, valid as long as the revisions of their methods are the same,
folders, staleness         where they are, and which are no longer used
verdicts, significance     mean, deviation, comparison with the published value and between methods
pages, rendering,          all figures as one object; as tables, Markdown, CSV and figures
markdown, plots
leaderboard, standings     every method on every data set
workflow                   complete runs, as the command line calls them
"""

from manyhands.reproduce.runner import run
from manyhands.reproduce.table_files import load_table, table_names

__all__ = ["load_table", "run", "table_names"]
