"""Options that several commands share, each defined once as an `Annotated` type.

Reading an export  Files, Item, Worker, Label, Question, Format, Duplicates, Missing, Combinations, Encoding,
                   MergeSpellings, LabelMap, RareClasses, Weight, LabelProbs, Ordinal, Order; added to a command by
                   `takes_export`, which collects them in an `ExportOptions`
Known answers      Gold, UseGold
Privacy            Pseudonyms, Key
Output             SpreadsheetSafe, Force, AsJson, Quiet
Random numbers     Seed
Networks           OnDevice

An option of one command only is defined beside that command; options of features are in `training_options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands.io.formats import NAMES
from manyhands.io.read.row_filtering import DUPLICATES
from manyhands.workflows.options import ExportOptions

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The export: a file, a folder or a zip archive; several files are batches of one job; - is stdin.",
    ),
]
Item = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or field with the items.")]
Worker = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or field with the workers.")]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or field with the labels.")]
Question = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Question to read, if there are several; NAME=CHOICE reads one choice of many."),
]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"Format, if it is not recognised: {', '.join(NAMES)}.")
]
Duplicates = Annotated[
    str,
    typer.Option(
        metavar="POLICY", help=f"Which answer counts if a worker labelled an item again: {', '.join(DUPLICATES)}."
    ),
]
Missing = Annotated[list[str], typer.Option(metavar="LABEL", help="A label that means no label; may be repeated.")]
Combinations = Annotated[
    bool, typer.Option("--combinations", help="Treat every combination of choices as a class of its own.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of text that is not UTF-8, such as cp1252.")
]
MergeSpellings = Annotated[
    bool,
    typer.Option(
        "--merge-spellings", help="Merge classes and worker ids that differ in case, spaces or Unicode form only."
    ),
]
LabelMap = Annotated[
    Path | None,
    typer.Option("--map", metavar="FILE", help="Table of labels to rename, with columns from,to; empty: no label."),
]
RareClasses = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="Labels so rare that they may be typing errors: drop (the item stays), keep, merge:LABEL or error.",
    ),
]
Weight = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the weight of each label, such as its probability.")
]
LabelProbs = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Columns with the probability of each class; a row is one divided vote."),
]
Ordinal = Annotated[
    bool,
    typer.Option(
        "--ordinal", help="The classes are grades: use their order, by their numbers or the words of a known scale."
    ),
]
Order = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="The classes from low to high, separated by commas; --ordinal too.")
]

Gold = Annotated[Path | None, typer.Option(metavar="FILE", help="Table of items whose class is known: item, label.")]
UseGold = Annotated[bool, typer.Option("--use-gold", help="Use the known answers that the export contains.")]

Pseudonyms = Annotated[bool, typer.Option("--pseudonymise", help="Replace worker ids in all results.")]
Key = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Secret file that keeps pseudonyms the same in all runs.")
]
SpreadsheetSafe = Annotated[
    bool, typer.Option("--spreadsheet-safe", help="Prevent spreadsheets from running cells of CSV files as formulas.")
]
OnDevice = Annotated[
    str | None,
    typer.Option("--device", metavar="NAME", help="Device of networks: auto (a GPU, if any), cpu, cuda, cuda:1, mps."),
]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="Seed of the random number generator.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but data, notes and errors.")]

_EXPORT_OPTIONS: dict[str, tuple[Any, Any]] = {  # field of ExportOptions -> (type, default)
    "item": (Item, None),
    "worker": (Worker, None),
    "label": (Label, None),
    "question": (Question, None),
    "format": (Format, None),
    "duplicates": (Duplicates, "last"),
    "missing": (Missing, []),
    "combinations": (Combinations, False),
    "encoding": (Encoding, None),
    "merge_spellings": (MergeSpellings, False),
    "label_map": (LabelMap, None),
    "rare_classes": (RareClasses, "drop"),
    "weight": (Weight, None),
    "label_probs": (LabelProbs, None),
    "ordinal": (Ordinal, False),
    "order": (Order, None),
}
_COLLECTED = ("files", "export")


def takes_export(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of reading an export to a command.

    Parameters
    ----------
    command : callable
        A command with the parameters `files` (list of str) and `export` (ExportOptions); its other parameters are its
        own options.

    Returns
    -------
    callable
        The command as typer sees it: FILE arguments, its own options, then those of reading.
    """

    @wraps(command)
    def wrapper(**given: Any) -> None:
        export = ExportOptions(**{name: given.pop(name) for name in _EXPORT_OPTIONS})
        command(files=given.pop("files"), export=export, **given)

    own = [p for name, p in inspect.signature(command, eval_str=True).parameters.items() if name not in _COLLECTED]
    files = inspect.Parameter("files", inspect.Parameter.KEYWORD_ONLY, annotation=Files)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _EXPORT_OPTIONS.items()
    ]
    parameters = [files, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *added]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    del wrapper.__wrapped__  # otherwise typer uses the signature of the command itself
    return wrapper
