"""Self-Crowd: a crowd layer fills in what workers left unanswered, and chooses what to believe so that no class drowns.

    1. train network and layers on the labels:  p(label | x, w)
    2. for every pair (i, w) without a label:   guess_iw = argmax p(label | x_i, w),  H_iw = its entropy, low = sure
    3. choose M of them: of N'_c guesses of class c the M_c surest,  M_c = M (1 / N'_c) / sum_c' (1 / N'_c')
    4. add them to the labels for good, train again, and go on at 2.

Confident guesses are mostly of large classes, so that choosing by confidence alone makes the large ones larger; the
quotas of step 3 choose more of a class, the rarer it is. Rounds end when held-out labels are foretold no better.

Reference: Y. Shi, S.-Y. Li and S.-J. Huang (2021), Learning from crowds with sparse and imbalanced annotations,
arXiv 2107.05039.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.balance import Candidates, Counts, imbalance, inverse_quotas, levelling_quotas, select
from manyhands.classifiers.base import Learned, combine
from manyhands.classifiers.bench import Bench
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier, NoiseLayerParameters
from manyhands.exceptions import ParameterError
from manyhands.heldout import class_shares, foretelling_log_likelihood, worker_confusions
from manyhands.nn.networks import as_tensor, probabilities
from manyhands.nn.train import History
from manyhands.nn.unanswered import Guesses, guess_unanswered
from manyhands.validation import Amount, Constraint, Maybe, NameOr, Number, OneOf, Switch

_BASES = ("crowd-layer", "conal", "spee-lfc", "trace-reg")


class SelfCrowd(NoiseLayerClassifier):
    """Self-training for sparse and imbalanced crowds: workers' missing labels are guessed, rare classes first.

    Pairs of workers who gave no label are left alone: their layers still are where they started. So are held-out
    pairs, by which rounds are judged.

    Parameters
    ----------
    base : the method whose layers guess: "crowd-layer", "conal", "spee-lfc" or "trace-reg", or such a method with
        parameters of its own, as `CrowdLayer(form="vw")`. The network's parameters are those given here
    selection : "balanced" within a quota for each class, "confidence" the surest of all, or "random"
    quota : "pool", in inverse proportion to the guesses of each class, as the paper has it; "combined" lifts the
        classes that are smallest among all labels so far
    rounds : of guessing and training again, at most; 0 is the base method
    per_round : how many guesses are added in each: a share of the pairs without a label, or a whole number
    round_patience : stop after so many rounds without a better likelihood of held-out labels, and give back the best;
        None goes through all rounds and gives back the last
    pseudo_weight : how much a guess counts beside a label
    warm_start : go on from the network of the round before, for `warm_epochs`, instead of from fresh weights
    warm_epochs : at most so many in each round of a warm start
    start : "identity", where workers are believed, or an aggregator (by its name or as an instance) that judges them
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    rounds_ : one dict per round, 0 first: "n_selected", "selected_imbalance" and "combined_imbalance" (R of the guesses
        of this round, and of all labels with all guesses), "heldout" (mean log-likelihood of held-out labels)
    best_round_ : the round whose network `module_` is
    selected_counts_, combined_counts_ : (n_rounds, n_classes) the counts behind both R
    pseudo_annotations_ : `Annotations`, the guesses that the network learnt from beside the labels. They are not saved
    confusion_ : (n_workers, n_classes, n_classes) what the layers say of each worker

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, SelfCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, -1], [1, -1, 1]], 20, axis=0))
    >>> model = SelfCrowd(rounds=2, learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "base": NameOr(_BASES, "_learn_layers", "a method with a layer per worker"),
        "selection": OneOf(("balanced", "confidence", "random")),
        "quota": OneOf(("pool", "combined")),
        "rounds": Number(whole=True, least=0),
        "per_round": Amount(),
        "round_patience": Maybe(Number(whole=True, least=1)),
        "pseudo_weight": Number(above=0),
        "warm_start": Switch(),
        "warm_epochs": Number(whole=True, least=1),
    }

    def __init__(
        self,
        base: Any = "crowd-layer",
        selection: str = "balanced",
        quota: str = "pool",
        rounds: int = 14,
        per_round: float = 0.018,
        round_patience: int | None = 3,
        pseudo_weight: float = 1.0,
        warm_start: bool = False,
        warm_epochs: int = 5,
        **others: Unpack[NoiseLayerParameters],
    ) -> None:
        super().__init__(**others)
        self.base = base
        self.selection = selection
        self.quota = quota
        self.rounds = rounds
        self.per_round = per_round
        self.round_patience = round_patience
        self.pseudo_weight = pseudo_weight
        self.warm_start = warm_start
        self.warm_epochs = warm_epochs

    def _learn_network(self, bench: Bench) -> Learned:
        base = self._base()
        bench = replace(bench, method=base)
        labels, record = Labels(bench.annotations, bench.heldout), Record(self.round_patience)
        wanted = labels.wanted(self.per_round)
        network, noise = bench.network(), base._started_layer(bench)
        epochs = base._learn_layers(bench, network, noise)
        record.add(epochs, network, noise, _heldout(bench, network))
        while len(record) <= self.rounds and not record.is_over:
            chosen = self._choose(self._guess(bench, network, noise, labels), labels, wanted, bench.rng)
            if len(chosen) == 0:
                break
            labels = labels.with_guesses(chosen)
            if not self.warm_start:
                network, noise = bench.network(), base._started_layer(bench)
            epochs = base._learn_layers(self._round(bench, labels), network, noise, warm=self.warm_start)
            record.add(epochs, network, noise, _heldout(bench, network))
        network, noise = record.kept
        results = base._results(bench, noise) | _told(record, labels)
        return Learned(network, record.history, results=results)

    def _noise_layer(self, bench: Bench) -> Any:
        return self._base()._noise_layer(bench)

    def _base(self) -> NoiseLayerClassifier:
        """The base method with the network's parameters that are given here."""
        shared = {name: getattr(self, name) for name in NoiseLayerClassifier._parameter_names()}
        if isinstance(self.base, str):
            made: NoiseLayerClassifier = registry.create(self.base, **shared)
            return made
        given, default = self.base.get_params(deep=False), type(self.base)._defaults()
        for name in shared:
            if repr(given[name]) != repr(default[name]):
                raise ParameterError(
                    f"The base of a SelfCrowd has {name}={given[name]!r}; give {name} to SelfCrowd instead, "
                    f"which makes the networks."
                )
        return type(self.base)(**(given | shared))

    def _round(self, bench: Bench, labels: Labels) -> Bench:
        """Step 4: the bench on which a round trains, labels and guesses together."""
        method, few = bench.method, {"max_epochs": self.warm_epochs}
        if self.warm_start:
            method = type(method)(**(method.get_params(deep=False) | few))
        weight = None if self.pseudo_weight == 1 else labels.weight(self.pseudo_weight)
        return replace(
            bench, method=method, annotations=labels.all, weight=weight, stage=f"round-{len(labels.guesses)}-"
        )

    def _guess(self, bench: Bench, network: nn.Module, noise: nn.Module, labels: Labels) -> Iterator[Guesses]:
        """Step 2: the likeliest answer of every worker to every item without a label of his, and its entropy."""
        rows, device, worker = bench.task.rows, bench.device, torch.from_numpy(labels.workers).to(bench.device)

        def log_answers(item: npt.NDArray[np.intp]) -> torch.Tensor:
            x = as_tensor(rows, item, device)
            found: torch.Tensor = bench.method._log_answers(noise, network(x).log_softmax(1), x, worker)
            return found

        network.eval()
        yield from guess_unanswered(log_answers, labels.workers, bench.n_classes, labels.taken)
        network.train()

    def _choose(
        self, guesses: Iterator[Guesses], labels: Labels, wanted: int, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Step 3: (n, 3) the items, workers and labels of the guesses to believe."""
        n_workers, n_classes = labels.all.n_workers, labels.all.n_classes

        def stream() -> Iterator[Candidates]:
            for part in guesses:
                who = (part.item * n_workers + part.worker) * n_classes + part.label
                tie = rng.random(len(who), np.float32)
                group = part.label if self.selection == "balanced" else np.zeros_like(part.label)
                yield Candidates(who, group, tie if self.selection == "random" else part.entropy, tie)

        def quotas(available: Counts, total: int) -> Counts:
            if self.selection == "balanced" and self.quota == "combined":
                return levelling_quotas(labels.counts, available, total)
            return inverse_quotas(available, total)  # of a single group: all of it

        chosen = select(stream(), n_classes if self.selection == "balanced" else 1, wanted, quotas)
        pair, label = np.divmod(chosen, n_classes)
        return np.column_stack([*np.divmod(pair, n_workers), label])


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


def _heldout(bench: Bench, network: nn.Module) -> float:
    """The mean log-likelihood of held-out labels; NaN without any.

    By the recipe of `score`, from the classifier and from what was said, not from layers that learnt guesses: these
    are the surer of a worker's answers, the more of his guesses they have seen.
    """
    if bench.heldout is None:
        return math.nan
    votes, proba = bench.annotations, probabilities(network, bench.task.rows)
    believed = combine(proba, votes, bench.task.gold)
    confusion, shares = worker_confusions(votes, believed), class_shares(votes, believed)
    return foretelling_log_likelihood(proba, confusion, shares, bench.heldout)


@dataclass
class Record:
    """How each round went, and the network of the best, which is the last one where nothing can compare them."""

    patience: int | None
    heldout: list[float] = field(default_factory=list)
    history: History = field(default_factory=list)
    best: int = 0
    kept: Any = None  # network and noise

    def __len__(self) -> int:
        return len(self.heldout)

    def add(self, epochs: History, network: nn.Module, noise: nn.Module, heldout: float) -> None:
        """Take note of a round."""
        self.history += [epoch | {"round": float(len(self))} for epoch in epochs]
        if self.patience is None or not heldout <= max(self.heldout, default=-math.inf):  # NaN is a round like others
            self.best, self.kept = len(self), copy.deepcopy((network, noise))
        self.heldout.append(heldout)

    @property
    def is_over(self) -> bool:
        """Whether too many rounds have passed since the best."""
        return self.patience is not None and len(self) - 1 - self.best >= self.patience


def _told(record: Record, labels: Labels) -> dict[str, Any]:
    """What is told of the rounds: counts, imbalance, likelihood of held-out labels, and the guesses believed."""
    n_classes = labels.all.n_classes
    first = np.bincount(labels.observed.label, minlength=n_classes)
    selected = np.array(
        [np.zeros(n_classes, int), *(np.bincount(g[:, 2], minlength=n_classes) for g in labels.guesses)]
    )
    combined = first + selected.cumsum(axis=0)
    rounds = [
        {
            "round": float(number),
            "n_selected": float(selected[number].sum()),
            "selected_imbalance": imbalance(selected[number]),
            "combined_imbalance": imbalance(combined[number]),
            "heldout": heldout,
        }
        for number, heldout in enumerate(record.heldout)
    ]
    nothing = labels.observed.keep(np.zeros(0, np.intp))
    believed = np.concatenate([np.zeros((0, 3), np.int64), *labels.guesses[: record.best]])
    return {
        "rounds_": [{name: figure for name, figure in told.items() if not math.isnan(figure)} for told in rounds],
        "best_round_": record.best,
        "selected_counts_": selected,
        "combined_counts_": combined,
        "pseudo_annotations_": nothing.with_more(*believed.T),
    }
