"""Imbalanced and sparse crowds: sizes, labels, workers."""

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.simulate import class_sizes, label_sparsely, long_tail_shares, make_long_tail


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("ratio", [1, 10, 250.0])
def test_sizes_fall_by_one_factor(n_classes, ratio):
    """From the first class, which is `ratio` times the last."""
    share = long_tail_shares(n_classes, ratio)
    assert share.sum() == pytest.approx(1) and share[0] / share[-1] == pytest.approx(ratio)
    assert np.allclose(share[1:] / share[:-1], ratio ** (-1 / (n_classes - 1)))


@pytest.mark.parametrize("n", [3, 4, 7, 100, 1001])
@pytest.mark.parametrize("share", [[1, 1, 1], [1000, 10, 1], [1, 2, 1000], [0.999999, 1e-9, 1e-9]])
def test_shares_become_whole_items(n, share):
    """All of them, each class at least one, none far from its share unless it was lifted to one."""
    parts = class_sizes(n, share)
    exact = n * np.array(share) / np.sum(share)
    assert parts.sum() == n and parts.min() >= 1
    assert np.all(np.abs(parts - exact) < 3)


def test_more_classes_than_items_are_refused():
    """One sentence."""
    with pytest.raises(ParameterError, match="2 items are too few for 3 classes"):
        class_sizes(2, [1, 1, 1])


def test_sizes_and_numbers_of_labels():
    """Sizes to the item; 2.5 labels are two or three; the test part is balanced or not."""
    data = make_long_tail(1110, 3, 100, 20, n_test=90, n_features=4, random_state=0)
    assert np.bincount(data.crowd.truth).tolist() == [1000, 100, 10]
    assert data.X.shape == (1110, 4) and data.X_test.shape == (90, 4)
    votes = data.crowd.annotations
    assert np.bincount(votes.n_labels).tolist() == [0, 0, 555, 555] and votes.n_workers == 20
    assert np.bincount(data.truth_test).tolist() == [30, 30, 30]
    same = make_long_tail(1110, 3, 100, 20, n_test=111, n_features=4, balanced_test=False, random_state=0)
    assert np.bincount(same.truth_test).tolist() == [100, 10, 1]


def test_a_seed_determines_the_data():
    """Features, labels and test items."""
    first, again, other = (make_long_tail(200, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.X, again.X) and np.array_equal(first.X_test, again.X_test)
    assert first.crowd.annotations == again.crowd.annotations != other.crowd.annotations
    assert not np.array_equal(first.X_test, other.X_test)


def test_classes_lie_around_centres_that_both_parts_share():
    """Far apart, the nearest centre is right in both."""
    data = make_long_tail(500, 4, separation=50.0, random_state=0)
    centres = np.stack([data.X[data.crowd.truth == k].mean(0) for k in range(4)])
    nearest = np.argmin(((data.X_test[:, None] - centres) ** 2).sum(-1), axis=1)
    assert np.array_equal(nearest, data.truth_test)


def test_workers_differ_in_accuracy_and_activity():
    """Accuracies around .69; rows of a confusion matrix differ; the most active workers give most of the labels."""
    crowd = label_sparsely(np.tile([0, 1, 2, 3], 2000), 4, 400, random_state=0)
    diagonal = np.diagonal(crowd.confusion, axis1=1, axis2=2)
    assert np.mean(diagonal) == pytest.approx(0.69, abs=0.02) and diagonal.mean(1).std() > 0.12
    assert np.ptp(diagonal, axis=1).mean() > 0.1
    busy = np.sort(np.bincount(crowd.annotations.worker, minlength=400))[::-1]
    assert busy[:80].sum() > 0.45 * busy.sum()
    votes = crowd.annotations
    assert np.mean(votes.label == crowd.truth[votes.item]) == pytest.approx(0.69, abs=0.04)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"ratio": 0.5}, "`ratio` of a long tail"),
        ({"n_classes": 1}, "`n_classes` of a long tail"),
        ({"separation": 0}, "`separation` of make_long_tail"),
        ({"balanced_test": 1}, "`balanced_test` of make_long_tail"),
        ({"n_workers": 0}, "`n_workers` of label_sparsely"),
        ({"labels_per_item": 60}, "`labels_per_item`"),
        ({"n_items": 5}, "5 items are too few for 8 classes"),
    ],
)
def test_impossible_parameters_are_refused(parameters, message):
    """One sentence that names the parameter."""
    with pytest.raises(ParameterError, match=message):
        make_long_tail(**parameters)
