"""Options that several jobs share, checked before any file is opened; known answers; where files go."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from manyhands import registry
from manyhands._core.writing import MANIFEST, Output, claim
from manyhands.annotations import check_duplicates
from manyhands.classes import looks_ordered, order_annotations, order_codes
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.features import Features, read_features
from manyhands.io.formats import check_format
from manyhands.io.item_fields import ItemFields, read_item_fields
from manyhands.io.judgements import check_verdicts
from manyhands.io.messages import counted, shorten
from manyhands.io.reading import Reading, read_export
from manyhands.io.row_filtering import check_rare_classes
from manyhands.io.side_tables import read_gold, read_kinds, read_label_map
from manyhands.io.write.pseudonyms import find_secret, pseudonymise, read_key
from manyhands.io.write.result_files import TARGETS
from manyhands.io.write.results import worker_frame
from manyhands.scorecards import ACCUSATIONS
from manyhands.trust.machines import HUMANS, MACHINE, WorkerKind, down_weight_families, find_machines, groups_of
from manyhands.validation import Device, RandomState

# ----------------------------------------------------------------------------------------------------
# The device of networks: checked before any file is read, and passed to the methods that train a network.


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use on this machine."""
    constraint = Device()
    if not constraint.allows(device):
        raise ParameterError(f"The device must be {constraint}; got {device!r}.")
    registry.load_module("manyhands.nn.backbones").choose_device(device)


def with_device(methods: Mapping[str, Mapping[str, Any]], device: str | None) -> dict[str, dict[str, Any]]:
    """Return the parameters of methods with the device on which they train."""
    if device is None:
        return {name: dict(own) for name, own in methods.items()}
    from manyhands.classifiers.network import device_parameter  # for `train`; other commands do without its modules

    takes = {name: device_parameter(registry.create(name).set_params(**own)) for name, own in methods.items()}
    without = [name for name, parameter in takes.items() if parameter is None]
    refuse_without_network(list(methods), without)
    for name, parameter in takes.items():
        given = methods[name].get(parameter or "", device)
        if given != device:
            raise ParameterError(
                f"The device of {name} is {given!r} among its parameters and {device!r} by `device=`; give one."
            )
    check_device(device)
    if without:
        others = [name for name in methods if name not in without]
        sentence = f"the device is set for {', '.join(others)}; no network is trained by {', '.join(without)}."
        warnings.warn(sentence, CrowdWarning, stacklevel=3)
    return {
        name: dict(own) | ({} if takes[name] is None else {str(takes[name]): device}) for name, own in methods.items()
    }


def refuse_without_network(methods: Sequence[str], without: Sequence[str]) -> None:
    """Refuse a device where no method can use it."""
    if len(without) == len(methods):
        named = ", ".join(without[:5]) + (", ..." if len(without) > 5 else "")
        raise ParameterError(f"{named}: no network is trained, so leave out the device; the CPU is used.")


# ----------------------------------------------------------------------------------------------------
# Gold: items whose class is known, from a table and from the export itself.


def collect_gold(
    reading: Reading, file: str | Path | None, use_own: bool, with_features: Collection[str] = ()
) -> dict[Any, Any]:
    """Return the known class of each gold item; a table takes precedence over the export."""
    if use_own and not reading.gold:
        raise AnnotationError(f"{reading.source} contains no known answers, so `use_gold` has nothing to use.")
    classes = set(reading.annotations.classes.tolist())
    own = {item: label for item, label in reading.gold.items() if label in classes} if use_own else {}
    if use_own and len(own) < len(reading.gold):
        left_out = counted(len(reading.gold) - len(own), "known answer")
        _warn(f"gold_left_out: {left_out} of the export name classes that no worker used, and were left out.")
    renamed = reading.renamed.get("label")
    given = read_gold(file, reading.annotations, renamed, with_features) if file is not None else {}
    contradicted = [item for item in given if reading.gold.get(item, given[item]) != given[item]]
    if contradicted:
        items = counted(len(contradicted), "item")
        _warn(f"gold_differs: {items} of {file} have another known answer in the export, such as {contradicted[0]!r}.")
    return own | given


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CrowdWarning, stacklevel=4)


# ----------------------------------------------------------------------------------------------------
# How exports and features are read.


@dataclass(frozen=True)
class ExportOptions:
    """How to read an export: which columns, which question, which rows.

    Attributes
    ----------
    item : str or None, default=None
        Column or field with the items; None takes the usual name of the format.
    worker : str or None, default=None
        Column or field with the workers.
    label : str or None, default=None
        Column or field with the labels.
    question : str or None, default=None
        Question whose answers are read, if the export has several; ``name=choice`` reads one choice of a multiple
        choice question as yes or no.
    format : str or None, default=None
        Name of the format; None recognises it.
    duplicates : {"last", "first", "all", "share", "error"}, default="last"
        Which answer counts if a worker labelled an item more than once; "error" refuses the export.
    missing : sequence of str, default=()
        Labels that mean "no label", in addition to empty cells.
    abstain : sequence of str, default=()
        Labels that mean that the worker looked and gave no label.
    combinations : bool, default=False
        Treat every combination of choices of a multiple choice question as a class.
    encoding : str or None, default=None
        Encoding of text that is not UTF-8.
    merge_spellings : bool, default=False
        Merge classes and worker ids that differ in case, spaces or Unicode form only.
    label_map : Path or None, default=None
        Table with columns "from" and "to": labels to rename; an empty "to" means that there is no label.
    rare_classes : {"drop", "keep", "error", "merge:LABEL"}, default="drop"
        What is done with labels of stray classes (`manyhands.io.read_export`).
    weight : str or None, default=None
        Column of a long table with the weight of each label.
    label_probs : str or None, default=None
        Columns of a long table with the probability of each class, separated by commas.
    exclude_workers : sequence of str, default=()
        Workers whose labels are left out: ids, patterns such as ``"gpt-*"``, files with an id in each line, or
        ``"flagged"`` for the workers whom the alerts of a first fit accuse.
    only_workers : sequence of str, default=()
        Workers whose labels alone count.
    exclude_items : sequence of str, default=()
        Items that are left out.
    only_items : sequence of str, default=()
        Items that alone are read.
    verdicts : {"position", "answer"} or None, default=None
        What the label of a pairwise verdict names, in a table with a column of the presentation order.
    time : str or None, default=None
        Column of a long table with the time of each label.
    seconds : str or None, default=None
        Column of a long table with the seconds that each label took.
    items : str, Path or None, default=None
        File with the fields of the items (texts, addresses) by their ids, for training sets, pages and questions.
    ordinal : bool, default=False
        The classes are grades: their order, from numbers or known words, is used.
    order : str, sequence of str or None, default=None
        The classes from low to high, as a list or as text with commas; implies `ordinal`.
    """

    item: str | None = None
    worker: str | None = None
    label: str | None = None
    question: str | None = None
    format: str | None = None
    duplicates: str = "last"
    missing: Sequence[str] = ()
    abstain: Sequence[str] = ()
    combinations: bool = False
    encoding: str | None = None
    merge_spellings: bool = False
    label_map: str | Path | None = None
    rare_classes: str = "drop"
    weight: str | None = None
    label_probs: str | None = None
    exclude_workers: Sequence[str] = ()
    only_workers: Sequence[str] = ()
    exclude_items: Sequence[str] = ()
    only_items: Sequence[str] = ()
    verdicts: str | None = None
    time: str | None = None
    seconds: str | None = None
    items: str | Path | None = None
    ordinal: bool = False
    order: str | Sequence[str] | None = None

    @property
    def is_ordinal(self) -> bool:
        """Whether the order of the classes is used."""
        return self.ordinal or self.order is not None

    @property
    def grades(self) -> list[str] | None:
        """The classes from low to high, if they were named."""
        names = self.order.split(",") if isinstance(self.order, str) else self.order
        return None if names is None else [name.strip() if isinstance(name, str) else name for name in names]

    def check(self) -> None:
        """Refuse options that no export can satisfy; no file is opened.

        Raises
        ------
        ParameterError
            If the format, the treatment of duplicates or rare classes, or the encoding is unknown, or the order of the
            classes has a gap.
        """
        if self.grades is not None and (not self.grades or "" in self.grades):
            raise ParameterError(
                f"`order` is {self.order!r}; it must name the classes from low to high, such as bad,ok,good."
            )
        check_rare_classes(self.rare_classes)
        check_verdicts(self.verdicts)
        if self.format is not None:
            check_format(self.format)
        check_duplicates(self.duplicates)
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, ValueError):
                raise ParameterError(
                    f"There is no encoding called {self.encoding!r}. Common ones: utf-8, utf-16, cp1252."
                ) from None

    def read(
        self,
        files: str | Path | Sequence[str | Path],
        *,
        item_fields: bool = False,
        times: bool = False,
        group_column: str | None = None,
        method: str | None = None,
    ) -> Reading:
        """Read one export, or several batches of one job as one export.

        Parameters
        ----------
        files : str, Path or sequence of them
            A file, a folder, a zip archive, "-" for standard input, or several files.
        item_fields : bool, default=False
            Whether to collect the fields of the items.
        times : bool, default=False
            Whether to collect the times of the labels.
        group_column : str or None, default=None
            Column that describes workers.
        method : str or None, default=None
            Registry name of the aggregator whose first fit finds the workers that are flagged; None is the default.

        Returns
        -------
        Reading
            Annotations, and an account of every row of the export.
        """
        self.check()
        given = [files] if isinstance(files, str | Path) else list(files)
        if FLAGGED in self.exclude_workers:
            wanted: dict[str, Any] = {"item_fields": item_fields, "times": times, "group_column": group_column}
            return _without_flagged(self, given, method, wanted)
        options = asdict(self) | {"label_map": None if self.label_map is None else read_label_map(self.label_map)}
        del options["ordinal"], options["order"], options["items"]
        options |= {"item_fields": item_fields, "times": times, "group_column": group_column}
        reading = read_export(given[0] if len(given) == 1 else given, **options)
        if self.items is not None:
            reading = _with_items(reading, self.items, wanted=item_fields)
        if not self.is_ordinal or reading.refusal is not None:
            return reading
        return replace(reading, annotations=order_annotations(reading.annotations, self.grades))


def _with_items(reading: Reading, items: str | Path, *, wanted: bool) -> Reading:
    """Return a reading with the fields of another file; where both have a field, that of the other file counts."""
    if not wanted:
        sentence = "`items` has no effect here: fields of items are in training sets, pages and questions."
        warnings.warn(f"items_unused: {sentence}", CrowdWarning, stacklevel=4)
        return replace(reading, notes=reading.notes | {"items_unused": sentence})
    new, fields = read_item_fields(items), reading.item_fields or ItemFields()
    items_there = set().union(*(field.values for field in new.fields.values()))
    ids = [str(item) for item in reading.annotations.item_ids.tolist()]
    without = [item for item in ids if item not in items_there]
    if ids and len(without) == len(ids):
        raise AnnotationError(
            f"{items} has fields of other items: its first id is {shorten(next(iter(items_there), ''))!r}, and that of "
            f"{reading.source} is {shorten(ids[0])!r}."
        )
    fields.fields |= new.fields
    if not without:
        return replace(reading, item_fields=fields)
    sentence = f"{items} has nothing on {counted(len(without), 'item')}, such as {shorten(without[0])!r}."
    warnings.warn(f"items_incomplete: {sentence}", CrowdWarning, stacklevel=4)
    return replace(reading, item_fields=fields, notes=reading.notes | {"items_incomplete": sentence})


@dataclass(frozen=True)
class FeatureOptions:
    """How to read the features of items, and how to match rows and items.

    Attributes
    ----------
    id_column : str or None, default=None
        Column of a table with the item ids; None takes the first that is called item, task, id or the like.
    feature_ids : Path or None, default=None
        File with one id per row, for features without ids.
    rows_in_order : bool, default=False
        Match by position: rows are in the order in which the items first appear, which is also that of their ids.
    """

    id_column: str | None = None
    feature_ids: str | Path | None = None
    rows_in_order: bool = False

    def check(self) -> None:
        """Refuse options that contradict each other; no file is opened.

        Raises
        ------
        ParameterError
            If rows are to be matched both by position and by id.
        """
        if self.rows_in_order and self.feature_ids is not None:
            raise ParameterError(
                "`rows_in_order` matches rows by position, `feature_ids` by id: give only one of them."
            )

    def read(self, path: str | Path, *, columns: Sequence[str] = (), text: Sequence[str] = ()) -> Features:
        """Read the rows of a file of features.

        Parameters
        ----------
        path : str or Path
            .npy, .npz or a table.
        columns : sequence of str, default=()
            Numeric columns of a table; all but the ids if neither `columns` nor `text` is given.
        text : sequence of str, default=()
            Text columns of a table.

        Returns
        -------
        Features
            The rows with their ids.
        """
        self.check()
        return read_features(path, columns=columns, text=text, **self.as_arguments())

    def as_arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of `manyhands.io.features.read_features`."""
        return asdict(self)


FLAGGED = "flagged"  # in place of ids: the workers whom alerts accuse


def _without_flagged(
    export: ExportOptions, files: Sequence[str | Path], method: str | None, options: Mapping[str, Any]
) -> Reading:
    """Read an export twice: with all workers, and without those whom the alerts of a fit accuse."""
    if any(str(name) == "-" for name in files):
        raise ParameterError("`exclude_workers=flagged` reads the export twice: give a file, not -.")
    others = tuple(name for name in export.exclude_workers if name != FLAGGED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the second reading issues them again
        first = replace(export, exclude_workers=others).read(files)
    require_labels(first)
    require_workers(first, "none of them can be flagged")
    usual = registry.DEFAULT_ORDINAL if export.is_ordinal else registry.DEFAULT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # about a fit whose results are not shown
        model = registry.create_seeded(method or usual, 0).fit(first.annotations)
        flagged = flagged_workers(worker_frame(model, "polars", reading=first))
    if flagged:
        reading = replace(export, exclude_workers=(*others, *map(str, flagged))).read(files, **options)
    else:
        reading = replace(export, exclude_workers=others).read(files, **options)
    sentence = f"{counted(len(flagged), 'worker')} {'was' if len(flagged) == 1 else 'were'} flagged by a first fit"
    sentence += " and left out." if flagged else ", so none was left out."
    warnings.warn(f"{FLAGGED}: {sentence}", CrowdWarning, stacklevel=4)
    return replace(reading, notes=reading.notes | {FLAGGED: sentence})


def flagged_workers(workers: pl.DataFrame) -> list[Any]:
    """Return the workers of ``workers.csv`` whom an alert accuses."""
    if "alerts" not in workers.columns:
        return []
    alerts = [set((text or "").split(";")) for text in workers["alerts"].to_list()]
    return [worker for worker, own in zip(workers["worker"].to_list(), alerts) if own & set(ACCUSATIONS)]


DEFAULT_EXPORT = ExportOptions()
DEFAULT_MATCHING = FeatureOptions()


def check_seed(random_state: Any) -> None:
    """Refuse a seed that is not a whole number of at least 0."""
    if not RandomState().allows(random_state):
        raise ParameterError(f"`random_state` is {random_state}; it must be a whole number at least 0.")


def require_labels(reading: Reading) -> None:
    """Refuse an export without any label that counts."""
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    if not reading.ledger.kept:
        raise AnnotationError(f"{reading.source} has no label that counts: {reading.ledger}.")


def require_workers(reading: Reading, consequence: str) -> None:
    """Refuse counts of votes without worker ids."""
    if not reading.workers_known:
        raise AnnotationError(f"{reading.source} counts votes without worker ids, so {consequence}.")


# ----------------------------------------------------------------------------------------------------
# How workers are named in results: by their ids, or by pseudonyms.

IDS, PSEUDONYMS = "ids", "pseudonyms"


def check_worker_names(worker_names: str | Path) -> None:
    """Refuse what is neither one of the two words nor a file; its content is not read."""
    file = key_file(worker_names)
    if file is not None and not file.is_file():
        raise ParameterError(
            f"`worker_names` is {str(worker_names)!r}; it may be {IDS}, {PSEUDONYMS} or a key file, and there is no "
            f"such file."
        )


def key_file(worker_names: str | Path) -> Path | None:
    """Return the key file that is named, if one is."""
    return None if worker_names in (IDS, PSEUDONYMS) else Path(worker_names)


def secret_of(worker_names: str | Path, folder: Path | None) -> tuple[bytes | None, dict[str, bytes]]:
    """Return the key of the pseudonyms, if there is one, and the key file to write if the folder has none yet.

    Without a folder there is no place for a key, and pseudonyms are numbers.
    """
    if worker_names == IDS:
        return None, {}
    file = key_file(worker_names)
    if folder is None:
        return (None if file is None else read_key(file)), {}
    return find_secret(file, folder)


def with_worker_names(
    reading: Reading, worker_names: str | Path, secret: bytes | None = None
) -> tuple[Reading, Callable[[str], str]]:
    """Return an export with the names of workers that were asked for, and a function that renames them in any text."""
    return (reading, str) if worker_names == IDS else pseudonymise(reading, secret)


# ----------------------------------------------------------------------------------------------------
# Ordered classes in files: the order that was asked for, and the offer to use one that was recognised.

NOTE = "ordered_classes"


def offer_order(reading: Reading) -> Reading:
    """Add a note if the classes look like the grades of a scale and nothing was said about their order."""
    classes = reading.annotations.classes.tolist()
    if reading.refusal is not None or reading.annotations.is_ordered or not looks_ordered(classes):
        return reading
    grades = [str(classes[code]) for code in order_codes(classes)]
    sentence = (
        f"The classes look like a scale: {' < '.join(map(shorten, grades))}. Their order was not used. If it has a "
        f"meaning, add `ordinal=True`."
    )
    warnings.warn(f"{NOTE}: {sentence}", CrowdWarning, stacklevel=2)
    return replace(reading, notes=reading.notes | {NOTE: sentence})


# ----------------------------------------------------------------------------------------------------
# What every summary of a job begins with.


def begin_summary(files: Sequence[str], config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return schema, names of the files that were read, and options from a file, if there was one."""
    return {"schema": 1, "files": list(files)} | ({} if config is None else {"config": dict(config)})


# ----------------------------------------------------------------------------------------------------
# Reserve a place for the files of a job before it begins, and write all of them or none.


@dataclass(frozen=True)
class Written:
    """Files that a job wrote."""

    names: tuple[str, ...] = ()  # the files, the manifest last; empty if nothing was written
    stale: tuple[str, ...] = ()  # files of an earlier run in the same folder that this job neither wrote nor removed
    folder: Path | None = None  # where the files are

    def __str__(self) -> str:
        return ", ".join(self.names)


@contextmanager
def claim_folder(out: str | Path | None, names: Sequence[str], *, force: bool) -> Iterator[Output | None]:
    """Reserve a folder for a set of files and their manifest while the block runs."""
    if out is None:
        yield None
        return
    with claim(out, names, force=force) as output:
        yield output


@contextmanager
def claim_file(out: str | Path | None, *, force: bool) -> Iterator[Output | None]:
    """Reserve the place of one file while the block runs."""
    if out is None:
        yield None
        return
    path = Path(out)
    with claim(path.parent, [path.name], force=force, manifest=False) as output:
        yield output


def table_ending(out: str | Path | None) -> str:
    """Return the file name ending of a table, ".csv" if there is no file."""
    if out is None:
        return ".csv"
    ending = Path(out).suffix.lower()
    if ending not in TARGETS:
        raise ParameterError(f"{out} ends in {ending!r}. Tables are written as {', '.join(TARGETS)}.")
    return ending


def write_all(output: Output | None, files: Mapping[str, bytes]) -> Written:
    """Write all files of a job; without a place for them, nothing."""
    if output is None:
        return Written()
    stale = output.write(files)
    names = [*sorted(files), MANIFEST] if output.manifest else sorted(files)
    return Written(tuple(names), tuple(stale), output.folder)


# ----------------------------------------------------------------------------------------------------
# Which workers of an export are machines: by its own column, by options, or by a table.

ALL_MACHINES = "all machines"


@dataclass(frozen=True)
class KindOptions:
    """How the machines among the workers are named.

    Attributes
    ----------
    machines : sequence of str, default=()
        Worker ids, or patterns such as ``"gpt-*"``.
    kinds : str, Path or None, default=None
        Table with the columns worker and kind, and optionally family, model, prompt, run.
    """

    machines: Sequence[str] = ()
    kinds: str | Path | None = None

    def check(self) -> None:
        """Refuse both ways at once; no file is opened.

        Raises
        ------
        ParameterError
            If machines are named twice.
        """
        if self.machines and self.kinds is not None:
            raise ParameterError("`machines` and `kinds` both name the machines: give only one of them.")

    def of_workers(self, reading: Reading) -> dict[Any, WorkerKind]:
        """Return what is known of each worker; the options take precedence over a column of the export.

        Parameters
        ----------
        reading : Reading
            The export.

        Returns
        -------
        dict of worker to WorkerKind
            Workers that are not named are people.

        Raises
        ------
        ParameterError
            If a machine is not a worker of the export.
        AnnotationError
            If the table names no worker of the export.
        """
        workers = reading.annotations.worker_ids.tolist()
        if self.machines:
            names = [name.strip() for text in self.machines for name in text.split(",") if name.strip()]
            return dict.fromkeys(find_machines(workers, names), WorkerKind(MACHINE))
        kind_of = reading.kinds if self.kinds is None else read_kinds(self.kinds)
        kinds = {worker: kind_of[str(worker)] for worker in workers if str(worker) in kind_of}
        if self.kinds is not None and not kinds:
            raise AnnotationError(f"{self.kinds} names no worker of {reading.source}: its column worker has their ids.")
        return kinds


def machines_of(kinds: dict[Any, WorkerKind]) -> list[Any]:
    """Return the workers that are machines."""
    return [worker for worker, kind in kinds.items() if kind.kind == MACHINE]


def all_groups(reading: Reading, kinds: dict[Any, WorkerKind]) -> dict[str, list[Any]]:
    """Return people and each family of machines as groups."""
    workers = reading.annotations.worker_ids.tolist()
    return groups_of(workers, kinds) if machines_of(kinds) else {}


def weigh_families(reading: Reading, options: KindOptions) -> Reading:
    """Down-weight each family of machines to the votes that it is worth; copies count once."""
    groups = all_groups(reading, options.of_workers(reading))
    if not groups:
        raise ParameterError(
            "`families` is about machines, but no worker is known to be one: name them with `machines=` or `kinds=`."
        )
    before, after = reading.annotations, down_weight_families(reading.annotations, groups)
    parts = []
    for name in [name for name in groups if name != HUMANS]:
        given, counted = (
            votes.keep(np.isin(votes.worker_ids, groups[name])[votes.worker]) for votes in (before, after)
        )
        total = counted.n_annotations if counted.weight is None else float(counted.weight.sum())
        n_items = max(int(np.count_nonzero(given.n_labels)), 1)
        parts.append(f"{given.n_voters.sum() / n_items:.3g} votes per item of {name} count as {total / n_items:.2g}")
    note = f"{'; '.join(parts)}. Copies of a machine count once."
    warnings.warn(f"down_weighted: {note}", CrowdWarning, stacklevel=2)
    times = reading.times if after.n_annotations == before.n_annotations else None  # one for each label
    return replace(reading, annotations=after, times=times, notes=reading.notes | {"down_weighted": note})
