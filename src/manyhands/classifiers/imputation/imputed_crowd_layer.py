"""A crowd layer on completed annotations: missing annotations are imputed first, by one of four models.

    1. learn p(label | x, w) from the labels           `imputer`
         self        a crowd layer
         graph       a graph network over workers and items, with one edge type per label
         gan         a crowd layer L against a discriminator D, in turns;
                     L follows the gradient of  mean (log(1 + exp D(y)) - its mean) log L(y),  y drawn from L
         generator   CrowdInG as published
    2. impute missing pairs of an item and a worker with the most probable label, or with one drawn from p
    3. train a new crowd layer on observed and imputed annotations

Step 3 uses no information that step 1 did not have: these baselines of CrowdInG show what imputation alone is worth.
The network of step 1 is not used in step 3, "gan" included: there too a new network and new layers are trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from manyhands import registry
from manyhands.classifiers.active_workers import ActiveWorkers, log_truth
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.imputation.imputers import AdversarialImputer, GraphImputer, LayerImputer, LogLabels
from manyhands.classifiers.nested_methods import nested_method, shared_parameters
from manyhands.classifiers.network import context_for
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS, NoiseModel, heldout_metric, initial_layer
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.nn.batches import Batch
from manyhands.nn.item_worker_pairs import Pairs, impute_annotations
from manyhands.nn.train import History
from manyhands.randomness import Seed, torch_seeded
from manyhands.validation import Boolean, Constraint, NameOr, NoneOr, Number, check_memory

_IMPUTERS = ("self", "graph", "gan", "generator")
_CHUNK = 1024  # items whose pairs are processed together
_NUMBERS = 1 << 19  # log-probabilities held at a time where all pairs are imputed
_BYTES = 100  # memory of an imputed pair while the crowd layer is trained on it
_GRAPH_ITEMS, _GAN_ITEMS = 4096, 256  # items per mini-batch

Triples = npt.NDArray[np.int64]  # (n, 3): item, worker, label


class Epochs(NamedTuple):
    """Numbers of epochs of the models that impute; a model uses those of its own parts.

    Attributes
    ----------
    generator : int
        Of the graph, or of CrowdInG's generator.
    discriminator : int
        Of the discriminator before the adversarial training.
    adversarial : int
        Of the adversarial training.
    """

    generator: int
    discriminator: int
    adversarial: int


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
        Impute the most probable label; otherwise one drawn from the distribution, as the paper does.
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
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
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
    Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD.
    R. van den Berg, T. Kipf and M. Welling (2018), Graph convolutional matrix completion.
    J. Wang et al. (2017), IRGAN, SIGIR.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, ImputedCrowdLayer
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
        model: NoiseModel = registry.create("crowd-layer").noise_model()
        crowd = ActiveWorkers.of(context)
        if self.per_label is None:
            need = _BYTES * context.annotations.n_items * len(crowd.active)
            check_memory(need, "All pairs of items and workers", "Give a number for per_label.")
        kind = self.imputer if isinstance(self.imputer, str) else "generator"
        epochs = Epochs(self.generator_epochs, self.discriminator_epochs, self.adversarial_epochs)
        learn: dict[str, Callable[[ActiveWorkers, NoiseModel, Epochs], tuple[LogLabels, History]]] = {
            "self": self._learn_crowd_layer,
            "graph": self._learn_graph,
            "gan": self._learn_adversarially,
            "generator": self._learn_generator,
        }
        log_labels, before = learn[kind](crowd, model, epochs)
        imputed = self._impute(crowd, log_labels)
        completed = context.annotations.with_more(*imputed.T)
        last = replace(context, annotations=completed, stage=f"{context.stage}imputed-")
        # The initial layers follow from the observed labels alone.
        network, layer = last.network(), initial_layer(context, model, self.init)
        history = before + model.train(last, network, layer)
        empty = context.annotations.keep(np.zeros(0, np.intp))
        results = model.results(layer, last) | {"imputed_annotations_": empty.with_more(*imputed.T)}
        return FitResult(network, history, results=results)

    def _impute(self, crowd: ActiveWorkers, log_labels: LogLabels) -> Triples:
        """Step 2, with a generator of its own, so that the number of draws here affects nothing else."""
        context, n_active = crowd.context, len(crowd.active)
        rng = np.random.default_rng(context.rng.integers(2**63))
        chunk = max(1, _NUMBERS // max(n_active * context.n_classes, 1)) if self.per_label is None else _CHUNK
        how: dict[str, Any] = {"per_label": self.per_label, "most_likely": self.most_likely}
        found = [np.zeros((0, 3), np.int64)]
        with torch_seeded(rng), torch.no_grad():
            both = (crowd.batches(votes, chunk) for votes in (context.annotations, crowd.heldout))
            for batch, heldout in zip(*both):
                pairs, label = impute_annotations(
                    batch, n_active, partial(log_labels, batch), rng, taken=heldout, **how
                )
                row, worker, code = (column.cpu().numpy() for column in (*pairs, label))
                found.append(np.column_stack([batch.item[row], crowd.active[worker], code]))
        return np.concatenate(found)

    def _train_first_layer(self, crowd: ActiveWorkers, model: NoiseModel) -> tuple[LayerImputer, History]:
        """Train a crowd layer on the observed labels."""
        context = replace(crowd.context, stage=f"{crowd.context.stage}first-")
        network, layer = context.network(), initial_layer(context, model, self.init)
        history = model.train(context, network, layer)
        return LayerImputer(crowd, network, layer), history

    def _learn_crowd_layer(self, crowd: ActiveWorkers, model: NoiseModel, epochs: Epochs) -> tuple[LogLabels, History]:
        layer, history = self._train_first_layer(crowd, model)
        return layer.log_labels, history

    def _learn_adversarially(
        self, crowd: ActiveWorkers, model: NoiseModel, epochs: Epochs
    ) -> tuple[LogLabels, History]:
        layer, before = self._train_first_layer(crowd, model)
        context, game = crowd.context, AdversarialImputer(layer)
        modules, optimizers = {"discriminator": game.discriminator}, {"discriminator": game.discriminator_adam}
        batches = context.batches(batch_size=_GAN_ITEMS)
        pretrained = context.train(
            lambda batch: {"discriminator_start": game.train_discriminator(game.draw(batch))},
            modules,
            optimizers,
            batches=batches,
            max_epochs=epochs.discriminator,
            name="discriminator",
        )
        played = context.train(
            game.step,
            modules | {"network": layer.network, "noise": layer.noise},
            optimizers | {"layer": game.layer_adam},
            evaluate=heldout_metric(context, model, layer.network, layer.noise),
            batches=batches,
            max_epochs=epochs.adversarial,
            name="game",
        )
        return layer.log_labels, before + pretrained + played

    def _learn_graph(self, crowd: ActiveWorkers, model: NoiseModel, epochs: Epochs) -> tuple[LogLabels, History]:
        graph = GraphImputer(crowd)
        history = crowd.context.train(
            graph.learn,
            {"graph": graph.network},
            {"adam": graph.adam},
            evaluate=graph.score if crowd.heldout.n_annotations else None,
            batches=crowd.context.batches(batch_size=_GRAPH_ITEMS),
            max_epochs=epochs.generator,
            name="graph",
        )
        return graph.imputer(), history

    def _learn_generator(self, crowd: ActiveWorkers, model: NoiseModel, epochs: Epochs) -> tuple[LogLabels, History]:
        context, crowding = crowd.context, self._crowding(epochs)
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

    def _crowding(self, epochs: Epochs) -> Any:
        """The published CrowdInG with the options given here."""
        if not isinstance(self.imputer, str):
            return nested_method(self, "imputer")
        crowding = registry.create("crowding", **shared_parameters(self, registry.get("crowding")))
        return crowding.set_params(
            generator__epochs=epochs.generator,
            discriminator__epochs=epochs.discriminator,
            adversarial__epochs=epochs.adversarial,
        )
