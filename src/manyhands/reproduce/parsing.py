"""From TOML to a `Table`; a mistake gives one sentence that names the table, the key and what to do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import Keyed, Keys, ListOf, Text
from manyhands.reproduce.metric_names import METRICS, SHIFTED, is_metric
from manyhands.reproduce.parsing_datasets import parse_dataset
from manyhands.reproduce.parsing_figures import FigureContext, parse_figures
from manyhands.reproduce.parsing_rows import RowContext, parse_rows
from manyhands.reproduce.series import SERIES, is_series
from manyhands.reproduce.tables import CHOOSE_FOLDS, FIRST_SEED, Row, Table
from manyhands.validation import Boolean, Number

Piece = TypeVar("Piece")

_MOST_CHARACTERS = 1 << 20  # of a table
_MOST_DOTS = 50  # in one key
_DEEPEST = 20  # lists and tables within each other
_FLATTER = f"Use at most {_DEEPEST} lists and tables within each other."


def parse_table(text: str, name: str) -> Table:
    """Parse a table; unknown keys, missing keys and impossible values are refused.

    Parameters
    ----------
    text : str
        TOML.
    name : str
        Name of the table, for messages and for the file of its rows.

    Returns
    -------
    Table
        Methods are not imported, and their parameters not checked (`table_checks.check_table` does that).

    Raises
    ------
    ParameterError
        One sentence about the first mistake.
    """
    keys = Keys(_parse_toml(text, name), name)
    metrics = tuple(keys.take("metrics", ListOf(Text(), least=1), ["accuracy"]))
    for metric in metrics:
        if not is_metric(metric):
            keys.check_known(metric, METRICS + SHIFTED, "metric")
        if metrics.count(metric) > 1:
            keys.refuse(f"metrics has {metric} twice; once is enough")
    points = keys.take("points", Boolean(), False)
    sets = _each(keys, "datasets", "data set", parse_dataset)
    context = RowContext([dataset.name for dataset in sets], metrics, points)
    swept = _each(keys, "rows", "row", lambda part, row: parse_rows(part, row, context))
    rows = tuple(row for sweep in swept for row in sweep)
    if keys.take("validation_truth", Boolean(), False):
        keys.refuse(
            "validation_truth is true, but settings can only be chosen by held-out annotations yet; leave it out"
        )
    series = _series(keys)
    figure, pictures = parse_figures(keys, FigureContext(sets, rows, metrics, series))
    table = Table(
        name,
        keys.take("title", Text()),
        keys.take("paper", Text()),
        keys.take("number", Text()),
        sets,
        rows,
        keys.take("seeds", Number(whole=True, least=1), 5),
        keys.take("first_seed", Number(whole=True, least=0), FIRST_SEED),
        metrics,
        points,
        tuple(keys.take("deviations", ListOf(Text()), [])),
        figure=figure,
        focus=_focus(keys, rows, metrics),
        choose_folds=keys.take("choose_folds", Number(whole=True, least=2), CHOOSE_FOLDS),
        series=series,
        figures=pictures,
    )
    keys.finish()
    return table


def _parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML of limited size and depth; beyond it, Python's parser is slow or fails with a traceback."""
    if len(text) > _MOST_CHARACTERS:
        raise ParameterError(f"The table {name} has {len(text):,} characters; at most {_MOST_CHARACTERS:,} are read.")
    if any(part.count(".") > _MOST_DOTS for part in re.split(r"[=\[\]{},#\n]", text)):
        raise ParameterError(f"The table {name} is nested too deep. {_FLATTER}")  # such keys take minutes to parse
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The table {name} is not TOML: {error}.") from None
    except RecursionError:
        raise ParameterError(f"The table {name} is nested too deep. {_FLATTER}") from None
    except ValueError:  # Python does not read integers of thousands of digits
        raise ParameterError(f"The table {name} has a number with too many digits. Write fewer.") from None
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        inside = [list(part.values()) if isinstance(part, dict) else part for part in level]
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
    if level:
        raise ParameterError(f"The table {name} is nested too deep. {_FLATTER}")
    return found


def _series(keys: Keys) -> tuple[str, ...]:
    """Return the names of the series that rows store; unknown ones are refused."""
    names = tuple(keys.take("series", ListOf(Text()), []))
    for name in names:
        if not is_series(name):
            keys.check_known(name, (*SERIES, "history.<key>", "rounds.<key>", "fitted.<attribute>"), "series")
        if names.count(name) > 1:
            keys.refuse(f"series has {name} twice; once is enough")
    return names


def _focus(keys: Keys, rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any] | None:
    """Return the row that is compared with all others, and by which metrics."""
    given = keys.take("focus", Keyed(), None)
    if given is None:
        return None
    part = Keys(given, keys.table, "focus")
    row, beside = part.take("row", Text()), part.take("beside", ListOf(Text(), least=1), None)
    compared = part.take("metrics", ListOf(Text(), least=1), list(metrics[:1]))
    part.finish()
    for name in [row, *(beside or ())]:
        known = dict.fromkeys(one.name for one in rows if one.method is not None)
        part.check_known(name, known, "row with a method called")
    for metric in compared:
        part.check_known(metric, metrics, "metric in this table called")
    return {"row": row, "metrics": tuple(compared)} | ({} if beside is None else {"beside": tuple(beside)})


def _each(keys: Keys, key: str, what: str, parse: Callable[[Keys, str], Piece]) -> tuple[Piece, ...]:
    """Return the parts of a table; none may have an unknown key or the name of another."""
    found: dict[str, Piece] = {}
    for given in keys.take(key, ListOf(Keyed(), least=1)):
        part = Keys(given, keys.table, f"{what} {len(found) + 1}")
        name = part.take("name", Text())
        part.part = f"{what} {name!r}"
        if name in found:
            part.refuse(f"another {what} has this name; rename one of them")
        found[name] = parse(part, name)
        part.finish()
    return tuple(found.values())
