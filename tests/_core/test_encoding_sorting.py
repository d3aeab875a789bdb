"""Triples in their canonical order, whatever the width of the key and whoever joins it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyhands._core import encoding
from manyhands._core.encoding import sort_triples
from strategies import seeds

pytestmark = pytest.mark.fast

on_either_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
needs_compiled = pytest.mark.skipif(encoding._columns is None, reason="the compiled columns were not built")
sizes = st.tuples(*(st.sampled_from([1, 2, 3, 4, 5, 1000, 2**15, 2**20, 2**31 - 1]) for _ in range(3)))


@given(sizes=sizes, n=st.integers(0, 40), seed=seeds())
@on_either_path
def test_triples_come_out_sorted(either_path, sizes, n, seed):
    """By item, then worker, then label: in 32 bits, in 64 bits, and where no key is wide enough."""
    triples = _triples(sizes, n, seed)
    found = sort_triples(triples, *sizes[1:])
    assert list(zip(*(column.tolist() for column in found))) == sorted(zip(*(column.tolist() for column in triples)))
    assert {column.dtype for column in found} == {np.dtype(np.int32)}


def test_rows_in_falling_order_are_turned_around(either_path):
    """No two of them ascend, so only the check of the order distinguishes them from sorted ones."""
    triples = [np.array(column, np.int32) for column in ([2, 1, 0], [1, 1, 0], [0, 1, 1])]
    assert [column.tolist() for column in sort_triples(triples, 2, 2)] == [[0, 1, 2], [0, 1, 1], [1, 1, 0]]


@needs_compiled
@given(sizes=sizes, n=st.integers(0, 40), seed=seeds(), ascending=st.booleans())
def test_compiled_and_plain_keys_agree(sizes, n, seed, ascending):
    """The same keys, of the same type, in the same order or not; and the same triples from them."""
    triples = _triples(sizes, n, seed)
    if ascending:
        order = np.lexsort(triples[::-1])
        triples = [column[order] for column in triples]
    bits = [max(size - 1, 1).bit_length() for size in sizes]
    if sum(bits) > 63:
        return
    for key_type in (np.int32, np.int64) if sum(bits) <= 31 else (np.int64,):
        key, is_sorted = encoding._join(*triples, *bits[1:], key_type)
        split = encoding._split(key, *bits[1:], _three(key))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoding, "_columns", None)
            plain_key, plain_is_sorted = encoding._join(*triples, *bits[1:], key_type)
            plain_split = encoding._split(plain_key, *bits[1:], _three(key))
        assert key.dtype == plain_key.dtype == key_type
        assert (key.tolist(), is_sorted) == (plain_key.tolist(), plain_is_sorted)
        assert is_sorted == (sorted(zip(*triples)) == list(zip(*triples)))
        for columns in zip(triples, split, plain_split):
            assert len({tuple(column.tolist()) for column in columns}) == 1


def test_columns_too_wide_for_a_key_are_sorted_without_one(either_path, monkeypatch):
    """31 + 31 + 31 bits fit no integer."""
    monkeypatch.setattr(encoding, "_join", None)
    most = 2**31 - 1
    item, worker, label = (np.array(column, np.int32) for column in ([most - 1, 0, 0], [5, 9, 9], [0, most - 1, 3]))
    found = sort_triples([item, worker, label], most, most)
    assert [column.tolist() for column in found] == [[0, 0, most - 1], [9, 9, 5], [3, most - 1, 0]]


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [2**15, 2**31 - 1])
def test_no_bit_is_lost_where_a_key_becomes_too_narrow(either_path, n, n_classes):
    """31 bits against 32, and 63 against 64: the largest codes of all three columns."""
    triples = _triples((n, n, n_classes), 50, 0)
    found = sort_triples(triples, n, n_classes)
    assert list(zip(*(column.tolist() for column in found))) == sorted(zip(*(column.tolist() for column in triples)))


@pytest.mark.parametrize("n_items", [100, 2**31 - 1])
def test_sorted_triples_stay_as_they_are(either_path, n_items):
    """Already in order, they come out equal, and never as the caller's own arrays."""
    item, worker, label = (np.array(column, np.int32) for column in ([0, 0, n_items - 1], [1, 1, 0], [0, 0, 1]))
    found = sort_triples([item, worker, label], 2, 2)
    for before, after in zip((item, worker, label), found):
        assert before.tolist() == after.tolist()
        assert not np.shares_memory(before, after)


def test_long_columns_are_taken_apart_in_chunks(either_path, monkeypatch):
    """More keys than a chunk holds."""
    monkeypatch.setattr(encoding, "_CHUNK", 7)
    triples = _triples((50, 9, 3), 100, 0)
    found = sort_triples(triples, 9, 3)
    assert list(zip(*(column.tolist() for column in found))) == sorted(zip(*(column.tolist() for column in triples)))


def _triples(sizes, n, seed):
    """Random codes, the largest ones among them, and with repeats."""
    rng = np.random.default_rng(seed)
    codes = [np.where(rng.random(n) < 0.3, size - 1, rng.integers(0, size, n)) for size in sizes]
    return [column.astype(np.int32) for column in codes]


def _three(key):
    """Room for the parts of the keys."""
    return tuple(np.empty(len(key), np.int32) for _ in range(3))


def test_columns_are_reused_only_where_they_are_ours():
    """A view and a read-only column are not overwritten; others receive the result where that is requested."""
    column = np.array([2, 0, 1], np.int32)
    view, frozen = column[:], column.copy()
    frozen.setflags(write=False)
    for mine, reused in ((column.copy(), True), (view, False), (frozen, False)):
        found = encoding.sort_triples([mine, mine.copy(), mine.copy()], 3, 3, reuse=True)
        assert found[0].tolist() == [0, 1, 2] and (found[0] is mine) == reused
    assert column.tolist() == [2, 0, 1]
