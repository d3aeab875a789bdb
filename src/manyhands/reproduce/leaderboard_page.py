"""The leaderboard as a page: mean ranks with intervals, and every metric on every data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from manyhands import registry
from manyhands.reproduce.cells import Cell
from manyhands.reproduce.formatting import figure, title
from manyhands.reproduce.leaderboard import FOLDS, WITH_TEST_PART
from manyhands.reproduce.markdown import bullets, grid
from manyhands.reproduce.pages import Page, page
from manyhands.reproduce.records import Records
from manyhands.reproduce.rendering import failures, notes
from manyhands.reproduce.standings import standings
from manyhands.reproduce.tables import Table
from manyhands.reproduce.verdicts import Entry, entries

# Metrics of the table of ranks, and whether their mean or their sum over the data sets is shown.
_MEANS = {"accuracy": "mean", "balanced_accuracy": "mean", "ece": "mean", "log_loss": "mean", "fit_seconds": "total"}


def to_markdown(
    parts: Sequence[tuple[Table, Sequence[Cell], Records]],
    command: str,
    stale: Mapping[str, Sequence[str]] | None = None,
    figures: Mapping[str, str] | None = None,
) -> str:
    """Return the page: for each table the mean ranks with means over data sets, then each metric on every data set.

    Parameters
    ----------
    parts : sequence of (Table, cells, Records)
        The measured tables.
    command : str
        What to type for the same figures.
    stale : mapping of str to sequence of str or None, default=None
        Table -> sentences on rows that are not used.
    figures : mapping of str to str or None, default=None
        Table -> file of the figure of its ranks.

    Returns
    -------
    str
        Markdown.
    """
    found = ["# Leaderboard", _INTRODUCTION]
    for table, cells, records in parts:
        shown = page(table, cells, records, command, (stale or {}).get(table.name, ()))
        results = entries(table, cells, records)
        found += [f"## {table.title}", bullets(notes(shown))]
        if table.name in (figures or {}):
            found.append(f"![{table.title}: mean ranks]({(figures or {})[table.name]})")
        found.append(_rank_grid(shown, results))
        for metric in table.metrics:
            found += [f"### {table.title}: {title(metric)}", _metric_grid(shown, results, metric)]
        if failures(shown):
            found += [f"### {table.title}: failed", bullets(failures(shown))]
    return "\n\n".join(found) + "\n"


def _rank_grid(shown: Page, found: Sequence[Entry]) -> str:
    """Return mean ranks with their intervals, and means of some metrics over all data sets."""
    metrics = [metric for metric in _MEANS if metric in shown["metrics"]]
    rows = []
    for place in standings(found):
        low, high = place.interval
        means = [_over_sets(found, place.row, metric, shown["points"]) for metric in metrics]
        near = f"{place.n_near_best} of {place.n_sets}"
        rows.append([place.row, f"{place.rank:.1f}", f"{low:.1f} to {high:.1f}", near, *means])
    columns = [f"{_MEANS[metric]} {title(metric)}" for metric in metrics]
    return grid(["method", "mean rank", "90% interval", "near the best", *columns], rows)


def _over_sets(found: Sequence[Entry], row: str, metric: str, points: bool) -> str:
    """Return the mean over data sets, of seconds the sum; nothing if the method failed on one that others did not."""
    own = [entry for entry in found if (entry.row, entry.metric) == (row, metric)]
    known = {entry.dataset for entry in found if entry.metric == metric and entry.values}
    values = [entry.mean for entry in own if entry.mean is not None and entry.dataset in known]
    if len(values) < len(known) or not values:
        return "–"
    total = math.fsum(values)
    return figure(total if _MEANS[metric] == "total" else total / len(values), None, metric, points)


def _metric_grid(shown: Page, found: Sequence[Entry], metric: str) -> str:
    """Return one metric on every data set, methods in the order of their ranks."""
    sets, figures = _figures(shown, found, metric)
    rows = [[p.row, *(figures.get((p.row, name), "") for name in sets)] for p in standings(found)]
    return grid(["method", *sets], rows)


def _figures(shown: Page, found: Sequence[Entry], metric: str) -> tuple[list[str], Mapping[tuple[str, str], str]]:
    """Return the data sets, and the formatted value of each (row, data set)."""
    here = [entry for entry in found if entry.metric == metric]
    values = {
        (e.row, e.dataset): figure(e.mean, e.deviation, metric, shown["points"]) or "failed" * bool(e.errors)
        for e in here
    }
    return list(dict.fromkeys(entry.dataset for entry in here)), values


_INTRODUCTION = f"""\
Every method with its default settings on every data set of `MANYHANDS_DATA` that suits it; nothing is tuned to a data
set. Accuracy, balanced accuracy, macro F1, ECE and label accuracy are per cent, mean ± standard deviation over seeds or
folds.

- {" and ".join(WITH_TEST_PART)} are tested on their test items, with {FOLDS} seeds; the other data sets with features
  by {FOLDS}-fold cross-validation over the items with known truth, so that all methods take about half an hour on two
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
  two-stage rows.
- `self-crowd` as published expects features as they are, with which it is far better on labelme
  ([Self-Crowd](self-crowd.md))."""
