"""ICED: the truth is inferred and a network is trained where classes are imbalanced, each by way of the other.

As published, every epoch:

    S_i = 1 / (variance of the labels of i + floor)                                certainty of an item
    z' = z_i + delta (z_r - z_i),  delta = S_r / (S_i + S_r) + noise,  z = G(x)    a synthetic item of a small class
    what w says of z' is what w said of its nearest real items                     and its labels
    T from Dawid-Skene on real and synthetic labels;  F = FC(G(x)) learns T        z' by way of a decoder

before which an autoencoder starts G and the decoder, and a warm-up goes from less to more certain items. By default
the loss balances the classes and not the items, and what the network sees is heard when the truth is inferred:

    q = softmax(F(x) + log pi),   r_ik ~ q_ik prod_w confusion[w, k, label_iw],   loss = -sum_ik r_ik log q_ik

where pi are the shares of the classes, so that softmax(F(x)) is about a world in which they are equal.

References
----------
W. Wang, G. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM.
A. Menon et al. (2021), Long-tail learning via logit adjustment, ICLR.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.classifiers.base import FitResult
from manyhands.classifiers.iced.autoencoder import Decoder, EmbeddingNetwork, learn_to_decode
from manyhands.classifiers.iced.rounds import Rounds, WarmUp
from manyhands.classifiers.iced.synthesis import DELTA_RULES, LABEL_RULES, SIZES
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkClassifier
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.em.priors import class_prior
from manyhands.nn.backbones import build
from manyhands.nn.batches import Batch
from manyhands.nn.losses import log_mixture, soft_cross_entropy
from manyhands.nn.train import History, descend
from manyhands.validation import Constraint, Number, OneOf, Probabilities, Switch

# What the paper does where the defaults do otherwise.
_AS_PUBLISHED: dict[str, Any] = {
    "synthesis": True,
    "size": "fixed",
    "prior": "uniform",
    "shrinkage": 0.0,
    "features_in_inference": False,
    "soft": False,
    "balanced_loss": False,
    "embedding_size": 64,
    "max_epochs": 30,
    "patience": None,
}


class ICED(NetworkClassifier):
    """Truth and a network where classes are imbalanced, by a balanced loss or, as published, by synthetic items.

    `predict_proba` is about a world in which all classes are equally frequent; `posterior_` is about the items as they
    are. `ICED.as_published()` has the paper's settings, read as its figures need it; to the letter it has
    candidates="all", size="balance", certainty_smoothing=0 and delta="paper" (Eq. 2.5 as printed) as well.

    Parameters
    ----------
    warm_up : "grouped" three groups of items one after the other, from less to more certain; "top" the same items at
        once; "all" all items; None goes without. Items learn their vote
    warm_up_epochs : for each of the three groups; three times as many where they are one
    synthesis : fill small classes up with synthetic items, on which Dawid-Skene and the network then work too
    delta : where between two items a synthetic one lies: "intent" near the more certain, "paper" near the less certain
        as Eq. 2.5 is printed, "smote" anywhere
    delta_noise : by so much that place is moved at most
    n_neighbors : candidates among which the second item is drawn, and real items from which labels are taken
    size : how many: "balance" up to the largest class of the labels just inferred, "fixed" in every round up to the
        largest of the vote, "repeat" in every round as many of each candidate as the vote would need (the paper's R)
    candidates : "all" items inferred to be of the class, or those of them of which the network says so too ("agree")
    synthetic_labels : a worker says what he said most often of the neighbours ("mode") or of one of them ("sample")
    decoder : by which the network reads synthetic items: brought up to date every round ("refit"), left as it was
        pre-trained ("frozen"), or none ("latent"): they teach the last layer alone, and there is no pre-training
    pretrain_epochs : of the autoencoder; without synthesis there is none
    prior : of Dawid-Skene: "estimated", "uniform", which the paper's figures need, or a frequency for each class; with
        features_in_inference it counts only until the network has learnt something
    em : "soft" as Dawid and Skene have it, or "hard", by counting the most probable classes
    smoothing : labels added to every cell of every confusion matrix
    shrinkage : labels added to each of their rows that are spread as the crowd's are
    certainty_floor, certainty_smoothing : of the certainty; votes added to every class of an item before it
    features_in_inference : once the network has learnt something, what it says of an item stands where the prior stood
    soft : learn the posterior rather than its largest class
    balanced_loss : the shares of the classes are part of the loss, so that the network need not learn them; a class
        that nobody named then keeps some probability in `predict_proba`
    embedding_size : numbers in an embedding; a function given as backbone must make a module with so many outputs
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, patience, validation : how it is trained and when it stops
    max_epochs : rounds; 0 leaves it at the warm-up
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes), rows (over the label) sum to 1; of the last inference
    class_prior_ : (n_classes,) the share of each class among the items, by that inference
    posterior_original_, posterior_first_ : (n_items, n_classes) what Dawid-Skene says of the original labels alone, and
        what was inferred in the first round; `posterior_` is after the last
    certainty_ : (n_items,)
    log_shift_ : (n_classes,) what turns log `predict_proba` into that of a world with classes as frequent as among the
        items, up to a constant; `score` and, for items without labels, `posterior_` are about that world
    n_synthetic_ : (n_classes,) the synthetic items of the last inference, by the class of their candidates
    history_ : also of the autoencoder ("reconstruction") and of the warm-up ("warm_up"); of each round "agreement",
        the share of labels as in the round before, "n_synthetic", and "prior ..." for each class

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import ICED, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], [20, 5], axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], [20, 5], axis=0))
    >>> model = ICED(learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS | {
        "warm_up": OneOf(("grouped", "all", "top", None)),
        "warm_up_epochs": Number(whole=True, least=1),
        "synthesis": Switch(),
        "delta": OneOf(DELTA_RULES),
        "delta_noise": Number(least=0, most=1),
        "n_neighbors": Number(whole=True, least=1),
        "size": OneOf(SIZES),
        "candidates": OneOf(("agree", "all")),
        "synthetic_labels": OneOf(LABEL_RULES),
        "decoder": OneOf(("refit", "frozen", "latent")),
        "pretrain_epochs": Number(whole=True, least=0),
        "prior": Probabilities(("estimated", "uniform")),
        "em": OneOf(("soft", "hard")),
        "smoothing": Number(above=0),
        "shrinkage": Number(least=0),
        "certainty_floor": Number(above=0),
        "certainty_smoothing": Number(least=0),
        "features_in_inference": Switch(),
        "soft": Switch(),
        "balanced_loss": Switch(),
        "embedding_size": Number(whole=True, least=1),
        "max_epochs": Number(whole=True, least=0),
    }
    _for_each_class = ("log_shift_",)

    log_shift_: Array

    def __init__(
        self,
        warm_up: str | None = "grouped",
        warm_up_epochs: int = 5,
        synthesis: bool = False,
        delta: str = "intent",
        delta_noise: float = 0.2,
        n_neighbors: int = 5,
        size: str = "fixed",
        candidates: str = "agree",
        synthetic_labels: str = "mode",
        decoder: str = "refit",
        pretrain_epochs: int = 30,
        prior: str | npt.ArrayLike = "estimated",
        em: str = "soft",
        smoothing: float = 0.01,
        shrinkage: float = 5.0,
        certainty_floor: float = 0.01,
        certainty_smoothing: float = 0.5,
        features_in_inference: bool = True,
        soft: bool = True,
        balanced_loss: bool = True,
        embedding_size: int = 32,
        max_epochs: int = 100,
        patience: int | None = 20,
        **network: Any,
    ) -> None:
        super().__init__(max_epochs=max_epochs, patience=patience, **network)
        self.warm_up = warm_up
        self.warm_up_epochs = warm_up_epochs
        self.synthesis = synthesis
        self.delta = delta
        self.delta_noise = delta_noise
        self.n_neighbors = n_neighbors
        self.size = size
        self.candidates = candidates
        self.synthetic_labels = synthetic_labels
        self.decoder = decoder
        self.pretrain_epochs = pretrain_epochs
        self.prior = prior
        self.em = em
        self.smoothing = smoothing
        self.shrinkage = shrinkage
        self.certainty_floor = certainty_floor
        self.certainty_smoothing = certainty_smoothing
        self.features_in_inference = features_in_inference
        self.soft = soft
        self.balanced_loss = balanced_loss
        self.embedding_size = embedding_size

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """The paper's method, and these parameters on top."""
        return cls(**(_AS_PUBLISHED | changes))

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> EmbeddingNetwork:
        hidden, dropout, batch_norm, size = self.hidden, self.dropout, self.batch_norm, self.embedding_size
        body = build(self.backbone, row_shape, size, hidden=hidden, dropout=dropout, batch_norm=batch_norm)
        return EmbeddingNetwork(body, size, n_classes)

    def _as_frequent_as_in_training(self, proba: Array) -> Array:
        weighed = proba * np.exp(self.log_shift_)
        return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))

    def _learn_network(self, context: TrainingContext) -> FitResult:
        class_prior(
            self.prior, context.n_classes, self.smoothing
        )  # one of another length is refused before any training
        network = context.network()
        assert isinstance(network, EmbeddingNetwork)
        decoder, history = self._pretrain(context, network)
        optimizer = context.adam(network)
        warm_up = WarmUp(context, network, optimizer).train()
        rounds = Rounds(context, network, decoder, taught=bool(warm_up))
        return rounds.learned(history + warm_up + self._train(context, rounds, optimizer))

    def _pretrain(self, context: TrainingContext, network: EmbeddingNetwork) -> tuple[Decoder | None, History]:
        """Start G and the decoder as an autoencoder of all rows."""
        epochs = self.pretrain_epochs
        if self.decoder == "latent" or not self.synthesis:
            return None, []
        decoder = Decoder(self.embedding_size, self.hidden, context.data.rows.shape).to(context.device)
        optimizer = context.adam(network.body, decoder)

        def step(batch: Batch) -> dict[str, torch.Tensor]:
            x = context.x(batch)
            return {"reconstruction": learn_to_decode(decoder, optimizer, network.body(x), x)}

        modules, optimizers = {"network": network, "decoder": decoder}, {"adam": optimizer}
        batches, name = context.batches(np.arange(context.annotations.n_items)), "autoencoder"
        return decoder, context.train(step, modules, optimizers, batches=batches, max_epochs=epochs, name=name)

    def _train(self, context: TrainingContext, rounds: Rounds, optimizer: torch.optim.Optimizer) -> History:
        """Every epoch infers the truth, and learns it."""
        network, belief = rounds.network, rounds.belief

        def step(batch: Batch) -> dict[str, float | torch.Tensor]:
            logits, target = rounds.lesson(batch)
            logits = logits + (belief.log_learnt if self.balanced_loss else 0.0)
            return {"loss": descend(optimizer, soft_cross_entropy(logits, target)), **rounds.figures}

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = (network(context.x(batch)).log_softmax(1) + rounds.shift()).log_softmax(1)
            return log_mixture(log_proba[batch.row], belief.log_column[batch.worker, batch.label])

        modules: dict[str, nn.Module] = {"network": network, "belief": belief}
        optimizers = {"adam": optimizer}
        if rounds.decoder is not None and rounds.refit is not None:
            modules["decoder"], optimizers["refit"] = rounds.decoder, rounds.refit
        evaluate = context.heldout_score(log_label, network)
        return context.train(step, modules, optimizers, evaluate=evaluate, batches=rounds)
