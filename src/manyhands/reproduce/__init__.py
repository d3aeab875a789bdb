"""Papers' tables, measured: a table names data sets, methods and published values; `run` measures its cells.

A *cell* is one method on one data set with one seed. Its result is one JSON line, a *row*.

    tables       a table as data: data sets, methods, published values, metrics, figures
    parsing      tables read from TOML and checked, among them those that come with manyhands
    cells        what one cell is: its data, its estimator, what is measured of the fitted method, its key
    runner       cells measured in processes of their own, from whose rows an interrupted run resumes
    records      rows on disk: where they are, which of them are current, and on what machine they were measured
    verdicts     mean and deviation over seeds, compared with the published value and between methods
    pages        all results of a table as one object (a page), and as text, Markdown and CSV
    plots        a page as SVG
    leaderboard  every method on every data set
    workflow     complete runs, as the command line calls them
"""

from manyhands.reproduce.parsing import load_table, table_names
from manyhands.reproduce.runner import run

__all__ = ["load_table", "run", "table_names"]
