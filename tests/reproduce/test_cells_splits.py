"""What a cell learns from and is tested on: fixed folds, nothing of the test part in the other, one seed one part."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.datasets import CrowdDataset
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.reproduce import cells as crowds
from manyhands.reproduce.cells import Part, make_part
from manyhands.reproduce.tables import DataSet
from manyhands.simulate import make_neucrowd

N_ITEMS, UNKNOWN = 23, (3, 11, 12)


def toy(random_state=0, classes=(0, 1), known=True, test_part=False, votes=False, annotated=True, features=True):
    """Items 0 to 22, whose first feature is their number; the truth of three is unknown unless `known` is None."""
    rng = np.random.default_rng(random_state)
    values = np.array(classes, object if isinstance(classes[0], str) else np.int64)
    truth = values[np.arange(N_ITEMS) % 2]
    truth[list(UNKNOWN)] = None if truth.dtype == object else -1
    X = np.column_stack([np.arange(N_ITEMS), rng.normal(5, 3, N_ITEMS), np.full(N_ITEMS, 0.1)])
    matrix = rng.integers(0, 2, (N_ITEMS, 4))
    annotations = Annotations.from_matrix(values[matrix], classes=values)
    counts = np.stack([(matrix == 0).sum(1), (matrix == 1).sum(1)], axis=1)
    return CrowdDataset(
        "toy",
        annotations.classes,
        annotations=annotations if annotated and not votes else None,
        votes=counts if votes else None,
        y_true=truth if known else None,
        X=X if features else None,
        X_test=X[:4] if test_part else None,
        y_test=truth[:4] if test_part else None,
    )


@pytest.fixture(autouse=True)
def _toy_is_a_maker(monkeypatch):
    monkeypatch.setitem(crowds.MAKERS, "make_toy", toy)


def dataset(**changes):
    return DataSet("toys", make="make_toy", **changes)


def numbers(X):
    return X[:, 0].astype(int).tolist()


@pytest.mark.parametrize("classes", [(0, 1), ("cat", "dog")])
def test_every_item_of_known_truth_is_tested_on_once(classes):
    """Folds are a partition of the items with truth; the others are always learnt from."""
    parts = [make_part(dataset(folds=5, arguments={"classes": classes}), seed) for seed in range(1000, 1005)]
    tested = [number for part in parts for number in numbers(part.X_test)]
    assert sorted(tested) == [i for i in range(N_ITEMS) if i not in UNKNOWN]
    assert {len(part.X_test) for part in parts} == {4}
    for part in parts:
        assert sorted(numbers(part.X) + numbers(part.X_test)) == list(range(N_ITEMS))
        assert set(UNKNOWN) <= set(numbers(part.X)) and part.has_truth.sum() == len(part.X) - len(UNKNOWN)
        assert part.annotations.item_ids.tolist() == numbers(part.X)
        assert set(part.y_test.tolist()) <= set(classes)
        assert part.y_test.tolist() == [classes[i % 2] for i in numbers(part.X_test)]


def test_folds_depend_on_the_number_of_items_alone():
    """Other features, labels and first seeds give the same folds; the seed after the last fold tests on the first."""
    one = make_part(dataset(folds=5), 1001)
    assert numbers(one.X_test) == numbers(make_part(dataset(folds=5), 1006).X_test)
    assert numbers(one.X_test) == numbers(make_part(dataset(folds=5), 8, first_seed=7).X_test)
    other = make_part(dataset(folds=5, remove=0.5, features="standardised"), 1001)
    assert other.annotations.item_ids.tolist() == one.annotations.item_ids.tolist()
    assert numbers(one.X_test) != numbers(make_part(dataset(folds=5), 1002).X_test)


def test_a_seed_decides_what_is_simulated():
    """The same seed gives the same part, another one another; several seeds of one function lie apart."""
    first, again, other = (make_part(dataset(), seed) for seed in (1000, 1000, 1001))
    assert np.array_equal(first.X, again.X) and first.annotations == again.annotations
    assert not np.array_equal(first.X, other.X)
    assert np.array_equal(first.X, toy(1000).X)
    fixed = [make_part(dataset(seeded=()), seed).X for seed in (1000, 1001)]
    assert np.array_equal(*fixed)


def test_several_seeds_of_one_function_differ(monkeypatch):
    """The second argument gets a seed a million later, so that two generators never run alike."""
    given = []
    monkeypatch.setitem(
        crowds.MAKERS, "make_toy", lambda data_seed, label_seed: given.append((data_seed, label_seed)) or toy()
    )
    make_part(dataset(seeded=("data_seed", "label_seed")), 1003)
    assert given == [(1003, 1001003)]


def test_features_are_standardised_by_the_training_part_alone():
    """Mean 0 and spread 1 where one learns; test rows are moved by the same numbers; constants stay finite."""
    plain, part = (make_part(dataset(folds=5, features=how), 1000) for how in ("raw", "standardised"))
    assert np.allclose(part.X[:, :2].mean(0), 0) and np.allclose(part.X[:, :2].std(0), 1)
    mean, spread = plain.X.mean(0), plain.X.std(0)
    assert np.allclose(part.X_test[:, :2], ((plain.X_test - mean) / spread)[:, :2])
    assert np.allclose(part.X[:, 2], 0) and np.allclose(part.X_test[:, 2], 0)
    assert np.array_equal(plain.X, toy(1000).X[numbers(plain.X)])


def test_standardised_rows_do_not_know_the_test_part(monkeypatch):
    """Whatever the test rows are, the rows to learn from are the same."""
    usual = make_part(dataset(arguments={"test_part": True}, features="standardised"), 1000)
    data = toy(1000, test_part=True)
    object.__setattr__(data, "X_test", data.X_test + 1e6)
    monkeypatch.setitem(crowds.MAKERS, "make_toy", lambda random_state: data)
    assert np.array_equal(make_part(dataset(features="standardised"), 1000).X, usual.X)


@pytest.mark.parametrize(("share", "left"), [(0.25, 69), (0.75, 23), (0.9, 23)])
def test_removal_leaves_every_item_a_label(share, left):
    """The share is taken as far as one label per item allows; what is left was there before."""
    whole, part = make_part(dataset(), 1000), make_part(dataset(remove=share), 1000)
    assert part.annotations.n_annotations == left and part.annotations.n_labels.min() >= 1
    before, after = (
        set(zip(p.annotations.item.tolist(), p.annotations.worker.tolist(), p.annotations.label.tolist()))
        for p in (whole, part)
    )
    assert after < before
    assert part.annotations == make_part(dataset(remove=share), 1000).annotations


def test_removal_may_leave_nothing():
    """Without keep_one the share is exact, and items lose all; which annotations go first is the same."""
    part = make_part(dataset(remove=0.9, keep_one=False), 1000)
    assert part.annotations.n_annotations == round(0.1 * 4 * N_ITEMS) and part.annotations.n_labels.min() == 0
    assert len(part.annotations) == len(part.X) == N_ITEMS and part.annotations.n_workers == 4


def test_each_seed_removes_others():
    """Removal is seeded, also where the data are the same for all seeds."""
    first, second = (make_part(dataset(seeded=(), remove=0.5), seed).annotations for seed in (1000, 1001))
    assert first != second


def test_the_first_items_can_be_learnt_from_alone():
    """`items` narrows the training part and leaves the test part alone."""
    part = make_part(dataset(items=9, arguments={"test_part": True}), 1000)
    assert (
        numbers(part.X) == list(range(9)) and len(part.annotations) == len(part.y_train) == 9 and len(part.X_test) == 4
    )
    with pytest.raises(ParameterError, match="'toys' has 23 training items, not 24"):
        make_part(dataset(items=24), 1000)


def test_items_can_be_drawn_by_the_seed():
    """So many, each once and in their order, with their labels and truth; every item has the same chance."""
    data = dataset(items=9, drawn=True, seeded=(), arguments={"test_part": True})
    whole = make_part(dataset(seeded=()), 1000)
    parts = [make_part(data, seed) for seed in range(1000, 1300)]
    for part in parts[:20]:
        rows = numbers(part.X)
        assert len(rows) == 9 and rows == sorted(set(rows)) and len(part.X_test) == 4
        assert part.annotations == whole.annotations[rows] and part.y_train.tolist() == whole.y_train[rows].tolist()
    share = np.bincount(np.concatenate([numbers(part.X) for part in parts]), minlength=N_ITEMS) / 300
    assert share.shape == (N_ITEMS,) and np.abs(share - 9 / N_ITEMS).max() < 0.12
    assert len({tuple(numbers(part.X)) for part in parts}) > 290


def test_the_seed_alone_draws_the_items():
    """The same seed gives the same ones, whatever is removed or scaled; all of them are all of them."""
    first, again, other = (numbers(make_part(dataset(items=9, drawn=True), seed).X) for seed in (1000, 1000, 1001))
    assert first == again != other
    removed = make_part(dataset(items=9, drawn=True, remove=0.5, features="standardised"), 1000)
    assert removed.annotations.item_ids.tolist() == first
    assert numbers(make_part(dataset(items=N_ITEMS, drawn=True), 1000).X) == list(range(N_ITEMS))
    with pytest.raises(ParameterError, match="'toys' has 23 training items, not 24"):
        make_part(dataset(items=24, drawn=True), 1000)


def test_drawn_items_are_not_tested_on():
    """Of a set that is folded, they come from the other folds."""
    part = make_part(dataset(items=9, drawn=True, folds=5), 1001)
    assert numbers(part.X_test) == numbers(make_part(dataset(folds=5), 1001).X_test)
    assert len(part.X) == 9 and not set(numbers(part.X)) & set(numbers(part.X_test))


def test_quick_takes_few_items_from_first_to_last():
    """They have truth, if any has, and the test part stays."""
    part = make_part(dataset(quick_items=6, arguments={"test_part": True}), 1000, quick=True)
    assert len(part.X) == len(part.annotations) == len(part.y_train) == 6 and len(part.X_test) == 4
    assert numbers(part.X)[0] == 0 and numbers(part.X)[-1] == N_ITEMS - 1
    assert part.has_truth.all()
    assert len(make_part(dataset(quick_items=500), 1000, quick=True).X) == N_ITEMS - len(UNKNOWN)
    unknown = make_part(dataset(quick_items=6, arguments={"known": None}), 1000, quick=True)
    assert len(unknown.X) == 6 and unknown.y_train is None and not unknown.has_truth.any()


def test_quick_standardises_by_the_items_it_keeps():
    """The few items are brought to mean 0 themselves."""
    part = make_part(dataset(quick_items=6, features="standardised"), 1000, quick=True)
    assert np.allclose(part.X[:, :2].mean(0), 0)


def test_votes_without_workers_sit_on_seats_that_mean_nothing():
    """Counts of votes come back from the annotations, every time the same; no seat has its own habit."""
    data = dataset(arguments={"votes": True}, seeded=())
    part = make_part(data, 1000)
    found = np.zeros((N_ITEMS, 2), int)
    np.add.at(found, (part.annotations.item, part.annotations.label), 1)
    assert np.array_equal(found, toy(votes=True).votes)
    assert part.annotations == make_part(data, 1001).annotations
    many = crowds._from_counts(np.tile([[3, 4]], (4000, 1)), np.array([0, 1]))
    share = np.bincount(many.worker, many.label, 7) / 4000
    assert many.n_workers == 7 and np.abs(share - 4 / 7).max() < 0.04


def test_a_crowd_with_features_and_one_without():
    """The simulated crowds of `simulate` are parts as well."""
    part = make_part(DataSet("Syn", make="make_neucrowd", arguments={"n_features": 5}, items=800), 1000)
    made = make_neucrowd(n_features=5, random_state=1000)
    assert np.array_equal(part.X, made.X[:800]) and np.array_equal(part.X_test, made.X_test)
    assert np.array_equal(part.y_train, made.crowd.truth[:800]) and np.array_equal(part.y_test, made.truth_test)
    bare = make_part(DataSet("crowd", make="make_crowd", arguments={"n_items": 30}), 1000)
    assert bare.X is None and bare.X_test is None and bare.has_truth.all() and len(bare.annotations) == 30


def test_a_set_is_loaded_with_its_arguments(tmp_path, monkeypatch):
    """`load` and its arguments reach `datasets.load`; a set that is missing gives one sentence."""
    folder = tmp_path / "agg" / "bluebirds"
    folder.mkdir(parents=True)
    (folder / "annotations.csv").write_text("task,worker,label\n0,a,0\n0,a,1\n1,b,1\n", encoding="utf-8")
    (folder / "truth.csv").write_text("task,label\n0,1\n", encoding="utf-8")
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path))
    last = make_part(DataSet("birds", load="bluebirds"), 1000)
    assert last.annotations.n_annotations == 2 and last.has_truth.tolist() == [True, False]
    both = make_part(DataSet("birds", load="bluebirds", arguments={"duplicates": "all"}), 1000)
    assert both.annotations.n_annotations == 3
    with pytest.raises(ManyhandsError, match="has no agg/dogs"):
        make_part(DataSet("dogs", load="dogs"), 1000)


REFUSED = {
    "has a test part of its own; leave folds out": {"folds": 5, "arguments": {"test_part": True}},
    "has no 5 items with features and truth": {"folds": 5, "arguments": {"features": False}},
    "has no 21 items with features and truth": {"folds": 21},
    "has no features to standardise": {"features": "standardised", "arguments": {"features": False}},
    "has no labels of a crowd": {"arguments": {"annotated": False}},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused(message):
    """One sentence that names the data set."""
    with pytest.raises(ParameterError, match=f"^The data set 'toys' {message}"):
        make_part(dataset(**REFUSED[message]), 1000)


def test_a_data_set_that_comes_from_nowhere():
    """Neither load nor make, or a function that makes no crowd."""
    with pytest.raises(ParameterError, match="'air' is neither loaded nor simulated"):
        make_part(DataSet("air"), 1000)
    with pytest.raises(ParameterError, match="make_truth gives no crowd"):
        make_part(DataSet("air", make="make_truth", arguments={"n_items": 5, "classes": 2}), 1000)


def test_no_truth_is_no_truth():
    """A part without truth says so for each item."""
    part = Part(None, Annotations.from_matrix([[0, 1]]), None)
    assert part.has_truth.tolist() == [False]


def test_what_was_planted_stays_with_its_items():
    """Difficulty of the items that are learnt from, and expertise of all workers; nothing where nothing was planted."""
    gaussians = DataSet("g", make="make_difficulty_gaussians", seeded=("data_seed", "label_seed"))
    whole, some = make_part(gaussians, 7), make_part(gaussians, 7, quick=True)
    assert whole.planted["difficulty"].shape == (1000,) and whole.planted["expertise"].shape == (5, 2)
    rows = [np.flatnonzero((row == whole.X).all(axis=1))[0] for row in some.X]
    np.testing.assert_array_equal(some.planted["difficulty"], whole.planted["difficulty"][rows])
    blobs = DataSet("b", make="make_blobs", arguments={"kind": "difficulty", "n_items": 50})
    assert [*make_part(blobs, 7).planted] == ["difficulty"]
    assert not make_part(DataSet("b", make="make_blobs", arguments={"n_items": 50}), 7).planted
