"""The papers' tables, measured: a table names data sets, methods and published values; `run` measures its cells.

tables          a table as data, and the tables that come with manyhands; parsing and keys read them from TOML
crowds          what a cell learns from and is tested on
cells, runner   one cell; all of them in processes, with results as lines of JSON that a killed run goes on from
verdicts        mean, deviation and verdict beside the published value
show, plots     terminal, Markdown, JSON, CSV; figures
leaderboard     every method on every data set
"""

from manyhands.reproduce.runner import run
from manyhands.reproduce.tables import load_table, table_names

__all__ = ["load_table", "run", "table_names"]
