"""`load`: real crowds from the folder that the environment variable MANYHANDS_DATA names.

The file: the catalogue; `CrowdDataset`, which all functions of this package return; how files and columns are read; the
families of data sets; `load`, last, as its table names the readers of the families.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import AnyArray
from manyhands._core.encoding import encode
from manyhands._core.spelling import nearest
from manyhands.annotations import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError

# ----------------------------------------------------------------------------------------------------
# Catalogue of the data folder: one entry for each data set.


@dataclass(frozen=True)
class Spec:
    """Content of the folder of a data set."""

    description: str  # one or two sentences
    family: str = "crowd"  # which reader to use
    # name of a choice of features -> (file, prefix of its arrays); the first is the default
    features: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    rows: str | None = None  # array that has the item of each row of the features; None if row i is item i
    duplicates: str = "last"  # which labels to keep if a worker labelled an item several times
    class_names: tuple[str, ...] | None = None  # names of the classes
    extra: tuple[str, ...] = ()  # further content of the data set


_PLAIN = {"default": ("features.npz", "X")}
_SCENES = ("highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry")
_WEATHER = ("can't tell", "negative", "neutral", "positive", "not about the weather")
_GASES = ("Ethanol", "Ethylene", "Ammonia", "Acetaldehyde", "Acetone", "Toluene")
SPECS: dict[str, Spec] = {
    "labelme": Spec(
        "Scenes labelled on Mechanical Turk, with features of VGG16 or EfficientNet-lite0.",
        features={
            "vgg16": ("features.npz", "X"),
            "vgg16-max": ("features.npz", "Xmax"),
            "efficientnet": ("features_effnetlite0.npz", "X"),
        },
        class_names=_SCENES,
    ),
    "music": Spec(
        "Genres of songs with 124 audio features; the busy workers are the bad ones.", "crowd", _PLAIN, "ids_train"
    ),
    "leaves": Spec("Species of leaves with 64 features; the hardest set.", "crowd", _PLAIN, "task"),
    "weather_text": Spec(
        "Sentiment of weather tweets; truth only where a second crowd agreed. extra: texts, one for each item.",
        features={"embedding": ("features.npz", "X"), "lsa": ("features.npz", "LSA")},
        rows="task",
        class_names=_WEATHER,
        extra=("texts",),
    ),
    "cifar10s": Spec(
        "Deliberately ambiguous images of CIFAR-10. extra, one for each annotation: what per cent the worker gave "
        "the label (percent), the second choice (label2, -1 for none) and its per cent (percent2); NaN for no number.",
        features=_PLAIN,
        rows="task",
        extra=("soft",),
    ),
    "reports_mozilla": Spec("Bug reports; the truth is a consensus of the same five workers.", "crowd", _PLAIN),
    "snow2008/rte": Spec("Textual entailment, Snow et al. 2008, with 517 text features.", "crowd", _PLAIN, "task"),
    "snow2008/temp": Spec("Order of events, Snow et al. 2008."),
    "snow2008/wsd": Spec("Word senses, Snow et al. 2008."),
    "agg/anesthesia": Spec(
        "Fitness of patients, Dawid and Skene 1979; no truth. Worker 1 rated every patient three times.",
        duplicates="all",
    ),
    "agg/caries": Spec("Tooth surfaces read by five dentists, from counts of answer patterns; no truth.", "patterns"),
    "agg/bluebirds": Spec("Two species of birds, Welinder et al. 2010: every worker labelled every item."),
    "agg/dogs": Spec("Breeds of dogs, Zhou et al. 2012."),
    "agg/web": Spec("Relevance of web pages in five grades, Zhou et al. 2012."),
    "agg/s_rel": Spec("Relevance of web pages in four grades, TREC 2010; truth of about a fifth."),
    "agg/s_face": Spec("Sentiment of faces."),
    "agg/fact_eval": Spec("Judgements of facts; truth of 576 items only."),
    "agg/zencrowd_in": Spec("Links between entities, ZenCrowd, workers from India."),
    "agg/zencrowd_all": Spec("Links between entities, ZenCrowd, all workers."),
    "usps": Spec("Handwritten digits of 16 x 16 pixels, 0 to 255; no annotations.", "items"),
    "gas_drift": Spec(
        "Six gases by 128 features of drifting sensors; no annotations. extra: batch and concentration of each item.",
        "items",
        class_names=_GASES,
        extra=("batch", "concentration"),
    ),
    "neucrowd_hotel": Spec(
        "Hotel reviews as 300 numbers with counts of seven votes; the workers are unknown, so there are no "
        "annotations, and the truth is the majority of the votes. extra: votes_valid, votes_test.",
        "hotel",
    ),
    "neucrowd_syn_valid_only": Spec(
        "The released part of NeuCrowd's simulated set: counts of seven votes, no annotations.", "syn"
    ),
}
_ALIASES = {name.rpartition("/")[2]: name for name in SPECS if "/" in name}


def names() -> list[str]:
    """Return the names that `load` accepts; the part before a slash may be left out.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> "labelme" in names(), "agg/bluebirds" in names()
    (True, True)
    """
    return sorted(SPECS)


def find(name: str) -> str:
    """Return the full name of a data set."""
    if isinstance(name, str) and _ALIASES.get(name, name) in SPECS:
        return _ALIASES.get(name, name)
    hint = nearest(name, [*SPECS, *_ALIASES], otherwise="")
    raise ParameterError(
        f"There is no data set called {name!r} for MANYHANDS_DATA{hint}. datasets.names() lists them all."
    )


# ----------------------------------------------------------------------------------------------------
# `CrowdDataset`: what every loader returns.

NO_TRUTH = -1  # unknown class in `y_true`, as in sklearn.semi_supervised; None if classes are not numbers


def _empty_mapping() -> Mapping[str, Any]:
    """Return an empty read-only mapping."""
    return MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class CrowdDataset:
    """A crowd-labelled data set; what it does not have is None.

    Attributes
    ----------
    name : str
        Name of the data set.
    classes : ndarray of shape (n_classes,)
        Values of labels and truth, as in ``annotations.classes``.
    description : str, default=""
        One or two sentences.
    annotations : Annotations or None, default=None
        The labels; None if there are no labels of single workers: data to simulate crowds on, and vote counts.
    y_true : ndarray of shape (n_items,) or None, default=None
        The class of each item; -1 if it is unknown (None if classes are text). ``y_true[data.has_truth]`` is always
        valid.
    X : ndarray of shape (n_items, n_features) or None, default=None
        Features; row i is item i of `annotations`.
    X_valid : ndarray or None, default=None
        Features of validation items, which have no annotations.
    y_valid : ndarray or None, default=None
        Their classes.
    X_test : ndarray or None, default=None
        Features of test items, which have no annotations.
    y_test : ndarray or None, default=None
        Their classes.
    votes : ndarray of shape (n_items, n_classes) or None, default=None
        Number of votes for each class, if only that is known.
    class_names : tuple of str or None, default=None
        Names of the classes, if the values are numbers.
    extra : mapping of str to object
        What only this data set has; see `description`.

    Examples
    --------
    >>> votes = Annotations.from_triples(["a", "b", "b"], ["ann", "ann", "bob"], [0, 1, 1])
    >>> data = CrowdDataset("pets", votes.classes, annotations=votes, y_true=np.array([0, -1]))
    >>> data
    CrowdDataset('pets': 3 labels on 2 items by 2 workers, 2 classes; truth of 1)
    >>> data.truth
    {'a': 0}
    """

    name: str
    classes: AnyArray
    description: str = ""
    annotations: Annotations | None = None
    y_true: AnyArray | None = None
    X: AnyArray | None = None
    X_valid: AnyArray | None = None
    y_valid: AnyArray | None = None
    X_test: AnyArray | None = None
    y_test: AnyArray | None = None
    votes: AnyArray | None = None
    class_names: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty_mapping)

    @property
    def n_items(self) -> int:
        """Number of items."""
        for rows in (self.annotations, self.X, self.y_true, self.votes):
            if rows is not None:
                return len(rows)
        return 0

    @property
    def item_ids(self) -> AnyArray:
        """Ids of the items, of shape (n_items,): those of the annotations, or their numbers."""
        return np.arange(self.n_items) if self.annotations is None else self.annotations.item_ids

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """Whether `y_true` is known, of shape (n_items,)."""
        if self.y_true is None:
            return np.zeros(self.n_items, bool)
        if self.y_true.dtype == object:
            return np.array([value is not None for value in self.y_true], bool)
        return np.asarray(self.y_true != NO_TRUTH)

    @property
    def truth(self) -> dict[Hashable, Any]:
        """The known classes as a dict, item -> class, as ``fit(gold=...)`` takes it."""
        has_truth = self.has_truth
        classes = [] if self.y_true is None else self.y_true[has_truth].tolist()
        return dict(zip(self.item_ids[has_truth].tolist(), classes))

    def __repr__(self) -> str:
        """Return a summary without the arrays."""
        return f"CrowdDataset({self.name!r}: {'; '.join(self._parts())})"

    def _parts(self) -> list[str]:
        """Return the parts of the summary."""
        if self.annotations is None:
            kind = "no annotations" if self.votes is None else "vote counts without workers"
            parts = [f"{self.n_items} items, {len(self.classes)} classes", kind]
        else:
            parts = [repr(self.annotations).removeprefix("Annotations(").removesuffix(")")]
        n_known = int(self.has_truth.sum())
        if n_known < self.n_items:
            parts.append(f"truth of {n_known or 'none'}")
        shapes = {"X": self.X, "X_valid": self.X_valid, "X_test": self.X_test}
        parts += [f"{name} {' x '.join(map(str, x.shape))}" for name, x in shapes.items() if x is not None]
        return parts + ([f"extra: {', '.join(self.extra)}"] if self.extra else [])


# ----------------------------------------------------------------------------------------------------
# Files of data sets, read by the readers of `manyhands.io`.
#
# `manyhands.io` loads polars, so it is imported when a file is read and not with `manyhands.datasets`. Limits and error
# messages are those of `manyhands.io`.

Column = npt.NDArray[Any]  # int64, or Python text as objects
Arrays = dict[str, npt.NDArray[Any]]
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # int() would also accept the 42_0 of snow2008/temp


def read_table(folder: Path, name: str, file: str, wanted: Sequence[str]) -> list[Column]:
    """Read columns of a CSV file of a data set."""
    from manyhands.io.side_tables import read_columns
    from manyhands.io.sources import Source

    return read_columns(Source(f"{name}/{file}", folder / file), wanted)


def read_packed_tables(path: Path, wanted: dict[str, list[Sequence[str]]]) -> dict[str, list[Column]]:
    """Read columns of CSV files in a zip archive."""
    from manyhands.io.side_tables import read_columns
    from manyhands.io.sources import Source, read_members

    with Source(str(path), path).opened() as file:
        members = read_members(file, str(path), sorted(wanted))
    return {name: read_columns(Source(f"{path}/{name}", content=members[name]), wanted[name]) for name in wanted}


def read_bz2(path: Path) -> bytes:
    """Read the content of a bz2 file."""
    from manyhands.io.sources import Source, bunzip2

    return bunzip2(Source(str(path), path).read(), str(path))


def read_arrays(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """Read some arrays of an .npz file, without pickles."""
    from manyhands.io import documents

    return documents.read_arrays(path, needed, optional)


def as_column(values: Sequence[str] | Column) -> Column:
    """Return text as integers where every entry is one; anything else stays text.

    Shapes: values (n,); returns (n,).
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return values.astype(np.int64)
    text = [str(value) for value in values]
    if all(map(_INTEGER.fullmatch, text)):
        return np.array([int(value) for value in text], np.int64)
    column = np.empty(len(text), object)
    column[:] = text
    return column


# ----------------------------------------------------------------------------------------------------
# From columns of items, workers, labels and ground truth to Annotations and an aligned `y_true`.

LOCAL_DUPLICATES = ("last", "all")  # which labels count if a worker labelled an item several times


def build(
    columns: list[Column], truth: list[Column] | None, item_ids: Column | None, duplicates: str, where: str
) -> tuple[Annotations, Column | None, npt.NDArray[np.intp]]:
    """Build annotations and aligned ground truth.

    Items are `item_ids`, or those that occur in labels or truth, sorted; classes are those that occur in either.

    Parameters
    ----------
    columns : list of three ndarrays of shape (n_rows,)
        Items, workers and labels.
    truth : list of two ndarrays or None
        Items and their classes.
    item_ids : ndarray of shape (n_items,) or None
        All items in the order of the features; None for those that occur.
    duplicates : {"last", "all"}
        Which labels to keep if a worker labelled an item several times.
    where : str
        Name of the data set, for error messages.

    Returns
    -------
    annotations : Annotations
        The labels.
    y_true : ndarray of shape (n_items,) or None
        The class of each item, with the mark for unknown ones; None without truth.
    rows : ndarray of int, shape (n_annotations,)
        Row of the table of each annotation.

    Raises
    ------
    AlignmentError
        If labels or truth have items that the features lack.
    AnnotationError
        If labels are numbers and truth is text, or the reverse.
    """
    items, workers, labels = columns
    in_truth = [np.zeros(0, items.dtype), np.zeros(0, labels.dtype)] if truth is None else truth
    if item_ids is None:
        item_ids = encode(_joined(items, in_truth[0], where), None, "item")[1]
    classes = encode(_joined(labels, in_truth[1], where), None, "label")[1]
    try:
        item = encode(items, item_ids, "item")[0]
        row = encode(in_truth[0], item_ids, "item")[0]
    except AnnotationError as error:
        raise AlignmentError(f"{where} has items that its features lack: {error}") from None
    worker, worker_ids = encode(workers, None, "worker")
    label = encode(labels, classes, "label")[0]
    rows = _chosen_rows(item, worker, label, len(worker_ids), duplicates)
    annotations = Annotations(
        item[rows], worker[rows], label[rows], item_ids=item_ids, worker_ids=worker_ids, classes=classes
    )
    return annotations, None if truth is None else _aligned(row, in_truth[1], len(item_ids)), rows


def _joined(values: Column, others: Column, where: str) -> Column:
    """Concatenate values of labels and truth, which must have one type."""
    if len(others) and values.dtype != others.dtype:
        raise AnnotationError(f"Labels and truth of {where} do not match: one is numbers, the other is text.")
    return np.concatenate([values, others.astype(values.dtype)])


def _chosen_rows(
    item: npt.NDArray[np.int32],
    worker: npt.NDArray[np.int32],
    label: npt.NDArray[np.int32],
    n_workers: int,
    duplicates: str,
) -> npt.NDArray[np.intp]:
    """Return the rows to keep, in the order in which Annotations stores them."""
    if duplicates == "all":
        return np.lexsort((label, worker, item))
    pair = item.astype(np.int64) * n_workers + worker
    _, from_the_end = np.unique(pair[::-1], return_index=True)  # the first from the end is the last
    return len(pair) - 1 - from_the_end


def _aligned(item: npt.NDArray[np.int32], classes: Column, n_items: int) -> Column:
    """Return the class of each item, with the mark for unknown ones; if an item occurs twice, the last row counts."""
    if classes.dtype == object:
        y_true: Column = np.full(n_items, None, object)
    else:
        y_true = np.full(n_items, NO_TRUTH, np.int64)
    y_true[item] = classes
    return y_true


# ----------------------------------------------------------------------------------------------------
# Data sets with a table of annotations, with or without ground truth and features.

_TRIPLE = ("task", "worker", "label")


def read_crowd(folder: Path, name: str, spec: Spec, chosen: tuple[str, str] | None, duplicates: str) -> CrowdDataset:
    """Read ``annotations.csv``, and ``truth.csv`` and the chosen features if there are any."""
    columns = read_table(folder, name, "annotations.csv", _TRIPLE)
    has_truth = (folder / "truth.csv").is_file()
    truth = read_table(folder, name, "truth.csv", ("task", "label")) if has_truth else None
    features = {} if chosen is None else _read_features(folder, name, spec, chosen)
    item_ids = features.pop("item_ids", None)
    annotations, y_true, rows = build(columns, truth, item_ids, duplicates, name)
    for part in ("y_valid", "y_test"):
        if part in features:
            features[part] = annotations.classes[features[part]]  # the files hold codes
    return CrowdDataset(
        name,
        annotations.classes,
        spec.description,
        annotations,
        y_true,
        class_names=spec.class_names,
        extra=MappingProxyType(_read_extra(folder, name, spec, annotations, rows)),
        **features,
    )


def _read_features(folder: Path, name: str, spec: Spec, chosen: tuple[str, str]) -> Arrays:
    """Return features and their truth under the names of `CrowdDataset`, and the ids of the rows of `X`."""
    file, prefix = chosen
    id_arrays = (spec.rows,) if spec.rows else ()
    ids_and_truth = read_arrays(folder / "features.npz", id_arrays, ("y_valid", "y_test"))
    arrays = read_arrays(folder / file, (f"{prefix}_train",), (f"{prefix}_valid", f"{prefix}_test"))
    parts: Arrays = {part: ids_and_truth[part] for part in ("y_valid", "y_test") if part in ids_and_truth}
    for part, target in (("train", "X"), ("valid", "X_valid"), ("test", "X_test")):
        if f"{prefix}_{part}" in arrays:
            parts[target] = _as_floats(arrays[f"{prefix}_{part}"])
    parts["item_ids"] = _row_ids(ids_and_truth, spec, len(parts["X"]), name)
    return parts


def _row_ids(arrays: Arrays, spec: Spec, n_rows: int, name: str) -> Column:
    """Return the item of each row of the features."""
    if spec.rows is None:
        return np.arange(n_rows)
    ids = as_column(arrays[spec.rows])
    if len(ids) != n_rows:
        raise AlignmentError(f"The features of {name} have {n_rows} rows, but {len(ids)} items are named.")
    return ids


def _as_floats(X: AnyArray) -> AnyArray:
    """Return half precision, which is slow and coarse to compute with, as single precision."""
    return X.astype(np.float32) if X.dtype == np.float16 else X


def _read_extra(folder: Path, name: str, spec: Spec, annotations: Annotations, rows: Any) -> dict[str, Any]:
    """Read what only some data sets have: texts, and second choices with percentages."""
    extra: dict[str, Any] = {}
    if "texts" in spec.extra:
        items, texts = read_table(folder, name, "texts.csv", ("task", "text"))
        of_item = np.full(len(annotations), None, object)
        of_item[encode(items, annotations.item_ids, "item")[0]] = texts
        extra["texts"] = of_item
    if "soft" in spec.extra:
        wanted = ("prob", "label2", "prob2")
        first, second, rest = read_table(folder, name, "annotations_soft.csv", wanted)
        extra["percent"], extra["percent2"] = _numbers(first)[rows], _numbers(rest)[rows]
        extra["label2"] = as_column(second)[rows]
    return extra


def _numbers(column: Column) -> AnyArray:
    """Return numbers typed by people; NaN if they cannot be parsed."""
    return np.array([_number(value) for value in column.tolist()], float)


def _number(value: Any) -> float:
    """Return one number, or NaN."""
    try:
        return float(value)
    except ValueError:
        return float("nan")


# ----------------------------------------------------------------------------------------------------
# Data sets without a table of annotations: answer patterns, vote counts, and items to simulate a crowd on.

_SYN_VOTES = 7  # number of votes per item of neucrowd_syn, which is not in its file


def read_patterns(folder: Path, name: str, spec: Spec, chosen: Any, duplicates: str) -> CrowdDataset:
    """Read patterns of answers of five raters, each with its number of items."""
    readers = [f"rater_{i}" for i in range(1, 6)]
    columns = read_table(folder, name, "caries_patterns.csv", [*readers, "n"])
    table = np.repeat(np.stack(columns[:-1], axis=1), columns[-1], axis=0)  # (n_items, 5)
    annotations = Annotations.from_matrix(table, worker_ids=np.arange(1, 6))
    return CrowdDataset(name, annotations.classes, spec.description, annotations)


def read_items(folder: Path, name: str, spec: Spec, chosen: Any, duplicates: str) -> CrowdDataset:
    """Read features and ground truth to simulate a crowd on."""
    arrays = read_arrays(folder / "features.npz", ("X", "y", *spec.extra))
    if len(arrays["X"]) != len(arrays["y"]):
        raise AlignmentError(f"{name} has features of {len(arrays['X'])} items but the truth of {len(arrays['y'])}.")
    y = arrays["y"].astype(np.int64)
    extra = {key: arrays[key] for key in spec.extra}
    return CrowdDataset(
        name,
        np.unique(y),
        spec.description,
        y_true=y,
        X=arrays["X"],
        class_names=spec.class_names,
        extra=MappingProxyType(extra),
    )


def read_hotel(folder: Path, name: str, spec: Spec, chosen: Any, duplicates: str) -> CrowdDataset:
    """Read counts of positive votes in three splits; the first is the training set."""
    where = f"{name}/votes.csv"
    split, row, positive, total = read_table(folder, name, "votes.csv", ("split", "row", "positive_votes", "n_votes"))
    parts = ("train", "valid", "test")
    arrays = read_arrays(folder / "features.npz", [f"{kind}_{part}" for kind in "Xy" for part in parts])
    votes = {}
    for part in parts:
        rows = np.flatnonzero(split == part)
        rows = rows[np.argsort(row[rows], kind="stable")]
        votes[part] = _two_counts(positive[rows], total[rows], len(arrays[f"X_{part}"]), where)
    return CrowdDataset(
        name,
        np.array([0, 1]),
        spec.description,
        y_true=arrays["y_train"].astype(np.int64),
        X=arrays["X_train"],
        X_valid=arrays["X_valid"],
        y_valid=arrays["y_valid"].astype(np.int64),
        X_test=arrays["X_test"],
        y_test=arrays["y_test"].astype(np.int64),
        votes=votes["train"],
        extra=MappingProxyType({"votes_valid": votes["valid"], "votes_test": votes["test"]}),
    )


def read_syn(folder: Path, name: str, spec: Spec, chosen: Any, duplicates: str) -> CrowdDataset:
    """Read one split of features, counts of positive votes and truth."""
    where = f"{name}/votes.csv"
    positive, truth = read_table(folder, name, "votes.csv", ("votes", "ground_truth"))
    X = read_arrays(folder / "features.npz", ("X_valid",))["X_valid"]
    votes = _two_counts(positive, np.full(len(positive), _SYN_VOTES), len(X), where)
    return CrowdDataset(name, np.array([0, 1]), spec.description, y_true=truth, X=X, votes=votes)


def _two_counts(positive: AnyArray, total: AnyArray, n_items: int, where: str) -> npt.NDArray[np.int64]:
    """Return the (n_items, 2) votes for class 0 and class 1."""
    if len(positive) != n_items:
        raise AlignmentError(f"{where} counts the votes on {len(positive)} items, but there are {n_items}.")
    counts = np.stack([total - positive, positive], axis=1)
    if counts.size and counts.min() < 0:
        raise AnnotationError(f"{where} has more positive votes than votes.")
    return counts


# ----------------------------------------------------------------------------------------------------
# `load`: a data set by its name, read by the function of its family.

VARIABLE = "MANYHANDS_DATA"
_FAMILIES = {
    "crowd": read_crowd,
    "patterns": read_patterns,
    "items": read_items,
    "hotel": read_hotel,
    "syn": read_syn,
}
_FILES = {  # the files that each family needs
    "crowd": ("annotations.csv",),
    "patterns": ("caries_patterns.csv",),
    "items": ("features.npz",),
    "hotel": ("features.npz", "votes.csv"),
    "syn": ("features.npz", "votes.csv"),
}


def load(name: str, *, features: str | None = None, duplicates: str | None = None) -> CrowdDataset:
    """Load a real crowd from the folder in MANYHANDS_DATA.

    Parameters
    ----------
    name : str
        One of `names()`; the part before a slash may be left out.
    features : str or None, default=None
        Which features to return as `X`, if there are several. labelme: "vgg16" (default), "vgg16-max", "efficientnet".
        weather_text: "embedding" (default), "lsa".
    duplicates : {"last", "all"} or None, default=None
        Which labels to keep if a worker labelled an item several times: the last row of the file, or all of them. None
        keeps the last, but all of agg/anesthesia, where repeats are by design.

    Returns
    -------
    CrowdDataset
        Ids and classes are integers if they are in the files.

    Raises
    ------
    ParameterError
        If there is no such data set or choice of features.
    AnnotationError
        If MANYHANDS_DATA is not set, or the files are missing or damaged.

    Examples
    --------
    >>> data = load("labelme")  # doctest: +SKIP
    >>> data.annotations.n_workers  # doctest: +SKIP
    59
    """
    full_name = find(name)
    spec = SPECS[full_name]
    if duplicates not in (None, *LOCAL_DUPLICATES):
        raise ParameterError(f"duplicates must be one of {', '.join(LOCAL_DUPLICATES)} or None. Got {duplicates!r}.")
    choices = list(spec.features)
    if features is not None and features not in choices:
        there = f"it has {', '.join(choices)}" if len(choices) > 1 else "leave the parameter out"
        raise ParameterError(f"The data set {full_name} has no choice of features called {features!r}; {there}.")
    chosen = spec.features[features or choices[0]] if choices else None
    folder = _folder_of(full_name)
    needed = set(_FILES[spec.family]) | ({chosen[0], "features.npz"} if chosen else set())
    _refuse_missing(folder, sorted(needed), full_name)
    return _FAMILIES[spec.family](folder, full_name, spec, chosen, duplicates or spec.duplicates)


def _folder_of(name: str) -> Path:
    """Return the folder of a data set."""
    given = os.environ.get(VARIABLE)
    if not given:
        raise AnnotationError(
            f"The environment variable {VARIABLE} is not set: let it name the folder that holds {name}, or use a "
            f"simulated set such as datasets.make_digits()."
        )
    if not Path(given).is_dir():
        raise AnnotationError(f"{VARIABLE} is {given!r}, which is not a folder; let it name the one that holds {name}.")
    folder = Path(given) / name
    if not folder.is_dir():
        there = [own for own in names() if (Path(given) / own).is_dir()]
        hint = nearest(name, there, otherwise=f"; it has {', '.join(there[:3])}" if there else "")
        raise AnnotationError(f"The folder in {VARIABLE}, {given!r}, has no {name}{hint}.")
    return folder


def _refuse_missing(folder: Path, files: list[str], name: str) -> None:
    """Refuse a folder that lacks files."""
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise AnnotationError(
            f"{name} in {VARIABLE} is not complete: {folder} has no {' and no '.join(missing)}. Copy it again."
        )
