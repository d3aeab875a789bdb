"""What difficulty EM with a network keeps between epochs: posterior, abilities and floor, and their updates."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands.classifiers.difficulty.decision import log_item_prior
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.ability_em import AbilityMethod, ability_model, posterior_from_joint
from manyhands.em.classifier_em import initial_posterior
from manyhands.em.kernels import Array
from manyhands.nn.batches import Batch
from manyhands.noise import safe_log
from manyhands.noise.difficulty import (
    EASIEST,
    Abilities,
    easiness,
    log_others,
    log_votes,
    vote_easiness,
    with_floor,
)

ABILITY_STEPS = ("newton", "gradient")


class NetworkMethod(AbilityMethod, Protocol):
    """The parameters of difficulty EM with a network; documented in `DifficultyNetwork`."""

    warm_up: int
    floor: float | None
    prior: str
    vote_smoothing: float
    difficulty_gradient: bool
    ability_step: str
    ability_rate: float
    max_epochs: int


class EMState(nn.Module):
    """Posterior, abilities and floor between epochs: buffers, so that checkpoints and early stopping keep them.

    Parameters
    ----------
    context : TrainingContext
        Labels and gold.
    method : NetworkMethod
        The estimator with its parameters.
    """

    posterior: torch.Tensor  # (n_items, n_classes)
    ability: torch.Tensor  # (n_workers, n_classes)
    log_wrong: torch.Tensor  # [worker, truth, label]
    floor: torch.Tensor  # ()
    likelihood: torch.Tensor  # (max_epochs,) log p(labels) after each epoch; NaN for those to come

    def __init__(self, context: TrainingContext, method: NetworkMethod) -> None:
        super().__init__()
        self.method, self.gold, self.votes = method, context.data.gold, context.annotations
        self.model, self.rate = ability_model(method, self.votes), method.ability_rate
        self.by_votes = vote_easiness(self.votes, method.vote_smoothing)
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
        """Do an E step, then the M step of the abilities; during the warm-up only record the likelihood."""
        bare = self.easiness(proba)
        d = with_floor(bare, float(self.floor))
        log_prior = log_item_prior(self.method.prior, self.method.vote_smoothing, self.votes, safe_log(proba))
        posterior, evidence = posterior_from_joint(log_prior + log_votes(self.votes, self.workers(), d), self.gold)
        epoch = len(self.log_likelihoods())
        self.likelihood[epoch] = evidence
        if epoch < self.method.warm_up:
            return
        if self.method.floor is None:
            floor = self.model.solve_floor(posterior, bare, self.workers().ability, float(self.floor))
            self.floor.fill_(floor)
        self.posterior.copy_(torch.from_numpy(posterior))
        self._update_workers(posterior, with_floor(bare, float(self.floor)))

    def _update_workers(self, posterior: Array, d: Array) -> None:
        """The M step of the abilities; where they follow the gradient of mini-batches, of the errors alone."""
        if self.method.ability_step == "newton":
            found = self.model.solve(posterior, d, self.workers(), self.first)
            self.ability.copy_(torch.from_numpy(found.ability))
        else:
            found = self.model.start(posterior)
        if found.log_wrong is not None:
            self.log_wrong.copy_(torch.from_numpy(found.log_wrong))

    def workers(self) -> Abilities:
        """Return the current abilities."""
        free = self.method.errors == "free"
        return Abilities(self.ability.cpu().numpy(), self.log_wrong.cpu().numpy() if free else None)

    def easiness(self, proba: Array, item: npt.NDArray[np.intp] | None = None) -> Array:
        """Return the easiness d of these items, or of all, given the network's probabilities."""
        if self.method.difficulty == "classifier":
            return easiness(proba)
        if self.method.difficulty == "constant":
            return np.full(len(proba), EASIEST)
        d = self.by_votes if self.method.difficulty == "votes" else easiness(self.posterior.cpu().numpy())
        return d if item is None else d[item]

    def log_likelihoods(self) -> Array:
        """Return the log-likelihoods recorded so far, (n_epochs,)."""
        recorded = self.likelihood.cpu().numpy()
        return recorded[~np.isnan(recorded)]

    @property
    def has_started(self) -> bool:
        """Whether the warm-up is over and the posterior is that of an E step."""
        return len(self.log_likelihoods()) > self.method.warm_up

    def target(self, batch: Batch) -> torch.Tensor:
        """Return the posterior of the items of a mini-batch, (n_rows, n_classes)."""
        return self.posterior[torch.from_numpy(batch.item)].float()

    def log_column(self, batch: Batch, proba: torch.Tensor) -> torch.Tensor:
        """Return log p(label | truth) of the labels of a mini-batch, (n_labels, n_classes), given p(k | x)."""
        logit = self._logit(batch, self._easiness(batch, proba))
        wrong = F.logsigmoid(-logit) + self.log_wrong[batch.worker, :, batch.label]
        correct = F.one_hot(batch.label, self.votes.n_classes).bool()
        return torch.where(correct, F.logsigmoid(logit), wrong).float()

    def label_term(self, batch: Batch, proba: torch.Tensor) -> torch.Tensor:
        """Return the expected log-likelihood of the labels of a mini-batch per item, whose easiness follows from p."""
        expected = (self.target(batch)[batch.row] * self.log_column(batch, proba)).sum()
        return expected / len(batch.item)

    def ascend(self, batch: Batch, proba: torch.Tensor) -> None:
        """Move the abilities along the gradient of the expected log-likelihood of a mini-batch.

        The slope of a mini-batch is scaled to all items, as in the paper; abilities stay within their bounds.

        Parameters
        ----------
        batch : Batch
            The mini-batch.
        proba : tensor of shape (n_rows, n_classes)
            p(k | x) of its items, without a gradient.
        """
        if self.model.update == "frozen" or not self.has_started:
            return
        d = self._easiness(batch, proba)
        right = torch.sigmoid(self._logit(batch, d))
        weight = self.posterior[torch.from_numpy(batch.item)][batch.row]
        score = weight * (F.one_hot(batch.label, self.votes.n_classes) - right) * d[batch.row, None]
        slope = torch.zeros_like(self.ability).index_add_(0, batch.worker, score)
        slope *= self.votes.n_items / len(batch.item)
        if self.model.update == "map":
            slope -= self.model.precision * (self.ability - torch.from_numpy(self.first.ability).to(slope.device))
        self.ability.add_(self.rate * slope).clamp_(0.0, self.model.max_ability)

    def _logit(self, batch: Batch, d: torch.Tensor) -> torch.Tensor:
        """Log-odds of a right label, (n_labels, n_classes), given the easiness of the items of a mini-batch."""
        return self.ability[batch.worker] * d[batch.row, None] - log_others(self.votes.n_classes)

    def _easiness(self, batch: Batch, proba: torch.Tensor) -> torch.Tensor:
        """Easiness of the items of a mini-batch, (n_rows,); with a gradient where it follows from p(k | x)."""
        n_classes = self.votes.n_classes
        if self.method.difficulty == "classifier" and n_classes > 1:
            above = proba.double().max(1).values - 1 / n_classes
            bare = EASIEST * (above / (1 - 1 / n_classes)) ** 2
        else:
            bare = torch.from_numpy(self.easiness(proba.detach().cpu().double().numpy(), batch.item)).to(proba.device)
        floor = float(self.floor)
        return floor * EASIEST + (1 - floor) * bare
