"""Figures in SVG."""

import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.reproduce import pages
from manyhands.reproduce.cells import cells_of
from manyhands.reproduce.plots import _size, to_svg
from manyhands.reproduce.tables import Published
from measuring import CROWD, SKENE, VOTE, made_up, small_table

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
    "table", [small_table(), small_table(OVER, SETS, figure={"x": "remove"})], ids=["bars", "lines"]
)
def test_the_same_page_gives_the_same_bytes(table):
    """No date, no ids drawn at random; every row and published values are named."""
    pytest.importorskip("matplotlib")
    drawn = to_svg(table, page_of(table))
    assert drawn == to_svg(table, page_of(table)) and drawn.startswith(b"<?xml")
    for word in (VOTE.name.encode(), b"D&amp;S", b"published", b"accuracy (%)"):
        assert word in drawn
    assert b"<dc:date>" not in drawn and (b">remove<" in drawn) == (table.figure is not None)


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


def test_bars_have_room_for_their_names():
    """Many rows make a plot wide, and long names make it high."""
    found = [{"row": name} for name in ("a" * 50, *map(str, range(19)))]
    wide, high = _size(2, found, True)
    assert wide > 2 * 5 and high > 5
    assert _size(2, found, False) == _size(2, found[:1], False)


def test_where_a_set_stands_on_the_axis():
    """By a field of it or one of its arguments; anything else is one sentence."""
    table = small_table([SKENE], SETS, figure={"x": "remove"})
    assert [table.place(d, SKENE) for d in table.datasets] == [0.0, 0.2, 0.4]
    assert replace(table, figure={"x": "n_items"}).place(SETS[0], SKENE) == 60
    for strange in ("name", "nowhere"):
        with pytest.raises(ParameterError, match=f"drawn over '{strange}', which is no number"):
            replace(table, figure={"x": strange}).place(SETS[0], SKENE)
