"""The bench on which a network method trains: data, device, generators, and the loop as its parameters say.

torch is imported when a fit begins, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import TrainingData
from manyhands.em.kernels import Array
from manyhands.heldout import worker_confusions

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import AnnotationBatches, Batch


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """What a method needs at hand while it trains; the torch generator is its own for that time.

    `annotations` are those to learn from; `heldout` are those that only the stop rule sees, or None.
    """

    method: Any  # a NetworkMethod
    data: TrainingData
    annotations: Annotations
    heldout: Annotations | None
    rng: np.random.Generator
    device: torch.device
    identity: Mapping[str, str]  # what makes this fit this one
    folder: Path | None = None  # of its checkpoints
    weight: Array | None = None  # (n_annotations,) how much each label counts; None is 1
    stage: str = ""  # goes before the name of every training, where several of them follow each other

    @property
    def n_workers(self) -> int:
        return self.annotations.n_workers

    @property
    def n_classes(self) -> int:
        return self.annotations.n_classes

    def network(self) -> nn.Module:
        """A new network from features to logits, on the device."""
        return self.method._new_module(self.data.rows.shape, self.n_classes, self.n_workers).to(self.device)

    def adam(self, *modules: nn.Module) -> torch.optim.Adam:
        """Adam over the parameters of these modules, at the method's learning rate."""
        import torch

        return torch.optim.Adam([p for m in modules for p in m.parameters()], lr=self.method.learning_rate)

    def x(self, batch: Batch) -> torch.Tensor:
        """(n_rows, ...) the features of a batch."""
        from manyhands.nn.inference import as_tensor

        return as_tensor(self.data.rows, batch.item, self.device)

    def gold(self, batch: Batch) -> torch.Tensor | None:
        """(n_rows,) the known classes of a batch, -1 where none is known; None without any gold."""
        import torch

        if self.data.gold is None:
            return None
        return torch.from_numpy(self.data.gold[batch.item].astype(np.int64)).to(self.device)

    def batches(self, items: npt.NDArray[np.intp] | None = None, batch_size: int | None = None) -> AnnotationBatches:
        """Shuffled batches of these items, each with its training labels; None is those with a label or gold.

        They are as large as the method says, or as `batch_size` does.
        """
        from manyhands.nn.batches import AnnotationBatches

        if items is None:
            wanted = self.annotations.n_labels > 0
            wanted = wanted if self.data.gold is None else wanted | (self.data.gold >= 0)
            items = np.flatnonzero(wanted)
        return AnnotationBatches(
            self.annotations,
            self.method.batch_size if batch_size is None else batch_size,
            self.rng,
            items=items,
            device=self.device,
            weight=self.weight,
        )

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
        name: str = "training",
        start_counts: bool = False,
    ) -> list[dict[str, float]]:
        """`nn.train` as the method's parameters say: early stopping by `evaluate`, a checkpoint under `name`.

        `modules` and `optimizers` are all that steps change; several trainings of one fit differ in `name`.
        """
        from manyhands.nn.checkpoint import Checkpoint
        from manyhands.nn.train import EarlyStopping, train

        name = self.stage + name
        stop = None
        if evaluate is not None and self.heldout is not None and self.method.patience is not None:
            stop = EarlyStopping(evaluate, modules, self.method.patience)
        checkpoint = None
        if self.folder is not None:
            path = self.folder / f"{name}.checkpoint"
            checkpoint = Checkpoint(path, self.identity, modules, optimizers, self.rng)
        return train(
            step,
            self.batches() if batches is None else batches,
            max_epochs=self.method.max_epochs if max_epochs is None else max_epochs,
            stop=stop,
            checkpoint=checkpoint,
            what=name,
            start_counts=start_counts,
        )

    def train_on(
        self, target: Array, posterior: Array, *, name: str = "training"
    ) -> tuple[nn.Module, list[dict[str, float]]]:
        """A new network that learns `target` (n_items, n_classes), and by what `posterior` says of workers stops."""
        import torch

        from manyhands.nn.losses import log_mixture, soft_cross_entropy
        from manyhands.nn.train import descend

        network = self.network()
        optimizer = self.adam(network)
        wanted = torch.from_numpy(target).float().to(self.device)
        log_confusion = torch.from_numpy(np.log(worker_confusions(self.annotations, posterior))).float()
        log_column = log_confusion.transpose(1, 2).to(self.device)  # (n_workers + 1, label, truth)

        def step(batch: Batch) -> torch.Tensor:
            item = torch.from_numpy(batch.item).to(self.device)
            return descend(optimizer, soft_cross_entropy(network(self.x(batch)), wanted[item]))

        def log_label(batch: Batch) -> torch.Tensor:
            log_proba = network(self.x(batch)).log_softmax(1)[batch.row]
            return log_mixture(log_proba, log_column[batch.worker, batch.label])

        evaluate = self.heldout_score(log_label, network)
        return network, self.train(step, {"network": network}, {"adam": optimizer}, evaluate=evaluate, name=name)
