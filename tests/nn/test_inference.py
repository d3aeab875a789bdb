"""Devices that torch cannot use."""

import pytest
import torch

from manyhands.exceptions import ParameterError
from manyhands.nn.inference import choose_device


def test_the_message_contains_the_first_sentence_of_torch(monkeypatch):
    """Torch may add a list of all its backends, and the first sentence may be very long."""
    for reason, shown in (("No such backend. It may be\nthat ...", "No such backend."), ("x" * 999, "x" * 200 + ".")):

        def refuse(*_, reason=reason, **__):
            raise NotImplementedError(reason)

        monkeypatch.setattr(torch, "empty", refuse)
        with pytest.raises(ParameterError) as error:
            choose_device("mps")
        assert str(error.value) == f"The parameter 'device' is 'mps', which torch cannot use here: {shown}"
