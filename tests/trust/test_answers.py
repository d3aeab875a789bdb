"""Answers: known classes with how the items were drawn, checked against the annotations."""

import pytest

from manyhands import Annotations, Answers
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust import fingerprint_of

VOTES = Annotations.from_triples(list("aabbcc"), list("xyxyxy"), ["u", "v", "u", "u", "v", "v"])


def test_kinds_are_counted_and_can_be_taken_apart():
    answers = Answers({"a": "u", "b": "u", "c": "v"}, {"a": "random", "b": "contested"})
    assert answers.kinds == {"contested": 1, "random": 1, "unknown": 1}
    assert answers.of_kind("random").values == {"a": "u"}
    assert len(answers.of_kind("random")) == 1


def test_weights_are_sizes_of_strata_over_answers():
    """A plain loop over the strata."""
    stratum = {"a": "big", "b": "small", "c": "small"}
    sizes = {"big": 30, "small": 10}
    weights = Answers(dict.fromkeys("abc", "u"), "contested", stratum, sizes).weights()
    raw = {}
    for item in "abc":
        raw[item] = sizes[stratum[item]] / sum(other == stratum[item] for other in stratum.values())
    mean = sum(raw.values()) / 3
    assert weights == pytest.approx({item: value / mean for item, value in raw.items()})
    assert Answers(dict.fromkeys("abc", "u"), "random", stratum, sizes).weights() == dict.fromkeys("abc", 1.0)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"z": "u"}, "name items that the annotations do not have, such as 'z'"),
        ({"a": "w"}, "name classes that the annotations do not have, such as 'w'"),
        ({}, "no answers"),
    ],
)
def test_bad_answers_are_refused_in_one_sentence(values, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        Answers(values).codes(VOTES)


def test_answers_of_another_export_are_refused():
    answers = Answers({"a": "u"}, fingerprint="0123456789abcdef")
    with pytest.raises(AnnotationError, match="another export"):
        answers.codes(VOTES)
    rows, classes = Answers({"b": "v"}, fingerprint=fingerprint_of(VOTES)).codes(VOTES)
    assert rows.tolist() == [1] and classes.tolist() == [1]


def test_unknown_kinds_are_refused():
    with pytest.raises(ParameterError, match="sampled is 'picked'"):
        Answers({"a": "u"}, "picked")
    with pytest.raises(ParameterError, match="mapping"):
        Answers(["a"])


def test_the_fingerprint_follows_the_labels_alone():
    """Names of workers and the order of items change nothing; a label, an item or a class does."""
    shuffled = Annotations.from_triples(list("ccbbaa"), list("qpqpqp"), ["v", "v", "u", "u", "v", "u"], item_ids="cab")
    assert fingerprint_of(shuffled) == fingerprint_of(VOTES)
    other = Annotations.from_triples(list("aabbcc"), list("xyxyxy"), ["u", "v", "u", "u", "v", "u"])
    more = Annotations.from_triples(list("aabbcc"), list("xyxyxy"), ["u", "v", "u", "u", "v", "v"], item_ids="abcd")
    assert len({fingerprint_of(one) for one in (VOTES, other, more)}) == 3
