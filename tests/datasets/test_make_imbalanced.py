"""Imbalanced crowds on real features: which items are taken, and that labels and truth are theirs."""

import numpy as np
import pytest

from manyhands.datasets import make_iced_features, make_long_tail_on
from manyhands.exceptions import AnnotationError, ParameterError

COUNTS = (60, 30, 30, 30, 30, 30, 90, 30, 30, 40)  # of the digits


@pytest.fixture(name="folder")
def small_sets(tmp_path, monkeypatch):
    """Digits and gases, few of each; the first feature tells the class and the others the row."""
    for name, counts in (("usps", COUNTS), ("gas_drift", (5, 100, 5, 40, 5, 5))):
        y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
        row = np.arange(len(y))
        X = np.column_stack([y * 20, row % 256, row // 256]).astype(np.uint8 if name == "usps" else np.float32)
        extra = {"batch": y, "concentration": y} if name == "gas_drift" else {}
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "features.npz", X=X, y=y, **extra)
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path))
    return tmp_path


def scenes(folder):
    """A crowd with classes in text, a test part and a validation part, in the form of Music."""
    rng = np.random.default_rng(0)
    names = np.array(["jazz", "metal", "pop"])
    (folder / "music").mkdir()
    parts = {}
    for part, n in (("train", 60), ("valid", 30), ("test", 45)):
        y = np.arange(n) % 3
        parts |= {f"X_{part}": np.column_stack([y, rng.random(n)]), f"y_{part}": y}
    np.savez(folder / "music" / "features.npz", ids_train=np.array([f"s{i:02}" for i in range(60)]), **parts)
    rows = [f"s{i:02},w{w},{names[i % 3]}" for i in range(60) for w in range(2)]
    (folder / "music" / "annotations.csv").write_text("task,worker,label\n" + "\n".join(rows), encoding="utf-8")
    truth = [f"s{i:02},{names[i % 3]}" for i in range(60)]
    (folder / "music" / "truth.csv").write_text("task,label\n" + "\n".join(truth), encoding="utf-8")


def test_iceds_digits_are_sixes_and_noughts(folder):
    """All of the large class, ten to one, in the paper's ratios; none is both learnt from and tested on."""
    data = make_iced_features("usps", random_state=0)
    assert np.bincount(data.y_true).tolist() == [72, 7] and np.bincount(data.y_test).tolist() == [18, 18]
    assert data.class_names == ("6", "0") and data.annotations.n_workers == 9
    X = np.concatenate([data.X, data.X_test])
    y = np.concatenate([data.y_true, data.y_test])
    assert np.allclose(X[:, 0] * 255, np.where(y == 0, 120, 0), atol=1e-3) and X.max() <= 1
    assert len({tuple(row) for row in X[y == 0]}) == 90
    assert data.annotations.n_annotations == 79 * 9


def test_iceds_gases_are_standardised_by_what_is_learnt_from(folder):
    """Mean 0 and spread 1 there, and not in the test part."""
    data = make_iced_features("gsad", random_state=0)
    assert np.bincount(data.y_true).tolist() == [80, 8] and np.bincount(data.y_test).tolist() == [20, 20]
    assert np.allclose(data.X.mean(0), 0, atol=1e-5) and np.allclose(data.X.std(0)[:2], 1, atol=1e-5)
    assert not data.X[:, 2].any()  # which does not vary
    assert abs(data.X_test[:, 0].mean()) > 0.5  # there, half of the items are of the small class
    assert data.class_names == ("Ethylene", "Acetaldehyde")


def test_workers_err_as_much_as_is_asked_for(folder):
    """In place of what the paper's counts imply."""
    data = make_iced_features("usps", random_state=0, error=(0.01, 0.02))
    wrong = 1 - data.extra["confusion"][:, 0, 0]
    assert wrong.min() >= 0.01 and wrong.max() <= 0.02
    assert (1 - make_iced_features("usps", random_state=0).extra["confusion"][:, 0, 0]).min() >= 0.25


def test_gisette_is_generated(monkeypatch):
    """With the paper's sizes, and without any folder; here with fewer features, as many of which are useless."""
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    data = make_iced_features("gisette", random_state=0, n_features=120)
    assert np.bincount(data.y_true).tolist() == [2800, 280] and np.bincount(data.y_test).tolist() == [700, 700]
    assert data.X.shape == (3080, 120) and data.annotations.n_workers == 7 and data.X.dtype == np.float32


def test_the_papers_sizes(real_annotations):
    """USPS to the item; of the gases about half is at hand."""
    usps, gsad = (make_iced_features(setting, random_state=0) for setting in ("usps", "gsad"))
    assert np.bincount(usps.y_true).tolist() == [668, 66] and np.bincount(usps.y_test).tolist() == [166, 166]
    assert np.bincount(gsad.y_true).tolist() == [1331, 133] and np.bincount(gsad.y_test).tolist() == [333, 333]


def test_each_seed_takes_other_items(folder):
    """And the same seed the same ones."""
    for make in (
        lambda seed: make_iced_features("usps", seed),
        lambda seed: make_long_tail_on("usps", random_state=seed),
    ):
        first, again, other = (make(seed) for seed in (1, 1, 2))
        assert np.array_equal(first.X, again.X) and first.annotations == again.annotations
        assert np.array_equal(first.X_test, again.X_test)
        assert not np.array_equal(first.X[:9], other.X[:9]) and first.annotations != other.annotations


def test_a_long_tail_of_a_real_set(folder):
    """As many as there can be; every row is an item of its class, and no item stands twice."""
    data = make_long_tail_on("usps", ratio=5, random_state=3)
    sizes = np.bincount(data.y_true)
    assert sizes.max() / sizes.min() == pytest.approx(5, rel=0.35) and np.all(sizes <= np.ceil(np.array(COUNTS) * 0.75))
    assert set(np.bincount(data.y_test)) == {7}  # a quarter of the smallest class
    for X, y in ((data.X, data.y_true), (data.X_test, data.y_test)):
        assert np.allclose(X[:, 0] * 255, y * 20, atol=1e-3)
    assert data.annotations.n_labels.mean() == pytest.approx(2.5, abs=0.01)
    pairs = [tuple(row) for row in np.concatenate([data.X, data.X_test]).round(5)]
    assert len(pairs) == len(set(pairs))


def test_which_class_is_rare_is_drawn(folder):
    """Over a few seeds, several classes are."""
    rarest = {int(np.bincount(make_long_tail_on("usps", random_state=seed).y_true).argmin()) for seed in range(6)}
    assert len(rarest) > 2


def test_a_test_part_with_the_same_tail(folder):
    """Where it is not balanced, its largest class is the largest of training."""
    data = make_long_tail_on("usps", balanced_test=False, random_state=0)
    train, test = np.bincount(data.y_true), np.bincount(data.y_test)
    assert train.argmax() == test.argmax() and test.max() > 2 * test.min()


def test_classes_in_text_and_parts_of_its_own(folder):
    """Validation items are learnt from, test items are those of the set, labels are text."""
    scenes(folder)
    data = make_long_tail_on("music", ratio=4, labels_per_item=2, random_state=0)
    assert sorted(np.unique(data.y_true.astype(str), return_counts=True)[1]) == [7, 15, 30]
    assert len(data.y_test) == 45 and set(data.y_test) == {"jazz", "metal", "pop"}
    names = np.array(["jazz", "metal", "pop"], object)
    assert np.array_equal(names[data.X[:, 0].astype(int)], data.y_true)
    assert data.annotations.classes.tolist() == names.tolist() and data.annotations.n_workers == 59
    assert len(make_long_tail_on("music", 30, random_state=0).X) == 30


def test_labels_are_about_the_items_in_their_rows(folder, monkeypatch):
    """Workers who are never wrong say the truth."""
    from manyhands.simulate import papers

    monkeypatch.setattr(papers, "random_confusion", lambda accuracy, k, random_state: np.tile(np.eye(k), (59, 1, 1)))
    data = make_long_tail_on("usps", random_state=0)
    votes = data.annotations
    assert np.array_equal(votes.classes[votes.label], data.y_true[votes.item])


def test_what_cannot_be_is_refused(folder, monkeypatch):
    """One sentence each."""
    with pytest.raises(ParameterError, match="`setting` of make_iced_features"):
        make_iced_features("mnist")
    with pytest.raises(ParameterError, match="`n_features` of make_iced_features must be None or a whole number at"):
        make_iced_features("gisette", n_features=99)
    with pytest.raises(ParameterError, match="n_features cannot be set for usps"):
        make_iced_features("usps", n_features=200)
    with pytest.raises(
        ParameterError, match=r"The data set usps has no 9000 items with such a long tail; at most about 93\."
    ):
        make_long_tail_on("usps", 9000, random_state=0)
    with pytest.raises(ParameterError, match="There is no data set called 'nowhere'"):
        make_long_tail_on("nowhere")
    (folder / "agg" / "dogs").mkdir(parents=True)
    (folder / "agg" / "dogs" / "annotations.csv").write_text("task,worker,label\n0,a,0\n1,a,1\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="agg/dogs has no features with truth"):
        make_long_tail_on("dogs")
    monkeypatch.delenv("MANYHANDS_DATA")
    with pytest.raises(AnnotationError, match="MANYHANDS_DATA is not set"):
        make_iced_features("usps")
