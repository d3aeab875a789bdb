"""Orders of items: first appearance, in which results are returned, and sorted ids, in which fits run."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands import Annotations, DawidSkene, compare, read_annotations
from manyhands._core.encoding import appearance_order, encode, inverse, reorder_groups, sorting_order
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.scorecards import score_workers
from strategies import annotations, triples_of

values = st.one_of(
    st.lists(st.integers(-5, 5), max_size=30),
    st.lists(st.integers(-(2**70), 2**70), max_size=8),
    st.lists(st.text(max_size=2), max_size=20),
    st.lists(st.integers(-3, 12) | st.text(max_size=1), max_size=20),
)


@given(values)
def test_sorting_is_stable_and_that_of_encode(column):
    """The order is that of the sorted ids of `encode`, equal ids in the order of their rows; None changes nothing."""
    ids = np.array(column, object)
    order = sorting_order(ids)
    places = {value: at for at, value in enumerate(encode(column, None, "item")[1].tolist())}
    expected = sorted(range(len(column)), key=lambda at: places[column[at]])
    assert (list(range(len(column))) if order is None else order.tolist()) == expected
    assert (order is None) == (expected == list(range(len(column))))


@given(values)
def test_items_are_numbered_as_they_appear(column):
    """On every path of `encode`: integers in a table, wide integers, text and mixtures."""
    codes, ids = encode(column, None, "item", by_appearance=True)
    assert ids.tolist() == list(dict.fromkeys(column))
    assert ids[codes].tolist() == column and codes.dtype == np.int32


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 5))
def test_first_appearance_across_chunks(column, chunk):
    """Chunks do not change the order of first appearance."""
    codes, ids = encode(column, None, "item")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyhands._core.encoding._CHUNK", chunk)
        order = appearance_order(codes, len(ids))
    expected = list(dict.fromkeys(codes.tolist()))
    assert (sorted(expected) if order is None else order.tolist()) == expected


@given(annotations())
def test_sorted_items_have_the_labels_that_they_had(votes):
    """The same triples in terms of ids; `inverse` leads back."""
    in_order = votes.with_sorted_items()
    assert in_order.sorting_order is None and sorting_order(in_order.item_ids) is None
    order = votes.sorting_order
    back = np.arange(votes.n_items) if order is None else inverse(order)
    assert in_order[back] == votes
    assert sorted(zip(in_order.item_ids[in_order.item], in_order.worker, in_order.label)) == sorted(
        zip(votes.item_ids[votes.item], votes.worker, votes.label)
    )


@given(annotations(), st.randoms(use_true_random=False), st.integers(1, 6))
def test_groups_in_another_order_are_those_of_a_plain_loop(votes, random, chunk):
    """Whatever the order and the size of the chunks; items without labels stay without."""
    order = random.sample(range(votes.n_items), votes.n_items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyhands._core.encoding._CHUNK", chunk)
        item, worker, label = reorder_groups(votes.start, np.array(order, int), (votes.worker, votes.label))
    expected = [(new, w, k) for new, old in enumerate(order) for i, w, k in triples_of(votes) if i == old]
    assert list(zip(item.tolist(), worker.tolist(), label.tolist())) == expected


def _crowd(n_items=200, seed=0):
    """Shuffled triples of items 0, 1, ... as text, whose sorted order is another one."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    item = rng.permutation(np.repeat(np.arange(n_items), 5))
    worker = np.empty(len(item), int)
    worker[np.argsort(item, kind="stable")] = np.tile(np.arange(5), n_items)
    label = np.where(rng.random(len(item)) < 0.8, truth[item], rng.integers(0, 3, len(item)))
    return item.astype(str), worker, label, truth


def test_results_follow_first_appearance_with_the_bits_of_sorted_rows():
    """Triples in any order have the same bits for each id; rows are in the order of the triples."""
    item, worker, label, _ = _crowd()
    shuffled = Annotations.from_triples(item, worker, label)
    assert shuffled.item_ids.tolist() == list(dict.fromkeys(item.tolist()))
    by_id = Annotations.from_triples(item, worker, label, item_ids=sorted(set(item.tolist())))
    one, other = DawidSkene().fit(by_id), DawidSkene().fit(shuffled)
    row_of = {value: row for row, value in enumerate(by_id.item_ids.tolist())}
    rows = [row_of[value] for value in shuffled.item_ids.tolist()]
    assert other.item_ids_.tolist() == shuffled.item_ids.tolist()
    assert np.array_equal(other.posterior_, one.posterior_[rows])
    assert other.labels_.tolist() == one.labels_[rows].tolist()
    assert np.array_equal(other.confusion_, one.confusion_) and other.annotations_ is shuffled
    assert np.array_equal(
        compare(["one-coin", "dawid-skene"], shuffled).scores, compare(["one-coin", "dawid-skene"], by_id).scores
    )


def test_scorecards_have_the_same_bits_in_any_order():
    """Every figure of every worker, whatever the order of the items."""
    item, worker, label, _ = _crowd(60)
    votes = Annotations.from_triples(item, worker, label)
    order = np.random.default_rng(2).permutation(votes.n_items)
    one, other = (score_workers(part, DawidSkene().fit(part).posterior_) for part in (votes, votes[order]))
    for name in ("accuracy", "accuracy_low", "accuracy_high", "agreement", "bias", "alerts"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_bootstrap_sample_has_the_same_bits_in_any_order():
    """Items that occur several times stay apart, and each has the posterior of its id."""
    item, worker, label, _ = _crowd(40)
    votes = Annotations.from_triples(item, worker, label)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 40, 40)
    again = rng.permutation(40)
    one, other = DawidSkene().fit(votes[rows]), DawidSkene().fit(votes[rows][again])
    assert np.array_equal(other.posterior_, one.posterior_[again])


def test_repeated_labels_follow_one_rule():
    """The last counts, with a counted warning; first, all and error on request; another word is refused."""
    columns = ["a", "b", "a", "a"], ["u", "u", "u", "v"], ["x", "x", "y", "x"]
    with pytest.warns(CrowdWarning, match=r"repeated_labels: 1 label\(s\) .* the last of each counts"):
        last = Annotations.from_triples(*columns)
    assert triples_of(last) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    with pytest.warns(CrowdWarning, match="the first of each counts"):
        first = Annotations.from_triples(*columns, duplicates="first")
    assert triples_of(first) == [(0, 0, 0), (0, 1, 0), (1, 0, 0)]
    assert Annotations.from_triples(*columns, duplicates="all").n_annotations == 4
    with pytest.warns(CrowdWarning, match="1 label"):
        assert Annotations.from_triples(*map(iter, columns), item_ids=iter("cab")).item_ids.tolist() == list("cab")
    with pytest.raises(AnnotationError, match=r"Row 2: worker 'u' labels item 'a' again; 1 such row"):
        Annotations.from_triples(*columns, duplicates="error")
    with pytest.raises(ParameterError, match="`duplicates` is 'newest'; allowed are last, first, all, share, error"):
        Annotations.from_triples(*columns, duplicates="newest")


def test_classes_are_those_of_the_labels_that_count():
    """A class that only a label had that does not count is left out, as it is in files, unless it is given."""
    columns = ["a", "a", "b"], ["u", "u", "u"], ["x", "y", "z"]
    with pytest.warns(CrowdWarning):
        votes = Annotations.from_triples(*columns)
    assert votes.classes[votes.label].tolist() == ["y", "z"] and votes.classes.tolist() == ["y", "z"]
    assert votes == read_annotations(pl.DataFrame(dict(zip(("task", "worker", "label"), columns))))
    with pytest.warns(CrowdWarning):
        assert Annotations.from_triples(*columns, classes=["x", "y", "z"]).n_classes == 3
