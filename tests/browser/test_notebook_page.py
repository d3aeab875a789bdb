"""Displays of a notebook in a browser: axe finds nothing, the notebook's theme decides, neither styles the other."""

import pytest

import manyhands as mh
from manyhands.scorecards import score_workers

Axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make test-browser installs it").Axe
pytestmark = pytest.mark.browser

# Rules of the kind that notebooks have for what a cell shows.
NOTEBOOK = """
html{font-size:10px} body{font-size:14px;margin:0} body[data-jp-theme-light=false]{background:#111;color:#eee}
.out table{table-layout:fixed;border:5px solid red} .out tbody tr:nth-child(odd){background:#888}
.out td,.out th,.out tr{text-align:right;padding:9px} .out dl dt{float:left;width:20%;font-weight:700}
.out ul:not(.x){padding-left:3em} .out li{margin-top:2em} .out h2{font-size:40px;margin-top:3em} .out p{margin:2em 0}
"""


@pytest.fixture(scope="session")
def displays():
    votes = mh.simulate.make_crowd(150, 14, 3, 4, bad="random", bad_share=0.3, random_state=1).annotations
    model = mh.PooledDawidSkene().fit(votes)
    compared = mh.compare(["majority-vote", "wawa", "one-coin"], votes)
    return [one._repr_html_() for one in (model, score_workers(votes, model.posterior_), compared)]


def notebook(folder, displays, light):
    """A page like a notebook's, with a table of its own."""
    cells = "".join(f'<div class="out">{html}</div>' for html in displays)
    own = '<div class="out"><table id="own"><tbody><tr><td>1</td></tr></tbody></table><svg class="chart"></svg></div>'
    path = folder / f"{light}.html"
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Notebook</title><style>{NOTEBOOK}</style>'
        f'</head><body data-jp-theme-light="{light}"><main><h1>Notebook</h1>{own}{cells}</main></body></html>',
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("light", ["true", "false"])
@pytest.mark.parametrize("width", [1280, 390])
def test_accessible_in_the_theme_of_the_notebook(displays, open_page, tmp_path, light, width):
    """The system has the other theme; nothing is requested, and nothing is wider than the screen."""
    page = open_page(notebook(tmp_path, displays, light), width, "dark" if light == "true" else "light")
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert not page.requested and not page.errors
    colour = page.evaluate("getComputedStyle(document.querySelector('.mh section')).backgroundColor")
    assert colour == ("rgb(255, 255, 255)" if light == "true" else "rgb(28, 32, 39)")
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_neither_styles_the_other(displays, open_page, tmp_path):
    """The table of the notebook keeps its look, and the panels have theirs."""
    look = "(name, what) => getComputedStyle(document.querySelector(name))[what]"
    with_panels = open_page(notebook(tmp_path, displays, "true"))
    (tmp_path / "alone").mkdir()
    alone = open_page(notebook(tmp_path / "alone", [], "true"))
    whats = ("borderTopWidth", "backgroundColor", "textAlign", "paddingTop", "fontSize", "fill", "tableLayout", "color")
    for name in ("#own", "#own tbody tr", "#own td", "svg.chart", "h1"):
        for what in whats:
            question = f"([name, what]) => ({look})(name, what)"
            assert with_panels.evaluate(question, [name, what]) == alone.evaluate(question, [name, what])
    expected = {"dt": ("float", "none"), "td[dir]": ("textAlign", "start"), "table": ("tableLayout", "auto")}
    expected |= {"tbody tr": ("backgroundColor", "rgba(0, 0, 0, 0)"), ".notices": ("paddingLeft", "0px")}
    for name, (what, value) in expected.items():
        assert with_panels.evaluate(f"([name, what]) => ({look})(name, what)", [f".mh {name}", what]) == value
