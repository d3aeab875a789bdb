"""Devices that are not there."""

import pytest
import torch

from manyhands.exceptions import ParameterError
from manyhands.nn.inference import choose_device


def test_what_torch_says_is_cut_after_its_first_sentence(monkeypatch):
    """It may list all its backends, or begin with a word of many letters."""
    for said, kept in (("No such backend. It may be\nthat ...", "No such backend."), ("x" * 999, "x" * 200 + ".")):

        def refuse(*_, said=said, **__):
            raise NotImplementedError(said)

        monkeypatch.setattr(torch, "empty", refuse)
        with pytest.raises(ParameterError) as error:
            choose_device("mps")
        assert str(error.value) == f"The parameter 'device' is 'mps', which torch cannot use here: {kept}"
