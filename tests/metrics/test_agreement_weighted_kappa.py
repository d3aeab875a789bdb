"""Weighted kappa against plain loops and known formulas."""

import itertools

import numpy as np
import pytest

from manyhands import Annotations, metrics
from manyhands.classes import order_annotations
from manyhands.exceptions import AnnotationError
from manyhands.simulate import make_ordinal_crowd

POWER = {"linear": 1, "quadratic": 2}
CROWD = make_ordinal_crowd(40, 8, 4, labels_per_item=3, random_state=2).annotations


def slow_crowd(votes, weights):
    """Mean distance of two labels of an item, over that of two labels drawn from the class frequencies."""
    by_item = [votes.label[votes.item == i] for i in range(votes.n_items)]
    by_item = [labels for labels in by_item if len(labels) > 1]
    share = np.mean([np.bincount(labels, minlength=votes.n_classes) / len(labels) for labels in by_item], axis=0)
    distance = np.abs(np.subtract.outer(range(votes.n_classes), range(votes.n_classes))) ** POWER[weights]
    observed = np.mean([np.mean([distance[a, b] for a, b in itertools.permutations(labels, 2)]) for labels in by_item])
    return 1 - observed / (share @ distance @ share)


def slow_worker(votes, worker, weights):
    """Mean distance to the others on the same item, over that to the others on any of the worker's items."""
    own, others = [], []
    for i, w, label in zip(votes.item, votes.worker, votes.label):
        met = votes.label[(votes.item == i) & (votes.worker != worker)]
        if w == worker and len(met):
            own.append(label)
            others.append(met)
    power = POWER[weights]
    observed = np.mean([np.mean(np.abs(a - met) ** power) for a, met in zip(own, others)])
    return 1 - observed / np.mean([np.mean(np.abs(a - met) ** power) for a in own for met in others])


@pytest.mark.parametrize("weights", POWER)
def test_crowd_and_workers_equal_plain_loops(weights):
    """Also where classes are coded in another order."""
    found = metrics.weighted_kappa(CROWD, weights, n_bootstrap=50)
    assert found.value == pytest.approx(slow_crowd(CROWD, weights)) and found.low < found.value < found.high
    each = metrics.worker_weighted_kappa(CROWD, weights)
    np.testing.assert_allclose(each, [slow_worker(CROWD, w, weights) for w in range(CROWD.n_workers)])
    names = np.array(["zero", "one", "two", "three"])
    named = Annotations.from_triples(CROWD.item, CROWD.worker, names[CROWD.label])
    assert metrics.weighted_kappa(named, weights, names, n_bootstrap=0).value == pytest.approx(found.value)
    ordered = order_annotations(named, names.tolist())
    np.testing.assert_allclose(metrics.worker_weighted_kappa(ordered, weights), each)


def test_pairs_equal_the_formula_of_cohen():
    """1 - sum of distance times joint share, over that of the product of the two workers' shares."""
    pairs = metrics.pair_agreement(CROWD, min_shared=2, order=range(4))
    for n, (a, b) in enumerate(zip(pairs.a, pairs.b)):
        labels = {w: dict(zip(CROWD.item[CROWD.worker == w], CROWD.label[CROWD.worker == w])) for w in (a, b)}
        shared = sorted(labels[a].keys() & labels[b].keys())
        joint = np.zeros((4, 4))
        for i in shared:
            joint[labels[a][i], labels[b][i]] += 1 / len(shared)
        for weights, found in (("linear", pairs.linear_kappa), ("quadratic", pairs.quadratic_kappa)):
            distance = np.abs(np.subtract.outer(range(4), range(4))) ** POWER[weights]
            expected = (distance * np.outer(joint.sum(1), joint.sum(0))).sum()
            if expected > 0:
                assert found[n] == pytest.approx(1 - (distance * joint).sum() / expected)
            else:
                assert np.isnan(found[n])
    assert metrics.pair_agreement(CROWD).linear_kappa is None


def test_two_classes_have_one_kappa():
    """All weights equal Fleiss' kappa, and no order is needed."""
    votes = Annotations.from_triples(CROWD.item, CROWD.worker, np.array(["no", "yes"])[CROWD.label // 2])
    values = [metrics.weighted_kappa(votes, weights, n_bootstrap=0).value for weights in POWER]
    assert values == pytest.approx([metrics.fleiss_kappa(votes, n_bootstrap=0).value] * 2)


def test_undefined_values_are_nan():
    """One class only, a worker without items in common; and classes without an order are refused."""
    same = Annotations.from_matrix([[1, 1, -1], [1, 1, -1], [-1, -1, 1]])
    assert np.isnan(metrics.weighted_kappa(same).value) and np.isnan(metrics.worker_weighted_kappa(same)).all()
    with pytest.raises(AnnotationError, match="no known order"):
        metrics.weighted_kappa(Annotations.from_matrix([["cat", "dog"], ["owl", "owl"]]))
