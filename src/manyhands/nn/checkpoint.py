"""Checkpoints: the file from which an interrupted training resumes, to the same bits as without the interruption.

A checkpoint is one safetensors file, replaced atomically. It contains the state of modules and optimizers, of NumPy's
and torch's random generators and of early stopping, and the history so far. Tensors are stored as tensors, everything
else as JSON in the file's header; nothing is unpickled. The file also contains the identity of its training (parameters
and fingerprints of the data), and a training with another identity refuses it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from manyhands.exceptions import TrainingError
from manyhands.writing import write_files

SECONDS = 2.0  # minimum time between two writes: writing takes longer than an epoch of a small network
Tensors = dict[str, torch.Tensor]


class StoppingState(Protocol):
    """The state of early stopping that a checkpoint stores (see `EarlyStopping`).

    Attributes
    ----------
    best : float
        Best score so far.
    waited : int
        Epochs since then.
    best_state : dict of str to dict of str to tensor
        ``state_dict`` of each module at the best score, by module name.
    """

    best: float
    waited: int
    best_state: dict[str, Tensors]


@dataclass(frozen=True)
class Progress:
    """How far a training was when its checkpoint was written.

    Attributes
    ----------
    history : list of dict of str to float
        One entry for each finished epoch.
    finished : bool
        Whether the training had ended, by early stopping or at the last epoch.
    """

    history: list[dict[str, float]]
    finished: bool


@dataclass
class Checkpoint:
    """Checkpoint file of one training.

    Parameters
    ----------
    path : Path
        The file; its folder is created.
    identity : mapping of str to str
        What distinguishes this training from others: parameters and fingerprints of the data, by name.
    modules : mapping of str to torch.nn.Module
        Modules whose state is stored, by name.
    optimizers : mapping of str to torch.optim.Optimizer, default={}
        Optimizers whose state is stored, by name.
    rng : numpy Generator or None, default=None
        The generator that shuffles. The states of torch's global generators are always stored.
    """

    path: Path
    identity: Mapping[str, str]
    modules: Mapping[str, nn.Module]
    optimizers: Mapping[str, torch.optim.Optimizer] = field(default_factory=dict)
    rng: np.random.Generator | None = None
    _written: float = field(default_factory=time.monotonic)

    def save_if_due(self, history: list[dict[str, float]], stop: StoppingState | None, *, finished: bool) -> None:
        """Write the checkpoint, unless the last one is less than 2 seconds old and training continues.

        Parameters
        ----------
        history : list of dict of str to float
            One entry for each finished epoch.
        stop : StoppingState or None
            State of early stopping, if there is any.
        finished : bool
            Whether the training has ended; the checkpoint is then written in any case.
        """
        if finished or time.monotonic() - self._written >= SECONDS:
            self._save(history, stop, finished)
            self._written = time.monotonic()

    def resume(self, stop: StoppingState | None) -> Progress | None:
        """Restore modules, optimizers, generators and early stopping from the file.

        Parameters
        ----------
        stop : StoppingState or None
            Early stopping whose state is restored in place, if there is any.

        Returns
        -------
        Progress or None
            The history so far; None where there is no checkpoint yet.

        Raises
        ------
        TrainingError
            Where the file is not a checkpoint, or belongs to a training with another identity.
        """
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

    def _save(self, history: list[dict[str, float]], stop: StoppingState | None, finished: bool) -> None:
        """Write the file."""
        tensors = _torch_states()
        for name, module in self.modules.items():
            tensors |= _named(f"module/{name}/", module.state_dict())
        settings = {}
        for name, optimizer in self.optimizers.items():
            settings[name], found = _optimizer_state(optimizer)
            tensors |= _named(f"optimizer/{name}/", found)
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
    content = path.read_bytes()
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return json.loads(header["__metadata__"]["state"]), tensors
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise TrainingError(f"{path} is not a checkpoint of manyhands ({error}); delete it to start again.") from None


def _optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], Tensors]:
    """An optimizer's settings and numbers as JSON can hold them, and its tensors by ``parameter/name``."""
    found = optimizer.state_dict()
    entries = [(f"{i}/{name}", value) for i, state in found["state"].items() for name, value in state.items()]
    numbers = {key: value for key, value in entries if not isinstance(value, torch.Tensor)}
    return (
        {"groups": found["param_groups"], "numbers": numbers},
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
