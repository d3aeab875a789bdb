"""Metrics and series that a table has to ask for, by hand."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.reproduce.cells import Part, requested_figures, series_of
from manyhands.reproduce.tables import is_metric, is_share

VOTES = Annotations.from_matrix([[0, 1, -1], [0, 0, -1], [1, -1, -1], [0, 1, -1]])
CLASSES = np.array([0, 1])


class Fitted:
    """Predicts class 1 with the probability that is its only feature."""

    classes_ = CLASSES

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def column(*values):
    return np.array(values)[:, None]


def test_recall_of_a_class_and_accuracy_on_training_items():
    part = Part(column(0.1, 0.9, 0.9, 0.2), VOTES, np.array([0, 0, 1, -1]), column(0.9, 0.8, 0.1), np.array([1, 0, 1]))
    names = ["recall.0", "recall.1", "recall.2", "training_accuracy"]
    assert requested_figures(Fitted(), part, names) == {
        "recall.0": 0.0,
        "recall.1": 0.5,
        "training_accuracy": pytest.approx(2 / 3),
    }
    assert requested_figures(Fitted(), part, ["accuracy"]) == {}
    without = Part(part.X, VOTES, None, part.X_test, part.y_test)
    assert requested_figures(Fitted(), without, names).keys() == {"recall.0", "recall.1"}


def test_names_of_requested_metrics():
    assert is_metric("recall.opencountry") and is_metric("recall.7") and is_metric("training_accuracy")
    assert is_share("recall.7") and is_share("training_accuracy") and not is_metric("recall.")


def test_accuracy_in_groups_by_entropy():
    """Twenty items: two in each group, the most certain first; the most uncertain are wrong."""
    sure = np.linspace(1.0, 0.51, 20)
    truth = (np.arange(20) < 15).astype(int)
    order = np.random.default_rng(0).permutation(20)
    part = Part(None, VOTES, None, sure[order][:, None], truth[order])
    found = series_of(Fitted(), part, ["accuracy.by_entropy"])["accuracy.by_entropy"]
    assert found == [1, 1, 1, 1, 1, 1, 1, 0.5, 0, 0]
    assert series_of(Fitted(), Part(None, VOTES, None), ["accuracy.by_entropy"]) == {"accuracy.by_entropy": None}


def test_labels_and_accuracy_of_the_workers():
    """Worker 2 has no label; the last item has no known truth."""
    part = Part(None, VOTES, np.array([0, 0, 0, -1]))
    found = series_of(Fitted(), part, ["workers.n_labels", "workers.accuracy"])
    assert found == {"workers.n_labels": [4, 3], "workers.accuracy": [pytest.approx(2 / 3, abs=1e-5), 0.5]}
    assert series_of(Fitted(), Part(None, VOTES, None), ["workers.accuracy"]) == {"workers.accuracy": None}
