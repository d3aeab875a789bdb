"""What `train`, `predict` and `evaluate` share: the options of features, and parameters from text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.validation import check_parameters

FeatureFile = Annotated[
    Path,
    typer.Option(
        "--features", metavar="FILE", help="Features of the items: .npy, .npz (X and ids), CSV, Parquet, sparse .npz."
    ),
]
IdColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the features with the ids of the items.")
]
FeatureIds = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Ids of the rows, for features that have none: one a line, or .npy.")
]
RowsInOrder = Annotated[
    bool,
    typer.Option(
        "--rows-in-order", help="Match by position: rows are in the order of the items' ids, numbers as numbers."
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder that manyhands train wrote.")]


def parse_settings(method: str, settings: Sequence[str]) -> dict[str, Any]:
    """`name=value` texts as parameters of a method, each in the type that its constraint allows.

    >>> parse_settings("crowd-layer", ["hidden=64,32", "patience=none", "dropout=0.1"])
    {'hidden': (64, 32), 'patience': None, 'dropout': 0.1}
    """
    constraints = registry.get(method)._constraints
    found: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise ParameterError(f"--set {setting} has no value. Write it as name=value.")
        if name not in constraints:
            raise ParameterError(f"{method} has no parameter {name!r}. It has: {', '.join(constraints)}.")
        allowed = [value for value in _readings(text) if constraints[name].allows(value)]
        if not allowed:
            check_parameters(method, {name: text}, {name: constraints[name]})
        found[name] = allowed[0]
    return found


def _readings(text: str) -> Iterator[Any]:
    """What a text may mean, the narrowest first."""
    word = text.strip().lower()
    if word == "none":
        yield None
    if word in ("true", "false"):
        yield word == "true"
    for kind in (int, float):
        try:
            yield kind(text)
        except ValueError:
            continue
    for kind in (int, float):
        try:
            yield tuple(kind(part) for part in text.split(",") if part.strip())
        except ValueError:
            continue
    yield text
