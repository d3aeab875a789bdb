"""Fits on shards beside the ordinary ones."""

import numpy as np
import pytest

import manyhands
from manyhands.sharded.fits import fit
from manyhands.sharded.labels import InMemoryShards
from manyhands.testing.small_crowds import easy_crowd

EM_METHODS = ["DawidSkene", "OneCoin", "MACE"]


def results_by_item(annotations, method, n_shards=None):
    """Posterior and label of every item in the order of the annotations, and the fit."""
    shards = InMemoryShards.from_annotations(annotations, n_shards)
    found = fit(method, shards)
    parts = list(shards.run(found.final_task, "items"))
    place = {item: row for row, item in enumerate(shards.item_ids.tolist())}
    order = [place[item] for item in annotations.item_ids.tolist()]
    posterior = np.concatenate([part.posterior for part in parts])[order]
    code = np.concatenate([part.code for part in parts])[order]
    tied = np.concatenate([part.tied for part in parts])[order]
    return found, posterior, code, tied


@pytest.mark.parametrize("n_shards", [None, 1, 8])
@pytest.mark.parametrize("name", ["MajorityVote", *EM_METHODS])
def test_results_are_those_of_the_ordinary_fit(name, n_shards):
    """Labels, ties and notes are equal; posteriors and worker statistics agree within 1e-9."""
    votes = easy_crowd(3, n_items=120, seed=2)[0]
    method = getattr(manyhands, name)()
    ordinary = getattr(manyhands, name)().fit(votes)
    found, posterior, code, tied = results_by_item(votes, method, n_shards)
    assert votes.classes[code].tolist() == ordinary.labels_.tolist()
    assert tied.tolist() == ordinary.tied_.tolist()
    np.testing.assert_allclose(posterior, ordinary.posterior_, atol=1e-9)
    np.testing.assert_allclose(found.worker_accuracy, ordinary.worker_accuracy_, atol=1e-9)
    assert (found.n_iter, found.converged, found.notes) == (ordinary.n_iter_, ordinary.converged_, ordinary.notes_)
    np.testing.assert_allclose(found.history, ordinary.history_, rtol=1e-10)
    if name in EM_METHODS:
        np.testing.assert_allclose(found.confusion, ordinary.confusion_, atol=1e-9)
        np.testing.assert_allclose(found.class_prior, ordinary.class_prior_, atol=1e-9)
        np.testing.assert_allclose(found.results["_log_confusion"], ordinary._log_confusion, atol=1e-7)
