"""Networks applied to rows of X: tensors of rows, outputs and probabilities; the device and threads for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.exceptions import ParameterError
from manyhands.features import Index, Rows

_WORTH_THREADS = 1 << 26  # multiplications in a step from which several threads are faster than one
_BLOCK = 1024  # rows that a network reads at a time in evaluation mode


def as_tensor(rows: Rows, index: Index, device: torch.device | str) -> torch.Tensor:
    """Rows of X as a tensor on a device.

    Parameters
    ----------
    rows : Rows
        Rows of X.
    index : array of int of shape (n,)
        Row numbers.
    device : torch.device or str
        Device of the tensor.

    Returns
    -------
    tensor of float32 of shape (n, ...)
        The rows.
    """
    return torch.from_numpy(rows.take(index)).to(device)


def probabilities(network: nn.Module, rows: Rows, index: Index | None = None) -> npt.NDArray[np.float64]:
    """Class probabilities: the softmax of a network's logits.

    Parameters
    ----------
    network : torch.nn.Module
        From features to (n, n_classes) logits; applied in evaluation mode, its mode is restored afterwards.
    rows : Rows
        Rows of X.
    index : array of int of shape (n,) or None, default=None
        Row numbers; None means all rows.

    Returns
    -------
    array of float64 of shape (n, n_classes)
        Probabilities; each row sums to 1.
    """
    return np.asarray(outputs(network, rows, index).softmax(1).numpy())


@torch.no_grad()
def outputs(network: nn.Module, rows: Rows, index: Index | None = None) -> torch.Tensor:
    """Outputs of a network in evaluation mode, without gradients, a block of rows at a time.

    Parameters
    ----------
    network : torch.nn.Module
        From features to (n, n_outputs); applied on its own device, its mode is restored afterwards.
    rows : Rows
        Rows of X.
    index : array of int of shape (n,) or None, default=None
        Row numbers; None means all rows.

    Returns
    -------
    tensor of float64 of shape (n, n_outputs)
        Outputs, on the CPU.
    """
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    index = np.arange(len(rows)) if index is None else index
    was_training = network.training
    network.eval()
    blocks = np.split(index, range(_BLOCK, len(index), _BLOCK))
    found = [network(as_tensor(rows, block, device)).cpu().double() for block in blocks]  # MPS has no float64
    network.train(was_training)
    return torch.cat(found)


@contextmanager
def suited_threads(work: int | None) -> Iterator[None]:
    """Context in which torch uses a single thread where a training step is too small to gain from several.

    Waking threads for small operations can make these ten times slower on a busy machine.

    Parameters
    ----------
    work : int or None
        Multiplications in a step; below 2^26 one thread is used. None changes nothing.

    Yields
    ------
    None
        The previous number of threads is restored afterwards.
    """
    before = torch.get_num_threads()
    if work is not None and work < _WORTH_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def choose_device(device: str) -> torch.device:
    """The torch device of a name.

    Parameters
    ----------
    device : str
        "auto" for a GPU where there is one, else the CPU; or torch's name of a device.

    Returns
    -------
    torch.device
        A device on which a tensor could be created.

    Raises
    ------
    ParameterError
        Where torch cannot use the device; the message contains torch's reason, and the devices of this machine.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")[:200]  # torch may add pages
        raise ParameterError(
            f"The parameter 'device' is {device!r}, which torch cannot use here ({reason}); this machine has "
            f"{', '.join(available_devices())}."
        ) from None
    return torch.device(device)


def available_devices() -> list[str]:
    """The devices of this machine that torch can use.

    Returns
    -------
    list of str
        ``cpu``, then GPUs by number: ``cuda:0``, ``cuda:1``, ``mps``, ``xpu:0``.
    """
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{n}" for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    if torch.xpu.is_available():
        found += [f"xpu:{n}" for n in range(torch.xpu.device_count())]
    return found
