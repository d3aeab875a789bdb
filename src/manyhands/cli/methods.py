"""`manyhands methods`: what there is."""

from __future__ import annotations

import json

import typer

from manyhands import registry
from manyhands.cli.output_targets import print_data

_KINDS = ("aggregator", "classifier", "representation")


def methods(as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    """List all methods, one line each: its name, its kind and what it does.

    An aggregator needs labels alone (manyhands aggregate), a classifier features too (manyhands train); a
    representation is learnt from both and stands before a classifier, in a Pipeline of scikit-learn. What is a
    classifier and a representation can do both.

    \b
    Examples:
      manyhands methods
      manyhands methods --json
    """
    rows = {name: registry.summary(name) for name in registry.names()}
    kinds = {name: "+".join(kind for kind in _KINDS if name in registry.names(kind)) for name in rows}
    if as_json:
        told = {"schema": 1, "default": registry.DEFAULT, "methods": rows, "kinds": kinds}
        print_data(json.dumps(told) + "\n")
        return
    width, kind_width = max(map(len, rows)), max(map(len, kinds.values()))
    lines = []
    for name, sentence in rows.items():
        default = "  (default)" if name == registry.DEFAULT else ""
        lines.append(f"{name:<{width}}  {kinds[name]:<{kind_width}}  {sentence}{default}\n")
    print_data("".join(lines))
