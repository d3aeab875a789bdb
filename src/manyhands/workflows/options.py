"""Options of reading that several jobs share, checked before any file is opened."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from manyhands.class_order import order_annotations
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.features.feature_loading import Features, read_features
from manyhands.io.formats import NAMES
from manyhands.io.read.label_map import read_label_map
from manyhands.io.read.reading import Reading, read_export
from manyhands.io.read.row_filtering import DUPLICATES
from manyhands.io.read.stray_classes import check_policy
from manyhands.spelling import suggest
from manyhands.validation import RandomState


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
    combinations: bool = False
    encoding: str | None = None
    merge_spellings: bool = False
    label_map: str | Path | None = None
    rare_classes: str = "drop"
    weight: str | None = None
    label_probs: str | None = None
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
                f"--order is {self.order!r}; it must name the classes from low to high, such as bad,ok,good."
            )
        check_policy(self.rare_classes)
        if self.format is not None and self.format not in NAMES:
            raise ParameterError(f"There is no format called {self.format!r}.{suggest(self.format, sorted(NAMES))}")
        if self.duplicates not in DUPLICATES:
            raise ParameterError(f"duplicates is {self.duplicates!r}; it may be {', '.join(DUPLICATES)}.")
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

        Returns
        -------
        Reading
            Annotations, and an account of every row of the export.
        """
        self.check()
        given = [files] if isinstance(files, str | Path) else list(files)
        options = asdict(self) | {"label_map": None if self.label_map is None else read_label_map(self.label_map)}
        del options["ordinal"], options["order"]
        options |= {"item_fields": item_fields, "times": times, "group_column": group_column}
        reading = read_export(given[0] if len(given) == 1 else given, **options)
        if not self.is_ordinal or reading.refusal is not None:
            return reading
        return replace(reading, annotations=order_annotations(reading.annotations, self.grades))


@dataclass(frozen=True)
class FeatureOptions:
    """How to read the features of items, and how to match rows and items.

    Attributes
    ----------
    id_column : str or None, default=None
        Column of a table with the item ids; None takes the first that is called item, task, id or the like.
    ids_file : Path or None, default=None
        File with one id per row, for features without ids.
    rows_in_order : bool, default=False
        Match by position: rows are in the order in which the items first appear, which is also that of their ids.
    """

    id_column: str | None = None
    ids_file: str | Path | None = None
    rows_in_order: bool = False

    def check(self) -> None:
        """Refuse options that contradict each other; no file is opened.

        Raises
        ------
        ParameterError
            If rows are to be matched both by position and by id.
        """
        if self.rows_in_order and self.ids_file is not None:
            raise ParameterError(
                "--rows-in-order matches rows by position, --feature-ids by id: give only one of them."
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
        """Return the options as keyword arguments of `manyhands.io.features.feature_loading.read_features`."""
        return asdict(self)


DEFAULT_EXPORT = ExportOptions()
DEFAULT_MATCHING = FeatureOptions()


def check_seed(random_state: Any) -> None:
    """Refuse a seed that is not a whole number of at least 0.

    Parameters
    ----------
    random_state : object
        The seed of a job.

    Raises
    ------
    ParameterError
        If NumPy cannot seed a generator with it.
    """
    if not RandomState().allows(random_state):
        raise ParameterError(f"--seed is {random_state}; it must be a whole number at least 0.")


def require_labels(reading: Reading) -> None:
    """Refuse an export without any label that counts.

    Parameters
    ----------
    reading : Reading
        What was read.

    Raises
    ------
    AnnotationError
        If the export cannot be used, or all its rows were left out.
    """
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    if not reading.ledger.kept:
        raise AnnotationError(f"{reading.source} has no label that counts: {reading.ledger}.")


def require_workers(reading: Reading, consequence: str) -> None:
    """Refuse counts of votes without worker ids.

    Parameters
    ----------
    reading : Reading
        What was read.
    consequence : str
        What cannot be done without worker ids, as the end of a sentence.

    Raises
    ------
    AnnotationError
        If the export has no worker ids.
    """
    if not reading.workers_known:
        raise AnnotationError(f"{reading.source} counts votes without worker ids, so {consequence}.")
