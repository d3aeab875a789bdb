"""Devices of methods: which parameter selects the device of a method, and where its fitted network is."""

from __future__ import annotations

from typing import Any

from manyhands import registry


def device_parameter(estimator: Any) -> str | None:
    """Return the name of the parameter that selects the device on which a method trains its network.

    Parameters
    ----------
    estimator : BaseEstimator or scikit-learn estimator
        An unfitted method.

    Returns
    -------
    str or None
        ``device``, or ``classifier__device`` for a method that wraps one with a device; None where the method, with
        these parameters, trains no network.

    Examples
    --------
    >>> import manyhands as mh
    >>> device_parameter(mh.CrowdLayer()), device_parameter(mh.PriorAdjusted("aggnet"))
    ('device', 'classifier__device')
    >>> device_parameter(mh.TwoStage(classifier="logistic-regression"))
    """
    parameters = estimator.get_params(deep=False)
    if "device" in parameters:
        return "device" if estimator._trains_network() else None
    inner = parameters.get("classifier")
    if isinstance(inner, str):
        inner = registry.create(inner) if inner in registry.names("classifier") else None
    own = None if not hasattr(inner, "get_params") else device_parameter(inner)
    return None if own is None else f"classifier__{own}"


def device_of(model: Any) -> str | None:
    """Return the device of the network of a fitted method.

    Parameters
    ----------
    model : CrowdClassifier or representation learner
        A fitted method.

    Returns
    -------
    str or None
        Such as ``cpu`` or ``cuda:0``; None where it has no network.
    """
    if not hasattr(model.module_, "parameters"):
        return None
    return next((str(parameter.device) for parameter in model.module_.parameters()), None)
