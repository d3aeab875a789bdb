"""Ranks over all sets, and the page."""

from dataclasses import replace

import numpy as np
import pytest

from manyhands import datasets, registry
from manyhands.exceptions import ParameterError
from manyhands.reproduce import leaderboard
from manyhands.reproduce.cells import cells_of, make_estimator
from manyhands.reproduce.plots import ranks_to_svg
from manyhands.reproduce.tables import DataSet, Row, Table
from manyhands.reproduce.verdicts import entries, rank_interval, standings
from measuring import made_up

ROWS = [Row(name, "dawid-skene", parameters={"max_iter": n + 5}) for n, name in enumerate("abc")]
SETS = [DataSet(name, make="make_blobs", arguments={"n_items": 50 + n}) for n, name in enumerate("xyz")]
TABLE = Table("own/board", "Board", "manyhands", "", tuple(SETS), tuple(ROWS), seeds=2, points=True)


def found(values, n_test=100):
    return entries(TABLE, cells_of(TABLE), made_up(TABLE, values, n_test))


def test_every_method_and_every_set_is_there():
    """What is registered is measured, on every set that suits it."""
    learners, aggregators = leaderboard.tables()
    assert {row.method for row in learners.rows} == {*registry.names("classifier"), *registry.names("representation")}
    others = (registry.DEFAULT_ORDINAL, registry.DEFAULT_VERDICTS)
    of_nominal = [name for name in registry.names("aggregator") if name not in others]
    assert [row.method for row in aggregators.rows] == of_nominal
    classifies = registry.names("classifier")
    assert all((row.then is not None) == (row.method not in classifies) for row in learners.rows)
    without = {"usps", "gas_drift", "neucrowd_hotel", "neucrowd_syn_valid_only"}  # no workers
    without |= {"agg/anesthesia", "agg/caries"}  # no truth
    assert {dataset.load for dataset in aggregators.datasets} == set(datasets.names()) - without
    assert {dataset.load for dataset in learners.datasets} < {dataset.load for dataset in aggregators.datasets}
    assert all(dataset.features == "standardised" for dataset in learners.datasets)
    names = [row.name for row in learners.rows]
    assert len(names) == len(set(names))
    keys = [cell.key for cell in cells_of(learners, seeds=1)]
    assert len(keys) == len(set(keys))


def test_every_recipe_can_be_made():
    """Parameters that a method does not have would show after hours."""
    for row in leaderboard.tables()[0].rows:
        model = make_estimator(row, 0)
        for step in getattr(model, "named_steps", {"": model}).values():
            step.check_parameters()


def test_ranks_by_hand():
    """Equals share a place, who failed is last, and sets without figures do not count."""
    values = {("x", "a"): [0.9], ("x", "b"): [0.9], ("x", "c"): [0.5]}
    values |= {("y", "a"): [0.7], ("y", "b"): ["no luck"], ("y", "c"): [0.8]}
    table = {s.row: s for s in standings(found(values))}
    assert {row: s.rank for row, s in table.items()} == {"a": 1.75, "b": 2.25, "c": 2.0}
    assert list(table) == ["a", "c", "b"] and {s.n_sets for s in table.values()} == {2}
    assert standings(found({})) == []


def test_whatever_is_lower_may_be_better():
    """Log loss for instance."""
    table = Table("own/board", "Board", "", "", tuple(SETS[:1]), tuple(ROWS[:2]), seeds=1, metrics=("log_loss",))
    records = made_up(table, {})
    result = zip(cells_of(table), [0.9, 0.2])
    records.by_key.update({c.key: {"key": c.key, "metrics": {"log_loss": value}} for c, value in result})
    best, _ = standings(entries(table, cells_of(table), records), "log_loss")
    assert (best.row, best.rank, best.n_near_best) == ("b", 1.0, 1)


def test_near_the_best_is_one_standard_error():
    """Of a share of the test items, or over seeds where that is larger."""
    values = {("x", "a"): [0.9, 0.9], ("x", "b"): [0.871, 0.871], ("x", "c"): [0.869, 0.869]}
    near = {s.row: s.n_near_best for s in standings(found(values))}  # sqrt(0.9 * 0.1 / 100) = 3 points
    assert near == {"a": 1, "b": 1, "c": 0}
    near = {s.row: s.n_near_best for s in standings(found(values, n_test=10**6))}
    assert near == {"a": 1, "b": 0, "c": 0}
    values["x", "a"] = [0.8, 1.0]  # ten points over seeds
    assert {s.n_near_best for s in standings(found(values, n_test=10**6))} == {1}


def test_the_page_says_it_all():
    """Ranks, figures, what failed, and the command, commit and machine."""
    values = {("x", "a"): [0.9, 0.8], ("x", "b"): ["ValueError: no luck"]}
    records = made_up(TABLE, values)
    text = leaderboard.to_markdown([(TABLE, cells_of(TABLE), records)], "manyhands leaderboard")
    assert "| a | 1.0 | 1.0 to 1.0 | 1 of 1 | 85.0 |" in text and "| b | 2.5 | 2.5 to 2.5 | 0 of 1 | – |" in text
    assert "| a | 85.0 ± 7.1 |  |  |" in text and "| b | failed |  |  |" in text
    for sentence in ("`manyhands leaderboard`", "c0ffeec0ffee", "2 cores, x86_64", "b on x: ValueError: no luck"):
        assert sentence in text


def test_names_choose_among_both_tables():
    """A table that knows none of them is left out; an unknown name is one sentence."""
    (only,) = leaderboard.wanted(["Bluebirds", "kos"])
    assert only.name == "leaderboard/aggregators"
    assert [one.name for one in (*only.datasets, *only.rows)] == ["bluebirds", "kos"]
    assert leaderboard.wanted([]) == list(leaderboard.tables())
    assert [table.name for table in leaderboard.wanted(["bluebirds"])] == ["leaderboard/aggregators"]
    assert [table.name for table in leaderboard.wanted(["labelme"])] == [table.name for table in leaderboard.tables()]
    with pytest.raises(ParameterError, match="None of the methods among bluebirds, aggnet is measured"):
        leaderboard.wanted(["bluebirds", "aggnet"])
    with pytest.raises(ParameterError, match="no data set and no method 'parrots'"):
        leaderboard.wanted(["labelme", "parrots"])


def test_the_interval_of_a_mean_rank_is_a_bootstrap_over_sets():
    """By a plain loop over the same draws; a rank that is the same everywhere has no width."""
    ranks = [1.0, 4.0, 2.5, 7.0, 1.0]
    rng = np.random.default_rng([20265, 5])
    means = sorted(sum(ranks[at] for at in draw) / 5 for draw in rng.integers(0, 5, (4000, 5)))
    low, high = rank_interval(ranks)
    assert (low, high) == rank_interval(ranks)
    assert low == pytest.approx(means[200], abs=0.01) and high == pytest.approx(means[3799], abs=0.01)
    assert rank_interval([3.0]) == (3.0, 3.0)
    values = {(name, row): [0.9 - 0.1 * at] for name in "xyz" for at, row in enumerate("abc")}
    assert [place.interval for place in standings(found(values))] == [(1, 1), (2, 2), (3, 3)]


def test_means_over_the_sets_and_the_sum_of_the_seconds():
    """Nothing where a method failed on a set that others did not."""
    table = replace(TABLE, metrics=("accuracy", "fit_seconds"), seeds=1)
    records = made_up(table, {})
    given = {("x", "a"): (0.9, 20.0), ("y", "a"): (0.7, 30.0), ("z", "a"): (0.8, 10.0), ("x", "b"): (0.5, 1.0)}
    for cell in cells_of(table):
        if figures := given.get((cell.dataset.name, cell.row.name)):
            metrics = dict(zip(table.metrics, figures))
            records.by_key[cell.key] = {"key": cell.key, "metrics": metrics}
    text = leaderboard.to_markdown([(table, cells_of(table), records)], "", figures={"own/board": "board.svg"})
    assert "| method | mean rank | 90% interval | near the best | mean accuracy | total fit seconds |" in text
    assert "| a | 1.0 | 1.0 to 1.0 | 3 of 3 | 80.0 | 60 |" in text and "| – | – |" in text
    assert "![Board: mean ranks](board.svg)" in text


def test_ranks_are_drawn_from_the_top():
    """With the names of all methods, and the same bytes each time."""
    values = {(name, row): [0.9 - 0.1 * at] for name in "xyz" for at, row in enumerate("abc")}
    places = standings(found(values))
    drawn = ranks_to_svg(places)
    assert drawn == ranks_to_svg(places) and all(f">{name}<".encode() in drawn for name in "abc")
    assert b"mean rank by accuracy over 3 data sets, 90% interval" in drawn
