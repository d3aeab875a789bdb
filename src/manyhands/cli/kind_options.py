"""Options that say which workers are machines, shared by `alt-test` and `agree --effective`.

Machines   --machines NAME
Kinds      --kinds FILE
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Machines = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Workers that are machines: ids or patterns such as gpt-*, separated by commas; may be repeated. By "
        "default those that a column kind of the export calls machine.",
    ),
]
Kinds = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Table of workers: worker, kind (human, machine), family, model, prompt, run."),
]
