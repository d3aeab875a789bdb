"""The real sets: the counts of their index, rows in line with features, and truth in line with both."""

import csv
import math
import os

import numpy as np
import pytest

from manyhands.datasets import load, names

pytestmark = pytest.mark.fast

CROWDS = {  # name: items, items with truth, workers, labels, classes, repeated pairs
    "agg/anesthesia": (45, 0, 5, 315, 4, 90),
    "agg/bluebirds": (108, 108, 39, 4212, 2, 0),
    "agg/caries": (3859, 0, 5, 19295, 2, 0),
    "agg/dogs": (807, 807, 109, 8070, 4, 0),
    "agg/fact_eval": (42624, 576, 57, 216725, 3, 1810),
    "agg/s_face": (584, 584, 27, 5242, 4, 0),
    "agg/s_rel": (20232, 4460, 766, 98453, 4, 1570),
    "agg/web": (2665, 2653, 177, 15567, 5, 0),
    "agg/zencrowd_all": (2040, 2040, 78, 21855, 2, 1730),
    "agg/zencrowd_in": (2040, 2040, 25, 11205, 2, 710),
    "cifar10s": (1000, 1000, 248, 6225, 10, 25),
    "labelme": (1000, 1000, 59, 2547, 8, 0),
    "leaves": (384, 384, 83, 3840, 6, 0),
    "music": (700, 700, 44, 2945, 10, 0),
    "reports_mozilla": (675, 675, 5, 3375, 4, 0),
    "snow2008/rte": (800, 800, 164, 8000, 2, 0),
    "snow2008/temp": (462, 462, 76, 4620, 2, 0),
    "snow2008/wsd": (177, 177, 34, 1770, 3, 0),
    "weather_text": (1000, 632, 102, 20000, 5, 0),
}
FEATURES = {  # name: X, X_valid, X_test
    "labelme": ((1000, 512), (500, 512), (1188, 512)),
    "music": ((700, 124), None, (300, 124)),
    "leaves": ((384, 64), None, None),
    "weather_text": ((1000, 256), None, None),
    "cifar10s": ((1000, 192), None, None),
    "snow2008/rte": ((800, 517), None, None),
    "reports_mozilla": ((675, 100), None, None),
}
BARE = {  # name: items, features, classes
    "usps": (9298, 256, 10),
    "gas_drift": (6697, 128, 6),
    "neucrowd_hotel": (447, 300, 2),
    "neucrowd_syn_valid_only": (200, 1200, 2),
}


@pytest.fixture(autouse=True)
def folder():
    if not os.environ.get("MANYHANDS_DATA"):
        pytest.skip("MANYHANDS_DATA is not set, so there are no real crowds to test on")
    return os.environ["MANYHANDS_DATA"]


def test_every_set_is_tested():
    assert set(names()) == set(CROWDS) | set(BARE)


@pytest.mark.parametrize("name", CROWDS)
def test_counts_are_those_of_the_index(name):
    n_items, n_known, n_workers, n_labels, n_classes, n_repeats = CROWDS[name]
    everything = load(name, duplicates="all")
    votes = everything.annotations
    assert (votes.n_items, votes.n_workers, votes.n_annotations, votes.n_classes) == (
        n_items,
        n_workers,
        n_labels,
        n_classes,
    )
    assert everything.has_truth.sum() == n_known == len(everything.truth)
    once = load(name, duplicates="last").annotations
    assert once.n_annotations == n_labels - n_repeats
    assert len(np.unique(once.item.astype(np.int64) * n_workers + once.worker)) == once.n_annotations
    assert load(name).annotations == (votes if name == "agg/anesthesia" else once)


@pytest.mark.parametrize("name", FEATURES)
def test_features_are_in_line_with_items_and_truth(name, folder):
    data = load(name)
    shapes = tuple(None if part is None else part.shape for part in (data.X, data.X_valid, data.X_test))
    assert shapes == FEATURES[name]
    assert data.X.dtype == np.float32
    with np.load(f"{folder}/{name}/features.npz") as arrays:  # its y_train is a second record of truth.csv
        codes = arrays["y_train"]
        known = codes >= 0
        assert np.array_equal(data.has_truth, known)
        assert np.array_equal(data.y_true[known], data.classes[codes[known]])
        for part in ("valid", "test"):
            y = getattr(data, f"y_{part}")
            assert (y is None) == (f"y_{part}" not in arrays)
            assert y is None or np.array_equal(y, data.classes[arrays[f"y_{part}"]])


@pytest.mark.parametrize("name", BARE)
def test_sets_without_annotations(name):
    n_items, n_features, n_classes = BARE[name]
    data = load(name)
    assert data.annotations is None
    assert data.X.shape == (n_items, n_features)
    assert data.has_truth.all() and len(data.classes) == n_classes


def test_vote_counts_lead_to_their_majority():
    hotel = load("neucrowd_hotel")
    for votes, y in [
        (hotel.votes, hotel.y_true),
        (hotel.extra["votes_valid"], hotel.y_valid),
        (hotel.extra["votes_test"], hotel.y_test),
    ]:
        assert set(votes.sum(1)) == {7}
        assert np.array_equal(votes.argmax(1), y)
    syn = load("neucrowd_syn_valid_only")
    assert np.mean(syn.votes.argmax(1) == syn.y_true) == 0.935  # as the index says of the majority vote


def test_choices_of_features():
    assert load("labelme", features="efficientnet").X_test.shape == (1188, 1280)
    average, largest = load("labelme"), load("labelme", features="vgg16-max")
    assert average.X.shape == largest.X.shape and np.all(average.X <= largest.X + 1e-4)
    assert load("weather_text", features="lsa").X.shape == (1000, 100)


def test_ids_are_what_the_files_hold():
    assert load("labelme").item_ids[:3].tolist() == [0, 1, 2]
    assert load("rte").item_ids[:3].tolist() == [266, 934, 961]
    assert load("temp").item_ids.tolist()[0] == "100_1"
    music = load("music")
    assert music.truth["hiphop.00053.mp3"] == "hiphop" == music.y_true[0]
    assert "bluebirds" not in names() and load("bluebirds").name == "agg/bluebirds"


def test_extras_are_in_line():
    tweets = load("weather_text")
    assert tweets.item_ids[0] == 82846118 and tweets.extra["texts"][0].startswith("Fire Weather Watch")
    assert all(isinstance(text, str) for text in tweets.extra["texts"])
    gas = load("gas_drift")
    assert len(gas.extra["batch"]) == len(gas.extra["concentration"]) == gas.n_items
    assert gas.class_names[0] == "Ethanol"
    caries = load("caries").annotations
    assert np.all(caries.classes[caries.label[: 1880 * 5]] == 1)  # the first pattern is all 1 and holds for 1880


def test_second_choices_belong_to_their_annotations(folder):
    data = load("cifar10s")
    votes = data.annotations
    with open(f"{folder}/cifar10s/annotations_soft.csv", newline="", encoding="utf-8") as file:
        said = {(int(row["task"]), int(row["worker"])): row for row in csv.DictReader(file)}  # the last of a pair
    pairs = zip(votes.item_ids[votes.item].tolist(), votes.worker_ids[votes.worker].tolist())
    rows = [said[pair] for pair in pairs]
    assert votes.classes[votes.label].tolist() == [int(row["label"]) for row in rows]
    assert data.extra["label2"].tolist() == [int(row["label2"]) for row in rows]
    for key, column in (("percent", "prob"), ("percent2", "prob2")):
        given = data.extra[key]
        assert all(math.isnan(x) or x == float(row[column]) for x, row in zip(given, rows, strict=True))
        assert np.isnan(given).mean() < 0.4  # nobody must name a second choice


def test_items_and_truth_work_with_scikit_learn():
    from sklearn.naive_bayes import GaussianNB

    music = load("music")
    assert GaussianNB().fit(music.X, music.y_true).score(music.X_test, music.y_test) > 0.4
