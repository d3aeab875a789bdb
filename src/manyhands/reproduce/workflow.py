"""Complete runs: `reproduce_tables` measures papers' tables, `measure_leaderboard` all methods on all data sets.

All options are checked, and all methods, data sets and output files, before the first cell is measured.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyhands.classifiers.network_device import device_parameter
from manyhands.exceptions import ParameterError
from manyhands.reproduce import leaderboard, leaderboard_page
from manyhands.reproduce.cells import Cell, cells_of, check_methods, narrowed
from manyhands.reproduce.data_builder import DataBuilder
from manyhands.reproduce.estimators import make_estimator
from manyhands.reproduce.pages import Page, page
from manyhands.reproduce.pictures import Picture
from manyhands.reproduce.plots import file_names, to_svg
from manyhands.reproduce.records import Records, read_records
from manyhands.reproduce.row_folders import figures_folder, rows_file
from manyhands.reproduce.runner import run
from manyhands.reproduce.staleness import describe_stale
from manyhands.reproduce.standings import Standing, standings
from manyhands.reproduce.table_files import load_table
from manyhands.reproduce.tables import Table
from manyhands.reproduce.verdicts import entries
from manyhands.workflows.device_option import check_device, refuse_without_network
from manyhands.writing import claim, refuse_present, refuse_unwritable, write_files


@dataclass(frozen=True)
class RunOptions:
    """Which cells are measured, and how.

    Attributes
    ----------
    out : Path or None, default=None
        Folder of result rows and figures; None is the one of `manyhands.reproduce.row_folders`.
    quick : bool, default=False
        Reduce everything, to test that it runs.
    seeds : int or None, default=None
        Number of seeds; None takes that of the table.
    only : sequence of str, default=()
        Names of data sets and rows to which tables are restricted.
    jobs : int or None, default=None
        Number of processes at most; None is as many as cores and memory allow.
    retry : bool, default=False
        Measure cells again that failed before.
    show_only : bool, default=False
        Measure nothing; show the rows that exist.
    device : str or None, default=None
        Device on which networks are trained; None is that of each row.
    """

    out: Path | None = None
    quick: bool = False
    seeds: int | None = None
    only: Sequence[str] = ()
    jobs: int | None = None
    retry: bool = False
    show_only: bool = False
    device: str | None = None

    def command(self, words: str) -> str:
        """Return what to type for the same figures; folders and the number of processes do not change them.

        Parameters
        ----------
        words : str
            The command without options.

        Returns
        -------
        str
            The command with the options that matter.
        """
        options = (" --quick" if self.quick else "") + (f" --seeds {self.seeds}" if self.seeds else "")
        options += f" --device {self.device}" if self.device else ""
        return words + options + "".join(f" --only {shlex.quote(name)}" for name in self.only)

    def rows_file(self, table: Table) -> Path:
        """Return the file of a table's result rows.

        Parameters
        ----------
        table : Table
            The table.

        Returns
        -------
        Path
            In `out`, or in the default folder.
        """
        return rows_file(table, self.out, quick=self.quick)


_DEFAULTS = RunOptions()


@dataclass(frozen=True, eq=False)
class LeaderboardRun:
    """Result of `measure_leaderboard`.

    Attributes
    ----------
    tables : tuple of Table
        The tables, restricted to what was asked for.
    pages : dict of str to dict
        Name of a table -> its page.
    standings : dict of str to list of Standing
        Name of a table -> its methods, the best mean rank first.
    markdown : str
        All of it as one document.
    """

    tables: tuple[Table, ...]
    pages: Mapping[str, Page]
    standings: Mapping[str, list[Standing]]
    markdown: str


def reproduce_tables(
    names: Sequence[str], options: RunOptions = _DEFAULTS, *, plot: bool = False, force: bool = False
) -> list[Page]:
    """Measure the cells of papers' tables that have no result row yet, and return all figures.

    Parameters
    ----------
    names : sequence of str
        Names of tables that come with manyhands, or paths of TOML files.
    options : RunOptions, default=RunOptions()
        Which cells, and how.
    plot : bool, default=False
        Write a figure of each table as SVG.
    force : bool, default=False
        Replace figures that exist.

    Returns
    -------
    list of dict
        A page per table, see `manyhands.reproduce.pages.page`.

    Raises
    ------
    ParameterError
        If a table, an option or a method is invalid.
    OutputExistsError
        If a figure exists, or another run is appending to the same rows.
    """
    if not names:
        raise ParameterError("Name a table; manyhands reproduce --list shows them all.")
    whole = {name: load_table(name) for name in dict.fromkeys(names)}
    tables = {name: narrowed(table, options.only) for name, table in whole.items()}
    figures = _figure_files(list(tables.values()), options) if plot else {}
    _check_places(list(tables.values()), options)
    for folder, files in figures.items():
        refuse_unwritable(folder, files)
        if not force:
            refuse_present(folder, files)
    pages = {}
    with nullcontext(None) if options.show_only else DataBuilder() as builder:
        _check_cells(list(tables.values()), options, builder)
        for name, table in tables.items():
            cells, records = _measure(table, options, builder)
            called = Path(name).name if name.endswith(".toml") else name
            command = options.command(f"manyhands reproduce {shlex.quote(called)}")
            pages[table.name] = page(table, cells, records, command, describe_stale(whole[name], records))
    for folder, files in figures.items():
        drawn = {file: to_svg(table, pages[table.name], picture) for file, (table, picture) in files.items()}
        write_files(folder, drawn, force=force)
    return list(pages.values())


def measure_leaderboard(
    options: RunOptions = _DEFAULTS, *, write: str | Path | None = None, force: bool = False
) -> LeaderboardRun:
    """Measure every method on every data set that suits it, with default settings.

    Parameters
    ----------
    options : RunOptions, default=RunOptions()
        Which cells, and how.
    write : str, Path or None, default=None
        File for the page, as Markdown.
    force : bool, default=False
        Replace a file that exists.

    Returns
    -------
    LeaderboardRun
        Figures and ranks.

    Raises
    ------
    ParameterError
        If an option is invalid, or a name is unknown.
    """
    path = None if write is None else Path(write)
    place = nullcontext(None) if path is None else claim(path.parent, [path.name], force=force, manifest=False)
    with place as output:
        tables = leaderboard.wanted(options.only)
        _check_places(tables, options)
        with nullcontext(None) if options.show_only else DataBuilder() as builder:
            _check_cells(tables, options, builder)
            parts = [(table, *_measure(table, options, builder)) for table in tables]
        whole = {table.name: table for table in leaderboard.tables()}
        stale = {table.name: describe_stale(whole[table.name], records) for table, _, records in parts}
        command = options.command("manyhands leaderboard")
        markdown = leaderboard_page.to_markdown(parts, command, stale)
        if output is not None and path is not None:
            output.write({path.name: markdown.encode()})
    pages = {table.name: page(table, cells, records, command, stale[table.name]) for table, cells, records in parts}
    ranks = {table.name: standings(entries(table, cells, records)) for table, cells, records in parts}
    return LeaderboardRun(tuple(tables), pages, ranks, markdown)


def require_results(pages: Sequence[Page]) -> None:
    """Refuse to count a run as successful in which every cell failed.

    Parameters
    ----------
    pages : sequence of dict
        The pages of the run.

    Raises
    ------
    ParameterError
        If cells were measured, and none succeeded.
    """
    if any(page["n_failed"] for page in pages) and not any(page["n_measured"] for page in pages):
        raise ParameterError("Every cell failed; the reasons are in the table above, and --retry tries again.")


def _figure_files(tables: Sequence[Table], options: RunOptions) -> dict[Path, dict[str, tuple[Table, Picture]]]:
    """Return folder -> file name -> what the figure shows."""
    found: dict[Path, dict[str, tuple[Table, Picture]]] = {}
    for table in tables:
        folder = figures_folder(table, quick=options.quick) if options.out is None else options.out
        found.setdefault(folder, {}).update({file: (table, picture) for file, picture in file_names(table).items()})
    return found


def _check_places(tables: Sequence[Table], options: RunOptions) -> None:
    """Refuse folders in which no rows can be written."""
    if not options.show_only:
        for table in tables:
            path = options.rows_file(table)
            refuse_unwritable(path.parent, [path.name])


def _check_cells(tables: Sequence[Table], options: RunOptions, builder: DataBuilder | None) -> None:
    """Refuse methods and data sets that cannot be had, before any table is measured."""
    if builder is None:
        return
    all_cells = [cells_of(table, quick=options.quick, seeds=options.seeds) for table in tables]
    for cells in all_cells:
        check_methods(cells)
    if options.device is not None:
        _check_device(options.device, [cell for cells in all_cells for cell in cells])
    for cells in all_cells:
        builder.check(cells)


def _check_device(device: str, cells: Sequence[Cell]) -> None:
    """Refuse a device that this machine does not have, or that none of the methods can use."""
    methods = {cell.row.name: make_estimator(cell.row, cell.seed) for cell in cells}
    without = [name for name, model in methods.items() if device_parameter(_first_step(model)) is None]
    refuse_without_network(list(methods), without)
    check_device(device)


def _first_step(model: Any) -> Any:
    """Return the representation learner of a pipeline, or the method itself."""
    return model[0] if hasattr(model, "named_steps") else getattr(model, "learner", model)  # of a HeldoutRegression


def _measure(table: Table, options: RunOptions, builder: DataBuilder | None) -> tuple[list[Cell], Records]:
    """Return the cells of a table, and all its rows when the missing ones are measured."""
    cells = cells_of(table, quick=options.quick, seeds=options.seeds)
    path = options.rows_file(table)
    if builder is None:
        return cells, read_records(path)
    found = run(
        table,
        path.parent,
        quick=options.quick,
        seeds=options.seeds,
        jobs=options.jobs,
        retry=options.retry,
        device=options.device,
        builder=builder,
    )
    return cells, found
