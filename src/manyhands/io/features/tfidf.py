"""Text as numbers: how often each word stands in it, weighed down where many texts have the word (TF-IDF)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from manyhands.exceptions import AnnotationError

_WORD = re.compile(r"\w\w+")  # two letters or digits at least
_MAX_TERMS = 20_000
_MIN_TEXTS = 2  # a word of one text alone teaches nothing about another, unless there is no other word


@dataclass(frozen=True)
class TfIdf:
    """The words that count, in order, and the weight of each: log((1 + n) / (1 + n with the word)) + 1."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]

    @classmethod
    def learn(cls, texts: Sequence[str]) -> Self:
        """The words of these texts; of more than 20,000, those that most texts have."""
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
        """(n_texts, n_terms) a sparse matrix whose rows have length 1; a text without a known word has 0."""
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
    """The words of a text, without case.

    >>> words("The cat, a DOG and 42")
    ['the', 'cat', 'dog', 'and', '42']
    """
    return _WORD.findall(text.lower())
