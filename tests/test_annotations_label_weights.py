"""Weights of labels: how they are stored, selected, shared and refused."""

import copy
import pickle

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.classes import order_annotations
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError

ROWS = [("b", "gpt", "no", 0.25), ("b", "gpt", "yes", 0.75), ("a", "ann", "yes", 1.0), ("a", "gpt", "no", 0.5)]


def triples(annotations):
    """All labels as a set of (item, worker, label, weight)."""
    weight = np.ones(annotations.n_annotations) if annotations.weight is None else annotations.weight
    values = annotations.item_ids[annotations.item], annotations.worker_ids[annotations.worker]
    return sorted(
        zip(*(column.tolist() for column in (*values, annotations.classes[annotations.label], weight)), strict=True)
    )


def weighted(rows=ROWS, **options):
    *columns, weights = zip(*rows, strict=True)
    return Annotations.from_triples(*columns, weights=weights, **options)


def test_weights_follow_their_labels_whatever_the_order_of_rows():
    made = weighted()
    assert triples(made) == sorted(ROWS)
    assert triples(weighted(ROWS[::-1])) == sorted(ROWS)
    assert triples(made.with_sorted_items()) == sorted(ROWS)
    assert made.with_sorted_items().item_ids.tolist() == ["a", "b"]


def test_weights_are_immutable_compared_and_copied():
    made = weighted()
    with pytest.raises(ValueError, match="read-only"):
        made.weight[0] = 2.0
    with pytest.raises(AttributeError, match="immutable"):
        made.weight = None
    other = weighted([(*row[:3], 0.5) for row in ROWS])
    assert made == weighted(ROWS[:1] + ROWS[1:]) and made != other and made != made.strongest_labels()
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert twin == made and twin.weight is not None


def test_selection_keeps_weights():
    made = weighted()
    assert triples(made[[1]]) == [row for row in sorted(ROWS) if row[0] == "a"]
    assert triples(made[[0, 0]]) == sorted([row for row in ROWS if row[0] == "b"] * 2)
    assert triples(made.keep(made.weight < 0.6)) == [row for row in sorted(ROWS) if row[3] < 0.6]
    assert triples(made.for_rows(["a", "b", "c"])) == sorted(ROWS)
    more = made.with_more(1, 0, 0, 0.1)
    assert triples(more) == sorted([*ROWS, ("a", "ann", "no", 0.1)])
    assert triples(made.with_more([1], [0], [0])) == sorted([*ROWS, ("a", "ann", "no", 1.0)])
    assert triples(order_annotations(made, ["yes", "no"])) == sorted(ROWS)


def test_weights_of_one_are_no_weights():
    plain = Annotations.from_triples("ab", "xy", "01")
    assert Annotations.from_triples("ab", "xy", "01", weights=[1, 1.0]).weight is None
    assert Annotations.from_triples("ab", "xy", "01", weights=[1, 1.0]) == plain
    assert weighted().keep(weighted().weight == 1.0).weight is None


def test_labels_of_weight_0_are_left_out_and_their_items_and_classes_stay():
    made = Annotations.from_triples("ab", "xy", ["0", "1"], weights=[0.0, 0.5])
    assert triples(made) == [("b", "y", "1", 0.5)]
    assert made.item_ids.tolist() == ["a", "b"] and made.classes.tolist() == ["0", "1"]


def test_strongest_labels_keep_one_label_of_each_worker_and_item():
    strongest = weighted().strongest_labels()
    assert triples(strongest) == [("a", "ann", "yes", 1.0), ("a", "gpt", "no", 1.0), ("b", "gpt", "yes", 1.0)]
    assert strongest.strongest_labels() is strongest
    tie = weighted([("a", "x", "no", 0.5), ("a", "x", "yes", 0.5)])
    assert triples(tie.strongest_labels()) == [("a", "x", "no", 1.0)]


def test_voters_and_volumes_count_votes():
    made = weighted()
    assert made.n_voters.tolist() == [1, 2] and made.n_labels.tolist() == [2, 2]
    assert made.worker_volume.tolist() == [1.0, 1.5]
    plain = made.strongest_labels()
    assert plain.n_voters is plain.n_labels and plain.worker_volume.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("last", [0.75]), ("first", [0.25]), ("all", [0.25, 0.75]), ("share", None)],
)
def test_repeated_labels_with_weights(policy, expected):
    rows = [("a", "x", "yes", 0.25), ("a", "x", "yes", 0.75), ("b", "x", "no", 0.5)]
    made = weighted(rows, duplicates=policy)
    if expected is None:  # two answers are one vote; a single one keeps its weight
        assert triples(made) == [("a", "x", "yes", 1.0), ("b", "x", "no", 0.5)]
    else:
        assert sorted(made.weight[made.item == 0].tolist()) == expected


def test_repeated_answers_share_one_vote():
    runs = ["yes", "no", "yes"]
    made = Annotations.from_triples("aaab", ["gpt"] * 3 + ["ann"], [*runs, "no"], duplicates="share")
    assert [(*row[:3], round(row[3], 9)) for row in triples(made)] == [
        ("a", "gpt", "no", round(1 / 3, 9)),
        ("a", "gpt", "yes", round(2 / 3, 9)),
        ("b", "ann", "no", 1.0),
    ]
    same = Annotations.from_triples("aaa", ["gpt"] * 3, ["yes"] * 3, duplicates="share")
    assert same.weight is None and same.n_annotations == 1


def test_probabilities_become_shares_of_one_vote():
    made = Annotations.from_label_probs(["a", "b"], ["gpt", "gpt"], [[0.9, 0.1], [0.0, 1.0]], ["no", "yes"])
    assert triples(made) == [("a", "gpt", "no", 0.9), ("a", "gpt", "yes", 0.1), ("b", "gpt", "yes", 1.0)]
    runs = Annotations.from_label_probs(["a", "a"], ["gpt", "gpt"], [[0.9, 0.1], [0.5, 0.5]], ["no", "yes"])
    assert np.allclose(runs.weight, [0.7, 0.3])
    rounded = Annotations.from_label_probs(["a"], ["gpt"], [[0.33, 0.33, 0.33]], list("abc"))
    assert np.allclose(rounded.weight, 1 / 3)


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_weights_that_are_no_weights_are_refused(weights):
    with pytest.raises(AnnotationError, match="Row 0: the weight of a label is"):
        Annotations.from_triples("ab", "xy", "01", weights=weights)
    with pytest.raises(AnnotationError, match="above 0"):
        Annotations([0], [0], [0], item_ids="a", worker_ids="x", classes="0", weight=[0.0])


def test_other_bad_input_is_answered():
    with pytest.raises(AlignmentError, match="2 labels, but weights of shape"):
        Annotations.from_triples("ab", "xy", "01", weights=[0.5])
    with pytest.raises(AnnotationError, match="must be numbers"):
        Annotations.from_triples("ab", "xy", "01", weights=["a", "b"])
    with pytest.raises(AnnotationError, match="again; 1 such row"):
        weighted([ROWS[0], ROWS[0]], duplicates="error")
    with pytest.raises(ParameterError, match="duplicates"):
        weighted(duplicates="some")
    with pytest.raises(AlignmentError, match="1 rows and 2 classes"):
        Annotations.from_label_probs("a", "x", [[1.0]], ["no", "yes"])
    with pytest.raises(AnnotationError, match=r"Row 0: the probabilities are 0.5, 0.2"):
        Annotations.from_label_probs("a", "x", [[0.5, 0.2]], ["no", "yes"])
    with pytest.raises(AnnotationError, match="Row 1: the probabilities are 2, -1"):
        Annotations.from_label_probs("ab", "xx", [[0.5, 0.5], [2, -1]], ["no", "yes"])
    with pytest.raises(AnnotationError, match="table of numbers"):
        Annotations.from_label_probs("a", "x", [["p", "q"]], ["no", "yes"])
