"""Every method on every data set: two tables made from the registry, and one page of ranks.

All methods have their default settings on all data sets; features have mean 0 and standard deviation 1 of the training
items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import Cell, narrowed
from manyhands.reproduce.pages import Page, bullets, failures, grid, notes, page
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import DataSet, Row, Table, figure, title
from manyhands.reproduce.verdicts import Entry, entries, standings

_WITH_TEST_PART = ("labelme", "music")
_IN_FOLDS = ("leaves", "weather_text", "cifar10s", "snow2008/rte", "reports_mozilla")
_WITHOUT_FEATURES = (
    "snow2008/temp",
    "snow2008/wsd",
    "agg/bluebirds",
    "agg/dogs",
    "agg/web",
    "agg/s_rel",
    "agg/s_face",
    "agg/fact_eval",
    "agg/zencrowd_in",
    "agg/zencrowd_all",
)
_FOLDS = 3  # and seeds: a run takes about half an hour on two cores
_FIGURES = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "ece")
_LINEAR = "logistic-regression"

# Name -> parameters: common aggregators, followed by logistic regression or the network that all methods share.
_TWO_STAGES: dict[str, dict[str, Any]] = {
    "vote, then logistic regression": {"aggregator": registry.VOTE, "classifier": _LINEAR},
    "vote shares, then logistic regression": {"aggregator": registry.VOTE, "classifier": _LINEAR, "soft": True},
    "one-coin, then logistic regression": {"aggregator": "one-coin", "classifier": _LINEAR},
    "glad, then logistic regression": {"aggregator": "glad", "classifier": _LINEAR},
    "dawid-skene, then logistic regression": {"aggregator": "dawid-skene", "classifier": _LINEAR},
    "pooled-dawid-skene, then logistic regression": {"aggregator": registry.DEFAULT, "classifier": _LINEAR},
    "vote, then network": {"aggregator": registry.VOTE},
    "vote shares, then network": {"aggregator": registry.VOTE, "soft": True},
    "dawid-skene, then network": {"aggregator": "dawid-skene"},
    "pooled-dawid-skene, then network": {"aggregator": registry.DEFAULT},
}
_TRAIN_DEFAULT = Row("spee-lfc from dawid-skene", "spee-lfc", parameters={"init": "dawid-skene"})


_OTHER_LABELS = (registry.DEFAULT_ORDINAL, registry.DEFAULT_VERDICTS)  # ordered classes, pairwise verdicts: not here


def tables() -> tuple[Table, Table]:
    """Return the two tables of the leaderboard."""
    shared: dict[str, Any] = {"paper": "manyhands", "number": "leaderboard", "seeds": _FOLDS, "points": True}
    learners = Table(
        "leaderboard/learners",
        "Methods with features",
        datasets=(
            *(DataSet(name, load=name, features="standardised") for name in _WITH_TEST_PART),
            *(DataSet(name, load=name, features="standardised", folds=_FOLDS) for name in _IN_FOLDS),
        ),
        rows=_learners(),
        metrics=(*_FIGURES, "label_accuracy", "fit_seconds"),
        **shared,
    )
    aggregators = Table(
        "leaderboard/aggregators",
        "Aggregators",
        datasets=tuple(
            DataSet(name.rpartition("/")[2], load=name) for name in (*_WITH_TEST_PART, *_IN_FOLDS, *_WITHOUT_FEATURES)
        ),
        rows=tuple(Row(name, name) for name in registry.names("aggregator") if name not in _OTHER_LABELS),
        metrics=(*_FIGURES, "fit_seconds"),
        **shared,
    )
    return learners, aggregators


def wanted(only: Sequence[str]) -> list[Table]:
    """Return the tables, restricted to some data sets and methods."""
    if not only:
        return list(tables())
    asked = {name.casefold() for name in only}
    names_there = {name.casefold() for table in tables() for name in _names(table)}
    unknown = [name for name in only if name.casefold() not in names_there]
    if unknown:
        rows = ", ".join(dict.fromkeys(row.name for table in tables() for row in table.rows))
        sets = ", ".join(dict.fromkeys(dataset.name for table in tables() for dataset in table.datasets))
        raise ParameterError(f"There is no data set and no method {unknown[0]!r}. Data sets: {sets}. Methods: {rows}.")
    restricted = [
        narrowed(table, [name for name in _names(table) if name.casefold() in asked])
        for table in tables()
        if all(_has_some(table, part, asked) for part in ("datasets", "rows"))
    ]
    if not restricted:
        raise ParameterError(
            f"None of the methods among {', '.join(only)} is measured on any of the data sets among them."
        )
    return restricted


def _names(table: Table) -> list[str]:
    """Return the names of all data sets and rows."""
    return [dataset.name for dataset in table.datasets] + [row.name for row in table.rows]


def _has_some(table: Table, part: str, asked: set[str]) -> bool:
    """Return whether the table has one of the data sets (or methods) that are named, if any is."""
    everywhere = {one.name.casefold() for each in tables() for one in getattr(each, part)}
    return not asked & everywhere or any(one.name.casefold() in asked for one in getattr(table, part))


def _learners() -> tuple[Row, ...]:
    """Return all classifiers and representation learners of the registry, and two-stage with several aggregators."""
    embedding = [name for name in registry.names("representation") if name not in registry.names("classifier")]
    return (
        *(Row(name, name) for name in registry.names("classifier") if name != "two-stage"),
        _TRAIN_DEFAULT,  # what `manyhands train` does by default
        *(Row(f"{name}, then logistic regression", name, then=_LINEAR) for name in embedding),
        *(Row(name, "two-stage", parameters=parameters) for name, parameters in _TWO_STAGES.items()),
    )


# ----------------------------------------------------------------------------------------------------
# The leaderboard as a page: mean ranks with intervals, and every metric on every data set.


# Metrics of the table of ranks, and whether their mean or their sum over the data sets is shown.
_MEANS = {"accuracy": "mean", "balanced_accuracy": "mean", "ece": "mean", "log_loss": "mean", "fit_seconds": "total"}


def to_markdown(
    parts: Sequence[tuple[Table, Sequence[Cell], Records]],
    command: str,
    stale: Mapping[str, Sequence[str]] | None = None,
    figures: Mapping[str, str] | None = None,
) -> str:
    """Return the page: for each table the mean ranks with means over data sets, then each metric on every data set."""
    lines = ["# Leaderboard", _INTRODUCTION]
    for table, cells, records in parts:
        shown = page(table, cells, records, command, (stale or {}).get(table.name, ()))
        results = entries(table, cells, records)
        lines += [f"## {table.title}", bullets(notes(shown))]
        if table.name in (figures or {}):
            lines.append(f"![{table.title}: mean ranks]({(figures or {})[table.name]})")
        lines.append(_rank_grid(shown, results))
        for metric in table.metrics:
            lines += [f"### {table.title}: {title(metric)}", _metric_grid(shown, results, metric)]
        if failures(shown):
            lines += [f"### {table.title}: failed", bullets(failures(shown))]
    return "\n\n".join(lines) + "\n"


def _rank_grid(shown: Page, results: Sequence[Entry]) -> str:
    """Return mean ranks with their intervals, and means of some metrics over all data sets."""
    metrics = [metric for metric in _MEANS if metric in shown["metrics"]]
    rows = []
    for place in standings(results):
        low, high = place.interval
        means = [_over_sets(results, place.row, metric, shown["points"]) for metric in metrics]
        near = f"{place.n_near_best} of {place.n_sets}"
        rows.append([place.row, f"{place.rank:.1f}", f"{low:.1f} to {high:.1f}", near, *means])
    columns = [f"{_MEANS[metric]} {title(metric)}" for metric in metrics]
    return grid(["method", "mean rank", "90% interval", "near the best", *columns], rows)


def _over_sets(results: Sequence[Entry], row: str, metric: str, points: bool) -> str:
    """Return the mean over data sets, of seconds the sum; nothing if the method failed on one that others did not."""
    own = [entry for entry in results if (entry.row, entry.metric) == (row, metric)]
    sets = {entry.dataset for entry in results if entry.metric == metric and entry.values}
    values = [entry.mean for entry in own if entry.mean is not None and entry.dataset in sets]
    if len(values) < len(sets) or not values:
        return "–"
    total = math.fsum(values)
    return figure(total if _MEANS[metric] == "total" else total / len(values), None, metric, points)


def _metric_grid(shown: Page, results: Sequence[Entry], metric: str) -> str:
    """Return one metric on every data set, methods in the order of their ranks."""
    sets, figures = _figures(shown, results, metric)
    rows = [[p.row, *(figures.get((p.row, name), "") for name in sets)] for p in standings(results)]
    return grid(["method", *sets], rows)


def _figures(shown: Page, results: Sequence[Entry], metric: str) -> tuple[list[str], Mapping[tuple[str, str], str]]:
    """Return the data sets, and the formatted value of each (row, data set)."""
    here = [entry for entry in results if entry.metric == metric]
    values = {
        (e.row, e.dataset): figure(e.mean, e.deviation, metric, shown["points"]) or "failed" * bool(e.errors)
        for e in here
    }
    return list(dict.fromkeys(entry.dataset for entry in here)), values


_INTRODUCTION = f"""\
Every method with its default settings on every data set of `MANYHANDS_DATA` that suits it; nothing is tuned to a data
set. Accuracy, balanced accuracy, macro F1, ECE and label accuracy are per cent, mean ± standard deviation over seeds or
folds.

- {" and ".join(_WITH_TEST_PART)} are tested on their test items, with {_FOLDS} seeds; the other data sets with features
  by {_FOLDS}-fold cross-validation over the items with known truth, so that all methods take about half an hour on two
  cores. Features have mean 0 and standard deviation 1 of the training items.
- Aggregators are measured on the items of known truth; those without random numbers need one seed. A method
  for two classes fails on data sets with more, and has the last rank there. `{registry.DEFAULT_ORDINAL}` is not among
  them: classes of most of these data sets have no order.
- neucrowd_hotel is left out: its votes are counts without worker ids, and its truth is their majority. usps and
  gas_drift have no annotations.
- Label accuracy is that of the labels that a method infers for the training items. Fit seconds are on one thread,
  without the time to load libraries.
- The mean rank is over the data sets, by accuracy; equal values share a rank. Its 90% interval is a bootstrap over the
  data sets, so it says how much the rank depends on which data sets were taken: methods whose intervals overlap are not
  told apart. *Near the best* counts the data sets on which a method is within one standard error of the best: over
  seeds or, if larger, binomial over the test items. Means are over the data sets, seconds are their sum over them.
- A paper's name stands for the method as published, `-plus` for our variant of it. `ensemble` is five networks of
  aggnet, and `prior-adjusted` divides the predictions of a method by the class shares that it estimated.
- All rows are of one run at one commit, but for methods that were measured again after a change: `siamese` (its
  start), `pooled-dawid-skene` (overruling and power of the posterior) and what builds on it, `neucrowd-plus` and
  two-stage rows, and `fixed-difficulty-em` (its M step).
- `self-crowd` as published expects features as they are, with which it is far better on labelme
  ([Self-Crowd](self-crowd.md)). Here all methods have standardised features, so its rank is not that of the published
  setting, which `manyhands train -m self-crowd` follows."""
