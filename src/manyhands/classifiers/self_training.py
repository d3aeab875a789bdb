"""Self-training: labels and pseudo-annotations together, and the choice of the best round by held-out labels."""

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
from manyhands.class_balance import Counts, imbalance
from manyhands.classifiers.fitting import combine
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.heldout import class_shares, label_log_likelihoods, worker_confusions
from manyhands.nn.inference import probabilities
from manyhands.nn.train import History


@dataclass(frozen=True, eq=False)
class LabelPool:
    """The observed labels, the held-out labels and the pseudo-annotations selected so far.

    Attributes
    ----------
    observed : Annotations
        Labels to learn from.
    heldout : Annotations or None
        Labels by which rounds are compared.
    pseudo : tuple of ndarray of shape (n, 3)
        Item, worker and label of the pseudo-annotations, one array per round.
    """

    observed: Annotations
    heldout: Annotations | None
    pseudo: tuple[npt.NDArray[np.int64], ...] = ()

    @cached_property
    def all(self) -> Annotations:
        """Observed labels and pseudo-annotations together."""
        return self.observed.with_more(*np.concatenate(self.pseudo).T) if self.pseudo else self.observed

    @cached_property
    def workers(self) -> npt.NDArray[np.intp]:
        """The workers who have a label; of the others nothing can be learned."""
        return np.unique(self.observed.worker).astype(np.intp)

    @property
    def taken(self) -> list[Annotations]:
        """Annotations whose pairs of item and worker get no pseudo-annotation."""
        return [self.all] if self.heldout is None else [self.all, self.heldout]

    @property
    def counts(self) -> Counts:
        """Number of labels and pseudo-annotations of each class, (n_classes,)."""
        return np.bincount(self.all.label, minlength=self.all.n_classes)

    def n_per_round(self, per_round: float) -> int:
        """Return the number of pseudo-annotations to add in a round.

        Parameters
        ----------
        per_round : float
            A share of the pairs of item and worker without a label, if below 1; otherwise the number itself.

        Returns
        -------
        int
        """
        if per_round >= 1:
            return int(per_round)
        active = np.isin(np.concatenate([a.worker for a in self.taken]), self.workers)
        n_taken = len(np.unique(np.concatenate([_pair_codes(a) for a in self.taken])[active]))
        return max(1, round(per_round * (self.all.n_items * len(self.workers) - n_taken)))

    def with_pseudo(self, selected: npt.NDArray[np.int64]) -> LabelPool:
        """Return a pool with these further pseudo-annotations, (n, 3)."""
        return replace(self, pseudo=(*self.pseudo, selected))

    def weight(self, pseudo_weight: float) -> npt.NDArray[np.float64]:
        """Return the weight in the loss of each annotation of `all`: 1 for a label, `pseudo_weight` otherwise."""
        return np.where(np.isin(_pair_codes(self.all), _pair_codes(self.observed)), 1.0, pseudo_weight)


def _pair_codes(annotations: Annotations) -> npt.NDArray[np.int64]:
    return annotations.item.astype(np.int64) * annotations.n_workers + annotations.worker


@dataclass(frozen=True, eq=False)
class HeldoutMetric:
    """Class-balanced held-out log-likelihood of a classifier: one metric for all rounds, fixed after the first.

    It uses the classifier's p(k | x) and confusion matrices from the observed labels, not the noise layers: those
    become overconfident about a worker the more pseudo-annotations of that worker they were trained on. Each label
    is weighted by the inverse of the posterior frequency of its item's class, so that all classes count the same.

    Attributes
    ----------
    heldout : Annotations
        Held-out labels.
    confusion : ndarray of shape (n_workers + 1, n_classes, n_classes)
        Confusion matrices from the observed labels.
    shares : ndarray of shape (n_classes,)
        Class frequencies.
    weight : ndarray of shape (n_annotations,)
        Weight of each held-out label; the mean is 1.
    """

    heldout: Annotations
    confusion: Array
    shares: Array
    weight: Array

    @classmethod
    def from_network(cls, context: TrainingContext, network: nn.Module) -> HeldoutMetric | None:
        """Return the metric that follows from the posterior of a first network; None without held-out labels.

        Parameters
        ----------
        context : TrainingContext
            With observed and held-out labels.
        network : torch.nn.Module
            The network of the first round.

        Returns
        -------
        HeldoutMetric or None
        """
        if context.heldout is None:
            return None
        votes = context.annotations
        posterior = combine(probabilities(network, context.data.rows), votes, context.data.gold)
        shares = class_shares(votes, posterior)
        weight = (posterior / shares).sum(axis=1)[context.heldout.item]
        return cls(context.heldout, worker_confusions(votes, posterior), shares, weight / weight.mean())

    def measure(self, network: nn.Module, rows: Rows) -> Array:
        """Return the weighted log-likelihood of each held-out label, (n_annotations,).

        Parameters
        ----------
        network : torch.nn.Module
            From features to logits.
        rows : Rows
            Features of all items.

        Returns
        -------
        ndarray of shape (n_annotations,)
        """
        item = np.unique(self.heldout.item).astype(np.intp)
        proba = np.zeros((self.heldout.n_items, len(self.shares)))
        proba[item] = probabilities(network, rows, item)
        return self.weight * label_log_likelihoods(proba, self.confusion, self.shares, self.heldout)


@dataclass
class RoundRecord:
    """The history of self-training rounds, and the network of the last round that is as good as the best.

    Held-out labels are few, so a round counts as as good as the best where the mean difference in log-likelihood,
    label by label, is within one standard error. Without held-out labels rounds cannot be compared.

    Attributes
    ----------
    patience : int or None
        Stop after this many rounds that are worse; None keeps the last round.
    metric : HeldoutMetric or None
        Compares rounds.
    rows : Rows
        Features of all items.
    heldout : list of ndarray
        Log-likelihood of each held-out label, per round.
    history : list of dict
        Epochs of all rounds.
    best : int
        Number of the round that is kept.
    kept : tuple of torch.nn.Module
        Network and noise layer of that round.
    """

    patience: int | None
    metric: HeldoutMetric | None
    rows: Rows
    heldout: list[Array] = field(default_factory=list)
    history: History = field(default_factory=list)
    best: int = 0
    kept: Any = None

    def __len__(self) -> int:
        return len(self.heldout)

    def add(self, epochs: History, network: nn.Module, layer: nn.Module) -> None:
        """Record a round: its epochs, its network and its noise layer."""
        self.history += [epoch | {"round": float(len(self))} for epoch in epochs]
        empty = np.zeros(0)
        self.heldout.append(empty if self.metric is None else self.metric.measure(network, self.rows))
        if self.patience is None or _is_as_good(self.heldout[-1], self.heldout):
            self.best, self.kept = len(self) - 1, copy.deepcopy((network, layer))

    @property
    def is_over(self) -> bool:
        """Whether `patience` rounds have passed since the one that is kept."""
        return self.patience is not None and len(self) - 1 - self.best >= self.patience


def _is_as_good(this: Array, rounds: list[Array]) -> bool:
    """Whether a round is within one standard error of the best one."""
    if len(this) < 2:
        return True
    best = max(rounds, key=lambda found: float(found.mean()))
    difference = best - this
    return bool(difference.mean() <= difference.std(ddof=1) / math.sqrt(len(difference)))


def round_results(record: RoundRecord, pool: LabelPool) -> dict[str, Any]:
    """Return the fitted attributes about the rounds: counts, imbalance ratios, held-out scores, pseudo-annotations.

    Parameters
    ----------
    record : RoundRecord
        The rounds of a fit.
    pool : LabelPool
        Labels and pseudo-annotations after the last round.

    Returns
    -------
    dict of str to object
        `rounds_`, `best_round_`, `selected_counts_`, `combined_counts_` and `pseudo_annotations_`.
    """
    n_classes = pool.all.n_classes
    first = np.bincount(pool.observed.label, minlength=n_classes)
    selected = np.array([np.zeros(n_classes, int), *(np.bincount(p[:, 2], minlength=n_classes) for p in pool.pseudo)])
    combined = first + selected.cumsum(axis=0)
    rounds = [
        {"round": float(number), "n_selected": float(selected[number].sum())}
        | _class_figures("selected", selected[number])
        | _class_figures("combined", combined[number])
        | ({"heldout": float(heldout.mean())} if len(heldout) else {})
        for number, heldout in enumerate(record.heldout)
    ]
    empty = pool.observed.keep(np.zeros(0, np.intp))
    kept = np.concatenate([np.zeros((0, 3), np.int64), *pool.pseudo[: record.best]])
    return {
        "rounds_": rounds,
        "best_round_": record.best,
        "selected_counts_": selected,
        "combined_counts_": combined,
        "pseudo_annotations_": empty.with_more(*kept.T),
    }


def _class_figures(whose: str, counts: Counts) -> dict[str, Any]:
    """Imbalance ratio, class shares and their standard deviation; nothing where nothing was counted."""
    if counts.sum() == 0:
        return {}
    shares = counts / counts.sum()
    return {
        f"{whose}_imbalance": imbalance(counts),
        f"{whose}_spread": float(shares.std()),
        f"{whose}_shares": shares.tolist(),
    }
