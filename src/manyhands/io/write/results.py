"""Results of a fitted aggregator as data frames, and as a summary.

The file: labels, training weights and the summary; alerts of items; workers; columns for ordered classes; values as
JSON; protection of spreadsheets.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.classes import grade_values
from manyhands.em.decisions import TIE, bias_and_spread, expected_grades, median_grades
from manyhands.exceptions import AnnotationError, LimitError
from manyhands.frames import as_table, convert_frame
from manyhands.io.messages import shorten
from manyhands.io.reading import Reading
from manyhands.metrics import worker_weighted_kappa
from manyhands.scorecards import Scorecards, score_workers
from manyhands.scorecards.cards import card_columns
from manyhands.sharded.fit import ShardedFit
from manyhands.sharded.labels import ShardedLabels

DECIMALS = 6  # of a probability in a file: more precise than the estimate, coarser than rounding between machines


def label_frame(model: Aggregator, library: str | None = None) -> Any:
    """Return one row per item: label, confidence, n_labels, alerts, and the posterior.

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
        ``expected`` (of the posterior), ``n_labels``, ``alerts`` and a column ``p_<class>`` for each class; with pandas
        the items are the index. Items without labels have neither label nor confidence. Alerts, separated by ";":
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
        **{name: id_column(values) if name == "median" else values for name, values in _item_grades(model).items()},
        "n_labels": model.annotations_.n_voters,
        "alerts": _item_alerts(model),
    }
    return _as_frame(model, pl.DataFrame(columns | _probabilities(model)), "item", library)


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
        return _as_frame(model, table, "item", library)
    row, code = np.nonzero(posterior)
    weighted = {
        "item": id_column([items[at] for at in row]),
        "label": id_column([model.classes_[k] for k in code]),
        "weight": posterior[row, code],
    }
    return _as_frame(model, pl.DataFrame(weighted), "item", library)


def summary(model: Aggregator, method: str) -> dict[str, Any]:
    """Return counts, shares and notes of one run; mean confidence and share are of `open_items`."""
    annotations = model.annotations_
    confidence = model.posterior_.max(axis=1)[open_items(model)]
    class_names(model.classes_)  # refuses classes that would be counted together
    labels = {str(label): n for label, n in Counter(model.labels_[~model.unlabelled_].tolist()).items()}
    values = run_figures(
        method,
        model.get_params(),
        n_items=annotations.n_items,
        n_workers=annotations.n_workers,
        n_classes=annotations.n_classes,
        n_annotations=annotations.n_annotations,
        n_components=count_components(annotations),
        n_unlabelled=int(model.unlabelled_.sum()),
        n_tied=int(model.tied_.sum()),
        gold_contradicted=_contradicted_gold(model),
        mean_confidence=float(confidence.mean()) if len(confidence) else None,
        share_confident=float((confidence >= 0.9).mean()) if len(confidence) else None,
        labels=labels,
        n_iter=model.n_iter_,
        converged=model.converged_,
    )
    values["notes"] = model.notes_
    return {name: to_json_value(value) for name, value in values.items()}


def run_figures(
    method: str,
    parameters: dict[str, Any],
    *,
    n_items: int,
    n_workers: int,
    n_classes: int,
    n_annotations: int,
    n_components: int,
    n_unlabelled: int,
    n_tied: int,
    gold_contradicted: list[str] | None,
    mean_confidence: float | None,
    share_confident: float | None,
    labels: Mapping[str, int],
    n_iter: int,
    converged: bool,
) -> dict[str, Any]:
    """Return the figures of a run, in memory or on shards, as summary.json has them; None leaves out the gold."""
    return {
        "method": method,
        "parameters": parameters,
        "n_items": n_items,
        "n_workers": n_workers,
        "n_classes": n_classes,
        "n_annotations": n_annotations,
        "labels_per_item": round(n_annotations / max(n_items, 1), 3),
        "n_components": n_components,
        "n_unlabelled": n_unlabelled,
        "n_tied": n_tied,
        **({} if gold_contradicted is None else {"gold_contradicted": gold_contradicted}),
        "mean_confidence": None if mean_confidence is None else round(mean_confidence, DECIMALS),
        "share_above_0.9": None if share_confident is None else round(share_confident, DECIMALS),
        "labels": dict(sorted(labels.items())),
        "n_iter": n_iter,
        "converged": converged,
    }


def count_components(annotations: Annotations) -> int:
    """Return the number of connected components of the bipartite graph of items and workers.

    Workers in different components share no items, directly or indirectly, so they cannot be compared.
    """
    group = np.arange(annotations.n_workers)  # of each worker: the lowest index of a worker known to be connected
    first = annotations.start[:-1][annotations.n_labels > 0]
    sizes = annotations.n_labels[annotations.n_labels > 0]
    while True:  # at least every second group joins another in each round
        of_label = group[annotations.worker]
        lowest = np.repeat(np.minimum.reduceat(of_label, first), sizes) if len(first) else of_label
        if np.array_equal(lowest, of_label):
            return len(np.unique(of_label))
        into = np.arange(annotations.n_workers)
        np.minimum.at(into, of_label, lowest)
        while not np.array_equal(into[into], into):
            into = into[into]
        group = into[group]


def to_csv(table: pl.DataFrame) -> bytes:
    """Return a table as CSV with six decimals; text is quoted only where necessary."""
    buffer = io.BytesIO()
    table.write_csv(buffer, float_precision=DECIMALS)
    return buffer.getvalue()


def _confidence(model: Aggregator) -> pl.Series:
    """Return the posterior of each item's label, null without labels."""
    confidence = np.where(model.unlabelled_, np.nan, model.posterior_.max(axis=1))
    return pl.Series(confidence).fill_nan(None)


def id_column(values: list[Any]) -> pl.Series:
    """Return ids or labels as a column of integers if all are, otherwise as text."""
    kinds = set(map(type, values)) - {type(None)}
    if any(issubclass(kind, np.generic) for kind in kinds):
        return id_column([value.item() if isinstance(value, np.generic) else value for value in values])
    if kinds == {str}:
        return pl.Series(values, dtype=pl.String)
    if kinds in ({int}, {bool}):
        return pl.Series([None if value is None else int(value) for value in values])
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def class_names(classes: np.ndarray[Any, Any]) -> list[str]:
    """Return the classes as text, which must be distinct.

    Shapes: classes (n_classes,).
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


def _as_frame(model: Aggregator, table: pl.DataFrame, index: str, library: str | None) -> Any:
    """Return a table in the library that was asked for, or in that of the frame which the labels came from."""
    return convert_frame(table, library or model.annotations_.frame_library, index)


# ----------------------------------------------------------------------------------------------------
# Alerts of items in labels.csv, and gold labels that the votes contradict.


def _item_alerts(model: Aggregator) -> pl.Series:
    """Return the alerts of each item, joined by ";"."""
    gold = np.isin(np.arange(len(model.item_ids_)), _rows_of_gold(model))
    words = {"tie": model.tied_, "unlabelled": model.unlabelled_, "gold": gold, "unvoted": _unvoted(model) & ~gold}
    which = sum(mask.astype(np.uint32) << bit for bit, mask in enumerate(words.values()))  # one bit for each word
    combined = [
        ";".join(word for bit, word in enumerate(words) if n >> bit & 1) or None for n in range(1 << len(words))
    ]
    return pl.Series(combined, dtype=pl.String).gather(which)


def open_items(model: Aggregator) -> npt.NDArray[np.bool_]:
    """Return (n_items,) where an item has a label whose class was not given: neither gold nor answered.

    A given class is certain, and says nothing about how certain the crowd's labels are.
    """
    is_open = ~model.unlabelled_
    is_open[_rows_of_gold(model)] = False
    return is_open


def _rows_of_gold(model: Aggregator) -> list[int]:
    """Return the positions of the gold items."""
    return [row for row, item in enumerate(model.item_ids_.tolist()) if item in model._gold] if model._gold else []


def _unvoted(model: Aggregator) -> np.ndarray[Any, Any]:
    """Return (n_items,) where no worker of the item gave the label that it gets."""
    votes = model.annotations_
    class_of = {value: k for k, value in enumerate(model.classes_.tolist())}
    code = np.fromiter(map(class_of.get, model.labels_.tolist(), repeat(-1)), np.int64, votes.n_items)
    voted = np.zeros(votes.n_items, bool)
    voted[votes.item[code[votes.item] == votes.label]] = True
    return (code >= 0) & ~voted


def _contradicted_gold(model: Aggregator) -> list[Any]:
    """Return the gold items on which another class has more votes than the known one."""
    votes = model.annotations_
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    class_of = {value: k for k, value in enumerate(model.classes_.tolist())}
    row_of = {item: i for i, item in enumerate(model.item_ids_.tolist())}
    contradicted = []
    for item, value in model._gold.items():
        i = row_of[item]
        own = slice(votes.start[i], votes.start[i + 1])
        counts = np.bincount(votes.label[own], weights=weight[own], minlength=votes.n_classes)
        if counts.max() > counts[class_of[value]] + TIE:
            contradicted.append(item)
    return contradicted


# ----------------------------------------------------------------------------------------------------
# The quality report of each worker as a data frame; also of a fit on shards.


def worker_frame(
    model: Aggregator,
    library: str | None = None,
    *,
    reading: Reading | None = None,
    cards: Scorecards | None = None,
) -> Any:
    """Return one row per worker: the scorecard, and the recall of each class.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    library : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of data frame; None for that of the frame which the labels were read from, and polars for other labels.
    reading : Reading or None, default=None
        What was read: the scorecards show its working times and position bias, where it has them.
    cards : Scorecards or None, default=None
        The scorecards, where they are made already; None makes them.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or pyarrow.Table
        ``worker`` and the columns of the scorecard (docs/scorecards.md), then ``recall_<class>`` and
        ``items_<class>`` for each class and, for ordered classes, the columns of `_worker_grades`. ``median_seconds``
        and ``crowd_median_seconds`` are there if working times are known, flip rates and first-position shares with
        their intervals if the labels are verdicts with their order of presentation. Where there are too many classes
        for scorecards to fit into memory, only ``n_labels`` and ``accuracy``.

    Examples
    --------
    >>> from manyhands import Annotations, MajorityVote
    >>> votes = Annotations.from_triples(["a", "a", "b"], ["w1", "w2", "w1"], ["cat", "cat", "dog"])
    >>> worker_frame(MajorityVote().fit(votes)).columns[:3]
    ['worker', 'n_labels', 'n_checked']
    """
    class_names(model.classes_)  # refuses classes that would share a column
    columns: dict[str, Any] = {"worker": id_column(model.worker_ids_.tolist())}
    try:
        cards = worker_cards(model, reading) if cards is None else cards
    except LimitError:
        volume = np.bincount(model.annotations_.worker, minlength=len(model.worker_ids_))
        columns |= {"n_labels": volume, "accuracy": model.worker_accuracy_}
    else:
        columns |= as_table(card_columns(cards)).drop("worker").to_dict()
    return _as_frame(model, pl.DataFrame(columns | _worker_grades(model)), "worker", library)


def worker_cards(model: Aggregator, reading: Reading | None = None) -> Scorecards:
    """Return the scorecards of a fitted model's workers, with what was read of them."""
    if reading is None:
        return score_workers(model)
    return score_workers(model, working_time=reading.working_time, position_bias=reading.position_bias)


def sharded_worker_frame(fit: ShardedFit, labels: ShardedLabels) -> pl.DataFrame:
    """Return one row per worker, with the columns of `worker_frame` that follow from sums over items."""
    columns = fit.worker_table(labels)
    numbers = {name: pl.Series(np.asarray(values)) for name, values in columns.items() if name != "worker"}
    shown = {name: values.fill_nan(None) if values.dtype.is_float() else values for name, values in numbers.items()}
    return pl.DataFrame({"worker": id_column(columns["worker"].tolist())} | shown)


# ----------------------------------------------------------------------------------------------------
# Columns of result tables for ordered classes: median and expected grade of items, agreement and errors of workers.


def _grade_order(model: Aggregator) -> npt.NDArray[np.int64] | None:
    """Codes of the classes from low to high; None where the classes have no order.

    Shapes: returns (n_classes,).
    """
    if hasattr(model, "order_"):
        code_of = {value: code for code, value in enumerate(model.classes_.tolist())}
        return np.array([code_of[value] for value in model.order_.tolist()], np.int64)
    return np.arange(len(model.classes_)) if model.annotations_.is_ordered else None


def _item_grades(model: Aggregator) -> dict[str, Any]:
    """Columns ``median`` and ``expected`` of every item; none where the classes have no order."""
    order = _grade_order(model)
    if order is None:
        return {}
    median = model.classes_[median_grades(model.posterior_, order)].tolist()
    expected = expected_grades(model.posterior_[:, order], grade_values(model.classes_[order].tolist()))
    expected[model.unlabelled_] = np.nan
    return {
        "median": [None if none else value for value, none in zip(median, model.unlabelled_)],
        "expected": pl.Series(expected).fill_nan(None),
    }


def _worker_grades(model: Aggregator) -> dict[str, Any]:
    """Columns on ordered classes of every worker; none where the classes have no order."""
    order = _grade_order(model)
    if order is None:
        return {}
    ordered = model.classes_[order].tolist()
    columns = {
        f"{weights}_kappa": worker_weighted_kappa(model.annotations_, weights, ordered)
        for weights in ("linear", "quadratic")
    }
    confusion = getattr(model, "confusion_", None)
    if confusion is not None:
        rank, frequency = np.argsort(order).astype(float), model.posterior_.mean(axis=0)
        columns["grade_bias"], columns["grade_spread"] = bias_and_spread(confusion, frequency, rank)
    return {name: pl.Series(values).fill_nan(None) for name, values in columns.items()}


# ----------------------------------------------------------------------------------------------------
# Python and NumPy values as JSON.

_PLAIN = {str, int, bool, type(None)}  # types of most values, which stay as they are
_NOT_PLAIN = re.compile(r"[^\n -~]+")


def to_json_value(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {str(name): to_json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def to_json(value: Any) -> bytes:
    """Return a value as indented JSON, with control characters escaped."""
    text = _indented(to_json_value(value), "\n") + "\n"
    return _NOT_PLAIN.sub(_escape, text).encode()


def _indented(value: Any, line: str) -> str:
    """Return a value as `json.dumps` with an indent of 2, which has no compiled form; `line` begins its last line."""
    inner = f"{line}  "
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    entries = value.values() if isinstance(value, dict) else value
    if not any(isinstance(entry, dict | list) for entry in entries):
        flat = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(f",{inner}", ": "))
        return f"{flat[0]}{inner}{flat[1:-1]}{line}{flat[-1]}"
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(_indented(entry, inner) for entry in value)}{line}]"
    named = (f"{json.dumps(name, ensure_ascii=False)}: {_indented(entry, inner)}" for name, entry in value.items())
    return f"{{{inner}{f',{inner}'.join(named)}{line}}}"


def _escape(match: re.Match[str]) -> str:
    """Escape the characters that are not printable."""
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in match[0])


# ----------------------------------------------------------------------------------------------------
# Protection of cells that a spreadsheet would run as formulas, and its inverse.
#
# A spreadsheet takes a cell of a CSV file that begins with =, +, - or @ for a formula, whoever wrote it. A quote before
# it makes it text. Not every program follows this rule, so files for other programs are left as they are.

# Characters that programs skip before a formula: quotes, blanks and control characters.
_SKIPPED = r"[\x00-\x20\x{a0}\x{3000}\x{feff}'\"]"
_FORMULA = rf"^{_SKIPPED}*[=+\-@\t\r\x{{ff1d}}\x{{ff0b}}\x{{ff0d}}\x{{ff20}}]"  # the last four are full-width
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _for_python(pattern: str) -> re.Pattern[str]:
    """Return the same pattern in Python's syntax, where ``$`` would accept a line break."""
    return re.compile(re.sub(r"\\x\{(\w+)\}", lambda match: f"\\u{int(match[1], 16):04x}", pattern).replace("$", r"\Z"))


_formula, _number = _for_python(_FORMULA), _for_python(_NUMBER)


def guard(text: str) -> str:
    """Put a quote before a text that a spreadsheet might run; numbers stay numbers.

    Examples
    --------
    >>> guard("=1+1"), guard("-1"), guard("'=1+1"), guard("good")
    ("'=1+1", '-1', "''=1+1", 'good')
    """
    return f"'{text}" if _is_formula(text) else text


def unguard(text: str) -> str:
    """Return the text that `guard` was given."""
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def guard_table(table: pl.DataFrame) -> pl.DataFrame:
    """Protect all texts and names of columns of a table."""
    columns = [_guard_column(column) if column.dtype == pl.String else column for column in table]
    return pl.DataFrame({guard(column.name): column for column in columns})


def _guard_column(column: pl.Series) -> pl.Series:
    """Protect a column of text."""
    formula = column.str.contains(_FORMULA) & ~column.str.contains(_NUMBER)
    return column.zip_with(~formula.fill_null(False), "'" + column)


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet might run a text."""
    return _formula.match(text) is not None and _number.match(text) is None
