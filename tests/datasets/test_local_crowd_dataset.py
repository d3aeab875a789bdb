"""What every loader returns: truth that may be missing, and a repr that shows no array."""

import subprocess
import sys

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.datasets import CrowdDataset


@pytest.fixture
def crowd():
    return Annotations.from_triples(["a", "a", "b"], ["x", "y", "x"], [1, 2, 2], item_ids=["b", "silent", "a"])


def test_truth_of_numbers_is_minus_one_where_unknown(crowd):
    data = CrowdDataset("pets", crowd.classes, annotations=crowd, y_true=np.array([2, -1, 1]))
    assert data.has_truth.tolist() == [True, False, True]
    assert data.truth == {"b": 2, "a": 1}
    assert all(type(value) is int for value in data.truth.values())


def test_truth_of_text_is_none_where_unknown(crowd):
    data = CrowdDataset("pets", crowd.classes, annotations=crowd, y_true=np.array(["cat", None, "dog"], object))
    assert data.has_truth.tolist() == [True, False, True]
    assert data.truth == {"b": "cat", "a": "dog"}


def test_no_truth_at_all(crowd):
    data = CrowdDataset("pets", crowd.classes, annotations=crowd)
    assert data.has_truth.tolist() == [False] * 3
    assert data.truth == {}
    assert repr(data) == "CrowdDataset('pets': 3 labels on 3 items by 2 workers, 2 classes; truth of none)"


def test_items_without_annotations_are_numbered():
    data = CrowdDataset("digits", np.array([0, 1]), y_true=np.array([1, 0]), X=np.zeros((2, 3)), extra={"batch": 1})
    assert data.n_items == 2
    assert data.truth == {0: 1, 1: 0}
    assert repr(data) == "CrowdDataset('digits': 2 items, 2 classes; no annotations; X 2 x 3; extra: batch)"


def test_vote_counts_are_named_and_nothing_has_no_items():
    data = CrowdDataset("hotel", np.array([0, 1]), votes=np.array([[3, 4]]))
    assert "vote counts without workers" in repr(data) and data.n_items == 1
    assert CrowdDataset("empty", np.array([0])).n_items == 0


def test_the_truth_is_what_fit_takes_as_gold(crowd):
    from manyhands import MajorityVote

    data = CrowdDataset("pets", crowd.classes, annotations=crowd, y_true=np.array([1, -1, 1]))
    model = MajorityVote().fit(data.annotations, gold=data.truth)
    assert model.labels_[0] == 1  # the only label said 2


def test_a_dataset_does_not_change(crowd):
    data = CrowdDataset("pets", crowd.classes)
    with pytest.raises(AttributeError):
        data.name = "other"


def test_import_is_light():
    program = "import sys, manyhands.datasets; print(*{m.partition('.')[0] for m in sys.modules})"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"sklearn", "scipy", "polars", "pandas"}
