"""Every method on every data set: two tables made from the registry, and one page of ranks.

All methods have their default settings on all data sets; features have mean 0 and standard deviation 1 of the training
items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import narrowed
from manyhands.reproduce.tables import DataSet, Row, Table

WITH_TEST_PART = ("labelme", "music")
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
FOLDS = 3  # and seeds: a run takes about half an hour on two cores
_FIGURES = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "ece")
_VOTE = "majority-vote"
_DEFAULT = "pooled-dawid-skene"
_LINEAR = "logistic-regression"

# Name -> parameters: common aggregators, followed by logistic regression or the network that all methods share.
_TWO_STAGES: dict[str, dict[str, Any]] = {
    "vote, then logistic regression": {"aggregator": _VOTE, "classifier": _LINEAR},
    "vote shares, then logistic regression": {"aggregator": _VOTE, "classifier": _LINEAR, "soft": True},
    "one-coin, then logistic regression": {"aggregator": "one-coin", "classifier": _LINEAR},
    "glad, then logistic regression": {"aggregator": "glad", "classifier": _LINEAR},
    "dawid-skene, then logistic regression": {"aggregator": "dawid-skene", "classifier": _LINEAR},
    "pooled-dawid-skene, then logistic regression": {"aggregator": _DEFAULT, "classifier": _LINEAR},
    "vote, then network": {"aggregator": _VOTE},
    "vote shares, then network": {"aggregator": _VOTE, "soft": True},
    "dawid-skene, then network": {"aggregator": "dawid-skene"},
    "pooled-dawid-skene, then network": {"aggregator": _DEFAULT},
}
_TRAIN_DEFAULT = Row("spee-lfc from dawid-skene", "spee-lfc", parameters={"init": "dawid-skene"})


def tables() -> tuple[Table, Table]:
    """Return the two tables of the leaderboard.

    Returns
    -------
    learners : Table
        Classifiers and representation learners on data sets with features.
    aggregators : Table
        Aggregators on all data sets, but for that of ordered classes: classes of most data sets have no order.
    """
    shared: dict[str, Any] = {"paper": "manyhands", "number": "leaderboard", "seeds": FOLDS, "points": True}
    learners = Table(
        "leaderboard/learners",
        "Methods with features",
        datasets=(
            *(DataSet(name, load=name, features="standardised") for name in WITH_TEST_PART),
            *(DataSet(name, load=name, features="standardised", folds=FOLDS) for name in _IN_FOLDS),
        ),
        rows=_learners(),
        metrics=(*_FIGURES, "label_accuracy", "fit_seconds"),
        **shared,
    )
    aggregators = Table(
        "leaderboard/aggregators",
        "Aggregators",
        datasets=tuple(
            DataSet(name.rpartition("/")[2], load=name) for name in (*WITH_TEST_PART, *_IN_FOLDS, *_WITHOUT_FEATURES)
        ),
        rows=tuple(Row(name, name) for name in registry.names("aggregator") if name != registry.DEFAULT_ORDINAL),
        metrics=(*_FIGURES, "fit_seconds"),
        **shared,
    )
    return learners, aggregators


def wanted(only: Sequence[str]) -> list[Table]:
    """Return the tables, restricted to some data sets and methods.

    Parameters
    ----------
    only : sequence of str
        Names of data sets and methods; all if empty.

    Returns
    -------
    list of Table
        Tables in which a named data set and a named method meet.

    Raises
    ------
    ParameterError
        If a name is unknown, or nothing is left.
    """
    if not only:
        return list(tables())
    asked = {name.casefold() for name in only}
    known = {name.casefold() for table in tables() for name in _names(table)}
    unknown = [name for name in only if name.casefold() not in known]
    if unknown:
        rows = ", ".join(row.name for table in tables() for row in table.rows)
        sets = ", ".join(dataset.name for table in tables() for dataset in table.datasets)
        raise ParameterError(f"There is no data set and no method {unknown[0]!r}. Data sets: {sets}. Methods: {rows}.")
    found = [
        narrowed(table, [name for name in _names(table) if name.casefold() in asked])
        for table in tables()
        if all(_has_some(table, part, asked) for part in ("datasets", "rows"))
    ]
    if not found:
        raise ParameterError(
            f"None of the methods among {', '.join(only)} is measured on any of the data sets among them."
        )
    return found


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
