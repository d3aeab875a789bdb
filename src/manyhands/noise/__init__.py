"""How a worker errs; one file per model.

Every model here but `difficulty` is a *table*: its answer depends on (worker, truth, label) alone. A table is a
frozen dataclass with three methods:

    solve(counts, previous)   the best parameters given expected counts[worker, truth, label]
    log_table(params)         log p(label | truth) for each worker, indexed [worker, truth, label]
    log_penalty(params)       what smoothing and priors add to the objective

`previous` are the parameters of the last iteration, or None in the first; models with a closed form ignore them.
`solve` never lowers  sum(counts * log_table) + log_penalty  below its value at `previous`: that is all exact EM needs.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyhands import elementary

Array = npt.NDArray[np.float64]
P = TypeVar("P")


class NoiseModel(Protocol[P]):
    """What `table_model.fit_confusion_em` needs of a model."""

    def solve(self, counts: Array, previous: P | None) -> P: ...

    def log_table(self, params: P) -> Array: ...

    def log_penalty(self, params: P) -> float: ...


@runtime_checkable
class Remembering(Protocol[P]):
    """A model whose `solve` moves slow hyper-parameters on from where they were: positive numbers, as one vector."""

    def memory(self, params: P | None) -> Array: ...

    def remember(self, memory: Array, previous: P | None) -> P | None: ...


def safe_log(p: Array) -> Array:
    """Log p with the smallest positive double in place of 0, so that sums of logs stay finite."""
    return np.asarray(elementary.log(np.maximum(p, np.finfo(np.float64).tiny)))


def labels_beforehand(n_classes: int, right: float, wrong: float) -> Array:
    """[truth, label] so many labels in each cell, the wrong ones shared by the wrong classes."""
    pseudo = np.full((n_classes, n_classes), wrong / max(n_classes - 1, 1))
    np.fill_diagonal(pseudo, right)
    return pseudo
