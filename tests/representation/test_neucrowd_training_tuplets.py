"""Safe items, the pool, and the tuplets drawn from it: against plain loops, and properties of every tuplet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.representation import neucrowd_training
from manyhands.representation.neucrowd_training import RIVALS, Pool, choose_pool, safe_items
from reference.slow_tuplets import slow_pool, slow_safe
from strategies import seeds


def items(seed, n_items, n_classes):
    """Points with overlapping classes, with confidences in quarters, so that sums are exact and ties frequent."""
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 1, (n_items, 2)).astype(np.float32)
    return points, rng.integers(0, n_classes, n_items), rng.integers(0, 5, n_items) / 4


@pytest.mark.parametrize("rival", RIVALS)
@given(seeds(), st.integers(1, 12), st.integers(1, 4), st.integers(1, 15), st.sampled_from([0.0, 0.25, 1.0]))
def test_safe_items_are_their_slow_twin(rival, seed, n_items, n_classes, k, margin):
    """With more neighbours than there are items, with one class, and with margins that are met exactly."""
    points, code, assurance = items(seed, n_items, n_classes)
    expected = slow_safe(points.tolist(), code.tolist(), assurance.tolist(), k, margin, rival)
    assert safe_items(points, code, assurance, k, margin=margin, rival=rival).tolist() == expected


def test_safe_items_by_hand():
    """All others are neighbours: items of class 0 have support 1 against 1/4 + 1/2, or against 1/2."""
    points, code = np.arange(4, dtype=np.float32)[:, None], np.array([0, 0, 1, 2])
    assurance = np.array([1.0, 1.0, 0.25, 0.5])
    for rival, ahead in (("all", 0.25), ("strongest", 0.5)):
        found = [
            safe_items(points, code, assurance, 9, margin=margin, rival=rival).tolist() for margin in (0, ahead - 0.01)
        ]
        assert found == [[True, True, False, False]] * 2
        assert not safe_items(points, code, assurance, 9, margin=ahead, rival=rival).any()  # ahead, but not by more


@given(seeds(), st.integers(4, 14), st.integers(1, 15))
def test_safe_items_by_the_nearest_of_either_sort(seed, n_items, k):
    """The other reading of Definition 3: the k nearest of the own class against the k nearest of other classes."""
    points, _, assurance = items(seed, n_items, 3)
    code, k, expected = np.arange(n_items) % 2, min(k, n_items // 2 - 1), []
    for i in range(n_items):
        order = np.argsort(np.square(points - points[i]).sum(axis=1), kind="stable")
        order = order[order != i]
        own, others = order[code[order] == code[i]][:k], order[code[order] != code[i]][:k]
        expected.append(bool(assurance[own].sum() > assurance[others].sum()))
    assert safe_items(points, code, assurance, k, neighbourhood="each").tolist() == expected


def test_with_an_item_alone_in_its_class_none_is_safe_by_either_sort():
    points = np.arange(3, dtype=np.float32)[:, None]
    assert not safe_items(points, np.array([0, 0, 1]), np.ones(3), 2, neighbourhood="each").any()


def test_a_tie_is_not_safe():
    """Equal support for and against, no confidence, or no neighbour: no item is safe."""
    points = np.arange(3, dtype=np.float32)[:, None]
    assert safe_items(points, np.array([0, 0, 1]), np.array([1.0, 0.5, 0.5]), 2).tolist() == [False, True, False]
    assert not safe_items(points, np.zeros(3, int), np.zeros(3), 2).any()
    assert safe_items(points[:1], np.zeros(1, int), np.ones(1), 5).tolist() == [False]


def test_a_tie_up_to_rounding_is_not_safe():
    """A fifth and a tenth for its class weigh three tenths against it, though as floats they sum to more."""
    embedding = np.array([[0.0], [0.1], [0.2], [0.3]], np.float32)
    assert 0.2 + 0.1 > 0.3
    assert not safe_items(embedding, np.array([0, 0, 0, 1]), np.array([1.0, 0.2, 0.1, 0.3]), 3)[0]


def test_many_items_are_processed_in_blocks(monkeypatch):
    """With the same result."""
    rng = np.random.default_rng(0)
    given = rng.normal(size=(40, 2)).astype(np.float32), rng.integers(3, size=40), rng.random(40)
    whole = safe_items(*given, 5)
    monkeypatch.setattr(neucrowd_training, "_BLOCK", 7)
    np.testing.assert_array_equal(safe_items(*given, 5), whole)
    assert 0 < whole.mean() < 1


def test_the_nearest_count_and_the_item_itself_does_not():
    """Two groups of two, with items of the other class far away: only the nearest counts."""
    points = np.array([[0.0], [1.0], [10.0], [11.0]], np.float32)
    assert safe_items(points, np.array([0, 0, 1, 1]), np.ones(4), 1).all()
    assert not safe_items(points, np.array([0, 1, 0, 1]), np.ones(4), 1).any()
    together = np.zeros((4, 1), np.float32)  # of equal points an item is still not its own neighbour
    assert safe_items(together, np.array([0, 0, 0, 1]), np.ones(4), 3).tolist() == [True, True, True, False]


def test_planted_items_of_the_other_class_are_not_safe():
    """Two separated clouds with a tenth of wrong classes of low confidence: these are unsafe, the others safe."""
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    points = (rng.normal(0, 1, (200, 4)) + 6 * truth[:, None]).astype(np.float32)
    planted = np.arange(200) < 20
    safe = safe_items(points, np.where(planted, 1 - truth, truth), np.where(planted, 0.2, 0.9), 11)
    assert not safe[planted].any() and safe[~planted].all()


@given(seeds(), st.integers(1, 30), st.sampled_from([0.0, 0.02, 0.5, 1.0]), st.integers(0, 6))
def test_the_pool_has_all_safe_items_and_some_others(seed, n_items, share, least):
    """The share of unsafe ones, rounded up, and all items of a class that would have too few."""
    rng = np.random.default_rng(seed)
    code, safe = rng.integers(0, 3, n_items), rng.random(n_items) < 0.6
    before = safe.copy()
    pool, again = (choose_pool(code, safe, share, least, np.random.default_rng(seed)) for _ in range(2))
    assert pool.tolist() == again.tolist() and safe.tolist() == before.tolist()
    drawn = np.flatnonzero(choose_pool(code, safe, share, 0, np.random.default_rng(seed)) & ~safe)
    assert len(drawn) == int(np.ceil(share * (~safe).sum())) and pool[safe].all()
    assert pool.tolist() == slow_pool(code.tolist(), safe.tolist(), set(drawn.tolist()), least)


def test_each_unsafe_item_has_the_same_chance():
    """Over many draws, a quarter of the pools has any one of them."""
    safe = np.arange(12) < 4
    rng = np.random.default_rng(0)
    share = np.mean([choose_pool(np.zeros(12, int), safe, 0.25, 0, rng) for _ in range(2000)], axis=0)
    assert (share[:4] == 1).all() and np.abs(share[4:] - 0.25).max() < 0.04


def test_a_class_without_enough_items_keeps_all_of_its():
    """Two of class 1 are safe: enough for two, too few for three; other classes are as before."""
    code, safe = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([1, 1, 1, 0, 1, 1, 0, 0], bool)
    for least, expected in ((2, safe), (3, [True] * 3 + [False] + [True] * 4)):
        assert choose_pool(code, safe, 0.0, least, np.random.default_rng(0)).tolist() == list(expected)


@given(seeds(), st.integers(2, 40), st.integers(1, 4), st.integers(3, 9))
def test_every_tuplet_is_one(seed, n_items, n_classes, n_tuple):
    """Anchor and another item of the class, then items of other classes; all of them from the pool, for any n."""
    rng = np.random.default_rng(seed)
    code, chosen = rng.integers(0, n_classes, n_items), rng.random(n_items) < 0.7
    chosen[0] = True
    pool = Pool.of(code, chosen)
    size = np.bincount(code[chosen], minlength=n_classes)
    pairs = np.flatnonzero(size > 1)
    assert pool.anchor_codes().tolist() == (pairs if len(pairs) else np.flatnonzero(size)).tolist()
    for own in np.flatnonzero(size):
        drawn = pool.draw(int(own), 50, n_tuple - 2, rng)
        alone = (np.flatnonzero(size) == own).all()
        assert drawn.shape == (50, 2 if alone else n_tuple) and np.issubdtype(drawn.dtype, np.integer)
        assert chosen[drawn].all()
        assert (code[drawn[:, :2]] == own).all() and (code[drawn[:, 2:]] != own).all()
        assert (drawn[:, 0] != drawn[:, 1]).all() == (size[own] > 1)


def test_a_class_of_one_item_is_its_own_positive():
    """Where there is another class its item is a negative, and where there is none there are no negatives."""
    pool = Pool.of(np.array([0, 1]), np.ones(2, bool))
    rng = np.random.default_rng(0)
    assert pool.anchor_codes().tolist() == [0, 1] and pool.draw(1, 3, 2, rng).tolist() == [[1, 1, 0, 0]] * 3
    assert Pool.of(np.zeros(1, int), np.ones(1, bool)).draw(0, 2, 3, rng).tolist() == [[0, 0]] * 2
    assert Pool.of(np.array([0, 1, 1]), np.ones(3, bool)).anchor_codes().tolist() == [1]
    assert Pool.of(np.zeros(0, int), np.zeros(0, bool)).anchor_codes().tolist() == []


def test_classes_of_negatives_are_equally_frequent():
    """However many items a class has; one without any item in the pool is never drawn."""
    code = np.repeat([0, 1, 2, 3], [30, 300, 5, 40])
    drawn = Pool.of(code, code != 3).draw(0, 2000, 3, np.random.default_rng(0))
    assert np.abs(np.bincount(code[drawn[:, 2:]].ravel(), minlength=4) / 6000 - [0, 0.5, 0.5, 0]).max() < 0.03


def test_items_of_a_class_are_equally_frequent():
    """As anchor, as positive and as negative; each pair of anchor and positive is as frequent as any other."""
    code = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    drawn = Pool.of(code, np.ones(8, bool)).draw(1, 6000, 2, np.random.default_rng(0))
    for place in range(4):
        of = 1 if place < 2 else 0
        share = np.bincount(drawn[:, place], minlength=8)[code == of] / 6000
        assert np.abs(share - 0.25).max() < 0.025
    pairs = np.unique(drawn[:, :2], axis=0, return_counts=True)[1] / 6000
    assert len(pairs) == 12 and np.abs(pairs - 1 / 12).max() < 0.02


def test_one_seed_gives_the_same_tuplets():
    """Another seed gives others."""
    pool = Pool.of(np.arange(30) % 3, np.ones(30, bool))
    first, again, other = (pool.draw(2, 9, 3, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1))
    assert first == again != other
