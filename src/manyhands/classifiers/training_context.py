"""The training context of a fit: data, held-out labels, device, random generator, and the one training loop.

torch is imported when a network is trained, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_data import TrainingData
from manyhands.em.kernels import Array
from manyhands.heldout import worker_confusions

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.nn.batches import AnnotationBatches, Batch


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """All that a method needs while it learns. Methods without a network use `data` and `rng` only.

    Attributes
    ----------
    data : TrainingData
        Features, all labels, gold.
    annotations : Annotations
        The labels to learn from: those that are not held out.
    heldout : Annotations or None
        The labels that only early stopping sees.
    rng : numpy.random.Generator
        The generator of this fit; torch's global generator is seeded from it for the duration of the fit.
    options : NetworkOptions
        Network, optimizer and stopping parameters.
    new_network : callable () -> torch.nn.Module
        Returns a new, untrained network.
    device : torch.device or str
        Where networks are trained.
    identity : mapping of str to str
        Data and parameters of this fit as text; a checkpoint belongs to one identity.
    folder : Path or None
        Folder of this fit's checkpoints.
    weight : ndarray of shape (n_annotations,) or None
        Weight of each label in the loss; None means 1 each.
    stage : str
        Prefix of the names of trainings, where several follow each other in one fit.
    """

    data: TrainingData
    annotations: Annotations
    heldout: Annotations | None
    rng: np.random.Generator
    options: NetworkOptions = field(default_factory=NetworkOptions)
    new_network: Callable[[], nn.Module] | None = None
    device: torch.device | str = "cpu"
    identity: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    weight: Array | None = None
    stage: str = ""

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.annotations.n_workers

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.annotations.n_classes

    def with_options(self, **changes: Any) -> Self:
        """Return a context in which some of the options differ.

        Parameters
        ----------
        **changes : object
            Options of `NetworkOptions` by name.

        Returns
        -------
        TrainingContext
        """
        return replace(self, options=replace(self.options, **changes))

    def network(self) -> nn.Module:
        """Return a new, untrained network on the device."""
        assert self.new_network is not None
        return self.new_network().to(self.device)

    def adam(self, *modules: nn.Module) -> torch.optim.Adam:
        """Return Adam over the parameters of these modules, with the method's learning rate and weight decay.

        Parameters
        ----------
        *modules : torch.nn.Module
            The modules to be trained.

        Returns
        -------
        torch.optim.Adam
        """
        import torch

        parameters = [p for m in modules for p in m.parameters()]
        return torch.optim.Adam(parameters, lr=self.options.learning_rate, weight_decay=self.options.weight_decay)

    def x(self, batch: Batch) -> torch.Tensor:
        """Return the features of the items of a mini-batch, of shape (n_rows, ...)."""
        from manyhands.nn.inference import as_tensor

        return as_tensor(self.data.rows, batch.item, self.device)

    def gold(self, batch: Batch) -> torch.Tensor | None:
        """Return the known classes of a mini-batch.

        Parameters
        ----------
        batch : Batch
            A mini-batch.

        Returns
        -------
        torch.Tensor of shape (n_rows,) or None
            Class codes, -1 where the class is unknown; None without any gold.
        """
        import torch

        if self.data.gold is None:
            return None
        return torch.from_numpy(self.data.gold[batch.item].astype(np.int64)).to(self.device)

    def batches(self, items: npt.NDArray[np.intp] | None = None, batch_size: int | None = None) -> AnnotationBatches:
        """Return shuffled mini-batches of items, each with its training labels.

        Parameters
        ----------
        items : ndarray of int, default=None
            Codes of the items; None takes those with a label or gold.
        batch_size : int, default=None
            Items per mini-batch; None takes the method's.

        Returns
        -------
        AnnotationBatches
        """
        from manyhands.nn.batches import AnnotationBatches

        if items is None:
            wanted = self.annotations.n_labels > 0
            wanted = wanted if self.data.gold is None else wanted | (self.data.gold >= 0)
            items = np.flatnonzero(wanted)
        return AnnotationBatches(
            self.annotations,
            self.options.batch_size if batch_size is None else batch_size,
            self.rng,
            items=items,
            device=self.device,
            weight=self.weight,
        )

    def heldout_score(self, log_label: Callable[[Batch], torch.Tensor], *modules: nn.Module) -> Callable[[], float]:
        """Return a function that computes the mean held-out log-likelihood.

        Parameters
        ----------
        log_label : callable (Batch) -> torch.Tensor of shape (n_labels,)
            Log-probability of each label of a mini-batch.
        *modules : torch.nn.Module
            The modules to be put into evaluation mode.

        Returns
        -------
        callable () -> float
        """
        import torch

        from manyhands.nn.batches import AnnotationBatches

        def evaluate() -> float:
            assert self.heldout is not None
            batches = AnnotationBatches(self.heldout, 1024, device=self.device)
            for module in modules:
                module.eval()
            with torch.no_grad():
                total = sum(float(log_label(batch).cpu().double().sum()) for batch in batches)
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
        until: Callable[[list[dict[str, float]]], bool] | None = None,
        batches: Any = None,
        max_epochs: int | None = None,
        name: str = "training",
        score_initial_weights: bool = False,
    ) -> list[dict[str, float]]:
        """Run the training loop (`nn.train.train`) with the method's options.

        Parameters
        ----------
        step : callable (Batch) -> loss or dict of losses
            One optimisation step.
        modules : mapping of str to torch.nn.Module
            All modules that steps change, for early stopping and checkpoints.
        optimizers : mapping of str to torch.optim.Optimizer
            All optimizers that steps use.
        evaluate : callable () -> float, default=None
            Held-out log-likelihood, by which early stopping decides.
        until : callable (history) -> bool, default=None
            Training also stops after the epoch after which this is true of its history.
        batches : iterable of mini-batches, default=None
            None takes `self.batches()`.
        max_epochs : int, default=None
            None takes the method's.
        name : str, default="training"
            Name of this training; trainings of one fit have different names.
        score_initial_weights : bool, default=False
            Whether early stopping may return to the weights before the first epoch.

        Returns
        -------
        list of dict
            The history: mean losses of each epoch.
        """
        from manyhands.nn.checkpoint import Checkpoint
        from manyhands.nn.train import EarlyStopping, train

        name = self.stage + name
        stop = None
        if evaluate is not None and self.heldout is not None and self.options.patience is not None:
            stop = EarlyStopping(evaluate, modules, self.options.patience)
        checkpoint = None
        if self.folder is not None:
            path = self.folder / f"{name}.checkpoint"
            checkpoint = Checkpoint(path, self.identity, modules, optimizers, self.rng)
        return train(
            step,
            self.batches() if batches is None else batches,
            max_epochs=self.options.max_epochs if max_epochs is None else max_epochs,
            stop=stop,
            until=until,
            checkpoint=checkpoint,
            what=name,
            score_initial_weights=score_initial_weights,
        )

    def train_on(
        self, target: Array, posterior: Array, *, name: str = "training"
    ) -> tuple[nn.Module, list[dict[str, float]]]:
        """Train a new network on soft targets by cross-entropy.

        Parameters
        ----------
        target : ndarray of shape (n_items, n_classes)
            Target distribution of each item.
        posterior : ndarray of shape (n_items, n_classes)
            Posterior from which the workers' confusion matrices are computed for the held-out log-likelihood.
        name : str, default="training"
            Name of this training.

        Returns
        -------
        network : torch.nn.Module
        history : list of dict
        """
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
