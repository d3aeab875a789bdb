"""Suggestions for mistyped names."""

import pytest

from manyhands.spelling import closest_match

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
