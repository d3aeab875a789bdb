"""The order of classes: from numbers, from text with numbers, from known words, or as given."""

import pytest

from manyhands import Annotations
from manyhands.classes import grade_values, looks_ordered, order_annotations, order_codes
from manyhands.exceptions import AnnotationError, ParameterError


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([1, 10, 2], [1, 2, 10]),
        (["1", "10", "2"], ["1", "2", "10"]),
        (["-1", "0", "1.5"], ["-1", "0", "1.5"]),
        (["grade 10", "grade 2", "grade 9"], ["grade 2", "grade 9", "grade 10"]),
        (["1 - bad", "3 - good", "2 - fair"], ["1 - bad", "2 - fair", "3 - good"]),
        (["1 star", "3 stars", "2 stars"], ["1 star", "2 stars", "3 stars"]),
        (["Agree", "Disagree", "Neutral"], ["Disagree", "Neutral", "Agree"]),
        (["agree", "strongly_disagree", "disagree"], ["strongly_disagree", "disagree", "agree"]),
    ],
)
def test_classes_with_an_order_of_their_own(classes, expected):
    """Numbers are compared as numbers, known words by their scale."""
    assert [classes[code] for code in order_codes(classes)] == expected


def test_a_given_order_decides():
    """Also against the numbers, and with grades that no label names; text names classes that are integers."""
    assert order_codes(["a", "b"], ["b", "a"]).tolist() == [1, 0]
    assert order_codes([1, 2, 4], ["4", "3", "2", "1"]).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "classes", [["bad", "good", "ok-ish"], ["cat", "dog", "owl"], ["a1", "b2", "c3"], [True, False]]
)
def test_classes_without_an_order_are_refused(classes):
    """Alphabetical order is never used; the sentence names the remedy."""
    with pytest.raises(AnnotationError, match="have no known order; name them from low to high: `order=`"):
        order_codes(classes)


def test_an_order_must_be_complete():
    """Every class once."""
    with pytest.raises(ParameterError, match="lacks 'ok'; name all 3 classes"):
        order_codes(["bad", "good", "ok"], ["bad", "good"])
    with pytest.raises(ParameterError, match="names 'bad' twice"):
        order_codes(["bad", "good"], ["bad", "good", "bad"])


def test_grades_are_numbers_or_ranks():
    """Numbers where they ascend in the order, otherwise ranks."""
    assert grade_values(["0", "5", "10"]).tolist() == [0, 5, 10]
    assert grade_values(["2 - fair", "7 - good"]).tolist() == [2, 7]
    assert grade_values(["bad", "ok", "good"]).tolist() == [1, 2, 3]
    assert grade_values([3, 2, 1]).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "classes",
    [
        ["1", "2", "3", "4", "5"],
        [0, 1, 2, 3, 4],
        list(range(11)),
        list(range(1, 11)),
        ["-2", "-1", "0", "1", "2"],
        ["1 star", "2 stars", "3 stars"],
        ["2", "4", "5"],
        ["2", "4", "5", "9"],
        ["negative", "neutral", "positive"],
        ["Strongly agree", "agree", "disagree"],
    ],
)
def test_scales_are_recognised(classes):
    """Successive numbers and words of known scales."""
    assert looks_ordered(classes)


@pytest.mark.parametrize(
    "classes",
    [[0, 1], ["1", "2"], list(range(10)), [1, 2, 7], [0, 2, 3], ["cat", "dog", "owl"], [10, 11, 12], ["yes", "no"], []],
)
def test_other_classes_are_not_taken_for_a_scale(classes):
    """Two classes, ten digits, codes with gaps, names."""
    assert not looks_ordered(classes)


def test_ordered_annotations_keep_their_labels():
    """Only the codes change; grades without labels become classes, and parts of the annotations stay ordered."""
    votes = Annotations.from_triples([0, 0, 1, 1], "abab", ["2", "10", "1", "2"])
    ordered = order_annotations(votes)
    assert ordered.classes.tolist() == ["1", "2", "10"] and ordered.is_ordered and not votes.is_ordered
    assert ordered.classes[ordered.label].tolist() == votes.classes[votes.label].tolist()
    assert ordered[[1]].is_ordered and ordered.keep([0]).is_ordered and ordered.with_more(0, 0, 0).is_ordered
    wider = order_annotations(votes, ["10", "5", "2", "1"])
    assert wider.classes.tolist() == ["10", "5", "2", "1"]
    assert wider.classes[wider.label].tolist() == votes.classes[votes.label].tolist()
