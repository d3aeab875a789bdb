"""The feature pipeline: which columns, which words and which scaling turn a row of a file into numbers.

It is learnt in training, saved with the model (``features.json``), and applied again in prediction. The file:
`FeaturePipeline` and the scaling of numbers; text as TF-IDF; the folder of a trained model.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core.system import read_limited
from manyhands._core.writing import verify_folder
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.features import as_rows
from manyhands.io.features import Features, read_features
from manyhands.io.messages import counted, listed, shorten

_MAX_FILE = 1 << 28  # bytes of features.json: 20,000 words, and numbers for a million columns
_SCHEMA = 3  # of features.json; a file of another schema is refused


@dataclass(frozen=True)
class _Standardisation:
    """Mean and standard deviation of each feature, or of each channel of images.

    Neural networks train badly on features of very different sizes.
    """

    mean: tuple[float, ...]  # mean of each feature
    std: tuple[float, ...]  # standard deviation of each feature; 1 for a constant feature

    @classmethod
    def learn(cls, rows: npt.NDArray[Any]) -> Self:
        """Compute mean and standard deviation of rows.

        Shapes: rows (n_rows, n_features, ...).
        """
        axes = tuple(axis for axis in range(rows.ndim) if axis != 1)
        mean, std = rows.mean(axis=axes, dtype=np.float64), rows.std(axis=axes, dtype=np.float64)
        constant = std <= 1e-12 * np.abs(mean)  # differences by rounding only
        return cls(tuple(mean.tolist()), tuple(np.where(constant, 1.0, std).tolist()))

    def apply(self, rows: Any) -> npt.NDArray[np.float64]:
        """Standardise rows.

        Shapes: rows (n_rows, n_features, ...).
        """
        if rows.shape[1] != len(self.mean):
            raise AlignmentError(
                f"The model was trained with {counted(len(self.mean), 'feature')}; these rows have {rows.shape[1]}."
            )
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        along = (1, -1) + (1,) * (rows.ndim - 2)
        scaled: npt.NDArray[np.float64] = (rows - np.reshape(self.mean, along)) / np.reshape(self.std, along)
        return scaled


@dataclass(frozen=True)
class FeaturePipeline:
    """How a row of a file becomes numbers."""

    columns: tuple[str, ...] = ()  # columns with numbers; empty for arrays without names
    text: tuple[str, ...] = ()
    tfidf: TfIdf | None = None  # vocabulary and weights of the text
    scale: _Standardisation | None = None  # mean and standard deviation of the numbers

    @classmethod
    def learn(cls, features: Features, *, standardise: bool = True) -> Self:
        """Learn the pipeline from training rows: vocabulary, means and standard deviations come from them only."""
        tfidf = None if features.texts is None else TfIdf.learn(features.texts)
        dense = standardise and isinstance(features.numbers, np.ndarray)
        return cls(features.columns, features.text, tfidf, _Standardisation.learn(_finite(features)) if dense else None)

    @property
    def n_features(self) -> int | None:
        """Number of features that it makes; None for arrays without names of columns."""
        if not self.columns and not self.text:
            return None
        return len(self.columns) + (0 if self.tfidf is None else len(self.tfidf.terms))

    def __str__(self) -> str:
        """Return what the pipeline was trained on, for error messages."""
        numbers = f"the {_columns(self.columns)}" if self.columns else ""
        text = f"the text of the {_columns(self.text)}" if self.text else ""
        return " and ".join(filter(None, (numbers, text))) or "an array without names of columns"

    def read(
        self,
        path: str | Path,
        *,
        id_column: str | None = None,
        feature_ids: str | Path | None = None,
        rows_in_order: bool = False,
    ) -> Features:
        """Read the rows of a file with the same columns as in training."""
        return read_features(
            path,
            id_column=id_column,
            feature_ids=feature_ids,
            columns=self.columns,
            text=self.text,
            rows_in_order=rows_in_order,
            trained_on=str(self),
        )

    def apply(self, features: Features) -> Any:
        """Return the rows as one matrix of finite numbers.

        Shapes: returns (n_rows, n_features, ...).
        """
        parts = [] if features.numbers is None else [_finite(features)]
        if self.scale is not None:
            parts = [_finite(replace(features, numbers=self.scale.apply(parts[0])))]
        if self.tfidf is not None and features.texts is not None:
            parts.append(self.tfidf.apply(features.texts))
        if len(parts) == 2:
            from scipy.sparse import csr_array, hstack

            parts = [hstack([csr_array(parts[0]), parts[1]], format="csr")]
        return parts[0]

    def to_json(self) -> bytes:
        """Return the content of ``features.json``."""
        tfidf = None if self.tfidf is None else {"terms": self.tfidf.terms, "weights": self.tfidf.weights}
        scale = None if self.scale is None else {"mean": self.scale.mean, "std": self.scale.std}
        document = {"schema": _SCHEMA, "columns": self.columns, "text": self.text, "tfidf": tfidf, "scale": scale}
        return json.dumps(document, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes, name: str) -> Self:
        """Create a pipeline from the content of ``features.json``."""
        try:
            document = json.loads(content)
            if document["schema"] == _SCHEMA:
                words, scale = document["tfidf"], document["scale"]
                pipeline = cls(
                    _texts(document["columns"]),
                    _texts(document["text"]),
                    None if words is None else TfIdf(_texts(words["terms"]), _floats(words["weights"], words["terms"])),
                    None
                    if scale is None
                    else _Standardisation(_floats(scale["mean"]), _positive_floats(scale["std"], scale["mean"])),
                )
                pipeline._refuse_contradictions()
                return pipeline
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            cause = (
                f"it has no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0].rstrip(".")[:200]
            )
            raise ParameterError(f"{name} cannot be read: {cause}. Train it again.") from None
        raise ParameterError(
            f"{name} has the schema {shorten(str(document['schema']))}; this version reads {_SCHEMA}. Train it again."
        )

    def _refuse_contradictions(self) -> None:
        """Refuse parts of a changed file that do not belong together."""
        if (self.tfidf is None) != (not self.text):
            raise ValueError("it has columns of text without a vocabulary, or a vocabulary without columns of text")
        if self.scale is not None and self.columns and len(self.scale.mean) != len(self.columns):
            raise ValueError("its means are not those of its columns")
        if self.scale is not None and self.text and not self.columns:
            raise ValueError("it has means of numbers, and no columns with numbers")
        if self.tfidf is not None and len(set(self.tfidf.terms)) != len(self.tfidf.terms):
            raise ValueError("a word occurs twice in its vocabulary")


def _floats(numbers: Any, beside: Sequence[Any] | None = None) -> tuple[float, ...]:
    """Check a list of finite numbers, of the same length as another list."""
    if not isinstance(numbers, list) or (beside is not None and len(numbers) != len(beside)):
        raise ValueError("its lists are not of one length")
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise ValueError("a number in it is not finite")
    return tuple(map(float, numbers))


def _positive_floats(numbers: Any, means: Sequence[Any]) -> tuple[float, ...]:
    """Check a list of positive numbers."""
    values = _floats(numbers, means)
    if min(values, default=1) <= 0:
        raise ValueError("a standard deviation in it is not above 0")
    return values


def _texts(names: Any) -> tuple[str, ...]:
    """Check a list of texts."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("a name in it is not text")
    return tuple(names)


def _columns(names: Sequence[str]) -> str:
    """Return names of columns, for error messages."""
    return f"{'column' if len(names) == 1 else 'columns'} {listed(names)}"


def _finite(features: Features) -> Any:
    """Return the numbers of rows if all are finite; otherwise name the row of the file."""
    try:
        return as_rows(features.numbers).whole()
    except AlignmentError as error:
        row = _first_infinite(features.numbers)
        if row is None:
            raise AlignmentError(f"{features.source}: {error}") from None
        item = "" if features.ids is None else f" (item {shorten(features.ids[row])!r})"
        raise AlignmentError(
            f"{features.source}: X has NaN, infinity or a number beyond 32-bit floats in row "
            f"{features.row_of_file(row)}{item}; fill or drop it."
        ) from None


def _first_infinite(numbers: Any) -> int | None:
    """Return the first row with a number that is not finite; None if something else is wrong."""
    if numbers.dtype.kind != "f":
        return None
    for row in range(numbers.shape[0]):
        part = numbers[row : row + 1]
        with np.errstate(over="ignore"):
            if not np.isfinite(np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float32)).all():
                return row
    return None


# ----------------------------------------------------------------------------------------------------
# Text as TF-IDF vectors: term frequencies, weighted down for words that occur in many texts.

_WORD = re.compile(r"\w\w+")  # at least two letters or digits
_MAX_TERMS = 20_000  # the most frequent words; a dense layer of 128 units on them has 2.6 million weights
_MIN_TEXTS = 2  # a word of a single text does not generalise; such words are used only if there are no others


@dataclass(frozen=True)
class TfIdf:
    """Vocabulary and inverse document frequencies.

    The weight of a word is ``log((1 + n) / (1 + n_w)) + 1`` for n texts of which n_w contain the word, as in
    scikit-learn's TfidfVectorizer.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...]  # the weight of each word

    @classmethod
    def learn(cls, texts: Sequence[str]) -> Self:
        """Learn the vocabulary of texts; of more than 20,000 words, those that occur in the most texts."""
        n_texts: Counter[str] = Counter()
        for text in texts:
            n_texts.update(set(words(text)))
        usual = {term: n for term, n in n_texts.items() if n >= _MIN_TEXTS} or n_texts
        if not usual:
            raise AnnotationError(
                "There is no word of at least two letters in the texts, so there is nothing to learn."
            )
        kept = sorted(sorted(usual, key=lambda term: (-usual[term], term))[:_MAX_TERMS])
        counts = np.array([usual[term] for term in kept], float)
        return cls(tuple(kept), tuple((np.log((1 + len(texts)) / (1 + counts)) + 1).tolist()))

    def apply(self, texts: Sequence[str]) -> Any:
        """Return the TF-IDF vectors of texts."""
        from scipy.sparse import csr_array

        place = {term: at for at, term in enumerate(self.terms)}
        column: list[int] = []
        count: list[int] = []
        start = [0]
        for text in texts:
            counts = Counter(place[word] for word in words(text) if word in place)
            for at in sorted(counts):
                column.append(at)
                count.append(counts[at])
            start.append(len(column))
        value = np.array(count, float) * np.array(self.weights)[column]
        row = np.repeat(np.arange(len(texts)), np.diff(start))
        length = np.sqrt(np.bincount(row, weights=value**2, minlength=len(texts)))
        return csr_array((value / length[row], column, start), shape=(len(texts), len(self.terms)))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Examples
    --------
    >>> words("The cat, a DOG and 42")
    ['the', 'cat', 'dog', 'and', '42']
    """
    return _WORD.findall(text.lower())


# ----------------------------------------------------------------------------------------------------
# The folder of a trained model: the classifier, its feature pipeline, and a manifest.
#
# ``manifest.json`` has a checksum of every other file, so that a file which is incomplete, changed or of another run is
# named before anything is loaded.

JSON, TENSORS, FEATURES = "model.json", "model.safetensors", "features.json"
FILES = (JSON, TENSORS, FEATURES)  # the manifest is written with any set of files


def model_files(model: Any, pipeline: FeaturePipeline) -> dict[str, bytes]:
    """Return the files of a fitted classifier with its feature pipeline."""
    with TemporaryDirectory() as made:
        model.save(Path(made) / "model")
        files = {name: (Path(made) / "model" / name).read_bytes() for name in (TENSORS, JSON)}
    return files | {FEATURES: pipeline.to_json()}


def load_folder(folder: Path, device: str | None = None) -> tuple[Any, FeaturePipeline]:
    """Load a classifier and its feature pipeline."""
    verify_folder(folder, FILES)
    pipeline = FeaturePipeline.from_json(read_limited(folder / FEATURES, _MAX_FILE), str(folder / FEATURES))
    model = registry.load_module("manyhands.persistence").load_model(folder, device=device)
    n_features, wanted = pipeline.n_features, getattr(model, "_row_shape", ())
    if n_features is not None and wanted != (n_features,):
        raise ParameterError(
            f"{folder / FEATURES} describes {counted(n_features, 'feature')}, and the model beside it was trained on "
            f"rows of shape {wanted}. Train it again."
        )
    return model, pipeline
