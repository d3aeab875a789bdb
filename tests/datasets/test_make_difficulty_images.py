"""Difficulty EM's crowds on images: two digits of a folder, harder where a network is unsure."""

import numpy as np
import pytest

from manyhands.datasets import make_difficulty_images
from manyhands.exceptions import ParameterError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Images of the digits 0 to 9, forty of each: grey, and the brighter the larger the digit, with noise."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(10), 40)
    X = np.clip(20 * y[:, None] + rng.normal(0, 40, (400, 256)), 0, 255).astype(np.uint8)
    (tmp_path / "usps").mkdir()
    np.savez(tmp_path / "usps" / "features.npz", X=X, y=y)
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path))


def test_two_digits_become_a_crowd_with_images(folder):
    """Three quarters to learn from, by five workers each, and a quarter to test on; the same seed gives the same."""
    data, again = (make_difficulty_images(digits=(2, 7), random_state=0) for _ in range(2))
    assert data.X.shape == (60, 1, 16, 16) and data.X_test.shape == (20, 1, 16, 16) and data.X.max() <= 1
    assert data.annotations.n_annotations == 300 and data.class_names == ("2", "7")
    assert data.annotations == again.annotations and np.array_equal(data.X, again.X)
    assert data.X[data.y_true == 1].mean() > data.X[data.y_true == 0].mean()  # 7 is the brighter one
    assert data.annotations != make_difficulty_images(digits=(2, 7), random_state=1).annotations


def test_labels_are_right_where_items_are_easy(folder):
    """Of structural labels; difficulty and expertise are kept as they were planted."""
    data = make_difficulty_images(digits=(0, 9), random_state=0)
    difficulty, expertise = data.extra["difficulty"], data.extra["expertise"]
    assert difficulty.shape == (60,) and (difficulty >= 0).all() and (difficulty <= 1).all()
    np.testing.assert_allclose(expertise[:2], [[0.6, 0.8], [0.7, 0.6]])
    hard = make_difficulty_images(digits=(4, 5), random_state=0).extra["difficulty"]
    assert hard.mean() > difficulty.mean()


def test_labels_without_structure_know_no_difficulty(folder):
    data = make_difficulty_images("non-structural", digits=(0, 9), random_state=0)
    votes = data.annotations
    assert "difficulty" not in data.extra
    assert np.mean(votes.label == data.y_true[votes.item]) == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize(
    "digits", [(4,), (4, 4), (4, 10), (1, 2, 3), 4, None, "49", ("4", "9"), ([4], [9]), (4.0, 9), (True, 9), {4, 9}]
)
def test_what_are_no_two_digits_is_refused(folder, digits):
    with pytest.raises(ParameterError, match=r"digits must be two different digits, such as \(4, 9\)"):
        make_difficulty_images(digits=digits)
    with pytest.raises(ParameterError, match="`labels` of make_difficulty_images"):
        make_difficulty_images("other")


def test_digits_may_come_in_any_sequence(folder):
    one, two = (make_difficulty_images("non-structural", digits, 0) for digits in ([2, 7], np.array([2, 7])))
    assert one.class_names == two.class_names == ("2", "7") and one.annotations == two.annotations
