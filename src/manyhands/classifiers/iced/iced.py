"""ICED: truth inference and a network trained alternately, for crowds whose classes are imbalanced.

As published, every epoch:

    S_i = 1 / (variance of the labels of i + epsilon)                              label certainty
    z' = z_i + delta (z_r - z_i),  delta = S_r / (S_i + S_r) + noise,  z = G(x)    synthetic minority item
    label of worker w on z' = label of w on the nearest real items                 its labels
    T from Dawid-Skene on real and synthetic labels;  F = FC(G(x)) learns T        z' through a decoder

`ICED.plus()`:

    q = softmax(F(x) + log pi),   r_ik ~ q_ik prod_w confusion[w, k, label_iw],   loss = -sum_ik r_ik log q_ik

where pi are the class shares, so that softmax(F(x)) is p(k | x) under a uniform class prior.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.iced.autoencoder import Decoder, EmbeddingNetwork, reconstruction_step
from manyhands.classifiers.iced.options import Certainty, Synthesis, TruthInference, WarmUp
from manyhands.classifiers.iced.outer_loop import LoopOptions, OuterLoop
from manyhands.classifiers.iced.warm_up import WarmUpTraining
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, new_backbone
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.kernels import Array
from manyhands.em.priors import class_prior
from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import History, descend
from manyhands.options import Options
from manyhands.randomness import Seed
from manyhands.validation import Boolean, Constraint, NoneOr, Number

# What `ICED.plus()` sets, also where it is the default of `ICED()` today.
_PLUS: dict[str, Any] = {
    "warm_up": WarmUp(kind="grouped", epochs=5),
    "synthesis": None,
    "certainty": Certainty(epsilon=0.01, smoothing=0.5),
    "inference": TruthInference(prior="estimated", em="soft", shrinkage=5.0, use_features=True),
    "soft_targets": True,
    "balanced_loss": True,
    "embedding_size": 32,
    "max_epochs": 100,
    "patience": 20,
    "stable_rounds": None,
}


class ICED(CrowdClassifier):
    """ICED: truth inference and a network for imbalanced classes, with synthetic items of the minority classes.

    ``ICED()`` is the published method. An autoencoder initialises the network, and a warm-up trains it on the majority
    vote from less to more certain items. Then every epoch interpolates R synthetic items from each item that is
    inferred to be of a minority class, in the embedding, infers the true labels of real and synthetic items by
    classification EM with an estimated class prior, and trains the network on them, through the pre-trained decoder,
    until the inferred labels hardly change.

    Where the paper contradicts itself or leaves a value open, this is the reading:

    - Eq. 2.5 is printed as delta = S_i / (S_i + S_r), which puts z' = z_i + delta (z_r - z_i) near z_r where x_i is the
      more certain item, while the text asks for z' near the embedding of higher certainty. ``ICED()`` follows the text
      (``synthesis__delta="intent"``); "paper" is the printed sign.
    - The class prior is estimated in every M step, as the equations say. The paper's Figure 2 (Dawid-Skene far below
      the majority vote on the original labels) is obtained only with a fixed prior, ``inference__prior="uniform"``.
    - "Until convergence": in `stable_rounds` rounds in a row, no more than a share of `label_tolerance` of the inferred
      labels of real items changes, or `max_epochs` is reached. As every round draws other synthetic items, some labels
      of noisy crowds change in each round.
    - R is computed from the labels of the first synthesis so that classes would be balanced. The range of the noise on
      delta, epsilon, the number of neighbours and all sizes of the network are not printed; a worker's label for a
      synthetic item is the most frequent of their labels on its neighbours (``synthesis__labels="mode"``).

    `ICED.plus()` (registry name "iced-plus") is our variant: there are no synthetic items; the loss balances classes
    instead, by adding the log class shares to the logits (Menon et al.); truth inference by soft EM shrinks confusion
    matrices toward the crowd's, which matters for workers with few labels, and uses the network's predictions; the
    network learns the posterior rather than hard labels, with early stopping.

    Use it where classes are imbalanced and a classifier is wanted that treats them equally: with `balanced_loss`,
    `predict_proba` is under a uniform class prior, while `posterior_` is under the class shares of the items. Where
    classes are balanced, `CrowdLayer` or `TwoStage` is simpler and faster.

    Parameters
    ----------
    warm_up : WarmUp or None, default=WarmUp()
        Warm-up on the majority vote; None for none.
    synthesis : Synthesis or None, default=Synthesis()
        Synthetic items of minority classes, and the autoencoder that they need; None for none.
    certainty : Certainty, default=Certainty()
        Label certainty of items.
    inference : TruthInference, default=TruthInference()
        Truth inference in every round.
    soft_targets : bool, default=False
        Whether the network learns the posterior rather than its most probable class.
    balanced_loss : bool, default=False
        Whether the log class shares are added to the logits in the loss, so that the network does not learn them. A
        class without any label then keeps some probability in `predict_proba`.
    embedding_size : int, default=64
        Size of the embedding; a function given as backbone must return a module with as many outputs.
    backbone : {"mlp", "convnet"} or callable, default="mlp"
        Network from features to the embedding: a multi-layer perceptron, a small convolutional network, or a function
        (n_features or row shape, embedding_size) -> torch.nn.Module.
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
        Maximal number of rounds, each of one epoch; 0 trains by the warm-up alone.
    stable_rounds : int or None, default=10
        Convergence: training stops after this number of rounds in a row in which the inferred labels of real items
        were unchanged, up to `label_tolerance`; None does not stop for this reason.
    label_tolerance : float, default=0.01
        Largest share of the inferred labels that may change in a round that counts as unchanged.
    patience : int or None, default=None
        Early stopping: epochs without a higher held-out log-likelihood before training stops; None trains for
        `max_epochs`.
    validation : float, default=0.1
        Share of the labels held out for early stopping; nothing is held out with 0, or with fewer than ten labels.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "auto" (a GPU where there is one) or another name.
    checkpoint : str, Path or None, default=None
        Folder of checkpoints, from which an interrupted fit resumes with the same result; needs a `random_state`.
    random_state : int, Generator or None, default=None
        Seed of initial weights, shuffling, dropout, synthetic items and the held-out split.

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label] of the last inference; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class among the items with a label or gold, by the last inference.
    posterior_original_ : ndarray of shape (n_items, n_classes)
        Posterior by truth inference on the original labels alone (D&S-orig in the paper).
    posterior_first_ : ndarray of shape (n_items, n_classes)
        Posterior of the first round (D&S-first in the paper); `posterior_` is that after the last.
    certainty_ : ndarray of shape (n_items,)
        Label certainty of the items.
    log_shift_ : ndarray of shape (n_classes,)
        What is added to log `predict_proba` to obtain, up to a constant, log-probabilities under the class shares of
        the items. `score` and the posterior of items without labels use it.
    n_synthetic_ : ndarray of int, shape (n_classes,)
        Number of synthetic items of the last inference, by the class of their candidates.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per epoch: the loss "reconstruction" of the autoencoder, "warm_up" of the warm-up, "loss" of the
        rounds; of each round also its number "round", "agreement", the share of labels that are as in the round before,
        "n_synthetic", "prior ..." for each class, and "heldout" where labels were held out.
    module_ : torch.nn.Module
        The trained network from features to logits.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    W. Wang, G. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM.
    A. Menon et al. (2021), Long-tail learning via logit adjustment, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import ICED, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], [20, 5], axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], [20, 5], axis=0))
    >>> model = ICED.plus(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    >>> ICED().set_params(synthesis__n_neighbors=3)
    ICED(synthesis=Synthesis(n_neighbors=3))
    """

    _of_items = (*CrowdClassifier._of_items, "posterior_original_", "posterior_first_", "certainty_")
    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "warm_up": Options(WarmUp, optional=True),
        "synthesis": Options(Synthesis, optional=True),
        "certainty": Options(Certainty),
        "inference": Options(TruthInference),
        "soft_targets": Boolean(),
        "balanced_loss": Boolean(),
        "embedding_size": Number(whole=True, least=1),
        "max_epochs": Number(whole=True, least=0),
        "stable_rounds": NoneOr(Number(whole=True, least=1)),
        "label_tolerance": Number(least=0, most=1),
    }
    _for_each_class = ("log_shift_",)

    log_shift_: Array

    def __init__(
        self,
        warm_up: WarmUp | None = WarmUp(),
        synthesis: Synthesis | None = Synthesis(),
        certainty: Certainty = Certainty(),
        inference: TruthInference = TruthInference(),
        soft_targets: bool = False,
        balanced_loss: bool = False,
        *,
        embedding_size: int = 64,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        max_epochs: int = 50,
        stable_rounds: int | None = 10,
        label_tolerance: float = 0.01,
        patience: int | None = None,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.warm_up = warm_up
        self.synthesis = synthesis
        self.certainty = certainty
        self.inference = inference
        self.soft_targets = soft_targets
        self.balanced_loss = balanced_loss
        self.embedding_size = embedding_size
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.stable_rounds = stable_rounds
        self.label_tolerance = label_tolerance
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    @classmethod
    def plus(cls, **changes: Any) -> Self:
        """ICED with a balanced loss and features in the truth inference instead of synthetic items.

        Parameters
        ----------
        **changes : object
            Parameters that differ from those of `plus`, by name; `group__option` sets one option of a group.

        Returns
        -------
        ICED
        """
        return cls(**_PLUS).set_params(**changes)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> EmbeddingNetwork:
        body = new_backbone(NetworkOptions.of(self), row_shape, self.embedding_size)
        return EmbeddingNetwork(body, self.embedding_size, n_classes)

    def _training_prior_proba(self, proba: Array) -> Array:
        weighted = proba * np.exp(self.log_shift_)
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))

    def _uniform_prior_proba(self, proba: Array) -> Array:
        return proba if self.balanced_loss else super()._uniform_prior_proba(proba)

    def _learn(self, context: TrainingContext) -> FitResult:
        # A prior for another number of classes is refused before any training.
        class_prior(self.inference.prior, context.n_classes, self.inference.smoothing)
        network = context.network()
        assert isinstance(network, EmbeddingNetwork)
        decoder, history = self._pretrain(context, network)
        optimizer = context.adam(network)
        balanced = self.balanced_loss
        warm_up = WarmUpTraining(context, network, optimizer, self.warm_up, self.certainty, balanced_loss=balanced)
        warm_up_history = warm_up.train()
        options = LoopOptions(self.synthesis, self.certainty, self.inference, self.soft_targets, balanced)
        loop = OuterLoop(context, network, decoder, options, warmed_up=bool(warm_up_history))
        return loop.result(history + warm_up_history + self._train(context, loop, optimizer))

    def _pretrain(self, context: TrainingContext, network: EmbeddingNetwork) -> tuple[Decoder | None, History]:
        """Initialise embedding and decoder as an autoencoder of all rows."""
        if self.synthesis is None or self.synthesis.decoder == "latent":
            return None, []
        decoder = Decoder(self.embedding_size, self.hidden, context.data.rows.shape).to(context.device)
        optimizer = context.adam(network.body, decoder)

        def step(batch: Batch) -> dict[str, torch.Tensor]:
            x = context.x(batch)
            return {"reconstruction": reconstruction_step(decoder, optimizer, network.body(x), x)}

        modules, optimizers = {"network": network, "decoder": decoder}, {"adam": optimizer}
        batches, epochs = context.batches(np.arange(context.annotations.n_items)), self.synthesis.pretrain_epochs
        history = context.train(step, modules, optimizers, batches=batches, max_epochs=epochs, name="autoencoder")
        return decoder, history

    def _train(self, context: TrainingContext, loop: OuterLoop, optimizer: torch.optim.Optimizer) -> History:
        """Run the rounds: each infers the true labels, and trains the network on them for one epoch."""
        network, state = loop.network, loop.state

        def step(batch: Batch) -> dict[str, float | torch.Tensor]:
            logits, target = loop.logits_and_targets(batch)
            logits = logits + (state.log_training_prior if self.balanced_loss else 0.0)
            return {"loss": descend(optimizer, soft_cross_entropy(logits, target)), **loop.metrics}

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = (network(context.x(batch)).log_softmax(1) + loop.log_shift()).log_softmax(1)
            return log_mixture(log_proba[batch.row], state.log_column[batch.worker, batch.label])

        modules: dict[str, nn.Module] = {"network": network, "state": state}
        optimizers = {"adam": optimizer}
        if loop.decoder is not None and loop.decoder_optimizer is not None:
            modules["decoder"], optimizers["decoder"] = loop.decoder, loop.decoder_optimizer
        evaluate = context.heldout_score(log_label, network)
        return context.train(step, modules, optimizers, evaluate=evaluate, until=self._has_converged, batches=loop)

    def _has_converged(self, rounds: History) -> bool:
        """Whether the inferred labels were unchanged in as many of the last rounds as `stable_rounds` asks for."""
        # The mean of equal figures over the mini-batches of a round is exact up to rounding.
        n_rounds, least = self.stable_rounds, 1 - self.label_tolerance - 1e-9
        if n_rounds is None or len(rounds) < n_rounds:
            return False
        return all(epoch["agreement"] >= least for epoch in rounds[-n_rounds:])
