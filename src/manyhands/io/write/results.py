"""Results of a fitted aggregator as data frames, and as a summary."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.messages import shorten
from manyhands.io.write.frame_libraries import convert_frame
from manyhands.io.write.grade_columns import item_grades
from manyhands.io.write.item_flags import contradicted_gold, item_flags
from manyhands.io.write.json_values import to_json_value

DECIMALS = 6  # of a probability in a file: more precise than the estimate, coarser than rounding between machines


def label_frame(model: Aggregator, library: str | None = None) -> Any:
    """Return one row per item: label, confidence, n_labels, flags, and the posterior.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    library : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of data frame; None for that of the frame which the labels were read from, and polars for other labels.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        ``item``, ``label``, ``confidence`` (the posterior of the label), for ordered classes ``median`` and
        ``expected`` (of the posterior), ``n_labels``, ``flags`` and a column ``p_<class>`` for each class; with pandas
        the items are the index. Items without labels have neither label nor confidence. Flags, separated by ";":
        ``tie``, ``unlabelled``, ``gold``, and ``unvoted`` for a label that none of the item's workers gave.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["w1", "w2", "w1"], ["cat", "cat", "dog"])
    >>> label_frame(MajorityVote().fit(votes))["label"].to_list()
    ['cat', 'dog']
    """
    columns = {
        "item": id_column(model.item_ids_.tolist()),
        "label": id_column(model.labels_.tolist()),
        "confidence": _confidence(model),
        **{name: id_column(values) if name == "median" else values for name, values in item_grades(model).items()},
        "n_labels": model.annotations_.n_voters,
        "flags": item_flags(model),
    }
    return as_frame(model, pl.DataFrame(columns | _probabilities(model)), "item", library)


def training_frame(model: Aggregator, *, soft: bool = False, library: str | None = None) -> Any:
    """Return the labelled items with weights, for any classifier that takes ``sample_weight``.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    soft : bool, default=False
        An item has one row per class, weighted by its posterior, which trains on the whole distribution; classes of
        probability 0 are left out. Otherwise an item has one row, weighted by its confidence.
    library : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of data frame; None for that of the frame which the labels were read from, and polars for other labels.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        ``item``, ``label`` and ``weight``.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["w1", "w2", "w1"], ["cat", "dog", "dog"])
    >>> training_frame(MajorityVote().fit(votes), soft=True)["weight"].to_list()
    [0.5, 0.5, 1.0]
    """
    model.annotations_  # noqa: B018  # raises an error if the model is not fitted
    labelled = np.flatnonzero(~model.unlabelled_)
    posterior = model.posterior_[labelled]
    items = model.item_ids_[labelled].tolist()
    if not soft:
        labels = [model.labels_[row] for row in labelled]
        table = pl.DataFrame({"item": id_column(items), "label": id_column(labels), "weight": posterior.max(axis=1)})
        return as_frame(model, table, "item", library)
    row, code = np.nonzero(posterior)
    weighted = {
        "item": id_column([items[at] for at in row]),
        "label": id_column([model.classes_[k] for k in code]),
        "weight": posterior[row, code],
    }
    return as_frame(model, pl.DataFrame(weighted), "item", library)


def summary(model: Aggregator, method: str) -> dict[str, Any]:
    """Return counts, shares and notes of one run.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    method : str
        Its name in the registry.

    Returns
    -------
    dict
        Values for JSON; nothing depends on the clock or the machine.
    """
    annotations = model.annotations_
    confidence = model.posterior_.max(axis=1)[~model.unlabelled_]
    class_names(model.classes_)  # refuses classes that would be counted together
    labels = Counter(str(label) for label in model.labels_[~model.unlabelled_].tolist())
    values = {
        "method": method,
        "parameters": model.get_params(),
        "n_items": annotations.n_items,
        "n_workers": annotations.n_workers,
        "n_classes": annotations.n_classes,
        "n_annotations": annotations.n_annotations,
        "labels_per_item": round(annotations.n_annotations / max(annotations.n_items, 1), 3),
        "n_components": count_components(annotations),
        "n_unlabelled": int(model.unlabelled_.sum()),
        "n_tied": int(model.tied_.sum()),
        "gold_contradicted": contradicted_gold(model),
        "mean_confidence": round(float(confidence.mean()), DECIMALS) if len(confidence) else None,
        "share_above_0.9": round(float((confidence >= 0.9).mean()), DECIMALS) if len(confidence) else None,
        "labels": dict(sorted(labels.items())),
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "notes": model.notes_,
    }
    return {name: to_json_value(value) for name, value in values.items()}


def count_components(annotations: Annotations) -> int:
    """Return the number of connected components of the bipartite graph of items and workers.

    Workers in different components share no items, directly or indirectly, so they cannot be compared.

    Parameters
    ----------
    annotations : Annotations
        The labels.

    Returns
    -------
    int
        Number of components that have at least one label.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_items, n_workers = annotations.n_items, annotations.n_workers
    edges = np.ones(annotations.n_annotations, np.int8)
    ends = (annotations.item, annotations.worker + np.int64(n_items))
    graph = coo_array((edges, ends), shape=(n_items + n_workers, n_items + n_workers))
    touched = np.zeros(n_items + n_workers, bool)
    touched[ends[0]] = touched[ends[1]] = True
    _, component = connected_components(graph, directed=False)
    return len(np.unique(component[touched]))


def to_csv(table: pl.DataFrame) -> bytes:
    """Return a table as CSV with six decimals; text is quoted only where necessary.

    Parameters
    ----------
    table : polars.DataFrame
        The table.

    Returns
    -------
    bytes
        CSV in UTF-8.
    """
    buffer = io.BytesIO()
    table.write_csv(buffer, float_precision=DECIMALS)
    return buffer.getvalue()


def _confidence(model: Aggregator) -> pl.Series:
    """Return the posterior of each item's label, null without labels."""
    confidence = np.where(model.unlabelled_, np.nan, model.posterior_.max(axis=1))
    return pl.Series(confidence).fill_nan(None)


def id_column(values: list[Any]) -> pl.Series:
    """Return ids or labels as a column of integers if all are, otherwise as text.

    Parameters
    ----------
    values : list of object
        The values; None for none.

    Returns
    -------
    polars.Series
        The column.
    """
    kinds = {type(value.item() if isinstance(value, np.generic) else value) for value in values if value is not None}
    if kinds in ({int}, {bool}):
        return pl.Series([None if value is None else int(value) for value in values])
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def class_names(classes: np.ndarray[Any, Any]) -> list[str]:
    """Return the classes as text, which must be distinct.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.

    Returns
    -------
    list of str
        Their names.

    Raises
    ------
    AnnotationError
        If two classes have the same text, such as 1 and "1".
    """
    seen: dict[str, Any] = {}
    for value in classes.tolist():
        other = seen.setdefault(str(value), value)
        if other is not value:
            pair = f"{shorten(repr(other))} and {shorten(repr(value))}"
            raise AnnotationError(
                f"The classes {pair} have the same text, so a table cannot distinguish them. Rename one."
            )
    return list(seen)


def _probabilities(model: Aggregator) -> dict[str, Any]:
    """Return the columns of the posterior."""
    return {f"p_{name}": model.posterior_[:, k] for k, name in enumerate(class_names(model.classes_))}


def as_frame(model: Aggregator, table: pl.DataFrame, index: str, library: str | None) -> Any:
    """Return a table in the library that was asked for, or in that of the frame which the labels came from.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    table : polars.DataFrame
        The table.
    index : str
        Column that is the index in pandas.
    library : {"pandas", "polars", "pyarrow"} or None
        Kind of data frame.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        The table.
    """
    return convert_frame(table, library or model.annotations_.frame_library, index)
