"""`report`: from an export to one HTML page with labels, workers and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.io.read.answer_files import read_answers
from manyhands.io.read.reading import Reading
from manyhands.io.read.truth import read_truth
from manyhands.io.write.results import label_frame, to_csv
from manyhands.io.write.spreadsheet import guard_table
from manyhands.io.write.worker_tables import worker_frame
from manyhands.report.building import Report
from manyhands.report.run import Run
from manyhands.workflows.aggregation import chosen_method, fit_reading
from manyhands.workflows.gold_labels import collect_gold
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions, check_seed, require_labels, require_workers
from manyhands.workflows.ordered_classes import offer_order
from manyhands.workflows.outputs import Written, write_all
from manyhands.workflows.report_groups import groups_of_workers
from manyhands.workflows.report_pages import KEY as KEY
from manyhands.workflows.report_pages import find_secret, protect_secret, report_of
from manyhands.writing import claim


@dataclass(frozen=True, eq=False)
class ReportRun:
    """Result of `report`.

    Attributes
    ----------
    run : Run
        What the page shows.
    report : Report
        Its panels.
    page : bytes
        The page.
    written : Written
        Names of the files that were written.
    """

    run: Run
    report: Report
    page: bytes
    written: Written


def report(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    out: str | Path,
    method: str | None = None,
    gold: str | Path | None = None,
    use_gold: bool = False,
    answers: Sequence[str | Path] = (),
    truth: str | Path | None = None,
    compare: bool = False,
    reveal: bool = False,
    key: str | Path | None = None,
    groups: str | Path | None = None,
    group_column: str | None = None,
    title: str | None = None,
    command: str | None = None,
    random_state: int = 0,
    force: bool = False,
) -> ReportRun:
    """Read an export, infer one label per item, and write a page that shows the result.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    out : str or Path
        The page to write. Tables that are too large for it are written beside it as CSV, and so is the key of the
        pseudonyms, unless it exists.
    method : str or None, default=None
        Registry name of an aggregator; None is "pooled-dawid-skene", and "ordinal-dawid-skene" for ordered classes.
    gold : str, Path or None, default=None
        Table of items whose class is known; they enter the fit.
    use_gold : bool, default=False
        Use the known answers of the export itself.
    answers : sequence of str or Path, default=()
        Files of questions that an expert answered; they enter the fit and may select the method.
    truth : str, Path or None, default=None
        Table of items whose class is known; it does not enter the fit and only evaluates.
    compare : bool, default=False
        Fit and cross-validate all other aggregators too.
    reveal : bool, default=False
        Show worker ids.
    key : str, Path or None, default=None
        Secret file from which pseudonyms are derived; None for ``manyhands.key`` beside the page, which is created.
    groups : str, Path or None, default=None
        Table with a column of workers and one of their groups.
    group_column : str or None, default=None
        Column of the export that describes workers, such as their country or team.
    title : str or None, default=None
        Name of the data; None for that of the file and its question.
    command : str or None, default=None
        The command line, for the record.
    random_state : int, default=0
        Seed.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    ReportRun
        The panels and names of the files.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read or has no labels.
    """
    method = chosen_method(method, export)
    check_seed(random_state)
    export.check()
    path = Path(out)
    _check_options(path, reveal=reveal, key=key, groups=groups, group_column=group_column)
    beside = {name: f"{path.stem}-{name}" for name in ("labels.csv", "workers.csv")}
    with claim(path.parent, [path.name, *beside.values()], force=force, manifest=False) as output:
        reading = export.read(files, item_fields=True, times=True, group_column=group_column)
        require_labels(reading)
        if method != registry.DEFAULT_ORDINAL:
            reading = offer_order(reading, "report", files, export)
        require_workers(reading, "there are no workers that a report could show")
        reading, grouped = groups_of_workers(reading, groups, group_column)
        known = collect_gold(reading, gold, use_gold)
        answered = read_answers(answers, reading.annotations, reading.renamed.get("label")) if answers else None
        evaluated = None if truth is None else _truth(truth, reading)
        model, tables, figures = fit_reading(
            reading, method, known, answers=answered, compare=compare, random_state=random_state
        )
        secret, contents = (None, {}) if reveal else find_secret(key, path.parent)
        made = report_of(
            model,
            reading,
            figures,
            files,
            tables,
            answers=answered,
            truth=evaluated,
            groups=grouped,
            secret=secret,
            reveal=reveal,
            title=title,
            command=command,
            seed=random_state,
            beside=beside,
            guarded=True,
        )
        run, contents[path.name] = made[0], made[2]
        contents |= _full_tables(run, beside)
        written = write_all(output, contents)
        protect_secret(path.parent, contents)
    return ReportRun(*made, written)


def _check_options(
    path: Path, *, reveal: bool, key: str | Path | None, groups: str | Path | None, group_column: str | None
) -> None:
    """Refuse a name that is not that of a page, and options that contradict each other."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"{path} is not the name of a page: end it in .html.")
    if reveal and key is not None:
        raise ParameterError("--reveal shows worker ids, --key derives pseudonyms: give only one of them.")
    if groups is not None and group_column is not None:
        raise ParameterError("--groups and --group-column both name the groups of workers: give only one of them.")


def _full_tables(run: Run, beside: Mapping[str, str]) -> dict[str, bytes]:
    """Return the tables that are too large for the page, by the names of the files beside it."""
    found = {}
    if run.full_labels is not None:
        found[beside["labels.csv"]] = to_csv(guard_table(label_frame(run.model, "polars")))
    if run.full_workers is not None:
        time = None if run.reading is None else run.reading.working_time
        table = worker_frame(run.model, "polars", working_time=time, cards=run.cards)
        found[beside["workers.csv"]] = to_csv(guard_table(table))
    return found


def _truth(path: str | Path, reading: Reading) -> dict[Any, Any]:
    """Return the known class of items of the export."""
    known = read_truth(path)
    items = set(reading.annotations.item_ids.tolist())
    return {item: label for item, label in known.items() if item in items}
