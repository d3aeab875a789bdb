"""Answers: known classes with how the items were drawn, checked against the annotations."""

import pytest

from manyhands import Annotations
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust import Answers, Drawing, combine_answers, fingerprint_of

pytestmark = pytest.mark.fast

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


def answers_of(values, items, name, sampled="random"):
    return Answers(values, sampled, drawings=(Drawing(frozenset(items), sampled, ("u", "v"), name),))


def test_answers_of_several_days_are_weighted_by_stratum():
    """Items that belong to the same drawings are a stratum; new ones have none."""
    both = combine_answers([answers_of({"a": "u", "b": "u"}, "abcd", "mon"), answers_of({"e": "v"}, "abcdef", "wed")])
    names, codes = both.strata_of("abcdefg")
    assert names == ("mon + wed", "wed") and codes.tolist() == [0, 0, 0, 0, 1, 1, -1]
    assert both.weights() == pytest.approx({"a": 1.0, "b": 1.0, "e": 1.0})  # 4 / 2 and 2 / 1 items per answer
    more = combine_answers([both, answers_of({"f": "v"}, "abcdef", "wed")])
    assert more.weights() == pytest.approx({"a": 4 / 3, "b": 4 / 3, "e": 2 / 3, "f": 2 / 3})
    assert more.part("ab").weights() == {"a": 1.0, "b": 1.0}
    assert [one.name for one in more.drawings] == ["mon", "wed 1", "wed 2"]


def test_random_answers_beat_contested_ones_and_contradictions_are_refused():
    contested = answers_of({"a": "u", "b": "v"}, "abc", "hard", "contested")
    both = combine_answers([contested, answers_of({"a": "u"}, "abc", "mon")])
    assert both.kinds == {"contested": 1, "random": 1} and set(both.of_kind("random").values) == {"a"}
    with pytest.raises(AnnotationError, match="two answers, 'u' and 'v'"):
        combine_answers([contested, answers_of({"a": "v"}, "abc", "mon")])
    with pytest.raises(ParameterError, match="do not say from which items"):
        combine_answers([Answers({"a": "u"}, "random"), answers_of({"b": "u"}, "abc", "mon")])
    with pytest.raises(AnnotationError, match="'z' is answered as a random item"):
        answers_of({"z": "u"}, "abc", "mon")


def test_only_other_classes_and_vanished_items_are_refused():
    """Labels and items may be added: the sample stays a random one of the items that it was drawn from."""
    rows, _ = answers_of({"a": "u"}, "ab", "mon").codes(VOTES)
    assert rows.tolist() == [0]
    with pytest.raises(AnnotationError, match="1 of the 4 items from which mon was drawn is not in this export: 'z'"):
        answers_of({"a": "u"}, "abcz", "mon").codes(VOTES)
    for classes, what in ((("u",), "'v' is new"), (("u", "v", "w"), "'w' is gone")):
        with pytest.raises(AnnotationError, match=f"classes changed since mon was drawn: {what}"):
            Answers({"a": "u"}, "random", drawings=(Drawing(frozenset("ab"), "random", classes, "mon"),)).codes(VOTES)
