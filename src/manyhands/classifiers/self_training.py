"""What a method keeps that learns from its own guesses: labels with guesses among them, and how each round went."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from manyhands.annotations import Annotations
from manyhands.class_balance import Counts
from manyhands.classifiers.base import combine
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.heldout import class_shares, predicted, worker_confusions
from manyhands.nn.inference import probabilities
from manyhands.nn.train import History


@dataclass(frozen=True, eq=False)
class Labels:
    """What workers said, what is held out of it, and the guesses so far."""

    observed: Annotations
    heldout: Annotations | None
    guesses: tuple[npt.NDArray[np.int64], ...] = ()  # one (n, 3) per round: item, worker, label

    @cached_property
    def all(self) -> Annotations:
        """Labels and guesses together."""
        return self.observed.with_more(*np.concatenate(self.guesses).T) if self.guesses else self.observed

    @cached_property
    def workers(self) -> npt.NDArray[np.intp]:
        """Those of whom anything is known."""
        return np.unique(self.observed.worker).astype(np.intp)

    @property
    def taken(self) -> list[Annotations]:
        """Pairs for which there is no guess to make."""
        return [self.all] if self.heldout is None else [self.all, self.heldout]

    @property
    def counts(self) -> Counts:
        """(n_classes,) of labels and guesses together."""
        return np.bincount(self.all.label, minlength=self.all.n_classes)

    def wanted(self, per_round: float) -> int:
        """How many guesses are to be added in a round."""
        if per_round >= 1:
            return int(per_round)
        known = np.isin(np.concatenate([a.worker for a in self.taken]), self.workers)
        n_taken = len(np.unique(np.concatenate([_pairs(a) for a in self.taken])[known]))
        return max(1, round(per_round * (self.all.n_items * len(self.workers) - n_taken)))

    def with_guesses(self, chosen: npt.NDArray[np.int64]) -> Labels:
        return replace(self, guesses=(*self.guesses, chosen))

    def weight(self, pseudo_weight: float) -> npt.NDArray[np.float64]:
        """(n_annotations,) 1 for a label, and this for a guess."""
        return np.where(np.isin(_pairs(self.all), _pairs(self.observed)), 1.0, pseudo_weight)


def _pairs(annotations: Annotations) -> npt.NDArray[np.int64]:
    return annotations.item.astype(np.int64) * annotations.n_workers + annotations.worker


@dataclass(frozen=True, eq=False)
class HeldoutMetric:
    """How well a network foretells held-out labels: one measure for all rounds, made when the first has ended.

    It rests on the classifier and on what workers said, not on layers that learnt guesses: these are the surer of a
    worker's answers, the more of his guesses they have seen. A label counts by how rare its item's class is believed
    to be, so that all classes count the same: of rare ones there are few labels, and it is about them.
    """

    heldout: Annotations
    confusion: Array
    shares: Array  # (n_classes,)
    weight: Array  # (n_annotations,) of each held-out label; their mean is 1

    @classmethod
    def made(cls, context: TrainingContext, network: nn.Module) -> HeldoutMetric | None:
        """By what the network of the first round believes; None where nothing is held out."""
        if context.heldout is None:
            return None
        votes = context.annotations
        believed = combine(probabilities(network, context.data.rows), votes, context.data.gold)
        shares = class_shares(votes, believed)
        weight = (believed / shares).sum(axis=1)[context.heldout.item]
        return cls(context.heldout, worker_confusions(votes, believed), shares, weight / weight.mean())

    def measure(self, network: nn.Module, rows: Rows) -> Array:
        """(n_annotations,) the log-likelihood of each label, weighted."""
        item = np.unique(self.heldout.item).astype(np.intp)
        proba = np.zeros((self.heldout.n_items, len(self.shares)))
        proba[item] = probabilities(network, rows, item)
        return self.weight * predicted(proba, self.confusion, self.shares, self.heldout)


@dataclass
class Record:
    """How each round went, and the network of the last one that is as good as any.

    Held-out labels are few: a round is as good as the best where the mean difference, label by label, is within its
    standard error. Without any, nothing can compare rounds.
    """

    patience: int | None
    metric: HeldoutMetric | None
    rows: Rows
    heldout: list[Array] = field(default_factory=list)
    history: History = field(default_factory=list)
    best: int = 0
    kept: Any = None  # network and noise of the round `best`

    def __len__(self) -> int:
        return len(self.heldout)

    def add(self, epochs: History, network: nn.Module, noise: nn.Module) -> None:
        """Take note of a round."""
        self.history += [epoch | {"round": float(len(self))} for epoch in epochs]
        nothing = np.zeros(0)
        self.heldout.append(nothing if self.metric is None else self.metric.measure(network, self.rows))
        if self.patience is None or _is_as_good(self.heldout[-1], self.heldout):
            self.best, self.kept = len(self) - 1, copy.deepcopy((network, noise))

    @property
    def is_over(self) -> bool:
        """Whether too many rounds have passed since the one that is kept."""
        return self.patience is not None and len(self) - 1 - self.best >= self.patience


def _is_as_good(this: Array, rounds: list[Array]) -> bool:
    if len(this) < 2:
        return True
    best = max(rounds, key=lambda found: float(found.mean()))
    less = best - this
    return bool(less.mean() <= less.std(ddof=1) / math.sqrt(len(less)))
