"""Mini-batches of P classes with K items each, and tuplets in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.nn.batches import ClassBatches, draw_tuplets
from strategies import seeds


def batches(sizes, batch_size, seed=0):
    """Classes of these sizes, on items numbered from 100 in a random order."""
    rng = np.random.default_rng(seed)
    target = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    items = 100 + np.arange(len(target))
    return ClassBatches(items, target, batch_size, rng), dict(zip(items.tolist(), target.tolist()))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any), st.integers(1, 40), seeds())
def test_classes_are_equally_frequent(sizes, batch_size, seed):
    """P classes, K items of each with their class; an item comes twice only where its class has fewer than K."""
    made, class_of = batches(sizes, batch_size, seed)
    found = list(made)
    assert len(found) == len(made) >= 1
    for batch in found:
        target = batch.target.numpy().reshape(batch.n_classes, batch.n_each)
        assert (target == target[:, :1]).all() and len(set(target[:, 0])) == batch.n_classes
        assert [class_of[item] for item in batch.item.tolist()] == batch.target.tolist()
        for k, row in zip(target[:, 0], batch.item.reshape(batch.n_classes, batch.n_each)):
            assert len(set(row)) == min(batch.n_each, sizes[k])


def test_a_batch_holds_some_of_many_classes():
    """A mini-batch of 64 holds 8 of 20 classes with 8 items each, or all of three classes with 21 items each."""
    for n_classes, expected in ((20, (8, 8)), (3, (3, 21)), (2, (2, 32)), (1, (1, 64))):
        made, _ = batches([30] * n_classes, 64)
        assert (made.n_classes, made.n_each) == expected


def test_an_epoch_uses_every_item_of_equal_classes_once():
    """The next epoch has another order."""
    made, class_of = batches([16, 16], 8)
    first, second = (np.concatenate([batch.item for batch in made]) for _ in range(2))
    assert sorted(first.tolist()) == sorted(second.tolist()) == sorted(class_of)
    assert not np.array_equal(first, second)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(2, 40), st.integers(1, 4), seeds())
def test_tuplets_have_the_right_classes(sizes, batch_size, n_negatives, seed):
    """A positive is another row of the anchor's class, negatives are rows of other classes."""
    made, _ = batches(sizes, batch_size, seed)
    batch = next(iter(made))
    positive, negative = draw_tuplets(batch, n_negatives, np.random.default_rng(seed))
    target = batch.target.numpy()
    assert (target[positive] == target).all() and (positive != np.arange(len(target))).all()
    assert negative.shape == (len(target), n_negatives if len(sizes) > 1 else 0)
    assert (target[negative] != target[:, None]).all()


def test_tuplets_are_drawn_uniformly():
    """All positives of a class and all rows of other classes are drawn, about equally often."""
    made, _ = batches([8, 8, 8], 24)
    batch, rng = next(iter(made)), np.random.default_rng(0)
    drawn = [draw_tuplets(batch, 2, rng) for _ in range(700)]
    positives = np.bincount([positive[0] for positive, _ in drawn], minlength=24)
    negatives = np.bincount(np.concatenate([negative[0] for _, negative in drawn]), minlength=24)
    assert positives[1:8] == pytest.approx(np.full(7, 100), abs=40) and positives[0] == positives[8:].sum() == 0
    assert negatives[8:] == pytest.approx(np.full(16, 87.5), abs=40) and negatives[:8].sum() == 0
