"""`manyhands methods`: all methods of the registry."""

from __future__ import annotations

import json

import typer

from manyhands import registry
from manyhands.cli.printing import print_data

_KINDS = ("aggregator", "classifier", "representation")


def methods(as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    r"""List all methods, one per line: name, kind, summary.

    An aggregator uses labels only (manyhands aggregate). A classifier uses labels and features (manyhands train). A
    representation learns features for a classifier, in a scikit-learn Pipeline; some classify, too.

    \b
    Examples:
      manyhands methods
      manyhands methods --json
    """
    summaries = {name: registry.summary(name) for name in registry.names()}
    kinds = {name: "+".join(kind for kind in _KINDS if name in registry.names(kind)) for name in summaries}
    if as_json:
        listing = {"schema": 1, "default": registry.DEFAULT, "methods": summaries, "kinds": kinds}
        print_data(json.dumps(listing) + "\n")
        return
    width, kind_width = max(map(len, summaries)), max(map(len, kinds.values()))
    lines = []
    for name, summary in summaries.items():
        default = "  (default)" if name == registry.DEFAULT else ""
        lines.append(f"{name:<{width}}  {kinds[name]:<{kind_width}}  {summary}{default}\n")
    print_data("".join(lines))
