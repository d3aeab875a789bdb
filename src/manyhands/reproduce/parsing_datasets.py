"""The data sets of a table, from TOML."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from manyhands import datasets, simulate
from manyhands.datasets import catalog
from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import Keyed, Keys, ListOf, Text, nearest
from manyhands.reproduce.splits import MAKERS
from manyhands.reproduce.tables import FEATURES, QUICK_ITEMS, DataSet
from manyhands.validation import Boolean, Number, OneOf

_WHOLE = Number(whole=True, least=1)


def parse_dataset(keys: Keys, name: str) -> DataSet:
    """Parse one data set.

    Parameters
    ----------
    keys : Keys
        Keys of this part of the table.
    name : str
        Name of the data set.

    Returns
    -------
    DataSet
        The data set.

    Raises
    ------
    ParameterError
        If a key or value is invalid.
    """
    load, make = keys.take("load", Text(), None), keys.take("make", Text(), None)
    if (load is None) == (make is None):
        keys.refuse("give either load, a data set of MANYHANDS_DATA, or make, a function that simulates one")
    arguments = keys.take("arguments", Keyed(), {})
    if load is not None:
        seeded: tuple[str, ...] = ()
        _check_load(keys, load, arguments)
    else:
        seeded = tuple(keys.take("seeded", ListOf(Text()), ["random_state"]))
        _check_make(keys, make, arguments, seeded)
    quick = Keys(keys.take("quick", Keyed(), {}), keys.table, f"{keys.part}, quick")
    quick_items = quick.take("items", _WHOLE, QUICK_ITEMS)
    quick.finish()
    items, drawn = keys.take("items", _WHOLE, None), keys.take("drawn", Boolean(), False)
    if drawn and items is None:
        keys.refuse("drawn is without items; give items, how many are drawn")
    return DataSet(
        name,
        load,
        make,
        arguments,
        seeded,
        keys.take("features", OneOf(FEATURES), FEATURES[0]),
        items,
        keys.take("folds", Number(whole=True, least=2), None),
        float(keys.take("remove", Number(least=0, most=0.99), 0.0)),
        keys.take("keep_one", Boolean(), True),
        quick_items,
        drawn,
    )


def _check_load(keys: Keys, name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse an unknown data set, and arguments that `datasets.load` does not have."""
    try:
        features = catalog.SPECS[catalog.find(name)].features
    except ParameterError:
        keys.refuse(f"there is no data set {name!r} for MANYHANDS_DATA{nearest(name, catalog.names())}")
    known = list(inspect.signature(datasets.load).parameters)[1:]  # after the name
    for argument, value in arguments.items():
        keys.check_known(argument, known, "argument of load called")
        if argument == "features":
            keys.check_known(value, features, f"choice of features of {name} called")


def _check_make(keys: Keys, name: str, arguments: Mapping[str, Any], seeded: Sequence[str]) -> None:
    """Refuse an unknown function, and arguments that it does not have, lacks, or gets as the seed."""
    keys.check_known(name, MAKERS, "function to make a crowd called")
    parameters = inspect.signature(MAKERS[name]).parameters.values()
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if len(known) < len(parameters):  # arguments that describe the workers are passed on
        known += inspect.signature(simulate.make_crowd).parameters
    for argument in [*arguments, *seeded]:
        keys.check_known(argument, known, f"argument of {name} called")
    for argument in seeded:
        if argument in arguments:
            keys.refuse(f"{argument} gets the seed of the run; take it out of arguments, or out of seeded")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in arguments and parameter.name in known:
            keys.refuse(f"{name} needs {parameter.name}; give it in arguments")
