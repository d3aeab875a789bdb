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

from manyhands._core.writing import claim, refuse_present, refuse_unwritable, write_files
from manyhands.classifiers.network import device_parameter
from manyhands.exceptions import ParameterError
from manyhands.jobs.options import check_device, refuse_without_network
from manyhands.reproduce import leaderboard
from manyhands.reproduce.cells import Cell, cells_of, check_methods, make_estimator, narrowed, steps_of
from manyhands.reproduce.pages import Page, page
from manyhands.reproduce.parsing import load_table
from manyhands.reproduce.plots import file_names, to_svg
from manyhands.reproduce.records import Records, describe_stale, figures_folder, read_records, rows_file
from manyhands.reproduce.runner import DataBuilder, run
from manyhands.reproduce.tables import Picture, Table
from manyhands.reproduce.verdicts import Standing, entries, standings


@dataclass(frozen=True)
class RunOptions:
    """Which cells are measured, and how."""

    out: Path | None = None  # folder of result rows and figures; None is the one of `manyhands.reproduce.records`
    quick: bool = False  # reduce everything, to test that it runs
    seeds: int | None = None  # number of seeds; None takes that of the table
    only: Sequence[str] = ()  # names of data sets and rows to which tables are restricted
    jobs: int | None = None  # number of processes at most; None is as many as cores and memory allow
    retry: bool = False  # measure cells again that failed before
    show_only: bool = False  # measure nothing; show the rows that exist
    device: str | None = None  # device on which networks are trained; None is that of each row

    def command(self, words: str) -> str:
        """Return what to type for the same figures; folders and the number of processes do not change them."""
        options = (" --quick" if self.quick else "") + (f" --seeds {self.seeds}" if self.seeds else "")
        options += f" --device {self.device}" if self.device else ""
        return words + options + "".join(f" --only {shlex.quote(name)}" for name in self.only)

    def rows_file(self, table: Table) -> Path:
        """Return the file of a table's result rows."""
        return rows_file(table, self.out, quick=self.quick)


_DEFAULTS = RunOptions()


@dataclass(frozen=True, eq=False)
class LeaderboardRun:
    """Result of `measure_leaderboard`."""

    tables: tuple[Table, ...]  # the tables, restricted to what was asked for
    pages: Mapping[str, Page]  # name of a table -> its page
    standings: Mapping[str, list[Standing]]  # name of a table -> its methods, the best mean rank first
    markdown: str  # all of it as one document


def reproduce_tables(
    names: Sequence[str], options: RunOptions = _DEFAULTS, *, plot: bool = False, force: bool = False
) -> list[Page]:
    """Measure the cells of papers' tables that have no result row yet, and return all figures."""
    if not names:
        raise ParameterError("Name a table; `manyhands.reproduce.table_names()` lists them all.")
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
    """Measure every method on every data set that suits it, with default settings."""
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
        markdown = leaderboard.to_markdown(parts, command, stale)
        if output is not None and path is not None:
            output.write({path.name: markdown.encode()})
    pages = {table.name: page(table, cells, records, command, stale[table.name]) for table, cells, records in parts}
    ranks = {table.name: standings(entries(table, cells, records)) for table, cells, records in parts}
    return LeaderboardRun(tuple(tables), pages, ranks, markdown)


def require_results(pages: Sequence[Page]) -> None:
    """Refuse to count a run as successful in which every cell failed."""
    if any(page["n_failed"] for page in pages) and not any(page["n_measured"] for page in pages):
        raise ParameterError("Every cell failed; the reasons are in the table above, and `retry=` tries again.")


def _figure_files(tables: Sequence[Table], options: RunOptions) -> dict[Path, dict[str, tuple[Table, Picture]]]:
    """Return folder -> file name -> what the figure shows."""
    pictures_of: dict[Path, dict[str, tuple[Table, Picture]]] = {}
    for table in tables:
        folder = figures_folder(table, quick=options.quick) if options.out is None else options.out
        pictures_of.setdefault(folder, {}).update(
            {file: (table, picture) for file, picture in file_names(table).items()}
        )
    return pictures_of


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
    first = steps_of(model)[0]
    return vars(first).get("learner", first)  # of a HeldoutRegression


def _measure(table: Table, options: RunOptions, builder: DataBuilder | None) -> tuple[list[Cell], Records]:
    """Return the cells of a table, and all its rows when the missing ones are measured."""
    cells = cells_of(table, quick=options.quick, seeds=options.seeds)
    path = options.rows_file(table)
    if builder is None:
        return cells, read_records(path)
    records = run(
        table,
        path.parent,
        quick=options.quick,
        seeds=options.seeds,
        jobs=options.jobs,
        retry=options.retry,
        device=options.device,
        builder=builder,
    )
    return cells, records
