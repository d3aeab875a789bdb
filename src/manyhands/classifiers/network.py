"""What all network methods share: their parameters, and how a fit begins and ends.

A method implements `_learn_network(bench)`: it makes its modules, writes `step(batch)`, calls `context.train` and
returns what it learnt. torch is imported when a fit begins, not before.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier, FitResult, TrainingData
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.kernels import Array
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import ParameterError, TrainingError
from manyhands.features import Rows, fingerprint
from manyhands.heldout import hold_out
from manyhands.randomness import Seed, make_generator, torch_seeded
from manyhands.validation import Constraint, Device, Folder, Maybe, NameOr, Number, RandomState, Sizes, Switch

if TYPE_CHECKING:
    from torch import nn

_SOME_ROWS = 100  # of X, on which a trained network is tried

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


class NetworkMethod(BaseEstimator, ABC):
    """What a network method is, be it a classifier or a learner of representations: parameters, a bench, a module.

    Parameters
    ----------
    backbone : "mlp", "convnet", or a function (n_features or shape, n_classes) -> torch Module that gives logits
    hidden, dropout, batch_norm : sizes of the hidden layers, share of their outputs dropped, normalise them or not
    learning_rate, batch_size : of Adam; items in a batch
    max_epochs : at most this many passes over the items
    patience : stop after so many epochs without a better likelihood of held-out labels; None trains to the end
    validation : share of the labels held out for that; 0, or fewer than ten labels, holds none out
    device : "cpu", "cuda", "auto" or another one of torch
    checkpoint : a folder from which a killed fit goes on with the same result. Fits that differ in anything keep apart
        in it; a finished one takes its own files away. It needs a random_state
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
    def _learn_network(self, context: TrainingContext) -> FitResult:
        """Train on the bench, and say what was learnt."""

    def _learn(self, data: TrainingData) -> FitResult:
        from manyhands.nn.inference import choose_device, suited_threads

        device = choose_device(self.device)
        if self.checkpoint is not None and self.random_state is None:
            raise ParameterError(
                f"A {type(self).__name__} with a checkpoint needs a random_state, or there is no same result."
            )
        if self.batch_norm and min(self.batch_size, _n_taught(data)) < 2:
            raise ParameterError("batch_norm compares the items of a batch: it needs two items and a batch_size of 2.")
        identity = self._identity(data) if self.checkpoint is not None else {}
        folder = None if self.checkpoint is None else Path(self.checkpoint) / short_hash(repr(identity).encode())
        rng = make_generator(self.random_state)
        training, heldout = self._hold_out(data, self.validation if self._compares() else 0.0, rng)
        with torch_seeded(rng), suited_threads(self._work(data.rows.shape)):
            learned = self._learn_network(TrainingContext(self, data, training, heldout, rng, device, identity, folder))
        _refuse_infinite(learned.module.eval(), data.rows)
        _clear(folder)
        return learned

    def _compares(self) -> bool:
        """Whether held-out labels are to decide anything."""
        return self.patience is not None

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Labels to learn from, and about this share of them for the stop rule, or None."""
        return hold_out(data.annotations, share, rng)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """An untrained `module_`, also for `load_model`; a method whose module is more than a backbone overrides it."""
        from manyhands.nn.backbones import build

        hidden, dropout, batch_norm = self.hidden, self.dropout, self.batch_norm
        return build(self.backbone, row_shape, n_classes, hidden=hidden, dropout=dropout, batch_norm=batch_norm)

    def _work(self, row_shape: tuple[int, ...]) -> int | None:
        """Multiplications in a step of a perceptron; None for other networks."""
        if not (isinstance(self.backbone, str) and self.backbone == "mlp"):
            return None
        return self.batch_size * sum(a * b for a, b in pairwise((math.prod(row_shape), *self.hidden, 1)))

    def _identity(self, data: TrainingData) -> dict[str, str]:
        """What makes this fit this one."""
        parameters = {name: _said(value) for name, value in self.get_params().items() if name != "checkpoint"}
        if isinstance(self.random_state, np.random.Generator):
            parameters["random_state"] = repr(self.random_state.bit_generator.state)
        votes = data.annotations
        codes = np.concatenate(
            [votes.item, votes.worker, votes.label, [votes.n_items, votes.n_workers, votes.n_classes]]
        )
        return {
            "method": type(self).__name__,
            **parameters,
            "X": fingerprint(data.rows),
            "annotations": short_hash(codes.data),
            "gold": _hash_of(data.gold),
            "worker features": _hash_of(data.worker_features),
        }


class NetworkClassifier(NetworkMethod, CrowdClassifier):
    """A crowd classifier that is a network; its parameters are those of `NetworkMethod`."""

    def _proba(self, module: Any, rows: Rows) -> Array:
        from manyhands.nn.inference import probabilities

        return probabilities(module, rows)


def _n_taught(data: TrainingData) -> int:
    """How many items have a label, or are gold."""
    taught = data.annotations.n_labels > 0
    return int(np.count_nonzero(taught if data.gold is None else taught | (data.gold >= 0)))


def short_hash(content: Any) -> str:
    """A name of 32 letters that other bytes do not have."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _hash_of(array: npt.NDArray[Any] | None) -> str:
    return short_hash(b"" if array is None else np.ascontiguousarray(array).data)


def _said(value: Any) -> str:
    """A parameter as text that is the same in every process: a function's place in memory is not."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _refuse_infinite(module: nn.Module, rows: Rows) -> None:
    """Refuse a network that ran away in its very last step."""
    from manyhands.nn.inference import outputs

    some = np.unique(np.linspace(0, len(rows) - 1, _SOME_ROWS).astype(np.intp))
    if not bool(outputs(module, rows, some).isfinite().all()):
        raise TrainingError("The network's answers are no longer finite; lower learning_rate or standardise X.")


def _clear(folder: Path | None) -> None:
    """A finished fit needs no checkpoint; what others keep beside it stays."""
    if folder is None:
        return
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    with suppress(OSError):  # it holds something else
        folder.rmdir()
