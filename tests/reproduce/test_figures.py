"""What tables say of their figures, and what is refused."""

import pytest

from manyhands.exceptions import ParameterError
from manyhands.reproduce.parsing import parse_table
from manyhands.reproduce.plots import file_names
from manyhands.reproduce.tables import Picture

TOML = """
title = "t"
paper = "p"
number = "n"
metrics = ["accuracy", "ece"]
series = ["roc", "recall"]
{more}
[[datasets]]
name = "blobs"
make = "make_blobs"
[[rows]]
name = "vote"
method = "majority-vote"
"""


def parsed(more):
    return parse_table(TOML.format(more=more), "own/t")


def test_without_a_word_a_table_has_dots_of_its_first_metric():
    """In a file with its name."""
    assert file_names(parsed("")) == {"own-t.svg": Picture("dots", "accuracy")}
    both = parsed('figure = { metrics = ["accuracy", "ece"] }')
    assert list(file_names(both)) == ["own-t-accuracy.svg", "own-t-ece.svg"]
    assert list(file_names(both).values()) == [Picture("dots", "accuracy"), Picture("dots", "ece")]
    assert both.drawn == ("accuracy", "ece")


FOUR = """figures = [
    { metrics = ["accuracy"] },
    { kind = "boxes", suffix = "spread", metrics = ["accuracy", "ece"], rows = ["vote"] },
    { kind = "series", series = ["roc"], x_label = "rate" },
    { kind = "scatter", suffix = "both", metrics = ["ece", "accuracy"] },
]"""


def test_several_figures_have_a_file_each():
    """By suffix, metric or series; those of several metrics by both."""
    assert file_names(parsed(FOUR)) == {
        "own-t-accuracy.svg": Picture("dots", "accuracy"),
        "own-t-spread-accuracy.svg": Picture("boxes", "accuracy", suffix="spread-accuracy", rows=("vote",)),
        "own-t-spread-ece.svg": Picture("boxes", "ece", suffix="spread-ece", rows=("vote",)),
        "own-t-roc.svg": Picture("series", series=("roc",), x_label="rate"),
        "own-t-both.svg": Picture("scatter", "accuracy", suffix="both", against="ece"),
    }


def test_levels_are_metrics_of_the_table():
    """Horizontal lines beside curves."""
    one = parsed('figure = { series = ["recall"], levels = ["accuracy"] }')
    assert one.figures == (Picture("series", series=("recall",), levels=("accuracy",)),)
    with pytest.raises(ParameterError, match=r"no metric in this table called 'auc'"):
        parsed('figure = { series = ["recall"], levels = ["auc"] }')


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('figure = { kind = "pie" }', "kind must be"),
        ('figure = { kind = "lines" }', "lines need x"),
        ('figure = { kind = "series" }', "curves need series"),
        ('figure = { kind = "dots", series = ["roc"] }', "dots show metrics"),
        ('figure = { series = ["rok"] }', "no series in this table called 'rok'; the nearest is 'roc'"),
        ('figure = { kind = "scatter", metrics = ["ece"] }', "two metrics"),
        ('figure = { rows = ["votes"] }', "no row of this table called 'votes'; the nearest is 'vote'"),
        ('figure = { datasets = ["blob"] }', "no data set of this table called"),
        ('figure = { series = ["roc"], component = 1, at = 1 }', "not both"),
        ('figure = { colour = "red" }', "there is no key 'colour'"),
        ('figures = [{}]\nfigure = { metrics = ["ece"] }', "either figure or figures"),
        ("figures = [{}, {}]", "two figures would have the file name of accuracy"),
    ],
)
def test_a_mistake_is_one_sentence(more, problem):
    """That names the table."""
    with pytest.raises(ParameterError, match="own/t") as caught:
        parsed(more)
    assert problem in str(caught.value) and "\n" not in str(caught.value)
