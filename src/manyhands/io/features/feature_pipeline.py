"""How a row of features becomes numbers: which columns, which words, which scale. It is saved with a model."""

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
from manyhands.io.features.loading import Features, read_features
from manyhands.io.features.tfidf import TfIdf
from manyhands.io.messages import counted, listed, shorten

_SCHEMA = 2


@dataclass(frozen=True)
class Scale:
    """Mean and spread of each feature, or of each channel of images: networks learn badly from other numbers."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]

    @classmethod
    def learn(cls, rows: npt.NDArray[Any]) -> Self:
        """From these rows; what never changes keeps its size."""
        axes = tuple(axis for axis in range(rows.ndim) if axis != 1)
        mean, spread = rows.mean(axis=axes, dtype=np.float64), rows.std(axis=axes, dtype=np.float64)
        steady = spread <= 1e-12 * np.abs(mean)  # rounding is no spread
        return cls(tuple(mean.tolist()), tuple(np.where(steady, 1.0, spread).tolist()))

    def apply(self, rows: Any) -> npt.NDArray[np.float64]:
        """The rows, which may be a sparse matrix, on this scale."""
        if rows.shape[1] != len(self.mean):
            raise AlignmentError(
                f"The model was trained with {counted(len(self.mean), 'feature')}; these rows have {rows.shape[1]}."
            )
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        along = (1, -1) + (1,) * (rows.ndim - 2)
        scaled: npt.NDArray[np.float64] = (rows - np.reshape(self.mean, along)) / np.reshape(self.spread, along)
        return scaled


@dataclass(frozen=True)
class FeaturePipeline:
    """How a row becomes numbers: what `predict` must do as `train` did."""

    columns: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    tfidf: TfIdf | None = None
    scale: Scale | None = None

    @classmethod
    def learn(cls, features: Features, *, standardise: bool = True) -> Self:
        """The recipe that fits these rows: words and their weights, means and spreads come from them alone."""
        tfidf = None if features.texts is None else TfIdf.learn(features.texts)
        dense = standardise and isinstance(features.numbers, np.ndarray)
        return cls(features.columns, features.text, tfidf, Scale.learn(_finite(features)) if dense else None)

    def __str__(self) -> str:
        """What it is made for, in the words of an error."""
        numbers = f"the {_columns(self.columns)}" if self.columns else ""
        text = f"the text of the {_columns(self.text)}" if self.text else ""
        return " and ".join(filter(None, (numbers, text))) or "an array without names of columns"

    def read(self, path: str | Path, **options: Any) -> Features:
        """The rows of a file that is made as the one of the training; `options` as of `read_features`."""
        return read_features(path, columns=self.columns, text=self.text, trained_on=str(self), **options)

    def apply(self, features: Features) -> Any:
        """The rows as one array or sparse matrix of finite numbers."""
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
        tfidf = None if self.tfidf is None else {"terms": self.tfidf.terms, "weights": self.tfidf.weights}
        scale = None if self.scale is None else {"mean": self.scale.mean, "spread": self.scale.spread}
        document = {"schema": _SCHEMA, "columns": self.columns, "text": self.text, "tfidf": tfidf, "scale": scale}
        return json.dumps(document, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes, name: str) -> Self:
        try:
            document = json.loads(content)
            if document["schema"] == _SCHEMA:
                words, scale = document["tfidf"], document["scale"]
                return cls(
                    _texts(document["columns"]),
                    _texts(document["text"]),
                    None if words is None else TfIdf(_texts(words["terms"]), _floats(words["weights"], words["terms"])),
                    None if scale is None else Scale(_floats(scale["mean"]), _spread(scale["spread"], scale["mean"])),
                )
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            cause = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ParameterError(f"{name} cannot be read: {cause}. Train it again.") from None
        raise ParameterError(
            f"{name} has the schema {document['schema']!r}; this version reads {_SCHEMA}. Train it again."
        )


def _floats(numbers: Any, beside: Sequence[Any] | None = None) -> tuple[float, ...]:
    """Finite numbers, as many as there are of what stands beside them."""
    if not isinstance(numbers, list) or (beside is not None and len(numbers) != len(beside)):
        raise ValueError("its lists are not of one length")
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise ValueError("a number in it is not finite")
    return tuple(map(float, numbers))


def _spread(numbers: Any, means: Sequence[Any]) -> tuple[float, ...]:
    found = _floats(numbers, means)
    if min(found, default=1) <= 0:
        raise ValueError("a spread in it is not above 0")
    return found


def _texts(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("a name in it is no text")
    return tuple(names)


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {listed(names)}"


def _finite(features: Features) -> Any:
    """The numbers of these rows, if all of them are; otherwise the row of the file that has another is named."""
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
    """The first row with a number that is not finite; None where something else is wrong."""
    if numbers.dtype.kind != "f":
        return None
    for row in range(numbers.shape[0]):
        part = numbers[row : row + 1]
        with np.errstate(over="ignore"):
            if not np.isfinite(np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float32)).all():
                return row
    return None
