"""`Comparison`: methods ranked by the likelihood of held-out annotations, as text, rows, a data frame and HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.data_frames import make_frame
from manyhands.heldout import OWN
from manyhands.notebook_display import panels_of

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Cross-validated log-likelihood of held-out annotations for several methods; higher is better.

    Made by `compare`. Printing it shows the methods in order of rank.

    Parameters
    ----------
    names : tuple of str
        The methods in the order in which they were given; parameters are part of the name.
    scores : ndarray of shape (n_methods, n_folds)
        Mean log-likelihood of the held-out annotations of each fold.
    n_heldout : ndarray of shape (n_folds,)
        Number of held-out annotations of each fold; of a comparison of classifiers, gold classes are among them.
    estimators : tuple of estimators
        Unfitted copies of the methods.
    kinds : tuple of str
        Likelihood by which each method is scored, its `score_kind`: "own", or "confusion matrices" (the common
        recipe).
    frame_library : {"pandas", "polars", "pyarrow"} or None, default=None
        Library of the data frame that the annotations came from, which `to_frame` returns.

    Attributes
    ----------
    mean : ndarray of shape (n_methods,)
        Mean log-likelihood over all annotations, each of which is held out once.
    standard_error : ndarray of shape (n_methods,)
        Standard error of `mean`, estimated from the folds.
    difference_to_best : ndarray of shape (n_methods,)
        Mean of the best method minus that of this one; 0 for the best.
    difference_standard_error : ndarray of shape (n_methods,)
        Standard error of `difference_to_best`. Both methods are scored on the same folds (a paired comparison), so it
        is usually smaller than `standard_error`.
    rank : ndarray of shape (n_methods,)
        1 is the best; equal scores keep the order in which the methods were given.
    best : str
        Name of the best method.
    best_estimator : estimator
        Unfitted copy of the best method.
    """

    names: tuple[str, ...]
    scores: Array
    n_heldout: npt.NDArray[np.int64]
    estimators: tuple[Any, ...] = field(repr=False)
    kinds: tuple[str, ...]
    frame_library: str | None = None

    @property
    def mean(self) -> Array:
        """Mean log-likelihood over all held-out annotations, shape (n_methods,)."""
        return np.asarray(self.scores @ self.n_heldout / self.n_heldout.sum())

    @property
    def standard_error(self) -> Array:
        """Standard error of `mean` from the folds, shape (n_methods,)."""
        return _standard_error(self.scores)

    @property
    def difference_to_best(self) -> Array:
        """Mean of the best method minus that of each method, shape (n_methods,)."""
        return np.asarray(self.mean.max() - self.mean)

    @property
    def difference_standard_error(self) -> Array:
        """Standard error of `difference_to_best`, paired over folds, shape (n_methods,)."""
        return _standard_error(self.scores - self.scores[self._best])

    @property
    def rank(self) -> npt.NDArray[np.int64]:
        """Rank of each method, 1 is the best, shape (n_methods,)."""
        rank = np.empty(len(self.names), np.int64)
        rank[np.argsort(-self.mean, kind="stable")] = np.arange(1, len(self.names) + 1)
        return rank

    @property
    def best(self) -> str:
        """Name of the best method."""
        return self.names[self._best]

    @property
    def best_estimator(self) -> Any:
        """Unfitted copy of the best method."""
        return copy_unfitted(self.estimators[self._best])

    @property
    def _best(self) -> int:
        return int(self.mean.argmax())

    def table(self) -> list[dict[str, Any]]:
        """Return one row per method, the best first.

        Returns
        -------
        list of dict
            Keys ``method``, ``rank``, ``heldout_log_likelihood`` (the `mean`), ``standard_error``,
            ``difference_to_best``, ``difference_standard_error`` and ``likelihood`` (one of `kinds`).
        """
        columns = {
            "rank": self.rank,
            "heldout_log_likelihood": self.mean,
            "standard_error": self.standard_error,
            "difference_to_best": self.difference_to_best,
            "difference_standard_error": self.difference_standard_error,
        }
        rows = [
            {"method": name} | {column: values[m].item() for column, values in columns.items()} | {"likelihood": kind}
            for m, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
        ]
        return sorted(rows, key=lambda row: row["rank"])

    def to_frame(self, library: str | None = None) -> Any:
        """Return `table` as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"} or None, default=None
            Kind of data frame; None for that of the frame which the annotations came from, and polars otherwise.

        Returns
        -------
        polars.DataFrame, pandas.DataFrame or pyarrow.Table
            One row per method, the best first; with pandas the methods are the index.
        """
        rows = self.table()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return make_frame(columns, library or self.frame_library, "method")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the panel of methods of the HTML report."""
        return panels_of("comparison", self)

    def __repr__(self) -> str:
        width = max(map(len, self.names))
        lines = [
            f"Mean log-likelihood of {self.n_heldout.sum()} labels, each held out once in {len(self.n_heldout)} folds"
        ]
        for row in self.table():
            difference = f"{row['difference_to_best']:.4f} ± {row['difference_standard_error']:.4f} below the best"
            score = f"{row['heldout_log_likelihood']:8.4f} ± {row['standard_error']:.4f}"
            remark = "best" if row["rank"] == 1 else difference
            remark += ", own likelihood" if row["likelihood"] == OWN else ""
            lines.append(f"{row['rank']:>3}  {row['method']:<{width}}  {score}  {remark}")
        return "\n".join(lines)


def copy_unfitted(estimator: Any) -> Any:
    """Return an unfitted estimator with the same parameters.

    Parameters
    ----------
    estimator : estimator
        An estimator of this package, or a pipeline.

    Returns
    -------
    estimator
    """
    from sklearn.base import clone

    return clone(estimator)


def _standard_error(scores: Array) -> Array:
    """Return the standard error of the mean over folds, shape (n_methods,)."""
    return np.asarray(scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]))
