"""A cell of a table: one method on one data set with one seed. `run_cell`, at the end, is the whole of it.

    Part, make_part     training and test items of a data set for one seed
    make_estimator      the method of a row with its parameters
    ..._figures         what is measured of the crowd and of the fitted method; series, which curves are drawn from
    REVISIONS           which code measured a row, as a part of its key
    Cell, cells_of      the cells of a table and their keys
    run_cell            fit, then measure

Ground truth of the training items is used after the fit, to measure, and nowhere before.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import datasets, metrics, registry, simulate
from manyhands._core.arrays import AnyArray
from manyhands.annotations import Annotations
from manyhands.classes import imbalance
from manyhands.classifiers.network import device_parameter
from manyhands.datasets import CrowdDataset
from manyhands.datasets.local import NO_TRUTH
from manyhands.em.decisions import pick_classes
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.heldout import worker_confusions
from manyhands.metrics import fleiss_kappa
from manyhands.reproduce.tables import (
    CHOOSE_FOLDS,
    FIRST_SEED,
    OF_CLASS,
    OF_CROWD,
    OF_HISTORY,
    OF_LABELS,
    OF_ROUND,
    SHIFTED,
    STAGES,
    TRAINING,
    UNIFORM_PRIOR,
    DataSet,
    Keys,
    Row,
    Table,
)
from manyhands.simulate import Crowd, FeatureCrowd, thin

# ----------------------------------------------------------------------------------------------------
# Training and test items of a data set for one seed.
#
# A data set without a test part is split into folds that depend on the number of items only: the first seed of a table
# tests on the first fold, the next seed on the second. Items without ground truth are training items in every fold.
# Neither truth nor features of the test items are used in training.

Index = npt.NDArray[np.intp]
MAKERS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name) for module in (simulate, datasets) for name in module.__all__ if name[:5] == "make_"
}

# Every random step has a generator of its own, so that one step does not change another.
_FOLDS, _VOTERS, _REMOVAL, _SUBSET = 20261, 20262, 20263, 20264
_SEED_STEP = 1_000_000  # between the seeds of several arguments of one function


@dataclass(frozen=True, eq=False)
class Part:
    """Training items with their annotations, and test items."""

    X: AnyArray | None  # features of the training items, one row each; None for a data set without features
    annotations: Annotations  # labels of the training items
    # ground truth of the training items, for metrics only; -1 (None for classes that are text) if unknown
    y_train: AnyArray | None
    X_test: AnyArray | None = None  # features of the test items
    y_test: AnyArray | None = None  # ground truth of the test items
    # parameters of a simulation, for metrics only: "difficulty" of each item, "expertise" of each worker and class
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
        """Return the same with these training items only."""
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
    """Return the training and test items of a data set for one seed; the same seed gives the same items."""
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


def _from_counts(votes: npt.NDArray[np.int64], classes: AnyArray) -> Annotations:
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


# ----------------------------------------------------------------------------------------------------
# Figures of a crowd itself, whatever method is fitted: sizes, agreement, accuracy of workers, class shares.


def crowd_figures(part: Part) -> dict[str, float]:
    """Describe the training part of a data set."""
    votes = part.annotations
    figures = {
        "items": len(votes),
        "workers": votes.n_workers,
        "features": math.nan if part.X is None else math.prod(part.X.shape[1:]),
        "kappa": fleiss_kappa(votes, n_bootstrap=0).value,
        "labels_per_item": votes.n_annotations / max(1, votes.n_items),
        "items_per_worker": votes.n_annotations / max(1, votes.n_workers),
    }
    figures |= _of_classes("annotated", np.bincount(votes.label, minlength=votes.n_classes))
    known = part.has_truth
    if part.y_train is not None and known.any():
        of_class = [sum(value == one for value in part.y_train[known].tolist()) for one in votes.classes.tolist()]
        figures |= _of_classes("truth", np.array(of_class)) | _worker_accuracy(part)
        figures["last_class_share"] = of_class[-1] / sum(of_class)
    return {OF_CROWD + name: float(value) for name, value in figures.items()}


def _of_classes(whose: str, counts: npt.NDArray[np.int64]) -> dict[str, float]:
    """Spread of the class shares, and the imbalance ratio."""
    shares = counts / max(1, counts.sum())
    return {f"{whose}_spread": float(shares.std()), f"{whose}_imbalance": imbalance(counts)}


def _worker_accuracy(part: Part) -> dict[str, float]:
    """Mean and standard deviation over the workers who labelled an item of known truth; each worker counts once."""
    votes, known = part.annotations, part.has_truth
    assert part.y_train is not None
    labels = votes.classes[votes.label].tolist()
    is_right = np.array([label == truth for label, truth in zip(labels, part.y_train[votes.item].tolist())], float)
    counted = known[votes.item]
    n_labels = np.bincount(votes.worker[counted], minlength=votes.n_workers)
    n_right = np.bincount(votes.worker[counted], is_right[counted], minlength=votes.n_workers)
    accuracy = n_right[n_labels > 0] / n_labels[n_labels > 0]
    return {"worker_accuracy": float(accuracy.mean()), "worker_accuracy_spread": float(accuracy.std())}


# ----------------------------------------------------------------------------------------------------
# The estimator of a row: registry method, parameters from TOML, seed, and a classifier after a representation.

_HELDOUT_REGRESSION = "heldout-regression"  # after a representation learner: held-out items choose C and the setting
_NONE = "none"
_QUICK_EPOCHS = 3
_QUICK_SETTINGS = 2
_RANDOM_RESTARTS_ONLY = ("Raykar", "DifficultyEM", "FixedDifficultyEM")  # random for n_init > 1 or start="random" only


def make_estimator(
    row: Row,
    seed: int,
    *,
    quick: bool = False,
    setting: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> Any:
    """Return the unfitted estimator of a row.

    A representation learner becomes a pipeline with the classifier that `row.then` names. If that is
    "heldout-regression", `row.choose` are the settings that it chooses from on held-out items.
    """
    assert row.method is not None
    given = _values(dict(row.parameters) | dict(setting or {}))
    model = _seeded(_create(row.method, given, seed), seed)
    parameter = None if device is None else device_parameter(model)
    if parameter is not None:
        model.set_params(**{parameter: device})
    if quick and "max_epochs" in model.get_params():
        model.set_params(max_epochs=min(_QUICK_EPOCHS, model.max_epochs))
    if row.then is None:
        return model
    if row.then == _HELDOUT_REGRESSION:
        from manyhands.representation.neucrowd import HeldoutRegression

        settings = [_values(each) for each in row.choose] if setting is None else []
        return HeldoutRegression(model, tuple(settings[: _QUICK_SETTINGS if quick else None]) or ({},))
    from sklearn.pipeline import make_pipeline

    classifier = registry.create("two-stage", aggregator=model.labels, classifier=row.then)
    return make_pipeline(model, _seeded(classifier, seed))


def is_random(row: Row) -> bool:
    """Return whether a method uses random numbers, as far as its parameters determine it."""
    assert row.method is not None
    setting = dict(row.parameters)
    if row.method == "two-stage" and setting.get("classifier") == "logistic-regression":
        return "random_state" in registry.create(setting.get("aggregator", registry.DEFAULT)).get_params()
    model = registry.create(row.method)
    if type(model).__name__ in _RANDOM_RESTARTS_ONLY:
        return bool(setting.get("n_init", 1) != 1 or setting.get("start") == "random")
    return "random_state" in model.get_params()


def _parameter_names(row: Row) -> list[str]:
    """Return all parameters that a row may set, those of nested estimators as ``name__parameter``."""
    assert row.method is not None
    names = list(registry.create(row.method).get_params())
    if row.method == "two-stage":
        first = registry.create(row.parameters.get("aggregator", registry.DEFAULT)).get_params()
        names += [STAGES[0] + name for name in first if name != "random_state"]
        if row.parameters.get("classifier") == "logistic-regression":
            from sklearn.linear_model import LogisticRegression

            names += [STAGES[1] + name for name in LogisticRegression().get_params() if name != "random_state"]
    return names


def _create(method: str, given: dict[str, Any], seed: int) -> Any:
    """Return the method with its parameters; those of groups of options are set after construction."""
    parameters = _with_stages(given, seed) if method == "two-stage" else given
    nested = {name: value for name, value in parameters.items() if "__" in name}
    model = registry.create(method, **{name: value for name, value in parameters.items() if name not in nested})
    return model.set_params(**nested) if nested else model


def _with_stages(given: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return parameters of two-stage in which ``aggregator__x`` and ``classifier__x`` have become estimators."""
    found = {name: value for name, value in given.items() if not name.startswith(STAGES)}
    first, second = (
        {name.removeprefix(stage): given[name] for name in given if name.startswith(stage)} for stage in STAGES
    )
    if first:
        found["aggregator"] = _seeded(registry.create(given.get("aggregator", registry.DEFAULT), **first), seed)
    if second:
        from sklearn.linear_model import LogisticRegression

        found["classifier"] = LogisticRegression(**{"max_iter": 1000, **second})
    return found


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with their values in Python."""
    return {name: _from_toml(value) for name, value in given.items()}


def _from_toml(value: Any) -> Any:
    """Return what TOML cannot express: None is written "none", a tuple is written as a list."""
    if isinstance(value, list):
        return tuple(map(_from_toml, value))
    return None if value == _NONE else value


def _seeded(model: Any, seed: int) -> Any:
    """Set `random_state`, if the model has it."""
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


# ----------------------------------------------------------------------------------------------------
# Metrics of a fitted method: compared with ground truth, and figures that the method itself records.

Figures = dict[str, float]
_FURTHER_POSTERIOR = re.compile(r"posterior_(\w+)_")


def _label_figures(model: Any, part: Part, name: str) -> tuple[Figures, int]:
    """Compare an aggregator's labels with the ground truth of its items, where it is known."""
    known = part.has_truth
    if part.y_train is None or not known.any():
        raise ParameterError(f"{name} has no item with known truth, so an aggregator cannot be measured.")
    figures = _figures(part, part.y_train[known], model.labels_[known], model.posterior_[known], model.classes_)
    return figures | {"label_accuracy": figures["accuracy"], "label_auc": figures["auc"]}, int(known.sum())


def predicted_figures(model: Any, part: Part, name: str) -> tuple[Figures, int]:
    """Compare a classifier's predictions with the truth of the test items, and its labels of the training items."""
    if part.X_test is None or part.y_test is None:
        raise ParameterError(f"{name} has no test items, so a classifier cannot be measured; give it folds = 5.")
    last, proba = _last_step(model), model.predict_proba(part.X_test)
    figures = _figures(part, part.y_test, last.classes_[proba.argmax(axis=1)], proba, last.classes_)
    shifted = last._uniform_prior_proba(proba)  # a control for claims about class imbalance; uses no truth
    moved = _figures(part, part.y_test, last.classes_[shifted.argmax(axis=1)], shifted, last.classes_)
    figures |= {name: moved[name.removesuffix(UNIFORM_PRIOR)] for name in SHIFTED}
    figures |= _label_accuracy("label_accuracy", last, last.posterior_, part)
    known = part.has_truth
    if part.y_train is not None and known.any():
        figures["label_auc"] = auc(part.y_train[known], last.posterior_[known], last.classes_)
    return figures, len(part.y_test)


def recorded_figures(model: Any, part: Part) -> Figures:
    """Return figures that only some methods record: of the last round, of the history, of further posteriors."""
    last = _last_step(model)
    figures = _numbers(OF_ROUND, (_fitted(last, "rounds_") or [{}])[-1])
    history = _fitted(last, "history_")
    for recorded in () if history is None else history:
        if isinstance(recorded, dict):  # that of an aggregator has the values of its objective
            figures |= _numbers(OF_HISTORY, recorded)
    for attribute, value in vars(last).items():
        found = _FURTHER_POSTERIOR.fullmatch(attribute)
        if found and isinstance(value, np.ndarray) and value.shape == last.posterior_.shape:
            figures |= _label_accuracy(OF_LABELS + found[1], last, value, part)
    return figures


def planted_figures(model: Any, part: Part) -> Figures:
    """Compare estimated expertise and difficulty with those of the simulation."""
    last, figures = _last_step(model), {}
    if "expertise" in part.planted:
        figures["expertise_error"] = float(np.abs(_estimated_expertise(last, part) - part.planted["expertise"]).mean())
    difficulty = _fitted(last, "difficulty_")
    if "difficulty" in part.planted and difficulty is not None:
        from scipy.stats import spearmanr

        planted = part.planted["difficulty"]
        differ = np.ptp(difficulty) > 0 and np.ptp(planted) > 0
        figures["difficulty_rank"] = float(spearmanr(difficulty, planted).statistic) if differ else 0.0
    if _fitted(last, "item_accuracy_") is not None and part.has_truth.any():
        figures["difficulty_error"] = _difficulty_error(last, part)
    return figures


def _estimated_expertise(last: Any, part: Part) -> npt.NDArray[np.float64]:
    """Return the accuracy of each worker and class by the method itself, or by its posterior.

    Shapes: returns (n_workers, n_classes).
    """
    expertise = _fitted(last, "expertise_")
    if expertise is not None:
        return np.asarray(expertise)
    of_posterior = worker_confusions(part.annotations, last.posterior_, strength=1e-6)[:-1]
    confusion = _fitted(last, "confusion_")
    return np.einsum("wcc->wc", of_posterior if confusion is None else confusion)


def _difficulty_error(last: Any, part: Part, n_bins: int = 10) -> float:
    """Return the calibration error of `item_accuracy_` over bins of equal numbers of labels."""
    votes, known = part.annotations, part.has_truth
    assert part.y_train is not None
    is_right = (votes.classes[votes.label] == part.y_train[votes.item])[known[votes.item]].astype(float)
    expected = last.item_accuracy_[votes.item][known[votes.item]]
    order = np.argsort(expected, kind="stable")
    gaps = np.array_split((expected - is_right)[order], min(n_bins, len(order)))
    return float(sum(abs(gap.sum()) for gap in gaps) / len(order))


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model itself."""
    return [step for _, step in vars(model).get("steps", [("", model)])]


def _last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return steps_of(model)[-1]


def _fitted(model: Any, name: str) -> Any:
    """Return what `fit` stored under a name; None for methods that store no such thing."""
    return vars(model).get(name)


def _numbers(prefix: str, recorded: Mapping[str, Any]) -> Figures:
    """Return the numbers among recorded values whose names a table can list."""
    return {
        prefix + key: float(value)
        for key, value in recorded.items()
        if key.isidentifier() and isinstance(value, int | float | np.integer | np.floating)
    }


def _label_accuracy(metric: str, model: Any, posterior: npt.NDArray[np.float64], part: Part) -> Figures:
    """Return the accuracy of the most probable classes of the training items."""
    known = part.has_truth
    if part.y_train is None or not known.any():
        return {}
    code, _ = pick_classes(posterior, np.zeros(len(known), bool))
    return {metric: metrics.accuracy(part.y_train[known], model.classes_[code[known]])}


def _figures(part: Part, truth: Any, label: Any, proba: Any, classes: Any) -> Figures:
    """Return the metrics that all methods have."""
    return {
        "accuracy": metrics.accuracy(truth, label),
        "balanced_accuracy": metrics.balanced_accuracy(truth, label),
        "macro_f1": metrics.macro_f1(truth, label),
        "rare_recall": rare_recall(part, truth, label),
        "log_loss": metrics.log_loss(truth, proba, classes),
        "ece": metrics.ece(truth, proba, classes),
        "auc": auc(truth, proba, classes),
    }


def rare_recall(part: Part, truth: Any, label: Any) -> float:
    """Return the recall of the class that is rarest among the training items; several rarest ones are averaged.

    Shapes: truth (n_items,); label (n_items,).
    """
    known = part.has_truth
    counts: Mapping[Any, int] = {}
    if part.y_train is not None and known.any():
        trained = part.y_train[known].tolist()
        counts = {value: trained.count(value) for value in dict.fromkeys(trained)}
    found = []
    for value in (value for value, n in counts.items() if n == min(counts.values())):
        of_class = np.array([one == value for one in truth.tolist()])
        if of_class.any():
            found.append(metrics.accuracy(truth[of_class], label[of_class]))
    return math.fsum(found) / len(found) if found else math.nan


def auc(truth: Any, proba: Any, classes: Any) -> float:
    """Return the area under the ROC curve, one-versus-rest and averaged for more than two classes.

    Shapes: truth (n_items,); proba (n_items, n_classes); classes (n_classes,).
    """
    values = truth.tolist()
    ranked = [1] if len(classes) == 2 else range(len(classes))
    each = [_one_auc(np.array([value == classes[k] for value in values]), proba[:, k]) for k in ranked]
    defined = [value for value in each if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _one_auc(inside: npt.NDArray[np.bool_], score: Any) -> float:
    """Return the Mann-Whitney statistic of one class against all others, divided by the number of pairs."""
    if inside.all() or not inside.any():
        return math.nan
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1; ties share their mean rank
    n_inside = int(inside.sum())
    above = rank[inside].sum() - n_inside * (n_inside + 1) / 2
    return float(above / (n_inside * (len(inside) - n_inside)))


# ----------------------------------------------------------------------------------------------------
# Metrics that are computed only where a table lists them: recall of one class, accuracy on the training items.


def requested_figures(model: Any, part: Part, names: Sequence[str]) -> Figures:
    """Return the metrics among these names that are not computed for every table."""
    figures: Figures = {}
    if TRAINING in names and part.y_train is not None and part.has_truth.any():
        known = part.has_truth
        figures[TRAINING] = metrics.accuracy(part.y_train[known], _predicted(model, part.X)[known])
    wanted = [name.removeprefix(OF_CLASS) for name in names if name.startswith(OF_CLASS)]
    if wanted and part.y_test is not None:
        label = _predicted(model, part.X_test)
        for name in wanted:
            own = np.array([str(value) == name for value in part.y_test.tolist()])
            if own.any():
                figures[OF_CLASS + name] = metrics.accuracy(part.y_test[own], label[own])
    return figures


def _predicted(model: Any, X: Any) -> Any:
    """Return the most probable class of each row."""
    return _last_step(model).classes_[model.predict_proba(X).argmax(axis=1)]


# ----------------------------------------------------------------------------------------------------
# Revision numbers of methods: the part of a result row's key that identifies the code which measured it.
#
# A finished row of `docs/results/rows` stays valid as long as the revisions of its methods are those of this table, and
# is measured again when one of them has changed. The version of the package is not part of the key, so that a release
# does not invalidate rows.
#
# **Raise the number of a method whenever its results change**: after a correction, a new default, or a change of code
# that it shares with other methods (then raise all of them). A method that is not listed has revision 1.


# Registry name -> revision, from 2 on.
REVISIONS: dict[str, int] = {
    "difficulty-em": 2,  # gradient through difficulty, one Newton step a pass
    "fixed-difficulty-em": 3,  # 2: vote shares as prior, plain, one Newton step a pass; 3: abilities are updated
    "crowd-layer-gan": 2,  # the printed discriminator, all pairs
    "crowd-layer-generator": 2,  # the published CrowdInG imputes, all pairs
    "crowd-layer-graph": 2,  # all pairs
    "crowd-layer-self": 2,  # all pairs
    "crowding": 2,  # the printed discriminator, label correlation and generator loss
    "iced": 2,  # the paper to the letter: hard counts, estimated prior, all candidates, R x m items, frozen decoder
    "neucrowd": 3,  # 2: weight decay by the optimizer; 3: ReLU, warm-up, search of settings and C on held-out items
    "neucrowd-plus": 5,  # 3: its first epoch, the warm-up, can no longer be the best; 4, 5: the default's new posterior
    "pooled-dawid-skene": 3,  # 2: overrules the plurality with support only; 3: copies, Newton steps, orientation
    "self-crowd": 2,  # the paper's settings are the defaults
    "siamese": 2,  # the bias of the distance starts at the mean distance
    "vote-difficulty-em": 2,  # workers who copy one another count as one
}


def _revision(method: str) -> int:
    """Return the revision of a method.

    Examples
    --------
    >>> _revision("majority-vote")
    1
    """
    return REVISIONS.get(method, 1)


def revisions_of(row: Row) -> dict[str, int]:
    """Return the revisions of all methods that a row names: its own, and those in its parameters.

    Examples
    --------
    >>> revisions_of(Row("GLAD", "two-stage", parameters={"aggregator": "glad", "classifier": "logistic-regression"}))
    {'glad': 1, 'two-stage': 1}
    """
    names = {row.method, "two-stage" if row.then else None}
    for setting in row.settings:
        names |= set(_texts(setting))
    known = set(registry.names())
    return {name: _revision(name) for name in sorted(name for name in names if name is not None and name in known)}


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts among nested parameters."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


# ----------------------------------------------------------------------------------------------------
# Series: lists of numbers that a result row stores beside its metrics, from which curves and scatter plots are drawn.

Series = list[Any]  # of numbers and None, or of such lists
_HISTORY_SERIES = "history."  # history.loss: the entry "loss" of every epoch in `history_`
_OF_ROUNDS = "rounds."  # rounds.heldout: the entry "heldout" of every round in `rounds_`
_OF_FITTED = "fitted."  # fitted.difficulty: the fitted attribute `difficulty_`
_PREFIXES = (_HISTORY_SERIES, _OF_ROUNDS, _OF_FITTED)
_GRID = 101  # points of a ROC curve
_GROUPS = 10  # groups of test items by the entropy of their prediction
_MOST_NUMBERS = 20_000  # of one series; a row is one line of text
_DIGITS = 6  # significant ones, which no picture shows in full


def series_of(model: Any, part: Part, names: Sequence[str]) -> dict[str, Series | None]:
    """Return the series of a fitted method."""
    return {name: _series(model, part, name) for name in names}


def is_series(name: str) -> bool:
    """Return whether a table may list this series.

    Examples
    --------
    >>> is_series("roc"), is_series("history.loss"), is_series("rounds.a b"), is_series("luck")
    (True, True, False, False)
    """
    return name in SERIES_NAMES or (name.startswith(_PREFIXES) and name.partition(".")[2].isidentifier())


def _series(model: Any, part: Part, name: str) -> Series | None:
    """Return one series as JSON can hold it; what is no array of numbers, or too large, is left out."""
    last = _last_step(model)
    if name in SERIES_NAMES:
        found = _SERIES[name](model, last, part)
    elif name.startswith(_OF_FITTED):
        found = _fitted(last, name.removeprefix(_OF_FITTED) + "_")
    else:
        recorded = _fitted(last, "history_" if name.startswith(_HISTORY_SERIES) else "rounds_")
        found = _recorded(recorded, name.partition(".")[2])
    try:
        numbers = None if found is None else np.asarray(found, dtype=float)
    except (TypeError, ValueError):  # texts, or lists of different lengths
        return None
    if numbers is None or numbers.ndim not in (1, 2) or not 0 < numbers.size <= _MOST_NUMBERS:
        return None
    rows = [[_number(value) for value in row] for row in np.atleast_2d(numbers)]
    return rows if numbers.ndim == 2 else rows[0]


def _recorded(recorded: Any, key: str) -> list[Any] | None:
    """Return an entry of every epoch or round; None if no one has it.

    Epochs before the first and after the last entry are left out, since some methods note parts of their training
    under other names. Between them, a missing entry is NaN.
    """
    if not isinstance(recorded, list | tuple) or not all(isinstance(one, dict) for one in recorded):
        return None  # the history of an aggregator has no names
    there = [at for at, one in enumerate(recorded) if one.get(key) is not None]
    if not there:
        return None
    return [one.get(key, math.nan) for one in recorded[there[0] : there[-1] + 1]]


def _number(value: float) -> float | None:
    """Return a number with as many digits as a picture can show; None if it is not finite."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _roc(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return true positive rates of the second class on an even grid of false positive rates, for two classes."""
    known = part.has_truth
    if part.y_train is None or len(last.classes_) != 2 or not known.any():
        return None
    is_second = np.array([value == last.classes_[1] for value in part.y_train[known].tolist()])
    if is_second.all() or not is_second.any():
        return None
    return roc_curve(is_second, last.posterior_[known, 1])


def roc_curve(inside: npt.NDArray[np.bool_], score: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a ROC curve on 101 equally spaced false positive rates.

    Shapes: score (n_items,); returns (101,).
    """
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))  # the last item of each group of equal scores
    rates = [np.append(0.0, np.cumsum(of)[ends] / of.sum()) for of in (~inside[order], inside[order])]
    false, highest = np.unique(rates[0][::-1], return_index=True)  # the first from the end is the upper one
    lower, at = rates[1][::-1][highest], np.linspace(0, 1, _GRID)
    return np.interp(at, false, lower)


def _expertise(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return the estimated accuracies of all workers and classes, then the simulated ones."""
    if "expertise" not in part.planted:
        return None
    return np.concatenate([_estimated_expertise(last, part).ravel(), np.ravel(part.planted["expertise"])])


def _difficulty(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return the estimated difficulties of all items, then the simulated ones."""
    if "difficulty" not in part.planted or _fitted(last, "difficulty_") is None:
        return None
    return np.concatenate([np.ravel(last.difficulty_), np.ravel(part.planted["difficulty"])])


def _recall(model: Any, last: Any, part: Part) -> list[float] | None:
    """Return the recall of every class on the test items, NaN for a class without any."""
    if part.X_test is None or part.y_test is None or not hasattr(model, "predict_proba"):
        return None
    label = last.classes_[model.predict_proba(part.X_test).argmax(axis=1)]
    of_class = [np.array([value == one for value in part.y_test.tolist()]) for one in last.classes_]
    return [metrics.accuracy(part.y_test[own], label[own]) if own.any() else math.nan for own in of_class]


def _accuracy_by_entropy(model: Any, last: Any, part: Part) -> list[float] | None:
    """Return the accuracy in ten groups of test items, from the lowest to the highest entropy of the prediction."""
    if part.X_test is None or part.y_test is None or not hasattr(model, "predict_proba"):
        return None
    proba = np.asarray(model.predict_proba(part.X_test))
    entropy = -(proba * np.log(np.maximum(proba, 1e-12))).sum(axis=1)
    groups = np.array_split(np.argsort(entropy, kind="stable"), _GROUPS)
    label = last.classes_[proba.argmax(axis=1)]
    return [metrics.accuracy(part.y_test[own], label[own]) if len(own) else math.nan for own in groups]


def _labels_by_worker(_: Any, __: Any, part: Part) -> npt.NDArray[np.int64]:
    """Return the number of labels of every worker who has one."""
    counts = np.bincount(part.annotations.worker, minlength=part.annotations.n_workers)
    return counts[counts > 0]


def _accuracy_by_worker(_: Any, __: Any, part: Part) -> npt.NDArray[np.float64] | None:
    """Return the share of correct labels of every worker with a label on an item of known truth."""
    votes, known = part.annotations, part.has_truth
    if part.y_train is None or not known.any():
        return None
    seen = known[votes.item]
    right = np.array([a == b for a, b in zip(votes.classes[votes.label].tolist(), part.y_train[votes.item].tolist())])
    total = np.bincount(votes.worker[seen], minlength=votes.n_workers)
    correct = np.bincount(votes.worker[seen], weights=right[seen], minlength=votes.n_workers)
    return correct[total > 0] / total[total > 0]


def _true_shares(_: Any, last: Any, part: Part) -> list[float] | None:
    """Return the share of each class in the ground truth of the training items."""
    known = part.has_truth
    if part.y_train is None or not known.any():
        return None
    values = part.y_train[known].tolist()
    return [sum(value == one for value in values) / len(values) for one in last.classes_]


def _annotated_shares(_: Any, last: Any, part: Part) -> npt.NDArray[np.float64]:
    """Return the share of each class in the annotations of the training items."""
    counts = np.bincount(part.annotations.label, minlength=len(last.classes_))
    return counts / counts.sum()


def _posterior_shares(_: Any, last: Any, __: Part) -> npt.NDArray[np.float64]:
    """Return the share of each class in the posterior of the training items."""
    return np.asarray(last.posterior_.mean(axis=0))


_SERIES: dict[str, Callable[[Any, Any, Part], Any]] = {
    "roc": _roc,
    "expertise": _expertise,
    "difficulty": _difficulty,
    "recall": _recall,
    "accuracy.by_entropy": _accuracy_by_entropy,
    "workers.n_labels": _labels_by_worker,
    "workers.accuracy": _accuracy_by_worker,
    "class_shares": lambda _, last, __: _fitted(last, "class_shares_"),
    "shares.truth": _true_shares,
    "shares.annotations": _annotated_shares,
    "shares.posterior": _posterior_shares,
}
SERIES_NAMES = tuple(_SERIES)


# ----------------------------------------------------------------------------------------------------
# `Cell` and `cells_of`: the cells of a table, their keys, and whether their methods and parameters exist.


def check_table(table: Table) -> None:
    """Refuse parameters that a method does not have; the methods are imported, and torch with some of them."""
    for row in table.measured:
        keys = Keys({}, table.name, f"row {row.name!r}")
        known = _parameter_names(row)
        for parameter in [name for setting in row.settings for name in setting]:
            if parameter == "random_state":
                keys.refuse("random_state is the seed of the run; leave it out")
            keys.check_known(parameter, known, f"parameter of {row.method} called")


LOWER_IS_BETTER = frozenset({"log_loss", "ece", "fit_seconds", "expertise_error", "difficulty_error"})
_QUICK_SEEDS = 2
_QUICK_OFFSET = 500_000  # from the seeds of a table to those of its quick runs, which so see other data
_QUICK_FOLDS = 2


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed."""

    table: Table  # the table that the cell belongs to
    dataset: DataSet
    row: Row  # the method, as it is on this data set (`Row.on`)
    seed: int  # seed of the data and of the method
    quick: bool = False  # whether data and training are reduced to a test that the cell runs
    device: str | None = None  # device on which networks are trained; None is that of the row

    def is_done(self, record: Mapping[str, Any] | None) -> bool:
        """Return whether a result row has all that the table asks for.

        Series are not part of the key, so that a table that asks for another one keeps its figures until it is run.
        """
        if record is None or "error" in record:
            return record is not None
        return set(self.table.series) <= set(record.get("series", ()))

    @property
    def key(self) -> str:
        """Hash of everything that determines the result, 20 hexadecimal digits."""
        data = asdict(self.dataset)
        data.pop("name")
        if not self.quick:
            data.pop("quick_items")
        if self.dataset.keep_one:  # only what differs from the default is part of the key
            data.pop("keep_one")
        if not self.dataset.drawn:
            data.pop("drawn")
        row = {name: getattr(self.row, name) for name in ("method", "parameters", "choose", "then")}
        first = self.table.first_seed if self.dataset.folds else None  # determines which fold is the test part
        content: list[Any] = [data, row, self.seed, first, self.quick, revisions_of(self.row)]
        if self.row.choose and self.table.choose_folds != CHOOSE_FOLDS:
            content.append({"choose_folds": self.table.choose_folds})
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()[:20]

    def __str__(self) -> str:
        point = "".join(f" with {parameter} = {value}" for parameter, value in self.row.at.items())
        return f"{self.row.name}{point} on {self.dataset.name}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """Result of one cell."""

    metrics: dict[str, float | None]  # value of every metric; None where it is undefined
    chosen: Mapping[str, Any] | None  # the setting that cross-validation chose, if there was a choice
    n_test: int  # number of test items
    # the series that the table asks for; None where the method does not have one
    series: dict[str, Series | None] = field(default_factory=dict)


def cells_of(table: Table, *, quick: bool = False, seeds: int | None = None, only: Sequence[str] = ()) -> list[Cell]:
    """Return the cells of a table, ordered by seed, so that an interrupted run has results of every method."""
    if seeds is not None and seeds < 1:
        raise ParameterError(f"`seeds=` is {seeds}; it must be 1 or more.")
    table = narrowed(table, only)
    n_seeds = seeds or (min(_QUICK_SEEDS, table.seeds) if quick else table.seeds)
    first = table.first_seed + (_QUICK_OFFSET if quick else 0)
    return [
        Cell(table, dataset, row.on(dataset.name), first + n, quick)
        for n in range(n_seeds)
        for dataset in table.datasets
        for row in (_sweep_ends(table.measured) if quick else table.measured)
        if dataset.name not in row.skip and (n == 0 or depends_on_seed(dataset, row.on(dataset.name)))
    ]


def _sweep_ends(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without the points between the first and the last of a sweep."""
    points: dict[str, list[Row]] = {}
    for row in rows:
        points.setdefault(row.name, []).append(row)
    return [row for own in points.values() for row in (own if len(own) < 2 else (own[0], own[-1]))]


def depends_on_seed(dataset: DataSet, row: Row) -> bool:
    """Return whether the seed can change the result of a row on a data set."""
    return dataset.depends_on_seed or is_random(row)


def narrowed(table: Table, only: Sequence[str]) -> Table:
    """Return a table restricted to some data sets and rows."""
    wanted = {name.casefold() for name in only}
    rows = [row for row in table.rows if row.name.casefold() in wanted]
    sets = [dataset for dataset in table.datasets if dataset.name.casefold() in wanted]
    unknown = wanted - {row.name.casefold() for row in rows} - {dataset.name.casefold() for dataset in sets}
    if unknown:
        names = dict.fromkeys(row.name for row in table.rows)
        raise ParameterError(
            f"{table.name} has no data set and no row called {sorted(unknown)[0]!r}. Data sets: "
            f"{', '.join(d.name for d in table.datasets)}. Rows: {', '.join(names)}."
        )
    return replace(table, rows=tuple(rows) or table.rows, datasets=tuple(sets) or table.datasets)


def check_methods(cells: Sequence[Cell]) -> None:
    """Refuse methods and parameters that do not exist, before any cell is measured."""
    distinct = {(cell.row.name, json.dumps(dict(cell.row.parameters), sort_keys=True)): cell for cell in cells}
    for cell in distinct.values():
        with naming(cell.table, f"row {cell.row.name!r}"):
            check_table(replace(cell.table, rows=(cell.row,)))
            for setting in cell.row.choose or ({},):
                model = make_estimator(cell.row, cell.seed, setting=setting)
                for step in steps_of(model):
                    step.check_parameters()


@contextmanager
def naming(table: Table, part: str) -> Iterator[None]:
    """Add the table and a part of it to the message of errors inside the block, unless they name the table already."""
    try:
        yield
    except ManyhandsError as error:
        if table.name in str(error):
            raise
        raise type(error)(f"In the table {table.name}, {part}: {error}") from None


# ----------------------------------------------------------------------------------------------------
# `run_cell`: data, setting, fit, metrics.


def run_cell(cell: Cell, part: Part | None = None) -> Outcome:
    """Fit the method of a cell and measure it; the ground truth is used after the fit only."""
    if part is None:
        part = make_part(cell.dataset, cell.seed, cell.table.first_seed, cell.quick)
    aggregates = cell.row.method in registry.names("aggregator")
    given = (part.annotations,) if aggregates else (part.X, part.annotations)
    if not aggregates and part.X is None:
        raise ParameterError(f"{cell.row.method} learns from features, which {cell.dataset.name} does not have.")
    chosen = _choose_setting(cell, None if aggregates else part.X, part.annotations)
    model = make_estimator(cell.row, cell.seed, quick=cell.quick, setting=chosen, device=cell.device)
    if not cell.quick and chosen is None:
        _load_libraries(cell, part, aggregates)
    began = time.perf_counter()
    model.fit(*given)
    seconds = time.perf_counter() - began
    figures, n_test = (_label_figures if aggregates else predicted_figures)(model, part, cell.dataset.name)
    figures |= recorded_figures(model, part) | planted_figures(model, part) | {"fit_seconds": round(seconds, 4)}
    if any(name.startswith(OF_CROWD) for name in cell.table.metrics):
        figures |= crowd_figures(part)
    if not aggregates:
        figures |= requested_figures(model, part, cell.table.metrics)
    metrics = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    if chosen is None:
        chosen = _fitted(model, "setting_")  # of methods that choose their own settings
    return Outcome(metrics, chosen, n_test, series_of(model, part, cell.table.series))


def _choose_setting(cell: Cell, X: Any, annotations: Annotations) -> Mapping[str, Any] | None:
    """Return the setting with the highest cross-validated log-likelihood on the training part, without truth."""
    settings = list(cell.row.choose or ())[: _QUICK_SETTINGS if cell.quick else None]
    if not settings or cell.row.then == _HELDOUT_REGRESSION:  # which chooses among them itself
        return None
    from manyhands.comparison import compare

    models = [
        make_estimator(cell.row, cell.seed, quick=cell.quick, setting=setting, device=cell.device)
        for setting in settings
    ]
    found = compare(
        models, annotations, X, n_folds=_QUICK_FOLDS if cell.quick else cell.table.choose_folds, random_state=cell.seed
    )
    return settings[found.names.index(found.best)]


def _load_libraries(cell: Cell, part: Part, aggregates: bool) -> None:
    """Fit eight items first, so that the time of imports is not part of `fit_seconds`."""
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]] * 4)
    small = make_estimator(cell.row, cell.seed, quick=True, device=cell.device)
    if aggregates or part.X is None:
        small.fit(votes)
    else:
        small.fit(part.X[np.arange(8) % part.X.shape[0]], votes)
