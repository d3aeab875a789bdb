"""The feature pipeline: which columns, which words and which scaling turn a row of a file into numbers.

It is learnt in training, saved with the model (``features.json``), and applied again in prediction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.features import as_rows
from manyhands.io.features.feature_loading import Features, read_features
from manyhands.io.features.tfidf import TfIdf
from manyhands.io.messages import counted, listed, shorten

_SCHEMA = 3


@dataclass(frozen=True)
class Standardisation:
    """Mean and standard deviation of each feature, or of each channel of images.

    Neural networks train badly on features of very different sizes.

    Attributes
    ----------
    mean : tuple of float
        Mean of each feature.
    std : tuple of float
        Standard deviation of each feature; 1 for a constant feature.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def learn(cls, rows: npt.NDArray[Any]) -> Self:
        """Compute mean and standard deviation of rows.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features, ...)
            The training rows.

        Returns
        -------
        Standardisation
            Mean and standard deviation along axis 1.
        """
        axes = tuple(axis for axis in range(rows.ndim) if axis != 1)
        mean, std = rows.mean(axis=axes, dtype=np.float64), rows.std(axis=axes, dtype=np.float64)
        constant = std <= 1e-12 * np.abs(mean)  # differences by rounding only
        return cls(tuple(mean.tolist()), tuple(np.where(constant, 1.0, std).tolist()))

    def apply(self, rows: Any) -> npt.NDArray[np.float64]:
        """Standardise rows.

        Parameters
        ----------
        rows : ndarray or sparse matrix of shape (n_rows, n_features, ...)
            The rows.

        Returns
        -------
        ndarray of float, of the same shape
            ``(rows - mean) / std``.

        Raises
        ------
        AlignmentError
            If the rows have another number of features.
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
    """How a row of a file becomes numbers.

    Attributes
    ----------
    columns : tuple of str
        Columns with numbers; empty for arrays without names.
    text : tuple of str
        Columns with text.
    tfidf : TfIdf or None
        Vocabulary and weights of the text.
    scale : Standardisation or None
        Mean and standard deviation of the numbers.
    """

    columns: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    tfidf: TfIdf | None = None
    scale: Standardisation | None = None

    @classmethod
    def learn(cls, features: Features, *, standardise: bool = True) -> Self:
        """Learn the pipeline from training rows: vocabulary, means and standard deviations come from them only.

        Parameters
        ----------
        features : Features
            The training rows.
        standardise : bool, default=True
            Standardise dense numbers; sparse ones are left as they are.

        Returns
        -------
        FeaturePipeline
            The pipeline.
        """
        tfidf = None if features.texts is None else TfIdf.learn(features.texts)
        dense = standardise and isinstance(features.numbers, np.ndarray)
        return cls(features.columns, features.text, tfidf, Standardisation.learn(_finite(features)) if dense else None)

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
        ids_file: str | Path | None = None,
        rows_in_order: bool = False,
    ) -> Features:
        """Read the rows of a file with the same columns as in training.

        Parameters
        ----------
        path : str or Path
            The file.
        id_column : str or None, default=None
            Column with the item ids.
        ids_file : str, Path or None, default=None
            File with an id for each row.
        rows_in_order : bool, default=False
            Do not match by id: the order of the rows is that of the items.

        Returns
        -------
        Features
            The rows.
        """
        return read_features(
            path,
            id_column=id_column,
            ids_file=ids_file,
            columns=self.columns,
            text=self.text,
            rows_in_order=rows_in_order,
            trained_on=str(self),
        )

    def apply(self, features: Features) -> Any:
        """Return the rows as one matrix of finite numbers.

        Parameters
        ----------
        features : Features
            The rows.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features, ...)
            Standardised numbers, followed by TF-IDF vectors.

        Raises
        ------
        AlignmentError
            If a number is not finite, or the number of features is another than in training.
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
        """Return the content of ``features.json``.

        Returns
        -------
        bytes
            JSON.
        """
        tfidf = None if self.tfidf is None else {"terms": self.tfidf.terms, "weights": self.tfidf.weights}
        scale = None if self.scale is None else {"mean": self.scale.mean, "std": self.scale.std}
        document = {"schema": _SCHEMA, "columns": self.columns, "text": self.text, "tfidf": tfidf, "scale": scale}
        return json.dumps(document, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes, name: str) -> Self:
        """Create a pipeline from the content of ``features.json``.

        Parameters
        ----------
        content : bytes
            JSON.
        name : str
            Name of the file, for error messages.

        Returns
        -------
        FeaturePipeline
            The pipeline.

        Raises
        ------
        ParameterError
            If the content is damaged or of another schema.
        """
        try:
            document = json.loads(content)
            if document["schema"] == _SCHEMA:
                words, scale = document["tfidf"], document["scale"]
                return cls(
                    _texts(document["columns"]),
                    _texts(document["text"]),
                    None if words is None else TfIdf(_texts(words["terms"]), _floats(words["weights"], words["terms"])),
                    None
                    if scale is None
                    else Standardisation(_floats(scale["mean"]), _positive_floats(scale["std"], scale["mean"])),
                )
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            cause = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ParameterError(f"{name} cannot be read: {cause}. Train it again.") from None
        raise ParameterError(
            f"{name} has the schema {document['schema']!r}; this version reads {_SCHEMA}. Train it again."
        )


def _floats(numbers: Any, beside: Sequence[Any] | None = None) -> tuple[float, ...]:
    """Check a list of finite numbers, of the same length as another list."""
    if not isinstance(numbers, list) or (beside is not None and len(numbers) != len(beside)):
        raise ValueError("its lists are not of one length")
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise ValueError("a number in it is not finite")
    return tuple(map(float, numbers))


def _positive_floats(numbers: Any, means: Sequence[Any]) -> tuple[float, ...]:
    """Check a list of positive numbers."""
    found = _floats(numbers, means)
    if min(found, default=1) <= 0:
        raise ValueError("a standard deviation in it is not above 0")
    return found


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
