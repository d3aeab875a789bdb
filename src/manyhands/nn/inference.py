"""A network and the rows it reads: tensors of them, and its probabilities over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.exceptions import ParameterError
from manyhands.features import Index, Rows

_WORTH_THREADS = 1 << 26  # multiplications in a step
_STRETCH = 1024  # rows that a network reads at once when it only predicts


def as_tensor(rows: Rows, index: Index, device: torch.device | str) -> torch.Tensor:
    """These rows as floats on the device."""
    return torch.from_numpy(rows.take(index)).to(device)


def probabilities(network: nn.Module, rows: Rows, index: Index | None = None) -> npt.NDArray[np.float64]:
    """(n_rows, n_classes) softmax of the network's logits, in evaluation mode; its mode is left as it was."""
    return np.asarray(outputs(network, rows, index).softmax(1).numpy())


@torch.no_grad()
def outputs(network: nn.Module, rows: Rows, index: Index | None = None) -> torch.Tensor:
    """(n_rows, n_outputs) what the network gives in evaluation mode, on the CPU; its mode is left as it was."""
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    index = np.arange(len(rows)) if index is None else index
    was_training = network.training
    network.eval()
    stretches = np.split(index, range(_STRETCH, len(index), _STRETCH))
    found = [network(as_tensor(rows, stretch, device)).double().cpu() for stretch in stretches]
    network.train(was_training)
    return torch.cat(found)


@contextmanager
def suited_threads(work: int | None) -> Iterator[None]:
    """Inside the block torch works on one thread where a step of so many multiplications is over before others wake.

    Threads that wait for small work make it ten times slower on a busy machine. None leaves all as it is.
    """
    before = torch.get_num_threads()
    if work is not None and work < _WORTH_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def choose_device(device: str) -> torch.device:
    """The device of this name; "auto" takes a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")[:200]  # torch may go on for pages
        raise ParameterError(f"The parameter 'device' is {device!r}, which torch cannot use here: {reason}.") from None
    return torch.device(device)
