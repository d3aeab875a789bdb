"""`convert`: an export as a plain table. `inspect`: what it contains, and its questions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from manyhands import metrics
from manyhands.exceptions import (
    AnnotationError,
    CrowdWarning,
)
from manyhands.io.overview import describe_reading, overview
from manyhands.io.reading import Reading
from manyhands.io.write.pseudonyms import protect_secret
from manyhands.io.write.result_files import encode_table, triples_frame, wide_frame
from manyhands.io.write.results import guard_table
from manyhands.jobs.options import (
    DEFAULT_EXPORT,
    IDS,
    NOTE,
    ExportOptions,
    Written,
    check_worker_names,
    claim_file,
    offer_order,
    secret_of,
    table_ending,
    with_worker_names,
    write_all,
)

# ----------------------------------------------------------------------------------------------------
# `convert`: an export of any tool as a table of item, worker and label.


@dataclass(frozen=True, eq=False)
class ConversionRun:
    """Result of `convert`.

    Attributes
    ----------
    reading : Reading
        What was read.
    table : polars.DataFrame
        The annotations.
    content : bytes
        The table as a file.
    summary : dict
        What was read, and the name of the file.
    written : Written
        Name of the file that was written.
    """

    reading: Reading
    table: pl.DataFrame
    content: bytes
    summary: dict[str, Any]
    written: Written


def convert(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    wide: bool = False,
    worker_names: str | Path = IDS,
    spreadsheet_safe: bool = False,
    out: str | Path | None = None,
    force: bool = False,
) -> ConversionRun:
    """Convert an export to a table of the annotations that count.

    Drafts, skipped and repeated judgements are left out; an item without any label is a row without worker and label.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    wide : bool, default=False
        One row per item and one column per worker, instead of one row per annotation.
    worker_names : {"ids", "pseudonyms"}, str or Path, default="ids"
        How workers are named: by their ids; by pseudonyms from the key file ``manyhands.key`` beside the table, which
        is created (without a file to write, by numbers); or by the pseudonyms of another key file.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells as formulas.
    out : str, Path or None, default=None
        File to write, whose ending determines the format; None gives CSV and writes nothing.
    force : bool, default=False
        Replace a file that exists.

    Returns
    -------
    ConversionRun
        The table and its content as a file.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read.
    """
    ending = table_ending(out)
    check_worker_names(worker_names)
    export.check()
    with claim_file(out, force=force) as output:
        reading = export.read(files)
        if reading.refusal is not None and not reading.ledger.kept:  # texts that are no classes can be written
            raise AnnotationError(reading.refusal)
        secret, contents = secret_of(worker_names, None if output is None else output.folder)
        reading, _ = with_worker_names(_note_lost_order(reading), worker_names, secret)
        table = wide_frame(reading.annotations) if wide else triples_frame(reading.annotations)
        content = encode_table(guard_table(table) if spreadsheet_safe else table, ending)
        written = write_all(output, contents | ({} if out is None else {Path(out).name: content}))
        if output is not None:
            protect_secret(output.folder, contents)
    summary = {"schema": 1, "written": None if out is None else Path(out).name} | describe_reading(reading)
    return ConversionRun(reading, table, content, summary, written)


def _note_lost_order(reading: Reading) -> Reading:
    """Add a note if labels are verdicts in both orders of presentation, which the table does not tell apart."""
    if not any(bias.n_pairs for bias in reading.position_bias.values()):
        return reading
    sentence = (
        "The table has the verdicts of both orders of presentation without the order. Read it with `duplicates=all`; "
        "flip rates are kept, first-position shares are not."
    )
    warnings.warn(f"order_not_written: {sentence}", CrowdWarning, stacklevel=3)
    return replace(reading, notes=reading.notes | {"order_not_written": sentence})


# ----------------------------------------------------------------------------------------------------
# `inspect`: what an export contains, before anything is fitted.


def inspect(files: Sequence[str], export: ExportOptions = DEFAULT_EXPORT) -> tuple[Reading, dict[str, Any]]:
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
    reading = offer_order(export.read(files))
    return reading, overview(reading)


# ----------------------------------------------------------------------------------------------------
# Exports with several questions: an overview of all.

_MOST_CLASSES = 4  # names of classes that an overview shows


def describe_questions(files: Sequence[str], export: ExportOptions, names: Sequence[str]) -> list[dict[str, Any]]:
    """Describe every question of an export in one row.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.
    names : sequence of str
        Its questions.

    Returns
    -------
    list of dict
        ``question``, ``labels``, ``items``, ``workers``, ``labels_per_item``, ``classes`` and ``agreement`` (share of
        equal labels among pairs of labels of an item), or ``reason``, why the question cannot be read as it is; and
        ``note`` if its classes look like the grades of a scale.
    """
    rows = []
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CrowdWarning)
                this = replace(export, question=name)
                reading = offer_order(this.read(files))
        except AnnotationError as error:
            rows.append({"question": name, "reason": str(error)})
        else:
            offer = {"note": reading.notes[NOTE]} if NOTE in reading.notes else {}
            rows.append({"question": name} | _describe(reading) | offer)
    return rows


def _describe(reading: Reading) -> dict[str, Any]:
    """Return the figures of one question."""
    if reading.refusal is not None:
        return {"reason": reading.refusal}
    votes = reading.annotations
    agreement = metrics.percent_agreement(votes, n_bootstrap=0).value if votes.n_annotations else math.nan
    classes = [str(name) for name in votes.classes.tolist()]
    more = f" and {len(classes) - _MOST_CLASSES} more" if len(classes) > _MOST_CLASSES else ""
    return {
        "labels": votes.n_annotations,
        "items": votes.n_items,
        "workers": votes.n_workers,
        "labels_per_item": round(votes.n_annotations / max(votes.n_items, 1), 2),
        "classes": ", ".join(classes[:_MOST_CLASSES]) + more,
        "agreement": None if math.isnan(agreement) else round(float(agreement), 3),
    }
