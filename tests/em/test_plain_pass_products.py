"""The products without SciPy against SciPy's, to the last bit, and the plain pass with both."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from manyhands import Annotations
from manyhands.em import plain_pass
from manyhands.em.kernels import pack
from manyhands.em.plain_pass import Indicators


def random_matrix(rng, n_rows=300, n_columns=40, n_entries=3000):
    """Entries in the order of rows, with empty rows and repeated cells."""
    row = np.sort(rng.integers(n_rows, size=n_entries))
    column, weight = rng.integers(n_columns, size=n_entries), rng.random(n_entries)
    start = np.searchsorted(row, np.arange(n_rows + 1))
    return row, column, weight, start


@pytest.mark.parametrize("weighted", [False, True])
def test_products_have_the_bits_of_scipy(weighted):
    rng = np.random.default_rng(0)
    row, column, weight, start = random_matrix(rng)
    entries = weight if weighted else np.ones(len(row))
    theirs = csr_array((entries, column, start), shape=(300, 40))
    ours = Indicators(row, column, weight if weighted else None, 300)
    dense, tall = rng.normal(size=(40, 5)) * 1e3, rng.normal(size=(300, 5)) * 1e3
    assert (ours @ dense).tobytes() == np.ascontiguousarray(theirs @ dense).tobytes()
    assert (ours.transposed(40) @ tall).tobytes() == np.ascontiguousarray(theirs.T @ tall).tobytes()


def test_a_product_is_a_sum_of_rows():
    rng = np.random.default_rng(1)
    row, column, weight, _ = random_matrix(rng, 5, 4, 30)
    dense, expected = rng.normal(size=(4, 2)), np.zeros((5, 2))
    for i, j, w in zip(row, column, weight):
        expected[i] += w * dense[j]
    np.testing.assert_allclose(Indicators(row, column, weight, 5) @ dense, expected, rtol=1e-12)


def test_the_plain_pass_has_the_same_bits_without_scipy(monkeypatch):
    rng = np.random.default_rng(2)
    columns = (rng.integers(n, size=3000) for n in (500, 30, 3))
    crowd = Annotations.from_triples(*columns, duplicates="all")
    packed, rows = pack(crowd), np.log(rng.dirichlet(np.ones(3), 90))

    def run():
        counts, totals, posterior = np.zeros((90, 3)), np.zeros(3), np.empty((packed.n_items, 3))
        arguments = (rows, np.log(np.full(3, 1 / 3)), None, counts, totals, posterior)
        evidence = plain_pass.em_shard(packed, 0, packed.n_items, *arguments)
        votes = np.zeros((90, 3))
        plain_pass.vote_shard(packed, 0, packed.n_items, votes, totals, None)
        return evidence, counts.tobytes(), totals.tobytes(), posterior.tobytes(), votes.tobytes()

    with_scipy = run()
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    assert run() == with_scipy
