"""What all network methods share: constraints of their parameters, the training context, and the end of a fit."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.network_options import NetworkOptions
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData
from manyhands.exceptions import ParameterError, TrainingError
from manyhands.features import Rows, fingerprint
from manyhands.heldout import hold_out
from manyhands.randomness import make_generator, torch_seeded
from manyhands.validation import Boolean, Constraint, Device, Folder, LayerSizes, NameOr, NoneOr, Number, RandomState

if TYPE_CHECKING:
    from torch import nn

_CHECKED_ROWS = 100  # rows of X on which a trained network is checked for finite outputs

# What the parameters of every network method may be.
NETWORK_CONSTRAINTS: dict[str, Constraint] = {
    "backbone": NameOr(("mlp", "convnet"), "__call__", "a function (n_features or shape, n_classes) -> torch Module"),
    "hidden": LayerSizes(),
    "dropout": Number(least=0, most=0.99),
    "batch_norm": Boolean(),
    "learning_rate": Number(above=0),
    "weight_decay": Number(least=0),
    "batch_size": Number(whole=True, least=1),
    "max_epochs": Number(whole=True, least=1),
    "patience": NoneOr(Number(whole=True, least=1)),
    "validation": Number(least=0, most=0.5),
    "device": Device(),
    "checkpoint": Folder(),
    "random_state": RandomState(),
}


class NetworkMethod(Protocol):
    """The hooks of a network method that `train_network` calls."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters by name."""

    def _learn(self, context: TrainingContext) -> FitResult: ...

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module: ...

    def _uses_heldout(self) -> bool: ...

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]: ...


def train_network(method: NetworkMethod, data: TrainingData) -> FitResult:
    """Build the training context of a network method, let it learn, and check what it learned.

    Parameters
    ----------
    method : NetworkMethod
        The estimator.
    data : TrainingData
        Its validated input.

    Returns
    -------
    FitResult
        What `method._learn(context)` returned.
    """
    from manyhands.nn.inference import choose_device, suited_threads

    options = NetworkOptions.of(method)
    device = choose_device(options.device)
    _check_options(method, options, data)
    identity = _identity(method, options, data) if options.checkpoint is not None else {}
    folder = None if options.checkpoint is None else Path(options.checkpoint) / short_hash(repr(identity).encode())
    rng = make_generator(options.random_state)
    training, heldout = method._hold_out(data, options.validation if method._uses_heldout() else 0.0, rng)
    new_network = network_maker(method, data)
    context = TrainingContext(data, training, heldout, rng, options, new_network, device, identity, folder)
    with torch_seeded(rng), suited_threads(_multiplications(options, data.rows.shape)):
        result = method._learn(context)
    _refuse_infinite(result.module.eval(), data.rows)
    _clear(folder)
    return result


def network_maker(method: NetworkMethod, data: TrainingData) -> Any:
    """Return a function () -> new, untrained network of this method for this data.

    Parameters
    ----------
    method : NetworkMethod
        The estimator, which knows its architecture.
    data : TrainingData
        Determines the sizes of the first and the last layer.

    Returns
    -------
    callable () -> torch.nn.Module
    """
    votes = data.annotations
    return partial(method._new_module, data.rows.shape, votes.n_classes, votes.n_workers)


def context_for(method: NetworkMethod, context: TrainingContext, stage: str = "") -> TrainingContext:
    """Return the context in which another network method, nested in the one being fitted, learns.

    Parameters
    ----------
    method : NetworkMethod
        The nested estimator, with its own options.
    context : TrainingContext
        The context of the outer method.
    stage : str, default=""
        Appended to the names of the trainings of the nested method.

    Returns
    -------
    TrainingContext
        The same data and generator, with the nested method's options and network.
    """
    return replace(
        context,
        options=NetworkOptions.of(method),
        new_network=network_maker(method, context.data),
        stage=context.stage + stage,
    )


def default_hold_out(
    data: TrainingData, share: float, rng: np.random.Generator
) -> tuple[Annotations, Annotations | None]:
    """Split the labels into those to learn from and a random share of them that is held out.

    Parameters
    ----------
    data : TrainingData
        All labels.
    share : float
        Approximate share of the labels to hold out.
    rng : numpy.random.Generator
        Draws the split.

    Returns
    -------
    training : Annotations
    heldout : Annotations or None
        None where nothing is held out.
    """
    return hold_out(data.annotations, share, rng)


def new_backbone(options: NetworkOptions, row_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Return a new network with the backbone, hidden layers, dropout and batch normalisation of these options.

    Parameters
    ----------
    options : NetworkOptions
        Architecture.
    row_shape : tuple of int
        Shape of one row of X.
    n_outputs : int
        Number of outputs.

    Returns
    -------
    torch.nn.Module
    """
    from manyhands.nn.backbones import build

    return build(
        options.backbone,
        row_shape,
        n_outputs,
        hidden=options.hidden,
        dropout=options.dropout,
        batch_norm=options.batch_norm,
    )


def short_hash(content: Any) -> str:
    """Return a BLAKE2 hash of these bytes as 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _check_options(method: NetworkMethod, options: NetworkOptions, data: TrainingData) -> None:
    if options.checkpoint is not None and options.random_state is None:
        raise ParameterError(
            f"A {type(method).__name__} with a checkpoint needs a random_state: without it, a resumed fit would "
            f"give another result."
        )
    if options.batch_norm and min(options.batch_size, data.n_training_items) < 2:
        raise ParameterError("batch_norm needs at least two items in a batch: two labelled items and batch_size >= 2.")


def _multiplications(options: NetworkOptions, row_shape: tuple[int, ...]) -> int | None:
    """Multiplications in a step of a multi-layer perceptron; None for other networks."""
    if not (isinstance(options.backbone, str) and options.backbone == "mlp"):
        return None
    return options.batch_size * sum(a * b for a, b in pairwise((math.prod(row_shape), *options.hidden, 1)))


def _identity(method: NetworkMethod, options: NetworkOptions, data: TrainingData) -> dict[str, str]:
    """Data and parameters of a fit as text; fits that differ in anything use different checkpoints."""
    parameters = {name: _as_text(value) for name, value in method.get_params().items() if name != "checkpoint"}
    if isinstance(options.random_state, np.random.Generator):
        parameters["random_state"] = repr(options.random_state.bit_generator.state)
    votes = data.annotations
    codes = np.concatenate([votes.item, votes.worker, votes.label, [votes.n_items, votes.n_workers, votes.n_classes]])
    return {
        "method": type(method).__name__,
        **parameters,
        "X": fingerprint(data.rows),
        "annotations": short_hash(codes.data),
        "gold": _hash_of(data.gold),
        "worker features": _hash_of(data.worker_features),
    }


def _hash_of(array: npt.NDArray[Any] | None) -> str:
    return short_hash(b"" if array is None else np.ascontiguousarray(array).data)


def _as_text(value: Any) -> str:
    """A parameter as text that is the same in every process; a function's address in memory is not."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _refuse_infinite(module: nn.Module, rows: Rows) -> None:
    """Refuse a network whose last step led to outputs that are not finite."""
    from manyhands.nn.inference import outputs

    some = np.unique(np.linspace(0, len(rows) - 1, _CHECKED_ROWS).astype(np.intp))
    if not bool(outputs(module, rows, some).isfinite().all()):
        raise TrainingError("The network's outputs are no longer finite; lower learning_rate or standardise X.")


def _clear(folder: Path | None) -> None:
    """Remove the checkpoints of a finished fit; other files in the folder stay."""
    if folder is None:
        return
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    with suppress(OSError):  # the folder holds something else
        folder.rmdir()
