"""Networks from features to logits, and their outputs over all rows of X.

`build` makes a multilayer perceptron, a small convolutional network, or the caller's own. `outputs` and `probabilities`
apply a network to rows of X on its device; `choose_device` and `suited_threads` say on which device and threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from manyhands._core.system import check_memory
from manyhands.exceptions import LimitError, ParameterError
from manyhands.features import Index, Rows

Backbone = str | Callable[[Any, int], nn.Module]
_MAX_WEIGHTS = 2**32  # 64 GB while they are trained; above it the count alone is reason enough to refuse
_BYTES_PER_WEIGHT = 16  # the weight, its gradient, and Adam's two moving averages, 4 bytes each
_LARGE = 46  # pixels: four layers without padding leave one pixel of them


def build(
    backbone: Backbone,
    shape: tuple[int, ...],
    n_classes: int,
    *,
    hidden: Sequence[int] = (128,),
    dropout: float = 0.5,
    batch_norm: bool = False,
    activation: type[nn.Module] = nn.ReLU,
) -> nn.Module:
    """Build a network from features to logits.

    Parameters
    ----------
    backbone : {"mlp", "convnet"} or callable
        Name of a network, or a function ``f(size, n_classes)`` that returns a new ``torch.nn.Module``; ``size`` is the
        number of features, or the shape of a row that has several dimensions. The module is tried on two rows of
        zeros and must return one logit per row and class.
    shape : tuple of int
        Shape of one row of X.
    n_classes : int
        Number of outputs.
    hidden : sequence of int, default=(128,)
        Sizes of the fully connected hidden layers.
    dropout : float, default=0.5
        Dropout probability behind each hidden layer.
    batch_norm : bool, default=False
        Batch normalisation in front of each activation of ``"mlp"``.
    activation : type of torch.nn.Module, default=torch.nn.ReLU
        Activation of ``"mlp"``.

    Returns
    -------
    torch.nn.Module
        Maps (n_rows, *shape) to (n_rows, n_classes) logits.

    Raises
    ------
    ParameterError
        Where `backbone` is a module instead of a function, or the function returns something unsuitable.
    LimitError
        Where the weights would not fit into memory.
    """
    if isinstance(backbone, nn.Module):
        raise ParameterError(
            "The parameter `backbone` is a module; give a function that makes one, since every fit needs a new one: "
            "lambda n_features, n_classes: ..."
        )
    if callable(backbone):
        return _checked(backbone(shape[0] if len(shape) == 1 else shape, n_classes), shape, n_classes)
    if backbone == "convnet":
        return convnet(shape, n_classes, hidden=hidden, dropout=dropout)
    size = int(torch.Size(shape).numel())
    return mlp((size, *hidden, n_classes), dropout=dropout, batch_norm=batch_norm, activation=activation)


def mlp(
    sizes: Sequence[int], dropout: float = 0.5, batch_norm: bool = False, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Multilayer perceptron: linear layers, with activation and dropout behind all but the last.

    Examples
    --------
    >>> mlp((4, 3, 2), dropout=0)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=3, bias=True)
      (2): ReLU()
      (3): Linear(in_features=3, out_features=2, bias=True)
    )
    """
    check_weights(sizes)
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(sizes[:-1]):
        layers += [nn.Linear(before, after)]
        layers += [nn.BatchNorm1d(after)] if batch_norm else []
        layers += [activation()]
        layers += [nn.Dropout(dropout)] if dropout else []
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def check_weights(sizes: Sequence[int]) -> None:
    """Check, before any layer is made, that a perceptron of these sizes can be trained in memory."""
    wide = [int(size) for size in sizes]  # NumPy's integers would overflow
    count = sum((before + 1) * after for before, after in pairwise(wide))
    remedy = "Make the sizes of its layers smaller."
    if count > _MAX_WEIGHTS:
        raise LimitError(f"A network of {_number(count)} weights is too large; at most {_MAX_WEIGHTS:,} fit. {remedy}")
    check_memory(_BYTES_PER_WEIGHT * count, f"The {count:,} weights of the network", remedy)


def _number(count: int) -> str:
    """The count in digits, or its order of magnitude where these would fill a line."""
    return f"{count:,}" if count < 10**30 else f"more than 10^{int((count.bit_length() - 1) * math.log10(2))}"


def convnet(
    shape: tuple[int, ...],
    n_classes: int,
    *,
    hidden: Sequence[int] = (128,),
    dropout: float = 0.5,
    normalised_layer: int = 4,
) -> nn.Sequential:
    """Small convolutional network for images.

    Four 3x3 convolutions with 32, 32, 64 and 64 filters and ReLU, each followed by 2x2 max pooling; batch normalisation
    between the fourth convolution and its ReLU; then a perceptron. Images of at least 46 x 46 pixels are convolved
    without padding; smaller ones with a padding of one, and pooling is left out once a side has a single pixel.

    Notes
    -----
    It is the network of "Data Difficulty Specified Crowdsourcing" (`manyhands.classifiers.difficulty_em`, Appendix
    A.2). Batch normalisation is between the fourth convolution and its ReLU; the paper prints it behind the fourth
    pooling, the authors' code has it behind the first convolution (``normalised_layer=1``). The numbers of filters are
    not printed.
    """
    if len(shape) != 3:
        raise ParameterError(
            f"The backbone 'convnet' needs images of shape (channels, height, width); the rows of X have shape {shape}."
        )
    layers: list[nn.Module] = []
    side: tuple[int, ...] = shape[1:]
    border = 0 if min(side) >= _LARGE else 1
    for number, (before, after) in enumerate(pairwise((shape[0], 32, 32, 64, 64)), 1):
        layers += [nn.Conv2d(before, after, 3, padding=border)]
        layers += [nn.BatchNorm2d(after)] if number == normalised_layer else []
        layers += [nn.ReLU()]
        side = tuple(length - 2 + 2 * border for length in side)
        if min(side) > 1:
            layers += [nn.MaxPool2d(2)]
            side = tuple(length // 2 for length in side)
    return nn.Sequential(*layers, mlp((64 * side[0] * side[1], *hidden, n_classes), dropout))


class Ensemble(nn.Module):
    """Ensemble of networks: the mean of their class probabilities.

    Parameters
    ----------
    networks : sequence of torch.nn.Module
        Members, each from features to (n_rows, n_classes) logits.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the ensemble: log sum_m softmax(logits_m), of shape (n_rows, n_classes)."""
        each = torch.stack([network(x).log_softmax(1) for network in self.networks])
        return torch.logsumexp(each, 0)


class UnitNorm(nn.Module):
    """Divide each row by its Euclidean norm, or by 1e-6 if that is larger: the gradient stays finite at 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n_rows, n) rows to (n_rows, n) rows of length 1."""
        return F.normalize(x, eps=1e-6)


def normalised(network: nn.Module) -> nn.Sequential:
    """The network with outputs of Euclidean norm 1, as embeddings that are compared by their angles need."""
    return nn.Sequential(network, UnitNorm())


def _checked(module: Any, shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """The caller's module, after it returned logits of the right shape for two rows of zeros."""
    if not isinstance(module, nn.Module):
        raise ParameterError(
            f"The function given as 'backbone' must make a torch Module; it made {type(module).__name__}."
        )
    training = module.training
    try:
        with torch.no_grad():
            output = module.eval()(torch.zeros(2, *shape))
    except Exception as error:  # the caller's own code may raise anything
        raise ParameterError(f"The module given by 'backbone' cannot take rows of shape {shape}: {error}") from error
    kind = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if kind != (2, n_classes):
        raise ParameterError(
            f"The module given by 'backbone' must give {n_classes} logits per row as a tensor; for 2 rows: {kind}."
        )
    return module.train(training)


# ----------------------------------------------------------------------------------------------------
# Networks applied to rows of X: tensors of rows, outputs and probabilities; the device and threads for it.

# Multiplications in a step from which several threads are faster than one: about a millisecond of one core, well above
# the time that it takes to wake the others.
_WORTH_THREADS = 1 << 26
_BLOCK = 1024  # rows that a network reads at a time in evaluation mode: bounds the memory of images


def as_tensor(rows: Rows, index: Index, device: torch.device | str) -> torch.Tensor:
    """Rows of X as a tensor on a device.

    Shapes: index (n,).
    """
    return torch.from_numpy(rows.take(index)).to(device)


def probabilities(network: nn.Module, rows: Rows, index: Index | None = None) -> npt.NDArray[np.float64]:
    """Class probabilities: the softmax of a network's logits.

    Shapes: index (n,).
    """
    return np.asarray(outputs(network, rows, index).softmax(1).numpy())


@torch.no_grad()
def outputs(network: nn.Module, rows: Rows, index: Index | None = None) -> torch.Tensor:
    """Outputs of a network in evaluation mode, without gradients, a block of rows at a time.

    Shapes: index (n,).
    """
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    index = np.arange(len(rows)) if index is None else index
    was_training = network.training
    network.eval()
    blocks = np.split(index, range(_BLOCK, len(index), _BLOCK))
    values = [network(as_tensor(rows, block, device)).cpu().double() for block in blocks]  # MPS has no float64
    network.train(was_training)
    return torch.cat(values)


@contextmanager
def suited_threads(work: int | None) -> Iterator[None]:
    """Context in which torch uses a single thread where a training step is too small to gain from several.

    Waking threads for small operations can make these ten times slower on a busy machine.
    """
    before = torch.get_num_threads()
    if work is not None and work < _WORTH_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def choose_device(device: str) -> torch.device:
    """The torch device of a name."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")[:200]  # torch may add pages
        raise ParameterError(
            f"The parameter `device` is {device!r}, which torch cannot use here ({reason}); this machine has "
            f"{', '.join(available_devices())}."
        ) from None
    return torch.device(device)


def available_devices() -> list[str]:
    """The devices of this machine that torch can use."""
    names = ["cpu"]
    if torch.cuda.is_available():
        names += [f"cuda:{n}" for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    if torch.xpu.is_available():
        names += [f"xpu:{n}" for n in range(torch.xpu.device_count())]
    return names
