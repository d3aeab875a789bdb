"""The option `--device`: checked before any file is read, and passed to the methods that train a network."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from manyhands import registry
from manyhands.classifiers.network_device import device_parameter
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.validation import Device


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use on this machine.

    Parameters
    ----------
    device : str
        "auto", or torch's name of a device.

    Raises
    ------
    ParameterError
        If it is not the name of a device, or this machine does not have it; the message lists those it has.
    MissingExtraError
        If torch is not installed.
    """
    constraint = Device()
    if not constraint.allows(device):
        raise ParameterError(f"The device must be {constraint}; got {device!r}.")
    registry.load_module("manyhands.nn.inference").choose_device(device)


def with_device(methods: Mapping[str, Mapping[str, Any]], device: str | None) -> dict[str, dict[str, Any]]:
    """Return the parameters of methods with the device on which they train.

    Parameters
    ----------
    methods : mapping of str to parameters
        Registry names with the parameters of each.
    device : str or None
        The device; None changes nothing.

    Returns
    -------
    dict of str to dict
        The same methods; a `CrowdWarning` names those that train no network.

    Raises
    ------
    ParameterError
        If no method trains a network, one of them has another device already, or this machine does not have it.
    """
    if device is None:
        return {name: dict(own) for name, own in methods.items()}
    takes = {name: device_parameter(registry.create(name).set_params(**own)) for name, own in methods.items()}
    without = [name for name, parameter in takes.items() if parameter is None]
    refuse_without_network(list(methods), without)
    for name, parameter in takes.items():
        given = methods[name].get(parameter or "", device)
        if given != device:
            raise ParameterError(f"The device of {name} is {given!r} by --set and {device!r} by --device; give one.")
    check_device(device)
    if without:
        others = [name for name in methods if name not in without]
        sentence = f"the device is set for {', '.join(others)}; no network is trained by {', '.join(without)}."
        warnings.warn(sentence, CrowdWarning, stacklevel=3)
    return {
        name: dict(own) | ({} if takes[name] is None else {str(takes[name]): device}) for name, own in methods.items()
    }


def refuse_without_network(methods: Sequence[str], without: Sequence[str]) -> None:
    """Refuse a device where no method can use it.

    Parameters
    ----------
    methods : sequence of str
        Names of the methods.
    without : sequence of str
        Those of them that train no network.

    Raises
    ------
    ParameterError
        If these are all of them.
    """
    if len(without) == len(methods):
        named = ", ".join(without[:5]) + (", ..." if len(without) > 5 else "")
        raise ParameterError(f"{named}: no network is trained, so leave out the device; the CPU is used.")
