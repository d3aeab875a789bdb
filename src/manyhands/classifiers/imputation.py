"""Crowd layers on imputed annotations: the augmentation baselines of CrowdInG (Chu and Wang 2021, Section 4.4.1).

    1. learn p(label | x, w) from the labels
         self        DL-CL+Self: a crowd layer
         graph       DL-CL+GCN: a graph network over workers and items, with one edge type per label
         gan         DL-CL+GAN: a crowd layer L against a discriminator D, in turns, after IRGAN (Wang et al. 2017);
                     L follows the gradient of  mean (log(1 + exp d(y)) - its mean) log L(y),  y drawn from L, d
                     the logit of D
         generator   DL-CL+InG: CrowdInG as published
    2. impute missing pairs of an item and a worker with the most probable label, or with one drawn from p
    3. train a new crowd layer on observed and imputed annotations

`ImputedCrowdLayer._learn` has the three steps; the models of step 1 follow in the paper's order. Step 3 uses no
information that step 1 did not have: these baselines show what imputation alone is worth. The network of step 1 is not
used in step 3, "gan" included: there too a new network and new layers are trained.

References
----------
R. van den Berg, T. Kipf and M. Welling (2018), Graph convolutional matrix completion, KDD Deep Learning Day ("graph").

J. Wang, L. Yu, W. Zhang, Y. Gong, Y. Xu, B. Wang, P. Zhang and D. Zhang (2017), IRGAN: A minimax game for unifying
generative and discriminative information retrieval models, SIGIR ("gan").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands import registry
from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, torch_seeded
from manyhands._core.system import check_memory
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.crowding_game import (
    ActiveWorkers,
    Discriminator,
    Pairs,
    WorkerEmbedding,
    choose_pairs,
    draw_pairs,
    impute_annotations,
    log_truth,
    sample_labels,
    select,
)
from manyhands.classifiers.network import FitResult, TrainingContext, context_for, nested_method, shared_parameters
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseModel, heldout_metric, initial_layer
from manyhands.nn.batches import Batch
from manyhands.nn.losses import gold_cross_entropy, negative_log_likelihood
from manyhands.nn.train import History, descend
from manyhands.validation import Boolean, Constraint, NameOr, NoneOr, Number

_IMPUTERS = ("self", "graph", "gan", "generator")
_CHUNK = 1024  # items processed together without gradients, which bounds memory
_NUMBERS = 1 << 19  # log-probabilities held at a time where all pairs are imputed: 2 MB
_BYTES = 100  # memory of an imputed pair while the crowd layer is trained on it
Triples = npt.NDArray[np.int64]  # (n, 3): item, worker, label
LogLabels = Callable[[Batch, Pairs], torch.Tensor]  # items with their labels, pairs -> log p(label | x, w)
Figures = dict[str, torch.Tensor]


class ImputedCrowdLayer(CrowdClassifier):
    """Crowd layer trained on the labels and on imputed annotations.

    Observed labels stay as they are. Workers without a label get no imputed annotations, and held-out pairs are not
    imputed. Gold counts where the crowd layers are trained and where labels on gold items are predicted; the graph
    does not use it.

    Use it as a baseline for CrowdInG. The registry has it as "crowd-layer-self", "crowd-layer-graph" (both impute the
    most probable label), "crowd-layer-gan" and "crowd-layer-generator" (both sample).

    Parameters
    ----------
    imputer : {"self", "graph", "gan", "generator"} or CrowdInG, default="self"
        The model that imputes: a crowd layer that is trained first; a graph network on workers and items; that crowd
        layer after adversarial training; the published CrowdInG, or a `CrowdInG` with parameters and epochs of its own.
    per_label : int or None, default=None
        Annotations imputed for each label of a worker, on items that they did not label, confident ones more probably.
        None imputes every pair of an item and a worker, as the paper does: an epoch then costs items x workers instead
        of labels, in time and memory (about 100 bytes per pair).
    most_likely : bool, default=False
        Impute the most probable label; otherwise one drawn from the distribution, as CrowdInG does (Section 3.2.1; of
        the other baselines the paper does not say).
    generator_epochs : int, default=50
        Maximal number of epochs of the graph, or of CrowdInG's generator before its adversarial training.
    discriminator_epochs : int, default=10
        Epochs of the discriminator before the adversarial training of "gan" or "generator".
    adversarial_epochs : int, default=40
        Maximal number of epochs of the adversarial training of "gan" or "generator".
    init : str or Aggregator, default="identity"
        Initial layers: the identity (workers are assumed to be correct), or the confusion matrices estimated by this
        aggregator.
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
    imputed_annotations_ : Annotations
        The imputed annotations; they are not saved.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Label distribution of each worker given the true class.
    history_ : list of dict
        Epochs of all trainings in order.

    References
    ----------
    Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.
    R. van den Berg, T. Kipf and M. Welling (2018), Graph convolutional matrix completion.
    J. Wang, L. Yu, W. Zhang, Y. Gong, Y. Xu, B. Wang, P. Zhang and D. Zhang (2017), IRGAN: A minimax game for unifying
    generative and discriminative information retrieval models, SIGIR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import ImputedCrowdLayer
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, -1], [1, -1, 1]], 30, axis=0))
    >>> model = ImputedCrowdLayer(validation=0, learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist(), model.imputed_annotations_.n_annotations
    ([0, 1], 60)
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "imputed_annotations_")
    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "imputer": NameOr(_IMPUTERS, "augment", "a CrowdInG"),
        "per_label": NoneOr(Number(whole=True, least=1)),
        "most_likely": Boolean(),
        "generator_epochs": Number(whole=True, least=0),
        "discriminator_epochs": Number(whole=True, least=0),
        "adversarial_epochs": Number(whole=True, least=0),
    }

    imputed_annotations_: Annotations
    confusion_: Array

    def __init__(
        self,
        imputer: Any = "self",
        per_label: int | None = None,
        most_likely: bool = False,
        generator_epochs: int = 50,
        discriminator_epochs: int = 10,
        adversarial_epochs: int = 40,
        *,
        init: Any = "identity",
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
        self.imputer = imputer
        self.per_label = per_label
        self.most_likely = most_likely
        self.generator_epochs = generator_epochs
        self.discriminator_epochs = discriminator_epochs
        self.adversarial_epochs = adversarial_epochs
        self.init = init
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
        noise: NoiseModel = registry.create("crowd-layer").noise_model()
        crowd = ActiveWorkers.of(context)
        if self.per_label is None:
            need = _BYTES * context.annotations.n_items * len(crowd.active)
            check_memory(need, "All pairs of items and workers", "Give a number for per_label.")
        # 1. A model of p(label | x, w), from the observed labels.
        if not isinstance(self.imputer, str) or self.imputer == "generator":
            log_labels, history = self._train_generator(crowd)
        elif self.imputer == "graph":
            log_labels, history = self._train_graph(crowd)
        else:
            layer, history = self._train_first_layer(crowd, noise)
            log_labels = layer.log_labels
            if self.imputer == "gan":
                history = history + self._train_adversarially(layer, noise)
        # 2. Labels of that model for the pairs without one.
        triples = self._impute(crowd, log_labels)
        # 3. A new crowd layer, on observed and imputed annotations; its start follows from the observed labels alone.
        both = context.annotations.with_more(*triples.T)
        last = replace(context, annotations=both, stage=f"{context.stage}imputed-")
        network, new_layer = last.network(), initial_layer(context, noise, self.init)
        history = history + noise.train(last, network, new_layer)
        empty = context.annotations.keep(np.zeros(0, np.intp))
        results = noise.results(new_layer, last) | {"imputed_annotations_": empty.with_more(*triples.T)}
        return FitResult(network, history, results=results)

    def _train_first_layer(self, crowd: ActiveWorkers, noise: NoiseModel) -> tuple[LayerImputer, History]:
        """DL-CL+Self, step 1: train a crowd layer on the observed labels."""
        context = replace(crowd.context, stage=f"{crowd.context.stage}first-")
        network, layer = context.network(), initial_layer(context, noise, self.init)
        history = noise.train(context, network, layer)
        return LayerImputer(crowd, network, layer), history

    def _train_graph(self, crowd: ActiveWorkers) -> tuple[LogLabels, History]:
        """DL-CL+GCN, step 1: train a graph network on the observed labels."""
        graph = GraphImputer(crowd)
        history = crowd.context.train(
            graph.learn,
            {"graph": graph.network},
            {"adam": graph.adam},
            evaluate=graph.score if crowd.heldout.n_annotations else None,
            batches=crowd.context.batches(batch_size=_GRAPH_ITEMS),
            max_epochs=self.generator_epochs,
            name="graph",
        )
        return graph.imputer(), history

    def _train_adversarially(self, layer: LayerImputer, noise: NoiseModel) -> History:
        """DL-CL+GAN, step 1 after the crowd layer: train it further against a discriminator."""
        context, game = layer.crowd.context, AdversarialImputer(layer)
        modules, optimizers = {"discriminator": game.discriminator}, {"discriminator": game.discriminator_adam}
        batches = context.batches(batch_size=_GAN_ITEMS)
        pretraining = context.train(
            lambda batch: {"discriminator_start": game.train_discriminator(game.draw(batch))},
            modules,
            optimizers,
            batches=batches,
            max_epochs=self.discriminator_epochs,
            name="discriminator",
        )
        return pretraining + context.train(
            game.step,
            modules | {"network": layer.network, "noise": layer.noise},
            optimizers | {"layer": game.layer_adam},
            evaluate=heldout_metric(context, noise, layer.network, layer.noise),
            batches=batches,
            max_epochs=self.adversarial_epochs,
            name="game",
        )

    def _train_generator(self, crowd: ActiveWorkers) -> tuple[LogLabels, History]:
        """DL-CL+InG, step 1: fit CrowdInG."""
        context, crowding = crowd.context, self._crowding()
        with torch_seeded(context.rng):  # it draws codes for workers without labels too, which must affect nothing else
            result = crowding._learn(context_for(crowding, context))
        module = result.module.eval()
        generator = module.generator.for_workers(torch.from_numpy(crowd.active))

        def log_labels(batch: Batch, pairs: Pairs) -> torch.Tensor:
            x = context.x(batch)
            z = log_truth(module, x, context.gold(batch)).exp()
            log_p: torch.Tensor = generator(generator.inputs(x), z, pairs, generator.draw_noise(pairs))
            return log_p

        return log_labels, result.history

    def _crowding(self) -> Any:
        """The published CrowdInG with the options given here."""
        if not isinstance(self.imputer, str):
            return nested_method(self, "imputer")
        crowding = registry.create("crowding", **shared_parameters(self, registry.get("crowding")))
        return crowding.set_params(
            generator__epochs=self.generator_epochs,
            discriminator__epochs=self.discriminator_epochs,
            adversarial__epochs=self.adversarial_epochs,
        )

    def _impute(self, crowd: ActiveWorkers, log_labels: LogLabels) -> Triples:
        """Step 2, with a random generator of its own, so that the number of draws here affects nothing else."""
        context, n_active = crowd.context, len(crowd.active)
        rng = np.random.default_rng(context.rng.integers(2**63))
        chunk = max(1, _NUMBERS // max(n_active * context.n_classes, 1)) if self.per_label is None else _CHUNK
        how: dict[str, Any] = {"per_label": self.per_label, "most_likely": self.most_likely}
        triples = [np.zeros((0, 3), np.int64)]
        with torch_seeded(rng), torch.no_grad():
            both = (crowd.batches(votes, chunk) for votes in (context.annotations, crowd.heldout))
            for batch, heldout in zip(*both):
                pairs, label = impute_annotations(
                    batch, n_active, partial(log_labels, batch), rng, heldout=heldout, **how
                )
                row, worker, code = (column.cpu().numpy() for column in (*pairs, label))
                triples.append(np.column_stack([batch.item[row], crowd.active[worker], code]))
        return np.concatenate(triples)


# ----------------------------------------------------------------------------------------------------
# Models of step 1. Workers are numbered among the active ones.
#
# DL-CL+Self: "we complete the missing annotations using a pre-trained DL-CL model".


@dataclass(frozen=True, eq=False)
class LayerImputer:
    """A trained network with a crowd layer behind it."""

    crowd: ActiveWorkers  # the workers and the context
    network: nn.Module  # from features to logits
    noise: Any

    def log_labels(self, batch: Batch, pairs: Pairs) -> torch.Tensor:
        """Return log p(label | x, w) of pairs of a mini-batch, (n_pairs, n_classes)."""
        return self.log_label(self.crowd.context.x(batch), self.crowd.context.gold(batch), pairs)

    def log_label(self, x: torch.Tensor, gold: torch.Tensor | None, pairs: Pairs) -> torch.Tensor:
        """Return the same from features and known classes."""
        truth = log_truth(self.network.eval(), x, gold).exp().index_select(0, pairs.row)
        worker = torch.from_numpy(self.crowd.active).to(x.device)[pairs.worker]
        logits: torch.Tensor = self.noise.logits(truth, worker)
        return logits.log_softmax(1)


# ----------------------------------------------------------------------------------------------------
# DL-CL+GCN: "we construct an annotator-instance bipartite graph", and fill in the missing links by a graph network.
#
# The paper has no more detail; this is graph convolutional matrix completion (van den Berg et al. 2018), with one edge
# type per label: a label k of worker w on item i is an edge of type k.
#
#     messages to item i      m_i = mean over its labels (w, k) of A_k c_w          c_w a free embedding of worker w
#     messages to worker w    m_w = mean over their labels (i, k) of B_k c_i        c_i = relu(E x_i)
#     embeddings (encoder)    v_i = relu(V relu(m_i) + V' c_i),   u_w = relu(U relu(m_w) + U' c_w)
#     labels (decoder)        p(k | i, w) = softmax_k(u_w' Q_k v_i)
#
# Time and memory are proportional to edges and nodes, never to items x workers. The constants are ours, apart from the
# step size.

_HIDDEN_EDGES = 0.5  # share of the labels that are hidden from the graph and predicted: half, so that both are many
_GRAPH_ITEMS = 4096  # items per mini-batch: a graph of few items would have too few paths between workers
_GRAPH_STEPS = 4  # per mini-batch, each with other labels hidden: mini-batches are large, so that an epoch has few
_GRAPH_RATE = 1e-2  # step size of Adam, as in van den Berg et al.


class Edges(NamedTuple):
    """Labels as edges between rows of X and workers."""

    row: torch.Tensor  # (n_edges,)
    worker: torch.Tensor  # (n_edges,)
    label: torch.Tensor  # (n_edges,); labels: the types of the edges

    def select(self, which: torch.Tensor) -> Edges:
        """Select the edges under a mask of shape (n_edges,)."""
        return Edges(self.row[which], self.worker[which], self.label[which])


class MessageSum(NamedTuple):
    """Sum and number of the messages to each node; both add up over parts of a graph."""

    total: torch.Tensor  # (n_nodes, units)
    degree: torch.Tensor  # (n_nodes,)

    def mean(self) -> torch.Tensor:
        """(n_nodes, units) the mean message of each node; 0 where there is none."""
        return self.total / self.degree.clamp(min=1).unsqueeze(1)


class LabelGraph(nn.Module):
    """Encoder and decoder of the graph of labels."""

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_workers: int,
        *,
        units: int = 64,  # ours
        dropout: float = 0.5,  # ours: that of the classifier in Section 4.1
    ) -> None:
        super().__init__()
        self.n_workers = n_workers
        self.item = nn.Sequential(nn.Flatten(), nn.Linear(n_features, units), nn.ReLU())
        self.worker = WorkerEmbedding(n_workers, units)
        # Messages are as long as the embeddings, and logits near 0, at the start (ours).
        self.to_item = nn.Parameter(torch.randn(n_classes, units, units) / units**0.5)
        self.to_worker = nn.Parameter(torch.randn(n_classes, units, units) / units**0.5)
        self.item_message, self.item_own = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.worker_message, self.worker_own = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.edge = nn.Parameter(torch.randn(n_classes, units, units) / units)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, edges: Edges, pairs: Pairs) -> torch.Tensor:
        """Log-probabilities of the labels of pairs, in the graph of these rows and edges.

        Shapes: x (n_rows, ...).
        """
        own = self.dropout(self.item(x))
        worker = self.worker_embedding(self.messages_to_workers(own, edges))
        return self.log_label(self._item_embedding(own, edges), worker, pairs)

    def messages_to_workers(self, own: torch.Tensor, edges: Edges) -> MessageSum:
        """Messages from items to workers along these edges.

        Shapes: own (n_rows, units).
        """
        return _messages(own, self.to_worker, edges.row, edges.worker, edges.label, self.n_workers)

    def worker_embedding(self, messages: MessageSum) -> torch.Tensor:
        """(n_workers, units) the workers' embeddings u, from the messages to them."""
        own = self.dropout(self.worker())
        return F.relu(self.worker_message(self.dropout(F.relu(messages.mean()))) + self.worker_own(own))

    def item_embedding(self, x: torch.Tensor, edges: Edges) -> torch.Tensor:
        """(n_rows, units) the items' embeddings v, from features (n_rows, ...) and the labels on them."""
        return self._item_embedding(self.dropout(self.item(x)), edges)

    def _item_embedding(self, own: torch.Tensor, edges: Edges) -> torch.Tensor:
        """`item_embedding` from the embeddings c of the features."""
        messages = _messages(self.dropout(self.worker()), self.to_item, edges.worker, edges.row, edges.label, len(own))
        return F.relu(self.item_message(self.dropout(F.relu(messages.mean()))) + self.item_own(own))

    def log_label(self, item: torch.Tensor, worker: torch.Tensor, pairs: Pairs) -> torch.Tensor:
        """Decoder: log-probabilities of the labels of pairs.

        Shapes: item (n_rows, units); worker (n_workers, units).
        """
        product = torch.einsum("cij,nj->nci", self.edge, item).index_select(0, pairs.row)
        return torch.bmm(product, worker.index_select(0, pairs.worker).unsqueeze(2)).squeeze(2).log_softmax(1)


def _messages(
    embedding: torch.Tensor,
    matrix: torch.Tensor,
    source: torch.Tensor,
    target: torch.Tensor,
    label: torch.Tensor,
    n_targets: int,
) -> MessageSum:
    """Messages to n_targets nodes: along every edge, its source's embedding times the matrix of its label."""
    total = embedding.new_zeros(n_targets, matrix.shape[1])
    for k, weight in enumerate(matrix):
        edge = (label == k).nonzero().squeeze(1)
        total = total.index_add(0, target[edge], embedding.index_select(0, source[edge]) @ weight.t())
    return MessageSum(total, torch.bincount(target, minlength=n_targets).to(embedding.dtype))


class GraphImputer:
    """A graph network over labels: some are hidden from the graph, and it learns to predict them."""

    def __init__(self, crowd: ActiveWorkers) -> None:
        context = crowd.context
        sizes = math.prod(context.data.rows.shape), context.n_classes, len(crowd.active)
        self.crowd, self.network = crowd, LabelGraph(*sizes).to(context.device)
        decay = context.options.weight_decay
        self.adam = torch.optim.Adam(self.network.parameters(), lr=_GRAPH_RATE, weight_decay=decay)

    def learn(self, batch: Batch) -> Figures:
        """Train on a mini-batch; the labels to be predicted are not in the graph."""
        x, batch = self.crowd.context.x(batch), self.crowd.numbered(batch)
        edges = edges_of(batch)
        for _ in range(_GRAPH_STEPS):
            is_target = torch.rand(len(batch.label), device=x.device) < _HIDDEN_EDGES
            target = edges.select(is_target)
            log_p = self.network(x, edges.select(~is_target), Pairs(target.row, target.worker))
            loss = descend(self.adam, negative_log_likelihood(select(log_p, target.label)))
        return {"graph": loss}

    def score(self) -> float:
        """Return the mean held-out log-likelihood given the other labels of the active workers."""
        context = self.crowd.active_context
        log_labels = self.imputer()

        def log_label(batch: Batch) -> torch.Tensor:
            (graph,) = self.crowd.batches(context.annotations, len(batch.item), batch.item)
            target = self.crowd.numbered(batch)
            return select(log_labels(graph, Pairs(target.row, target.worker)), target.label)

        return context.heldout_score(log_label, self.network)()

    @torch.no_grad()
    def imputer(self) -> LogLabels:
        """Return `log_labels` of the trained network, given all training labels."""
        context, network = self.crowd.context, self.network.eval()
        messages = MessageSum(torch.zeros((), device=context.device), torch.zeros((), device=context.device))
        for batch in self.crowd.batches(context.annotations, _CHUNK):
            more = network.messages_to_workers(network.item(context.x(batch)), edges_of(batch))
            messages = MessageSum(messages.total + more.total, messages.degree + more.degree)
        worker = network.worker_embedding(messages)

        def log_labels(batch: Batch, pairs: Pairs) -> torch.Tensor:
            return network.log_label(network.item_embedding(context.x(batch), edges_of(batch)), worker, pairs)

        return log_labels


def edges_of(batch: Batch) -> Edges:
    """Return the labels of a mini-batch as edges of the graph."""
    return Edges(batch.row, batch.worker, batch.label)


# ----------------------------------------------------------------------------------------------------
# DL-CL+GAN: "we follow the same design in [35]", IRGAN, with the crowd layer as the generative model.

_GAN_ITEMS = 256  # items per mini-batch, as in `CrowdInG.plus`
_PAIRS_PER_LABEL = 8  # pairs considered for each label in an adversarial step (ours): cost stays proportional to labels
_LAYER_RATE = 1e-4  # step size of the crowd layer, which is trained already: so it is small (ours)
_DISCRIMINATOR_RATE = 1e-3  # that of the discriminator, as in `CrowdInG.plus`


class Draw(NamedTuple):
    """Labels drawn from a crowd layer on pairs of a mini-batch, and the observed labels."""

    x: torch.Tensor  # (n_rows, ...)
    gold: torch.Tensor | None  # (n_rows,)
    authentic: Pairs  # pairs with an observed label
    authentic_label: torch.Tensor  # (n_labels,)
    pairs: Pairs  # pairs for which labels were drawn
    label: torch.Tensor  # (n_pairs,)
    example: torch.Tensor  # indices of the pairs, all without a label, that are the discriminator's generated examples


class AdversarialImputer:
    """A crowd layer, and the discriminator that separates labels drawn from it from observed ones."""

    def __init__(self, layer: LayerImputer) -> None:
        crowd = layer.crowd
        sizes = math.prod(crowd.context.data.rows.shape), crowd.context.n_classes, len(crowd.active)
        self.layer, self.crowd = layer, crowd
        self.discriminator = Discriminator(*sizes).to(crowd.context.device)
        weights = [*layer.network.parameters(), *layer.noise.parameters()]
        decay = crowd.context.options.weight_decay
        self.layer_adam = torch.optim.Adam(weights, lr=_LAYER_RATE, weight_decay=decay)
        self.discriminator_adam = torch.optim.Adam(
            self.discriminator.parameters(), lr=_DISCRIMINATOR_RATE, weight_decay=decay
        )

    @torch.no_grad()
    def draw(self, batch: Batch) -> Draw:
        """Draw labels from the crowd layer for pairs of a mini-batch."""
        context, n_active = self.crowd.context, len(self.crowd.active)
        x, gold, batch = context.x(batch), context.gold(batch), self.crowd.numbered(batch)
        pairs, has_label = draw_pairs(batch, n_active, _PAIRS_PER_LABEL, context.rng)
        label = sample_labels(self.layer.log_label(x, gold, pairs))
        weight = torch.zeros(len(label), device=x.device).masked_fill(has_label, -torch.inf)
        example = choose_pairs(pairs, weight, torch.bincount(batch.worker, minlength=n_active))
        return Draw(x, gold, Pairs(batch.row, batch.worker), batch.label, pairs, label, example)

    def train_discriminator(self, draw: Draw) -> torch.Tensor:
        """Train the discriminator: authentic labels against as many drawn ones of each worker."""
        self.discriminator.train()
        inputs = self.discriminator.inputs(draw.x)
        real = self.discriminator.logit(inputs, draw.authentic, draw.authentic_label)
        fake = self.discriminator.logit(inputs, draw.pairs.select(draw.example), draw.label[draw.example])
        loss = negative_log_likelihood(F.logsigmoid(real)) + negative_log_likelihood(F.logsigmoid(-fake))
        return descend(self.discriminator_adam, loss / 2)

    def train_layer(self, draw: Draw) -> Figures:
        """Train the crowd layer by policy gradient: labels that look authentic become more probable."""
        with torch.no_grad():
            self.discriminator.eval()
            inputs = self.discriminator.inputs(draw.x)
            reward = F.softplus(self.discriminator.logit(inputs, draw.pairs, draw.label))
            mean = reward.sum() / max(len(reward), 1)
        log_p = select(self.layer.log_label(draw.x, draw.gold, draw.pairs), draw.label)
        loss = negative_log_likelihood((reward - mean) * log_p)
        if draw.gold is not None:
            loss = loss + gold_cross_entropy(self.layer.network(draw.x), draw.gold)
        descend(self.layer_adam, loss)
        return {"generator": loss.detach(), "reward": mean}

    def step(self, batch: Batch) -> Figures:
        """Train discriminator and crowd layer on one mini-batch."""
        draw = self.draw(batch)
        return {"discriminator": self.train_discriminator(draw)} | self.train_layer(draw)
