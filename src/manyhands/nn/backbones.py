"""Networks from features to logits: a perceptron, a small convolutional network, or the caller's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from manyhands.exceptions import LimitError, ParameterError
from manyhands.validation import check_memory

Backbone = str | Callable[[Any, int], nn.Module]
_MOST_WEIGHTS = 2**32
_BYTES_PER_WEIGHT = 16  # the weight, its gradient, and two averages of Adam
_LARGE = 46  # pixels; four layers without a border leave one of them


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
    """The network of this name, or what the caller's function makes of (n_features or shape, n_classes).

    `shape` is that of one row of X. The network must give one logit per class and row. The activation is that
    of a perceptron.
    """
    if isinstance(backbone, nn.Module):
        raise ParameterError(
            "The parameter 'backbone' is a module; give a function that makes one, since every fit needs a new one: "
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
    """Linear layers of these sizes, input and output included; activation and dropout behind all but the last.

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
    """Refuse layers of these sizes, before any is made, if their weights could not be trained on this machine."""
    wide = [int(size) for size in sizes]  # NumPy's would wrap around
    count = sum((before + 1) * after for before, after in pairwise(wide))
    remedy = "Make the sizes of its layers smaller."
    if count > _MOST_WEIGHTS:
        raise LimitError(f"A network of {_number(count)} weights is too large; at most {_MOST_WEIGHTS:,} fit. {remedy}")
    check_memory(_BYTES_PER_WEIGHT * count, f"The {count:,} weights of the network", remedy)


def _number(count: int) -> str:
    return f"{count:,}" if count < 10**30 else f"more than 10^{int((count.bit_length() - 1) * math.log10(2))}"


def convnet(
    shape: tuple[int, ...], n_classes: int, *, hidden: Sequence[int] = (128,), dropout: float = 0.5
) -> nn.Sequential:
    """Four 3x3 convolutions (32, 32, 64, 64) with ReLU, each followed by a 2x2 maximum; then a perceptron.

    Batch norm follows the first convolution. Rows are (channels, height, width). From 46 x 46 on, each convolution
    takes away a border of one; smaller images get a border of zeros instead, and are halved while they have two pixels.
    """
    if len(shape) != 3:
        raise ParameterError(
            f"The backbone 'convnet' needs images of shape (channels, height, width); the rows of X have shape {shape}."
        )
    layers: list[nn.Module] = []
    side: tuple[int, ...] = shape[1:]
    border = 0 if min(side) >= _LARGE else 1
    for before, after in pairwise((shape[0], 32, 32, 64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=border)]
        layers += [nn.BatchNorm2d(after)] if len(layers) == 1 else []
        layers += [nn.ReLU()]
        side = tuple(length - 2 + 2 * border for length in side)
        if min(side) > 1:
            layers += [nn.MaxPool2d(2)]
            side = tuple(length // 2 for length in side)
    return nn.Sequential(*layers, mlp((64 * side[0] * side[1], *hidden, n_classes), dropout))


class Mean(nn.Module):
    """Several networks that answer as one: as logits, the logarithms of the mean of their probabilities."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        each = torch.stack([network(x).log_softmax(1) for network in self.networks])
        return torch.logsumexp(each, 0)


class Normalise(nn.Module):
    """Rows of length 1; what is all but 0 stays near 0, so that its gradient stays finite."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(x, eps=1e-6)


def normalised(network: nn.Module) -> nn.Sequential:
    """The network with outputs of length 1."""
    return nn.Sequential(network, Normalise())


def _checked(made: Any, shape: tuple[int, ...], n_classes: int) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise ParameterError(
            f"The function given as 'backbone' must make a torch Module; it made {type(made).__name__}."
        )
    training = made.training
    try:
        with torch.no_grad():
            answer = made.eval()(torch.zeros(2, *shape))
    except Exception as error:  # the caller's own code may raise anything
        raise ParameterError(f"The module given by 'backbone' cannot take rows of shape {shape}: {error}") from error
    found = tuple(answer.shape) if isinstance(answer, torch.Tensor) else type(answer).__name__
    if found != (2, n_classes):
        raise ParameterError(
            f"The module given by 'backbone' must give {n_classes} logits per row as a tensor; for 2 rows: {found}."
        )
    return made.train(training)
