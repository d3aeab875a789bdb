"""Options that several commands share, stated once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands.cli.output_targets import Target, claimed
from manyhands.io.formats import NAMES
from manyhands.io.read.reading import Reading, read_export
from manyhands.io.read.row_filtering import DUPLICATES

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The export: a file, a folder or a zip; several files are batches of one job; - is stdin.",
    ),
]
Item = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or field with the items.")]
Worker = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or field with the workers.")]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or field with the labels.")]
Question = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which question to read; NAME=CHOICE asks about one choice of several."),
]
Format = Annotated[str | None, typer.Option(metavar="NAME", help=f"Where it is not recognised: {', '.join(NAMES)}.")]
Duplicates = Annotated[
    str,
    typer.Option(
        metavar="POLICY", help=f"Which answer counts if a worker answers an item again: {', '.join(DUPLICATES)}."
    ),
]
Missing = Annotated[
    list[str], typer.Option(metavar="LABEL", help="A label that means that there is none; may be repeated.")
]
Combinations = Annotated[bool, typer.Option("--combinations", help="Take every combination of choices as a class.")]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Of text that is not UTF-8, such as cp1252.")]

Pseudonyms = Annotated[bool, typer.Option("--pseudonymise", help="Replace worker ids everywhere.")]
Key = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A secret file that keeps pseudonyms alike in all runs.")
]
SpreadsheetSafe = Annotated[
    bool, typer.Option("--spreadsheet-safe", help="Keep spreadsheets from running cells of CSV files as formulas.")
]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Decides whatever is drawn at random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but notes and errors.")]

_READING: dict[str, tuple[Any, Any]] = {  # name -> (type, default)
    "files": (Files, inspect.Parameter.empty),
    "item": (Item, None),
    "worker": (Worker, None),
    "label": (Label, None),
    "question": (Question, None),
    "format": (Format, None),
    "duplicates": (Duplicates, "last"),
    "missing": (Missing, []),
    "combinations": (Combinations, False),
    "encoding": (Encoding, None),
}


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; it gets the files' names and the `Reading` in place of them."""

    def read_first(given: dict[str, Any], files: list[str], options: dict[str, Any]) -> None:
        command(files=files, reading=read_files(files, **options), **given)

    return _with_reading(command, read_first)


def reads_into(target: Callable[[dict[str, Any]], Target | None]) -> Callable[..., Any]:
    """As `reads`, for a command that writes: it also gets `output`, the place that `target` finds in its options.

    The place is checked and held before anything is read, so that no work is done in vain.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def claim_first(given: dict[str, Any], files: list[str], options: dict[str, Any]) -> None:
            with claimed(target(given), given["force"]) as output:
                command(files=files, reading=read_files(files, **options), output=output, **given)

        return _with_reading(command, claim_first)

    return decorate


def _with_reading(command: Callable[..., None], call: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of reading among its own, as typer sees them."""

    @wraps(command)
    def wrapper(**given: Any) -> None:
        options = {name: given.pop(name) for name in _READING}
        call(given, options.pop("files"), options)

    own = [p for name, p in inspect.signature(command, eval_str=True).parameters.items() if name not in _GIVEN]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _READING.items()
    ]
    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapper.__signature__ = inspect.Signature([added[0], *keyword, *added[1:]])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in [*added, *keyword]} | {"return": None}
    del wrapper.__wrapped__  # else typer looks through to the command's own signature
    return wrapper


_GIVEN = ("files", "reading", "output")


def read_files(files: list[str], **options: Any) -> Reading:
    """One export, or several batches as one."""
    return read_export(files[0] if len(files) == 1 else files, **options)
