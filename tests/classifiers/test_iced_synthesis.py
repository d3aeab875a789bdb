"""Synthetic items: positions as in Eq. 2.5, numbers per class, and labels from their nearest real items."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands._core import neighbours
from manyhands._core.neighbours import nearest, nearest_others
from manyhands.classifiers import iced
from manyhands.classifiers.iced import (
    Synthesis,
    augment,
    interpolate,
    interpolation_weights,
    random_subset,
    synthesis_counts,
    synthesis_plan,
    synthesise,
    synthetic_labels,
    synthetic_points,
)
from manyhands.testing.crowds import easy_crowd
from reference.slow_synthesis import slow_interpolate, slow_labels, slow_mode, slow_nearest


def draws(seed=0):
    """A generator."""
    return np.random.default_rng(seed)


def cloud(n, n_dimensions=3, seed=0):
    """Points."""
    return draws(seed).normal(size=(n, n_dimensions)).astype(np.float32)


def test_a_point_lies_near_the_more_certain_item():
    """Without noise, "intent" is nearer to the item with the higher certainty, and "paper" to the other."""
    certainty, other = np.array([9.0, 1.0, 3.0]), np.array([1.0, 9.0, 3.0])
    point, end = cloud(3), cloud(3, seed=1)
    for rule, expected in (("intent", [0.1, 0.9, 0.5]), ("paper", [0.9, 0.1, 0.5])):
        delta = interpolation_weights(rule, certainty, other, 0.0, draws())
        np.testing.assert_allclose(delta, expected)
        made = interpolate(point, end, delta)
        near = np.linalg.norm(made - point, axis=1) < np.linalg.norm(made - end, axis=1)
        assert near[:2].tolist() == ([True, False] if rule == "intent" else [False, True])
        for row, a, b, step in zip(made.tolist(), point.tolist(), end.tolist(), expected):
            np.testing.assert_allclose(row, slow_interpolate(a, b, step), rtol=1e-5)


def test_noise_moves_points_along_the_line_and_no_further():
    """Within the noise of where they would be, and never beyond either item; SMOTE's are anywhere between."""
    even = np.ones(500)
    delta = interpolation_weights("intent", even, even, 0.2, draws())
    assert delta.min() >= 0.3 and delta.max() <= 0.7 and delta.std() > 0.1
    sure = interpolation_weights("intent", even * 99, even, 0.2, draws())
    assert sure.min() == 0 and 0.2 < sure.max() <= 0.21
    anywhere = interpolation_weights("smote", even * 99, even, 0.2, draws())
    assert anywhere.min() < 0.02 and anywhere.max() > 0.98


def test_neighbours_are_the_slow_ones():
    """The nearest first, fewer where there are fewer, and never the point itself, even among equals."""
    points, asked = cloud(30), cloud(9, seed=1)
    expected = [slow_nearest(points.tolist(), row, 4) for row in asked.tolist()]
    assert nearest(points, asked, 4).tolist() == expected
    expected = [slow_nearest(points.tolist(), row, 4, itself=i) for i, row in enumerate(points.tolist())]
    assert nearest_others(points, 4).tolist() == expected
    assert nearest(points[:3], asked, 5).shape == (9, 3)
    assert nearest_others(points[:3], 5).shape == (3, 2)
    assert nearest(points[:0], asked, 5).shape == (9, 0) and nearest(points, asked[:0], 5).shape == (0, 5)
    same = nearest_others(np.zeros((20, 2), np.float32), 3)
    assert same.shape == (20, 3) and (same != np.arange(20)[:, None]).all()


def test_points_lie_between_a_candidate_and_one_of_its_neighbours():
    """Every point is on such a line, at the place that the certainties of its ends say."""
    points, certainty = cloud(12), np.arange(1.0, 13.0)
    made = synthetic_points(points, certainty, 24, draws(), k=3, noise=0.0)
    lines = np.array(
        [
            slow_interpolate(points[i].tolist(), points[r].tolist(), certainty[r] / (certainty[i] + certainty[r]))
            for i in range(12)
            for r in slow_nearest(points.tolist(), points[i].tolist(), 3, itself=i)
        ]
    )
    assert len(made) == 24
    assert np.abs(made[:, None] - lines[None]).max(axis=2).min(axis=1).max() < 1e-5


def test_every_candidate_begins_equally_many():
    """Of four pairs far apart, each has a quarter of the points."""
    pairs = np.repeat(np.arange(4), 2)
    points = np.stack([pairs * 100.0, np.tile([0.0, 1.0], 4)], axis=1).astype(np.float32)
    made = synthetic_points(points, np.ones(8), 24, draws(), k=1)
    assert np.bincount(np.rint(made[:, 0] / 100).astype(int)).tolist() == [6, 6, 6, 6]


def test_of_one_candidate_or_none_nothing_is_made():
    """Nor where nothing is wanted."""
    for n_candidates, n_wanted in ((0, 5), (1, 5), (4, 0), (4, -2)):
        made = synthetic_points(cloud(n_candidates), np.ones(n_candidates), n_wanted, draws())
        assert made.shape == (0, 3)
    assert len(synthetic_points(cloud(2), np.ones(2), 5, draws())) == 5


def test_many_candidates_are_sampled(monkeypatch):
    """Of more than the bound, a subset is drawn, without repeats and in order."""
    assert random_subset(5, 5, draws()).tolist() == [0, 1, 2, 3, 4]
    found = random_subset(100, 7, draws())
    assert len(set(found.tolist())) == 7 and (np.diff(found) > 0).all()
    monkeypatch.setattr(iced, "MAX_CANDIDATES", 4)
    asked = []
    for module in (iced, neighbours):
        monkeypatch.setattr(module, "nearest", lambda points, *a: asked.append(len(points)) or nearest(points, *a))
    votes, _ = easy_crowd(2, n_items=30)
    wanted = np.array([0, 9])
    candidates = [np.arange(15), np.arange(15, 30)]
    synthesise(Synthesis(), votes, cloud(30), np.ones(30), candidates, wanted, draws())
    assert asked == [4, 4]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_mode_is_the_slow_one(n_classes):
    """The most frequent label of a worker on the neighbours; ties go to the nearest; for every worker and point."""
    votes, _ = easy_crowd(n_classes, n_items=30, n_workers=6, per_item=6, accuracy=0.5)
    neighbours = draws(1).integers(0, 30, (40, 5))
    labels = synthetic_labels(votes, neighbours, "mode", draws())
    triples = list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    found = dict(zip(zip(labels.point.tolist(), labels.worker.tolist()), labels.label.tolist()))
    expected = {
        (p, w): slow_mode(slow_labels(triples, row, w)) for p, row in enumerate(neighbours.tolist()) for w in range(6)
    }
    assert found == expected  # all workers labelled everything, so that nothing is missing


def test_a_label_is_one_that_the_worker_gave_to_a_neighbour():
    """With both rules and sparse labels; without a labelled neighbour there is no label."""
    votes, _ = easy_crowd(4, n_items=40, n_workers=12, per_item=3, accuracy=0.5)
    neighbours = draws(1).integers(0, 40, (60, 5))
    triples = list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    for rule in ("mode", "sample"):
        labels = synthetic_labels(votes, neighbours, rule, draws())
        pairs = list(zip(labels.point.tolist(), labels.worker.tolist()))
        assert len(set(pairs)) == len(pairs) > 60
        for (point, worker), label in zip(pairs, labels.label.tolist()):
            assert label in slow_labels(triples, neighbours[point].tolist(), worker)


def test_samples_follow_the_frequencies():
    """A worker with label 1 on one of five neighbours gives label 1 to a fifth of the points; the mode to none."""
    votes = Annotations.from_matrix([[0], [0], [0], [0], [1]])
    neighbours = np.tile(np.arange(5), (4000, 1))
    assert synthetic_labels(votes, neighbours, "sample", draws()).label.mean() == pytest.approx(0.2, abs=0.03)
    assert not synthetic_labels(votes, neighbours, "mode", draws()).label.any()


def test_points_are_labelled_as_sparsely_as_items():
    """Three of thirty workers label an item, and about three a point."""
    votes, _ = easy_crowd(3, n_items=300, n_workers=30, per_item=3)
    neighbours = draws(1).integers(0, 300, (1000, 5))
    for rule in ("mode", "sample"):
        labels = synthetic_labels(votes, neighbours, rule, draws())
        assert len(labels.point) / 1000 == pytest.approx(3, abs=0.2)


def test_neighbours_without_labels_give_none():
    """And no neighbours, no labels."""
    votes = Annotations.from_matrix([[0, -1], [-1, -1]], classes=[0, 1])
    for nearby in (np.array([[1], [1]]), np.zeros((2, 0), int), np.zeros((0, 3), int)):
        labels = synthetic_labels(votes, nearby, "mode", draws())
        assert len(labels.point) == len(labels.worker) == len(labels.label) == 0
    assert synthetic_labels(votes, np.array([[0], [1]]), "mode", draws()).point.tolist() == [0]


def test_a_worker_may_label_an_item_twice():
    """Both labels count, and a point has at most one label of the worker."""
    votes = Annotations.from_triples([0, 0, 1], ["w"] * 3, [0, 1, 1], item_ids=[0, 1], duplicates="all")
    labels = synthetic_labels(votes, np.array([[0, 1]]), "mode", draws())
    assert labels.label.tolist() == [1] and labels.point.tolist() == [0]


def test_the_augmented_crowd_has_the_points_behind_the_items():
    """Real labels first and unchanged; each class gets the wanted number of points, from its own candidates."""
    votes, truth = easy_crowd(3, n_items=60, accuracy=1.0)
    centres = np.eye(3, dtype=np.float32)[truth] * 10 + cloud(60) * 0.1
    candidates = [np.flatnonzero(truth == k) for k in range(3)]
    made = synthesise(Synthesis(), votes, centres, np.ones(60), candidates, np.array([0, 7, 20]), draws())
    assert made.n_of_class.tolist() == [0, 7, 20]
    wider = augment(votes, made)
    assert wider.n_items == 87 and wider.n_workers == votes.n_workers and wider.n_classes == 3
    for name in ("item", "worker", "label"):
        np.testing.assert_array_equal(getattr(wider, name)[: votes.n_annotations], getattr(votes, name))
    point = wider.item[votes.n_annotations :] - 60
    np.testing.assert_array_equal(wider.label[votes.n_annotations :], np.where(point < 7, 1, 2))


ITEMS, ANSWER = np.array([0, 1, 2, 4, 5, 6, 7]), np.array([0, 0, 0, 0, 1, 1, 2])  # item 3 has no label
BY_VOTE = np.array([5, 1, 1])


@pytest.mark.parametrize(("size", "wanted"), [("balance", [0, 2, 3]), ("fixed", [0, 4, 4]), ("repeat", [0, 8, 4])])
def test_a_plan_by_hand(size, wanted):
    """All items of a class are candidates; up to the largest class now or by the vote, or R = 4 per candidate."""
    candidates, found = synthesis_plan(size, ITEMS, ANSWER, BY_VOTE)
    assert [own.tolist() for own in candidates] == [[0, 1, 2, 4], [5, 6], [7]]
    assert found.tolist() == wanted


def test_candidates_agree_where_two_do():
    """In a class with fewer than two agreeing items all are candidates; R is per candidate, not per item."""
    predicted = np.array([0, 0, 1, 0, 2, 1, 2, 2])
    candidates, found = synthesis_plan("repeat", ITEMS, ANSWER, BY_VOTE, predicted)
    assert [own.tolist() for own in candidates] == [[0, 1], [5, 6], [7]]
    assert found.tolist() == [0, 8, 4]
    predicted[6] = 1
    predicted[2] = 0
    assert [own.tolist() for own in synthesis_plan("fixed", ITEMS, ANSWER, BY_VOTE, predicted)[0]] == [
        [0, 1, 2],
        [5, 6],
        [7],
    ]


def test_repeats_are_rounded_and_need_a_vote():
    """R = round(largest / own) - 1; of a class without a vote there is no R."""
    assert synthesis_counts("repeat", np.array([8, 3, 0]), np.array([5, 5, 1]), np.array([5, 4, 1])).tolist() == [
        0,
        8,
        0,
    ]
    assert synthesis_counts("repeat", np.array([8, 6]), np.array([9, 5]), np.array([9, 5])).tolist() == [0, 0]


def test_labels_come_from_the_nearest_item_with_a_label():
    """An item without labels, however near, is not used."""
    votes = Annotations.from_matrix([[1, 1], [1, 1], [-1, -1], [0, 0]])
    where = np.array([[0.0], [1.0], [0.5], [9.0]], np.float32)
    made = synthesise(Synthesis(n_neighbors=1), votes, where, np.ones(4), [np.array([0, 1])], np.array([6]), draws())
    assert len(made.points) == 6 and np.all(np.abs(made.points - 0.5) < 0.25)  # nearer to the unlabelled item
    assert made.labels.point.tolist() == np.repeat(np.arange(6), 2).tolist() and set(made.labels.label.tolist()) == {1}


def test_nothing_to_make():
    """Without candidates the annotations are unchanged."""
    votes, _ = easy_crowd(2)
    none = [np.zeros(0, np.intp)] * 2
    made = synthesise(Synthesis(), votes, cloud(60), np.ones(60), none, np.array([5, 5]), draws())
    assert len(made.points) == 0 and augment(votes, made).n_annotations == votes.n_annotations
