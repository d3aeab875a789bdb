"""Ordered classes in files: the order that was asked for, and the offer to use one that was recognised."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from manyhands.class_order import looks_ordered, order_codes
from manyhands.exceptions import CrowdWarning
from manyhands.io.messages import shorten
from manyhands.io.read.reading import Reading
from manyhands.workflows.options import ExportOptions

NOTE = "ordered_classes"
_FLAGS = {"label_map": "--map"}  # option of a command, where it is not the name of the field


def offer_order(reading: Reading, command: str, files: Sequence[str], export: ExportOptions) -> Reading:
    """Add a note if the classes look like the grades of a scale and nothing was said about their order.

    Parameters
    ----------
    reading : Reading
        What was read.
    command : str
        Name of the command.
    files : sequence of str
        The export.
    export : ExportOptions
        How it was read.

    Returns
    -------
    Reading
        With the note ``ordered_classes``, which was also issued as a `CrowdWarning`; or unchanged.
    """
    classes = reading.annotations.classes.tolist()
    if reading.refusal is not None or reading.annotations.is_ordered or not looks_ordered(classes):
        return reading
    grades = [str(classes[code]) for code in order_codes(classes)]
    sentence = (
        f"The classes look like a scale: {' < '.join(map(shorten, grades))}. Their order was not used. If it has a "
        f"meaning, add --ordinal: {command_line(command, files, export)} --ordinal"
    )
    warnings.warn(f"{NOTE}: {sentence}", CrowdWarning, stacklevel=2)
    return replace(reading, notes=reading.notes | {NOTE: sentence})


def command_line(command: str, files: Sequence[str], export: ExportOptions) -> str:
    """Return a command that reads an export in the same way.

    Parameters
    ----------
    command : str
        Name of the command.
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.

    Returns
    -------
    str
        A line for a shell.

    Examples
    --------
    >>> command_line("inspect", ["my file.csv"], ExportOptions(label="stars", combinations=True))
    "manyhands inspect 'my file.csv' --label stars --combinations"
    """
    words = ["manyhands", command, *map(str, files)]
    for field in fields(export):
        value: Any = getattr(export, field.name)
        if value == field.default:
            continue
        flag = _FLAGS.get(field.name, "--" + field.name.replace("_", "-"))
        if isinstance(value, bool):
            words.append(flag)
        elif isinstance(value, list | tuple):
            words += [word for one in value for word in (flag, str(one))]
        else:
            words += [flag, str(value)]
    return shlex.join(words)
