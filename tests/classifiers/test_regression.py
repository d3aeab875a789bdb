"""What teaches a regression within EM: which items, and as many starts as were asked for."""

import numpy as np
import pytest

from manyhands import Annotations, DifficultyEM, Raykar
from manyhands.classifiers.base import TrainingData
from manyhands.classifiers.regression import regression_data
from manyhands.em.classifier_em import initial_posterior
from manyhands.features import as_rows

X = np.arange(10.0).reshape(5, 2) ** 2
VOTES = Annotations.from_matrix([[0, 1], [-1, -1], [1, 1], [-1, -1], [0, -1]], missing=-1)


def lesson(gold, method):
    return regression_data(TrainingData(as_rows(X), VOTES, gold), X, method)


def test_items_without_labels_and_gold_teach_nothing():
    """Gold alone makes an item worth its place; rows, votes and gold are those of the same items."""
    assert lesson(None, Raykar()).items.tolist() == [0, 2, 4]
    known = lesson(np.array([-1, -1, -1, 1, 0], np.int32), Raykar())
    assert known.items.tolist() == [0, 2, 3, 4] and known.gold.tolist() == [-1, -1, 1, 0]
    assert known.votes.n_labels.tolist() == [2, 2, 0, 1]
    np.testing.assert_allclose(known.rows.mean, X[[0, 2, 3, 4]].mean(axis=0))


@pytest.mark.parametrize("method", [Raykar, DifficultyEM])
def test_there_are_as_many_starts_as_were_asked_for(method):
    """The first from the votes, all others drawn, and the same ones from the same seed."""
    methods = [method(n_init=n, random_state=3) for n in (1, 4, 4)]
    one, four, again = (lesson(None, each).starts(np.ones((2, 2)), each) for each in methods)
    assert len(one) == 1 and len(np.unique(four, axis=0)) == 4
    np.testing.assert_array_equal(four, again)
    np.testing.assert_array_equal(four[0], initial_posterior(lesson(None, method()).votes, None))
