"""Difficulty EM with a neural network, one epoch per iteration.

    E step: mu_ic ~ p_c(x_i) prod_w p(label_iw | truth = c, ability of w, d_i)
    M step: abilities by Newton steps (`noise.ability_model`) or by the gradient of mini-batches;
            p by one epoch on targets mu;  d_i from p(x_i) or votes

This is `AggNet` with items of different difficulty. EM begins after a few epochs on the vote shares: for an untrained
network all items are maximally hard, and labels would carry no information. The M step of the network is only one epoch
(generalised EM), so the likelihood may fall.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.difficulty.decision import (
    DIFFICULTY_CONSTRAINTS,
    check_threshold,
    decide,
    log_item_prior,
)
from manyhands.classifiers.difficulty.difficulty_scores import difficulty_log_likelihoods
from manyhands.classifiers.difficulty.network_state import ABILITY_STEPS, EMState
from manyhands.classifiers.epoch_updates import EpochThenUpdate
from manyhands.classifiers.network import NETWORK_CONSTRAINTS
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.ability_em import ability_model, posterior_from_joint, results
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.nn.batches import Batch
from manyhands.nn.inference import probabilities
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import descend
from manyhands.noise import safe_log
from manyhands.noise.difficulty import log_votes, vote_easiness, with_floor
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number, OneOf


class DifficultyNetwork(CrowdClassifier):
    """Neural network with worker abilities, on items whose difficulty follows from the network or the votes.

    Gold enters the posterior. The final posterior uses all labels, held-out ones included. Use it where features need
    a network; for linear classifiers `DifficultyEM` is faster.

    The defaults are not the paper's. Adaptive as published has ``floor=0.0, difficulty_gradient=True,
    ability_step="gradient"``; Fixed has ``difficulty="votes", prior="votes", vote_smoothing=0.0, floor=0.0``; both have
    ``backbone="convnet"``, with batch normalisation behind the fourth convolution.

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
        Two classes: the second class is predicted where its probability is at least this (the paper's xi). Any other
        value than 0.5 is refused with more classes.
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
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the mean of each loss, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to logits.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    Notes
    -----
    The paper has two classes and dense labels; this is its form for many classes and sparse labels. The network learns
    the posterior as soft targets, not through the authors' surrogate loss, and EM begins after `warm_up` epochs.

    References
    ----------
    Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM).

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
        max_ability: float = 100.0,
        *,
        prior: str = "classifier",
        difficulty_gradient: bool = False,
        vote_smoothing: float = 1.0,
        ability_step: str = "newton",
        ability_rate: float = 0.01,
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

    def _learn(self, context: TrainingContext) -> FitResult:
        check_threshold(self.threshold, context.n_classes)
        network = context.network()
        optimizer = context.adam(network)
        state = EMState(context, self)
        through = self.difficulty_gradient and self.difficulty == "classifier"

        def step(batch: Batch) -> torch.Tensor:
            logits = network(context.x(batch))
            loss = soft_cross_entropy(logits, state.target(batch))
            if through and state.has_started:
                loss = loss - state.label_term(batch, logits.softmax(1))
            if self.ability_step == "gradient":
                state.ascend(batch, logits.detach().softmax(1))
            return descend(optimizer, loss)

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(context.x(batch)).log_softmax(1)
            return log_mixture(log_proba[batch.row], state.log_column(batch, log_proba.exp()))

        modules = {"network": network, "state": state}  # the best epoch has its own abilities
        evaluate = context.heldout_score(log_label, network)
        rows = context.data.rows
        epochs = EpochThenUpdate(context.batches(), lambda: state.update(probabilities(network, rows)))
        history = context.train(step, modules, {"adam": optimizer}, evaluate=evaluate, batches=epochs)
        return FitResult(network, history, *self._final_results(context, network, state))

    def _final_results(
        self, context: TrainingContext, network: nn.Module, state: EMState
    ) -> tuple[Array, dict[str, Array | float]]:
        """The posterior given all labels, and the fitted attributes of workers and items."""
        votes, proba, workers = context.data.annotations, probabilities(network, context.data.rows), state.workers()
        d = vote_easiness(votes, self.vote_smoothing) if self.difficulty == "votes" else state.easiness(proba)
        d = with_floor(d, float(state.floor))
        log_prior = log_item_prior(self.prior, self.vote_smoothing, votes, safe_log(proba))
        posterior, _ = posterior_from_joint(log_prior + log_votes(votes, workers, d), context.data.gold)
        fitted = results(ability_model(self, votes), workers, posterior, d)
        return posterior, fitted | {"log_likelihood_": state.log_likelihoods(), "floor_": float(state.floor)}

    def _decide(self, proba: Array) -> npt.NDArray[np.intp]:
        return decide(proba, self.threshold)

    def _has_own_likelihood(self) -> bool:
        return True

    def _own_log_likelihoods(self, rows: Rows, proba: Array, annotations: Annotations, common: Array) -> Array:
        return difficulty_log_likelihoods(self, proba, annotations)
