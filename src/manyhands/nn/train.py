"""The training loop: epochs of mini-batches, early stopping on held-out labels, checkpoints.

Every method of this package that trains by gradient descent calls `train` with a step of its own. The loop is:

    resume from the checkpoint, if there is one
    for each epoch, up to max_epochs:
        for each mini-batch:  step(batch)                  computes the losses and updates the weights
        score = mean log-likelihood of held-out labels     early stopping, if patience is given
        save a checkpoint, at most every 2 seconds
        stop where the score has not improved for `patience` epochs
    restore the weights of the epoch with the best score

Without early stopping the weights of the last epoch are kept.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import nn

from manyhands.exceptions import TrainingError
from manyhands.nn.checkpoint import Checkpoint
from manyhands.progress import report

B = TypeVar("B")
Number = float | torch.Tensor
History = list[dict[str, float]]


@dataclass
class EarlyStopping:
    """Early stopping on the held-out log-likelihood, with a return to the best weights.

    After each epoch the held-out annotations are scored; they are labels of the crowd that no training step uses, and
    the ground truth plays no part. Training stops once the score has not exceeded its best value for `patience` epochs
    in a row.

    Parameters
    ----------
    evaluate : callable
        Returns the mean log-likelihood of the held-out annotations under the current weights; higher is better.
    modules : mapping of str to torch.nn.Module
        Modules whose weights of the best epoch are kept, by name.
    patience : int
        Epochs without improvement after which training stops.
    best : float, default=-inf
        Best score so far.
    waited : int, default=0
        Epochs since the best score.
    best_state : dict of str to dict of str to tensor, default={}
        ``state_dict`` of each module at the best score. These last three are the state that a checkpoint stores.
    """

    evaluate: Callable[[], float]
    modules: Mapping[str, nn.Module]
    patience: int
    best: float = -math.inf
    waited: int = 0
    best_state: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)

    def should_stop(self, score: float) -> bool:
        """Record an epoch's score, and keep a copy of the weights if it is the best.

        Parameters
        ----------
        score : float
            Mean log-likelihood of the held-out annotations.

        Returns
        -------
        bool
            Whether training should stop.
        """
        if score > self.best:
            self.best, self.waited = score, 0
            self.best_state = {name: copy.deepcopy(module.state_dict()) for name, module in self.modules.items()}
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self) -> None:
        """Load the weights of the best epoch into the modules."""
        for name, state in self.best_state.items():
            self.modules[name].load_state_dict(state)


def train(
    step: Callable[[B], Number | Mapping[str, Number]],
    batches: Iterable[B],
    *,
    max_epochs: int,
    stop: EarlyStopping | None = None,
    until: Callable[[History], bool] | None = None,
    checkpoint: Checkpoint | None = None,
    what: str = "training",
    score_initial_weights: bool = False,
) -> History:
    """Train: call a step on every mini-batch of every epoch.

    An *epoch* is one iteration over `batches`, which shuffle themselves. The step computes its losses on a mini-batch
    and updates the weights (see `descend`); the loop knows neither model nor optimizer.

    *Early stopping*: with `stop`, held-out annotations are scored after each epoch. Training ends after `patience`
    epochs without improvement or after `max_epochs`, and the weights of the best epoch are restored.

    *Resume from a checkpoint*: with `checkpoint`, the state of the training is written after an epoch, at most every 2
    seconds, and always at the end. A call with the same identity then continues after the last stored epoch, and its
    results are the same to the last bit as without the interruption; after the end, no step is run again.

    Parameters
    ----------
    step : callable
        Takes a mini-batch, updates the weights once or more, and returns its loss, or several losses by name. Tensors
        may stay on their device.
    batches : iterable
        Mini-batches of an epoch; iterated over once per epoch.
    max_epochs : int
        Maximum number of epochs.
    stop : EarlyStopping or None, default=None
        Early stopping; None trains for `max_epochs`.
    until : callable (history) -> bool or None, default=None
        Training also stops after the epoch after which this is true of the history so far. It restores no weights
        itself.
    checkpoint : Checkpoint or None, default=None
        Where to store the state, and from where to resume.
    what : str, default="training"
        Name under which progress is reported.
    score_initial_weights : bool, default=False
        Score the initial weights too, so that they are restored where no epoch is better.

    Returns
    -------
    list of dict of str to float
        One entry per epoch: the mean of each loss over the mini-batches (named "loss" where the step returns a single
        one), and with early stopping the score as "heldout".

    Raises
    ------
    TrainingError
        Where a loss or a score is NaN or infinite, or the checkpoint belongs to another training.

    References
    ----------
    L. Prechelt (1998), Early stopping - but when?, in Neural Networks: Tricks of the Trade, Springer.
    """
    progress = checkpoint.resume(stop) if checkpoint else None
    history: History = progress.history if progress else []
    finished = progress.finished if progress else False
    if score_initial_weights and stop is not None and not history:
        stop.should_stop(float(stop.evaluate()))
    while not finished and len(history) < max_epochs:
        history.append(_run_epoch(step, batches, len(history)))
        if stop is not None:
            history[-1]["heldout"] = float(stop.evaluate())
            check_finite(history[-1], len(history))
            finished = stop.should_stop(history[-1]["heldout"])
        finished = finished or (until is not None and until(history))
        if checkpoint is not None:
            checkpoint.save_if_due(history, stop, finished=finished or len(history) == max_epochs)
        report(len(history), max_epochs, what)
    if stop is not None:
        stop.restore()
    return history


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """One gradient step: zero the gradients, backpropagate, update the weights.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Optimizer of the weights.
    loss : tensor of shape ()
        Loss to minimise.

    Returns
    -------
    tensor of shape ()
        The loss before the step, detached and still on its device.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach()


def _run_epoch(
    step: Callable[[Any], Number | Mapping[str, Number]], batches: Iterable[Any], epoch: int
) -> dict[str, float]:
    """One epoch: the mean of each loss over the mini-batches."""
    total: dict[str, Number] = {}
    n_batches = 0
    for batch in batches:
        losses = step(batch)
        for name, value in losses.items() if isinstance(losses, Mapping) else (("loss", losses),):
            total[name] = total.get(name, 0.0) + value  # on its device: float() would wait for a GPU at every step
        n_batches += 1
    means = {name: float(value) / n_batches for name, value in total.items()}
    check_finite(means, epoch + 1)
    return means


def check_finite(figures: Mapping[str, float], epoch: int) -> None:
    """End a training that has diverged.

    Parameters
    ----------
    figures : mapping of str to float
        Losses and scores of an epoch, by name.
    epoch : int
        Number of the epoch, from 1, for the message.

    Raises
    ------
    TrainingError
        Where one of them is NaN or infinite.
    """
    for name, figure in figures.items():
        if not math.isfinite(figure):
            raise TrainingError(f"The {name} became {figure} in epoch {epoch}; lower learning_rate or standardise X.")
