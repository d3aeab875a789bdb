"""`manyhands methods`: what there is."""

from __future__ import annotations

import json

import typer

from manyhands import registry


def methods(as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    """List all methods, one line each.

    \b
    Examples:
      manyhands methods
      manyhands methods --json
    """
    rows = {name: registry.summary(name) for name in registry.names()}
    if as_json:
        print(json.dumps({"schema": 1, "default": registry.DEFAULT, "methods": rows}))
        return
    width = max(map(len, rows))
    for name, sentence in rows.items():
        print(f"{name:<{width}}  {sentence}{'  (default)' if name == registry.DEFAULT else ''}")
