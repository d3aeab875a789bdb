"""`manyhands reproduce`: a paper's table, published beside measured."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from manyhands.cli.options import AsJson, Force, Quiet
from manyhands.cli.printing import print_data, print_json
from manyhands.cli.show import progress_bar, say, show_table
from manyhands.exceptions import ParameterError
from manyhands.io.messages import counted
from manyhands.writing import refuse_present, refuse_unwritable, write_files

_FORMATS = ("terminal", "markdown", "json", "csv")

Quick = Annotated[bool, typer.Option("--quick", help="Shrink everything, to see that it works; figures mean nothing.")]
Seeds = Annotated[int | None, typer.Option(min=1, metavar="NUMBER", help="How many, if not as many as the table says.")]
Only = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A data set or a row to stay with; may be repeated.")
]
Jobs = Annotated[
    int | None, typer.Option(min=1, metavar="NUMBER", help="Processes at once; by default as cores and memory allow.")
]
Out = Annotated[
    Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for results, from which a killed run goes on.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Try cells again that failed before.")]
ShowOnly = Annotated[bool, typer.Option("--show", help="Measure nothing: show what there is.")]
_Tables = Annotated[
    list[str] | None, typer.Argument(metavar="TABLE", help="Names as --list shows them, or TOML files of your own.")
]
_Format = Annotated[str, typer.Option("--format", metavar="NAME", help=f"What is shown: {', '.join(_FORMATS)}.")]


@dataclass(frozen=True)
class RunOptions:
    """What the user wants measured, and how."""

    out: Path
    quick: bool
    seeds: int | None
    only: Sequence[str]
    jobs: int | None
    retry: bool
    show_only: bool
    quiet: bool

    def command(self, words: str) -> str:
        """What to type for the same figures; folders and the number of processes do not matter for them."""
        told = (" --quick" if self.quick else "") + (f" --seeds {self.seeds}" if self.seeds else "")
        return words + told + "".join(f" --only {shlex.quote(name)}" for name in self.only)


def reproduce(
    tables: _Tables = None,
    quick: Quick = False,
    seeds: Seeds = None,
    only: Only = None,
    jobs: Jobs = None,
    retry: Retry = False,
    show_only: ShowOnly = False,
    listed: Annotated[bool, typer.Option("--list", help="List the tables, one a line.")] = False,
    out: Out = Path("reproduced"),
    form: _Format = _FORMATS[0],
    plot: Annotated[bool, typer.Option("--plot", help="Draw each table as SVG into the folder.")] = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure a paper's table: the published figure, ours, and whether they agree.

    Every finished cell is a line of FOLDER/<paper>-<table>.jsonl; a run that was stopped goes on where it was.
    Real data sets come from the folder in MANYHANDS_DATA.

    \b
    Examples:
      manyhands reproduce --list
      manyhands reproduce crowding/table-1 --quick
      manyhands reproduce crowding/table-1 --only labelme --seeds 3 --format markdown
    """
    from manyhands.reproduce.cells import narrowed
    from manyhands.reproduce.plots import file_names, to_svg
    from manyhands.reproduce.tables import load_table, table_names

    form = "json" if as_json else _checked(form)
    if listed:
        _list([load_table(name) for name in table_names()], form)
        return
    if not tables:
        raise ParameterError("Name a table; manyhands reproduce --list shows them all.")
    chosen = {name: narrowed(load_table(name), only or ()) for name in dict.fromkeys(tables)}
    tables_drawn = list(chosen.values()) if plot else []
    drawings = {file: (table, metric) for table in tables_drawn for file, metric in file_names(table).items()}
    wish = RunOptions(out, quick, seeds, only or (), jobs, retry, show_only, quiet or form != _FORMATS[0])
    refuse_places(list(chosen.values()), wish)
    if drawings:
        refuse_unwritable(out, drawings)
    if not force:
        refuse_present(out, drawings)
    refuse_all(list(chosen.values()), wish)
    pages = [_page(table, wish, Path(name).name if name.endswith(".toml") else name) for name, table in chosen.items()]
    if drawings:
        shown = {page["table"]: page for page in pages}
        files = {file: to_svg(table, shown[table.name], metric) for file, (table, metric) in drawings.items()}
        write_files(out, files, force=force)
    _print(pages, form, quiet)
    end_if_all_failed(pages)


def _checked(form: str) -> str:
    if form not in _FORMATS:
        raise ParameterError(f"--format is {form!r}; it may be {', '.join(_FORMATS)}.")
    return form


def _list(tables: Sequence[Any], form: str) -> None:
    if form == "json":
        print_json({"schema": 1, "tables": [{"name": t.name, "number": t.number, "title": t.title} for t in tables]})
        return
    width = max((len(table.name) for table in tables), default=0)
    print_data("".join(f"{table.name:<{width}}  {table.number}: {table.title}\n" for table in tables))


def _page(table: Any, wish: RunOptions, called: str) -> dict[str, Any]:
    from manyhands.reproduce.rendering import page

    cells, records = measure(table, wish)
    return page(table, cells, records, wish.command(f"manyhands reproduce {shlex.quote(called)}"))


def refuse_places(tables: Sequence[Any], wish: RunOptions) -> None:
    """Where results cannot be written is said before anything is measured."""
    from manyhands.reproduce.runner import results_file

    if not wish.show_only:
        refuse_unwritable(wish.out, [results_file(table, wish.out).name for table in tables])


def refuse_all(tables: Sequence[Any], wish: RunOptions) -> None:
    """What cannot run is said before any table does."""
    from manyhands.reproduce.cells import cells_of, refuse_unusable

    if not wish.show_only:
        for table in tables:
            refuse_unusable(cells_of(table, quick=wish.quick, seeds=wish.seeds))


def end_if_all_failed(pages: Sequence[dict[str, Any]]) -> None:
    """A run that measured nothing, although it tried, does not end as if all were well."""
    if any(page["n_failed"] for page in pages) and not any(page["n_measured"] for page in pages):
        raise ParameterError("Every cell failed; the reasons are in the table above, and --retry tries again.")


def measure(table: Any, wish: RunOptions) -> tuple[list[Any], Any]:
    """The cells that are wanted of a table, and what is known of them when the work is done."""
    from manyhands.reproduce import provenance
    from manyhands.reproduce.cells import cells_of
    from manyhands.reproduce.records import read_records
    from manyhands.reproduce.runner import results_file, run

    options: dict[str, Any] = {"quick": wish.quick, "seeds": wish.seeds}
    cells = cells_of(table, **options)
    path = results_file(table, wish.out)
    before = {record.get("commit") for record in map(read_records(path).find, (cell.key for cell in cells)) if record}
    if before - {provenance.commit()}:
        say(f"note: {path} has figures of another commit, which are not measured again; remove it to do so.")
    if wish.show_only:
        return cells, read_records(path)
    try:
        with progress_bar(wish.quiet):
            return cells, run(table, wish.out, **options, jobs=wish.jobs, retry=wish.retry)
    except KeyboardInterrupt:
        say(f"note: what was finished is in {path}; the same command goes on from there.")
        raise


def _print(pages: Sequence[dict[str, Any]], form: str, quiet: bool) -> None:
    from manyhands.reproduce import rendering as show

    if form == "json":
        print_json({"schema": 1, "tables": list(pages)})
    elif form == "markdown":
        print_data("\n".join(show.to_markdown(page) for page in pages))
    elif form == "csv":
        first, *others = map(show.to_csv, pages)
        print_data(first + "".join(other.partition("\n")[2] for other in others))
    else:
        for page in pages:
            _show(page, quiet)


def _show(page: dict[str, Any], quiet: bool) -> None:
    """The figures as a table, then what must be known to read them."""
    from manyhands.reproduce import rendering as show

    for what, columns, rows in show.sections(page):
        show_table(_frame(columns, rows), f"{page['table']}: {what}")
    if quiet:
        return
    say(f"{page['paper']} {page['number']}: {page['title']}")
    for sentence in [*show.notes(page), *(f"Differs from the paper: {text}" for text in page["deviations"])]:
        say(sentence)
    for sentence in show.differing(page):
        say(f"Beyond chance: {sentence}")
    show_failures(page)


def _frame(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def show_failures(page: dict[str, Any]) -> None:
    """A note for each row that failed on a data set, and how to try again."""
    from manyhands.reproduce import rendering as show

    for sentence in show.failures(page):
        say(f"note: {sentence}")
    if page["n_failed"]:
        say(f"note: {counted(page['n_failed'], 'cell')} failed; --retry tries again.")
