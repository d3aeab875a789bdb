"""Codes for columns of text, on either path, and rows that repeat a pair."""

import ctypes
import struct

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from manyhands import annotations
from manyhands.annotations import keep_one
from manyhands.io import judgements
from manyhands.io.judgements import code_columns, code_text, order_of_texts
from reference.slow import slow_code_text, slow_keep_one
from strategies import seeds

on_either_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
needs_compiled = pytest.mark.skipif(judgements._columns is None, reason="the compiled columns were not built")

# Few letters, so that prefixes are shared; lengths on both sides of what fits in a view, in the table, and in a key.
LETTERS = ["a", "b", "\0", "é", "猫", "\U0001f408", "\uffff", " "]
short = st.text(st.sampled_from(LETTERS), max_size=4)
texts = st.builds(str.__add__, st.sampled_from(["", "a" * 5, "a" * 10, "a" * 12, "a" * 27, "a" * 28, "é" * 700]), short)
cells = st.lists(st.none() | texts | st.text(max_size=30), max_size=40)


@pytest.fixture(params=["compiled", "plain", "colliding"])
def any_path(request, monkeypatch):
    """The compiled table, the path without it, and the table when every text has the same hash."""
    if request.param == "plain":
        monkeypatch.setattr(judgements, "_columns", None)
    elif judgements._columns is None:
        pytest.skip("the compiled columns were not built")
    else:
        monkeypatch.setattr(judgements, "_code_as_enum", None)
    if request.param == "colliding":
        monkeypatch.setattr(judgements, "_SEED", 0)
    return request.param


def _check(column):
    by_appearance = code_text(column, by_appearance=True)
    assert (by_appearance.codes.tolist(), by_appearance.values.to_list()) == slow_code_text(column.to_list(), False)
    order = order_of_texts(by_appearance.values)
    codes, values = code_text(column)
    assert values.to_list() == [by_appearance.values[int(at)] for at in order]
    assert (codes.tolist(), values.to_list()) == slow_code_text(column.to_list())
    assert codes.dtype == np.int32 and codes.flags.writeable and codes.flags.c_contiguous
    assert values.dtype == pl.String


@given(cells=cells)
@on_either_path
def test_codes_are_places_among_the_sorted_values(any_path, cells):
    """The values are those of Python's `sorted(set(...))`, nulls are -1; a collision of hashes changes nothing."""
    _check(pl.Series(cells, dtype=pl.String))


@given(parts=st.lists(cells, max_size=5), begin=st.integers(0, 20), step=st.integers(1, 3))
@on_either_path
def test_chunks_slices_and_filters_change_nothing(any_path, parts, begin, step):
    """Columns come in many chunks, begin within one, or skip rows."""
    column = pl.Series(dtype=pl.String)
    for part in parts:
        column = column.append(pl.Series(part, dtype=pl.String))
    _check(column)
    _check(column[begin:])
    _check(column.slice(begin, 7))
    _check(column.filter(pl.Series(np.arange(len(column)) % step == 0)))


@given(seed=seeds(), n_distinct=st.integers(50, 5000), prefix=st.sampled_from(["", "item_", "x" * 40]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tables_grow(either_path, monkeypatch, seed, n_distinct, prefix):
    """More texts than the table has room for at first, and more than are sorted by comparing."""
    if either_path == "plain":
        monkeypatch.setattr(judgements, "_columns", None)
    number = np.random.default_rng(seed).integers(0, n_distinct, 3 * n_distinct)
    for cells in ([f"{prefix}{n}" for n in number], [f"{prefix}{n % 3:08}{n % 97:08}{n:08}" for n in number]):
        codes, values = code_text(pl.Series(cells))
        assert values.to_list() == sorted(set(cells))
        assert values.gather(codes).to_list() == cells


@needs_compiled
def test_texts_alike_in_many_bytes_are_told_apart():
    """So many share so much that sorting goes as deep as it goes, and texts that differ by zeros after their end."""
    deep = ["é" * n + "\0" * zeros for n in range(0, 400, 7) for zeros in (0, 1, 9)]
    padded = ["\0" * n for n in range(200)]
    column = pl.Series(deep + padded + deep[::-1])
    codes, values = code_text(column)
    assert values.to_list() == sorted(set(column)) and values.gather(codes).equals(column)


def test_a_text_of_megabytes_keeps_its_identity(any_path):
    """Texts that differ in one byte, at the end, in the middle and at the start."""
    long = "x" * 3_000_000
    _check(pl.Series([long, long + "y", "y" + long[1:], None, "", long[: 10**6] + "y" + long[10**6 + 1 :], long]))


def test_nothing_but_nulls(any_path):
    """No values, and every code -1; and no rows at all."""
    _check(pl.Series([None, None], dtype=pl.String))
    _check(pl.Series([], dtype=pl.String))


@needs_compiled
def test_a_strange_layout_takes_the_plain_path():
    """What polars lends as something else than string views is not misread."""
    assert judgements._code_in_table(pl.Series([1, 2]), False) is None
    assert judgements._code_in_table(pl.Series(["a", "b"], dtype=pl.Categorical), False) is None


@needs_compiled
def test_what_the_compiled_functions_refuse():
    """Lengths that do not fit, other types, nulls where none may be, capsules that are used up or none at all."""
    column, codes, rows = pl.Series(["a", None]), np.zeros(2, np.int32), np.zeros(2, np.int64)
    functions = judgements._columns
    for wrong in (np.zeros(1, np.int32), np.zeros(3, np.int32)):
        with pytest.raises(ValueError, match="fit together"):
            functions.code_text(column.__arrow_c_stream__(), 1, wrong, np.zeros(len(wrong), np.int64))
        with pytest.raises(ValueError, match="fit together"):
            functions.code_text(column.__arrow_c_stream__(), 1, wrong, rows)
    with pytest.raises(ValueError, match="fit together"):
        functions.order_text(column.__arrow_c_stream__(), codes)
    with pytest.raises(TypeError, match="int32"):
        functions.order_text(column.__arrow_c_stream__(), rows)
    with pytest.raises(TypeError, match="2 numbers and 2 arrays"):
        functions.code_text(column.__arrow_c_stream__(), 1, codes)
    with pytest.raises(ValueError, match="PyCapsule"):
        functions.code_text(column, 1, codes, rows)


@needs_compiled
def test_a_stream_flows_once():
    """A capsule that was read, by these functions or by another library, has nothing left to give."""

    class Lender:
        def __init__(self, capsule):
            self.capsule = capsule

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    column, codes, rows = pl.Series(["a", None]), np.zeros(2, np.int32), np.zeros(2, np.int64)
    read, moved = column.__arrow_c_stream__(), column.__arrow_c_stream__()
    assert judgements._columns.code_text(read, 1, codes, rows) == 1
    assert pl.Series(Lender(moved)).to_list() == ["a", None]
    for capsule in (read, moved):
        with pytest.raises(ValueError, match="fit together"):
            judgements._columns.code_text(capsule, 1, codes, rows)


class _Array(ctypes.Structure):
    """A chunk in the C interface of Arrow; so is `_Schema`, and `_Stream` is what gives them away."""

    _fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")]
    _fields_ += [(name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private")]


class _Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p)]
    _fields_ += [("flags", ctypes.c_int64), ("n_children", ctypes.c_int64)]
    _fields_ += [(name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private")]


class _Stream(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private")]


def _code_lent(view, text=b"t" * 20, form=b"vu", n_buffers=4, error=0):
    """Code one cell from a stream that is made by hand: the view given, over one buffer of text."""
    sizes = (ctypes.c_int64 * 1)(len(text))
    memory = [None, ctypes.create_string_buffer(view, 16), ctypes.create_string_buffer(text), sizes]
    buffers = (ctypes.c_void_p * 4)(*(None if part is None else ctypes.addressof(part) for part in memory))
    released = []
    give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(released.append)
    address = ctypes.cast(give_back, ctypes.c_void_p)
    given = iter([_Array(1, 0, 0, n_buffers, 0, ctypes.addressof(buffers), None, None, address), _Array()])
    getter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def put(structure, at):
        ctypes.memmove(at, ctypes.byref(structure), ctypes.sizeof(structure))
        return 0

    get_schema = getter(lambda _, at: put(_Schema(format=form, release=address), at))
    get_next = getter(lambda _, at: error or put(next(given), at))
    stream = _Stream(*(ctypes.cast(f, ctypes.c_void_p) for f in (get_schema, get_next)), None, address)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)
    try:
        return judgements._columns.code_text(capsule, 1, np.zeros(1, np.int32), np.zeros(1, np.int64))
    finally:
        assert len(released) == (1 if form != b"vu" or error else 2)  # the schema, and the chunk if there was one


@needs_compiled
def test_broken_columns_are_refused_and_given_back():
    """A view beyond its buffer, one of a buffer that is not there, too few buffers, a stream that fails."""
    assert _code_lent(struct.pack("=I4sII", 20, b"tttt", 0, 0)) == 1
    assert _code_lent(struct.pack("=I4sII", 20, b"tttt", 0, 0), form=b"u") == -1
    for wrong in ((21, b"tttt", 0, 0), (20, b"tttt", 0, 1), (20, b"tttt", 1, 0), (20, b"tttt", 2**31, 0)):
        with pytest.raises(ValueError, match="fit together"):
            _code_lent(struct.pack("=I4sII", *wrong))
    assert _code_lent(struct.pack("=I12s", 2, b"tt")) == 1
    for wrong in ({"n_buffers": 2}, {"error": 5}):
        with pytest.raises(ValueError, match="fit together"):
            _code_lent(struct.pack("=I12s", 2, b"tt"), **wrong)


@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_columns_can_be_coded_at_the_same_time(any_path, monkeypatch, n_threads):
    """Several threads at once give what one gives, under the same names."""
    monkeypatch.setenv("MANYHANDS_THREADS", n_threads)
    monkeypatch.setattr(judgements, "_WORTH_A_THREAD", 0)
    columns = {str(size): pl.Series([f"{n % size:015d}" for n in range(3000)]) for size in (7, 1000, 2999, 13)}
    together = code_columns(columns)
    assert list(together) == list(columns)
    for name, column in columns.items():
        alone = code_text(column)
        assert together[name].codes.tolist() == alone.codes.tolist() and together[name].values.equals(alone.values)
    assert code_columns({}) == {}


rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30)


@example(pairs=[(0, 0)] * 10, shuffled=False, which="last", wide=False, seed=0)
@given(pairs=rows, shuffled=st.booleans(), which=st.sampled_from(["last", "first"]), wide=st.booleans(), seed=seeds())
@on_either_path
def test_one_row_of_each_pair_is_kept(monkeypatch, pairs, shuffled, which, wide, seed):
    """The last or the first, in the order of the rows or in another; in one integer, or where none is wide enough."""
    monkeypatch.setattr(annotations, "_CHUNK", 4)
    order = np.random.default_rng(seed).permutation(len(pairs)) if shuffled else None
    item, worker = np.array(pairs, np.int32).reshape(-1, 2).T
    if wide:
        item, worker, n_workers = item + np.int32(2**31 - 5), worker + np.int32(2**31 - 4), 2**31
    keep = keep_one(item, worker, n_workers if wide else 4, order, which)
    assert keep.tolist() == slow_keep_one(pairs, range(len(pairs)) if order is None else order.tolist(), which)


def test_wide_codes_of_few_rows_fit_in_no_integer(monkeypatch):
    """31 bits of items, 31 of workers and 2 of age are 64: the other way is taken, and gives the same."""
    monkeypatch.setattr(annotations, "_join", None)
    item, worker = np.array([2**31 - 1] * 3, np.int32), np.array([2**31 - 2, 0, 2**31 - 2], np.int32)
    assert keep_one(item, worker, 2**31 - 1).tolist() == [False, True, True]
    assert keep_one(item, worker, 2**31 - 1, which="first").tolist() == [True, True, False]
