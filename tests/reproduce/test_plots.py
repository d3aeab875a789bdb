"""Figures in SVG."""

import math
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from manyhands.exceptions import ParameterError
from manyhands.report.drawing import Box, Plot, Trace, figure
from manyhands.reproduce import pages
from manyhands.reproduce.cells import cells_of
from manyhands.reproduce.plots import _side_by_side, described, limits, pictures_of, to_svg
from manyhands.reproduce.tables import Picture, Published
from measuring import CROWD, FOLDED, LINEAR, SKENE, VOTE, made_up, small_table

TEXT = "{http://www.w3.org/2000/svg}text"
SETS = [replace(CROWD, name=f"{share:.0%} gone", remove=share) for share in (0.0, 0.2, 0.4)]
OVER = [replace(VOTE, published={d.name: Published(85.0) for d in SETS}), SKENE]


def page_of(table):
    values = {(d.name, row.name): [0.9, 0.8 + d.remove / 9] for d in table.datasets for row in table.rows}
    return pages.page(table, cells_of(table), made_up(table, values), "manyhands reproduce own/small")


@pytest.mark.parametrize(
    "table", [small_table(), small_table(OVER, SETS, figure={"x": "remove"})], ids=["dots", "lines"]
)
def test_the_same_page_gives_the_same_bytes(table):
    """No date, no ids drawn at random; every row and published values are named."""
    drawn = to_svg(table, page_of(table))
    assert drawn == to_svg(table, page_of(table)) and drawn.startswith(b"<svg ")
    for word in (VOTE.name.encode(), b"D&amp;S", b"published", b"accuracy (%)"):
        assert word in drawn
    assert (b">share of annotations removed<" in drawn) == (table.figure is not None)


@pytest.mark.parametrize("is_line", [False, True])
def test_any_name_gives_well_formed_xml(is_line):
    """Control characters, half surrogate pairs, signs of XML and of mathematics, and what is usually hidden."""
    odd = ["\x1b[31mred", "a\x00b\x07", "\ud800 half", "<&>'\"", "$\\frac{$", "_hidden", "\ufffe\x85", "é"]
    rows = [replace(OVER[at % 2], name=name, published={}) for at, name in enumerate(odd)]
    sets = [replace(entry, name=f"{entry.name}\x1b]0;x\x07", make="\x1bmake") for entry in SETS]
    table = small_table(rows, sets, **({"figure": {"x": "remove"}} if is_line else {}))
    drawn = to_svg(table, page_of(table))
    text = "".join(ElementTree.fromstring(drawn).itertext())
    wanted = [
        "\\x1b[31mred",
        "a\\x00b\\x07",
        "\\ud800 half",
        "<&>'\"",
        "$\\frac{$",
        "_hidden",
        "\\ufffe\\x85",
        "é",
    ]
    assert all(name in text for name in wanted)


def svg_text(drawn):
    return "".join(ElementTree.fromstring(drawn).itertext())


def panels_of(table, shown, picture=None):
    """The panels of a figure, before they are drawn."""
    return described(table, shown, picture or pictures_of(table)[0])[1]


def size_of(drawn):
    """Width and height of a picture."""
    return [float(value) for value in ElementTree.fromstring(drawn).get("viewBox").split()[2:]]


def test_a_table_of_methods_is_read_from_the_top():
    """A dot with its interval for each method, published values hollow, and an axis that does not begin at zero."""
    table = small_table(seeds=3)
    values = {("crowd", "vote"): [0.84, 0.85, 0.86], ("crowd", "D&S"): [0.88, 0.9, 0.92]}
    shown = pages.page(table, cells_of(table), made_up(table, values), "")
    rows, (panel,) = described(table, shown, pictures_of(table)[0])
    assert rows == ["vote", "D&S"]
    measured, published = panel.traces
    assert (measured.x[0], measured.y[0], measured.mark) == (pytest.approx(85), 0, "full")
    half = 4.302653 * 1.0 / 3**0.5  # t distribution with two degrees of freedom
    assert (measured.low[0], measured.high[0]) == pytest.approx((85 - half, 85 + half), abs=1e-4)
    assert published.x[0] == 90 and published.mark == "hollow" and 0 < published.y[0] < 0.5
    left, right = panel.x
    assert 75 < left < 83 and 95 < right <= 100.5
    assert "95% interval over seeds" in panel.x_title
    heights = {text.text: float(text.get("y")) for text in ElementTree.fromstring(to_svg(table, shown)).iter(TEXT)}
    assert heights["vote"] < heights["D&S"]  # the first row is the highest


def test_intervals_over_folds_are_wider():
    """Their training items overlap: the variance of the mean is 1/n + 1/(folds - 1) times that of the values."""
    table = small_table([LINEAR], [FOLDED], seeds=3)
    shown = pages.page(table, cells_of(table), made_up(table, {("folded", "linear"): [0.84, 0.85, 0.86]}), "")
    assert shown["entries"][0]["interval"] == pytest.approx(4.302653 * (1 / 3 + 1 / 4) ** 0.5, abs=1e-4)
    assert page_of(small_table())["entries"][0]["interval"] is None  # two seeds


def test_many_methods_make_a_high_figure():
    """And many data sets several lines of panels, within the width of a page."""
    rows = [replace(VOTE, name=f"a method with a long name, number {n}", published={}) for n in range(20)]
    sizes = {}
    for n_rows, n_sets in ((2, 1), (20, 1), (20, 7)):
        sets = [replace(CROWD, name=f"set {n}") for n in range(n_sets)]
        table = small_table(rows[:n_rows], sets)
        sizes[n_rows, n_sets] = size_of(to_svg(table, page_of(table)))
        assert len(panels_of(table, page_of(table))) == n_sets
    assert sizes[20, 1][1] > sizes[2, 1][1] + 18 * 23 and sizes[20, 7][1] > 2 * sizes[20, 1][1]
    assert all(width <= 900 for width, _ in sizes.values())


def test_labels_of_an_axis_are_as_many_as_fit():
    """Values that differ by little have ticks such as 0.9325, which would overlap in a narrow panel."""
    rows = [replace(row, published={}) for row in (VOTE, SKENE)]
    table = small_table(rows, [CROWD, replace(CROWD, name="other")], points=False)
    values = {(name, row.name): [0.9329 + 0.0108 * at] for name in ("crowd", "other") for at, row in enumerate(rows)}
    drawn = to_svg(table, pages.page(table, cells_of(table), made_up(table, values), ""))
    labels = [text for text in ElementTree.fromstring(drawn).iter(TEXT) if text.text.startswith("0.9")]
    places = sorted(float(text.get("x")) for text in labels)
    assert 4 <= len(places) <= 8 and min(b - a for a, b in pairwise(places)) > 40


def test_limits_fit_the_values_and_cut_what_is_far_beyond():
    """An interval of a method that failed once does not hide the others."""
    assert limits([80, 90], [79, 91], (0, 100)) == pytest.approx((79 - 0.72, 91 + 0.72))
    low, high = limits([80, 90], [-200, 300], (0, 100))
    assert 70 < low < 80 and 90 < high <= 100.7
    assert limits([100.0], [100.0], (0, 100))[1] > 100 and limits([], [], None)[0] < 0


CURVES = {"roc": [0.0, 0.5, 1.0], "expertise": [0.6, 0.7, 0.5, 0.8], "rounds.n": [[1.0, 2.0], [3.0, None]]}


def with_series(rows=(VOTE, SKENE), **others):
    table = small_table(rows, seeds=3, series=tuple(CURVES), **others)
    records = made_up(table, {("crowd", row.name): [0.9, 0.8, 0.85] for row in rows}, series=CURVES)
    return table, pages.page(table, cells_of(table), records, "")


def test_a_page_has_the_series_of_every_seed():
    """Seeds that were not measured have none."""
    table, shown = with_series()
    found = [one for one in shown["series"] if one["series"] == "roc"]
    assert [one["row"] for one in found] == ["vote", "D&S"]
    assert sorted(found[0]["values"]) == ["1000", "1001", "1002"] and found[0]["values"]["1001"] == CURVES["roc"]
    empty = pages.page(table, cells_of(table), made_up(table, {}), "")
    assert all(one["values"] == {} for one in empty["series"])


def points(trace):
    return list(zip(trace.x, trace.y))


def test_curves_of_series():
    """The mean of the seeds over a grid, over positions, and of one entry of lists."""
    table, shown = with_series([VOTE])
    (panel,) = panels_of(table, shown, Picture("series", series=("roc",)))
    assert points(panel.traces[0]) == [(0, 0), (0.5, 0.5), (1, 1)]
    assert panel.x_title == "false positive rate"
    (panel,) = panels_of(table, shown, Picture("series", series=("rounds.n",), component=0, first=0))
    assert points(panel.traces[0]) == [(0, 1), (1, 3)] and panel.x_title == "round"
    last = Picture("series", series=("rounds.n",), at=-1, ticks=("cat", "dog"), y_label="votes")
    (panel,) = panels_of(table, shown, last)
    assert panel.traces[0].y[0] == 3 and math.isnan(panel.traces[0].y[1])
    assert list(panel.x_names.values()) == ["cat", "dog"]


def test_a_missing_number_interrupts_a_curve():
    """And its band; the numbers on both sides stay."""
    trace = Trace(
        "a", [1, 2, 3, 4], [1, math.nan, 3, 4], 0, [1, math.nan, 2, 3], [1, math.nan, 4, 5], line="", is_band=True
    )
    drawn = figure([Plot("p", [trace], (0, 5), "x", (0, 5), "y")], "label")
    lines = [len(line.split()) for line in re.findall(r'polyline class="s0 curve" points="([^"]+)"', drawn)]
    bands = [len(band.split()) for band in re.findall(r'polygon class="s0 band" points="([^"]+)"', drawn)]
    assert lines == [1, 2, 2] and bands == [2, 4]  # the last line is that of the legend
    assert drawn.count("<circle") == 4


def test_levels_are_horizontal_lines_at_the_mean_of_a_metric():
    """Beside a series, a share is no per cent; they reach from one side of the panel to the other."""
    table, shown = with_series([VOTE])
    picture = Picture("series", series=("roc",), levels=("accuracy",))
    for is_percent, scale in ((True, 100), (False, 1)):
        (panel,) = panels_of(table, shown | {"points": is_percent}, picture)
        level = next(trace for trace in panel.traces if trace.name == "accuracy")
        mean = next(one["mean"] for one in shown["entries"] if one["metric"] == "accuracy")
        assert level.y == [pytest.approx(mean / scale)] * 2 and level.x == [-math.inf, math.inf]
    drawn = to_svg(table, shown, picture).decode()
    left, right = re.search(r'line class="axis" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', drawn).groups()
    (ends,) = re.findall(rf'polyline class="s1 curve dotted" points="{left},([\d.]+) {right},([\d.]+)"', drawn)
    assert ends[0] == ends[1]


def test_a_scatter_plot_of_estimated_against_simulated_values():
    """The second half of the list is along the axis; two metrics have a point for each seed."""
    table, shown = with_series([VOTE], metrics=("accuracy", "ece"))
    (panel,) = panels_of(table, shown, Picture("scatter", series=("expertise",)))
    diagonal, cloud = panel.traces
    assert points(cloud) == [(0.5, 0.6), (0.8, 0.7)] * 3 and points(diagonal) == [(0.5, 0.5), (0.8, 0.8)]
    assert (panel.x_title, panel.y_title) == ("simulated", "estimated")
    for entry in shown["entries"]:
        entry["values"] = {"1": 1.0, "2": 2.0} if entry["metric"] == "ece" else {"2": 5.0, "3": 7.0}
    (panel,) = panels_of(table, shown, Picture("scatter", "accuracy", against="ece"))
    assert points(panel.traces[0]) == [(2, 5)] and panel.x_title == "ECE (%)"


@pytest.mark.parametrize("picture", [Picture("boxes", "accuracy"), Picture("boxes", series=("expertise",))])
def test_boxes_over_seeds_or_over_a_series(picture):
    """With the numbers themselves."""
    table, shown = with_series([VOTE])
    (panel,) = panels_of(table, shown, picture)
    numbers = [90, 80, 85] if picture.metric else CURVES["expertise"] * 3
    assert sorted(panel.traces[0].x) == sorted(panel.boxes[0].numbers) == pytest.approx(sorted(numbers))


def test_a_box_ends_at_the_quartiles():
    """By hand: of 0, 10, ..., 100 on an axis from 0 to 100."""
    plot = Plot("p", [], (0.0, 100.0), "x", boxes=[Box(range(0, 101, 10), 0, 0)])
    drawn = figure([plot], "label", rows=["a"])
    left, right = map(float, re.search(r'line class="axis" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', drawn).groups())
    (box,) = re.findall(r'polygon class="s0 whisker hollow" points="([^"]+)"', drawn)
    ends = sorted({float(place.split(",")[0]) for place in box.split()})
    assert ends == pytest.approx([left + 0.25 * (right - left), left + 0.75 * (right - left)], abs=0.1)


@pytest.mark.parametrize("panels", ["datasets", "rows"])
@pytest.mark.parametrize("kind", ["series", "scatter"])
def test_every_kind_gives_the_same_bytes_twice(kind, panels):
    """And names the methods."""
    table, shown = with_series()
    picture = Picture(kind, series=("expertise",), panels=panels, title="All of it")
    drawn = to_svg(table, shown, picture)
    assert drawn == to_svg(table, shown, picture)
    assert all(word in svg_text(drawn) for word in ("vote", "D&S", "All of it"))


def test_a_figure_shows_some_rows_and_sets_only():
    """As it names them."""
    table = small_table([VOTE, SKENE], [CROWD, replace(CROWD, name="other")])
    text = svg_text(to_svg(table, page_of(table), Picture("dots", "accuracy", rows=("vote",), datasets=("other",))))
    assert "vote" in text and "other" in text and "D&S" not in text and "crowd" not in text


def test_where_a_set_stands_on_the_axis():
    """By a field of it or one of its arguments; anything else is one sentence."""
    table = small_table([SKENE], SETS, figure={"x": "remove"})
    assert [table.place(d, SKENE) for d in table.datasets] == [0.0, 0.2, 0.4]
    assert replace(table, figure={"x": "n_items"}).place(SETS[0], SKENE) == 60
    for strange in ("name", "nowhere"):
        with pytest.raises(ParameterError, match=f"drawn over '{strange}', which is no number"):
            replace(table, figure={"x": strange}).place(SETS[0], SKENE)


def test_workers_are_numbered_points_of_sensitivity_and_specificity():
    """Of the first seed, estimated and simulated: two workers with accuracies .6 and .7 in class 0, .7 and .8 in 1."""
    table, shown = with_series([VOTE])
    values = {"1000": [0.6, 0.7, 0.5, 0.8, 0.65, 0.75, 0.65, 0.75]}
    shown = shown | {"series": [one | {"values": values} for one in shown["series"] if one["series"] == "expertise"]}
    (panel,) = panels_of(table, shown, Picture("workers", series=("expertise",), panels="rows"))
    estimated, simulated = panel.traces
    assert points(estimated) == [(0.7, 0.6), (0.8, 0.5)] and estimated.names == ["1", "2"]
    assert points(simulated) == [(0.75, 0.65), (0.75, 0.65)] and simulated.names == ["1, 2", ""]
    assert (panel.x_title, panel.y_title) == ("sensitivity", "specificity") and panel.x == panel.y
    assert ">1, 2</text>" in to_svg(table, shown, Picture("workers", series=("expertise",), panels="rows")).decode()


def test_classes_have_no_lines_between_them_and_one_scale():
    """Names of positions are categories; their intervals stand side by side."""
    table, shown = with_series()
    picture = Picture("series", series=("rounds.n",), at=0, ticks=("cat", "dog"), panels="rows")
    panels = panels_of(table, shown, picture)
    assert [panel.y for panel in panels] == [panels[0].y] * 2
    assert all(trace.line is None and not trace.is_band for panel in panels for trace in panel.traces)


def test_intervals_at_one_position_stand_side_by_side():
    """Over less than a third of the distance between two positions, in the order of the rows."""
    first = Trace("a", [0.0, 1.0], [1, 2], 0, [0, 1], [2, 3], line="")
    second = Trace("b", [0.0, 1.0], [1, 2], 1, [0, 1], [2, 3], line="")
    level = Trace("c", [-math.inf, math.inf], [1, 1], 2, mark="", line="dashed")
    moved = _side_by_side([first, second, level])
    assert moved[0].x == pytest.approx([-0.15, 0.85]) and moved[1].x == pytest.approx([0.15, 1.15])
    assert moved[2] == level and _side_by_side([first, level]) == [first, level]
