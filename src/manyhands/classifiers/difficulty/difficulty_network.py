"""Difficulty EM with a network, an epoch at a time.

    E: r_ic ~ f_c(x_i) p(labels of i | truth = c, abilities, d_i)
    M: abilities by Newton steps (`noise.difficulty`);   f by one epoch on the targets r;   d_i from f(x_i) or the votes

This is `aggnet` with items of different difficulty. EM begins after a few epochs on the vote shares: of an untrained
network all items are as hard as can be, and labels would say nothing. As there, the M step of the network is not
carried to its end, and the likelihood may fall.

Reference: Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier, NetworkParameters
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.ability_em import ABILITY_CONSTRAINTS, DIFFICULTIES, ability_model, posterior_of, results
from manyhands.em.classifier_em import initial_posterior
from manyhands.em.kernels import Array
from manyhands.nn.batches import Batch
from manyhands.nn.inference import probabilities
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import descend
from manyhands.noise import safe_log
from manyhands.noise.difficulty import EASIEST, Abilities, easiness, log_others, log_votes, vote_easiness, with_floor
from manyhands.validation import Constraint, Number, OneOf


class DifficultyNetwork(NetworkClassifier):
    """A network, workers' abilities and a posterior that learn from each other; items are as hard as they are for it.

    Gold is part of the posterior. The posterior at the end is that of all labels, held-out ones included.

    Parameters
    ----------
    difficulty : where the easiness of items comes from: the "classifier" (Adaptive), the "votes" (Fixed), the
        "posterior" of the epoch before, or "constant", all alike
    warm_up : epochs on the vote shares, before abilities and posterior first move
    floor, ability_update, errors, right, wrong, precision, most_ability : as in `DifficultyEM`
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs, patience, validation : how it is trained and when it stops
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    ability_, expertise_, expertise_low_, expertise_high_, difficulty_, floor_, item_accuracy_ : as in `DifficultyEM`
    log_likelihood_ : log p(labels learnt from | X), exactly, after each epoch up to the one that was kept, before its
        M step of the abilities; it may fall

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, DifficultyNetwork
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = DifficultyNetwork(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = (
        NETWORK_CONSTRAINTS
        | ABILITY_CONSTRAINTS
        | {"difficulty": OneOf(DIFFICULTIES), "warm_up": Number(whole=True, least=0)}
    )

    def __init__(
        self,
        difficulty: str = "classifier",
        warm_up: int = 2,
        floor: float | None = None,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,
        wrong: float = 0.5,
        precision: float = 1.0,
        most_ability: float = 100.0,
        **network: Unpack[NetworkParameters],
    ) -> None:
        super().__init__(**network)
        self.difficulty = difficulty
        self.warm_up = warm_up
        self.floor = floor
        self.ability_update = ability_update
        self.errors = errors
        self.right = right
        self.wrong = wrong
        self.precision = precision
        self.most_ability = most_ability

    def _learn_network(self, context: TrainingContext) -> FitResult:
        network = context.network()
        optimizer = context.adam(network)
        belief = Belief(context, self)

        def step(batch: Batch) -> torch.Tensor:
            return descend(optimizer, soft_cross_entropy(network(context.x(batch)), belief.target(batch)))

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(context.x(batch)).log_softmax(1)
            return log_mixture(log_proba[batch.row], belief.log_column(batch, log_proba.exp()))

        modules = {"network": network, "belief": belief}  # the best epoch has its own abilities
        evaluate = context.heldout_score(log_label, network)
        rounds = Rounds(context, network, belief)
        history = context.train(step, modules, {"adam": optimizer}, evaluate=evaluate, batches=rounds)
        return FitResult(network, history, *self._believed(context, network, belief))

    def _believed(
        self, context: TrainingContext, network: nn.Module, belief: Belief
    ) -> tuple[Array, dict[str, Array | float]]:
        """The posterior of all labels, and what it says of workers and items."""
        votes, proba, workers = context.data.annotations, probabilities(network, context.data.rows), belief.workers()
        d = vote_easiness(votes) if self.difficulty == "votes" else belief.easiness(proba)
        d = with_floor(d, float(belief.floor))
        posterior, _ = posterior_of(safe_log(proba) + log_votes(votes, workers, d), context.data.gold)
        told = results(ability_model(self, votes), workers, posterior, d)
        return posterior, told | {"log_likelihood_": belief.told(), "floor_": float(belief.floor)}


class Belief(nn.Module):
    """What EM believes between epochs: buffers, so that checkpoints and early stopping keep them."""

    posterior: torch.Tensor  # (n_items, n_classes)
    ability: torch.Tensor  # (n_workers, n_classes)
    log_wrong: torch.Tensor  # (n_workers, n_classes of the truth, n_classes of the label)
    floor: torch.Tensor  # ()
    likelihood: torch.Tensor  # (max_epochs,) log p(labels) after each epoch; NaN for those to come

    def __init__(self, context: TrainingContext, method: DifficultyNetwork) -> None:
        super().__init__()
        self.method, self.gold, self.votes = method, context.data.gold, context.annotations
        self.model, self.by_votes = ability_model(method, self.votes), vote_easiness(self.votes)
        start = initial_posterior(self.votes, self.gold)
        self.first = self.model.start(start)
        self.register_buffer("posterior", torch.from_numpy(start))
        self.register_buffer("ability", torch.from_numpy(self.first.ability))
        shape = (self.votes.n_workers, self.votes.n_classes, self.votes.n_classes)
        alike = np.full(shape, -log_others(self.votes.n_classes))
        log_wrong = alike if self.first.log_wrong is None else self.first.log_wrong
        self.register_buffer("log_wrong", torch.from_numpy(log_wrong))
        floor = 0.0 if method.floor is None else float(method.floor)
        self.register_buffer("floor", torch.tensor(floor, dtype=torch.float64))
        self.register_buffer("likelihood", torch.full((method.max_epochs,), torch.nan, dtype=torch.float64))
        self.to(context.device)

    def update(self, proba: Array) -> None:
        """An E step, then the M step of the abilities; while the network warms up, only the likelihood is noted."""
        bare = self.easiness(proba)
        d = with_floor(bare, float(self.floor))
        posterior, evidence = posterior_of(safe_log(proba) + log_votes(self.votes, self.workers(), d), self.gold)
        epoch = len(self.told())
        self.likelihood[epoch] = evidence
        if epoch < self.method.warm_up:
            return
        if self.method.floor is None:
            floor = self.model.solve_floor(posterior, bare, self.workers().ability, float(self.floor))
            self.floor.fill_(floor)
        found = self.model.solve(posterior, with_floor(bare, float(self.floor)), self.workers(), self.first)
        self.posterior.copy_(torch.from_numpy(posterior))
        self.ability.copy_(torch.from_numpy(found.ability))
        if found.log_wrong is not None:
            self.log_wrong.copy_(torch.from_numpy(found.log_wrong))

    def workers(self) -> Abilities:
        free = self.method.errors == "free"
        return Abilities(self.ability.cpu().numpy(), self.log_wrong.cpu().numpy() if free else None)

    def easiness(self, proba: Array, item: npt.NDArray[np.intp] | None = None) -> Array:
        """(n_items,) d of these items, of which the network says this; of all by default."""
        if self.method.difficulty == "classifier":
            return easiness(proba)
        if self.method.difficulty == "constant":
            return np.full(len(proba), EASIEST)
        d = self.by_votes if self.method.difficulty == "votes" else easiness(self.posterior.cpu().numpy())
        return d if item is None else d[item]

    def told(self) -> Array:
        """The likelihoods there are."""
        noted = self.likelihood.cpu().numpy()
        return noted[~np.isnan(noted)]

    def target(self, batch: Batch) -> torch.Tensor:
        return self.posterior[torch.from_numpy(batch.item)].float()

    def log_column(self, batch: Batch, proba: torch.Tensor) -> torch.Tensor:
        """(n_labels, n_classes) log p(label | truth) of the labels of a batch, of whose items the network says this."""
        bare = self.easiness(proba.double().cpu().numpy(), batch.item)
        d = torch.from_numpy(with_floor(bare, float(self.floor))).to(proba.device)
        logit = self.ability[batch.worker] * d[batch.row, None] - log_others(self.votes.n_classes)
        wrong = F.logsigmoid(-logit) + self.log_wrong[batch.worker, :, batch.label]
        said = F.one_hot(batch.label, self.votes.n_classes).bool()
        return torch.where(said, F.logsigmoid(logit), wrong).float()


class Rounds:
    """The batches of an epoch, at whose end the belief is brought up to date."""

    def __init__(self, context: TrainingContext, network: nn.Module, belief: Belief) -> None:
        self.context, self.network, self.belief = context, network, belief
        self.batches = context.batches()

    def __iter__(self) -> Iterator[Batch]:
        yield from self.batches
        self.belief.update(probabilities(self.network, self.context.data.rows))
