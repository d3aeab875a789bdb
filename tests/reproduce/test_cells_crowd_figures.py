"""Figures of a crowd itself, against plain loops."""

import statistics

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.reproduce.cells import Part, crowd_figures
from manyhands.reproduce.tables import figure, is_metric, is_share

VOTES = Annotations.from_matrix([[0, 1, -1], [1, 1, 0], [2, -1, -1], [0, 0, 2]])


def kappa_by_hand():
    """Fleiss' kappa over the items with two labels or more, with the mean vote shares of these as frequencies."""
    pairs, shares = [], []
    for item in range(4):
        labels = [int(k) for k, i in zip(VOTES.label, VOTES.item) if i == item]
        if len(labels) > 1:
            equal = sum(a == b for n, a in enumerate(labels) for m, b in enumerate(labels) if n != m)
            pairs.append(equal / (len(labels) * (len(labels) - 1)))
            shares.append([labels.count(k) / len(labels) for k in range(3)])
    chance = sum(statistics.mean(column) ** 2 for column in zip(*shares))
    return (statistics.mean(pairs) - chance) / (1 - chance)


def test_the_figures_equal_plain_loops():
    """The third item has no known truth; the third worker is right once in two labels."""
    part = Part(np.zeros((4, 2, 3)), VOTES, np.array([0, 1, -1, 2]))
    found = crowd_figures(part)
    truth, right = {0: 0, 1: 1, 3: 2}, {0: [], 1: [], 2: []}
    for item, worker, label in zip(VOTES.item.tolist(), VOTES.worker.tolist(), VOTES.label.tolist()):
        if item in truth:
            right[worker].append(label == truth[item])
    accuracy = [sum(values) / len(values) for values in right.values()]
    shares = [sum(VOTES.label == k) / 9 for k in range(3)]
    expected = {
        "items": 4,
        "workers": 3,
        "features": 6,
        "kappa": kappa_by_hand(),
        "last_class_share": 1 / 3,
        "labels_per_item": 9 / 4,
        "items_per_worker": 3,
        "annotated_spread": statistics.pstdev(shares),
        "annotated_imbalance": max(shares) - min(shares),
        "truth_spread": 0,
        "truth_imbalance": 0,
        "worker_accuracy": statistics.mean(accuracy),
        "worker_accuracy_spread": statistics.pstdev(accuracy),
    }
    assert found == pytest.approx({f"crowd.{name}": value for name, value in expected.items()})
    assert all(is_metric(name) for name in found)


def test_classes_that_are_text_and_workers_without_known_items():
    votes = Annotations.from_triples(["a", "a", "b"], ["u", "v", "w"], ["yes", "no", "no"])
    found = crowd_figures(Part(None, votes, np.array(["yes", None], object)))
    assert found["crowd.worker_accuracy"] == 0.5 and found["crowd.worker_accuracy_spread"] == 0.5
    assert found["crowd.truth_imbalance"] == 1


def test_without_truth_only_the_labels_are_described():
    found = crowd_figures(Part(None, VOTES, None))
    of_labels = ("labels_per_item", "items_per_worker", "annotated_spread", "annotated_imbalance", "kappa")
    assert set(found) == {f"crowd.{n}" for n in (*of_labels, "items", "workers", "features")}
    assert np.isnan(found["crowd.features"])


def test_spreads_are_per_cent_with_two_digits():
    """1.85 % is the spread of LabelMe's classes; an imbalance ratio is no per cent."""
    assert is_share("crowd.truth_spread") and is_share("round.combined_spread") and is_share("crowd.worker_accuracy")
    assert is_share("crowd.kappa") and is_share("crowd.last_class_share") and not is_share("crowd.workers")
    assert not is_share("crowd.truth_imbalance") and not is_share("crowd.labels_per_item")
    assert figure(1.849, None, "crowd.truth_spread", points=True) == "1.85"
