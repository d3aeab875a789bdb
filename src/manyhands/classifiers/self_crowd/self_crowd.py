"""Self-Crowd: a crowd layer fills in what workers left unanswered, and chooses what to believe so that no class drowns.

    1. train network and layers on the labels:  p(label | x, w)
    2. for every pair (i, w) without a label:   guess_iw = argmax p(label | x_i, w),  H_iw = its entropy, low = sure
    3. choose M of them: of N'_c guesses of class c the M_c surest,  M_c = M (1 / N'_c) / sum_c' (1 / N'_c')
    4. add them to the labels for good, train again, and go on at 2.

Confident guesses are mostly of large classes, so that choosing by confidence alone makes the large ones larger; the
quotas of step 3 choose more of a class, the rarer it is. Rounds end when held-out labels are foretold worse.

Reference: Y. Shi, S.-Y. Li and S.-J. Huang (2021), Learning from crowds with sparse and imbalanced annotations,
arXiv 2107.05039.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.class_balance import Candidates, Counts, imbalance, inverse_quotas, levelling_quotas, select
from manyhands.classifiers.base import FitResult, combine
from manyhands.classifiers.network import NetworkClassifier, NetworkParameters
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseLayerClassifier
from manyhands.classifiers.self_training import HeldoutMetric, Labels, Record
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.wrapping import wrapped_method
from manyhands.nn.inference import as_tensor, probabilities
from manyhands.nn.pseudo_annotations import Guesses, guess_unanswered
from manyhands.noise import safe_log
from manyhands.validation import Amount, Constraint, Maybe, NameOr, Number, OneOf, Switch

_BASES = ("crowd-layer", "conal", "spee-lfc", "trace-reg")


class SelfCrowd(NetworkClassifier):
    """Self-training for sparse and imbalanced crowds: workers' missing labels are guessed, rare classes first.

    Pairs of workers who gave no label are left alone: their layers still are where they started. So are held-out
    pairs, by which rounds are judged. The defaults are those that held up on simulated crowds of ten to one; the
    paper's own are `start="identity", evidence="features", pseudo_weight=1, rounds=14, round_patience=None` with
    `batch_size=512, max_epochs=25, validation=0` (and a decay of all weights, which is not built).

    Parameters
    ----------
    base : the method whose layers guess: "crowd-layer", "conal", "spee-lfc" or "trace-reg", or such a method with
        parameters of its own, as `CrowdLayer(form="vw")`. `start` and the network's parameters are those given here
    evidence : what is believed of an item when its answers are guessed: "features", what the network says of it, as the
        paper has it; "labels" counts in what workers said of it
    selection : "balanced" within a quota for each class, "confidence" the surest of all, or "random"
    quota : "pool", in inverse proportion to the guesses of each class, as the paper has it; "combined" lifts the
        classes that are smallest among all labels so far
    rounds : of guessing and training again, at most; 0 is the base method
    per_round : how many guesses are added in each: a share of the pairs without a label, or a whole number
    round_patience : stop after so many rounds in which held-out labels are foretold worse than in the best one, by more
        than a standard error, and give back the last before these; None gives back the last of all rounds, and so does
        a crowd too small to hold ten labels out
    pseudo_weight : how much a guess counts beside a label
    warm_start : go on from the network of the round before, for `warm_epochs`, instead of from fresh weights
    warm_epochs : at most so many in each round of a warm start
    start : "identity", where workers are believed, or an aggregator (by its name or as an instance) that judges them
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    rounds_ : one dict per "round", 0 first: "n_selected", "selected_imbalance" and "combined_imbalance" (R of the
        guesses of this round, and of all labels with all guesses), "heldout" (mean log-likelihood of held-out labels,
        each class counting as much as any other, where any are held out)
    best_round_ : the round whose network `module_` is
    selected_counts_, combined_counts_ : (n_rounds, n_classes) the counts behind both R
    pseudo_annotations_ : `Annotations`, the guesses that the network learnt from beside the labels. They are not saved
    confusion_ : (n_workers, n_classes, n_classes) what the layers say of each worker; with what else the base tells

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, SelfCrowd
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, -1], [1, -1, 1]], 30, axis=0))
    >>> model = SelfCrowd(rounds=2, learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "base": NameOr(_BASES, "_learn_layers", "a method with a layer per worker"),
        "evidence": OneOf(("features", "labels")),
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
        evidence: str = "labels",
        selection: str = "balanced",
        quota: str = "pool",
        rounds: int = 4,
        per_round: float = 0.018,
        round_patience: int | None = 2,
        pseudo_weight: float = 0.3,
        warm_start: bool = False,
        warm_epochs: int = 5,
        start: Any = "dawid-skene",
        **network: Unpack[NetworkParameters],
    ) -> None:
        super().__init__(**network)
        self.start = start
        self.base = base
        self.evidence = evidence
        self.selection = selection
        self.quota = quota
        self.rounds = rounds
        self.per_round = per_round
        self.round_patience = round_patience
        self.pseudo_weight = pseudo_weight
        self.warm_start = warm_start
        self.warm_epochs = warm_epochs

    def _learn_network(self, context: TrainingContext) -> FitResult:
        base: NoiseLayerClassifier = wrapped_method(self, "base")
        context = replace(context, method=base)
        labels = Labels(context.annotations, context.heldout)
        wanted = labels.wanted(self.per_round)
        network, noise = context.network(), base._started_layer(context)
        epochs = base._learn_layers(context, network, noise)
        record = Record(self.round_patience, HeldoutMetric.made(context, network), context.data.rows)
        record.add(epochs, network, noise)
        while len(record) <= self.rounds and not record.is_over:
            chosen = self._choose(partial(self._guess, context, network, noise, labels), labels, wanted, context.rng)
            if len(chosen) == 0:
                break
            labels = labels.with_guesses(chosen)
            if not self.warm_start:
                network, noise = context.network(), base._started_layer(context)
            now = self._round(context, labels)
            epochs = now.method._learn_layers(now, network, noise, warm=self.warm_start)
            record.add(epochs, network, noise)
        network, noise = record.kept
        results = base._results(context, noise) | _told(record, labels)
        return FitResult(network, record.history, results=results, notes=self._unjudged(record))

    def _compares(self) -> bool:
        return self.patience is not None or self.round_patience is not None

    def _unjudged(self, record: Record) -> dict[str, str]:
        if self.round_patience is None or self.validation == 0 or record.metric is not None or len(record) == 1:
            return {}
        return {
            "rounds_unjudged": "There are too few labels to hold any out, so that no round was compared with another."
        }

    def _round(self, context: TrainingContext, labels: Labels) -> TrainingContext:
        """Step 4: the bench on which a round trains, labels and guesses together."""
        method, few = context.method, {"max_epochs": self.warm_epochs}
        if self.warm_start:
            method = type(method)(**(method.get_params(deep=False) | few))
        weight = None if self.pseudo_weight == 1 else labels.weight(self.pseudo_weight)
        return replace(
            context,
            method=method,
            annotations=labels.all,
            weight=weight,
            stage=f"{context.stage}round-{len(labels.guesses)}-",
        )

    def _guess(
        self, context: TrainingContext, network: nn.Module, noise: nn.Module, labels: Labels
    ) -> Iterator[Guesses]:
        """Step 2: the likeliest answer of every worker to every item without a label of his, and its entropy."""
        rows, device, worker = context.data.rows, context.device, torch.from_numpy(labels.workers).to(context.device)
        truth = probabilities(network, rows)  # (n_items, n_classes)
        if self.evidence == "labels":
            truth = combine(truth, context.annotations, context.data.gold)
        log_truth = torch.from_numpy(safe_log(truth)).float().to(device)
        with torch.no_grad():
            answers = context.method._answers_of(noise, worker)

        def log_answers(item: npt.NDArray[np.intp]) -> torch.Tensor:
            found: torch.Tensor = answers(log_truth[item[0] : item[-1] + 1], lambda: as_tensor(rows, item, device))
            return found

        return guess_unanswered(log_answers, labels.workers, context.n_classes, labels.taken)

    def _choose(
        self, guess: Callable[[], Iterator[Guesses]], labels: Labels, wanted: int, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Step 3: (n, 3) the items, workers and labels of the guesses to believe."""
        n_workers = len(labels.workers)

        def stream() -> Iterator[Candidates]:
            for first, label, entropy in guess():
                score = entropy
                if self.selection == "random":
                    score = np.where(np.isfinite(entropy), rng.random(entropy.shape, np.float32), entropy)
                yield Candidates(first * n_workers, label.ravel(), score.ravel())

        def levelling(available: Counts, total: int) -> Counts:
            return levelling_quotas(labels.counts, available, total)

        rule = inverse_quotas if self.quota == "pool" else levelling
        quotas = rule if self.selection == "balanced" else None
        pair, label = select(stream, labels.all.n_classes, wanted, rng, quotas)
        item, column = np.divmod(pair, n_workers)
        return np.column_stack([item, labels.workers[column], label])


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
            "heldout": float(heldout.mean()) if len(heldout) else math.nan,
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
