"""`assess_replacement`: whether a model may replace the annotators of an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.overview import describe_reading
from manyhands.io.read.reading import Reading
from manyhands.io.write.json_values import to_json
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.io.write.results import to_csv
from manyhands.trust.alternative_annotator import MachineTest, alt_test
from manyhands.workflows.agreement_report import check_level
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions, require_labels, require_workers
from manyhands.workflows.outputs import Written, claim_folder, write_all
from manyhands.workflows.worker_groups import KindOptions, machines_of

_FILES = ("alt_test.csv", "alt_test.json", "annotators.csv")


@dataclass(frozen=True, eq=False)
class ReplacementRun:
    """Result of `assess_replacement`.

    Attributes
    ----------
    reading : Reading
        What was read.
    tests : list of MachineTest
        One per machine.
    tables : dict of str to polars.DataFrame
        ``alt_test.csv`` (one row per machine) and ``annotators.csv`` (one row per machine and annotator).
    summary : dict
        All figures, as in ``alt_test.json``.
    written : Written
        Names of the files that were written.
    """

    reading: Reading
    tests: list[MachineTest]
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    written: Written


def assess_replacement(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    kinds: KindOptions | None = None,
    *,
    epsilon: float = 0.1,
    level: str = "nominal",
    order: Sequence[str] | None = None,
    alpha: float = 0.05,
    min_items: int = 30,
    pseudonyms: bool = False,
    key: str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
) -> ReplacementRun:
    """Run the alternative annotator test for each machine of an export (`manyhands.alt_test`).

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    kinds : KindOptions or None, default=None
        Which workers are machines; None takes the column of the export.
    epsilon : float, default=0.1
        By how much the model may be worse because it costs less.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        How answers are compared: equal or not, or by their distance; "ordinal" also if `export` says so.
    order : sequence of str or None, default=None
        Ordinal classes from low to high; None takes the order that `export` names, or that of the classes.
    alpha : float, default=0.05
        False discovery rate.
    min_items : int, default=30
        Items that an annotator must share with the model and another annotator.
    pseudonyms : bool, default=False
        Replace worker ids in all results.
    key : str, Path or None, default=None
        Secret file from which pseudonyms are derived; implies `pseudonyms`.
    out : str, Path or None, default=None
        Folder for the tables; None writes nothing.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    ReplacementRun
        Tests, tables and figures.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read, or it is not known which workers are machines.
    """
    kinds = KindOptions() if kinds is None else kinds
    kinds.check()
    level = "ordinal" if level == "nominal" and export.is_ordinal else level
    check_level(level, (export.order or None) if order is None else order)
    export.check()
    with claim_folder(out, _FILES, force=force) as output:
        reading = export.read(files)
        require_labels(reading)
        require_workers(reading, "people cannot be compared with a model")
        machines = machines_of(kinds.kinds(reading))
        if not machines:
            raise AnnotationError(
                f"{reading.source} does not say which workers are machines. Name them with --machines NAME, or with "
                f"--kinds FILE; a table may have a column kind with human or machine."
            )
        if pseudonyms or key is not None:
            before = reading.annotations.worker_ids.tolist()
            reading, _ = pseudonymise(reading, key)
            new_name = dict(zip(before, reading.annotations.worker_ids.tolist()))
            machines = [new_name[name] for name in machines]
        options: dict[str, Any] = {"epsilon": epsilon, "level": level, "alpha": alpha, "min_items": min_items}
        crowd = reading.annotations
        ordered = crowd.classes.tolist() if level == "ordinal" and crowd.is_ordered else None
        values = ordered if order is None else list(order)
        tests = alt_test(reading.annotations, machines, values=values, **options)
        tables = {"alt_test.csv": _by_machine(tests), "annotators.csv": _by_annotator(tests)}
        summary = {"schema": 1} | describe_reading(reading) | {"options": options}
        summary |= {"machines": [asdict(test) | {"sentence": str(test)} for test in tests]}
        written = Written()
        if output is not None:
            contents = {name: to_csv(table) for name, table in tables.items()}
            written = write_all(output, contents | {"alt_test.json": to_json(summary)})
    return ReplacementRun(reading, tests, tables, summary, written)


def _by_machine(tests: Sequence[MachineTest]) -> pl.DataFrame:
    """Return one row per machine, the highest advantage probability first."""
    rows = [
        {
            "machine": str(test.machine),
            "may_replace": test.passes,
            "winning_rate": test.winning_rate,
            "advantage_probability": test.advantage_probability,
            "epsilon": test.epsilon,
            "n_annotators": len(test.annotators),
            "n_left_out": len(test.left_out),
        }
        for test in tests
    ]
    return pl.DataFrame(rows).sort("advantage_probability", "machine", descending=[True, False])


def _by_annotator(tests: Sequence[MachineTest]) -> pl.DataFrame:
    """Return one row per machine and annotator."""
    rows = [
        {"machine": str(test.machine)} | asdict(one) | {"worker": str(one.worker)}
        for test in tests
        for one in test.annotators
    ]
    return pl.DataFrame(rows)
