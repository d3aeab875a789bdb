"""Features from every kind of file, matched by id; what cannot be used is refused in one sentence."""

import zipfile

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array, save_npz

from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.io.features import Features, match, read_features
from manyhands.io.recipe import Recipe
from manyhands.io.tfidf import TfIdf

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
IDS = ["b", "a", "10"]


def matrix_of(path, items=("10", "a", "b"), **options):
    """The features of these items, in their order."""
    features = read_features(path, **options)
    kept, rows = match(features, list(items))
    assert kept.tolist() == list(range(len(items)))
    part = features.take(rows)
    found = Recipe.learn(part, standardise=False).apply(part)
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


@pytest.mark.parametrize("form", ["npz", "csv", "parquet", "lists", "sparse", "npy"])
def test_every_form_gives_the_same_rows(form, tmp_path):
    """Rows find their items by id, whatever the order and the form of the file."""
    options = {}
    if form == "npz":
        np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    elif form == "csv":
        (tmp_path / "x.csv").write_text("f,task_id,g\n1,b,2\n3,a,4\n5,10,6\n")
    elif form == "parquet":
        pl.DataFrame({"item": IDS, "f": X[:, 0], "g": X[:, 1].astype(int)}).write_parquet(tmp_path / "x.parquet")
    elif form == "lists":
        pl.DataFrame({"item": IDS, "embedding": X.tolist()}).write_parquet(tmp_path / "x.parquet")
    else:
        (tmp_path / "ids.txt").write_text("b\na\n10\n")
        options = {"ids_file": tmp_path / "ids.txt"}
        if form == "sparse":
            save_npz(tmp_path / "x.npz", csr_array(X))
        else:
            np.save(tmp_path / "x.npy", X)
    path = next(path for path in tmp_path.iterdir() if path.stem == "x")
    np.testing.assert_array_equal(matrix_of(path, **options), X[[2, 1, 0]])


@pytest.mark.parametrize("ids", [np.array([2, 1, 0]), np.array([2.0, 1.0, 0.0]), np.array([b"2", b"1", b"0"])])
def test_ids_of_any_kind_are_the_texts_that_readers_have(ids, tmp_path):
    """Whole numbers have no point."""
    np.savez(tmp_path / "x.npz", X=X, ids=ids)
    np.testing.assert_array_equal(matrix_of(tmp_path / "x.npz", "012"), X[::-1])


@pytest.mark.parametrize("name", ["ids.npy", "ids.csv", "ids.txt"])
def test_ids_may_have_a_file_of_their_own(name, tmp_path):
    """As an array, as a column, or one a line; as many as there are rows."""
    np.save(tmp_path / "x.npy", X)
    path = tmp_path / name
    if name == "ids.npy":
        np.save(path, np.array(IDS))
    else:
        path.write_text("item,x\nb,1\na,2\n10,3\n" if name == "ids.csv" else "b\na\n10\n")
    assert read_features(tmp_path / "x.npy", ids_file=path).ids == IDS
    np.save(tmp_path / "x.npy", X[:2])
    with pytest.raises(AlignmentError, match="3 ids for the 2 rows"):
        read_features(tmp_path / "x.npy", ids_file=path)


def test_position_counts_only_if_told(tmp_path):
    """Rows then are in the order of the ids, numbers as numbers; one for each item."""
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(AnnotationError, match="does not say which row is which item"):
        read_features(tmp_path / "x.npy")
    features = read_features(tmp_path / "x.npy", rows_in_order=True)
    assert match(features, ["10", "9", "8"])[0].tolist() == [2, 1, 0]
    assert match(features, ["10", "9", "x"])[0].tolist() == [0, 1, 2]
    with pytest.raises(AlignmentError, match="3 rows for 2 items"):
        match(features, ["1", "2"])


def test_items_and_rows_need_not_all_match(tmp_path):
    """Those that do are given back; that none does is an error that shows both kinds of ids."""
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    features = read_features(tmp_path / "x.npz")
    kept, rows = match(features, ["a", "nobody", "10"])
    assert kept.tolist() == [0, 2] and rows.tolist() == [1, 2]
    with pytest.raises(AlignmentError, match=r"ids are like 'b', 'a', '10', those of the items like 'p', 'q'"):
        match(features, ["p", "q"])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("item,f\na,1\nb,\n", "column 'f' has nothing where a finite number should be .row 2."),
        ("item,f\na,1\nb,red\n", "column 'f' has 'red' where"),
        ("item,f\na,1\nb,inf\n", "column 'f' has 'inf' where"),
        ("item,f\na,1\na,2\n", "more than one row for 'a'"),
        ("item,f\na,1\n,2\n", "a row without an id"),
        ("name,f\na,1\n", "no column that looks like ids"),
        ("item\na\n", "no column beside the ids"),
    ],
)
def test_tables_that_cannot_be_used(content, sentence, tmp_path):
    """The column, the row and the way out."""
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises((AnnotationError, AlignmentError), match=sentence):
        read_features(tmp_path / "x.csv")


def test_rows_that_say_the_same_twice_are_one(tmp_path):
    """So the export itself, with a row for every judgement, can give the text of its items."""
    (tmp_path / "x.csv").write_text("item,worker,label,body\na,p,1,red cat\na,q,2,red cat\nb,p,1,red dog\n")
    features = read_features(tmp_path / "x.csv", text=["body"])
    assert features.ids == ["a", "b"] and features.texts == ["red cat", "red dog"]


def bad_arrays(path, which):
    arrays = {
        "nan": {"X": [[1.0], [np.nan]], "ids": ["a", "b"]},
        "infinite": {"X": [[1.0], [np.inf]], "ids": ["a", "b"]},
        "flat": {"X": [1.0, 2.0], "ids": ["a", "b"]},
        "text": {"X": [["1"], ["2"]], "ids": ["a", "b"]},
        "objects": {"X": np.array([[1], [None]], object), "ids": ["a", "b"]},
        "odd_ids": {"X": [[1.0], [2.0]], "ids": [[1], [2]]},
        "twice": {"X": [[1.0], [2.0]], "ids": ["a", "a"]},
        "unnamed": {"p": [[1.0]], "q": [[1.0]]},
    }[which]
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("nan", "NaN, infinity or a number beyond"),
        ("infinite", "in row 1"),
        ("flat", "a row for each item; its shape is .2,."),
        ("text", "X must hold numbers"),
        ("objects", "holds Python objects .a pickle., which are not read"),
        ("odd_ids", "must be a list of texts or whole numbers"),
        ("twice", "more than one row for 'a'"),
        ("unnamed", "no array called X. It has: p, q"),
    ],
)
def test_arrays_that_cannot_be_used(which, sentence, tmp_path):
    """One sentence each, with the file in it."""
    bad_arrays(tmp_path / "x.npz", which)
    with pytest.raises((AnnotationError, AlignmentError), match=f"x.npz.*{sentence}|{sentence}.*x.npz"):
        matrix_of(tmp_path / "x.npz", "ab")


def test_broken_and_hostile_files(tmp_path):
    """A pickle under our name, a file cut off, an index that points beyond the matrix: nothing is run or read."""
    (tmp_path / "x.npy").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(AnnotationError, match=r"x.npy holds Python objects"):
        read_features(tmp_path / "x.npy", rows_in_order=True)
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:200])
    with pytest.raises(AnnotationError, match=r"cut.npz cannot be read as a file of NumPy"):
        read_features(tmp_path / "cut.npz")
    parts = {"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [10**6], "indptr": [0, 1, 1]}
    np.savez(tmp_path / "sparse.npz", **{name: np.asarray(part) for name, part in parts.items()})
    with pytest.raises(AnnotationError, match=r"sparse.npz cannot be read"):
        read_features(tmp_path / "sparse.npz", rows_in_order=True)
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    with pytest.raises(AnnotationError, match="It has: nothing"):
        read_features(tmp_path / "empty.npz")


def test_words_are_weighed_by_their_rarity():
    """By hand: of three texts, red is in all of them, cat in two; a word of one text alone does not count."""
    found = TfIdf.learn(["red cat", "RED cat, cat", "red fish"])
    assert found.terms == ("cat", "red")
    np.testing.assert_allclose(found.weights, [np.log(4 / 3) + 1, 1.0])
    row = np.array([2 * (np.log(4 / 3) + 1), 1.0])
    got = found.apply(["cat cat red blue", "nothing"]).toarray()
    np.testing.assert_allclose(got, [row / np.sqrt(row @ row), [0.0, 0.0]])


def test_text_weights_are_those_of_scikit_learn():
    """The same formula, the same words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["the cat sat", "the dog sat on a cat", "a dog, the dog!", "no cat 42 42"]
    other = TfidfVectorizer(min_df=2)
    expected = other.fit_transform(texts).toarray()
    found = TfIdf.learn(texts)
    assert list(found.terms) == other.get_feature_names_out().tolist()
    np.testing.assert_allclose(found.apply(texts).toarray(), expected)


def test_texts_without_words_are_refused():
    with pytest.raises(AnnotationError, match="no word of at least two letters"):
        TfIdf.learn(["a", "!"])


def test_a_recipe_survives_its_file(tmp_path):
    """Numbers and text together, to the last bit; columns are found by name in another order."""
    (tmp_path / "a.csv").write_text("item,n,body\na,0.1,red cat\nb,0.7,red dog\nc,3,cat\n")
    (tmp_path / "b.csv").write_text("body,more,item,n\nred cat,x,a,0.1\nred dog,y,b,0.7\ncat,z,c,3\n")
    first = read_features(tmp_path / "a.csv", columns=["n"], text=["body"])
    recipe = Recipe.learn(first)
    again = Recipe.from_json(recipe.to_json(), "features.json")
    assert again == recipe
    second = read_features(tmp_path / "b.csv", columns=again.columns, text=again.text)
    np.testing.assert_array_equal(again.apply(second).toarray(), recipe.apply(first).toarray())
    assert recipe.apply(first).shape == (3, 3)


@pytest.mark.parametrize("content", [b"\x80\x04K\x01.", b"{", b'{"schema": 2}', b"[]", b'{"schema": 1, "tfidf": 3}'])
def test_a_recipe_that_is_none(content):
    """A pickle, a file cut off, another version."""
    with pytest.raises(ParameterError, match=r"m/features.json cannot be read"):
        Recipe.from_json(content, "m/features.json")


def test_arrays_have_no_columns(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    with pytest.raises(ParameterError, match="has no columns with names"):
        read_features(tmp_path / "x.npz", text=["body"])


def test_numbers_are_standardised_as_in_training(tmp_path):
    """Mean 0 and spread 1 by the training rows alone; what never changes is only moved; a file keeps it."""
    rows = np.array([[1.0, 7.0, 1e9], [3.0, 7.0, 1e9 + 2]])
    training = Features("training", None, rows)
    recipe = Recipe.learn(training)
    np.testing.assert_allclose(recipe.apply(training), [[-1, 0, -1], [1, 0, 1]])
    later = Recipe.from_json(recipe.to_json(), "features.json")
    np.testing.assert_allclose(later.apply(Features("later", None, np.array([[5.0, 8.0, 1e9]]))), [[3, 1, -1]])
    with pytest.raises(AlignmentError, match="trained with 3 features; these rows have 2"):
        later.apply(Features("narrow", None, rows[:, :2]))


def test_images_are_standardised_by_channel():
    """Every pixel of a channel alike; a sparse matrix stays as it is."""
    images = np.random.default_rng(0).normal([[[5.0]], [[-2.0]]], [[[3.0]], [[0.1]]], (40, 2, 6, 6))
    scaled = Recipe.learn(Features("images", None, images)).apply(Features("images", None, images))
    np.testing.assert_allclose(scaled.mean(axis=(0, 2, 3)), 0, atol=1e-9)
    np.testing.assert_allclose(scaled.std(axis=(0, 2, 3)), 1)
    sparse = Features("sparse", None, csr_array([[0.0, 4.0], [8.0, 0.0]]))
    assert Recipe.learn(sparse).apply(sparse).toarray().tolist() == [[0, 4], [8, 0]]
