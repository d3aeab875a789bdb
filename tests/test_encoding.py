"""Values and codes: `ids[codes]` is what was given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.encoding import as_ids, encode
from manyhands.exceptions import AnnotationError

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
