"""What a cell learns from and what it is tested on: the part of a data set that belongs to a seed.

Where a set has no test part, items fall into folds that depend on nothing but their number: a table's first seed tests
on the first fold, the next one on the second. Items without truth are always learnt from and never tested on.
Nothing about the test part, neither its truth nor its features, reaches the part that is learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import datasets, simulate
from manyhands.annotations import Annotations
from manyhands.datasets import CrowdDataset
from manyhands.datasets.crowd_dataset import NO_TRUTH
from manyhands.exceptions import ParameterError
from manyhands.reproduce.tables import FIRST_SEED, DataSet
from manyhands.simulate import Crowd, FeatureCrowd, thin

Array = npt.NDArray[Any]
Index = npt.NDArray[np.intp]

MAKERS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name) for module in (simulate, datasets) for name in module.__all__ if name[:5] == "make_"
}

# Each draw has a generator of its own, whatever else a seed decides.
_FOLDS, _SEATS, _REMOVAL, _SUBSET = 20261, 20262, 20263, 20264
_APART = 1_000_000  # between the seeds that several arguments of one function get


@dataclass(frozen=True, eq=False)
class Part:
    """Items to learn from with their annotations, and items to be tested on; None where a set has none.

    `y_train` is for measuring alone: -1, or None where classes are text, stands for an unknown truth. So is `planted`:
    the "difficulty" of each item and the "expertise" of each worker in each class, where they were made.
    """

    X: Array | None
    annotations: Annotations
    y_train: Array | None
    X_test: Array | None = None
    y_test: Array | None = None
    planted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """(n_items,) whether `y_train` is known."""
        if self.y_train is None:
            return np.zeros(len(self.annotations), bool)
        if self.y_train.dtype == object:
            return np.array([value is not None for value in self.y_train], bool)
        return np.asarray(self.y_train != NO_TRUTH)

    def with_items(self, rows: Index) -> Part:
        """Learn from these items only."""
        X, y = (None if values is None else values[rows] for values in (self.X, self.y_train))
        planted = dict(self.planted)
        if "difficulty" in planted:
            planted["difficulty"] = planted["difficulty"][rows]
        return replace(self, X=X, annotations=self.annotations[rows], y_train=y, planted=planted)


def make_part(dataset: DataSet, seed: int, first_seed: int = FIRST_SEED, quick: bool = False) -> Part:
    """The part of a data set that belongs to a seed; the same seed gives the same part."""
    part = _whole(dataset, seed)
    if dataset.folds is not None:
        part = _fold(part, dataset, (seed - first_seed) % dataset.folds)
    if dataset.items is not None:
        part = part.with_items(_items(dataset, len(part.annotations), seed))
    if dataset.remove:
        rng = np.random.default_rng([_REMOVAL, seed])
        part = replace(part, annotations=thin(part.annotations, dataset.remove, dataset.keep_one, rng))
    if quick:
        part = part.with_items(_some(part, dataset.quick_items))
    return _standardised(part, dataset) if dataset.features == "standardised" else part


def _whole(dataset: DataSet, seed: int) -> Part:
    if dataset.load is not None:
        return _of_loaded(dataset, datasets.load(dataset.load, **dataset.arguments))
    if dataset.make not in MAKERS:
        raise ParameterError(f"The data set {dataset.name!r} is neither loaded nor made: give load or make.")
    seeds = {argument: seed + k * _APART for k, argument in enumerate(dataset.seeded)}
    made = MAKERS[dataset.make](**dataset.arguments, **seeds)
    if isinstance(made, CrowdDataset):
        return _of_loaded(dataset, made)
    if isinstance(made, FeatureCrowd):
        return Part(
            made.X, made.crowd.annotations, made.crowd.truth, made.X_test, made.truth_test, _planted(vars(made.crowd))
        )
    if isinstance(made, Crowd):
        return Part(None, made.annotations, made.truth, planted=_planted(vars(made)))
    raise ParameterError(f"The data set {dataset.name!r} cannot be made: {dataset.make} gives no crowd.")


def _of_loaded(dataset: DataSet, data: CrowdDataset) -> Part:
    if data.annotations is not None:
        annotations = data.annotations
    elif data.votes is not None:
        annotations = _seated(data.votes, data.classes)
    else:
        raise ParameterError(f"The data set {dataset.name!r} has no labels of a crowd; simulate one on its truth.")
    return Part(data.X, annotations, data.y_true, data.X_test, data.y_test, _planted(data.extra))


def _planted(made: Mapping[str, Any]) -> dict[str, Any]:
    """What a simulation knows of difficulty and expertise."""
    return {name: made[name] for name in ("difficulty", "expertise") if made.get(name) is not None}


def _seated(votes: npt.NDArray[np.int64], classes: Array) -> Annotations:
    """Annotations with the same counts of votes, by seats that mean nothing.

    Who voted is unknown, so the votes of each item are shuffled: no seat is better than another.
    """
    n_items, n_classes = votes.shape
    n_votes = votes.sum(axis=1)
    item = np.repeat(np.arange(n_items), n_votes)
    label = np.repeat(np.tile(np.arange(n_classes), n_items), votes.ravel())
    shuffled = np.lexsort((np.random.default_rng([_SEATS, n_items]).random(len(item)), item))
    seat = np.arange(len(item)) - np.repeat(np.cumsum(n_votes) - n_votes, n_votes)
    return Annotations(
        item, seat, label[shuffled], item_ids=np.arange(n_items), worker_ids=np.arange(n_votes.max()), classes=classes
    )


def _fold(part: Part, dataset: DataSet, fold: int) -> Part:
    """One fold of the items of known truth to test on, and all else to learn from."""
    assert dataset.folds is not None
    if part.X_test is not None:
        raise ParameterError(f"The data set {dataset.name!r} has a test part of its own; leave folds out.")
    known = np.flatnonzero(part.has_truth)
    if part.X is None or part.y_train is None or len(known) < dataset.folds:
        raise ParameterError(f"The data set {dataset.name!r} has no {dataset.folds} items with features and truth.")
    n_items = len(part.annotations)
    order = np.random.default_rng([_FOLDS, n_items]).permutation(known)
    out = np.sort(order[fold :: dataset.folds])
    rest = np.setdiff1d(np.arange(n_items), out)
    return replace(part.with_items(rest), X_test=part.X[out], y_test=part.y_train[out])


def _items(dataset: DataSet, n_items: int, seed: int) -> Index:
    """The first so many, or those that the seed draws, in their order."""
    assert dataset.items is not None
    if dataset.items > n_items:
        raise ParameterError(f"The data set {dataset.name!r} has {n_items} items to learn from, not {dataset.items}.")
    if dataset.drawn:
        return np.sort(np.random.default_rng([_SUBSET, seed]).permutation(n_items)[: dataset.items])
    return np.arange(dataset.items)


def _some(part: Part, wanted: int) -> Index:
    """So many items of known truth, if there are any, from first to last: some sets are sorted by class."""
    known = np.flatnonzero(part.has_truth)
    items = known if len(known) else np.arange(len(part.annotations))
    return items[np.linspace(0, len(items) - 1, min(wanted, len(items))).round().astype(np.intp)]


def _standardised(part: Part, dataset: DataSet) -> Part:
    """Mean 0 and spread 1 by the items that are learnt from; what does not vary among them is only shifted."""
    if part.X is None:
        raise ParameterError(f"The data set {dataset.name!r} has no features to standardise; leave features out.")
    mean, spread = part.X.mean(axis=0, dtype=np.float64), part.X.std(axis=0, dtype=np.float64)
    varies = part.X.max(axis=0) > part.X.min(axis=0)  # the spread of equal numbers may miss 0 by rounding
    spread = np.where(varies & (spread > 0), spread, 1.0)
    X, X_test = (None if rows is None else (rows - mean) / spread for rows in (part.X, part.X_test))
    return replace(part, X=X, X_test=X_test)
