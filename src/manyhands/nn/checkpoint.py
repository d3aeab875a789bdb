"""What a killed training needs to go on: one safetensors file, written whole or not at all.

Tensors are stored as tensors, everything else as JSON in the file's own header; nothing is ever unpickled. The file
says to which training it belongs, and another one refuses it.
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

SECONDS = 2.0  # between two writes; an epoch of a small network takes less than writing does
Tensors = dict[str, torch.Tensor]


class StopState(Protocol):
    """What a stop rule remembers."""

    best: float
    waited: int
    kept: dict[str, Tensors]


@dataclass(frozen=True)
class Progress:
    """How far a training had come."""

    history: list[dict[str, float]]
    over: bool


@dataclass
class Checkpoint:
    """A file in which a training is kept while it runs.

    Parameters
    ----------
    path : the file; its folder is made
    identity : what makes this training this one, as short texts by name: parameters, fingerprints of the data
    modules, optimizers : by name
    rng : the generator that shuffles; torch's own is kept too
    """

    path: Path
    identity: Mapping[str, str]
    modules: Mapping[str, nn.Module]
    optimizers: Mapping[str, torch.optim.Optimizer] = field(default_factory=dict)
    rng: np.random.Generator | None = None
    _written: float = field(default_factory=time.monotonic)

    def save_sometimes(self, history: list[dict[str, float]], stop: StopState | None, *, over: bool) -> None:
        """Write, unless that was done a moment ago and the training goes on."""
        if over or time.monotonic() - self._written >= SECONDS:
            self._save(history, stop, over)
            self._written = time.monotonic()

    def resume(self, stop: StopState | None) -> Progress | None:
        """Put everything back as it was and say how far that was; None where nothing was written yet."""
        if not self.path.exists():
            return None
        state, tensors = _read(self.path)
        self._refuse_other(state["identity"])
        for name, module in self.modules.items():
            module.load_state_dict(_under(f"module/{name}/", tensors))
        for name, optimizer in self.optimizers.items():
            _restore_optimizer(optimizer, state["optimizers"][name], _under(f"optimizer/{name}/", tensors))
        if self.rng is not None:
            self.rng.bit_generator.state = _with_arrays(state["rng"])
        _restore_torch(tensors)
        if stop is not None:
            stop.best, stop.waited = float(state["stop"]["best"]), state["stop"]["waited"]
            stop.kept = {name: _under(f"kept/{name}/", tensors) for name in state["stop"]["kept"]}
        return Progress(state["history"], state["over"])

    def _save(self, history: list[dict[str, float]], stop: StopState | None, over: bool) -> None:
        tensors = _torch_states()
        for name, module in self.modules.items():
            tensors |= _named(f"module/{name}/", module.state_dict())
        settings = {}
        for name, optimizer in self.optimizers.items():
            settings[name], found = _optimizer_state(optimizer)
            tensors |= _named(f"optimizer/{name}/", found)
        for name, kept in (stop.kept if stop else {}).items():
            tensors |= _named(f"kept/{name}/", kept)
        state = {
            "identity": dict(self.identity),
            "history": history,
            "over": over,
            "optimizers": settings,
            "rng": None if self.rng is None else _without_arrays(self.rng.bit_generator.state),
            "stop": None if stop is None else {"best": repr(stop.best), "waited": stop.waited, "kept": [*stop.kept]},
        }
        own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
        write_files(self.path.parent, {self.path.name: save(own, {"state": json.dumps(state)})}, force=True)

    def _refuse_other(self, identity: Mapping[str, str]) -> None:
        names = [*self.identity, *(name for name in identity if name not in self.identity)]
        differing = [name for name in names if identity.get(name) != self.identity.get(name)]
        if differing:
            raise TrainingError(
                f"The checkpoint in {self.path.parent} belongs to another training: {', '.join(differing)} differ. "
                f"Delete the folder to start afresh, or name another one."
            )


def _read(path: Path) -> tuple[dict[str, Any], Tensors]:
    """The state and the tensors; read into memory, since a mapped file that is cut off meanwhile ends the process."""
    content = path.read_bytes()
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return json.loads(header["__metadata__"]["state"]), tensors
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise TrainingError(f"{path} is not a checkpoint of manyhands ({error}); delete it to start afresh.") from None


def _optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], Tensors]:
    """An optimizer's settings and plain numbers, and its tensors by `parameter/name`."""
    found = optimizer.state_dict()
    entries = [(f"{i}/{name}", value) for i, state in found["state"].items() for name, value in state.items()]
    numbers = {key: value for key, value in entries if not isinstance(value, torch.Tensor)}
    return (
        {"groups": found["param_groups"], "numbers": numbers},
        {key: value for key, value in entries if isinstance(value, torch.Tensor)},
    )


def _restore_optimizer(optimizer: torch.optim.Optimizer, settings: dict[str, Any], tensors: Tensors) -> None:
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
    """The states of torch's global generators, on every device in use."""
    states = {"random/cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"random/cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _restore_torch(tensors: Tensors) -> None:
    for device, state in _under("random/", tensors).items():
        if device == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)


def _named(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _under(prefix: str, tensors: Tensors) -> Tensors:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _without_arrays(state: Any) -> Any:
    """A generator's state as JSON can hold it."""
    if isinstance(state, np.ndarray):
        return {"array": state.tolist(), "dtype": str(state.dtype)}
    return {key: _without_arrays(value) for key, value in state.items()} if isinstance(state, dict) else state


def _with_arrays(state: Any) -> Any:
    if isinstance(state, dict) and state.keys() == {"array", "dtype"}:
        return np.array(state["array"], state["dtype"])
    return {key: _with_arrays(value) for key, value in state.items()} if isinstance(state, dict) else state
