"""The data of a regression within EM: which items are used, and the number of starts."""

import numpy as np
import pytest

from manyhands import Annotations, DifficultyEM
from manyhands.classifiers import Raykar
from manyhands.classifiers.network import TrainingData
from manyhands.classifiers.raykar import regression_data
from manyhands.em.e_step import initial_posterior
from manyhands.features import as_rows

X = np.arange(10.0).reshape(5, 2) ** 2
VOTES = Annotations.from_matrix([[0, 1], [-1, -1], [1, 1], [-1, -1], [0, -1]], missing=-1)


def data_of(gold, method):
    return regression_data(TrainingData(as_rows(X), VOTES, gold), X, method.ridge, standardise=method.standardise)


def test_items_without_labels_and_gold_are_left_out():
    """Items with gold alone are used; features, labels and gold are those of the same items."""
    assert data_of(None, Raykar()).items.tolist() == [0, 2, 4]
    known = data_of(np.array([-1, -1, -1, 1, 0], np.int32), Raykar())
    assert known.items.tolist() == [0, 2, 3, 4] and known.gold.tolist() == [-1, -1, 1, 0]
    assert known.votes.n_labels.tolist() == [2, 2, 0, 1]
    np.testing.assert_allclose(known.rows.mean, X[[0, 2, 3, 4]].mean(axis=0))


@pytest.mark.parametrize("method", [Raykar, DifficultyEM, DifficultyEM.plus])
def test_n_init_is_the_number_of_starts(method):
    """The first from the vote shares, all others random; a seed gives the same ones."""
    methods = [method(n_init=n, random_state=3) for n in (1, 4, 4)]
    one, four, again = (data_of(None, each).starts(np.ones((2, 2)), each.n_init, 3) for each in methods)
    assert len(one) == 1 and len(np.unique(four, axis=0)) == 4
    np.testing.assert_array_equal(four, again)
    np.testing.assert_array_equal(four[0], initial_posterior(data_of(None, method()).votes, None))
