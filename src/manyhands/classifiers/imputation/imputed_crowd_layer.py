"""A crowd layer on completed labels: what workers left unanswered is filled in first, by one of four.

    1. learn p(label | x, w) from the labels           `imputer`
         self        a crowd layer
         graph       a graph network over workers and items, with one kind of edge for each label
         gan         a crowd layer, made to look authentic: discriminator D and layer L in turns,
                     L follows the gradient of  mean (log(1 + exp D(y)) - its mean) log L(y),  y drawn from L
         generator   CrowdInG
    2. fill in missing pairs of an item and a worker with its likeliest label, or with one drawn from it
    3. train a fresh crowd layer on all of them

Step 3 sees nothing that step 1 did not: the augmentation baselines of CrowdInG show what completing alone is worth.

References: Z. Chu and H. Wang (2021), Improve learning from crowds via generative augmentation, KDD. R. van den Berg et
al. (2018), Graph convolutional matrix completion. J. Wang et al. (2017), IRGAN, SIGIR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import torch

from manyhands import registry
from manyhands.classifiers.active_workers import ActiveWorkers, log_truth
from manyhands.classifiers.base import FitResult
from manyhands.classifiers.imputation.imputers import AdversarialImputer, Answers, GraphImputer, LayerImputer
from manyhands.classifiers.network import NetworkClassifier, NetworkParameters
from manyhands.classifiers.noise_layer import NOISE_LAYER_CONSTRAINTS
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.wrapping import wrapped_method
from manyhands.nn.batches import Batch
from manyhands.nn.item_worker_pairs import Pairs, fill_in
from manyhands.nn.train import History
from manyhands.randomness import torch_seeded
from manyhands.validation import Constraint, Maybe, NameOr, Number, Switch, check_memory

_FILLERS = ("self", "graph", "gan", "generator")
_STRETCH = 1024  # items whose pairs are looked at together
_NUMBERS = 1 << 19  # log-probabilities held at a time where all pairs are filled in
_BYTES = 100  # that a filled-in pair takes while the crowd layer learns from it
_GRAPH_ITEMS, _GAN_ITEMS = 4096, 256  # in a batch

_EPOCHS = ("generator_epochs", "discriminator_epochs", "adversarial_epochs")

Triples = npt.NDArray[np.int64]  # (n, 3): item, worker, label


class ImputedCrowdLayer(NetworkClassifier):
    """A crowd layer that learns from labels and from what others fill in where workers gave none.

    Labels stay as they are, and pairs of workers without a label are left alone. Held-out labels are neither seen nor
    filled in. What is known of gold items counts where the crowd layers learn and where answers on them are foretold;
    the graph does not see it.

    Parameters
    ----------
    filler : who fills in: "self", a crowd layer that is fitted before; "graph", a graph network on workers and items;
        "gan", that crowd layer after a game with a discriminator; "generator", CrowdInG that starts from a crowd layer
        and has the parameters given here, or a `CrowdInG` with others of its own
    per_label : for every label that a worker gave, so many are filled in on items that he did not label, the surer the
        likelier chosen; None fills in every pair of an item and a worker, as the paper does. An epoch then costs items
        x workers instead of labels, in time and memory: about 100 bytes for each pair
    likeliest : fill in the most probable label, or else one drawn by its probability
    generator_epochs : of the graph, or of CrowdInG's generator before its game, at most; one of the graph has four
        steps
    discriminator_epochs, adversarial_epochs : of the discriminator before the game of "gan" or of CrowdInG, and of the
        game, at most
    start : "identity", where workers are believed, or an aggregator (by its name or as an instance) that judges them
    backbone, hidden, dropout, batch_norm : the network, as in `NetworkClassifier`
    learning_rate, batch_size, max_epochs : of both crowd layers
    patience, validation : every training stops after so many epochs without a better likelihood of the share of labels
        that is held out
    device, checkpoint, random_state : where, from which folder a killed fit goes on, and the seed

    Attributes
    ----------
    filled_annotations_ : `Annotations`, what was filled in. They are not saved
    confusion_ : (n_workers, n_classes, n_classes) what the layers say of each worker
    history_ : epochs of all trainings in their order

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations, ImputedCrowdLayer
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, -1], [1, -1, 1]], 30, axis=0))
    >>> model = ImputedCrowdLayer(per_label=None, validation=0, learning_rate=0.01, random_state=0).fit(X, votes)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist(), model.filled_annotations_.n_annotations
    ([0, 1], 60)
    """

    _constraints: ClassVar[dict[str, Constraint]] = NOISE_LAYER_CONSTRAINTS | {
        "imputer": NameOr(_FILLERS, "augment", "a CrowdInG"),
        "per_label": Maybe(Number(whole=True, least=1)),
        "most_likely": Switch(),
        "generator_epochs": Number(whole=True, least=0),
        "discriminator_epochs": Number(whole=True, least=0),
        "adversarial_epochs": Number(whole=True, least=0),
    }

    def __init__(
        self,
        imputer: Any = "self",
        per_label: int | None = 1,
        most_likely: bool = True,
        generator_epochs: int = 50,
        discriminator_epochs: int = 10,
        adversarial_epochs: int = 40,
        start: Any = "identity",
        **network: Unpack[NetworkParameters],
    ) -> None:
        super().__init__(**network)
        self.imputer = imputer
        self.per_label = per_label
        self.most_likely = most_likely
        self.generator_epochs = generator_epochs
        self.discriminator_epochs = discriminator_epochs
        self.adversarial_epochs = adversarial_epochs
        self.start = start

    def _learn_network(self, context: TrainingContext) -> FitResult:
        layer = self._with_my_parameters("crowd-layer")
        crowd = ActiveWorkers.of(context)
        if self.per_label is None:
            need = _BYTES * context.annotations.n_items * len(crowd.active)
            check_memory(need, "All pairs of items and workers", "Give a number for per_label.")
        by = self.imputer if isinstance(self.imputer, str) else "generator"
        learn: Callable[..., tuple[Answers, History]] = getattr(self, f"_learn_by_{by}")
        answers, before = learn(crowd, layer)
        filled = self._fill_in(crowd, answers)
        completed = context.annotations.with_more(*filled.T)
        last = replace(context, method=layer, annotations=completed, stage=f"{context.stage}filled-")
        network, noise = last.network(), layer._started_layer(replace(context, method=layer))  # judged by what was said
        history = before + layer._learn_layers(last, network, noise)
        nothing = context.annotations.keep(np.zeros(0, np.intp))
        results = layer._results(last, noise) | {"filled_annotations_": nothing.with_more(*filled.T)}
        return FitResult(network, history, results=results)

    def _with_my_parameters(self, name: str, **others: Any) -> Any:
        kind = registry.get(name)
        mine = self.get_params(deep=False)
        return kind(**{name: mine[name] for name in kind._parameter_names() if name in mine}, **others)

    def _fill_in(self, crowd: ActiveWorkers, answers: Answers) -> Triples:
        """Step 2, with a generator of its own: how much is drawn here shows in nothing else."""
        context, n_heard = crowd.context, len(crowd.active)
        rng = np.random.default_rng(context.rng.integers(2**63))
        stretch = max(1, _NUMBERS // max(n_heard * context.n_classes, 1)) if self.per_label is None else _STRETCH
        how: dict[str, Any] = {"per_label": self.per_label, "most_likely": self.most_likely}
        found = [np.zeros((0, 3), np.int64)]
        with torch_seeded(rng), torch.no_grad():
            both = (crowd.batches(votes, stretch) for votes in (context.annotations, crowd.heldout))
            for batch, heldout in zip(*both):
                pairs, label = fill_in(batch, n_heard, partial(answers, batch), rng, taken=heldout, **how)
                row, worker, said = (column.cpu().numpy() for column in (*pairs, label))
                found.append(np.column_stack([batch.item[row], crowd.active[worker], said]))
        return np.concatenate(found)

    def _learn_by_self(self, crowd: ActiveWorkers, method: Any) -> tuple[Answers, History]:
        layer, history = _first_layer(crowd, method)
        return layer.answers, history

    def _learn_by_gan(self, crowd: ActiveWorkers, method: Any) -> tuple[Answers, History]:
        layer, before = _first_layer(crowd, method)
        context, rivals = crowd.context, AdversarialImputer(layer)
        judge, judge_adam = {"discriminator": rivals.discriminator}, {"discriminator": rivals.discriminator_adam}
        batches = context.batches(batch_size=_GAN_ITEMS)
        learnt_to_tell = context.train(
            lambda batch: {"discriminator_start": rivals.learn_to_tell(rivals.draw(batch))},
            judge,
            judge_adam,
            batches=batches,
            max_epochs=self.discriminator_epochs,
            name="discriminator",
        )
        played = context.train(
            rivals.play,
            judge | {"network": layer.network, "noise": layer.noise},
            judge_adam | {"layer": rivals.layer_adam},
            evaluate=method._evaluate(context, layer.network, layer.noise),
            batches=batches,
            max_epochs=self.adversarial_epochs,
            name="game",
        )
        return layer.answers, before + learnt_to_tell + played

    def _learn_by_graph(self, crowd: ActiveWorkers, method: Any) -> tuple[Answers, History]:
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
        return graph.rested(), history

    def _learn_by_generator(self, crowd: ActiveWorkers, method: Any) -> tuple[Answers, History]:
        named, context = isinstance(self.imputer, str), crowd.context
        paper = {"pretraining": "crowd-layer", "members": 1}  # the generator is what is compared, not its start
        crowding = (
            self._with_my_parameters("crowding", **paper) if named else wrapped_method(self, "imputer", also=_EPOCHS)
        )
        with torch_seeded(context.rng):  # it draws a code for everybody, silent ones too: nothing later may show that
            learned = crowding._learn_network(replace(context, method=crowding))
        module = learned.module.eval()
        generator = module.generator.for_all(torch.from_numpy(crowd.active))

        def answers(batch: Batch, pairs: Pairs) -> torch.Tensor:
            x = context.x(batch)
            z = log_truth(module, x, context.gold(batch)).exp()
            log_p: torch.Tensor = generator(generator.inputs(x), z, pairs, generator.draw_noise(pairs))
            return log_p

        return answers, learned.history


def _first_layer(crowd: ActiveWorkers, method: Any) -> tuple[LayerImputer, History]:
    context = replace(crowd.context, method=method, stage=f"{crowd.context.stage}first-")
    network, noise = context.network(), method._started_layer(context)
    history = method._learn_layers(context, network, noise)
    return LayerImputer(crowd, network, noise), history
