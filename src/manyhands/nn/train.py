"""The one training loop: call a step on every batch of every epoch, until told to stop."""

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
    """Stop when held-out annotations are foretold no better for `patience` epochs, and go back to the best.

    `evaluate` gives the mean log-likelihood of annotations that no step sees. No truth comes near it.
    """

    evaluate: Callable[[], float]
    modules: Mapping[str, nn.Module]
    patience: int
    best: float = -math.inf
    waited: int = 0
    kept: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)

    def is_over(self, score: float) -> bool:
        """Take note of an epoch's score, and say whether it was the last."""
        if score > self.best:
            self.best, self.waited = score, 0
            self.kept = {name: copy.deepcopy(module.state_dict()) for name, module in self.modules.items()}
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self) -> None:
        """Give the modules their best state."""
        for name, state in self.kept.items():
            self.modules[name].load_state_dict(state)


def train(
    step: Callable[[B], Number | Mapping[str, Number]],
    batches: Iterable[B],
    *,
    max_epochs: int,
    stop: EarlyStopping | None = None,
    checkpoint: Checkpoint | None = None,
    what: str = "training",
    start_counts: bool = False,
) -> History:
    """Call `step` on every batch of every epoch; keep the mean of what it returns.

    Parameters
    ----------
    step : computes losses, descends once or more, returns a loss or several by name (tensors need not be on the CPU)
    batches : walked through once per epoch; shuffles itself
    max_epochs : at most this many
    stop : looks at held-out annotations after each epoch, and gives back the best state at the end
    checkpoint : where to go on if this process is killed; one of another training is refused
    what : the name under which progress is reported
    start_counts : the state before the first epoch may be the best as well

    Returns
    -------
    One dict per epoch: the mean of each loss over the batches, and "heldout" where there is a stop rule.
    """
    progress = checkpoint.resume(stop) if checkpoint else None
    history: History = progress.history if progress else []
    over = progress.over if progress else False
    if start_counts and stop is not None and not history:
        stop.is_over(float(stop.evaluate()))
    while not over and len(history) < max_epochs:
        history.append(_run_epoch(step, batches, len(history)))
        if stop is not None:
            history[-1]["heldout"] = float(stop.evaluate())
            refuse_infinite(history[-1], len(history))
            over = stop.is_over(history[-1]["heldout"])
        if checkpoint is not None:
            checkpoint.save_sometimes(history, stop, over=over or len(history) == max_epochs)
        report(len(history), max_epochs, what)
    if stop is not None:
        stop.restore()
    return history


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """One step of the optimizer down the gradient of the loss; returns the loss, still on its device."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach()


def _run_epoch(
    step: Callable[[Any], Number | Mapping[str, Number]], batches: Iterable[Any], epoch: int
) -> dict[str, float]:
    total: dict[str, Number] = {}
    n_batches = 0
    for batch in batches:
        found = step(batch)
        for name, value in found.items() if isinstance(found, Mapping) else (("loss", found),):
            total[name] = total.get(name, 0.0) + value  # on its device: float() would wait for a GPU at every step
        n_batches += 1
    means = {name: float(value) / n_batches for name, value in total.items()}
    refuse_infinite(means, epoch + 1)
    return means


def refuse_infinite(figures: Mapping[str, float], epoch: int) -> None:
    """Refuse to go on with a training that has run away."""
    for name, figure in figures.items():
        if not math.isfinite(figure):
            raise TrainingError(f"The {name} became {figure} in epoch {epoch}; lower learning_rate or standardise X.")
