"""Commands on papers: `reproduce`, a table measured beside published values; `leaderboard`, all methods on all data.

What a command needs is imported in its function, so that the command line starts at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands.cli.options import (
    AsJson,
    Force,
    Jobs,
    OnDevice,
    Only,
    Out,
    Quick,
    Quiet,
    Retry,
    Seeds,
    ShowOnly,
    measuring,
    output_option,
    show_failures,
)
from manyhands.cli.printing import echo, print_data, print_json, show_table
from manyhands.exceptions import ParameterError

# ----------------------------------------------------------------------------------------------------
# `manyhands leaderboard`: every method on every data set, as one page.

_Write = Annotated[
    Path | None, output_option(metavar="FILE", help="Write the page here, as Markdown; otherwise it goes to stdout.")
]


def leaderboard(
    quick: Quick = False,
    seeds: Seeds = None,
    only: Only = None,
    jobs: Jobs = None,
    device: OnDevice = None,
    retry: Retry = False,
    show_only: ShowOnly = False,
    out: Out = None,
    write: _Write = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Measure every method on every data set that suits it, with default settings; a page of ranks and metrics.

    Half an hour on two cores: it may be stopped at any time and resumes from the rows in FOLDER. Data sets are read
    from the folder in MANYHANDS_DATA.

    \b
    Examples:
      manyhands leaderboard --quick --only labelme --only crowd-layer
      manyhands leaderboard --write docs/results/leaderboard.md --force
    """
    import polars as pl

    from manyhands.reproduce.workflow import RunOptions, measure_leaderboard, require_results

    options = RunOptions(out, quick, seeds, only or (), jobs, retry, show_only, device)
    with measuring(quiet or as_json):
        run = measure_leaderboard(options, write=write, force=force)
    pages = [
        page | {"standings": [vars(standing) for standing in run.standings[name]]} for name, page in run.pages.items()
    ]
    if as_json:
        print_json({"schema": 1, "tables": pages})
        return
    if write is None:
        print_data(run.markdown)
    if not quiet:
        for table in run.tables:
            rows = [
                (s.row, s.rank, f"{s.interval[0]:.1f} to {s.interval[1]:.1f}", f"{s.n_near_best} of {s.n_sets}")
                for s in run.standings[table.name]
            ]
            columns = ["method", "mean rank", "90% interval", "near the best"]
            show_table(pl.DataFrame(rows, schema=columns, orient="row"), table.title)
            show_failures(run.pages[table.name])
        if write is not None:
            echo(f"Written to {write}")
    require_results(pages)


_FORMATS = ("terminal", "markdown", "json", "csv")
_Tables = Annotated[
    list[str] | None, typer.Argument(metavar="TABLE", help="Names as --list shows them, or TOML files of your own.")
]
_Format = Annotated[str, output_option("--format", metavar="NAME", help=f"Output format: {', '.join(_FORMATS)}.")]


def reproduce(
    tables: _Tables = None,
    quick: Quick = False,
    seeds: Seeds = None,
    only: Only = None,
    jobs: Jobs = None,
    device: OnDevice = None,
    retry: Retry = False,
    show_only: ShowOnly = False,
    listed: Annotated[bool, output_option("--list", help="List the tables, one per line.")] = False,
    out: Out = None,
    form: _Format = _FORMATS[0],
    plot: Annotated[bool, output_option("--plot", help="Draw each table as SVG into the folder.")] = False,
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
    if not tables:
        raise ParameterError("Name a table; manyhands reproduce --list shows them all.")
    options = RunOptions(out, quick, seeds, only or (), jobs, retry, show_only, device)
    with measuring(quiet or form != _FORMATS[0]):
        pages = reproduce_tables(tables, options, plot=plot, force=force)
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
    from manyhands.reproduce.pages import to_csv, to_markdown

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
    import polars as pl

    from manyhands.reproduce.pages import differing, notes, sections

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
