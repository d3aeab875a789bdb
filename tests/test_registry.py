"""The table of contents."""

import pytest

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ParameterError


def test_names_are_sorted_and_in_one_style():
    """Names are kebab-case, sorted, and the source lists them in that order too."""
    names = registry.names()
    assert names == sorted(names) == registry.names("aggregator")
    assert list(registry._AGGREGATORS) == sorted(registry._AGGREGATORS)
    assert all(name == name.lower() and " " not in name and "_" not in name for name in names)


@pytest.mark.parametrize("name", registry.names())
def test_every_entry_leads_to_a_class(name):
    """The module exists, the class is an aggregator, and a new one shows its fixed parameters."""
    made = registry.create(name)
    assert isinstance(made, Aggregator) and type(made) is registry.get(name)
    assert made.get_params() | registry._METHODS[name][1] == made.get_params()


def test_parameters_are_passed_on():
    """`create` takes constructor parameters."""
    assert registry.create("dawid-skene", smoothing=0.5).smoothing == 0.5


def test_default_is_registered():
    """The default method exists."""
    assert registry.DEFAULT in registry.names()


def test_unknown_names_are_refused_with_what_there_is():
    """The message lists the methods, or the kinds."""
    with pytest.raises(ParameterError, match=r"no method called 'dawid'.*dawid-skene, .*majority-vote"):
        registry.create("dawid")
    with pytest.raises(ParameterError, match="aggregator"):
        registry.names("classifiers of the future")
