"""`aggregate`: from an export to one label per item and a report for each worker; its questions or choices in turn."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.aggregation.order_consistency_vote import has_repeated_answers
from manyhands.annotations import Annotations
from manyhands.comparison import compare
from manyhands.exceptions import (
    AnnotationError,
    CrowdWarning,
    LimitError,
    ManyhandsError,
    ParameterError,
    SeveralChoicesError,
    SeveralQuestionsError,
    UnorderedClassesError,
)
from manyhands.io.messages import counted, shorten
from manyhands.io.overview import describe_order, describe_reading
from manyhands.io.questions import describe_answers, read_answers, text_or_none
from manyhands.io.reading import JOINT, YES, Reading
from manyhands.io.write.pseudonyms import find_secret, protect_secret
from manyhands.io.write.result_files import (
    KINDS,
    TASKS,
    XLSX,
    check_kinds,
    check_outputs,
    encode_table,
    file_names,
    kinds_of,
    result_files,
    write_back,
)
from manyhands.io.write.results import (
    DECIMALS,
    guard_table,
    label_frame,
    open_items,
    summary,
    to_csv,
    to_json,
    worker_frame,
)
from manyhands.io.write.training_table import TRAINING, TrainingSet, join_fields
from manyhands.io.write.workbook import workbook
from manyhands.jobs.options import (
    DEFAULT_EXPORT,
    IDS,
    PSEUDONYMS,
    ExportOptions,
    KindOptions,
    Written,
    begin_summary,
    check_seed,
    check_worker_names,
    claim_folder,
    collect_gold,
    flagged_workers,
    offer_order,
    require_labels,
    require_workers,
    secret_of,
    weigh_families,
    with_worker_names,
    write_all,
)
from manyhands.jobs.out_of_core import (
    IN_MEMORY,
    Route,
    ShardedJob,
    ShardedRun,
    aggregate_on_shards,
    choose_memory,
    choose_route,
    confident_share,
)
from manyhands.trust.answers import NEW, RANDOM, Answers
from manyhands.trust.calibration import calibrate, estimate_accuracy
from manyhands.trust.guarantees import guarantee, label_sets, parse_guarantee, parse_sets
from manyhands.trust.selection import CalibratedAggregator, Selection, registry_name, select_by_answers
from manyhands.validation import TAKE_WEIGHTS

# ----------------------------------------------------------------------------------------------------
# A fit with an expert's answers, and the block ``trust`` of summary.json.
#
# Contested answers decide which method is followed. Random answers calibrate its posterior, estimate its accuracy, and
# carry guarantees. All of this needs a fit that has not seen the answers; in the result every answered item is certain.


@dataclass(frozen=True)
class Guarantees:
    """What is to be guaranteed about the labels."""

    guarantee: str | None = None  # such as "error<=5% at 95%"
    sets: str | None = None  # coverage of label sets, such as "90%"

    def check(self, has_answers: bool) -> None:
        """Refuse guarantees that cannot be read, or without answers; no file is opened."""
        if self.guarantee is not None:
            parse_guarantee(self.guarantee)
        if self.sets is not None:
            parse_sets(self.sets)
        if self and not has_answers:
            raise ParameterError(
                "A guarantee needs answers about random items: draw them with ask and `purpose=confidence`, and give "
                "them with `answers=`."
            )

    def __bool__(self) -> bool:
        return self.guarantee is not None or self.sets is not None


NO_GUARANTEES = Guarantees()


@dataclass(frozen=True, eq=False)
class AnsweredFit:
    """A fitted model and what the answers say about it."""

    model: Aggregator
    method: str
    gold: dict[Any, Any]  # everything that is certain in the result
    trust: dict[str, Any]  # the block ``trust`` of summary.json
    # further columns of labels.csv, in the order of the items
    columns: dict[str, list[Any]] = field(default_factory=dict)


def fit_with_answers(
    annotations: Annotations,
    method: str,
    gold: Mapping[Any, Any],
    answers: Answers | None,
    random_state: int,
    guarantees: Guarantees = NO_GUARANTEES,
) -> AnsweredFit:
    """Fit a method, or the one that the answers select, and say what the answers allow to say."""
    gold_and_answers = dict(gold)
    if answers is None:
        plain: Aggregator = registry.create_seeded(method, random_state)
        plain.fit(annotations, gold=gold_and_answers or None)
        return AnsweredFit(plain, method, gold_and_answers, _block(plain, None, accuracy=estimate_accuracy(plain)))
    _refuse_contradiction(gold_and_answers, answers)
    random, unlabelled = _labelled(annotations, answers.of_kind(RANDOM))
    gold_and_answers |= unlabelled
    decisive = answers.part(item for item in answers.values if item not in {**random.values, **unlabelled})
    selection: Selection | None = None
    if method == registry.DEFAULT and len(decisive):
        model = select_by_answers(annotations, decisive, gold=gold_and_answers, random_state=random_state)
        selection = model.selection_
        method = registry_name(selection.method)
    else:
        created: Aggregator = registry.create_seeded(method, random_state)
        gold = gold_and_answers | dict(decisive.values)
        model = CalibratedAggregator(created, None, tuple(decisive.values)).fit(annotations, gold or None)
    every = gold_and_answers | dict(answers.values)
    guaranteed, columns = _guaranteed(model, random, guarantees)
    figures: dict[str, Any] = {"selection": selection} | guaranteed
    if not len(random):
        figures["accuracy"] = estimate_accuracy(model)
        return AnsweredFit(model, method, every, _block(model, answers, **figures), columns)
    figures["strata"], more = _strata(model, random, len(unlabelled))
    columns |= more
    calibrated = calibrate(model, random)
    figures["calibration"] = calibrated.calibration_
    figures["accuracy"] = estimate_accuracy(model if guarantees else calibrated, random)
    as_it_is = CalibratedAggregator(model.model, model.parameters, (*model.hidden, *random.values))
    result = as_it_is.fit(annotations, every) if guarantees else calibrated
    block = _block(result, answers, **figures)
    block["calibration"]["applied"] = not guarantees
    return AnsweredFit(result, method, every, block, columns)


def _guaranteed(
    model: Aggregator, random: Answers, guarantees: Guarantees
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return what can be guaranteed about a model, and the columns of labels.csv that show it."""
    block: dict[str, Any] = {}
    columns: dict[str, list[Any]] = {}
    if guarantees.guarantee is not None:
        error, confidence = parse_guarantee(guarantees.guarantee)
        block["guarantee"] = guarantee(model, random, error=error, confidence=confidence)
        columns["stands"] = ["yes" if stands else "expert" for stands in block["guarantee"].stands.tolist()]
    if guarantees.sets is not None:
        coverage, confidence = parse_sets(guarantees.sets)
        block["sets"] = label_sets(model, random, coverage=coverage, confidence=confidence)
        columns["label_set"] = ["; ".join(map(str, labels)) for labels in block["sets"].as_lists()]
    return block, columns


def _labelled(annotations: Annotations, random: Answers) -> tuple[Answers, dict[Any, Any]]:
    """Return the answers about items with labels, which can be right or wrong, and the other ones, which are gold.

    The former are a random sample of the items with labels, since no label was removed because of an answer.
    """
    n_labels = dict(zip(annotations.item_ids.tolist(), annotations.n_labels.tolist()))
    without = {item: label for item, label in random.values.items() if n_labels.get(item) == 0}
    return random.part(item for item in random.values if item not in without), without


_MAX_NEW = 3  # new items that a sentence names; the column ``stratum`` has all


def _strata(model: Aggregator, random: Answers, n_unlabelled: int) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return what the random answers are about, and the stratum of each item where they are not about all items."""
    items = model.item_ids_.tolist()
    names, codes = random.strata_of(items)
    labelled = ~model.unlabelled_
    own = [labelled & (codes == at) for at in range(len(names))]
    answered = np.isin(np.arange(len(items)), [row for row, item in enumerate(items) if item in random.values])
    counts = {name: (int(rows.sum()), int((rows & answered).sum())) for name, rows in zip(names, own)}
    new = [item for item, is_new in zip(items, labelled & (codes < 0)) if is_new]
    block: dict[str, Any] = {"items": {name: {"n_items": n, "n_answers": k} for name, (n, k) in counts.items() if n}}
    block["n_new"] = len(new)
    if n_unlabelled:
        block["sentence"] = (
            f"{counted(n_unlabelled, 'random answer')} about items without labels cannot show whether labels are right."
        )
    if not new and len(block["items"]) < 2:
        return block, {}
    parts = [f"{counted(k, 'answer')} about {counted(n, 'item')} ({name})" for name, (n, k) in counts.items() if n]
    said = f"The random answers by stratum: {', '.join(parts)}"
    if new:
        shown = ", ".join(repr(shorten(str(item))) for item in new[:_MAX_NEW])
        said += (
            f"; nothing is known from them about {counted(len(new), 'new item')}, which could not be drawn then "
            f"({'' if len(new) <= _MAX_NEW else 'such as '}{shown})"
        )
    block["sentence"] = " ".join([f"{said} (column 'stratum' of the labels).", *filter(None, [block.get("sentence")])])
    text = [names[code] if code >= 0 else NEW for code in codes.tolist()]
    return block, {"stratum": [name if has else None for name, has in zip(text, labelled.tolist())]}


def _block(model: Aggregator, answers: Answers | None, **found: Any) -> dict[str, Any]:
    """The block ``trust``: what is known of the answers, and every result as values and as a sentence."""
    base = model.model if isinstance(model, CalibratedAggregator) else model
    sentences = []
    if answers is not None:
        sentences.append(f"{describe_answers(answers)} of an expert are certain in the result.")
    strata = found.get("strata")
    if strata is not None and "sentence" in strata:
        sentences.append(strata["sentence"])
    order = ("selection", "calibration", "accuracy", "guarantee", "sets")
    given = {name: found.get(name) for name in order}
    sentences.extend(str(value) for value in given.values() if value is not None)
    return {
        "temper": getattr(base, "temper", None),
        "n_answers": 0 if answers is None else len(answers),
        "sampled": {} if answers is None else answers.kinds,
        "strata": strata,
        **{name: None if value is None else value.as_dict() for name, value in given.items()},
        "sentences": sentences,
    }


def _refuse_contradiction(gold: Mapping[Any, Any], answers: Answers) -> None:
    """Refuse an item whose gold and answer differ."""
    for item, label in answers.values.items():
        if gold.get(item, label) != label:
            raise AnnotationError(
                f"{shorten(str(item))!r} is {shorten(str(gold[item]))!r} in the gold and {shorten(str(label))!r} in "
                f"the answers. Correct one of them."
            )


# ----------------------------------------------------------------------------------------------------
# All aggregators on the same annotations, as two tables: scores per method, and items with different labels.

_SCORES = {  # columns of `Comparison.table`, and their types where nothing could be scored
    "rank": pl.Int64,
    "heldout_log_likelihood": pl.Float64,
    "standard_error": pl.Float64,
    "difference_to_best": pl.Float64,
    "difference_standard_error": pl.Float64,
    "likelihood": pl.String,
}


def compare_aggregators(
    chosen: Aggregator, method: str, *, gold: Mapping[Any, Any] | None = None, random_state: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fit and cross-validate every aggregator on the annotations of a fitted one.

    The ranking is that of `manyhands.compare` with the same seed and gold.
    """
    annotations = chosen.annotations_
    names = [method, *(name for name in _usable(annotations) if name != method)]
    fitted = {name: chosen if name == method else _fit(name, random_state, annotations, gold) for name in names}
    rows = {name: _describe(model, name, chosen, random_state, gold) for name, model in fitted.items()}
    try:
        ranking = compare(sorted(names), annotations, gold=gold, random_state=random_state).table()
    except AnnotationError:  # too few labels to hold some out
        ranking = [{"method": name} | dict.fromkeys(_SCORES) for name in sorted(names)]
    scored = [score | rows[score["method"]] for score in ranking]
    return pl.DataFrame(scored, schema_overrides=_SCORES), _differences(fitted, annotations)


def _usable(annotations: Annotations) -> list[str]:
    """Return the names of the aggregators for these labels: some are for two or ordered classes, few take weights."""
    unusable = {"kos"} if annotations.n_classes != 2 else set()
    if not annotations.is_ordered:
        unusable.add(registry.DEFAULT_ORDINAL)
    if not has_repeated_answers(annotations):  # it is the majority vote then
        unusable.add(registry.DEFAULT_VERDICTS)
    if annotations.weight is not None:
        unusable |= set(registry.names("aggregator")) - set(TAKE_WEIGHTS)
    return [name for name in registry.names("aggregator") if name not in unusable]


def _fit(name: str, random_state: int, annotations: Annotations, gold: Mapping[Any, Any] | None) -> Aggregator:
    """Return a method fitted to all annotations."""
    model: Aggregator = registry.create_seeded(name, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the chosen method has raised them already
        return model.fit(annotations, gold=gold or None)


def _describe(
    model: Aggregator, name: str, chosen: Aggregator, random_state: int, gold: Mapping[Any, Any] | None
) -> dict[str, Any]:
    """Return the columns of a fitted method that are not from cross-validation."""
    labelled, is_open = ~model.unlabelled_, open_items(model)
    row = {
        "mean_confidence": float(model.posterior_[is_open].max(axis=1).mean()) if is_open.any() else None,
        "agreement_with_chosen": float(np.mean(model.labels_[labelled] == chosen.labels_[labelled])),
        "n_tied": int(model.tied_.sum()),
        "converged": model.converged_,
    }
    if gold:
        without_gold = _fit(name, random_state, model.annotations_, None)
        labels = dict(zip(without_gold.item_ids_.tolist(), without_gold.labels_.tolist()))
        row["gold_accuracy"] = float(np.mean([labels[item] == label for item, label in gold.items()]))
    return row


def _differences(fitted: Mapping[str, Aggregator], annotations: Annotations) -> pl.DataFrame:
    """Return the items on which not all methods agree, with the votes and each method's label."""
    labels = {
        name: np.array([text_or_none(v) for v in model.labels_.tolist()], object) for name, model in fitted.items()
    }
    first, *others = labels.values()
    differ = np.zeros(annotations.n_items, bool)
    for other in others:
        differ |= other != first
    rows = np.flatnonzero(differ)
    columns: dict[str, Any] = {
        "item": [str(value) for value in annotations.item_ids[rows].tolist()],
        "votes": [_count_votes(annotations, row) for row in rows.tolist()],
    }
    columns |= {name: pl.Series(values[rows].tolist(), dtype=pl.String) for name, values in labels.items()}
    return pl.DataFrame(columns, schema_overrides={"item": pl.String, "votes": pl.String})


def _count_votes(annotations: Annotations, item: int) -> str:
    """Return the votes on an item, the most frequent class first: ``cat 3; dog 1``."""
    own = slice(annotations.start[item], annotations.start[item + 1])
    weight = None if annotations.weight is None else annotations.weight[own]
    counts = np.bincount(annotations.label[own], weights=weight, minlength=annotations.n_classes)
    order, precision = np.lexsort((np.arange(len(counts)), -counts)), "d" if weight is None else ".3g"
    return "; ".join(f"{annotations.classes[k]} {counts[k]:{precision}}" for k in order if counts[k])


# ----------------------------------------------------------------------------------------------------
# `aggregate`: read, fit, tabulate, write.

_NO_WORKERS = (
    f"workers can neither be distinguished nor assessed. Only `method={registry.VOTE}` can use it, which gives vote "
    f"shares as soft labels"
)


@dataclass(frozen=True, eq=False)
class AggregationRun:
    """Result of `aggregate` in memory.

    Attributes
    ----------
    reading : Reading
        What was read; with pseudonyms in place of worker ids if they were asked for.
    model : Aggregator
        The fitted method.
    tables : dict of str to polars.DataFrame
        ``labels.csv`` and ``workers.csv``; with `compare`, ``methods.csv`` and ``differences.csv``.
    summary : dict
        All figures of the run, as in ``summary.json``.
    files : dict of str to bytes
        Content of the files; only ``labels.csv`` if nothing is written.
    written : Written
        Names of the files that were written.
    route : Route or None, default=None
        Why the run was in memory; None if that was not decided.
    """

    reading: Reading
    model: Aggregator
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    files: dict[str, bytes]
    written: Written
    route: Route | None = None

    @property
    def confident_share(self) -> float:
        """Share of the items of no given class that have a label with a posterior probability of at least 0.9."""
        return confident_share(self.summary)


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
    worker_names: str | Path | None = None,
    spreadsheet_safe: bool = False,
    random_state: int = 0,
    out: str | Path | None = None,
    write: Sequence[str] = (),
    report: bool = False,
    command: str | None = None,
    force: bool = False,
    config: Mapping[str, Any] | None = None,
    families: KindOptions | None = None,
    max_memory: str | int | None = None,
    shards: str | None = None,
    cache: str | Path | None = None,
    part_of: str | None = None,
    secret: bytes | None = None,
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
        Files of questions that an expert answered (`manyhands.jobs.ask.ask`). Contested answers decide which method is
        followed, unless `method` names another than the default; random ones calibrate the confidence and estimate the
        accuracy. Answered items are certain.
    guarantee : str or None, default=None
        A guarantee such as "error<=5% at 95%": the column ``stands`` of the labels says which stand and which items
        must go to an expert. Needs random answers.
    sets : str or None, default=None
        Coverage of label sets, such as "90%": the column ``label_set``. Needs random answers.
    compare : bool, default=False
        Fit and cross-validate all other aggregators too.
    worker_names : {"ids", "pseudonyms"}, str, Path or None, default=None
        How workers are named in all results: by their ids; by pseudonyms from the key file ``manyhands.key`` of the
        folder, which is created (without a folder, by numbers); or by the pseudonyms of another key file. With a key, a
        worker has the same pseudonym in every run. None names them by their ids, and by pseudonyms in ``report.html``,
        which others may see.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells of the CSV files as formulas.
    random_state : int, default=0
        Seed of every method that uses random numbers.
    out : str, Path or None, default=None
        Folder for the files; None writes nothing.
    write : sequence of str, default=()
        Further formats of the labels: "jsonl", "parquet"; for the tool that the export comes from: "label-studio",
        "label-studio-tasks", "argilla", "doccano", "labelbox", "prodigy"; a training set with the fields of the items:
        "training" (CSV), "training-jsonl", "training-parquet"; all tables as sheets of a workbook: "xlsx".
    report : bool, default=False
        Also write ``report.html`` (`manyhands.jobs.report.report`).
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
    part_of : {"all_questions", "by_choice"} or None, default=None
        Whether this is one of the runs of `aggregate_questions` or `aggregate_choices`, which are all in memory.
    secret : bytes or None, default=None
        Key of the pseudonyms, where several runs share one that another function writes; None for that of
        `worker_names` or of the folder.
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
    name = chosen_method(method, export)
    check_seed(random_state)
    check_kinds(kinds)
    _require_folder(out, kinds, report)
    guarantees = Guarantees(guarantee, sets)
    guarantees.check(bool(answers))
    export.check()
    if families is not None:
        families.check()
    if worker_names is not None:
        check_worker_names(worker_names)
    hidden = worker_names not in (None, IDS)
    others = {
        "gold": gold is not None,
        "use_gold": use_gold,
        "answers": bool(answers),
        "compare": compare,
        "report": report,
        "worker_names": hidden,
        "families": families is not None,
        **({} if part_of is None else {part_of: True}),
    }
    limits: dict[str, Any] = {"max_memory": max_memory, "shards": shards, "out": out, "kinds": kinds}
    route = choose_route(files, export, name, others=others, **limits)
    if route.kind != IN_MEMORY and out is not None:
        job = ShardedJob(files, export, name, route, out, cache, kinds, spreadsheet_safe, random_state, force, config)
        return aggregate_on_shards(job, say)
    names = [*file_names(kinds, compare), WITHOUT_FLAGGED, *([_page_name()] if report else [])]
    with claim_folder(out, names, force=force) as output:
        wants_fields = report or TASKS in kinds or bool(TRAINING.keys() & set(kinds))
        reading = export.read(files, item_fields=wants_fields, times=report, method=name)
        reading = _checked_reading(reading, name, families)
        if method is None:
            name, reading = default_for_verdicts(name, reading)
        check_outputs(kinds, files, reading)
        gold_of_items = collect_gold(reading, gold, use_gold)
        renamed, left_out = reading.renamed.get("label"), reading.left_out_items
        answered = read_answers(answers, reading.annotations, renamed, left_out) if answers else None
        key_file: dict[str, bytes] = {}
        if secret is None and (hidden or (report and worker_names is None)):
            secret, key_file = secret_of(worker_names or PSEUDONYMS, None if output is None else output.folder)
        reading, rename = with_worker_names(reading, worker_names or IDS, secret)
        read_from = [rename(Path(name).name) for name in files]
        model, tables, figures = fit_reading(
            reading,
            name,
            gold_of_items,
            answers=answered,
            guarantees=guarantees,
            compare=compare,
            random_state=random_state,
        )
        figures = begin_summary(read_from, config and _renamed(config, rename)) | figures
        command = command and rename(command)
        contents = _result_contents(
            model, reading, files, tables, figures, None if output is None else kinds, spreadsheet_safe
        )
        if output is not None and report:
            contents |= _page_of(
                model,
                reading,
                figures,
                files,
                tables,
                answers=answered,
                command=command,
                seed=random_state,
                guarded=spreadsheet_safe,
                secret=secret,
                reveal=worker_names is not None,
                beside={name: name for name in ("labels.csv", "workers.csv", WITHOUT_FLAGGED)},
            )
        contents |= {} if output is None else key_file
        written = write_all(output, contents)
        if output is not None and key_file:
            protect_secret(output.folder, key_file)
    return AggregationRun(reading, model, tables, figures, contents, written, route)


def _result_contents(
    model: Aggregator,
    reading: Reading,
    files: Sequence[str],
    tables: Mapping[str, pl.DataFrame],
    figures: dict[str, Any],
    kinds: Sequence[str] | None,
    spreadsheet_safe: bool,
) -> dict[str, bytes]:
    """The contents of the files of results; of the labels alone where `kinds` is None, as there is no folder."""
    shown = {name: guard_table(table) for name, table in tables.items()} if spreadsheet_safe else dict(tables)
    if kinds is None:
        return {"labels.csv": to_csv(shown["labels.csv"])}
    training = _training_set(model, reading, figures) if TRAINING.keys() & set(kinds) else None  # extends the figures
    contents = result_files(model, reading, files, shown, figures, kinds)
    contents |= {} if training is None else training.files(kinds, spreadsheet_safe=spreadsheet_safe)
    if XLSX in kinds:  # text stays text in its cells, so nothing is guarded
        contents |= {KINDS[XLSX]: workbook({name.removesuffix(".csv"): table for name, table in tables.items()})}
    return contents


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    """Return options of a file without the ids of workers."""
    if isinstance(value, Mapping):
        return {name: _renamed(one, rename) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(one, rename) for one in value]
    return rename(value) if isinstance(value, str) else value


# The report's libraries take a tenth of a second to load, which runs without a report do without.


def _page_name() -> str:
    """Return the name of the report's file."""
    from manyhands.report.page import PAGE

    return PAGE


def _page_of(*run: Any, **options: Any) -> dict[str, bytes]:
    """Return the report of a run."""
    from manyhands.report.page import PAGE, report_of

    return {PAGE: report_of(*run, **options).content}


def _require_folder(out: str | Path | None, kinds: Sequence[str], report: bool) -> None:
    """Refuse further files without a folder."""
    for option, is_wanted in (("write", bool(kinds)), ("report", report)):
        if is_wanted and out is None:
            raise ParameterError(f"`{option}` needs a folder to write to: add `out=FOLDER`.")


def _checked_reading(reading: Reading, method: str, families: KindOptions | None) -> Reading:
    """Return what the method can use: with labels, workers unless they do not matter, and weights of families."""
    require_labels(reading)
    if method != registry.DEFAULT_ORDINAL:
        reading = offer_order(reading)
    if method != registry.VOTE or families is not None:
        require_workers(reading, _NO_WORKERS)
    return reading if families is None else weigh_families(reading, families)


def _training_set(model: Aggregator, reading: Reading, figures: dict[str, Any]) -> TrainingSet:
    """Return the training set; its fields and notes are added to the figures of the run."""
    fields_of_items = join_fields(model, reading.item_fields)
    if not fields_of_items.fields:
        fields_of_items.notes["no_item_fields"] = (
            f"The training set has ids and labels alone: there are no other fields of items in {reading.source}."
        )
    for code, sentence in fields_of_items.notes.items():
        warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=4)
    figures["training_fields"] = list(fields_of_items.fields)
    figures["notes"] = figures["notes"] | fields_of_items.notes
    return fields_of_items


def fit_reading(
    reading: Reading,
    method: str,
    gold: Mapping[Any, Any] | None = None,
    *,
    answers: Answers | None = None,
    guarantees: Guarantees = NO_GUARANTEES,
    compare: bool = False,
    random_state: int = 0,
) -> tuple[Aggregator, dict[str, pl.DataFrame], dict[str, Any]]:
    """Fit a method to what was read, and tabulate its results."""
    fitted = fit_with_answers(reading.annotations, method, gold or {}, answers, random_state, guarantees)
    again = partial(fit_with_answers, method=method, gold=gold or {}, answers=answers, random_state=random_state)
    model, method, gold = fitted.model, fitted.method, fitted.gold
    of_fit = summary(model, method)
    figures = describe_reading(reading) | of_fit | {"n_gold_used": len(gold), "trust": fitted.trust}
    figures["notes"] = reading.notes | of_fit["notes"]
    if reading.annotations.is_ordered:
        figures |= describe_order(reading.annotations)
    labels = label_frame(model).with_columns(pl.Series(name, values) for name, values in fitted.columns.items())
    tables = {"labels.csv": labels, "workers.csv": worker_frame(model, reading=reading)}
    figures["workers"] = tables["workers.csv"].to_dicts()
    figures["without_flagged"], changed = _without_flagged(reading.annotations, labels, tables["workers.csv"], again)
    if changed is not None and len(changed):
        tables[WITHOUT_FLAGGED] = changed
    if compare:
        methods, differences = compare_aggregators(model, method, gold=gold, random_state=random_state)
        tables |= {"methods.csv": methods, "differences.csv": differences}
        figures["methods"] = methods.to_dicts()
    return model, tables, figures


# What the labels would be without the workers whom alerts accuse: one more fit, in crowds of a size for which it takes
# seconds.
WITHOUT_FLAGGED = "without_flagged.csv"
_MOST_LABELS_AGAIN = 500_000
_N_EXAMPLES = 5  # of changed items in summary.json


def _without_flagged(
    annotations: Annotations, labels: pl.DataFrame, workers: pl.DataFrame, fit: Callable[[Annotations], AnsweredFit]
) -> tuple[dict[str, Any] | None, pl.DataFrame | None]:
    """Return how many labels would be others without the flagged workers, and a table of these items."""
    flagged = flagged_workers(workers)
    if not flagged or annotations.n_annotations > _MOST_LABELS_AGAIN:
        return None, None
    rest = annotations.without_workers(flagged)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # about a fit that is only compared
            other = label_frame(fit(rest).model, "polars")
    except ManyhandsError:  # such as no label that is left
        return None, None
    both = labels.select("item", "label", "confidence").with_columns(
        other["label"].alias("label_without"), other["confidence"].alias("confidence_without")
    )
    n_labelled = int(labels["label"].is_not_null().sum())
    changed = both.filter(pl.col("label").is_not_null() & pl.col("label").ne_missing(pl.col("label_without")))
    figures = {
        "n_workers": len(flagged),
        "n_labels": annotations.n_annotations - rest.n_annotations,
        "n_items": n_labelled,
        "n_changed": len(changed),
        "share_changed": round(len(changed) / max(n_labelled, 1), DECIMALS),
        "n_without_label": int(changed["label_without"].is_null().sum()),
        "items": changed["item"].head(_N_EXAMPLES).to_list(),
    }
    return figures, changed


def chosen_method(method: str | None, export: ExportOptions) -> str:
    """Return the aggregator of a run."""
    if method is None:
        return registry.DEFAULT_ORDINAL if export.is_ordinal else registry.DEFAULT
    if method in registry.names() and method not in registry.names("aggregator"):
        raise ParameterError(f"The method {method!r} learns from features, which a table of labels does not have.")
    registry.check_name(method, "aggregator")
    return method


def default_for_verdicts(method: str, reading: Reading) -> tuple[str, Reading]:
    """Return the default for verdicts in both orders of presentation, with a note, where labels are such verdicts."""
    has_pairs = any(bias.n_pairs for bias in reading.position_bias.values())
    if method != registry.DEFAULT or not has_pairs:
        return method, reading
    if reading.annotations.weight is None:
        method, code = registry.DEFAULT_VERDICTS, "order_consistency"
        sentence = (
            f"The labels are pairwise verdicts in both orders of presentation, so that {method} was used: a judge's "
            f"verdicts count by how rarely they change with the order. That says nothing about consistent errors, "
            f"which only answers of people show. `method=` names another aggregator."
        )
    else:
        code = "weights_without_order"
        sentence = (
            f"The labels are pairwise verdicts in both orders of presentation, but they have weights, which "
            f"{registry.DEFAULT_VERDICTS} does not take: {method} was used, and judges who follow the position count "
            f"as any other."
        )
    warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=3)
    return method, replace(reading, notes=reading.notes | {code: sentence})


# ----------------------------------------------------------------------------------------------------
# Exports with several questions: each of them aggregated in a folder of its own, and an overview.

OVERVIEW = "questions.csv"


@dataclass(frozen=True, eq=False)
class QuestionRuns:
    """Result of `aggregate_questions`.

    Attributes
    ----------
    runs : dict of str to AggregationRun or ChoicesRun
        The run of each question that could be aggregated.
    table : polars.DataFrame
        ``questions.csv``: a row per question, with its folder and figures, or the reason why it was left out.
    written : Written
        The overview that was written beside the folders.
    """

    runs: dict[str, AggregationRun | ChoicesRun]
    table: pl.DataFrame
    written: Written


def aggregate_questions(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    out: str | Path | None,
    force: bool = False,
    max_memory: str | int | None = None,
    options: Mapping[str, Any] | None = None,
) -> QuestionRuns:
    """Aggregate every question of an export into a folder of its own, and write an overview.

    A question with several choices in an answer is aggregated by choice (`aggregate_choices`). A warning names every
    question that is left out, and why.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it; without a question.
    out : str, Path or None
        Folder that gets one folder per question and ``questions.csv``.
    force : bool, default=False
        Replace files that exist.
    max_memory : str, int or None, default=None
        Limit such as "4GB", within which the whole export must fit; None for no limit.
    options : mapping of str to object, default=None
        Further options of `aggregate`, which apply to every question.

    Returns
    -------
    QuestionRuns
        The runs and the overview.

    Raises
    ------
    ParameterError
        If a question is named as well, or there is no folder to write to.
    AnnotationError
        If no question can be aggregated.
    LimitError
        If the export does not fit into the limit.
    """
    if out is None or export.question is not None:
        what = "needs a folder to write to: add `out=FOLDER`" if out is None else "and `question` exclude each other"
        raise ParameterError(f"`all_questions` {what}.")
    if "-" in files:
        raise ParameterError("`all_questions` reads the export once for each question: give a file, not -.")
    if max_memory is not None and not (choice := choose_memory(files, max_memory)).fits:
        raise LimitError(
            f"The export {choice.reason}, and a run out of core does not support `all_questions`. Give a file with the "
            f"rows of one question."
        )
    names: tuple[str | None, ...] = _question_names(files, export) or (None,)
    runs: dict[str, AggregationRun | ChoicesRun] = {}
    rows: list[dict[str, Any]] = []
    with claim_folder(out, [OVERVIEW], force=force) as output:
        assert output is not None
        secret, key_file = _shared_secret(options or {}, output.folder)
        for name, folder in zip(names, _folder_names(names)):
            try:
                paths: dict[str, Any] = {"out": Path(out) / folder, "force": force, "max_memory": max_memory}
                paths["secret"] = secret
                run = _aggregate_one(files, replace(export, question=name), paths | dict(options or {}))
            except AnnotationError as error:
                rows.append({"question": name, "reason": str(error)})
                _warn_of_question("question_left_out", f"{shorten(name or 'labels')!r} was left out: {error}")
                continue
            runs[run.reading.question] = run
            rows.append({"question": run.reading.question, "folder": folder} | _figures(run))
        if not runs:
            raise AnnotationError(f"No question could be aggregated. The first reason: {rows[0]['reason']}")
        table = pl.DataFrame(rows, infer_schema_length=None)
        written = write_all(output, key_file | {OVERVIEW: to_csv(table)})
        protect_secret(output.folder, key_file)
    return QuestionRuns(runs, table, written)


def _shared_secret(options: Mapping[str, Any], folder: Path) -> tuple[bytes | None, dict[str, bytes]]:
    """Return the key of the pseudonyms in all folders, if there are any, and the key file to write if it is new."""
    names = options.get("worker_names")
    if names is None:
        return find_secret(None, folder) if options.get("report") else (None, {})
    check_worker_names(names)
    return secret_of(names, folder)


def _aggregate_one(
    files: Sequence[str], export: ExportOptions, options: Mapping[str, Any]
) -> AggregationRun | ChoicesRun:
    """Aggregate one question; `ordinal` is meant for those questions whose classes have an order."""
    name = shorten(export.question or "labels")
    try:
        run = aggregate(files, export, part_of="all_questions", **options)
    except UnorderedClassesError:
        if export.order is not None:
            raise
        _warn_of_question(
            "unordered_question", f"The classes of {name!r} have no known order, so it was aggregated without one."
        )
        run = aggregate(files, replace(export, ordinal=False), part_of="all_questions", **options)
    except SeveralChoicesError as several:
        _warn_of_question(
            "by_choice",
            f"Answers to {name!r} have several choices, so each of the {len(several.choices)} was aggregated as "
            f"a question with yes and no; labels.csv in its folder has all of them. `combinations=True` takes every "
            f"combination of choices as a class instead.",
        )
        return aggregate_choices(files, replace(export, ordinal=False, order=None), **options)
    assert isinstance(run, AggregationRun)  # a part of several runs is never on shards
    return run


def _warn_of_question(code: str, sentence: str) -> None:
    warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=4)


def _question_names(files: Sequence[str], export: ExportOptions) -> tuple[str, ...]:
    """Return the questions of an export if it has several and none was chosen."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # each question issues them again
            export.read(files)
    except SeveralQuestionsError as error:
        return error.questions
    return ()


def _figures(run: AggregationRun | ChoicesRun) -> dict[str, Any]:
    """Return the main figures of one run."""
    summary = run.summary
    return {
        "n_items": summary["n_items"],
        "n_classes": summary["n_classes"],
        "labels_per_item": summary["labels_per_item"],
        "share_above_0.9": summary["share_above_0.9"],
        "n_tied": summary["n_tied"],
    }


def _folder_names(names: Sequence[str | None]) -> list[str]:
    """Return a folder name for each question: its letters and digits, with a number where two would be the same."""
    folders: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w-]+", "-", name or "labels").strip("-")[:60] or "question"
        taken = sum(other.rpartition("-")[0] == plain or other == plain for other in folders)
        folders.append(plain if plain not in folders else f"{plain}-{taken + 1}")
    return folders


# ----------------------------------------------------------------------------------------------------
# A question whose answers have several choices: each choice is a question with yes and no, and one table has them all.
#
# A class for each combination has few labels: in four simulated crowds of 400 items with six choices, one or two of
# them right, and five labels per item, 90% of the sets were right by choice and 88% by combinations.

SURE = 0.9  # confidence from which a set of choices counts as sure, as for single labels
_BELOW_HALF = "below-half"  # alert of an item of which no choice is more probable than not
_NEVER = 1e-12  # least probability of a factor of the confidence, so that its logarithm exists


@dataclass(frozen=True, eq=False)
class ChoicesRun:
    """Result of `aggregate_choices`.

    Attributes
    ----------
    runs : dict of str to AggregationRun
        The run of each choice.
    tables : dict of str to polars.DataFrame
        ``labels.csv``: a row per item, with the chosen choices and a column for each choice; ``workers.csv``: the
        workers of all runs, under the choice.
    summary : dict
        All figures of the run, as in ``summary.json``.
    files : dict of str to bytes
        Content of the files beside the folders of the choices.
    written : Written
        Names of the files that were written.
    reading : Reading
        What was read for the first choice.
    """

    runs: dict[str, AggregationRun]
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    files: dict[str, bytes]
    written: Written
    reading: Reading

    @property
    def confident_share(self) -> float:
        """Share of all items that have a set of choices with a probability of at least 0.9."""
        return confident_share(self.summary)


def aggregate_choices(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    out: str | Path | None = None,
    force: bool = False,
    write: Sequence[str] = (),
    secret: bytes | None = None,
    spreadsheet_safe: bool = False,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> ChoicesRun:
    """Aggregate every choice of a question with several choices, and write one table of all of them.

    An answer without any choice does not count, so every item has at least one: the most probable choice where none has
    a probability above one half.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it; with the question, if the export has several.
    out : str, Path or None, default=None
        Folder that gets the files, and one folder per choice; None writes nothing.
    force : bool, default=False
        Replace files that exist.
    write : sequence of str, default=()
        Further formats of the labels, as of `aggregate`: those for a tool have the chosen choices of each item, a
        workbook the joined tables; training sets are those of the single choices.
    secret : bytes or None, default=None
        Key of the pseudonyms; None for that of the folder.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells of the CSV files as formulas.
    config : mapping or None, default=None
        File of options and what was taken from it, to be recorded in ``summary.json``.
    **options : object
        Further options of `aggregate`, which apply to every choice.

    Returns
    -------
    ChoicesRun
        The runs, the tables and names of the files.

    Raises
    ------
    ParameterError
        If an option is about labels of one choice, or no answer has several choices.
    AnnotationError
        If the export cannot be read.
    """
    kinds = kinds_of(write)
    check_kinds(kinds)
    _check_by_choice(files, export, options)
    _require_folder(out, kinds, bool(options.get("report")))
    of_one = [kind for kind in kinds if kind in TRAINING or kind == XLSX]  # written for each choice
    own = [kind for kind in kinds if kind not in TRAINING]
    several = _find_choices(files, export)
    names = ["labels.csv", "workers.csv", "summary.json", *(KINDS[kind] for kind in own)]
    with claim_folder(out, names, force=force) as output:
        key_file: dict[str, bytes] = {}
        if secret is None:
            secret, key_file = (None, {}) if output is None else _shared_secret(options, output.folder)
        options |= {"secret": secret, "force": force, "spreadsheet_safe": spreadsheet_safe, "config": config}
        options["write"] = of_one
        if own:
            _check_before_choices(own, files, export, several)
        runs = _run_choices(files, export, several, out, options)
        first = next(iter(runs.values()))
        reading = replace(first.reading, question=several.question)
        (tables, sets), figures = _joined_choices(runs), begin_summary([Path(name).name for name in files], config)
        figures |= describe_reading(reading) | _figures_of_choices(runs, tables["labels.csv"], several.question)
        contents = _files_of_choices(tables, sets, figures, reading, files, own, spreadsheet_safe)
        written = write_all(output, contents | ({} if output is None else key_file))
        if output is not None:
            protect_secret(output.folder, key_file)
    return ChoicesRun(runs, tables, figures, contents, written, reading)


def _check_by_choice(files: Sequence[str], export: ExportOptions, options: Mapping[str, Any]) -> None:
    """Refuse what is about the labels of one choice; no file is opened."""
    if "-" in files:
        raise ParameterError("`by_choice` reads the export once for each choice: give a file, not -.")
    if export.combinations:
        raise ParameterError("`by_choice` and `combinations` exclude each other: give only one of them.")
    if export.is_ordinal:
        raise ParameterError("Choices of which several may be right have no order: leave out `ordinal` and `order`.")
    if options.get("shards") is not None:
        raise ParameterError("`shards=hash` does not support `by_choice`: leave it out.")
    for name in ("gold", "answers", "guarantee", "sets"):
        if options.get(name):
            raise AnnotationError(
                f"`{name}` is about the labels of one question, and each choice is a question of its own: name one "
                f"choice with `question=NAME=CHOICE`."
            )


def _find_choices(files: Sequence[str], export: ExportOptions) -> SeveralChoicesError:
    """Return the question and its choices."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # each choice issues them again
            reading = export.read(files)
    except SeveralChoicesError as several:
        return several
    raise ParameterError(
        f"No answer to {shorten(reading.question)!r} in {reading.source} has several choices: leave out `by_choice`."
    )


def _check_before_choices(
    kinds: Sequence[str], files: Sequence[str], export: ExportOptions, several: SeveralChoicesError
) -> None:
    """Refuse outputs that could not be written before a folder of any choice is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # each choice issues them again
        reading = replace(export, question=f"{several.question}={several.choices[0]}").read(files)
    check_outputs(kinds, files, replace(reading, question=several.question))


def _run_choices(
    files: Sequence[str],
    export: ExportOptions,
    several: SeveralChoicesError,
    out: str | Path | None,
    options: Mapping[str, Any],
) -> dict[str, AggregationRun]:
    """Aggregate each choice in its folder; a warning that several of them have is issued once."""
    runs: dict[str, AggregationRun] = {}
    said: dict[str, None] = {}
    for choice, folder in zip(several.choices, _folder_names(several.choices)):
        place = None if out is None else Path(out) / folder
        one = replace(export, question=f"{several.question}={choice}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = aggregate(files, one, out=place, part_of="by_choice", **options)
        assert isinstance(run, AggregationRun)  # a part of several runs is never on shards
        runs[choice] = run
        said |= dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, CrowdWarning))
    for sentence in said:
        warnings.warn(sentence, CrowdWarning, stacklevel=3)
    return runs


def _joined_choices(runs: Mapping[str, AggregationRun]) -> tuple[dict[str, pl.DataFrame], list[list[str]]]:
    """Return the labels of all choices as one table, the workers of all, and the chosen choices of each item."""
    labels = [run.tables["labels.csv"] for run in runs.values()]
    first = labels[0]
    assert all(table["item"].equals(first["item"]) for table in labels)
    chosen, sure = _chosen(labels)
    names = list(runs)
    unlabelled: list[bool] = first["label"].is_null().to_list()
    below_half = [not any(row) for row in _selected(labels).tolist()]
    sets = [[] if no else [name for name, on in zip(names, row) if on] for no, row in zip(unlabelled, chosen.tolist())]
    alerts = ["unlabelled" if no else _BELOW_HALF if below else None for no, below in zip(unlabelled, below_half)]
    columns = {
        "item": first["item"],
        "label": pl.Series([JOINT.join(choices) or None for choices in sets], dtype=pl.String),
        "confidence": pl.Series(np.where(unlabelled, np.nan, sure)).fill_nan(None),
        "n_labels": first["n_labels"],
        "alerts": pl.Series(alerts, dtype=pl.String),
    }
    columns |= {f"p_{name}": _p_yes(table) for name, table in zip(names, labels)}
    workers = [run.tables["workers.csv"].select(pl.lit(name).alias("choice"), "*") for name, run in runs.items()]
    return {"labels.csv": pl.DataFrame(columns), "workers.csv": pl.concat(workers, how="diagonal_relaxed")}, sets


def _p_yes(table: pl.DataFrame) -> pl.Series:
    """Return the probability that a choice is right for each item; 0 where no worker selected it."""
    probability = table[f"p_{YES}"] if f"p_{YES}" in table.columns else pl.Series(np.zeros(len(table)))
    return probability.cast(pl.Float64)


def _selected(labels: Sequence[pl.DataFrame]) -> np.ndarray[Any, Any]:
    """Return (n_items, n_choices) where the label of a choice is yes."""
    return np.array([(table["label"] == YES).fill_null(False).to_numpy() for table in labels]).T


def _chosen(labels: Sequence[pl.DataFrame]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return which choices each item has, and the probability that all of them are right and no other one.

    Choices are taken as independent of each other, which makes the probability rather too low. Of choices that are
    equally probable below one half, the one that is more frequent in all items is taken.

    Shapes: returns chosen (n_items, n_choices); returns probability (n_items,).
    """
    p = np.array([_p_yes(table).to_numpy() for table in labels]).T
    chosen = _selected(labels)
    nothing = np.flatnonzero(~chosen.any(axis=1))
    rank = np.round(p[nothing], DECIMALS) + np.round(p.mean(axis=0), DECIMALS) * 10.0**-DECIMALS
    chosen[nothing, rank.argmax(axis=1)] = True
    right = np.where(chosen, p, 1 - p)
    return chosen, np.exp(np.log(np.maximum(right, _NEVER)).sum(axis=1))


def _figures_of_choices(runs: Mapping[str, AggregationRun], labels: pl.DataFrame, question: str) -> dict[str, Any]:
    """Return the figures of all choices together, and the main ones of each."""
    first = next(iter(runs.values())).summary
    rows = labels.filter(pl.col("label").is_not_null())
    sure = rows["confidence"].to_numpy()
    notes: dict[str, str] = {}
    for choice, run in runs.items():
        new = {code: text for code, text in run.summary["notes"].items() if text not in notes.values()}
        notes |= {f"{code} ({choice})" if code in notes else code: text for code, text in new.items()}
    return {
        "method": first["method"],
        "by_choice": True,
        "question": question,
        "n_items": len(labels),
        "n_workers": max(run.summary["n_workers"] for run in runs.values()),
        "n_classes": len(runs),
        "n_annotations": first["n_annotations"],
        "labels_per_item": first["labels_per_item"],
        "n_unlabelled": len(labels) - len(rows),
        "n_tied": sum(run.summary["n_tied"] for run in runs.values()),
        "n_below_half": int((labels["alerts"] == _BELOW_HALF).sum()),
        "mean_confidence": round(float(sure.mean()), DECIMALS) if len(sure) else None,
        "share_above_0.9": round(float((sure >= SURE).mean()), DECIMALS) if len(sure) else None,
        "choices": [
            {
                "choice": choice,
                "n_items_yes": run.summary["labels"].get(YES, 0),
                "share_above_0.9": run.summary["share_above_0.9"],
            }
            for choice, run in runs.items()
        ],
        "notes": notes,
    }


def _files_of_choices(
    tables: Mapping[str, pl.DataFrame],
    sets: Sequence[Sequence[str]],
    figures: Mapping[str, Any],
    reading: Reading,
    files: Sequence[str],
    kinds: Sequence[str],
    spreadsheet_safe: bool,
) -> dict[str, bytes]:
    """Return the files beside the folders of the choices."""
    shown = {name: guard_table(table) for name, table in tables.items()} if spreadsheet_safe else tables
    contents = {name: to_csv(table) for name, table in shown.items()} | {"summary.json": to_json(dict(figures))}
    labels = tables["labels.csv"]
    listed = labels.with_columns(pl.Series("labels", sets, dtype=pl.List(pl.String)))
    contents |= {KINDS[kind]: encode_table(listed, f".{kind}") for kind in ("jsonl", "parquet") if kind in kinds}
    if XLSX in kinds:  # text stays text in its cells, so nothing is guarded
        contents |= {KINDS[XLSX]: workbook({name.removesuffix(".csv"): table for name, table in tables.items()})}
    label_of = {
        item: (tuple(choices), sure)
        for item, choices, sure in zip(labels["item"].to_list(), sets, labels["confidence"].to_list())
        if choices
    }
    return contents | write_back(label_of, reading, files, kinds, str(figures["method"]))
