"""Pictures: numbers of heat maps are all there or none, names fit, scales have ticks, sentences about shares."""

import re

import numpy as np
import pytest

import manyhands as mh
from manyhands.report import PANELS, make_run
from manyhands.report.drawing import WIDTH, Dot, columns, dots, heat_map, log_ticks
from manyhands.report.wording import fit_lines, fit_text, share_that, text_width, visible
from manyhands.simulate import make_crowd

pytestmark = pytest.mark.fast

_TEXT = re.compile(r'<text(?: class="([^"]*)")? x="([-\d.]+)" y="[-\d.]+"(?: text-anchor="(\w+)")?>([^<]*)</text>')


def _map(n, values=None, **options):
    names = [f"name {k}" for k in range(n)]
    matrix = np.full((n, n), 0.5) if values is None else values
    titles = {"y_title": "rows", "x_title": "columns"}
    return heat_map(matrix, names, names, "label", format_cell=lambda v: f"{100 * v:.0f}", **titles, **options)


@pytest.mark.parametrize("n", [2, 8, 16, 30, 60])
def test_numbers_of_a_heat_map_are_all_shown_or_none(n):
    """Where there is no room for the widest number, a scale of colours stands below the map."""
    values = np.full((n, n), 0.5)
    values[0, 1], values[1, 1] = 1.0, np.nan
    svg = _map(n, values, most=1.0)
    cells = [text for kind, _, _, text in _TEXT.findall(svg) if kind.startswith("cell")]
    has_scale = ">0</text>" in svg and ">100</text>" in svg.rsplit("<rect", 1)[1]
    assert len(cells) in (0, n * n - 1) and has_scale == (not cells)
    assert cells if n <= 8 else not (n >= 30 and cells)


def test_a_cell_of_zero_is_not_a_missing_one():
    """Zero has a faint colour, a missing value none; the strongest colour is that of the largest cell."""
    svg = _map(2, np.array([[0.0, np.nan], [0.2, 0.4]]))
    strengths = [float(s) for s in re.findall(r'class="heat"[^>]*fill-opacity="([\d.]+)"', svg)]
    assert len(strengths) == 3 and strengths[0] == 0.05 and max(strengths) == 0.62
    from_least = _map(2, np.array([[0.9, 1.0], [0.9, 0.95]]), least=0.9, most=1.0)
    assert [float(s) for s in re.findall(r'fill-opacity="([\d.]+)"', from_least)][:2] == [0.05, 0.62]


def test_names_of_columns_stay_inside_the_picture():
    """The last name is moved to the left where it would be cut."""
    svg = columns(["1"] * 10 + ["1024–2047"], range(11), "label", "x", "y")
    for _, x, anchor, text in _TEXT.findall(svg):
        half = text_width(text) / 2 if anchor == "middle" else 0
        assert float(x) + half <= WIDTH + 0.1


@pytest.mark.parametrize(("first", "last"), [(28, 45), (48, 75), (40, 41), (1, 9), (1, 1e6), (160, 230)])
def test_a_logarithmic_scale_has_ticks_to_read_it(first, last):
    """Two ticks or more wherever the range is not nearly a point."""
    found = log_ticks(first * 0.8, last * 1.25)
    assert 2 <= len(found) <= 8 and found == sorted(found)


def test_texts_that_fit():
    """Lines break between words, names are cut with an ellipsis, wide letters count twice."""
    assert fit_lines("one two three", text_width("one two")) == ["one two", "three"]
    assert fit_lines("a-word-that-is-too-wide x", 20) == ["a-word-that-is-too-wide", "x"]
    assert fit_text("abcdef-12", text_width("abc…2")) == "abc…2" and fit_text("ab", 100) == "ab"
    assert text_width("漢字") == 2 * text_width("ab")


def test_intervals_are_drawn_inside_the_scale():
    """Ends beyond the scale are at its ends."""
    svg = dots([("row", [Dot(0.5, -1.0, 2.0)])], "label", low=0.0, high=1.0)
    x1, x2 = re.search(r'class="s0 whisker" x1="([\d.]+)"[^>]* x2="([\d.]+)"', svg).groups()
    low, high = (re.search(rf'text-anchor="middle">{t}</text>', svg) for t in ("0", "1"))
    assert low and high and 0 < float(x1) < float(x2) <= WIDTH


@pytest.mark.parametrize(
    ("count", "n", "expected"),
    [(0, 5, "No label has"), (5, 5, "All labels have"), (1, 5, "20% of the labels have"), (0, 0, "No label has")],
)
def test_shares_of_none_and_all(count, n, expected):
    assert share_that(("has", "have"), count, n, "label") == expected


def test_visible_text_is_one_line_without_marks_of_direction():
    r"""Every letter is either printable or an escape; joiners, which scripts need, stay."""
    assert visible("a\u202eb\nc\x00\u2067") == "a\\u202eb c\\x00\\u2067"
    assert visible("\u0646\u200c\u0627") == "\u0646\u200c\u0627" and visible("x" * 300) == "x" * 199 + "…"


def test_pairs_of_workers_are_drawn_where_most_are_known():
    """With a few pairs of hundreds of workers the map would be empty: the table has them."""
    few = make_crowd(400, 120, 3, 5, random_state=0).annotations
    many = make_crowd(200, 8, 3, 4, random_state=0).annotations
    found = [PANELS["agreement"](make_run(mh.MajorityVote().fit(a))) for a in (few, many)]
    assert [len(panel.svg) for panel in found] == [1, 2]
    assert all(any("Pairs" in table.caption for table in panel.table) for panel in found)


def test_many_classes_are_two_pictures_and_a_note():
    """Twenty-four classes are drawn side by side; a note names the number of all."""
    a = make_crowd(600, 12, 40, 3, random_state=0).annotations
    panel = PANELS["class-balance"](make_run(mh.MajorityVote().fit(a)))
    assert len(panel.svg) == 2 and "24 most frequent of 40 classes" in " ".join(panel.notes)
    assert len(panel.table[0].rows) == 40


def test_a_small_excess_of_the_posterior_is_no_warning():
    """99% right where the posterior claims 99.9%: a title, not an alert."""
    from manyhands.report.panels.labels import _claim

    assert _claim(0.99, 0.999, (0.985, 0.995)) == ("slightly fewer than the posterior claims", ())
    assert _claim(0.9, 0.99, (0.88, 0.92))[1][0].severity == "warning"
    assert _claim(0.9, 0.91, (0.88, 0.92)) == ("as the posterior claims", ())
