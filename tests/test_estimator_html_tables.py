"""What a notebook shows of annotations and of models that are not fitted: plain tables in the colours of the page.

What it shows of fitted models, scorecards and comparisons is in tests/report/test_notebook.py.
"""

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import manyhands as mh
from manyhands import registry
from manyhands._core.html_tables import facts, page, shown_value, table

NASTY = "<script>alert('x')</script>"


ALLOWED = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "progress"}


class Checked(HTMLParser):
    """Well-formed HTML of the few elements that are allowed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.cells, self.n_rows = [], [], 0
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag in ALLOWED and {name for name, _ in attributes} <= {"style", "scope", "dir", "value", "max"}
        self.open.append(tag)
        self.n_rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def texts(html):
    return Checked(html).cells


@pytest.fixture(scope="module")
def nasty():
    columns = [[NASTY, NASTY, "b", "b"], ["<b>", "&", "<b>", "&"], ["'\"", "'\"", "\u202e<i>", "\u202e<i>"]]
    return mh.Annotations.from_triples(*columns)


def views(votes):
    """Everything that has an HTML form, of one crowd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield votes._repr_html_()
        yield mh.DawidSkene(smoothing=0.5)._repr_html_()


def test_everything_is_escaped(nasty):
    for html in views(nasty):
        assert "<script" not in html and "<b>" not in html and "\u202e" not in html
        assert Checked(html).n_rows
    assert NASTY in texts(nasty._repr_html_())


def test_colours_are_those_of_the_page(nasty):
    """No colour of text or background, so that light and dark notebooks show it alike; lines are half transparent."""
    for html in views(nasty):
        colours = re.findall(r"(?:color|background)\s*:\s*([^;\"]+)", html)
        assert colours and set(colours) <= {"inherit", "transparent"}
        assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|https?:", html)


def test_size_is_bounded():
    """A crowd of a thousand workers and 40 classes gives as many rows as one of fifty."""
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((300, 1000)) < 0.02, rng.integers(40, size=(300, 1000)), -1)
    for html in views(mh.Annotations.from_matrix(matrix)):
        assert len(html) < 60_000 and Checked(html).n_rows < 60


def test_annotations_are_described():
    votes = mh.Annotations.from_triples(["a", "a", "b"], [1, 2, 1], ["x", "y", "x"], item_ids=["a", "b", "c"])
    cells = texts(votes._repr_html_())
    for expected in ("Annotations", "labels per item", "0 to 2, mean 1.0", "0.667", "First labels"):
        assert expected in cells
    assert "0" in texts(mh.Annotations.from_matrix(np.zeros((0, 0)))._repr_html_())


@pytest.mark.parametrize("name", registry.names())
def test_unfitted_models_say_what_to_call(name):
    model = registry.create(name)
    cells = texts(model._repr_html_())
    assert shown_value(repr(model)) in cells and f"call fit{model._fit_takes}" in cells


def test_values():
    """Numbers with three digits or separated thousands, undefined values empty, text cut and on one line."""
    assert [shown_value(v) for v in (None, np.nan, 1234567, np.int64(3), 0.12345, np.float32(2), True)] == [
        "", "", "1,234,567", "3", "0.123", "2.000", "yes",
    ]  # fmt: skip
    assert shown_value("a\nb\x1b[31m") == "a b [31m" and len(shown_value("x" * 1000)) == 203
    assert facts({}) == "" and facts({"a": None}) == ""
    assert texts(page("t", table(["n", "s"], [(1, "x"), (None, "y")], 5))) == [
        "t",
        "n",
        "s",
        "1",
        "x",
        "y",
        "and 3 more",
    ]
