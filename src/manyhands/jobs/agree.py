"""`agree`: how much the workers of an export agree. `alt_test`: whether a model may replace its annotators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands import metrics
from manyhands.annotations import Annotations
from manyhands.classes import order_codes
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ParameterError
from manyhands.io.overview import describe_agreement, describe_reading
from manyhands.io.reading import Reading
from manyhands.io.write.pseudonyms import protect_secret
from manyhands.io.write.results import class_names, guard_table, to_csv, to_json
from manyhands.jobs.options import (
    ALL_MACHINES,
    DEFAULT_EXPORT,
    IDS,
    ExportOptions,
    KindOptions,
    Written,
    all_groups,
    check_seed,
    check_worker_names,
    claim_folder,
    collect_gold,
    machines_of,
    require_labels,
    require_workers,
    secret_of,
    with_worker_names,
    write_all,
)
from manyhands.trust import machines as machine_tests
from manyhands.trust.machines import HUMANS, MachineTest, effective_votes
from manyhands.validation import Number

# ----------------------------------------------------------------------------------------------------
# `agree`: inter-annotator agreement, overall and by class, pair of workers and item.

LEVELS = {"nominal": "any classes", "ordinal": "ordered classes", "interval": "numbers"}
_EFFECTIVE = "effective_votes.csv"
_AGREEMENT_FILES = ("agreement.csv", "agreement.json", "classes.csv", "items.csv", "pairs.csv")


@dataclass(frozen=True, eq=False)
class AgreementRun:
    """Result of `agree`.

    Attributes
    ----------
    reading : Reading
        What was read.
    tables : dict of str to polars.DataFrame
        ``agreement.csv`` (overall), ``classes.csv``, ``pairs.csv``, with `effective` ``effective_votes.csv``, and, if
        files are written, ``items.csv``.
    summary : dict
        All figures, as in ``agreement.json``.
    written : Written
        Names of the files that were written.
    """

    reading: Reading
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    written: Written


def agree(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    level: str = "nominal",
    order: Sequence[str] | None = None,
    n_bootstrap: int = 1000,
    worker_names: str | Path = IDS,
    spreadsheet_safe: bool = False,
    random_state: int = 0,
    effective: bool = False,
    kinds: KindOptions | None = None,
    gold: str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
) -> AgreementRun:
    """Measure per cent agreement, Fleiss' kappa and Krippendorff's alpha with 95% bootstrap intervals.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        Level of measurement of the classes, for Krippendorff's alpha; "ordinal" also if `export` says so.
    order : sequence of str or None, default=None
        Ordinal classes from low to high; None takes the order that `export` names, or that of the classes.
    n_bootstrap : int, default=1000
        Number of resamples of the items for the intervals.
    worker_names : {"ids", "pseudonyms"}, str or Path, default="ids"
        How workers are named in all results: by their ids; by pseudonyms from the key file ``manyhands.key`` of the
        folder, which is created (without a folder, by numbers); or by the pseudonyms of another key file.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells of the CSV files as formulas.
    random_state : int, default=0
        Seed of the resamples.
    effective : bool, default=False
        Also compute how many independent votes the votes of people and of machines are worth.
    kinds : KindOptions or None, default=None
        Which workers are machines; None takes the column of the export.
    gold : str, Path or None, default=None
        Table of known answers, with which the labels are compared for `effective`.
    out : str, Path or None, default=None
        Folder for the tables; None writes nothing.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    AgreementRun
        Tables and figures.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read, or has no labels or no worker ids.
    """
    level = "ordinal" if level == "nominal" and export.is_ordinal else level
    check_level(level, (export.order or None) if order is None else order)
    check_seed(random_state)
    if not Number(whole=True, least=0).allows(n_bootstrap):
        raise ParameterError(f"`n_bootstrap` is {n_bootstrap}; it must be a whole number at least 0.")
    kinds = KindOptions() if kinds is None else kinds
    kinds.check()
    check_worker_names(worker_names)
    if not effective and (kinds != KindOptions() or gold is not None):
        raise ParameterError("`machines`, `kinds` and `gold` are for `effective`: add it.")
    export.check()
    with claim_folder(out, [*_AGREEMENT_FILES, *([_EFFECTIVE] if effective else [])], force=force) as output:
        reading = export.read(files)
        require_labels(reading)
        require_workers(reading, "it is unknown which labels are from the same worker, and agreement is undefined")
        votes = _effective_votes(reading, kinds, gold, n_bootstrap, random_state) if effective else None
        secret, key_file = secret_of(worker_names, None if output is None else output.folder)
        reading, _ = with_worker_names(reading, worker_names, secret)
        ranks = None if order is None else list(order)
        tables = _tables(reading.annotations, level, ranks, n_bootstrap, random_state)
        tables |= {} if votes is None else {_EFFECTIVE: votes}
        summary = {"schema": 1} | describe_reading(reading)
        summary |= {name.removesuffix(".csv"): table.to_dicts() for name, table in tables.items()}
        written = Written()
        if output is not None:
            tables["items.csv"] = _by_item(reading.annotations)
            safe = {name: guard_table(table) for name, table in tables.items()} if spreadsheet_safe else tables
            contents = {name: to_csv(table) for name, table in safe.items()}
            written = write_all(output, key_file | contents | {"agreement.json": to_json(summary)})
            protect_secret(output.folder, key_file)
    return AgreementRun(reading, tables, summary, written)


def check_level(level: str, order: Sequence[str] | None) -> None:
    """Refuse an unknown level of measurement, and an order of classes that are not ordinal."""
    if level not in LEVELS:
        levels = ", ".join(f"{name} ({meaning})" for name, meaning in LEVELS.items())
        raise ParameterError(f"`level` is {level!r}; it may be {levels}.")
    if order is not None and level != "ordinal":
        raise ParameterError("`order` is for ordinal classes: add `level=ordinal`.")


def _tables(
    annotations: Annotations, level: str, order: list[str] | None, n_bootstrap: int, random_state: int
) -> dict[str, pl.DataFrame]:
    """Return agreement overall, by class and by pair."""
    options = {"n_bootstrap": n_bootstrap, "random_state": random_state}
    return {
        "agreement.csv": pl.DataFrame(describe_agreement(annotations, level, order, **options)),
        "classes.csv": _by_class(annotations, n_bootstrap, random_state),
        "pairs.csv": _by_pair(annotations, level, order),
    }


def _effective_votes(
    reading: Reading, kinds: KindOptions, gold: str | Path | None, n_bootstrap: int, random_state: int
) -> pl.DataFrame:
    """Return what the votes of each group of workers are worth."""
    groups = all_groups(reading, kinds.of_workers(reading))
    answers = collect_gold(reading, gold, False) if gold is not None else None
    options: dict[str, Any] = {"answers": answers, "n_bootstrap": n_bootstrap, "random_state": random_state}
    families = [name for name in groups if name != HUMANS]
    if HUMANS in groups:  # people decide the reference of every row, so that the rows can be compared
        results = effective_votes(reading.annotations, groups, together=True, **options)
    else:
        results = effective_votes(reading.annotations, groups, **options) if groups else []
        results += effective_votes(reading.annotations, **options)
    if len(families) > 1:  # all families together, beside each
        machines = {ALL_MACHINES: [worker for name in families for worker in groups[name]]}
        people = {HUMANS: groups[HUMANS]} if HUMANS in groups else {}
        results[-1:-1] = effective_votes(reading.annotations, people | machines, **options)[-1:]
    table = pl.DataFrame([asdict(votes) for votes in results])
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def _by_class(annotations: Annotations, n_bootstrap: int, random_state: int) -> pl.DataFrame:
    """Return Krippendorff's alpha of each class against all others."""
    names = class_names(annotations.classes)
    try:
        results = metrics.class_agreement(annotations, n_bootstrap=n_bootstrap, random_state=random_state)
    except LimitError as error:
        warnings.warn(str(error), CrowdWarning, stacklevel=2)
        return pl.DataFrame(schema={"class": pl.String, "alpha": pl.Float64})
    figures = {"alpha": results.value, "low": results.low, "high": results.high}
    columns = {name: pl.Series(values).fill_nan(None) for name, values in figures.items()}
    return pl.DataFrame({"class": names} | columns | {"n_labels": results.n_labels})


def _by_pair(annotations: Annotations, level: str, order: list[str] | None) -> pl.DataFrame:
    """Return agreement and Cohen's kappa of every pair of workers with items in common, most items first."""
    if level == "ordinal" and order is None and not annotations.is_ordered:
        order = annotations.classes[order_codes(annotations.classes.tolist())].tolist()
    try:
        pairs = metrics.pair_agreement(annotations, order=order)
    except LimitError as error:
        warnings.warn(str(error), CrowdWarning, stacklevel=2)
        return pl.DataFrame(schema={"worker": pl.String, "other": pl.String, "n_shared": pl.Int64})
    names = [str(worker) for worker in annotations.worker_ids.tolist()]
    weighted = {"linear_kappa": pairs.linear_kappa, "quadratic_kappa": pairs.quadratic_kappa}
    table = pl.DataFrame(
        {
            "worker": [names[w] for w in pairs.a],
            "other": [names[w] for w in pairs.b],
            "n_shared": pairs.n_shared,
            "agreement": pairs.agreement,
            "cohen_kappa": pl.Series(pairs.kappa).fill_nan(None),
        }
        | {name: pl.Series(values).fill_nan(None) for name, values in weighted.items() if values is not None}
    )
    return table.sort("n_shared", "worker", "other", descending=[True, False, False])


def _by_item(annotations: Annotations) -> pl.DataFrame:
    """Return the share of agreeing pairs of labels of every item."""
    items = [str(item) for item in annotations.item_ids.tolist()]
    agreement = pl.Series(metrics.item_agreement(annotations)).fill_nan(None)
    return pl.DataFrame({"item": items, "n_labels": annotations.n_labels, "agreement": agreement})


# ----------------------------------------------------------------------------------------------------
# `alt_test`: whether a model may replace the annotators.

_ALT_TEST_FILES = ("alt_test.csv", "alt_test.json", "annotators.csv")


@dataclass(frozen=True, eq=False)
class AltTestRun:
    """Result of `alt_test`.

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


def alt_test(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    kinds: KindOptions | None = None,
    *,
    epsilon: float = 0.1,
    level: str = "nominal",
    order: Sequence[str] | None = None,
    alpha: float = 0.05,
    min_items: int = 30,
    worker_names: str | Path = IDS,
    out: str | Path | None = None,
    force: bool = False,
) -> AltTestRun:
    """Run the alternative annotator test for each machine of an export (`manyhands.trust.alt_test`).

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
    worker_names : {"ids", "pseudonyms"}, str or Path, default="ids"
        How workers are named in all results: by their ids; by pseudonyms from the key file ``manyhands.key`` of the
        folder, which is created (without a folder, by numbers); or by the pseudonyms of another key file.
    out : str, Path or None, default=None
        Folder for the tables; None writes nothing.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    AltTestRun
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
    check_worker_names(worker_names)
    level = "ordinal" if level == "nominal" and export.is_ordinal else level
    check_level(level, (export.order or None) if order is None else order)
    export.check()
    with claim_folder(out, _ALT_TEST_FILES, force=force) as output:
        reading = export.read(files)
        require_labels(reading)
        require_workers(reading, "people cannot be compared with a model")
        machines = machines_of(kinds.of_workers(reading))
        if not machines:
            raise AnnotationError(
                f"{reading.source} does not say which workers are machines. Name them with `machines=NAME`, or with "
                f"`kinds=FILE`; a table may have a column kind with human or machine."
            )
        before = reading.annotations.worker_ids.tolist()
        secret, key_file = secret_of(worker_names, None if output is None else output.folder)
        reading, _ = with_worker_names(reading, worker_names, secret)
        new_name = dict(zip(before, reading.annotations.worker_ids.tolist()))
        machines = [new_name[name] for name in machines]
        options: dict[str, Any] = {"epsilon": epsilon, "level": level, "alpha": alpha, "min_items": min_items}
        crowd = reading.annotations
        ordered = crowd.classes.tolist() if level == "ordinal" and crowd.is_ordered else None
        values = ordered if order is None else list(order)
        tests = machine_tests.alt_test(reading.annotations, machines, values=values, **options)
        tables = {"alt_test.csv": _by_machine(tests), "annotators.csv": _by_annotator(tests)}
        summary = {"schema": 1} | describe_reading(reading) | {"options": options}
        summary |= {"machines": [asdict(test) | {"sentence": str(test)} for test in tests]}
        written = Written()
        if output is not None:
            contents = {name: to_csv(table) for name, table in tables.items()}
            written = write_all(output, key_file | contents | {"alt_test.json": to_json(summary)})
            protect_secret(output.folder, key_file)
    return AltTestRun(reading, tests, tables, summary, written)


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
