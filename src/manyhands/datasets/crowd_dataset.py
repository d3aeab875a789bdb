"""`CrowdDataset`: what every loader returns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations

Array = npt.NDArray[Any]

NO_TRUTH = -1  # unknown class in `y_true`, as in sklearn.semi_supervised; None if classes are not numbers


def _empty_mapping() -> Mapping[str, Any]:
    """Return an empty read-only mapping."""
    return MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class CrowdDataset:
    """A crowd-labelled data set; what it does not have is None.

    Attributes
    ----------
    name : str
        Name of the data set.
    classes : ndarray of shape (n_classes,)
        Values of labels and truth, as in ``annotations.classes``.
    description : str, default=""
        One or two sentences.
    annotations : Annotations or None, default=None
        The labels; None if there are no labels of single workers: data to simulate crowds on, and vote counts.
    y_true : ndarray of shape (n_items,) or None, default=None
        The class of each item; -1 if it is unknown (None if classes are text). ``y_true[data.has_truth]`` is always
        valid.
    X : ndarray of shape (n_items, n_features) or None, default=None
        Features; row i is item i of `annotations`.
    X_valid : ndarray or None, default=None
        Features of validation items, which have no annotations.
    y_valid : ndarray or None, default=None
        Their classes.
    X_test : ndarray or None, default=None
        Features of test items, which have no annotations.
    y_test : ndarray or None, default=None
        Their classes.
    votes : ndarray of shape (n_items, n_classes) or None, default=None
        Number of votes for each class, if only that is known.
    class_names : tuple of str or None, default=None
        Names of the classes, if the values are numbers.
    extra : mapping of str to object
        What only this data set has; see `description`.

    Examples
    --------
    >>> votes = Annotations.from_triples(["a", "b", "b"], ["ann", "ann", "bob"], [0, 1, 1])
    >>> data = CrowdDataset("pets", votes.classes, annotations=votes, y_true=np.array([0, -1]))
    >>> data
    CrowdDataset('pets': 3 labels on 2 items by 2 workers, 2 classes; truth of 1)
    >>> data.truth
    {'a': 0}
    """

    name: str
    classes: Array
    description: str = ""
    annotations: Annotations | None = None
    y_true: Array | None = None
    X: Array | None = None
    X_valid: Array | None = None
    y_valid: Array | None = None
    X_test: Array | None = None
    y_test: Array | None = None
    votes: Array | None = None
    class_names: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty_mapping)

    @property
    def n_items(self) -> int:
        """Number of items."""
        for rows in (self.annotations, self.X, self.y_true, self.votes):
            if rows is not None:
                return len(rows)
        return 0

    @property
    def item_ids(self) -> Array:
        """Ids of the items, of shape (n_items,): those of the annotations, or their numbers."""
        return np.arange(self.n_items) if self.annotations is None else self.annotations.item_ids

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """Whether `y_true` is known, of shape (n_items,)."""
        if self.y_true is None:
            return np.zeros(self.n_items, bool)
        if self.y_true.dtype == object:
            return np.array([value is not None for value in self.y_true], bool)
        return np.asarray(self.y_true != NO_TRUTH)

    @property
    def truth(self) -> dict[Hashable, Any]:
        """The known classes as a dict, item -> class, as ``fit(gold=...)`` takes it."""
        known = self.has_truth
        classes = [] if self.y_true is None else self.y_true[known].tolist()
        return dict(zip(self.item_ids[known].tolist(), classes))

    def __repr__(self) -> str:
        """Return a summary without the arrays."""
        return f"CrowdDataset({self.name!r}: {'; '.join(self._parts())})"

    def _parts(self) -> list[str]:
        """Return the parts of the summary."""
        if self.annotations is None:
            kind = "no annotations" if self.votes is None else "vote counts without workers"
            parts = [f"{self.n_items} items, {len(self.classes)} classes", kind]
        else:
            parts = [repr(self.annotations).removeprefix("Annotations(").removesuffix(")")]
        n_known = int(self.has_truth.sum())
        if n_known < self.n_items:
            parts.append(f"truth of {n_known or 'none'}")
        shapes = {"X": self.X, "X_valid": self.X_valid, "X_test": self.X_test}
        parts += [f"{name} {' x '.join(map(str, x.shape))}" for name, x in shapes.items() if x is not None]
        return parts + ([f"extra: {', '.join(self.extra)}"] if self.extra else [])
