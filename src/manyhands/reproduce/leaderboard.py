"""Every method on every data set: two tables made in code, ranks, and one page.

Settings are the methods' defaults and the same for all sets; features have mean 0 and spread 1 by the training items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import LOWER_IS_BETTER, Cell, narrowed
from manyhands.reproduce.records import Records
from manyhands.reproduce.rendering import Page, bullets, failures, figure, grid, notes, page, title
from manyhands.reproduce.tables import DataSet, Row, Table
from manyhands.reproduce.verdicts import Entry, entries

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
_FOLDS = 5
_FIGURES = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "ece")
_VOTE = "majority-vote"
_LINEAR = "logistic-regression"

# Name -> parameters: the usual first stages, then logistic regression or the network that all methods share.
_TWO_STAGES: dict[str, dict[str, Any]] = {
    "vote, then logistic regression": {"aggregator": _VOTE, "classifier": _LINEAR},
    "vote shares, then logistic regression": {"aggregator": _VOTE, "classifier": _LINEAR, "soft": True},
    "one-coin, then logistic regression": {"aggregator": "one-coin", "classifier": _LINEAR},
    "glad, then logistic regression": {"aggregator": "glad", "classifier": _LINEAR},
    "dawid-skene, then logistic regression": {"aggregator": "dawid-skene", "classifier": _LINEAR},
    "pooled-dawid-skene, then logistic regression": {"classifier": _LINEAR},
    "vote, then network": {"aggregator": _VOTE},
    "vote shares, then network": {"aggregator": _VOTE, "soft": True},
    "dawid-skene, then network": {"aggregator": "dawid-skene"},
    "pooled-dawid-skene, then network": {},
}
_OF_THE_COMMAND = Row("spee-lfc from dawid-skene", "spee-lfc", parameters={"start": "dawid-skene"})


def tables() -> tuple[Table, Table]:
    """Methods with features on the sets that have them, and aggregators on those that have none."""
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
        datasets=tuple(DataSet(name.rpartition("/")[2], load=name) for name in _WITHOUT_FEATURES),
        rows=tuple(Row(name, name) for name in registry.names("aggregator")),
        metrics=(*_FIGURES, "fit_seconds"),
        **shared,
    )
    return learners, aggregators


def wanted(only: Sequence[str]) -> list[Table]:
    """The tables with the sets and methods that are named, and without those in which no named set meets a method."""
    if not only:
        return list(tables())
    asked = {name.casefold() for name in only}
    known = {name.casefold() for table in tables() for name in _names(table)}
    strange = [name for name in only if name.casefold() not in known]
    if strange:
        rows = ", ".join(row.name for table in tables() for row in table.rows)
        sets = ", ".join(dataset.name for table in tables() for dataset in table.datasets)
        raise ParameterError(f"There is no data set and no method {strange[0]!r}. Sets: {sets}. Methods: {rows}.")
    found = [
        narrowed(table, [name for name in _names(table) if name.casefold() in asked])
        for table in tables()
        if all(_has_some(table, part, asked) for part in ("datasets", "rows"))
    ]
    if not found:
        raise ParameterError(f"None of the methods among {', '.join(only)} is measured on any of the sets among them.")
    return found


def _names(table: Table) -> list[str]:
    return [dataset.name for dataset in table.datasets] + [row.name for row in table.rows]


def _has_some(table: Table, part: str, asked: set[str]) -> bool:
    """Whether it has one of the sets (or methods) that are asked for, if any is."""
    everywhere = {one.name.casefold() for each in tables() for one in getattr(each, part)}
    return not asked & everywhere or any(one.name.casefold() in asked for one in getattr(table, part))


def _learners() -> tuple[Row, ...]:
    """All classifiers and representation learners of the registry, with two stages spelled out."""
    embedding = [name for name in registry.names("representation") if name not in registry.names("classifier")]
    return (
        *(Row(name, name) for name in registry.names("classifier") if name != "two-stage"),
        _OF_THE_COMMAND,
        *(Row(f"{name}, then logistic regression", name, then=_LINEAR) for name in embedding),
        *(Row(name, "two-stage", parameters=parameters) for name, parameters in _TWO_STAGES.items()),
    )


@dataclass(frozen=True)
class Standing:
    """How a method stands over all sets.

    `rank` is the mean over the sets, 1 being the best; equals share theirs, and whoever failed on a set is last there.
    `n_near_best` counts the sets on which it is within one standard error of the best.
    """

    row: str
    rank: float
    n_near_best: int
    n_sets: int


def standings(found: Sequence[Entry], metric: str = "accuracy") -> list[Standing]:
    """All methods, the best mean rank first; sets on which nothing was measured do not count."""
    of_metric = [entry for entry in found if entry.metric == metric]
    sets: dict[str, list[Entry]] = {}
    for entry in of_metric:
        sets.setdefault(entry.dataset, []).append(entry)
    sets = {name: here for name, here in sets.items() if any(entry.values for entry in here)}
    ranks = {name: _ranks(here, metric) for name, here in sets.items()}
    near = {name: _near_best(here, metric) for name, here in sets.items()}
    rows = dict.fromkeys(entry.row for here in sets.values() for entry in here)
    table = [
        Standing(
            row,
            math.fsum(ranks[name][row] for name in sets) / len(sets),
            sum(row in near[name] for name in sets),
            len(sets),
        )
        for row in rows
    ]
    return sorted(table, key=lambda standing: (standing.rank, -standing.n_near_best, standing.row))


def _goodness(entry: Entry, metric: str) -> float:
    if entry.mean is None:
        return -math.inf
    return -entry.mean if metric in LOWER_IS_BETTER else entry.mean


def _ranks(here: Sequence[Entry], metric: str) -> dict[str, float]:
    """The place of each row; equals share the mean of their places."""
    good = {entry.row: round(_goodness(entry, metric), 9) for entry in here}
    return {
        row: 1 + sum(other > own for other in good.values()) + (sum(other == own for other in good.values()) - 1) / 2
        for row, own in good.items()
    }


def _near_best(here: Sequence[Entry], metric: str) -> set[str]:
    best = max(here, key=lambda entry: _goodness(entry, metric))
    limit = _goodness(best, metric) - standard_error(best)
    return {entry.row for entry in here if entry.values and _goodness(entry, metric) >= limit}


def standard_error(entry: Entry) -> float:
    """Of a mean over seeds or of a share of the test items, in per cent: whichever is the larger.

    Seeds say nothing of the luck of the test items, which is what distinguishes methods that draw nothing at random.
    """
    of_seeds = (entry.deviation or 0.0) / math.sqrt(max(1, entry.n))
    if entry.mean is None or not entry.n_test:
        return of_seeds
    share = min(1.0, max(0.0, entry.mean / 100))
    return max(of_seeds, 100 * math.sqrt(share * (1 - share) / entry.n_test))


def to_markdown(parts: Sequence[tuple[Table, Sequence[Cell], Records]], command: str) -> str:
    """The page: for each table the standings with accuracy on every set, then the other figures."""
    said = ["# Leaderboard", _INTRODUCTION]
    for table, cells, records in parts:
        shown, found = page(table, cells, records, command), entries(table, cells, records)
        said += [f"## {table.title}", bullets(notes(shown)), _standing_grid(shown, found)]
        for metric in table.metrics[1:]:
            said += [f"### {table.title}: {title(metric)}", _metric_grid(shown, found, metric)]
        if failures(shown):
            said += [f"### {table.title}: failed", bullets(failures(shown))]
    return "\n\n".join(said) + "\n"


def _standing_grid(shown: Page, found: Sequence[Entry]) -> str:
    metric, places = shown["metrics"][0], standings(found)
    sets, figures = _figures(shown, found, metric)
    rows = [
        [p.row, f"{p.rank:.1f}", f"{p.n_near_best} of {p.n_sets}", *(figures.get((p.row, name), "") for name in sets)]
        for p in places
    ]
    return grid(["method", "mean rank", "near the best", *sets], rows)


def _metric_grid(shown: Page, found: Sequence[Entry], metric: str) -> str:
    sets, figures = _figures(shown, found, metric)
    rows = [[p.row, *(figures.get((p.row, name), "") for name in sets)] for p in standings(found)]
    return grid(["method", *sets], rows)


def _figures(shown: Page, found: Sequence[Entry], metric: str) -> tuple[list[str], Mapping[tuple[str, str], str]]:
    here = [entry for entry in found if entry.metric == metric]
    told = {
        (e.row, e.dataset): figure(e.mean, e.deviation, metric, shown["points"]) or "failed" * bool(e.errors)
        for e in here
    }
    return list(dict.fromkeys(entry.dataset for entry in here)), told


_INTRODUCTION = f"""\
Every method with its default settings on every data set of `MANYHANDS_DATA` that suits it; nothing is tuned to a set.
Accuracy, balanced accuracy, macro F1, ECE and label accuracy are per cent, mean ± standard deviation over seeds or
folds.

- {" and ".join(_WITH_TEST_PART)} are tested on their test part, with {_FOLDS} seeds; the other sets with features in
  {_FOLDS} fixed folds of the items of known truth. Features have mean 0 and spread 1 by the training items.
- Aggregators are measured on the items of known truth; those that draw nothing at random need one seed. Where one is
  made for two classes, it fails on sets with more, and is last there.
- neucrowd_hotel is left out: its votes are counts without workers, and its truth is their majority. usps and gas_drift
  have no crowd.
- Label accuracy is that of the labels a method gives the training items. Fit seconds are on one thread, without the
  time to load libraries.
- The mean rank is over the sets, by accuracy; equals share a place. *Near the best* counts the sets on which a method
  is within one standard error of the best: over seeds or, where that is larger, of a share of so many test items."""
