"""What all network methods share: their parameters, and a bench on which a method trains.

A method implements `_learn_network(bench)`: it makes its modules, writes `step(batch)`, calls `bench.train` and
returns what it learnt. torch is imported when a fit begins, not before.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier, Learned, Task
from manyhands.exceptions import ParameterError
from manyhands.kernels import Array
from manyhands.nn.inputs import Rows, fingerprint
from manyhands.parameters import Parameters
from manyhands.randomness import Seed, make_generator, torch_seeded
from manyhands.validation import Constraint, Device, Folder, Maybe, NameOr, Number, RandomState, Sizes, Switch

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import AnnotationBatches, Batch

# What the parameters of every network method may be.
NETWORK_CONSTRAINTS: dict[str, Constraint] = {
    "backbone": NameOr(("mlp", "convnet"), "__call__", "a function (n_features or shape, n_classes) -> torch Module"),
    "hidden": Sizes(),
    "dropout": Number(least=0, most=0.99),
    "batch_norm": Switch(),
    "learning_rate": Number(above=0),
    "batch_size": Number(whole=True, least=1),
    "max_epochs": Number(whole=True, least=1),
    "patience": Maybe(Number(whole=True, least=1)),
    "validation": Number(least=0, most=0.5),
    "device": Device(),
    "checkpoint": Folder(),
    "random_state": RandomState(),
}


class NetworkParameters(TypedDict, total=False):
    """The parameters of every network method, for `**network: Unpack[NetworkParameters]`."""

    backbone: Any
    hidden: tuple[int, ...]
    dropout: float
    batch_norm: bool
    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int | None
    validation: float
    device: str
    checkpoint: str | Path | None
    random_state: Seed


class NetworkMethod(Parameters, ABC):
    """What a network method is, be it a classifier or a learner of representations: parameters, a bench, a module.

    Parameters
    ----------
    backbone : "mlp", "convnet", or a function (n_features or shape, n_classes) -> torch Module that gives logits
    hidden, dropout, batch_norm : sizes of the hidden layers, share of their outputs dropped, normalise them or not
    learning_rate, batch_size : of Adam; items in a batch
    max_epochs : at most this many passes over the items
    patience : stop after so many epochs without a better likelihood of held-out labels; None trains to the end
    validation : share of the labels held out for that; 0 holds none out
    device : "cpu", "cuda", "auto" or another one of torch
    checkpoint : a folder from which a killed fit goes on with the same result; emptied at the end. It needs a seed
    random_state : seed of starts, shuffling, dropout and of which labels are held out
    """

    _constraints: ClassVar[dict[str, Constraint]] = NETWORK_CONSTRAINTS

    def __init__(
        self,
        *,
        backbone: Any = "mlp",
        hidden: tuple[int, ...] = (128,),
        dropout: float = 0.5,
        batch_norm: bool = False,
        learning_rate: float = 1e-3,
        batch_size: int = 64,
        max_epochs: int = 50,
        patience: int | None = 10,
        validation: float = 0.1,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
        random_state: Seed = None,
    ) -> None:
        self.backbone = backbone
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.device = device
        self.checkpoint = checkpoint
        self.random_state = random_state

    @abstractmethod
    def _learn_network(self, bench: Bench) -> Learned:
        """Train on the bench, and say what was learnt."""

    def _learn(self, task: Task) -> Learned:
        from manyhands.nn.networks import choose_device

        device = choose_device(self.device)
        if self.checkpoint is not None and self.random_state is None:
            raise ParameterError(
                f"A {type(self).__name__} with a checkpoint needs a random_state, or there is no same result."
            )
        identity = self._identity(task) if self.checkpoint is not None else {}
        rng = make_generator(self.random_state)
        training, heldout = _hold_out(task.annotations, self.validation if self.patience else 0.0, rng)
        with torch_seeded(rng):
            learned = self._learn_network(Bench(self, task, training, heldout, rng, device, identity))
        learned.module.eval()
        self._clear_checkpoint()
        return learned

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """An untrained `module_`, also for `load_model`; a method whose module is more than a backbone overrides it."""
        from manyhands.nn.backbones import build

        hidden, dropout, batch_norm = self.hidden, self.dropout, self.batch_norm
        return build(self.backbone, row_shape, n_classes, hidden=hidden, dropout=dropout, batch_norm=batch_norm)

    def _identity(self, task: Task) -> dict[str, str]:
        """What makes this fit this one."""
        parameters = {name: value for name, value in self.get_params().items() if name != "checkpoint"}
        if isinstance(self.random_state, np.random.Generator):
            parameters["random_state"] = repr(self.random_state.bit_generator.state)
        votes = task.annotations
        codes = np.concatenate(
            [votes.item, votes.worker, votes.label, [votes.n_items, votes.n_workers, votes.n_classes]]
        )
        return {
            "method": type(self).__name__,
            **{name: repr(value) for name, value in parameters.items()},
            "X": fingerprint(task.rows),
            "annotations": _hash(codes),
            "gold": _hash(np.zeros(0) if task.gold is None else task.gold),
        }

    def _clear_checkpoint(self) -> None:
        """A finished fit needs no checkpoint: the next one, of a search for instance, may use the folder."""
        if self.checkpoint is not None:
            folder = Path(self.checkpoint)
            for path in folder.glob("*.checkpoint"):
                path.unlink()
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


class NetworkClassifier(NetworkMethod, CrowdClassifier):
    """A crowd classifier that is a network; its parameters are those of `NetworkMethod`."""

    def _proba(self, module: Any, rows: Rows) -> Array:
        from manyhands.nn.networks import probabilities

        return probabilities(module, rows)


@dataclass(frozen=True, eq=False)
class Bench:
    """What a method needs at hand while it trains; the torch generator is its own for that time.

    `annotations` are those to learn from; `heldout` are those that only the stop rule sees, or None.
    """

    method: NetworkMethod
    task: Task
    annotations: Annotations
    heldout: Annotations | None
    rng: np.random.Generator
    device: torch.device
    identity: Mapping[str, str]

    @property
    def n_workers(self) -> int:
        return self.annotations.n_workers

    @property
    def n_classes(self) -> int:
        return self.annotations.n_classes

    def network(self) -> nn.Module:
        """A new network from features to logits, on the device."""
        return self.method._new_module(self.task.rows.shape, self.n_classes, self.n_workers).to(self.device)

    def adam(self, *modules: nn.Module) -> torch.optim.Adam:
        """Adam over the parameters of these modules, at the method's learning rate."""
        import torch

        return torch.optim.Adam([p for m in modules for p in m.parameters()], lr=self.method.learning_rate)

    def x(self, batch: Batch) -> torch.Tensor:
        """(n_rows, ...) the features of a batch."""
        from manyhands.nn.networks import as_tensor

        return as_tensor(self.task.rows, batch.item, self.device)

    def gold(self, batch: Batch) -> torch.Tensor | None:
        """(n_rows,) the known classes of a batch, -1 where none is known; None without any gold."""
        import torch

        if self.task.gold is None:
            return None
        return torch.from_numpy(self.task.gold[batch.item].astype(np.int64)).to(self.device)

    def batches(self, *, every_item: bool = False) -> AnnotationBatches:
        """Shuffled batches of the items with a label or gold (or of all), each with its training labels."""
        from manyhands.nn.batches import AnnotationBatches

        wanted = (self.annotations.n_labels > 0) | every_item
        wanted = wanted if self.task.gold is None else wanted | (self.task.gold >= 0)
        items = np.flatnonzero(wanted)
        return AnnotationBatches(self.annotations, self.method.batch_size, self.rng, items=items, device=self.device)

    def heldout_score(self, log_label: Callable[[Batch], torch.Tensor], *modules: nn.Module) -> Callable[[], float]:
        """A function: the mean of `log_label(batch)` over held-out labels, with these modules in evaluation mode."""
        import torch

        from manyhands.nn.batches import AnnotationBatches

        def evaluate() -> float:
            assert self.heldout is not None
            batches = AnnotationBatches(self.heldout, 1024, device=self.device)
            for module in modules:
                module.eval()
            with torch.no_grad():
                total = sum(float(log_label(batch).double().sum()) for batch in batches)
            for module in modules:
                module.train()
            return total / self.heldout.n_annotations

        return evaluate

    def train(
        self,
        step: Callable[[Any], Any],
        modules: Mapping[str, nn.Module],
        optimizers: Mapping[str, torch.optim.Optimizer],
        *,
        evaluate: Callable[[], float] | None = None,
        batches: Any = None,
        max_epochs: int | None = None,
        tensors: Mapping[str, torch.Tensor] | None = None,
        name: str = "training",
    ) -> list[dict[str, float]]:
        """`nn.train` as the method's parameters say: early stopping by `evaluate`, a checkpoint under `name`.

        `modules`, `optimizers` and `tensors` are all that steps change; several trainings of one fit differ in `name`.
        """
        from manyhands.nn.checkpoint import Checkpoint
        from manyhands.nn.train import EarlyStopping, train

        stop = None
        if evaluate is not None and self.heldout is not None and self.method.patience is not None:
            stop = EarlyStopping(evaluate, modules, self.method.patience)
        checkpoint = None
        if self.method.checkpoint is not None:
            path = Path(self.method.checkpoint) / f"{name}.checkpoint"
            checkpoint = Checkpoint(path, self.identity, modules, optimizers, tensors or {}, self.rng)
        return train(
            step,
            self.batches() if batches is None else batches,
            max_epochs=self.method.max_epochs if max_epochs is None else max_epochs,
            stop=stop,
            checkpoint=checkpoint,
            what=name,
        )


def _hold_out(
    annotations: Annotations, share: float, rng: np.random.Generator
) -> tuple[Annotations, Annotations | None]:
    """Labels to learn from and labels for the stop rule; none of the latter where there are too few to choose from."""
    n_heldout = round(share * annotations.n_annotations)
    if n_heldout == 0:
        return annotations, None
    order = rng.permutation(annotations.n_annotations)
    return annotations.keep(np.sort(order[n_heldout:])), annotations.keep(np.sort(order[:n_heldout]))


def _hash(array: np.ndarray[Any, Any]) -> str:
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).hexdigest()
