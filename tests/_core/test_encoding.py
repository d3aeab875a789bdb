"""Values and codes: `ids[codes]` is what was given."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyhands._core.encoding import as_ids, encode
from manyhands.exceptions import AnnotationError

pytestmark = pytest.mark.fast

on_either_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
values = st.one_of(
    st.integers(-(2**70), 2**70), st.text(max_size=3), st.tuples(st.integers(0, 3), st.text(max_size=1)), st.booleans()
)


@given(st.lists(values, max_size=20))
def test_codes_lead_back_to_the_values(column):
    """Whatever mixture of values comes, equal ones share a code and every code leads back."""
    codes, ids = encode(column, None, "item")
    assert ids[codes].tolist() == column
    assert len(ids) == len(set(column))


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_ids_do_not_depend_on_the_order_of_rows(column, random):
    """Without given ids, they are sorted."""
    _, ids = encode(column, None, "item")
    shuffled = list(column)
    random.shuffle(shuffled)
    assert encode(shuffled, None, "item")[1].tolist() == ids.tolist() == sorted(set(column))


def test_mixtures_are_sorted_by_type_and_text():
    """Values that do not compare have an order too, and it is not that of their appearance."""
    one, other = (encode(column, None, "item")[1].tolist() for column in (["b", 2, "a", 10], [10, "a", 2, "b"]))
    assert one == other == [10, 2, "a", "b"]


def test_integers_far_apart_need_no_table():
    """A range too wide for a table goes through a dictionary; ids stay 64-bit integers."""
    codes, ids = encode(np.array([10**15, -(10**15), 10**15]), None, "item")
    assert codes.tolist() == [1, 0, 1]
    assert ids.dtype == np.int64


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint64])
def test_ready_made_codes_stay_as_they_are(dtype):
    """Dense codes of any integer type are their own codes, with and without given ids."""
    column = np.array([2, 0, 1, 2], dtype)
    assert encode(column, None, "item")[0].tolist() == [2, 0, 1, 2]
    codes, ids = encode(column, np.array([2, 1, 0, 7]), "item")
    assert codes.tolist() == [0, 2, 1, 0]
    assert ids.tolist() == [2, 1, 0, 7]


def test_unknown_values_are_named_with_their_row():
    """Integers and other values alike; long lists of ids are cut short."""
    with pytest.raises(AnnotationError, match=r"item 9 in row 2 .*0, 1, 2, 3, 4, \.\.\."):
        encode(np.array([0, 1, 9]), np.arange(7), "item")
    with pytest.raises(AnnotationError, match="label 'z' in row 1 is not among the given classes"):
        encode(["a", "z"], ["a"], "label")


def test_ids_of_other_annotations_are_shared():
    """Read-only ids that own their memory are not copied again; a read-only view is."""
    own = np.arange(3)
    own.setflags(write=False)
    assert as_ids(own, "item") is own
    assert as_ids(own[:2], "item").base is None
    assert as_ids(np.array(["a", "b"]), "item").dtype == object


def test_ids_have_one_dimension():
    """A read-only matrix is no list of ids either."""
    square = np.zeros((2, 2))
    square.setflags(write=False)
    with pytest.raises(AnnotationError, match="one-dimensional"):
        as_ids(square, "item")


integers = {
    dtype: st.integers(np.iinfo(dtype).min, np.iinfo(dtype).max)
    | st.integers(max(-3, np.iinfo(dtype).min), 3)
    | st.integers(np.iinfo(dtype).max - 3, np.iinfo(dtype).max)
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64)
}


@given(data=st.data(), dtype=st.sampled_from(list(integers)), step=st.sampled_from([1, 2, -1]))
@on_either_path
def test_integers_of_every_width_are_coded(either_path, data, dtype, step):
    """The ends of every range, negative ones, gaps, and arrays that are not contiguous: codes lead back."""
    column = np.array(data.draw(st.lists(integers[dtype], max_size=12)), dtype)[::step]
    codes, ids = encode(column, None, "item")
    assert codes.dtype == np.int32 and ids[codes].tolist() == column.tolist()
    assert ids.tolist() == sorted(set(column.tolist()))
    turned, own = encode(column, np.array(ids[::-1].tolist() or [0], dtype), "item")
    assert own[turned].tolist() == column.tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("low, n_values", [(0, 5), (7, 5), (0, 30_000), (3, 30_000)])
def test_long_columns_of_integers(either_path, dtype, low, n_values):
    """Dense and with gaps, from 0 and from elsewhere, first met early and first met in the last row."""
    column = (np.arange(50_000) % n_values % 200 if dtype == np.uint8 else np.arange(50_000) % n_values) + low
    column[-1] = low + min(n_values, 200) + 5
    given_column = column.astype(dtype)
    codes, ids = encode(given_column, None, "item")
    expected_ids, expected = np.unique(column, return_inverse=True)
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(ids, expected_ids)
    assert not np.shares_memory(codes, given_column)


def test_unknown_integers_are_named_with_their_first_row(either_path):
    """The first row of them, on either path."""
    with pytest.raises(AnnotationError, match="item 5 in row 1 "):
        encode(np.array([0, 5, 6, 5], np.int32), np.array([0, 6]), "item")


def test_masked_values_are_missing(either_path):
    """Whatever number hides under the mask; a mask over nothing changes nothing."""
    with pytest.raises(AnnotationError, match="item in row 1 is missing"):
        encode(np.ma.array([1, 999_999_999, 2], mask=[False, True, False]), None, "item")
    assert encode(np.ma.array([4, 2]), None, "item")[0].tolist() == [1, 0]
