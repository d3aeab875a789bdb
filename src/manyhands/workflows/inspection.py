"""`inspect_export`: what an export contains, before anything is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.io.overview import overview
from manyhands.io.read.reading import Reading
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions
from manyhands.workflows.ordered_classes import offer_order


def inspect_export(files: Sequence[str], export: ExportOptions = DEFAULT_EXPORT) -> tuple[Reading, dict[str, Any]]:
    """Read an export and describe it: format, columns, rows left out, coverage, class balance, agreement.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.

    Returns
    -------
    reading : Reading
        What was read.
    overview : dict
        All figures, ready for JSON.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read.
    """
    reading = offer_order(export.read(files), "aggregate", files, export)
    return reading, overview(reading)
