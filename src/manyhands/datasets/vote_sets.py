"""Data sets without a table of annotations: answer patterns, vote counts, and items to simulate a crowd on."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.datasets.catalog import Spec
from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.files import read_arrays, read_table
from manyhands.exceptions import AlignmentError, AnnotationError

_SYN_VOTES = 7  # number of votes per item of neucrowd_syn, which is not in its file


def read_patterns(folder: Path, name: str, spec: Spec, chosen: Any, duplicates: str) -> CrowdDataset:
    """Read patterns of answers of five raters, each with its number of items.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    name : str
        Its name.
    spec : Spec
        Its entry in the catalogue.
    chosen : None
        Not used.
    duplicates : str
        Not used.

    Returns
    -------
    CrowdDataset
        Annotations without truth.
    """
    readers = [f"rater_{i}" for i in range(1, 6)]
    columns = read_table(folder, name, "caries_patterns.csv", [*readers, "n"])
    table = np.repeat(np.stack(columns[:-1], axis=1), columns[-1], axis=0)  # (n_items, 5)
    annotations = Annotations.from_matrix(table, worker_ids=np.arange(1, 6))
    return CrowdDataset(name, annotations.classes, spec.description, annotations)


def read_items(folder: Path, name: str, spec: Spec, chosen: Any, duplicates: str) -> CrowdDataset:
    """Read features and ground truth to simulate a crowd on.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    name : str
        Its name.
    spec : Spec
        Its entry in the catalogue.
    chosen : None
        Not used.
    duplicates : str
        Not used.

    Returns
    -------
    CrowdDataset
        Features and truth without annotations.

    Raises
    ------
    AlignmentError
        If features and truth have different lengths.
    """
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
    """Read counts of positive votes in three splits; the first is the training set.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    name : str
        Its name.
    spec : Spec
        Its entry in the catalogue.
    chosen : None
        Not used.
    duplicates : str
        Not used.

    Returns
    -------
    CrowdDataset
        Features, truth and vote counts.
    """
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
    """Read one split of features, counts of positive votes and truth.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    name : str
        Its name.
    spec : Spec
        Its entry in the catalogue.
    chosen : None
        Not used.
    duplicates : str
        Not used.

    Returns
    -------
    CrowdDataset
        Features, truth and vote counts.
    """
    where = f"{name}/votes.csv"
    positive, truth = read_table(folder, name, "votes.csv", ("votes", "ground_truth"))
    X = read_arrays(folder / "features.npz", ("X_valid",))["X_valid"]
    votes = _two_counts(positive, np.full(len(positive), _SYN_VOTES), len(X), where)
    return CrowdDataset(name, np.array([0, 1]), spec.description, y_true=truth, X=X, votes=votes)


def _two_counts(positive: Array, total: Array, n_items: int, where: str) -> npt.NDArray[np.int64]:
    """Return the (n_items, 2) votes for class 0 and class 1."""
    if len(positive) != n_items:
        raise AlignmentError(f"{where} counts the votes on {len(positive)} items, but there are {n_items}.")
    counts = np.stack([total - positive, positive], axis=1)
    if counts.size and counts.min() < 0:
        raise AnnotationError(f"{where} has more positive votes than votes.")
    return counts
