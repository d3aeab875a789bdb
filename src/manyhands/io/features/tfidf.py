"""Text as TF-IDF vectors: term frequencies, weighted down for words that occur in many texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from manyhands.exceptions import AnnotationError

_WORD = re.compile(r"\w\w+")  # at least two letters or digits
_MAX_TERMS = 20_000
_MIN_TEXTS = 2  # a word of a single text does not generalise; such words are used only if there are no others


@dataclass(frozen=True)
class TfIdf:
    """Vocabulary and inverse document frequencies.

    The weight of a word is ``log((1 + n) / (1 + n_w)) + 1`` for n texts of which n_w contain the word, as in
    scikit-learn's TfidfVectorizer.

    Attributes
    ----------
    terms : tuple of str
        The words, sorted.
    weights : tuple of float
        The weight of each word.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...]

    @classmethod
    def learn(cls, texts: Sequence[str]) -> Self:
        """Learn the vocabulary of texts; of more than 20,000 words, those that occur in the most texts.

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Returns
        -------
        TfIdf
            Words and weights.

        Raises
        ------
        AnnotationError
            If no text has a word of two letters.
        """
        found: Counter[str] = Counter()
        for text in texts:
            found.update(set(words(text)))
        usual = {term: n for term, n in found.items() if n >= _MIN_TEXTS} or found
        if not usual:
            raise AnnotationError(
                "There is no word of at least two letters in the texts, so there is nothing to learn."
            )
        kept = sorted(sorted(usual, key=lambda term: (-usual[term], term))[:_MAX_TERMS])
        counts = np.array([usual[term] for term in kept], float)
        return cls(tuple(kept), tuple((np.log((1 + len(texts)) / (1 + counts)) + 1).tolist()))

    def apply(self, texts: Sequence[str]) -> Any:
        """Return the TF-IDF vectors of texts.

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_texts, n_terms)
            Rows of Euclidean norm 1; a text without a known word is a row of zeros.
        """
        from scipy.sparse import csr_array

        place = {term: at for at, term in enumerate(self.terms)}
        column: list[int] = []
        count: list[int] = []
        start = [0]
        for text in texts:
            known = Counter(place[word] for word in words(text) if word in place)
            for at in sorted(known):
                column.append(at)
                count.append(known[at])
            start.append(len(column))
        value = np.array(count, float) * np.array(self.weights)[column]
        row = np.repeat(np.arange(len(texts)), np.diff(start))
        length = np.sqrt(np.bincount(row, weights=value**2, minlength=len(texts)))
        return csr_array((value / length[row], column, start), shape=(len(texts), len(self.terms)))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    list of str
        The words, in order.

    Examples
    --------
    >>> words("The cat, a DOG and 42")
    ['the', 'cat', 'dog', 'and', '42']
    """
    return _WORD.findall(text.lower())
