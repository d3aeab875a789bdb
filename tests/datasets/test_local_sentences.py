"""What `load` says where data is missing or broken; on a made-up folder, so that no real data is needed."""

import numpy as np
import pytest

from manyhands.datasets import load
from manyhands.exceptions import AnnotationError, ManyhandsError, ParameterError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def leaves(home):
    """A set of three items in an order of its own, one without labels; the last of two labels of a pair counts."""
    folder = home / "leaves"
    folder.mkdir()
    (folder / "annotations.csv").write_text("task,worker,label\n7,0,1\n3,0,0\n7,0,0\n")
    (folder / "truth.csv").write_text("task,label\n3,1\n7,0\n")
    np.savez(folder / "features.npz", X_train=np.eye(3, dtype=np.float16), task=np.array([7, 5, 3]))
    return folder


def refusal(name="leaves", **options):
    with pytest.raises(ManyhandsError) as caught:
        load(name, **options)
    return caught.type, str(caught.value)


def test_a_made_up_set_is_read(leaves):
    data = load("leaves")
    assert data.item_ids.tolist() == [7, 5, 3]
    assert data.y_true.tolist() == [0, -1, 1]
    assert data.annotations.n_labels.tolist() == [1, 0, 1]
    assert data.annotations.label.tolist() == [0, 0]
    assert load("leaves", duplicates="all").annotations.n_annotations == 3
    assert data.X.dtype == np.float32


def test_the_variable_is_not_set(monkeypatch):
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    kind, said = refusal()
    assert kind is AnnotationError
    assert said.startswith(
        "The environment variable MANYHANDS_DATA is not set: let it name the folder that holds leaves"
    )


def test_the_variable_names_no_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path / "gone"))
    assert refusal()[1].startswith("MANYHANDS_DATA is ") and "which is not a folder" in refusal()[1]


def test_the_folder_lacks_the_set(leaves):
    assert refusal("music")[1].endswith("has no music; it has leaves.")
    (leaves.parent / "agg" / "zencrowd_in").mkdir(parents=True)
    assert refusal("zencrowd_all")[1].endswith("has no agg/zencrowd_all; the nearest is 'agg/zencrowd_in'.")


@pytest.mark.parametrize(
    "name, near", [("lableme", "labelme"), ("bluebird", "bluebirds"), ("Snow2008/rte", "snow2008/rte")]
)
def test_an_unknown_name_gets_the_nearest(home, name, near):
    kind, said = refusal(name)
    assert kind is ParameterError
    assert near in said.partition("the nearest is")[2] and "MANYHANDS_DATA" in said


def test_a_name_like_nothing_and_no_name_at_all(home):
    assert "datasets.names() lists them all" in refusal("qqqqq")[1]
    assert refusal(None)[0] is ParameterError
    assert refusal("../leaves")[0] is ParameterError


@pytest.mark.parametrize("file", ["annotations.csv", "features.npz"])
def test_half_a_set(leaves, file):
    (leaves / file).unlink()
    said = refusal()[1]
    assert said.startswith("leaves in MANYHANDS_DATA is not complete") and f"has no {file}. Copy it again." in said


def test_an_array_that_is_missing(leaves):
    np.savez(leaves / "features.npz", X_train=np.eye(3))
    assert "is not complete: it has no array task" in refusal()[1]


def test_arrays_that_are_no_arrays(leaves):
    (leaves / "features.npz").write_bytes(b"PK\x03\x04 cut short")
    assert "cannot be read" in refusal()[1]
    np.savez(leaves / "features.npz", X_train=np.array([{}], object), task=np.array([1]))  # would need pickle
    assert "holds Python objects (a pickle), which are not read" in refusal()[1]


def test_features_of_other_items(leaves):
    np.savez(leaves / "features.npz", X_train=np.eye(3), task=np.array([7, 5]))
    assert refusal()[1] == "The features of leaves have 3 rows, but 2 items are named."
    np.savez(leaves / "features.npz", X_train=np.eye(1), task=np.array([7]))
    assert "items that its features lack" in refusal()[1]


def test_votes_that_do_not_fit_their_items(home):
    folder = home / "neucrowd_syn_valid_only"
    folder.mkdir()
    np.savez(folder / "features.npz", X_valid=np.eye(2))
    (folder / "votes.csv").write_text("label,votes,ground_truth\n1,4,1\n")
    assert refusal(folder.name)[1].endswith("counts the votes on 1 items, but there are 2.")
    (folder / "votes.csv").write_text("label,votes,ground_truth\n1,4,1\n1,8,1\n")
    assert refusal(folder.name)[1].endswith("has more positive votes than votes.")


def test_options_that_do_not_exist(home):
    assert "it has vgg16, vgg16-max, efficientnet" in refusal("labelme", features="resnet")[1]
    assert "leave the parameter out" in refusal("dogs", features="vgg16")[1]
    assert "duplicates must be one of last, all or None. Got 'first'." in refusal("dogs", duplicates="first")[1]
