"""Groups of options: frozen dataclasses as constructor parameters, their validation, and their form in JSON.

A method with many parameters groups those that belong to one step of its algorithm, such as ``ICED(synthesis=...)``.
A group is a frozen dataclass derived from `OptionGroup`; its fields are addressed as in scikit-learn's nested
estimators: ``set_params(synthesis__n_neighbors=3)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from manyhands.exceptions import ParameterError
from manyhands.spelling import did_you_mean
from manyhands.validation import Constraint

_CROWDING = "manyhands.classifiers.crowding.options"
_ICED, _NEUCROWD = "manyhands.classifiers.iced.options", "manyhands.representation.neucrowd.options"

# Name of a group in JSON -> module and class. Only these are read from a file.
_GROUPS: dict[str, tuple[str, str]] = {
    "crowding.Adversarial": (_CROWDING, "Adversarial"),
    "crowding.DiscriminatorTraining": (_CROWDING, "DiscriminatorTraining"),
    "crowding.GeneratorTraining": (_CROWDING, "GeneratorTraining"),
    "iced.Certainty": (_ICED, "Certainty"),
    "iced.Synthesis": (_ICED, "Synthesis"),
    "iced.TruthInference": (_ICED, "TruthInference"),
    "iced.WarmUp": (_ICED, "WarmUp"),
    "neucrowd.HeldoutSearch": (_NEUCROWD, "HeldoutSearch"),
    "neucrowd.LabelConfidence": (_NEUCROWD, "LabelConfidence"),
    "neucrowd.LogisticHead": (_NEUCROWD, "LogisticHead"),
    "neucrowd.SafetyAwareSampling": (_NEUCROWD, "SafetyAwareSampling"),
    "neucrowd.TupletLoss": (_NEUCROWD, "TupletLoss"),
    "neucrowd.Tuplets": (_NEUCROWD, "Tuplets"),
}


class OptionGroup:
    """Base of all groups of options.

    A subclass is a frozen dataclass, ``@dataclass(frozen=True, repr=False)``, with a default for each field and one
    constraint per field in `_constraints`. The constructor only assigns; the `fit` of the method validates.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {}

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse options that the group does not have, with the nearest name, before `__init__` runs."""
        known = list(cls._constraints)
        for name in options:
            if name not in known:
                hint = did_you_mean(name, known) or f" It has: {', '.join(known)}."
                raise ParameterError(f"{cls.__name__} has no option {name!r}.{hint}")
        return super().__new__(cls)

    def __repr__(self) -> str:
        given = ((field, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        changed = [f"{field.name}={value!r}" for field, value in given if repr(value) != repr(field.default)]
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True)
class Options:
    """A constraint: an instance of a group of options whose values are all allowed.

    Attributes
    ----------
    group : type
        The class of the group.
    optional : bool, default=False
        Whether None is allowed, which leaves out the step that the group describes.
    """

    group: type[OptionGroup]
    optional: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether a value is such a group, or None where it is optional.

        Parameters
        ----------
        value : object
            The value of the parameter.

        Returns
        -------
        bool
        """
        if value is None:
            return self.optional
        constraints = self.group._constraints.items()
        return type(value) is self.group and all(c.allows(getattr(value, name)) for name, c in constraints)

    def __str__(self) -> str:
        """Return the end of a sentence that begins with "must be"."""
        return f"{'None or ' if self.optional else ''}a group of options {self.group.__name__}(...)"


def with_nested_options(
    parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]
) -> tuple[dict[str, Any], dict[str, Constraint]]:
    """Add the options of each group as parameters of their own, so that a message names the option that is wrong.

    Parameters
    ----------
    parameters : mapping of str to object
        Constructor parameters of a method.
    constraints : mapping of str to Constraint
        What they may be.

    Returns
    -------
    parameters : dict of str to object
        The same, and each option as `group__option`.
    constraints : dict of str to Constraint
        The same, in the same order; the options of a group come before the group itself.
    """
    values, found = dict(parameters), {}
    for name, constraint in constraints.items():
        value = parameters.get(name)
        if isinstance(constraint, Options) and type(value) is constraint.group:
            for option, inner in constraint.group._constraints.items():
                values[f"{name}__{option}"] = getattr(value, option)
                found[f"{name}__{option}"] = inner
        found[name] = constraint
    return values, found


def options_to_json(options: OptionGroup) -> dict[str, Any]:
    """Return a group of options as values of JSON.

    Parameters
    ----------
    options : OptionGroup
        A group of one of the package's methods.

    Returns
    -------
    dict
        ``{"options": name of the group, "values": {option: value}}``.

    Raises
    ------
    ParameterError
        If the group is not one of the package's, or a value has no form in JSON.

    Examples
    --------
    >>> from manyhands.classifiers.iced.options import WarmUp
    >>> options_to_json(WarmUp(epochs=2))
    {'options': 'iced.WarmUp', 'values': {'kind': 'grouped', 'epochs': 2, 'batch_size': None, 'stratified': False}}
    """
    home = (type(options).__module__, type(options).__qualname__)
    name = next((name for name, place in _GROUPS.items() if place == home), None)
    if name is None:
        raise ParameterError(f"{type(options).__name__} is not a group of options of manyhands, so it cannot be saved.")
    names = [field.name for field in fields(options)]  # type: ignore[arg-type]
    return {"options": name, "values": {option: _plain(option, getattr(options, option)) for option in names}}


def options_from_json(value: Mapping[str, Any]) -> OptionGroup:
    """Return the group of options that `options_to_json` wrote.

    The values are not validated: the method that takes the group does that.

    Parameters
    ----------
    value : mapping
        As `options_to_json` returns it.

    Returns
    -------
    OptionGroup
        Lists come back as tuples.

    Raises
    ------
    ParameterError
        If the name of the group or of an option is unknown.

    Examples
    --------
    >>> options_from_json({"options": "iced.WarmUp", "values": {"epochs": 2}})
    WarmUp(epochs=2)
    """
    name, values = value.get("options"), value.get("values")
    if not isinstance(name, str) or name not in _GROUPS:
        raise ParameterError(f"{str(name)[:60]!r} is not the name of a group of options.")
    if not isinstance(values, Mapping):
        raise ParameterError(f"The values of the group of options {name!r} are missing.")
    module, cls = _GROUPS[name]
    group: type[OptionGroup] = getattr(import_module(module), cls)
    return group(**{str(option): tuple(v) if isinstance(v, list) else v for option, v in values.items()})


def _plain(name: str, value: Any) -> Any:
    """Return a value as JSON has it: numbers, text, None, and lists of these."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(name, each) for each in value]
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ParameterError(f"The option {name!r} is of type {type(value).__name__}, which cannot be saved.")
    return value
