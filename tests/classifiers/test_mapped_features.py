"""Features in a memory-mapped file: the same result as in memory, and never in memory as a whole."""

import tracemalloc

import numpy as np
import pytest

import manyhands as mh

N_ITEMS, N_FEATURES = 4000, 1024


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A file of 16 MB, mapped for reading, and labels of its rows; items are not in the order of their ids."""
    path = tmp_path_factory.mktemp("features") / "X.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=(N_ITEMS, N_FEATURES)).astype(np.float32))
    item, worker = np.repeat(np.arange(N_ITEMS), 3), rng.integers(0, 50, 3 * N_ITEMS)
    ids = {"item_ids": np.arange(N_ITEMS)[::-1], "worker_ids": np.arange(50), "classes": ["a", "b"]}
    return np.load(path, mmap_mode="r"), mh.Annotations(item, worker, rng.integers(0, 2, 3 * N_ITEMS), **ids)


@pytest.mark.parametrize("method", ["two-stage", "crowd-layer", "spee-lfc", "aggnet", "max-mig", "conal"])
def test_a_mapped_file_is_read_as_needed(method, mapped):
    """Arrays of NumPy need less than half of the file, in `fit` and in `predict_proba`."""
    X, votes = mapped
    short = {"hidden": (4,), "max_epochs": 1, "random_state": 0}
    short |= {"aggregator": "majority-vote"} if method == "two-stage" else {}
    in_memory = mh.registry.create(method, **short).fit(np.array(X), votes, verbose=0)
    expected = in_memory.predict_proba(np.array(X))
    tracemalloc.start()
    try:
        model = mh.registry.create(method, **short).fit(X, votes, verbose=0)
        proba = model.predict_proba(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2
    np.testing.assert_array_equal(proba, expected)
    np.testing.assert_array_equal(model.posterior_, in_memory.posterior_)
