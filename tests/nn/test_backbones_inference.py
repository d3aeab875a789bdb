"""Devices that torch cannot use."""

import pytest
import torch

from manyhands.exceptions import ParameterError
from manyhands.nn.backbones import available_devices, choose_device


def test_the_message_contains_the_first_sentence_of_torch(monkeypatch):
    """Torch may add a list of all its backends, and the first sentence may be very long."""
    for reason, shown in (("No such backend. It may be\nthat ...", "No such backend"), ("x" * 999, "x" * 200)):

        def refuse(*_, reason=reason, **__):
            raise NotImplementedError(reason)

        monkeypatch.setattr(torch, "empty", refuse)
        with pytest.raises(ParameterError) as error:
            choose_device("mps")
        start = f"The parameter `device` is 'mps', which torch cannot use here ({shown}); this machine has "
        assert str(error.value) == start + ", ".join(available_devices()) + "."


def test_the_devices_of_the_machine_are_listed(monkeypatch):
    """The CPU first, then every GPU by the name that `device` takes."""
    for module, available, n in ((torch.cuda, True, 2), (torch.xpu, True, 1), (torch.backends.mps, False, None)):
        monkeypatch.setattr(module, "is_available", lambda available=available: available)
        if n is not None:
            monkeypatch.setattr(module, "device_count", lambda n=n: n)
    assert available_devices() == ["cpu", "cuda:0", "cuda:1", "xpu:0"]
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert available_devices() == ["cpu", "mps", "xpu:0"]


def test_auto_is_a_gpu_where_there_is_one(monkeypatch):
    for available, chosen in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
        assert choose_device("auto") == torch.device(chosen)
