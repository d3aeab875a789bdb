"""Suggestions for mistyped names."""

import pytest

from manyhands._core.spelling import closest_match, did_you_mean

pytestmark = pytest.mark.fast

NAMES = ["learning_rate", "max_epochs", "dropout", "random_state", "Dawid-Skene", "majority-vote"]


@pytest.mark.parametrize(
    "word, expected",
    [
        ("learning_rate", "learning_rate"),
        ("learningrate", "learning_rate"),
        ("lr", "learning_rate"),
        ("rate", "learning_rate"),
        ("LEARNING_RAT", "learning_rate"),
        ("epochs", "max_epochs"),
        ("drop_out", "dropout"),
        ("dawid_skene", "Dawid-Skene"),
        ("DS", "Dawid-Skene"),
        ("mv", "majority-vote"),
        ("r", None),
        ("", None),
        ("zzz", None),
        (17, None),
        (None, None),
    ],
)
def test_the_closest_name_is_suggested(word, expected):
    """By similarity, initials or a whole part, whatever the case; nothing where nothing is similar."""
    assert closest_match(word, NAMES) == expected


def test_candidates_may_be_any_iterable_or_none_at_all():
    assert closest_match("a", iter(["b", "a"])) == "a"
    assert closest_match("a", []) is None


def test_the_first_of_equally_similar_candidates_is_suggested():
    """So that the suggestion does not depend on anything but the order of the names."""
    assert closest_match("rate", ["weight_rate", "learning_rate"]) == "weight_rate"
    assert closest_match("rate", ["learning_rate", "weight_rate"]) == "learning_rate"


def test_initials_come_before_similar_spelling():
    assert closest_match("lr", ["lrx", "learning_rate"]) == "learning_rate"
    assert closest_match("lrx", ["lrx", "learning_rate_x"]) == "lrx"


def test_did_you_mean_is_a_sentence_to_append():
    """With a leading space and the name as it was given; nothing where nothing is similar."""
    assert did_you_mean("lr", NAMES) == " Did you mean 'learning_rate'?"
    assert did_you_mean("dawid_skene", NAMES) == " Did you mean 'Dawid-Skene'?"
    assert did_you_mean("zzz", NAMES) == did_you_mean("lr", []) == ""
