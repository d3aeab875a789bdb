"""Annotations: immutable, sparse, and accepted in the place of `y`."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError
from strategies import annotations, triples_of

pytestmark = pytest.mark.fast

NFC, NFD = "\u00e9", "e\u0301"  # the same letter to a reader, two strings to a computer


class Column:
    """What pandas or polars would give: a column that owns an array."""

    def __init__(self, values):
        self.owned = np.array(values)

    def __len__(self):
        return len(self.owned)

    def to_numpy(self):
        return self.owned


# Building -----------------------------------------------------------------------------------------------------------


def test_triples_are_sorted_and_sized(votes):
    """Codes are int32 and sorted by item, worker, label; counts are those of the ids."""
    assert triples_of(votes) == [(0, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 0)]
    assert {votes.item.dtype, votes.worker.dtype, votes.label.dtype} == {np.dtype(np.int32)}
    assert (votes.n_items, votes.n_workers, votes.n_classes, votes.n_annotations) == (3, 3, 3, 4)
    assert (len(votes), votes.shape, votes.n_labels.tolist()) == (3, (3,), [1, 0, 3])
    assert repr(votes) == "Annotations(4 labels on 3 items by 3 workers, 3 classes)"


@given(annotations(), st.randoms(use_true_random=False))
def test_order_of_triples_never_shows(votes, random):
    """Triples in any order build equal annotations, repeated pairs included."""
    triples = triples_of(votes)
    random.shuffle(triples)
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    assert Annotations(*np.array(triples).T, **ids) == votes


def test_codes_too_wide_for_one_key_are_sorted_too():
    """Where item, worker and label do not fit into 63 bits, the slow sort gives the same order."""
    many = np.arange(2**21)
    item, worker, label = np.array([[2**21 - 1, 3, 3], [0, 9, 2**20], [5, 1, 0]])
    votes = Annotations(item, worker, label, item_ids=many, worker_ids=many, classes=many)
    assert triples_of(votes) == [(3, 9, 1), (3, 2**20, 0), (2**21 - 1, 0, 5)]


def test_equality_is_by_value(votes):
    """Equal where all six arrays are, different from anything else, and without a hash."""
    again = Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=votes.item_ids,
        worker_ids=votes.worker_ids,
        classes=votes.classes,
    )
    assert votes == again
    assert votes != votes.keep(np.arange(3))
    assert votes != votes.with_more(0, 0, 0)
    assert votes != "votes"
    with pytest.raises(TypeError):
        hash(votes)


@pytest.mark.parametrize(
    "matrix", [[[0, 1, -1], [-1, -1, -1]], np.array([[0, 1, np.nan], [np.nan] * 3]), [[0, 1, None], [None] * 3]]
)
def test_matrix_without_label(matrix):
    """-1, NaN and None mean that there is no label; an empty row is an item without labels."""
    votes = Annotations.from_matrix(matrix)
    assert triples_of(votes) == [(0, 0, 0), (0, 1, 1)]
    assert (votes.n_items, votes.n_workers, votes.classes.tolist()) == (2, 3, [0, 1])


@pytest.mark.parametrize(
    "matrix, missing",
    [
        ([["cat", -1], ["dog", "cat"]], -1),
        ([["cat", None], ["dog", "cat"]], -1),
        ([["cat", ""], ["dog", "cat"]], ""),
        (np.array([["cat", "?"], ["dog", "cat"]]), "?"),
    ],
)
def test_matrix_of_text(matrix, missing):
    """Text beside -1, None or a word for missing: labels are the text, and nothing turns into the text '-1'."""
    votes = Annotations.from_matrix(matrix, missing=missing)
    assert votes.classes.tolist() == ["cat", "dog"]
    assert triples_of(votes) == [(0, 0, 0), (1, 0, 1), (1, 1, 0)]


def test_masked_matrix():
    """Masked entries are missing, whatever stands below the mask."""
    votes = Annotations.from_matrix(np.ma.masked_array([[0, 1], [1, 7]], mask=[[0, 0], [0, 1]]))
    assert votes.classes.tolist() == [0, 1]
    assert votes.n_annotations == 3


def test_matrix_of_bools_and_an_empty_one():
    """Truth values are classes; a matrix without a single row or label is legal here."""
    assert Annotations.from_matrix([[True, False]]).classes.tolist() == [False, True]
    assert Annotations.from_matrix(np.full((2, 3), -1)).n_annotations == 0
    assert Annotations.from_matrix(np.zeros((0, 3), int)).n_items == 0


def test_no_labels_at_all_can_be_built():
    """Items and workers may all be without labels."""
    votes = Annotations.from_triples([], [], [], item_ids=["a", "b"], worker_ids=["w"], classes=["k"])
    assert (votes.n_items, votes.n_annotations) == (2, 0)
    assert votes[[1]].item_ids.tolist() == ["b"]
    assert len(Annotations.from_triples([], [], [])) == 0


# Ids ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        [-5, 7, 0],
        [2**63, 2**63 + 1, 5],
        [2**63, -1],
        [2**64, 1],
        [2**53, 2**53 + 1],
        [1, "1", "a"],
        ["007", "7", "07"],
        [(1, 2), (1, 3), (0, 9)],
        [("a", 1), ("a",)],
        [True, False],
        [0.5, 1.5],
        [NFC, NFD],
        ["😀", "👩‍👩‍👧", "עברית"],
        ["=1+1", "@x", "-2", "+3"],
        ["", "a"],
        ["line\nbreak", "tab\t", "x" * 10_000],
        [b"bytes", b"more"],
        [10**9, 5 * 10**15, -(10**12)],
    ],
    ids=repr,
)
@pytest.mark.parametrize("role", ["item", "worker", "label"])
def test_ids_come_back_as_they_were(values, role):
    """Any hashable values are distinguished and come back equal, and of the same type, in the order of their rows."""
    columns = {"items": [0] * len(values), "workers": [0] * len(values), "labels": [0] * len(values)}
    columns |= {"items": range(len(values))} if role != "item" else {}
    columns[f"{role}s"] = values
    votes = Annotations.from_triples(**columns)
    ids, codes = {
        "item": (votes.item_ids, votes.item),
        "worker": (votes.worker_ids, votes.worker),
        "label": (votes.classes, votes.label),
    }[role]
    assert len(ids) == len(values)
    back = ids[codes].tolist()
    assert back == values
    assert {type(v) for v in back} == {type(v) for v in values}


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, float, "U3", object]
)
def test_arrays_of_every_type(dtype):
    """Arrays of narrow and wide types code alike; none wraps around."""
    values = np.array([100, 3, 100, 0]).astype(dtype)
    votes = Annotations.from_triples(values, range(4), values)
    assert votes.item_ids.tolist() == list(dict.fromkeys(values.tolist()))
    assert votes.classes.tolist() == sorted(set(values.tolist()))
    assert votes.item_ids[votes.item].tolist() == votes.classes[votes.label].tolist()


def test_narrow_integers_do_not_wrap():
    """The range of int8 values exceeds int8 itself."""
    values = np.array([-100, 100, -100, 27], np.int8)
    votes = Annotations.from_triples(np.arange(4), [0] * 4, values)
    assert votes.classes[votes.label].tolist() == [-100, 100, -100, 27]
    given_ids = Annotations.from_triples(np.arange(4), [0] * 4, values, classes=np.array([100, 27, -100], np.int8))
    assert given_ids.label.tolist() == [2, 0, 2, 1]
    mixed = Annotations.from_triples(np.arange(2), [0, 0], np.array([-1, 5]), classes=np.array([5, -1, 99], np.int8))
    assert mixed.label.tolist() == [1, 0]
    unsigned = Annotations.from_triples(np.arange(2), [0, 0], np.array([3, 5]), classes=np.array([5, 3], np.uint64))
    assert unsigned.label.tolist() == [1, 0]


def test_columns_of_data_frames():
    """A column gives its array, and keeps it: neither frozen nor shared."""
    items, names = Column(["b", "a"]), Column([5, 7, 6])
    votes = Annotations.from_triples(items, Column([7, 5]), Column([1.0, 0.0]), worker_ids=names)
    assert votes.item_ids.tolist() == ["b", "a"]
    assert votes.worker.tolist() == [1, 0]
    names.owned[0] = 99
    assert votes.worker_ids.tolist() == [5, 7, 6]


def test_given_arrays_are_neither_frozen_nor_shared():
    """The caller may continue to write to the given arrays, and to the base of a read-only view."""
    codes, base = np.array([0, 1]), np.array([10, 11])
    view = base[:]
    view.flags.writeable = False
    votes = Annotations(codes, codes, codes, item_ids=base, worker_ids=view, classes=base)
    codes[0], base[0] = 1, 99
    assert votes.item.tolist() == [0, 1]
    assert votes.item_ids.tolist() == votes.worker_ids.tolist() == votes.classes.tolist() == [10, 11]


@pytest.mark.parametrize(
    "make", [iter, lambda column: (value for value in column), lambda column: dict.fromkeys(column)]
)
def test_columns_may_be_any_iterable(make):
    """Generators, iterators and the keys of a dictionary are columns too, and so are they as ids."""
    votes = Annotations.from_triples(make([2, 1]), make(["ann", "bob"]), make(["x", "y"]), item_ids=make([2, 1, 0]))
    assert votes == Annotations.from_triples([2, 1], ["ann", "bob"], ["x", "y"], item_ids=[2, 1, 0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int64, np.uint64])
def test_codes_of_every_integer_type(dtype, votes):
    """Codes are codes in any integer type, for the constructor and for more of them."""
    item, worker, label = (np.array(codes, dtype) for codes in ([0, 1], [1, 0], [0, 0]))
    built = Annotations(item, worker, label, item_ids=["a", "b"], worker_ids=["v", "w"], classes=["k"])
    assert triples_of(built) == [(0, 1, 0), (1, 0, 0)] and built.item.dtype == np.int32
    assert triples_of(votes.with_more(item, worker, label)) == sorted([*triples_of(votes), (0, 1, 0), (1, 0, 0)])


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_stay_dates(unit):
    """Points in time and lengths of time are the caller's own values, whatever their unit; NaT is missing."""
    days = np.array(["2020-02-01", "2020-01-01", "2020-02-01"], f"M8[{unit}]")
    for times in (days, days - days[1]):
        votes = Annotations.from_triples(times, [0, 1, 2], times)
        assert votes.item_ids.tolist() == [times[0], times[1]]
        assert votes.classes.tolist() == [times[1], times[0]]
        assert {type(value) for value in votes.item_ids} == {type(times[0])}
        given_ids = Annotations(
            votes.item, votes.worker, votes.label, item_ids=times, worker_ids=range(3), classes=times[:2]
        )
        assert given_ids.item_ids.tolist() == list(times)
        grid = Annotations.from_matrix(times.reshape(1, 3))
        assert grid.classes.tolist() == [times[1], times[0]]
    days[2] = "NaT"
    with pytest.raises(AnnotationError, match="item in row 2 is missing"):
        Annotations.from_triples(days, [0, 0, 0], [0, 0, 0])


# Refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns, sentence",
    [
        (([1, 2], ["a"], [0, 1]), "2 items, 1 workers, 2 labels"),
        (([1, 2], ["a", "a"], ["x", None]), "label in row 1 is missing"),
        (([1, 2], ["a", "a"], [0.0, float("nan")]), "label in row 1 is missing"),
        (([1, 2, 3], ["a", "a", np.nan], [0, 0, 0]), "worker in row 2 is missing"),
        (([None, 2], ["a", "a"], [0, 0]), "item in row 0 is missing"),
        (([1, 2], ["a", "a"], ["x", ["y"]]), "label in row 1 is ..y.., which is not hashable"),
        (([[1], [2]], ["a", "a"], [0, 0]), "item in row 0 is .1., which is not hashable"),
        (([1, 2], ["a", "a"], np.zeros((2, 1))), "labels must be one-dimensional"),
    ],
)
def test_unusable_columns_are_refused_with_their_row(columns, sentence):
    """The message names the problem and the row."""
    with pytest.raises((AnnotationError, AlignmentError), match=sentence):
        Annotations.from_triples(*columns)


@pytest.mark.parametrize(
    "ids, sentence",
    [
        ({"classes": ["x"]}, r"label 'y' in row 1 is not among the given classes \('x'\)"),
        ({"item_ids": [1, 5]}, r"item 2 in row 1 is not among the given item_ids"),
        ({"worker_ids": ["b"]}, r"worker 'a' in row 0 is not among the given worker_ids"),
        ({"item_ids": [1, 2, 1]}, "item 1 occurs twice"),
        ({"classes": ["x", "y", "x"]}, "label 'x' occurs twice"),
        ({"classes": np.array([["x", "y"]])}, "must be one-dimensional"),
    ],
)
def test_ids_that_do_not_fit_are_refused(ids, sentence):
    """Unknown values and repeated ids are named."""
    with pytest.raises(AnnotationError, match=sentence):
        Annotations.from_triples([1, 2], ["a", "a"], ["x", "y"], **ids)


def test_a_value_that_cannot_be_compared_is_missing():
    """pandas' NA raises an error where it is compared with itself."""

    class NA:
        def __ne__(self, other):
            return self

        __hash__ = object.__hash__

        def __bool__(self):
            raise TypeError("boolean value of NA is ambiguous")

    with pytest.raises(AnnotationError, match="row 1 is missing"):
        Annotations.from_triples([1, 2], ["a", "a"], ["x", NA()])


@pytest.mark.parametrize(
    "matrix, ids, error, sentence",
    [
        ([0, 1], {}, AnnotationError, "1 dimension"),
        ([[0, 1], [0]], {}, AnnotationError, "equal length"),
        ([[0, 1]], {"item_ids": ["a", "b"]}, AlignmentError, "1 items, but 2 item_ids"),
        ([[0, 1]], {"worker_ids": ["a"]}, AlignmentError, "2 workers, but 1 worker_ids"),
        ([[0, 1]], {"worker_ids": ["a", "a"]}, AnnotationError, "occurs twice"),
        ([[0, 1]], {"classes": [0]}, AnnotationError, "not among the given classes"),
    ],
)
def test_unusable_matrices_are_refused(matrix, ids, error, sentence):
    """The message names the problem of the matrix or its names."""
    with pytest.raises(error, match=sentence):
        Annotations.from_matrix(matrix, **ids)


@pytest.mark.parametrize("item", [[0, 2], [-1, 0], [0.0, 1.0], [[0], [1]], ["a", "b"], [True, False]])
def test_impossible_codes_are_refused(item):
    """Codes are whole numbers from 0 to one less than there are ids."""
    with pytest.raises(AnnotationError, match="item codes must"):
        Annotations(item, [0, 0], [0, 0], item_ids=["a", "b"], worker_ids=["w"], classes=["k"])


@pytest.mark.parametrize(
    "ids, sentence",
    [
        ({"worker_ids": ["w", "v", "w"]}, "The worker 'w' occurs twice"),
        ({"classes": np.array([7, 7])}, "The class 7 occurs twice"),
        ({"classes": [["x"], ["y"]]}, r"class .*\['x'\], which is not hashable"),
    ],
)
def test_repeated_workers_and_classes_are_refused(ids, sentence):
    """One worker is one code and so is one class; an item may occur twice, as a resampled one does."""
    named = {"item_ids": ["a", "a"], "worker_ids": ["w"], "classes": ["k"]}
    assert Annotations([0, 1], [0, 0], [0, 0], **named).n_items == 2
    with pytest.raises(AnnotationError, match=sentence):
        Annotations([0, 1], [0, 0], [0, 0], **(named | ids))


@pytest.mark.parametrize("column", [5, None, np.array(5)])
def test_what_is_no_column_is_refused(column):
    """A single value is not a column."""
    with pytest.raises(AnnotationError, match="workers must be"):
        Annotations.from_triples([1], column, [1])


def test_codes_of_different_lengths_are_refused():
    """Every annotation has an item, a worker and a label."""
    with pytest.raises(AlignmentError, match="2 item, 1 worker, 2 label"):
        Annotations([0, 0], [0], [0, 0], item_ids=["a"], worker_ids=["w"], classes=["k"])


# Immutability -------------------------------------------------------------------------------------------------------


def test_nothing_can_be_written(votes):
    """Neither arrays nor attributes, groups and copies included."""
    for original in (votes, pickle.loads(pickle.dumps(votes)), copy.deepcopy(votes), votes[[0, 2]]):
        arrays = [getattr(original, name) for name in ("item", "worker", "label", "item_ids", "worker_ids", "classes")]
        for array in (*arrays, *original.by_item, *original.by_worker, original.n_labels):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array
    with pytest.raises(AttributeError, match="are immutable"):
        votes.item = votes.item
    with pytest.raises(AttributeError, match="are immutable"):
        del votes.classes


def test_pickles_and_copies_are_equal(votes):
    """Cached properties are not pickled, and are computed again."""
    assert votes.by_worker.order.tolist() == [0, 1, 2, 3]
    for again in (pickle.loads(pickle.dumps(votes)), copy.copy(votes), copy.deepcopy(votes)):
        assert again == votes
        assert again.by_worker.order.tolist() == [0, 1, 2, 3]
