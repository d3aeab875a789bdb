"""Recall of each class: by hand, per class, with the evidence behind it."""

import math

import numpy as np
import pytest

from manyhands import registry
from manyhands.scorecards.accuracy import estimate_recall
from manyhands.simulate import make_crowd
from small_scorecards import on_gold, scored


def test_recall_on_gold_by_hand():
    """Thirty cats all right, thirty dogs half right: two recalls with the interval of their own items."""
    card = on_gold(["cat"] * 30 + ["dog"] * 15 + ["cat"] * 15, ["cat"] * 30 + ["dog"] * 30)
    cat, dog = card.recall["cat"], card.recall["dog"]
    assert cat[3] == dog[3] == pytest.approx(30)
    assert cat[0] > 0.85 and 0.4 < dog[0] < 0.65
    assert dog[1] < 0.5 < dog[2] < cat[0] and cat[1] < cat[0] < cat[2]


def test_estimate_by_plain_loops():
    """The prior of every worker and class, and the strength with the largest marginal likelihood."""
    rng = np.random.default_rng(0)
    counts, accuracy = rng.uniform(0, 8, (5, 3, 3)), rng.uniform(0.4, 0.9, 5)
    right = [[counts[w, k, k] for k in range(3)] for w in range(5)]
    n_items = [[counts[w, k].sum() for k in range(3)] for w in range(5)]

    def logit(p):
        return math.log(p / (1 - p))

    overall = (sum(map(sum, right)) + 1) / (sum(map(sum, n_items)) + 2)
    prior = np.empty((5, 3))
    for w in range(5):
        for k in range(3):
            by_class = (sum(row[k] for row in right) + 1) / (sum(row[k] for row in n_items) + 2)
            prior[w, k] = 1 / (1 + math.exp(-(logit(by_class) + logit(accuracy[w]) - logit(overall))))

    def log_beta(a, b):
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def evidence(strength):
        total = 0.0
        for w in range(5):
            for k in range(3):
                a, b = strength * prior[w, k], strength * (1 - prior[w, k])
                total += log_beta(a + right[w][k], b + n_items[w][k] - right[w][k]) - log_beta(a, b)
        return total

    strength = max((2, 4, 8, 16, 32, 64, 128), key=evidence)
    found = estimate_recall(counts, accuracy)
    for w in range(5):
        for k in range(3):
            mean = (right[w][k] + strength * prior[w, k]) / (n_items[w][k] + strength)
            assert found.mean[w, k] == pytest.approx(mean)
    np.testing.assert_allclose(found.n_items, n_items)


def test_recalls_of_a_worker_with_few_labels_differ_by_class():
    """A crowd that confuses two of three classes: even for 15 labels each, no worker has one number for all classes."""
    confusion = np.tile([[0.95, 0.03, 0.02], [0.05, 0.6, 0.35], [0.05, 0.35, 0.6]], (40, 1, 1))
    from manyhands.simulate import label_items, make_truth

    crowd = label_items(make_truth(200, 3, random_state=0), confusion, labels_per_item=3, random_state=1)
    cards = scored(crowd.annotations)
    assert np.all(np.ptp(cards.recall, axis=1) > 0.02)
    assert np.mean(cards.recall[:, 0] > cards.recall[:, 1:].max(axis=1)) > 0.9
    np.testing.assert_allclose(cards.recall_items.sum(axis=1), cards.n_checked)


def test_intervals_of_the_recall_cover():
    """Own confusion matrices: nine of ten intervals and more contain the true recall."""
    crowd = make_crowd(600, 20, 3, 5, kind="confusion", accuracy=(0.6, 0.95), random_state=0)
    cards = scored(crowd.annotations)
    true = np.diagonal(crowd.confusion, axis1=1, axis2=2)
    assert np.mean((cards.recall_low <= true) & (true <= cards.recall_high)) >= 0.85


def test_any_method_has_recalls():
    """The vote has no confusion matrices; its scorecards have recalls all the same."""
    from manyhands import worker_frame

    crowd = make_crowd(60, 8, 3, 3, random_state=0)
    table = worker_frame(registry.create("majority-vote").fit(crowd.annotations))
    assert {"recall_0", "items_0", "recall_2", "items_2"} <= set(table.columns)
