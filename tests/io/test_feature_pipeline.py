"""What becomes of a row: saved with a model, and done again as in training; text as numbers."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.io.feature_pipeline import FeaturePipeline, TfIdf
from manyhands.io.features import Features, read_features


def test_a_recipe_survives_its_file(tmp_path):
    """Numbers and text together, to the last bit; columns are found by name in another order."""
    (tmp_path / "a.csv").write_text("item,n,body\na,0.1,red cat\nb,0.7,red dog\nc,3,cat\n")
    (tmp_path / "b.csv").write_text("body,more,item,n\nred cat,x,a,0.1\nred dog,y,b,0.7\ncat,z,c,3\n")
    first = read_features(tmp_path / "a.csv", columns=["n"], text=["body"])
    recipe = FeaturePipeline.learn(first)
    again = FeaturePipeline.from_json(recipe.to_json(), "features.json")
    assert again == recipe
    second = read_features(tmp_path / "b.csv", columns=again.columns, text=again.text)
    np.testing.assert_array_equal(again.apply(second).toarray(), recipe.apply(first).toarray())
    assert recipe.apply(first).shape == (3, 3)


@pytest.mark.parametrize(
    "content", [b"\x80\x04K\x01.", b"{", b"[]", b"[" * 10**5, b'{"schema": 3}', b'{"schema": 3, "tfidf": 3}']
)
def test_a_recipe_that_is_none(content):
    """A pickle, a file cut off, lists without end, parts that are missing."""
    with pytest.raises(ParameterError, match=r"m/features.json cannot be read"):
        FeaturePipeline.from_json(content, "m/features.json")


@pytest.mark.parametrize(
    "change",
    [
        {"tfidf": None},
        {"text": []},
        {"columns": ["n", "m"]},
        {"columns": []},
        {"tfidf": {"terms": ["cat", "cat"], "weights": [1.0, 1.0]}},
    ],
)
def test_parts_of_a_changed_recipe_that_contradict_each_other(change, tmp_path):
    (tmp_path / "a.csv").write_text("item,n,body\na,0.1,red cat\nb,0.7,red dog\nc,3,cat\n")
    recipe = FeaturePipeline.learn(read_features(tmp_path / "a.csv", columns=["n"], text=["body"]))
    assert recipe.n_features == 3
    with pytest.raises(ParameterError, match=r"m/features.json cannot be read"):
        FeaturePipeline.from_json(json.dumps(json.loads(recipe.to_json()) | change).encode(), "m/features.json")


def test_numbers_are_standardised_as_in_training(tmp_path):
    """Mean 0 and standard deviation 1 by the training rows alone; what never changes is only moved; a file keeps it."""
    rows = np.array([[1.0, 7.0, 1e9], [3.0, 7.0, 1e9 + 2]])
    training = Features("training", None, rows)
    recipe = FeaturePipeline.learn(training)
    np.testing.assert_allclose(recipe.apply(training), [[-1, 0, -1], [1, 0, 1]])
    later = FeaturePipeline.from_json(recipe.to_json(), "features.json")
    np.testing.assert_allclose(later.apply(Features("later", None, np.array([[5.0, 8.0, 1e9]]))), [[3, 1, -1]])
    with pytest.raises(AlignmentError, match="trained with 3 features; these rows have 2"):
        later.apply(Features("narrow", None, rows[:, :2]))


def test_images_are_standardised_by_channel():
    """Every pixel of a channel alike; a sparse matrix stays as it is."""
    images = np.random.default_rng(0).normal([[[5.0]], [[-2.0]]], [[[3.0]], [[0.1]]], (40, 2, 6, 6))
    scaled = FeaturePipeline.learn(Features("images", None, images)).apply(Features("images", None, images))
    np.testing.assert_allclose(scaled.mean(axis=(0, 2, 3)), 0, atol=1e-9)
    np.testing.assert_allclose(scaled.std(axis=(0, 2, 3)), 1)
    sparse = Features("sparse", None, csr_array([[0.0, 4.0], [8.0, 0.0]]))
    assert FeaturePipeline.learn(sparse).apply(sparse).toarray().tolist() == [[0, 4], [8, 0]]


def test_a_recipe_of_another_version():
    """The model must be trained again, and that is said."""
    with pytest.raises(ParameterError, match=r"m/features.json has the schema 1; this version reads 3. Train it again"):
        FeaturePipeline.from_json(b'{"schema": 1, "tfidf": 3}', "m/features.json")


def test_a_scale_with_a_part_missing():
    content = FeaturePipeline.learn(Features("x", None, np.eye(3))).to_json().replace(b"0.4714045207910317,", b"", 1)
    with pytest.raises(ParameterError, match="its lists are not of one length"):
        FeaturePipeline.from_json(content, "features.json")


def test_the_row_that_is_not_finite_is_that_of_the_file():
    """Whatever was taken from it, dense or sparse."""
    rows = np.ones((6, 2))
    rows[4, 1] = np.inf
    for numbers in (rows, csr_array(rows)):
        taken = Features("x.npz", list("abcdef"), numbers).take(np.array([0, 2, 4])).take(np.array([2, 1]))
        with pytest.raises(AlignmentError, match=r"x.npz: X has NaN.* in row 4 .item 'e'.; fill or drop it"):
            FeaturePipeline().apply(taken)


def test_a_number_that_only_the_scale_makes_too_large():
    """The training knew but small ones; the row is named all the same."""
    recipe = FeaturePipeline.learn(Features("x", None, np.array([[0.0], [1e-30]])))
    with pytest.raises(AlignmentError, match=r"new: X has NaN.* in row 1; fill"):
        recipe.apply(Features("new", None, np.array([[0.0], [1e20]])))


def test_a_sparse_matrix_is_scaled_as_the_dense_one_of_the_training():
    rows = np.array([[0.0, 4.0], [8.0, 0.0]])
    recipe = FeaturePipeline.learn(Features("x", None, rows))
    np.testing.assert_allclose(recipe.apply(Features("s", None, csr_array(rows))), [[-1, 1], [1, -1]])


@pytest.mark.parametrize(
    ("columns", "text", "sentence"),
    [(["f"], [], "the column f;"), (["f", "g"], ["t"], "the columns f, g and the text of the column t;")],
)
def test_what_a_file_lacks_is_said_with_what_the_model_knows(columns, text, sentence, tmp_path):
    """All that is lacking, not the first."""
    (tmp_path / "x.csv").write_text("item,f,g,t\na,1,2,red cat\nb,3,4,red dog\n")
    recipe = FeaturePipeline.learn(read_features(tmp_path / "x.csv", columns=columns, text=text))
    (tmp_path / "y.csv").write_text("item,G\na,1\n")
    lacking = ", ".join(name for name in (*columns, *text) if name != "g")
    with pytest.raises(AnnotationError, match=f"trained on {sentence} .*y.csv lacks {lacking}. It has: item, G"):
        recipe.read(tmp_path / "y.csv")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 10**400, "1", None, [1.0]], ids=range(7))
@pytest.mark.parametrize("place", ["mean", "std", "weights", "columns"])
def test_a_recipe_with_numbers_that_are_none(tmp_path, number, place):
    """Somebody changed the file: refused when it is read, not when it predicts."""
    (tmp_path / "x.csv").write_text("item,f,t\na,1,red cat\nb,3,red dog\n")
    said = json.loads(FeaturePipeline.learn(read_features(tmp_path / "x.csv", columns=["f"], text=["t"])).to_json())
    assert FeaturePipeline.from_json(json.dumps(said).encode(), "x") is not None
    inner = said if place == "columns" else said["tfidf" if place == "weights" else "scale"]
    inner[place][0] = number
    if place == "columns" and number == "1":
        inner[place] = "f"
    with pytest.raises(ParameterError, match=r"features\.json cannot be read: .*\. Train it again"):
        FeaturePipeline.from_json(json.dumps(said).encode(), "features.json")


@pytest.mark.parametrize("std", [0, -1.0])
def test_a_standard_deviation_is_positive(std):
    said = json.loads(FeaturePipeline.learn(Features("x", None, np.array([[0.0], [1.0]]))).to_json())
    said["scale"]["std"] = [std]
    with pytest.raises(ParameterError, match="not above 0"):
        FeaturePipeline.from_json(json.dumps(said).encode(), "features.json")


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
