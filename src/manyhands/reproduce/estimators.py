"""The estimator of a row: registry method, parameters from TOML, seed, and a classifier after a representation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyhands import registry
from manyhands.classifiers.network_device import device_parameter
from manyhands.reproduce.tables import STAGES, Row

HELDOUT_REGRESSION = "heldout-regression"  # after a representation learner: held-out items choose C and the setting

_NONE = "none"
_QUICK_EPOCHS = 3
_QUICK_SETTINGS = 2
_RANDOM_RESTARTS_ONLY = ("Raykar", "DifficultyEM", "FixedDifficultyEM")  # classes that are random for n_init > 1 only


def make_estimator(
    row: Row,
    seed: int,
    *,
    quick: bool = False,
    setting: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> Any:
    """Return the unfitted estimator of a row.

    A representation learner becomes a pipeline with the classifier that `row.then` names. If that is
    "heldout-regression", `row.choose` are the settings that it chooses from on held-out items.

    Parameters
    ----------
    row : Row
        A row with a method.
    seed : int
        Value of every `random_state`.
    quick : bool, default=False
        Train networks for three epochs at most.
    setting : mapping or None, default=None
        Further parameters, one of `row.choose`.
    device : str or None, default=None
        Device on which a network is trained, if the method trains one; None is that of the row.

    Returns
    -------
    estimator
        An aggregator, a classifier, or a scikit-learn Pipeline.
    """
    assert row.method is not None
    given = _values(dict(row.parameters) | dict(setting or {}))
    model = _seeded(_create(row.method, given, seed), seed)
    parameter = None if device is None else device_parameter(model)
    if parameter is not None:
        model.set_params(**{parameter: device})
    if quick and "max_epochs" in model.get_params():
        model.set_params(max_epochs=min(_QUICK_EPOCHS, model.max_epochs))
    if row.then is None:
        return model
    if row.then == HELDOUT_REGRESSION:
        from manyhands.representation.neucrowd.heldout_regression import HeldoutRegression

        settings = [_values(each) for each in row.choose] if setting is None else []
        return HeldoutRegression(model, tuple(settings[: _QUICK_SETTINGS if quick else None]) or ({},))
    from sklearn.pipeline import make_pipeline

    classifier = registry.create("two-stage", aggregator=model.labels, classifier=row.then)
    return make_pipeline(model, _seeded(classifier, seed))


def is_random(row: Row) -> bool:
    """Return whether a method uses random numbers, as far as its parameters determine it.

    Parameters
    ----------
    row : Row
        A row with a method.

    Returns
    -------
    bool
        False if all seeds give the same result on the same data.
    """
    assert row.method is not None
    setting = dict(row.parameters)
    if row.method == "two-stage" and setting.get("classifier") == "logistic-regression":
        return "random_state" in registry.create(setting.get("aggregator", registry.DEFAULT)).get_params()
    model = registry.create(row.method)
    if type(model).__name__ in _RANDOM_RESTARTS_ONLY:
        return bool(setting.get("n_init", 1) != 1)
    return "random_state" in model.get_params()


def parameter_names(row: Row) -> list[str]:
    """Return all parameters that a row may set, those of nested estimators as ``name__parameter``.

    Parameters
    ----------
    row : Row
        A row with a method.

    Returns
    -------
    list of str
        Names; of two-stage also those of the aggregator and of a logistic regression, in any order.
    """
    assert row.method is not None
    names = list(registry.create(row.method).get_params())
    if row.method == "two-stage":
        first = registry.create(row.parameters.get("aggregator", registry.DEFAULT)).get_params()
        names += [STAGES[0] + name for name in first if name != "random_state"]
        if row.parameters.get("classifier") == "logistic-regression":
            from sklearn.linear_model import LogisticRegression

            names += [STAGES[1] + name for name in LogisticRegression().get_params() if name != "random_state"]
    return names


def _create(method: str, given: dict[str, Any], seed: int) -> Any:
    """Return the method with its parameters; those of groups of options are set after construction."""
    parameters = _with_stages(given, seed) if method == "two-stage" else given
    nested = {name: value for name, value in parameters.items() if "__" in name}
    model = registry.create(method, **{name: value for name, value in parameters.items() if name not in nested})
    return model.set_params(**nested) if nested else model


def _with_stages(given: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return parameters of two-stage in which ``aggregator__x`` and ``classifier__x`` have become estimators."""
    found = {name: value for name, value in given.items() if not name.startswith(STAGES)}
    first, second = (
        {name.removeprefix(stage): given[name] for name in given if name.startswith(stage)} for stage in STAGES
    )
    if first:
        found["aggregator"] = _seeded(registry.create(given.get("aggregator", registry.DEFAULT), **first), seed)
    if second:
        from sklearn.linear_model import LogisticRegression

        found["classifier"] = LogisticRegression(**{"max_iter": 1000, **second})
    return found


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with their values in Python."""
    return {name: _from_toml(value) for name, value in given.items()}


def _from_toml(value: Any) -> Any:
    """Return what TOML cannot express: None is written "none", a tuple is written as a list."""
    if isinstance(value, list):
        return tuple(map(_from_toml, value))
    return None if value == _NONE else value


def _seeded(model: Any, seed: int) -> Any:
    """Set `random_state`, if the model has it."""
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model
