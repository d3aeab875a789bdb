"""A fit on Spark has the bits of a fit on the same shards in memory."""

import numpy as np
import pytest

import manyhands
from manyhands import spark as on_spark
from manyhands.sharded.fit import fit
from manyhands.sharded.labels import InMemoryShards

METHODS = ["MajorityVote", "DawidSkene", "OneCoin", "MACE", "PooledDawidSkene"]
N_SHARDS = 4


@pytest.fixture(scope="module")
def in_memory(crowd):
    return InMemoryShards.from_annotations(manyhands.Annotations.from_triples(*crowd), N_SHARDS)


@pytest.mark.parametrize("name", METHODS)
def test_same_bits_as_in_memory(frame, in_memory, shared_checkpoint, name):
    """Labels, probabilities, confusion matrices, workers, and the way there."""
    model = getattr(on_spark, name)(checkpointDir=shared_checkpoint, nShards=N_SHARDS).fit(frame)
    local = fit(getattr(manyhands, name)(), in_memory)
    results = list(in_memory.run(local.final_task, "items"))
    posterior = np.concatenate([shard.posterior for shard in results])
    labels = in_memory.classes[np.concatenate([shard.code for shard in results])]

    found = {row.item: row for row in model.items.collect()}
    assert set(found) == set(in_memory.item_ids.tolist())
    rows = [found[item] for item in in_memory.item_ids.tolist()]
    assert np.array([row.probs for row in rows]).tobytes() == posterior.tobytes()
    assert [row.label for row in rows] == labels.tolist()
    assert [row.confidence for row in rows] == posterior.max(axis=1).tolist()

    workers = {row.worker: row for row in model.workers.collect()}
    assert [workers[worker].accuracy for worker in local.worker_ids] == local.worker_accuracy.tolist()
    assert [workers[worker].n_labels for worker in local.worker_ids] == in_memory.worker_volume.tolist()
    if local.confusion is None:
        assert model.confusions is None
    else:
        cells = {(row.worker, row.truth, row.label): row.probability for row in model.confusions.collect()}
        classes = local.classes.tolist()
        expected = [[[cells[w, k, label] for label in classes] for k in classes] for w in local.worker_ids.tolist()]
        assert np.array(expected).tobytes() == np.ascontiguousarray(local.confusion).tobytes()
    assert model.summary["history"] == list(local.history)
    assert model.summary["n_iter"] == local.n_iter
