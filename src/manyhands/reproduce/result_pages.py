"""The pages of `docs/results`, made from templates and stored rows; nothing is measured.

    reproduced/<paper>-<table>.md and .svg   every table that has rows
    <page>.md                                from templates/<page>.md.j2, with the functions of `template_functions`
    leaderboard.md and its figures           from the rows of `manyhands leaderboard`

A template that asks for a cell without a result is refused in one sentence; the other pages are still made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from manyhands.exceptions import ManyhandsError, MissingExtraError, ParameterError
from manyhands.reproduce import leaderboard, leaderboard_page
from manyhands.reproduce.markdown import grid, to_markdown
from manyhands.reproduce.measured import Loader, Measured
from manyhands.reproduce.plots import file_names, ranks_to_svg, to_svg
from manyhands.reproduce.records import read_records
from manyhands.reproduce.row_folders import rows_file
from manyhands.reproduce.staleness import describe_stale
from manyhands.reproduce.standings import standings
from manyhands.reproduce.table_files import load_table, table_names
from manyhands.reproduce.tables import Table
from manyhands.reproduce.template_functions import minutes_text, template_functions

TEMPLATES = "templates"
REPRODUCED = "reproduced"
_ENDING = ".md.j2"
_LEADERBOARD = "leaderboard.md"


@dataclass(frozen=True)
class Documents:
    """Contents of files below `docs/results`.

    Attributes
    ----------
    files : dict of str to bytes
        Path below the folder -> content.
    problems : tuple of str
        Why pages could not be made, a sentence each.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def render_documents(folder: Path, *, draw: bool = True) -> Documents:
    """Make all pages of a folder.

    Parameters
    ----------
    folder : Path
        ``docs/results`` of a checkout, with the folders ``rows`` and ``templates``.
    draw : bool, default=True
        Whether to draw the figures, which takes most of the time.

    Returns
    -------
    Documents
        Files and problems.
    """
    load = stored_results(folder / "rows")
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for name in table_names():
        measured = load(name)
        if measured.n_found:
            files |= _table_files(measured, draw)
        if measured.n_found < len(measured.cells):
            problems.append(f"{name}: {measured.n_found} of {len(measured.cells)} cells are measured.")
    files |= _leaderboard_files([load(name) for name in _boards()], draw)
    for path in sorted((folder / TEMPLATES).glob(f"*{_ENDING}")):
        try:
            page = render_template(path.read_text(encoding="utf-8"), load)
            files[path.name.removesuffix(_ENDING) + ".md"] = page.encode()
        except ManyhandsError as error:
            problems.append(f"{path.name}: {error}")
    return Documents(files, tuple(problems))


def render_template(text: str, load: Loader) -> str:
    """Fill in one template.

    Parameters
    ----------
    text : str
        A jinja2 template.
    load : callable
        Name of a table -> its measured results.

    Returns
    -------
    str
        Markdown.

    Raises
    ------
    ParameterError
        If the template asks for a cell without a result, or has a mistake.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError("Pages need jinja2. Install it with: pip install 'manyhands[dev]'") from None
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= template_functions(load) | {"all_tables": lambda: table_list(load)}
    try:
        return environment.from_string(text).render()
    except jinja2.TemplateError as error:
        line = getattr(error, "lineno", None)
        raise ParameterError(f"The template cannot be read{f' at line {line}' if line else ''}: {error}.") from None
    except TypeError as error:  # a function with a wrong argument
        raise ParameterError(f"The template calls a function in a wrong way: {error}.") from None


def table_list(load: Loader) -> str:
    """Return all tables with the number of their cells and their time, and the sum.

    Parameters
    ----------
    load : callable
        Name of a table -> its measured results.

    Returns
    -------
    str
        A Markdown table.
    """
    lines, total = [], 0.0
    for name in (*table_names(), *_boards()):
        measured = load(name)
        seconds, total = measured.seconds, total + measured.seconds
        page = _LEADERBOARD if name in _boards() else f"{REPRODUCED}/{name.replace('/', '-')}.md"
        shown = f"[{name}]({page})" if measured.n_found else name
        table = measured.table
        done = f"{measured.n_found} of {len(measured.cells)}"
        lines.append([shown, table.number, str(table.seeds), done, minutes_text(seconds)])
    lines.append(["all", "", "", "", minutes_text(total)])
    return grid(["table", "in the paper", "seeds", "cells measured", "minutes"], lines)


def stored_results(rows: Path) -> Loader:
    """Return a function that reads each table with its rows once.

    Parameters
    ----------
    rows : Path
        Folder of the rows.

    Returns
    -------
    callable
        Name of a table -> its measured results.
    """

    @cache
    def load(name: str) -> Measured:
        table = _boards().get(name) or load_table(name)
        return Measured(table, read_records(rows_file(table, rows)))

    return load


def _table_files(measured: Measured, draw: bool) -> dict[str, bytes]:
    """Return the page of a table, with its figures above the tables."""
    name = measured.table.name.replace("/", "-")
    figures = file_names(measured.table)
    text = to_markdown(measured.page)
    head, mark, rest = text.partition("\n## ")
    shown = "\n\n".join(f"![{measured.table.title}]({file})" for file in figures)
    found = {f"{REPRODUCED}/{name}.md": f"{head}\n{shown}\n{mark}{rest}".encode()}
    if draw:
        drawn = {file: to_svg(measured.table, measured.page, picture) for file, picture in figures.items()}
        found |= {f"{REPRODUCED}/{file}": content for file, content in drawn.items()}
    return found


def _boards() -> dict[str, Table]:
    """Return the tables of the leaderboard by name."""
    return {table.name: table for table in leaderboard.tables()}


def _leaderboard_files(parts: Sequence[Measured], draw: bool) -> dict[str, bytes]:
    """Return the leaderboard, if it has been measured."""
    if not all(part.n_found for part in parts):
        return {}
    figures = {part.table.name: f"{REPRODUCED}/{part.table.name.replace('/', '-')}.svg" for part in parts}
    shown = leaderboard_page.to_markdown(
        [(one.table, one.cells, one.records) for one in parts],
        "manyhands leaderboard",
        {one.table.name: describe_stale(one.table, one.records) for one in parts},
        figures,
    )
    found = {_LEADERBOARD: shown.encode()}
    if draw:
        found |= {figures[part.table.name]: ranks_to_svg(standings(part.entries)) for part in parts}
    return found
