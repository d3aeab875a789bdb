"""Options that `train`, `predict` and `evaluate` share, and parameters of methods as `--set NAME=VALUE`.

FeatureFile   --features FILE: the features of the items
IdColumn      --id-column COLUMN: where a table of features has the item ids
FeatureIds    --feature-ids FILE: ids of features that have none
RowsInOrder   --rows-in-order: match rows and items by position
Model         MODEL: a folder that `manyhands train` wrote

`parse_settings` converts the text of `--set` to values of the types that the parameters of a method have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.cli.show import echo
from manyhands.exceptions import ParameterError
from manyhands.validation import Constraint, check_parameters

FeatureFile = Annotated[
    Path,
    typer.Option(
        "--features", metavar="FILE", help="Features of the items: .npy, .npz (X and ids), CSV, Parquet, sparse .npz."
    ),
]
IdColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the features with the item ids.")]
FeatureIds = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Item ids of the rows, for features without ids: one per line, or .npy."),
]
RowsInOrder = Annotated[
    bool,
    typer.Option(
        "--rows-in-order",
        help="Match rows and items by position: rows are in the order in which the labels name the items.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that manyhands train wrote.")]


def parse_settings(methods: Sequence[str], settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Convert ``name=value`` texts to parameters of each method that has them.

    A text becomes the first of None, bool, int, float, tuple of numbers and str that the parameter allows.
    ``method.name=value`` is for one of the methods and takes precedence; ``group__name=value`` sets a parameter of a
    group of options, ``classifier__name=value`` one of the classifier that another one wraps.

    Parameters
    ----------
    methods : sequence of str
        Registry names.
    settings : sequence of str
        Values of ``--set``.

    Returns
    -------
    dict of str to dict
        Parameters of each method.

    Raises
    ------
    ParameterError
        If no method has the parameter, or it does not allow the value.

    Examples
    --------
    >>> parse_settings(["crowd-layer"], ["hidden=64,32", "patience=none", "dropout=0.1"])
    {'crowd-layer': {'hidden': (64, 32), 'patience': None, 'dropout': 0.1}}
    """
    found: dict[str, dict[str, Any]] = {method: {} for method in methods}
    parsed = [_split(setting, methods) for setting in settings]
    constraints = {method: _constraints(method, parsed) for method in methods} if parsed else {}
    for method, name, text in sorted(parsed, key=lambda setting: setting[0] is not None):
        among = methods if method is None else [method]
        having = [one for one in among if name in constraints[one]]
        if not having:
            raise ParameterError(
                " ".join(f"{one} has no parameter {name!r}. It has: {', '.join(constraints[one])}." for one in among)
            )
        for one in having:
            found[one][name] = _convert(one, name, text, constraints[one][name])
        if len(having) < len(among):
            others = [one for one in among if one not in having]
            echo(f"note: {name} is set for {', '.join(having)}; {', '.join(others)} has no such parameter.")
    return found


def _constraints(method: str, parsed: Sequence[tuple[str | None, str, str]]) -> dict[str, Constraint]:
    """Return the constraint of every parameter; those of option groups and of a nested classifier as ``name__own``."""
    estimator = registry.create(method)
    found: dict[str, Constraint] = dict(type(estimator)._constraints)
    for group, value in estimator.get_params(deep=False).items():
        own = getattr(type(value), "_constraints", {})
        if group == "classifier" and isinstance(value, str):  # the name of a classifier, which may be set here too
            named = [text for whose, name, text in parsed if name == group and whose in (None, method)]
            inner = named[-1] if named else value
            own = registry.get(inner)._constraints if inner in registry.names("classifier") else {}
        found |= {f"{group}__{name}": constraint for name, constraint in own.items()}
    return found


def _split(setting: str, methods: Sequence[str]) -> tuple[str | None, str, str]:
    """Return the method (None: all), the parameter and the text of its value."""
    name, separator, text = setting.partition("=")
    if not separator:
        raise ParameterError(f"--set {setting} has no value. Write it as name=value.")
    method, dot, own = name.partition(".")
    if not dot:
        return None, name, text
    if method not in methods:
        raise ParameterError(
            f"--set {setting} is for {method}, which is not one of the methods to train: {', '.join(methods)}."
        )
    return method, own, text


def _convert(method: str, name: str, text: str, constraint: Constraint) -> Any:
    """Return the first interpretation of the text that the constraint allows."""
    allowed = [value for value in _interpretations(text) if constraint.allows(value)]
    if not allowed:
        check_parameters(method, {name: text}, {name: constraint})
    return allowed[0]


def _interpretations(text: str) -> Iterator[Any]:
    """Yield the possible values of a text, the most specific type first."""
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
