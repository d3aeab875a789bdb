"""The training loop: epochs of mini-batches, early stopping on held-out labels, checkpoints.

Every method of this package that trains by gradient descent calls `train` with a step of its own, or has a loop over
`Epochs` of its own, where a round is more than mini-batches (`iced`, `difficulty_network`). The loop is:

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
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from manyhands._core.progress import report
from manyhands._core.system import read_tensors
from manyhands._core.writing import write_files
from manyhands.exceptions import TrainingError

B = TypeVar("B")
Tensors = dict[str, torch.Tensor]
Number = float | torch.Tensor
History = list[dict[str, float]]


@dataclass
class EarlyStopping:
    """Early stopping on the held-out log-likelihood, with a return to the best weights.

    After each epoch the held-out annotations are scored; they are labels of the crowd that no training step uses, and
    the ground truth plays no part. Training stops once the score has not exceeded its best value for `patience` epochs
    in a row.
    """

    # returns the mean log-likelihood of the held-out annotations under the current weights; higher is better
    evaluate: Callable[[], float]
    modules: Mapping[str, nn.Module]  # modules whose weights of the best epoch are kept, by name
    patience: int  # epochs without improvement after which training stops
    best: float = -math.inf  # best score so far
    waited: int = 0  # epochs since the best score
    # ``state_dict`` of each module at the best score
    best_state: dict[str, Tensors] = field(default_factory=dict)

    def should_stop(self, score: float) -> bool:
        """Record an epoch's score, and keep a copy of the weights if it is the best."""
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


@dataclass
class Epochs:
    """The epochs of a training: a loop over them that resumes, stops early and writes checkpoints.

        for number in epochs:
            epochs.record(losses of one epoch)

    *Early stopping*: with `stop`, held-out annotations are scored after each epoch. Training ends after `patience`
    epochs without improvement or after `max_epochs`, and the weights of the best epoch are restored.

    *Resume from a checkpoint*: with `checkpoint`, the state of the training is written after an epoch, at most every 2
    seconds, and always at the end. A loop with the same identity then continues after the last stored epoch, and its
    results are the same to the last bit as without the interruption; after the end, no epoch is run again.

    Parameters
    ----------
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
    history : list of dict of str to float
        One entry per epoch: its losses, and with early stopping the score as "heldout".

    Raises
    ------
    TrainingError
        Where a score is NaN or infinite, or the checkpoint belongs to another training.

    References
    ----------
    L. Prechelt (1998), Early stopping - but when?, in Neural Networks: Tricks of the Trade, Springer.
    """

    max_epochs: int
    stop: EarlyStopping | None = None
    until: Callable[[History], bool] | None = None
    checkpoint: Checkpoint | None = None
    what: str = "training"
    score_initial_weights: bool = False
    history: History = field(default_factory=list)

    def record(self, losses: dict[str, float]) -> None:
        """Add the mean losses of an epoch to the history; the body of the loop calls this once."""
        self.history.append(losses)

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each epoch that is to be run, from 0; what follows an epoch is done between them."""
        stop, checkpoint = self.stop, self.checkpoint
        progress = checkpoint.resume(stop) if checkpoint else None
        self.history = history = progress.history if progress else []
        finished = progress.finished if progress else False
        if self.score_initial_weights and stop is not None and not history:
            stop.should_stop(float(stop.evaluate()))
        while not finished and len(history) < self.max_epochs:
            yield len(history)
            if stop is not None:
                history[-1]["heldout"] = float(stop.evaluate())
                check_finite(history[-1], len(history))
                finished = stop.should_stop(history[-1]["heldout"])
            finished = finished or (self.until is not None and self.until(history))
            if checkpoint is not None:
                checkpoint.save_if_due(history, stop, finished=finished or len(history) == self.max_epochs)
            report(len(history), self.max_epochs, self.what)
        if stop is not None:
            stop.restore()


def train(step: Callable[[B], Number | Mapping[str, Number]], batches: Iterable[B], epochs: Epochs) -> History:
    """Train: call a step on every mini-batch of every epoch.

    An *epoch* is one iteration over `batches`, which shuffle themselves. The step computes its losses on a mini-batch
    and updates the weights (see `descend`); the loop knows neither model nor optimizer. A method that does more in an
    epoch has a loop over `Epochs` of its own.

    Parameters
    ----------
    step : callable
        Takes a mini-batch, updates the weights once or more, and returns its loss, or several losses by name. Tensors
        may stay on their device.
    batches : iterable
        Mini-batches of an epoch; iterated over once per epoch.
    epochs : Epochs
        How many epochs, early stopping and checkpoints.

    Returns
    -------
    list of dict of str to float
        One entry per epoch: the mean of each loss over the mini-batches (named "loss" where the step returns a single
        one), and with early stopping the score as "heldout".

    Raises
    ------
    TrainingError
        Where a loss or a score is NaN or infinite, or the checkpoint belongs to another training.
    """
    for number in epochs:
        epochs.record(run_epoch(step, batches, number))
    return epochs.history


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """One gradient step: zero the gradients, backpropagate, update the weights.

    Shapes: loss ().
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.detach()


def run_epoch(
    step: Callable[[Any], Number | Mapping[str, Number]], batches: Iterable[Any], epoch: int
) -> dict[str, float]:
    """Run a step on every mini-batch of one epoch, and return the mean of each loss."""
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
    """End a training that has diverged."""
    for name, figure in figures.items():
        if not math.isfinite(figure):
            raise TrainingError(f"The {name} became {figure} in epoch {epoch}; lower learning_rate or standardise X.")


# ----------------------------------------------------------------------------------------------------
# Checkpoints: the file from which an interrupted training resumes, to the same bits as without the interruption.
#
# A checkpoint is one safetensors file, replaced atomically. It contains the state of modules and optimizers, of NumPy's
# and torch's random generators and of early stopping, and the history so far. Tensors are stored as tensors, everything
# else as JSON in the file's header; nothing is unpickled. The file also contains the identity of its training
# (parameters and fingerprints of the data), and a training with another identity refuses it.

SECONDS = 2.0  # minimum time between two writes: writing takes longer than an epoch of a small network


@dataclass(frozen=True)
class Progress:
    """How far a training was when its checkpoint was written."""

    history: list[dict[str, float]]  # one entry for each finished epoch
    finished: bool  # whether the training had ended, by early stopping or at the last epoch


@dataclass
class Checkpoint:
    """Checkpoint file of one training."""

    path: Path  # the file; its folder is created
    # what distinguishes this training from others: parameters and fingerprints of the data, by name
    identity: Mapping[str, str]
    modules: Mapping[str, nn.Module]  # modules whose state is stored, by name
    # optimizers whose state is stored, by name
    optimizers: Mapping[str, torch.optim.Optimizer] = field(default_factory=dict)
    rng: np.random.Generator | None = None  # the generator that shuffles
    _written: float = field(default_factory=time.monotonic)

    def save_if_due(self, history: list[dict[str, float]], stop: EarlyStopping | None, *, finished: bool) -> None:
        """Write the checkpoint, unless the last one is less than 2 seconds old and training continues."""
        if finished or time.monotonic() - self._written >= SECONDS:
            self._save(history, stop, finished)
            self._written = time.monotonic()

    def resume(self, stop: EarlyStopping | None) -> Progress | None:
        """Restore modules, optimizers, generators and early stopping from the file."""
        if not self.path.exists():
            return None
        state, tensors = _read(self.path)
        self._check_identity(state["identity"])
        for name, module in self.modules.items():
            module.load_state_dict(_under(f"module/{name}/", tensors))
        for name, optimizer in self.optimizers.items():
            _restore_optimizer(optimizer, state["optimizers"][name], _under(f"optimizer/{name}/", tensors))
        if self.rng is not None:
            self.rng.bit_generator.state = _with_arrays(state["rng"])
        _restore_torch(tensors)
        if stop is not None:
            stop.best, stop.waited = float(state["stop"]["best"]), state["stop"]["waited"]
            stop.best_state = {name: _under(f"kept/{name}/", tensors) for name in state["stop"]["kept"]}
        return Progress(state["history"], finished=state["over"])

    def _save(self, history: list[dict[str, float]], stop: EarlyStopping | None, finished: bool) -> None:
        """Write the file."""
        tensors = _torch_states()
        for name, module in self.modules.items():
            tensors |= _named(f"module/{name}/", module.state_dict())
        settings = {}
        for name, optimizer in self.optimizers.items():
            settings[name], state_tensors = _optimizer_state(optimizer)
            tensors |= _named(f"optimizer/{name}/", state_tensors)
        for name, best in (stop.best_state if stop else {}).items():
            tensors |= _named(f"kept/{name}/", best)
        state = {
            "identity": dict(self.identity),
            "history": history,
            "over": finished,
            "optimizers": settings,
            "rng": None if self.rng is None else _without_arrays(self.rng.bit_generator.state),
            "stop": None
            if stop is None
            else {"best": repr(stop.best), "waited": stop.waited, "kept": [*stop.best_state]},
        }
        own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
        write_files(self.path.parent, {self.path.name: save(own, {"state": json.dumps(state)})}, force=True)

    def _check_identity(self, identity: Mapping[str, str]) -> None:
        """Refuse a file whose identity is not that of this training, naming what differs."""
        names = [*self.identity, *(name for name in identity if name not in self.identity)]
        differing = [name for name in names if identity.get(name) != self.identity.get(name)]
        if differing:
            raise TrainingError(
                f"The checkpoint in {self.path.parent} belongs to another training: {', '.join(differing)} differ. "
                f"Delete the folder to start again, or name another one."
            )


def _read(path: Path) -> tuple[dict[str, Any], Tensors]:
    """State and tensors of a file; read into memory, since the process would crash if a mapped file were truncated."""
    try:
        content = read_tensors(path)
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return json.loads(header["__metadata__"]["state"]), tensors
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise TrainingError(f"{path} is not a checkpoint of manyhands ({error}); delete it to start again.") from None


def _optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], Tensors]:
    """An optimizer's settings and numbers as JSON can hold them, and its tensors by ``parameter/name``."""
    state_dict = optimizer.state_dict()
    entries = [(f"{i}/{name}", value) for i, state in state_dict["state"].items() for name, value in state.items()]
    numbers = {key: value for key, value in entries if not isinstance(value, torch.Tensor)}
    return (
        {"groups": state_dict["param_groups"], "numbers": numbers},
        {key: value for key, value in entries if isinstance(value, torch.Tensor)},
    )


def _restore_optimizer(optimizer: torch.optim.Optimizer, settings: dict[str, Any], tensors: Tensors) -> None:
    """Inverse of `_optimizer_state`; tuples, which JSON turned into lists, become tuples again."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in (settings["numbers"] | tensors).items():
        index, _, name = key.partition("/")
        state.setdefault(int(index), {})[name] = value
    groups = [
        {name: tuple(value) if isinstance(own.get(name), tuple) else value for name, value in group.items()}
        for own, group in zip(optimizer.param_groups, settings["groups"])
    ]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _torch_states() -> Tensors:
    """States of torch's global random generators, on the CPU and on every GPU."""
    states = {"random/cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"random/cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _restore_torch(tensors: Tensors) -> None:
    """Inverse of `_torch_states`."""
    for device, state in _under("random/", tensors).items():
        if device == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)


def _named(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    """The tensors with a prefix before their names."""
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _under(prefix: str, tensors: Tensors) -> Tensors:
    """The tensors whose names have the prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _without_arrays(state: Any) -> Any:
    """State of a NumPy generator as JSON can hold it: arrays as lists with their dtype."""
    if isinstance(state, np.ndarray):
        return {"array": state.tolist(), "dtype": str(state.dtype)}
    return {key: _without_arrays(value) for key, value in state.items()} if isinstance(state, dict) else state


def _with_arrays(state: Any) -> Any:
    """Inverse of `_without_arrays`."""
    if isinstance(state, dict) and state.keys() == {"array", "dtype"}:
        return np.array(state["array"], state["dtype"])
    return {key: _with_arrays(value) for key, value in state.items()} if isinstance(state, dict) else state
