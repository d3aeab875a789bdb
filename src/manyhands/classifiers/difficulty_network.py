"""Difficulty EM with a neural network: Sections 3.5 and 3.6 of Xu, Zhang, Zhang and Zhang, one epoch per iteration.

- E step, lines 4 to 8 of Algorithm 2:  mu_ic ~ p_c(x_i) prod_w p(label_iw | truth = c, d_i);  lines 7 to 11 of
  Algorithm 3 have the vote share p-hat_ic in place of the network's p_c(x_i)
- Algorithm 1, line 7: the network p learns the targets mu for one epoch; with `difficulty_gradient` the likelihood of
  the labels too, whose difficulty d_i follows from p(x_i)
- Algorithm 1, lines 3 to 5: abilities by Newton steps (`em.ability.ability_model`) or by the gradient of mini-batches

This is `AggNet` with items of different difficulty. EM begins after a few epochs on the vote shares: for an untrained
network all items are maximally hard, and labels would carry no information. The M step of the network is only one epoch
(generalised EM), so the likelihood may fall. `DifficultyNetwork._learn` has the lines of the algorithms.

References
----------
Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.difficulty_em import (
    DIFFICULTY_CONSTRAINTS,
    check_threshold,
    decide,
    difficulty_log_likelihoods,
    log_item_prior,
)
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, FitResult, TrainingContext
from manyhands.em.ability import (
    EASIEST,
    Abilities,
    ability_model,
    easiness,
    log_others,
    log_votes,
    posterior_from_joint,
    results,
    vote_easiness,
    with_floor,
)
from manyhands.em.e_step import initial_posterior
from manyhands.em.noise import safe_log
from manyhands.features import Rows
from manyhands.nn.backbones import probabilities
from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import descend, run_epoch
from manyhands.validation import Constraint, Number, OneOf, check_parameters

# ----------------------------------------------------------------------------------------------------
# What difficulty EM with a network keeps between epochs: posterior, abilities and floor, and their updates. These are
# lines 4 to 8 (7 to 11) of Algorithm 2 (3), and the parts of Algorithm 1 that concern the abilities lambda.

ABILITY_STEPS = ("newton", "gradient")


class EMState(nn.Module):
    """Posterior, abilities and floor between epochs: buffers, so that checkpoints and early stopping keep them."""

    posterior: torch.Tensor  # (n_items, n_classes)
    ability: torch.Tensor  # (n_workers, n_classes)
    log_wrong: torch.Tensor  # [worker, truth, label]
    floor: torch.Tensor  # ()
    likelihood: torch.Tensor  # (max_epochs,) log p(labels) after each epoch; NaN for those to come

    def __init__(self, context: TrainingContext, method: DifficultyNetwork) -> None:
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
        """Do an E step, then the M step of the abilities; during the warm-up only record the likelihood.

        The E step is lines 4 to 8 of Algorithm 2 and 7 to 11 of Algorithm 3. The M step finds the optimum to which
        lines 4 and 5 of Algorithm 1 climb; with ``ability_step="gradient"`` `ascend` takes these lines.

        Shapes: proba (n_items, n_classes).
        """
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
            workers = self.model.solve(posterior, d, self.workers(), self.first)
            self.ability.copy_(torch.from_numpy(workers.ability))
        else:
            workers = self.model.start(posterior)
        if workers.log_wrong is not None:
            self.log_wrong.copy_(torch.from_numpy(workers.log_wrong))

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
        likelihood = self.likelihood.cpu().numpy()
        return likelihood[~np.isnan(likelihood)]

    @property
    def has_started(self) -> bool:
        """Whether the warm-up is over and the posterior is that of an E step."""
        return len(self.log_likelihoods()) > self.method.warm_up

    def target(self, batch: Batch) -> torch.Tensor:
        """Return the posterior of the items of a mini-batch, (n_rows, n_classes)."""
        return self.posterior[torch.from_numpy(batch.item)].float()

    def log_column(self, batch: Batch, proba: torch.Tensor) -> torch.Tensor:
        """Return log p(label | truth) (Eq. 1 and 2) of a mini-batch's labels, (n_labels, n_classes), given p(k | x)."""
        logit = self._logit(batch, self._easiness(batch, proba))
        wrong = F.logsigmoid(-logit) + self.log_wrong[batch.worker, :, batch.label]
        correct = F.one_hot(batch.label, self.votes.n_classes).bool()
        return torch.where(correct, F.logsigmoid(logit), wrong).float()

    def label_term(self, batch: Batch, proba: torch.Tensor) -> torch.Tensor:
        """Return the expected log-likelihood of the labels of a mini-batch per item, whose easiness follows from p.

        It is the part mu_i ln a_i + (1 - mu_i) ln b_i of line 3 of Algorithm 1.

        Shapes: proba (n_rows, n_classes).
        """
        total = (self.target(batch)[batch.row] * self.log_column(batch, proba)).sum()
        return total / len(batch.item)

    def ascend(self, batch: Batch, proba: torch.Tensor) -> None:
        """Take lines 4 and 5 of Algorithm 1: move the abilities along the gradient of the expected log-likelihood.

        The slope of a mini-batch is scaled to all items, N / #batch as in line 3; abilities stay within their bounds.

        Shapes: proba (n_rows, n_classes).
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


# What the published forms set; the two epochs on the vote shares before EM begins are ours, as in the defaults.
_PUBLISHED: dict[str, dict[str, Any]] = {
    "adaptive": {"difficulty_gradient": True},
    "fixed": {"difficulty": "votes", "prior": "votes", "vote_smoothing": 0.0, "ability_update": "mle"},
}
_OF_BOTH: dict[str, Any] = {
    "floor": 0.0,
    "ability_step": "gradient",
    "backbone": "convnet",
    "max_epochs": 30,  # the authors' program; the paper gives no number
    "patience": None,
}


class DifficultyNetwork(CrowdClassifier):
    """Neural network with worker abilities, on items whose difficulty follows from the network or the votes.

    Gold enters the posterior. The final posterior uses all labels, held-out ones included. Use it where features need
    a network; for linear classifiers `DifficultyEM` is faster.

    The defaults are ours. `DifficultyNetwork.published()` is Adaptive as published, ``published("fixed")`` Fixed by the
    print of Algorithm 3; in the authors' program the abilities of Fixed hardly leave their start
    (``ability_update="frozen"``). Both have the convolutional network, where batch normalisation is between the fourth
    convolution and its ReLU; the paper prints it behind the fourth pooling, the authors' code has it behind the first
    convolution. The numbers of filters are not printed.

    Parameters
    ----------
    difficulty : {"classifier", "votes", "posterior", "constant"}, default="classifier"
        Source of the easiness d: the network's p(k | x) (Adaptive), the vote shares (Fixed), the posterior of the epoch
        before, or one value for all items.
    warm_up : int, default=2
        Epochs on the vote shares before abilities and posterior are updated.
    floor : float or None, default=None
        Easiness of the hardest items as a share of that of the easiest: 0 as in the paper (labels on the hardest items
        are pure chance), 1 where all items are equal; None is estimated.
    ability_update : {"auto", "mle", "map", "frozen"}, default="auto"
        M step of the abilities: maximum likelihood; maximum a posteriori with a Gaussian of `precision` around the
        initial values; or fixed at the initial values. "auto" is "frozen" with ``difficulty="votes"``, where the
        likelihood is bounded by `max_ability` only, and otherwise "mle".
    errors : {"uniform", "free"}, default="uniform"
        Distribution of wrong labels: equal over the other classes, or estimated for each worker.
    right : float, default=1.0
        Pseudo-count added to each worker's correct labels in every class, as if on the easiest items.
    wrong : float, default=0.5
        Pseudo-count added to each worker's wrong labels in every class.
    precision : float, default=1.0
        Precision of the Gaussian of ``ability_update="map"``.
    max_ability : float, default=100.0
        Upper bound of the abilities; the lower bound is 0.
    prior : {"classifier", "votes"}, default="classifier"
        Class prior of an item in the E step: the network's p(k | x), or its vote shares as in the paper's Algorithm 3,
        where the network has no effect on the posterior.
    difficulty_gradient : bool, default=False
        Whether the network is trained through the easiness too: the expected log-likelihood of the labels is added to
        its loss, as the paper prints it. False holds the easiness fixed in each step. Combine it with
        ``ability_step="gradient"``: abilities at their optimum for a young network are too high, and the network then
        makes all items hard. Without effect unless ``difficulty="classifier"``.
    vote_smoothing : float, default=1.0
        Number of pseudo-votes on each item, spread evenly over the classes, where vote shares are used; 0 is the plain
        share of the paper.
    ability_step : {"newton", "gradient"}, default="newton"
        Abilities: their optimum after each epoch, by Newton's method and with pseudo-counts; or one gradient step after
        each mini-batch, without pseudo-counts, as in the paper.
    ability_rate : float, default=0.01
        Step size of ``ability_step="gradient"``; the slope of a mini-batch is scaled to all items.
    threshold : float, default=0.5
        Two classes: the second class is predicted where its probability is at least this (the paper's xi, which it
        must exceed there). Any other value than 0.5 is refused with more classes.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to logits: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, n_classes) -> torch.nn.Module.
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Dropout rate of the hidden layers.
    batch_norm : bool, default=False
        Whether hidden layers are batch-normalised.
    learning_rate : float, default=0.001
        Step size of Adam.
    weight_decay : float, default=0.0
        L2 penalty of Adam on all weights, those of noise layers included: `weight_decay` times the weights is added to
        their gradient.
    batch_size : int, default=64
        Items per mini-batch.
    max_epochs : int, default=50
        Maximal number of epochs.
    patience : int or None, default=10
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.1
        Share of the labels held out for early stopping; nothing is held out with 0, or with fewer than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of initial weights, shuffling, dropout and the held-out split.

    Attributes
    ----------
    ability_ : ndarray of shape (n_workers, n_classes)
        Ability of each worker in each class, at least 0.
    expertise_ : ndarray of shape (n_workers, n_classes)
        Probability of a correct label on the easiest items: with two classes, column 1 is sensitivity and column 0
        specificity.
    expertise_low_ : ndarray of shape (n_workers, n_classes)
        Lower end of the 95% interval of `expertise_`, conditional on everything else. Too narrow with
        ``difficulty="posterior"``, and with "votes" and "mle", where the labels determine the easiness too.
    expertise_high_ : ndarray of shape (n_workers, n_classes)
        Upper end of that interval.
    difficulty_ : ndarray of shape (n_items,)
        Difficulty from 0 to 1, where labels are pure chance; at most 1 - `floor_`.
    floor_ : float
        The floor in use.
    item_accuracy_ : ndarray of shape (n_items,)
        Expected share of correct labels of each item.
    log_likelihood_ : ndarray of shape (n_epochs,)
        log p(training labels | X) after each epoch up to the one that was kept, before its M step of the abilities; it
        may fall.

    Notes
    -----
    The paper has two classes and dense labels; this is its form for many classes and sparse labels. The network learns
    the posterior as soft targets, not through the authors' surrogate loss, and EM begins after `warm_up` epochs.

    References
    ----------
    Y. Xu, T. Zhang, D. Zhang and W. Zhang, Data difficulty specified crowdsourcing.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import DifficultyNetwork
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> model = DifficultyNetwork(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "difficulty_", "item_accuracy_")
    _constraints: ClassVar[dict[str, Constraint]] = (
        NETWORK_CONSTRAINTS
        | DIFFICULTY_CONSTRAINTS
        | {
            "warm_up": Number(whole=True, least=0),
            "ability_step": OneOf(ABILITY_STEPS),
            "ability_rate": Number(above=0),
        }
    )

    ability_: Array
    expertise_: Array
    expertise_low_: Array
    expertise_high_: Array
    difficulty_: Array
    floor_: float
    item_accuracy_: Array
    log_likelihood_: Array

    def __init__(
        self,
        difficulty: str = "classifier",
        warm_up: int = 2,  # ours; 5 was worse on digits (docs/results/notes/difficulty-em-tried.md)
        floor: float | None = None,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,  # this and the next three as in `DifficultyEM`
        wrong: float = 0.5,
        precision: float = 1.0,
        max_ability: float = 100.0,
        *,
        prior: str = "classifier",
        difficulty_gradient: bool = False,
        vote_smoothing: float = 1.0,
        ability_step: str = "newton",
        ability_rate: float = 0.01,  # ours; the paper gives no value
        threshold: float = 0.5,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_epochs: int = 50,
        patience: int | None = 10,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.difficulty = difficulty
        self.warm_up = warm_up
        self.floor = floor
        self.ability_update = ability_update
        self.errors = errors
        self.right = right
        self.wrong = wrong
        self.precision = precision
        self.max_ability = max_ability
        self.prior = prior
        self.difficulty_gradient = difficulty_gradient
        self.vote_smoothing = vote_smoothing
        self.ability_step = ability_step
        self.ability_rate = ability_rate
        self.threshold = threshold
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    @classmethod
    def published(cls, form: str = "adaptive", **changes: Any) -> Self:
        """The network half of the paper: Adaptive (Algorithm 2) or Fixed (Algorithm 3), for images.

        Parameters
        ----------
        form : {"adaptive", "fixed"}, default="adaptive"
            Source of the difficulty: the network, through which its training then goes, or the vote shares, which are
            the prior too.
        **changes : object
            Constructor parameters that differ.

        Returns
        -------
        DifficultyNetwork
        """
        check_parameters("DifficultyNetwork.published", {"form": form}, {"form": OneOf(tuple(_PUBLISHED))})
        return cls(**_PUBLISHED[form], **_OF_BOTH).set_params(**changes)

    def _learn(self, context: TrainingContext) -> FitResult:
        """Algorithm 2 (Adaptive) or Algorithm 3 (Fixed) with Algorithm 1 for a network, line by line."""
        check_threshold(self.threshold, context.n_classes)
        # Line 1: initialize theta = {omega, lambda}. The maximal iteration time T of line 2 is that of Algorithm 1, the
        # number of mini-batches of an epoch; `max_epochs` bounds the loop of line 3, which the paper does not.
        network = context.network()
        optimizer = context.adam(network)
        state = EMState(context, self)
        through = self.difficulty_gradient and self.difficulty == "classifier"

        def step(batch: Batch) -> torch.Tensor:
            logits = network(context.x(batch))
            # Algorithm 1, line 3: the expected log-likelihood of a mini-batch, with the posterior mu as targets.
            loss = soft_cross_entropy(logits, state.target(batch))
            if through and state.has_started:
                loss = loss - state.label_term(batch, logits.softmax(1))
            # Algorithm 1, lines 4 and 5: a gradient step of the abilities lambda.
            if self.ability_step == "gradient":
                state.ascend(batch, logits.detach().softmax(1))
            # Algorithm 1, line 7: a gradient step of the network's weights omega.
            return descend(optimizer, loss)

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(context.x(batch)).log_softmax(1)
            return log_mixture(log_proba[batch.row], state.log_column(batch, log_proba.exp()))

        modules = {"network": network, "state": state}  # the best epoch has its own abilities
        evaluate = context.heldout_score(log_label, network)
        batches = context.batches()
        # Line 3 of Algorithm 2, line 6 of Algorithm 3: while not convergent (here, and up to `max_epochs`).
        epochs = context.epochs(modules, {"adam": optimizer}, evaluate=evaluate)
        for number in epochs:
            # Line 9 (12): update_classifier_parameter, that is Algorithm 1 with one step for each mini-batch.
            losses = run_epoch(step, batches, number)
            # Lines 4 to 8 (7 to 11): a_i, b_i and mu_i; then the optimum of the abilities where it is asked for.
            state.update(probabilities(network, context.data.rows))
            epochs.record(losses)
        return FitResult(network, epochs.history, *self._final_results(context, network, state))

    def _final_results(
        self, context: TrainingContext, network: nn.Module, state: EMState
    ) -> tuple[Array, dict[str, Array | float]]:
        """The posterior given all labels, and the fitted attributes of workers and items."""
        votes, proba, workers = context.data.annotations, probabilities(network, context.data.rows), state.workers()
        d = vote_easiness(votes, self.vote_smoothing) if self.difficulty == "votes" else state.easiness(proba)
        d = with_floor(d, float(state.floor))
        log_prior = log_item_prior(self.prior, self.vote_smoothing, votes, safe_log(proba))
        posterior, _ = posterior_from_joint(log_prior + log_votes(votes, workers, d), context.data.gold)
        estimates = results(ability_model(self, votes), workers, posterior, d)
        return posterior, estimates | {"log_likelihood_": state.log_likelihoods(), "floor_": float(state.floor)}

    def _decide(self, proba: Array) -> npt.NDArray[np.intp]:
        return decide(proba, self.threshold)

    def _has_own_likelihood(self) -> bool:
        return True

    def _own_log_likelihoods(self, rows: Rows, proba: Array, annotations: Annotations, common: Array) -> Array:
        return difficulty_log_likelihoods(self, proba, annotations)
