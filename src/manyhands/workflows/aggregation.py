"""`aggregate`: from an export to one label per item and a quality report for each worker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.io.overview import describe_order, describe_reading
from manyhands.io.read.answer_files import read_answers
from manyhands.io.read.reading import Reading
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.io.write.result_files import check_kinds, check_outputs, file_names, kinds_of, result_files
from manyhands.io.write.results import label_frame, summary, to_csv
from manyhands.io.write.spreadsheet import guard_table
from manyhands.io.write.training_table import TRAINING, TrainingSet, join_fields
from manyhands.io.write.worker_tables import worker_frame
from manyhands.trust.answers import Answers
from manyhands.workflows.aggregation_runs import AggregationRun as AggregationRun
from manyhands.workflows.aggregation_runs import ShardedRun as ShardedRun
from manyhands.workflows.answered_fit import NO_PROMISES, Promises, fit_with_answers
from manyhands.workflows.comparison import compare_aggregators
from manyhands.workflows.gold_labels import collect_gold
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions, check_seed, require_labels, require_workers
from manyhands.workflows.ordered_classes import offer_order
from manyhands.workflows.outputs import claim_folder, write_all
from manyhands.workflows.report_pages import PAGE, find_secret, protect_secret, report_of
from manyhands.workflows.routes import IN_MEMORY, choose_route
from manyhands.workflows.sharded_aggregation import ShardedJob, aggregate_on_shards
from manyhands.workflows.worker_groups import KindOptions, weigh_families

_VOTE = "majority-vote"  # the one method that needs no worker ids
_NO_WORKERS = (
    f"workers can neither be distinguished nor assessed. Only -m {_VOTE} can use it, which gives vote shares as soft "
    f"labels"
)


def aggregate(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    method: str | None = None,
    gold: str | Path | None = None,
    use_gold: bool = False,
    answers: Sequence[str | Path] = (),
    guarantee: str | None = None,
    sets: str | None = None,
    compare: bool = False,
    pseudonyms: bool = False,
    key: str | Path | None = None,
    spreadsheet_safe: bool = False,
    random_state: int = 0,
    out: str | Path | None = None,
    write: Sequence[str] = (),
    report: bool = False,
    reveal: bool = False,
    command: str | None = None,
    force: bool = False,
    config: Mapping[str, Any] | None = None,
    families: KindOptions | None = None,
    max_memory: str | int | None = None,
    shards: str | None = None,
    cache: str | Path | None = None,
    all_questions: bool = False,
    say: Callable[[str], None] | None = None,
) -> AggregationRun | ShardedRun:
    r"""Read an export, infer one label per item, and write labels, worker reports and a summary.

    Options are checked and `out` is reserved before the export is read. Files are written all together or not at all.

    Parameters
    ----------
    files : sequence of str
        The export: a file, a folder, a zip archive, "-" for standard input; several files are batches of one job.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    method : str or None, default=None
        Registry name of an aggregator; None is "pooled-dawid-skene", and "ordinal-dawid-skene" for ordered classes.
    gold : str, Path or None, default=None
        Table of items whose class is known.
    use_gold : bool, default=False
        Use the known answers of the export itself.
    answers : sequence of str or Path, default=()
        Files of questions that an expert answered (`manyhands.workflows.ask`). Contested answers decide which method is
        followed, unless `method` names another than the default; random ones calibrate the confidence and estimate the
        accuracy. Answered items are certain.
    guarantee : str or None, default=None
        A promise such as "error<=5% at 95%": the column ``stands`` of the labels says which stand and which items must
        go to an expert. Needs random answers.
    sets : str or None, default=None
        Coverage of label sets, such as "90%": the column ``label_set``. Needs random answers.
    compare : bool, default=False
        Fit and cross-validate all other aggregators too.
    pseudonyms : bool, default=False
        Replace worker ids in all results.
    key : str, Path or None, default=None
        Secret file from which pseudonyms are derived, so that they are the same in all runs; implies `pseudonyms`.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells of the CSV files as formulas.
    random_state : int, default=0
        Seed of every method that uses random numbers.
    out : str, Path or None, default=None
        Folder for the files; None writes nothing.
    write : sequence of str, default=()
        Further formats of the labels: "jsonl", "parquet"; for the tool that the export comes from: "label-studio",
        "label-studio-tasks", "argilla", "doccano", "labelbox", "prodigy"; a training set with the fields of the items:
        "training" (CSV), "training-jsonl", "training-parquet".
    report : bool, default=False
        Also write ``report.html`` (`manyhands.workflows.report`).
    reveal : bool, default=False
        Show worker ids in ``report.html``; otherwise they are replaced by pseudonyms there, derived from
        ``manyhands.key`` of the folder, which is created.
    command : str or None, default=None
        The command line, for the record in ``report.html``.
    force : bool, default=False
        Replace files that exist.
    config : mapping or None, default=None
        File of options and what was taken from it, to be recorded in ``summary.json``.
    families : KindOptions or None, default=None
        Down-weight families of machines, which these options name, to the votes that they are worth; None does not.
    max_memory : str, int or None, default=None
        Limit for the whole job, such as "4GB", or in bytes. A job that needs more runs out of core. None is the memory
        that is free now.
    shards : {"hash"} or None, default=None
        "hash" fits on the shards of an out-of-core run in memory too, with the same bits in all files.
    cache : str, Path or None, default=None
        Folder for the codes of exports that do not fit into memory; None for that of this user.
    all_questions : bool, default=False
        Whether this is one of the runs of `aggregate_questions`, which are all in memory.
    say : callable or None, default=None
        Called with a sentence at each step of a run on shards.

    Returns
    -------
    AggregationRun or ShardedRun
        The fitted model, tables, summary and names of the files; of a run on shards without its items, which are in
        the files.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read or has no labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> rows = "".join(f"{i},{w},{'xy'[i % 2]}\n" for i in range(6) for w in "abc")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "votes.csv"
    ...     _ = path.write_text("item,worker,label\n" + rows)
    ...     run = aggregate([str(path)], method="majority-vote")
    >>> run.tables["labels.csv"]["label"].to_list()
    ['x', 'y', 'x', 'y', 'x', 'y']
    """
    kinds = kinds_of(write)
    method = chosen_method(method, export)
    check_seed(random_state)
    check_kinds(kinds)
    _require_folder(out, kinds, report)
    promises = Promises(guarantee, sets)
    promises.check(bool(answers))
    export.check()
    if families is not None:
        families.check()
    hidden = pseudonyms or key is not None
    others = {
        "--gold": gold is not None,
        "--use-gold": use_gold,
        "--answers": bool(answers),
        "--compare": compare,
        "--report": report,
        "--pseudonymise": hidden,
        "--down-weight": families is not None,
        "--all-questions": all_questions,
    }
    limits: dict[str, Any] = {"max_memory": max_memory, "shards": shards, "out": out, "kinds": kinds}
    route = choose_route(files, export, method, others=others, **limits)
    if route.kind != IN_MEMORY and out is not None:
        job = ShardedJob(files, export, method, route, out, cache, kinds, spreadsheet_safe, random_state, force, config)
        return aggregate_on_shards(job, say)
    with claim_folder(out, [*file_names(kinds, compare), *([PAGE] if report else [])], force=force) as output:
        wants_training = bool(TRAINING.keys() & set(kinds))
        reading = export.read(files, item_fields=wants_training or report, times=report)
        reading = _checked_reading(reading, files, export, method, families)
        check_outputs(kinds, files, reading)
        known = collect_gold(reading, gold, use_gold)
        answered = read_answers(answers, reading.annotations, reading.renamed.get("label")) if answers else None
        names = [Path(name).name for name in files]
        if hidden:
            reading, hide = pseudonymise(reading, key)
            names = [hide(name) for name in names]
        model, tables, figures = fit_reading(
            reading, method, known, answers=answered, promises=promises, compare=compare, random_state=random_state
        )
        figures = {"schema": 1, "files": names} | ({} if config is None else {"config": dict(config)}) | figures
        training = None if not wants_training else _training_set(model, reading, figures)
        shown = {name: guard_table(table) for name, table in tables.items()} if spreadsheet_safe else tables
        contents = {"labels.csv": to_csv(shown["labels.csv"])}
        if output is not None:
            contents = result_files(model, reading, files, shown, figures, kinds)
            contents |= {} if training is None else training.files(kinds, spreadsheet_safe=spreadsheet_safe)
        if output is not None and report:
            page = partial(report_of, model, reading, figures, files, tables, answers=answered, command=command)
            page = partial(page, seed=random_state, guarded=spreadsheet_safe)
            contents |= _report_files(page, output.folder, reveal=reveal or hidden)
        written = write_all(output, contents)
        if output is not None:
            protect_secret(output.folder, contents)
    return AggregationRun(reading, model, tables, figures, contents, written, route)


def _report_files(page: Callable[..., tuple[Any, Any, bytes]], folder: Path, *, reveal: bool) -> dict[str, bytes]:
    """Return the page, and the key of its pseudonyms if it is new; without pseudonyms if ids are to be shown."""
    secret, new = (None, {}) if reveal else find_secret(None, folder)
    beside = {name: name for name in ("labels.csv", "workers.csv")}
    return new | {PAGE: page(secret=secret, reveal=reveal, beside=beside)[2]}


def _require_folder(out: str | Path | None, kinds: Sequence[str], report: bool) -> None:
    """Refuse further files without a folder."""
    for option, is_wanted in (("--write", bool(kinds)), ("--report", report)):
        if is_wanted and out is None:
            raise ParameterError(f"{option} needs a folder to write to: add -o FOLDER.")


def _checked_reading(
    reading: Reading, files: Sequence[str], export: ExportOptions, method: str, families: KindOptions | None
) -> Reading:
    """Return what the method can use: with labels, workers unless they do not matter, and weights of families."""
    require_labels(reading)
    if method != registry.DEFAULT_ORDINAL:
        reading = offer_order(reading, "aggregate", files, export)
    if method != _VOTE or families is not None:
        require_workers(reading, _NO_WORKERS)
    return reading if families is None else weigh_families(reading, families)


def _training_set(model: Aggregator, reading: Reading, figures: dict[str, Any]) -> TrainingSet:
    """Return the training set; its fields and notes are added to the figures of the run."""
    found = join_fields(model, reading.item_fields)
    if not found.fields:
        found.notes["no_item_fields"] = (
            f"The training set has ids and labels alone: there are no other fields of items in {reading.source}."
        )
    for code, sentence in found.notes.items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=3)
    figures["training_fields"] = list(found.fields)
    figures["notes"] = figures["notes"] | found.notes
    return found


def fit_reading(
    reading: Reading,
    method: str,
    gold: Mapping[Any, Any] | None = None,
    *,
    answers: Answers | None = None,
    promises: Promises = NO_PROMISES,
    compare: bool = False,
    random_state: int = 0,
) -> tuple[Aggregator, dict[str, pl.DataFrame], dict[str, Any]]:
    """Fit a method to what was read, and tabulate its results.

    Parameters
    ----------
    reading : Reading
        An export with at least one label.
    method : str
        Registry name of an aggregator.
    gold : mapping of item to class or None, default=None
        Known classes.
    answers : Answers or None, default=None
        Answers of an expert, with how the items were drawn.
    promises : Promises, default=Promises()
        What is to be promised about the labels.
    compare : bool, default=False
        Also fit and cross-validate all other aggregators.
    random_state : int, default=0
        Seed.

    Returns
    -------
    model : Aggregator
        The fitted method.
    tables : dict of str to polars.DataFrame
        Tables by file name.
    figures : dict
        Everything for ``summary.json``.
    """
    fitted = fit_with_answers(reading.annotations, method, gold or {}, answers, random_state, promises)
    model, method, gold = fitted.model, fitted.method, fitted.gold
    found = summary(model, method)
    figures = describe_reading(reading) | found | {"n_gold_used": len(gold), "trust": fitted.trust}
    figures["notes"] = reading.notes | found["notes"]
    if reading.annotations.is_ordered:
        figures |= describe_order(reading.annotations)
    labels = label_frame(model).with_columns(pl.Series(name, values) for name, values in fitted.columns.items())
    tables = {"labels.csv": labels, "workers.csv": worker_frame(model, working_time=reading.working_time)}
    figures["workers"] = tables["workers.csv"].to_dicts()
    if compare:
        methods, differences = compare_aggregators(model, method, gold=gold, random_state=random_state)
        tables |= {"methods.csv": methods, "differences.csv": differences}
        figures["methods"] = methods.to_dicts()
    return model, tables, figures


def chosen_method(method: str | None, export: ExportOptions) -> str:
    """Return the aggregator of a run.

    Parameters
    ----------
    method : str or None
        Registry name; None for the default, which is another one for ordered classes.
    export : ExportOptions
        How the export is read.

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        If the method is unknown, or needs features.
    """
    if method is None:
        return registry.DEFAULT_ORDINAL if export.is_ordinal else registry.DEFAULT
    if method in registry.names() and method not in registry.names("aggregator"):
        raise ParameterError(f"The method {method!r} learns from features, which a table of labels does not have.")
    registry.check_name(method, "aggregator")
    return method
