"""Every optimizer of every network method gets `weight_decay`, that of a nested method too."""

from unittest.mock import patch

import pytest
import torch

from manyhands import registry
from manyhands.testing.crowds import feature_crowd, fit_briefly, is_network, known_to

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORKS = sorted({*registry.names("classifier"), *registry.names("representation")})
OPTIONS_OF_ITS_OWN = ("crowding", "crowding-plus", "crowd-layer-generator")  # the discriminator has a weight_decay
DECAYED_IN_THE_LOSS = ("doctor-net", "doctor-net-iwdn", "doctor-net-biwdn")  # log weights, some of which are log 0


def decays_of(method, **changes):
    """The weight decays of all groups of parameters with which a fit makes optimizers; None without a network."""
    found, create = [], torch.optim.Optimizer.__init__

    def record(self, *arguments):
        create(self, *arguments)
        found.append([group["weight_decay"] for group in self.param_groups])

    X, votes, _ = feature_crowd(3)
    with patch.object(torch.optim.Optimizer, "__init__", record):
        fitted = fit_briefly(method, X, votes, **known_to(method, {"patience": None, "max_epochs": 1}), **changes)
    return found if is_network(fitted) else None


@pytest.mark.parametrize("name", NETWORKS)
def test_every_optimizer_has_it(name):
    """Optimizers of embeddings, noise layers, generators, imputers and nested methods."""
    method = registry.create(name)
    if "weight_decay" not in method.get_params(deep=False):
        assert decays_of(method) is None
        return
    found = decays_of(method, weight_decay=0.125)
    assert found
    exceptions = sum(group != 0.125 for groups in found for group in groups)
    assert exceptions == (name in OPTIONS_OF_ITS_OWN) + (name in DECAYED_IN_THE_LOSS)


@pytest.mark.parametrize("base", ["conal", "spee-lfc", "trace-reg"])
def test_bases_of_self_crowd_have_it(base):
    """Given by its name or as an instance without a decay of its own."""
    for given in (base, registry.create(base)):
        found = decays_of(registry.create("self-crowd", base=given), weight_decay=0.125)
        assert found and all(groups == [0.125] for groups in found)


@pytest.mark.parametrize("pretraining", ["crowd-layer", "max-mig", "aggnet"])
def test_pretrainings_of_crowding_have_it(pretraining):
    """The last three optimizers are those of the game."""
    method = registry.create("crowding", pretraining=pretraining)
    found = decays_of(method, weight_decay=0.125, members=1)
    assert found[:-3] and all(groups == [0.125] for groups in found[:-3])
