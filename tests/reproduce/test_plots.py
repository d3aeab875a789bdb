"""Figures in SVG."""

import math
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.reproduce import pages, plots
from manyhands.reproduce.cells import cells_of
from manyhands.reproduce.pictures import Picture
from manyhands.reproduce.plot_style import limits
from manyhands.reproduce.plots import to_svg
from manyhands.reproduce.tables import Published
from measuring import CROWD, FOLDED, LINEAR, SKENE, VOTE, made_up, small_table

SETS = [replace(CROWD, name=f"{share:.0%} gone", remove=share) for share in (0.0, 0.2, 0.4)]
OVER = [replace(VOTE, published={d.name: Published(85.0) for d in SETS}), SKENE]


def page_of(table):
    values = {(d.name, row.name): [0.9, 0.8 + d.remove / 9] for d in table.datasets for row in table.rows}
    return pages.page(table, cells_of(table), made_up(table, values), "manyhands reproduce own/small")


def test_without_matplotlib_one_sentence(monkeypatch):
    """That names the extra."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyhands\[plot\]'"):
        to_svg(small_table(), page_of(small_table()))


@pytest.mark.parametrize(
    "table", [small_table(), small_table(OVER, SETS, figure={"x": "remove"})], ids=["dots", "lines"]
)
def test_the_same_page_gives_the_same_bytes(table):
    """No date, no ids drawn at random; every row and published values are named."""
    pytest.importorskip("matplotlib")
    drawn = to_svg(table, page_of(table))
    assert drawn == to_svg(table, page_of(table)) and drawn.startswith(b"<?xml")
    for word in (VOTE.name.encode(), b"D&amp;S", b"published", b"accuracy (%)"):
        assert word in drawn
    assert b"<dc:date>" not in drawn and (b">share of annotations removed<" in drawn) == (table.figure is not None)


@pytest.mark.parametrize("is_line", [False, True])
def test_any_name_gives_well_formed_xml(is_line):
    """Control characters, half surrogate pairs, signs of XML and of mathematics, and what matplotlib leaves out."""
    pytest.importorskip("matplotlib")
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


def drawn_axes(table, shown, picture=None):
    """The panels of a figure, as matplotlib has them."""
    figure = pytest.importorskip("matplotlib.figure").Figure()
    plots._draw(figure, table, shown, picture or plots.pictures_of(table)[0])
    return figure, figure.axes


def test_a_table_of_methods_is_read_from_the_top():
    """A dot with its interval for each method, published values hollow, and an axis that does not begin at zero."""
    table = small_table(seeds=3)
    values = {("crowd", "vote"): [0.84, 0.85, 0.86], ("crowd", "D&S"): [0.88, 0.9, 0.92]}
    shown = pages.page(table, cells_of(table), made_up(table, values), "")
    _, (axis,) = drawn_axes(table, shown)
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["vote", "D&S"]
    low, high = axis.get_ylim()
    assert low > high  # the first row is the highest
    measured, published = axis.containers[0], axis.containers[1]
    assert measured.lines[0].get_xydata().tolist() == [[pytest.approx(85), 0]]
    half = 4.302653 * 1.0 / 3**0.5  # t distribution with two degrees of freedom
    ends = measured.lines[2][0].get_segments()[0][:, 0]
    assert ends == pytest.approx([85 - half, 85 + half], abs=1e-4)
    assert published.lines[0].get_xydata()[0][0] == 90 and published.lines[0].get_markerfacecolor() == "white"
    left, right = axis.get_xlim()
    assert 75 < left < 83 and 95 < right <= 100.5
    assert "95% interval over seeds" in axis.get_xlabel()


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
        figure, axes = drawn_axes(table, page_of(table))
        sizes[n_rows, n_sets] = figure.get_size_inches()
        assert sum(axis.get_visible() for axis in axes) == n_sets
    assert sizes[20, 1][1] > sizes[2, 1][1] + 18 * 0.29 and sizes[20, 7][1] > 2 * sizes[20, 1][1]
    assert all(width <= 10.5 for width, _ in sizes.values())


def test_long_labels_of_an_axis_are_few():
    """Values that differ by little have ticks such as 0.9325, which would overlap in a narrow panel."""
    table = small_table([replace(row, published={}) for row in (VOTE, SKENE)], points=False)
    values = {("crowd", VOTE.name): [0.9329, 0.9329], ("crowd", SKENE.name): [0.9437, 0.9437]}
    _, (axis,) = drawn_axes(table, pages.page(table, cells_of(table), made_up(table, values), ""))
    low, high = axis.get_xlim()
    assert 2 <= sum(low <= tick <= high for tick in axis.get_xticks()) <= 3


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


def test_curves_of_series():
    """The mean of the seeds over a grid, over positions, and of one entry of lists."""
    table, shown = with_series([VOTE])
    _, (axis,) = drawn_axes(table, shown, Picture("series", series=("roc",)))
    assert axis.lines[0].get_xydata().tolist() == [[0, 0], [0.5, 0.5], [1, 1]]
    assert axis.get_xlabel() == "false positive rate"
    _, (axis,) = drawn_axes(table, shown, Picture("series", series=("rounds.n",), component=0, first=0))
    assert axis.lines[0].get_xydata().tolist() == [[0, 1], [1, 3]] and axis.get_xlabel() == "round"
    last = Picture("series", series=("rounds.n",), at=-1, ticks=("cat", "dog"), y_label="votes")
    _, (axis,) = drawn_axes(table, shown, last)
    assert axis.lines[0].get_ydata()[0] == 3 and math.isnan(axis.lines[0].get_ydata()[1])
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["cat", "dog"]


def test_levels_are_horizontal_lines_at_the_mean_of_a_metric():
    """Beside a series, a share is no per cent."""
    table, shown = with_series([VOTE])
    picture = Picture("series", series=("roc",), levels=("accuracy",))
    for points, scale in ((True, 100), (False, 1)):
        _, (axis,) = drawn_axes(table, shown | {"points": points}, picture)
        level = next(line for line in axis.lines if line.get_label() == "accuracy")
        mean = next(one["mean"] for one in shown["entries"] if one["metric"] == "accuracy")
        assert level.get_ydata()[0] == pytest.approx(mean / scale)


def test_a_scatter_plot_of_estimated_against_simulated_values():
    """The second half of the list is along the axis; two metrics have a point for each seed."""
    table, shown = with_series([VOTE], metrics=("accuracy", "ece"))
    _, (axis,) = drawn_axes(table, shown, Picture("scatter", series=("expertise",)))
    assert axis.collections[0].get_offsets().tolist() == [[0.5, 0.6], [0.8, 0.7]] * 3
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("simulated", "estimated") and len(axis.lines) == 1
    for entry in shown["entries"]:
        entry["values"] = {"1": 1.0, "2": 2.0} if entry["metric"] == "ece" else {"2": 5.0, "3": 7.0}
    _, (axis,) = drawn_axes(table, shown, Picture("scatter", "accuracy", against="ece"))
    assert axis.collections[0].get_offsets().tolist() == [[2, 5]] and axis.get_xlabel() == "ECE (%)"


@pytest.mark.parametrize("picture", [Picture("boxes", "accuracy"), Picture("boxes", series=("expertise",))])
def test_boxes_over_seeds_or_over_a_series(picture):
    """With the numbers themselves."""
    table, shown = with_series([VOTE])
    _, (axis,) = drawn_axes(table, shown, picture)
    numbers = [90, 80, 85] if picture.metric else CURVES["expertise"] * 3
    (points,) = [line for line in axis.lines if line.get_marker() == "o"]
    assert sorted(points.get_xdata()) == pytest.approx(sorted(numbers))


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
