"""Scorecards of workers who use one class each: coverage, overlap, conflict, and no accusation."""

import numpy as np
import pytest

import manyhands as mh
from manyhands import Annotations
from manyhands.io.write.results import worker_frame
from manyhands.report import PANELS
from manyhands.report.run import make_run
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import quietly


@pytest.fixture(scope="module")
def crowd():
    """Six functions of two classes; the last one is wrong more often than right."""
    rng = np.random.default_rng(1)
    truth, own = rng.integers(0, 2, 500), np.arange(6) % 2
    rate = np.where(truth[:, None] == own, 0.35, 0.05)
    rate[:, 5] = np.where(truth == 1, 0.05, 0.15)
    item, worker = np.nonzero(rng.random((500, 6)) < rate)
    return Annotations(item, worker, own[worker], item_ids=range(500), worker_ids=range(6), classes=["a", "b"]), truth


@pytest.fixture(scope="module")
def model(crowd):
    return quietly(lambda: mh.PooledDawidSkene().fit(crowd[0]))


def test_cards_describe_functions_and_accuse_nobody(crowd, model):
    votes, truth = crowd
    cards = mh.score_workers(model)
    fires = np.zeros((500, 6), bool)
    fires[votes.item, votes.worker] = True
    for w in range(6):
        on = np.flatnonzero(fires[:, w])
        others = [[v for v in range(6) if v != w and fires[i, v]] for i in on]
        assert cards[w].coverage == pytest.approx(len(on) / 500)
        assert cards[w].overlap == pytest.approx(np.mean([bool(other) for other in others]))
        assert cards[w].conflict == pytest.approx(np.mean([any((v - w) % 2 for v in other) for other in others]))
    assert not any(cards.alerts)
    precision = [np.mean((truth[votes.item] == votes.label)[votes.worker == w]) for w in range(6)]
    assert cards.accuracy.argmin() == np.argmin(precision) == 5
    assert np.all((cards.accuracy_low <= cards.accuracy) & (cards.accuracy <= cards.accuracy_high))


def test_cards_do_not_depend_on_the_order_of_items(crowd, model):
    votes, _ = crowd
    order = np.random.default_rng(0).permutation(500)
    again = quietly(lambda: mh.PooledDawidSkene().fit(votes[order]))
    one, other = mh.score_workers(model), mh.score_workers(again)
    for name in ("accuracy", "accuracy_low", "coverage", "overlap", "conflict"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_tables_and_panels_have_the_columns_of_functions_only_there(model):
    ordinary = mh.PooledDawidSkene().fit(make_crowd(60, 6, random_state=0).annotations)
    names = {"coverage", "overlap", "conflict"}
    assert names <= set(worker_frame(model).columns) and not names & set(worker_frame(ordinary).columns)
    assert mh.score_workers(ordinary).coverage is None and mh.score_workers(ordinary)[0].coverage is None
    heads = [PANELS["workers"](make_run(fit)).table[0].columns for fit in (model, ordinary)]
    assert names <= set(heads[0]) and not names & set(heads[1])


def test_too_few_labels_are_said(crowd):
    votes = crowd[0]
    rows = np.flatnonzero((votes.worker != 0) | (np.cumsum(votes.worker == 0) <= 8))
    few = votes.keep(np.isin(np.arange(votes.n_annotations), rows))
    cards = mh.score_workers(quietly(lambda: mh.PooledDawidSkene().fit(few)))
    assert cards.alerts[0] == ("too-few-labels",) and not any(cards.alerts[1:])
