"""`manyhands reproduce`: a paper's table, measured beside published values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
import typer

from manyhands.cli.options import AsJson, Force, OnDevice, Quiet
from manyhands.cli.printing import print_data, print_json
from manyhands.cli.run_options import Jobs, Only, Out, Quick, Retry, Seeds, ShowOnly, measuring, show_failures
from manyhands.cli.show import echo, show_table
from manyhands.exceptions import ParameterError

_FORMATS = ("terminal", "markdown", "json", "csv")

_Tables = Annotated[
    list[str] | None, typer.Argument(metavar="TABLE", help="Names as --list shows them, or TOML files of your own.")
]
_Format = Annotated[str, typer.Option("--format", metavar="NAME", help=f"Output format: {', '.join(_FORMATS)}.")]


def reproduce(
    tables: _Tables = None,
    quick: Quick = False,
    seeds: Seeds = None,
    only: Only = None,
    jobs: Jobs = None,
    device: OnDevice = None,
    retry: Retry = False,
    show_only: ShowOnly = False,
    listed: Annotated[bool, typer.Option("--list", help="List the tables, one per line.")] = False,
    out: Out = None,
    form: _Format = _FORMATS[0],
    plot: Annotated[bool, typer.Option("--plot", help="Draw each table as SVG into the folder.")] = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Measure a paper's table: published value, measured value, and whether they agree.

    Every finished cell is a line of FOLDER/<paper>-<table>.jsonl; a run that was stopped resumes from these lines.
    Real data sets are read from the folder in MANYHANDS_DATA.

    \b
    Examples:
      manyhands reproduce --list
      manyhands reproduce crowding/table-1 --quick
      manyhands reproduce crowding/table-1 --only labelme --seeds 3 --format markdown
    """
    from manyhands.reproduce.workflow import RunOptions, reproduce_tables, require_results

    form = "json" if as_json else form
    if form not in _FORMATS:
        raise ParameterError(f"--format is {form!r}; it may be {', '.join(_FORMATS)}.")
    if listed:
        _list(form)
        return
    options = RunOptions(out, quick, seeds, only or (), jobs, retry, show_only, device)
    with measuring(quiet or form != _FORMATS[0]):
        pages = reproduce_tables(tables or [], options, plot=plot, force=force)
    _print(pages, form, quiet)
    require_results(pages)


def _list(form: str) -> None:
    """Print the tables that come with manyhands."""
    from manyhands.reproduce import load_table, table_names

    tables = [load_table(name) for name in table_names()]
    if form == "json":
        print_json({"schema": 1, "tables": [{"name": t.name, "number": t.number, "title": t.title} for t in tables]})
        return
    width = max((len(table.name) for table in tables), default=0)
    print_data("".join(f"{table.name:<{width}}  {table.number}: {table.title}\n" for table in tables))


def _print(pages: Sequence[dict[str, Any]], form: str, quiet: bool) -> None:
    """Print all pages in one format."""
    from manyhands.reproduce.markdown import to_csv, to_markdown

    if form == "json":
        print_json({"schema": 1, "tables": list(pages)})
    elif form == "markdown":
        print_data("\n".join(to_markdown(page) for page in pages))
    elif form == "csv":
        first, *others = map(to_csv, pages)
        print_data(first + "".join(other.partition("\n")[2] for other in others))
    else:
        for page in pages:
            _show(page, quiet)


def _show(page: dict[str, Any], quiet: bool) -> None:
    """Print the figures as tables, then provenance and deviations from the paper, to standard error."""
    from manyhands.reproduce.rendering import differing, notes, sections

    for what, columns, rows in sections(page):
        table = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
        show_table(table, f"{page['table']}: {what}")
    if quiet:
        return
    echo(f"{page['paper']} {page['number']}: {page['title']}")
    for sentence in [*notes(page), *(f"Differs from the paper: {text}" for text in page["deviations"])]:
        echo(sentence)
    for sentence in differing(page):
        echo(f"Significant: {sentence}")
    show_failures(page)
