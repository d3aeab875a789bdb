"""Training and test items of a data set for one seed.

A data set without a test part is split into folds that depend on the number of items only: the first seed of a table
tests on the first fold, the next seed on the second. Items without ground truth are training items in every fold.
Neither truth nor features of the test items are used in training.
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

# Every random step has a generator of its own, so that one step does not change another.
_FOLDS, _VOTERS, _REMOVAL, _SUBSET = 20261, 20262, 20263, 20264
_SEED_STEP = 1_000_000  # between the seeds of several arguments of one function


@dataclass(frozen=True, eq=False)
class Part:
    """Training items with their annotations, and test items.

    Attributes
    ----------
    X : ndarray or None
        Features of the training items, one row each; None for a data set without features.
    annotations : Annotations
        Labels of the training items.
    y_train : ndarray or None
        Ground truth of the training items, for metrics only; -1 (None for classes that are text) if unknown.
    X_test : ndarray or None, default=None
        Features of the test items.
    y_test : ndarray or None, default=None
        Ground truth of the test items.
    planted : mapping of str to ndarray
        Parameters of a simulation, for metrics only: "difficulty" of each item, "expertise" of each worker and class.
    """

    X: Array | None
    annotations: Annotations
    y_train: Array | None
    X_test: Array | None = None
    y_test: Array | None = None
    planted: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """Whether the ground truth of each training item is known, shape (n_items,)."""
        if self.y_train is None:
            return np.zeros(len(self.annotations), bool)
        if self.y_train.dtype == object:
            return np.array([value is not None for value in self.y_train], bool)
        return np.asarray(self.y_train != NO_TRUTH)

    def with_items(self, rows: Index) -> Part:
        """Return the same with these training items only.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the items.

        Returns
        -------
        Part
            Test items stay the same.
        """
        X, y = (None if values is None else values[rows] for values in (self.X, self.y_train))
        planted = dict(self.planted)
        if "difficulty" in planted:
            planted["difficulty"] = planted["difficulty"][rows]
        return replace(self, X=X, annotations=self.annotations[rows], y_train=y, planted=planted)


def make_part(
    dataset: DataSet,
    seed: int,
    first_seed: int = FIRST_SEED,
    quick: bool = False,
    *,
    load: Callable[..., CrowdDataset] | None = None,
) -> Part:
    """Return the training and test items of a data set for one seed; the same seed gives the same items.

    Parameters
    ----------
    dataset : DataSet
        What to load or simulate, and how to prepare it.
    seed : int
        Seed of the simulation, of removed annotations and drawn items; determines the fold.
    first_seed : int, default=1000
        Seed that tests on the first fold.
    quick : bool, default=False
        Keep `dataset.quick_items` training items only.
    load : callable or None, default=None
        What loads data sets by name; None is `manyhands.datasets.load`.

    Returns
    -------
    Part
        Training items with annotations, and test items.

    Raises
    ------
    ParameterError
        If the data set cannot be prepared in this way.
    """
    part = _whole(dataset, seed, load or datasets.load)
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


def _whole(dataset: DataSet, seed: int, load: Callable[..., CrowdDataset]) -> Part:
    """Return the data set before folds, removal and scaling."""
    if dataset.load is not None:
        return _of_loaded(dataset, load(dataset.load, **dataset.arguments))
    if dataset.make not in MAKERS:
        raise ParameterError(f"The data set {dataset.name!r} is neither loaded nor simulated: give load or make.")
    seeds = {argument: seed + k * _SEED_STEP for k, argument in enumerate(dataset.seeded)}
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
    """Return a loaded data set, with anonymous workers where it has only counts of votes."""
    if data.annotations is not None:
        annotations = _numbered(data.annotations)
    elif data.votes is not None:
        annotations = _from_counts(data.votes, data.classes)
    else:
        raise ParameterError(f"The data set {dataset.name!r} has no labels of a crowd; simulate one on its truth.")
    return Part(data.X, annotations, data.y_true, data.X_test, data.y_test, _planted(data.extra))


def _numbered(annotations: Annotations) -> Annotations:
    """Return annotations whose items are their row numbers: every method then runs in the order of the data set."""
    return Annotations(
        annotations.item,
        annotations.worker,
        annotations.label,
        item_ids=np.arange(annotations.n_items),
        worker_ids=annotations.worker_ids,
        classes=annotations.classes,
    )


def _planted(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the simulated difficulty and expertise, where there are any."""
    return {name: made[name] for name in ("difficulty", "expertise") if made.get(name) is not None}


def _from_counts(votes: npt.NDArray[np.int64], classes: Array) -> Annotations:
    """Return annotations with these counts of votes, shape (n_items, n_classes), by anonymous workers.

    Worker ids are unknown, so the votes of each item are assigned to workers at random: all are equally accurate.
    """
    n_items, n_classes = votes.shape
    n_votes = votes.sum(axis=1)
    item = np.repeat(np.arange(n_items), n_votes)
    label = np.repeat(np.tile(np.arange(n_classes), n_items), votes.ravel())
    shuffled = np.lexsort((np.random.default_rng([_VOTERS, n_items]).random(len(item)), item))
    worker = np.arange(len(item)) - np.repeat(np.cumsum(n_votes) - n_votes, n_votes)
    return Annotations(
        item, worker, label[shuffled], item_ids=np.arange(n_items), worker_ids=np.arange(n_votes.max()), classes=classes
    )


def _fold(part: Part, dataset: DataSet, fold: int) -> Part:
    """Return one fold of the items with known truth as test items, all others as training items."""
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
    """Return the positions of the first `dataset.items` items, or of as many that the seed draws, sorted."""
    assert dataset.items is not None
    if dataset.items > n_items:
        raise ParameterError(f"The data set {dataset.name!r} has {n_items} training items, not {dataset.items}.")
    if dataset.drawn:
        return np.sort(np.random.default_rng([_SUBSET, seed]).permutation(n_items)[: dataset.items])
    return np.arange(dataset.items)


def _some(part: Part, wanted: int) -> Index:
    """Return evenly spaced items with known truth (all items if none is known): some sets are sorted by class."""
    known = np.flatnonzero(part.has_truth)
    items = known if len(known) else np.arange(len(part.annotations))
    return items[np.linspace(0, len(items) - 1, min(wanted, len(items))).round().astype(np.intp)]


def _standardised(part: Part, dataset: DataSet) -> Part:
    """Scale features to mean 0 and standard deviation 1 of the training items; constant ones are centred only."""
    if part.X is None:
        raise ParameterError(f"The data set {dataset.name!r} has no features to standardise; leave features out.")
    mean, spread = part.X.mean(axis=0, dtype=np.float64), part.X.std(axis=0, dtype=np.float64)
    varies = part.X.max(axis=0) > part.X.min(axis=0)  # the deviation of equal numbers may differ from 0 by rounding
    spread = np.where(varies & (spread > 0), spread, 1.0)
    X, X_test = (None if rows is None else (rows - mean) / spread for rows in (part.X, part.X_test))
    return replace(part, X=X, X_test=X_test)
