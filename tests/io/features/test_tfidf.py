"""Text as numbers."""

import numpy as np
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.features.tfidf import TfIdf


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
