"""Simulated crowds with features: sizes, seeds, and that the labels are about the right items."""

import numpy as np
import pytest

from manyhands.datasets import make_blobs, make_breast_cancer, make_digits, make_iris, make_wine
from manyhands.exceptions import ParameterError

BUNDLED = {make_digits: (1797, 10), make_iris: (150, 3), make_wine: (178, 3), make_breast_cancer: (569, 2)}


@pytest.mark.parametrize("make", BUNDLED)
def test_every_item_is_labelled_or_kept_for_testing(make):
    n, n_classes = BUNDLED[make]
    data = make(labels_per_item=2, random_state=0)
    assert len(data.X) == len(data.y_true) == data.n_items
    assert len(data.X) + len(data.X_test) == n
    assert len(data.y_test) == round(n / 4 + 0.49)
    assert data.annotations.n_classes == len(data.class_names) == n_classes
    assert set(data.annotations.n_labels) == {2}
    assert data.item_ids.tolist() == list(range(data.n_items))


def test_perfect_workers_say_the_truth_of_the_item_in_their_row():
    from sklearn.datasets import load_wine

    data = make_wine(accuracy=1.0, random_state=3)
    votes = data.annotations
    assert np.array_equal(votes.classes[votes.label], data.y_true[votes.item])
    bundled = {tuple(row): target for row, target in zip(*load_wine(return_X_y=True))}
    assert [bundled[tuple(row)] for row in data.X] == data.y_true.tolist()
    assert [bundled[tuple(row)] for row in data.X_test] == data.y_test.tolist()


def test_workers_are_as_accurate_as_was_asked():
    data = make_digits(labels_per_item=5, accuracy=0.7, random_state=0)
    votes = data.annotations
    assert np.mean(votes.label == data.y_true[votes.item]) == pytest.approx(0.7, abs=0.02)


def test_bad_workers_are_planted_and_named():
    data = make_iris(bad="constant", bad_share=0.3, target=1, random_state=0)
    bad = data.extra["is_bad"]
    assert bad.sum() == 3
    assert set(data.annotations.label[bad[data.annotations.worker]]) == {1}
    assert data.extra["confusion"].shape == (10, 3, 3)


@pytest.mark.parametrize("make", [make_iris, make_blobs])
def test_a_seed_decides_everything_and_the_global_generator_nothing(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second, other = make(random_state=1), make(random_state=1), make(random_state=2)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    for part in ("X", "y_true", "X_test", "y_test", "annotations"):
        same, changed = getattr(first, part), getattr(other, part)
        assert np.array_equal(same, getattr(second, part)) if part != "annotations" else same == second.annotations
        assert same != changed if part == "annotations" else not np.array_equal(same, changed)


def test_blobs_have_the_shares_and_sizes_asked_for():
    data = make_blobs(500, 8, 2, n_features=5, n_test=300, class_shares=[9, 1], accuracy=1.0, random_state=0)
    assert data.X.shape == (500, 5) and data.X_test.shape == (300, 5)
    assert data.y_true.mean() == pytest.approx(0.1, abs=0.04)
    assert data.y_test.mean() == pytest.approx(0.1, abs=0.05)


def test_blobs_lie_around_their_centres():
    data = make_blobs(300, 8, 3, separation=50.0, random_state=0)
    centres = np.stack([data.X[data.y_true == k].mean(0) for k in range(3)])
    nearest = np.argmin(((data.X_test[:, None] - centres) ** 2).sum(-1), axis=1)
    assert np.array_equal(nearest, data.y_test)


@pytest.mark.parametrize(
    "make, parameters, said",
    [
        (make_iris, {"test_size": 0}, "`test_size` of make_iris"),
        (make_iris, {"test_size": 0.001}, "some class would have no item left"),
        (make_iris, {"random_state": -1}, "`random_state` of make_iris"),
        (make_iris, {"bad": "nice"}, "`bad`"),
        (make_iris, {"labels_per_item": 11}, "labels_per_item"),
        (make_blobs, {"separation": -1}, "`separation` of make_blobs"),
    ],
)
def test_senseless_parameters_are_refused(make, parameters, said):
    with pytest.raises(ParameterError) as caught:
        make(**parameters)
    assert said in str(caught.value)
