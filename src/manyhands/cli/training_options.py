"""What `train`, `predict` and `evaluate` share: the options of features, and parameters from text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.cli.show import say
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


def parse_settings(methods: Sequence[str], settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`name=value` texts as parameters of each method that has them, in the type that its constraint allows.

    `method.name=value` is for one of the methods, and wins over `name=value`.

    >>> parse_settings(["crowd-layer"], ["hidden=64,32", "patience=none", "dropout=0.1"])
    {'crowd-layer': {'hidden': (64, 32), 'patience': None, 'dropout': 0.1}}
    """
    found: dict[str, dict[str, Any]] = {method: {} for method in methods}
    wishes = [_split(setting, methods) for setting in settings]
    for method, name, text in sorted(wishes, key=lambda wish: wish[0] is not None):
        among = methods if method is None else [method]
        having = [one for one in among if name in registry.get(one)._constraints]
        if not having:
            raise ParameterError(" ".join(_lacks(one, name) for one in among))
        for one in having:
            found[one][name] = _typed(one, name, text)
        if len(having) < len(among):
            others = [one for one in among if one not in having]
            say(f"note: {name} is set for {', '.join(having)}; it is no parameter of {', '.join(others)}.")
    return found


def _split(setting: str, methods: Sequence[str]) -> tuple[str | None, str, str]:
    """The method that is meant (None: all), the name and the text of the value."""
    name, separator, text = setting.partition("=")
    if not separator:
        raise ParameterError(f"--set {setting} has no value. Write it as name=value.")
    method, dot, own = name.partition(".")
    if not dot:
        return None, name, text
    if method not in methods:
        raise ParameterError(f"--set {setting} is for {method}, which is not to be trained: {', '.join(methods)}.")
    return method, own, text


def _lacks(method: str, name: str) -> str:
    return f"{method} has no parameter {name!r}. It has: {', '.join(registry.get(method)._constraints)}."


def _typed(method: str, name: str, text: str) -> Any:
    constraint = registry.get(method)._constraints[name]
    allowed = [value for value in _readings(text) if constraint.allows(value)]
    if not allowed:
        check_parameters(method, {name: text}, {name: constraint})
    return allowed[0]


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
