"""Reports of many kinds of crowds in a browser: accessible, within the screen and the sheet, silent, valid."""

import csv

import numpy as np
import pytest

import manyhands as mh
from browser.hostile import COLUMN, PAYLOADS, write_hostile_report
from manyhands.cli.app import run as run_command
from manyhands.report.wording import visible

html5lib = pytest.importorskip("html5lib", reason="make test-browser installs what these tests need")
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.browser

LONG = "a name that is much longer than anyone would reasonably give to a class in a guideline"
SCRIPTS = ["كلب صغير يلعب في الحديقة الخلفية مع الأطفال", "非常长的中文类别名称用于测试布局是否会溢出", LONG, "שלום"]


def _write(path, crowd, classes, item=lambda i: f"item-{i}", worker=lambda w: f"ann-{w}", text=None):
    a = crowd.annotations
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["item", "worker", "label", *(["text", "time"] if text else [])])
        for at, (i, w, k) in enumerate(zip(a.item, a.worker, a.label)):
            more = [text(i), f"2026-03-{1 + at % 28:02d}T10:{at % 60:02d}:00"] if text else []
            table.writerow([item(i), worker(w), classes[k], *more])
    return str(path)


def _report(source, page, *options):
    assert run_command(["report", source, "-o", str(page), "-q", *options]) == 0
    return page


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Reports by name: many classes and workers, other scripts and long names, two workers, a change, a classifier."""
    folder = tmp_path_factory.mktemp("pages")
    make = mh.simulate.make_crowd
    found = {"hostile": write_hostile_report(tmp_path_factory.mktemp("hostile"), run_command)}
    source = _write(
        folder / "wide.csv",
        make(1200, 400, 12, 5, bad="random", bad_share=0.1, random_state=2),
        [f"class {k}" for k in range(12)],
    )
    found["wide"] = _report(source, folder / "wide.html")
    source = _write(
        folder / "scripts.csv",
        make(80, 10, 4, 4, bad="random", bad_share=0.3, random_state=3),
        SCRIPTS,
        lambda i: f"{SCRIPTS[i % 4]}-{i}",
        lambda w: f"{SCRIPTS[w % 4]}{w}",
        lambda i: (SCRIPTS[i % 4] + " ") * 5 if i % 5 else "W" * 400,
    )
    found["scripts"] = _report(
        source, folder / "scripts.html", "--worker-names", "ids", "--compare", "--title", SCRIPTS[0]
    )
    found["two"] = _report(_write(folder / "two.csv", make(40, 2, 2, 2, random_state=4), "yn"), folder / "two.html")
    source = _write(
        folder / "many.csv", make(400, 20, 60, 4, random_state=5), [f"species {k} of a genus" for k in range(60)]
    )
    found["sixty"] = _report(source, folder / "sixty.html")
    a = make(200, 15, 3, 5, bad="random", bad_share=0.2, random_state=6).annotations
    rows = [f"item-{i},w{w},c{k}\n" for i, w, k in zip(a.item, a.worker, a.label)]
    order = np.random.default_rng(1).permutation(len(rows))
    for name, share in (("monday", 0.5), ("friday", 1.0)):
        chosen = [rows[at] for at in order[: int(share * len(rows))]]
        (folder / f"{name}.csv").write_text("item,worker,label\n" + "".join(chosen))
        _report(str(folder / f"{name}.csv"), folder / f"{name}.html")
    found["change"] = folder / "change.html"
    both = [str(folder / f"{name}.html") for name in ("monday", "friday")]
    assert run_command(["report", *both, "-o", str(found["change"]), "-q"]) == 0
    crowd = make(150, 10, 3, 3, bad="random", random_state=7)
    features = np.eye(3)[crowd.truth] + np.random.default_rng(0).normal(0, 0.5, (150, 3))
    trained = mh.classifiers.Raykar().fit(features, crowd.annotations)
    model = mh.PooledDawidSkene().fit(crowd.annotations)
    found["classifier"] = mh.write_report(model, folder / "classifier.html", classifier=trained)
    return found


NAMES = ["hostile", "wide", "scripts", "two", "sixty", "change", "classifier"]
_OPEN = "document.querySelectorAll('details').forEach(part => part.open = true)"


LOOKS = [(1280, "light"), (390, "dark"), (1280, "dark"), (390, "light")]


@pytest.mark.parametrize(
    ("name", "width", "theme"),
    [(name, *look) for name in NAMES for look in LOOKS[: 4 if name in ("wide", "scripts") else 2]],
)
def test_accessible_and_silent(pages, open_page, name, width, theme):
    """axe finds nothing; nothing is requested, no error, no violation of the policy; no text leaves the screen."""
    page = open_page(pages[name], width, theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(_OPEN)
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not page.requested and not page.errors


@pytest.mark.parametrize("name", NAMES)
def test_readable_without_script(pages, open_page, name):
    """All findings are there, and closed tables open by themselves; nothing is requested."""
    page = open_page(pages[name], script=False)
    assert not page.requested and not page.errors
    titles = page.locator("h2").all_inner_texts()
    assert titles and all(titles) and page.locator("th button, .tools").count() == 0
    part = page.locator("details").first
    part.locator("summary").press("Enter")
    assert part.locator("table").is_visible()


@pytest.mark.parametrize("name", NAMES)
def test_html_is_valid(pages, name):
    """A strict parser finds no error."""
    html5lib.HTMLParser(strict=True).parse(pages[name].read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["hostile", "scripts", "wide", "change"])
def test_zoom_of_200_per_cent(pages, open_page, name):
    """A window of half the width, and magnified text: neither text nor controls leave the screen sideways."""
    page = open_page(pages[name], 640, scale=2)
    outside = """Array.from(document.querySelectorAll('h1,h2,h3,p,li,dd,dt,summary,button,input,svg.mh-chart'))
        .filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1).length"""
    assert page.evaluate("document.documentElement.scrollWidth") <= 640 and page.evaluate(outside) == 0
    page = open_page(pages[name], 1280)
    page.evaluate("document.documentElement.style.zoom = 2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_on_paper(pages, open_page, name):
    """On a sheet of A4 no table or picture is wider than the text, all tables are open, controls are gone."""
    page = open_page(pages[name], 690)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    wide = """Array.from(document.querySelectorAll('table, svg.mh-chart, .figures'))
        .map(e => [e.getBoundingClientRect().right, (e.caption || e).textContent.slice(0, 60)])
        .filter(entry => entry[0] > innerWidth + 1)"""
    assert page.evaluate(wide) == []
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".tools").first.is_visible() and not page.locator("nav").is_visible()


def test_every_control_is_reached_by_the_keyboard(pages, open_page):
    """Tab visits all links, buttons, inputs and scrolling tables in their order, each with a ring, none covered."""
    page = open_page(pages["change"])
    seen = []
    expected = page.evaluate(
        """(() => { const all = Array.from(document.querySelectorAll('a[href],button,input,summary,[tabindex="0"]'))
        .filter(e => e.checkVisibility()); all.forEach((e, at) => e.dataset.at = at); return all.length; })()"""
    )
    for _ in range(expected):
        page.keyboard.press("Tab")
        at, ring, is_covered = page.evaluate(
            """(() => { const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
            const nav = document.querySelector('nav').getBoundingClientRect();
            const covered = !e.closest('nav') && !e.closest('.skip') && nav.top <= 0 && box.bottom < nav.bottom;
            const ring = style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2;
            return [+e.dataset.at, ring, covered]; })()"""
        )
        assert ring and not is_covered, at
        seen.append(at)
    assert seen == list(range(expected))


def test_sort_copy_and_theme_by_the_keyboard(pages, open_page):
    """What a mouse does, keys do, and a status says what happened."""
    page = open_page(pages["change"])
    head = page.locator("#labels th", has_text="posterior after")
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    page.locator("#labels .tools button", has_text="Copy table").first.press("Enter")
    page.wait_for_function("document.querySelector('#labels [role=status]').textContent === 'Copied'")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator(".theme").press("Enter")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_what_a_mouse_shows_is_in_a_table(pages, open_page):
    """Each mark of the map of workers that a mouse explains is a row of its table, with the same accuracy."""
    page = open_page(pages["scripts"])
    tips = page.evaluate("Array.from(document.querySelectorAll('#workers svg title')).map(e => e.textContent)")
    rows = page.evaluate(
        """Array.from(document.querySelector('#workers table').tBodies[0].rows)
        .map(row => Array.from(row.cells).map(cell => cell.textContent))"""
    )
    shown = {row[0]: float(row[2]) for row in rows}
    assert len(tips) == len(rows) == 10
    for tip in tips:
        worker, _, rest = tip.rpartition(": ")
        assert abs(shown[worker] - float(rest.split(",")[0])) <= 0.0051


def test_series_differ_in_shape(pages, open_page):
    """Without colours the alerts of workers are told apart by their marks, and severities by their words."""
    page = open_page(pages["wide"])
    shapes = page.evaluate(
        """Object.entries(Array.from(document.querySelectorAll('#workers svg > [class^=s]')).reduce((found, e) => {
        const kind = e.getAttribute('class').split(' ')[0];
        const path = (e.getAttribute('points') || e.getAttribute('d') || '').replace(/[\\d.,-]+/g, '#');
        const shape = e.tagName + e.classList.contains('hollow') + path;
        if (!e.classList.contains('whisker')) (found[kind] = found[kind] || new Set()).add(shape);
        return found; }, {})).map(entry => Array.from(entry[1]).join())"""
    )
    assert len(shapes) >= 2 and len(set(shapes)) == len(shapes)
    words = page.locator(".notices b").all_inner_texts()
    assert words and all(word.split()[-1] in ("Alert", "Warning", "Note") for word in words)


def test_hostile_texts_are_text(pages, open_page):
    """Every payload is visible as text; the only scripts are ours; nothing is requested, no dialog opens."""
    page = open_page(pages["hostile"])
    page.evaluate(_OPEN)
    for button in page.locator("#hard-items th button").all():
        button.click()
    page.locator("#hard-items input").fill("<img src=x onerror=alert(1)>")
    assert not page.requested and not page.errors
    assert page.locator("script").count() == 2 and page.locator("img, iframe, object, link, base, form").count() == 0
    names = page.evaluate("Array.from(document.querySelectorAll('*')).flatMap(e => e.getAttributeNames())")
    assert not [name for name in names if name.startswith("on") or name == "style"]
    text = page.evaluate("document.body.textContent")
    for payload in [*PAYLOADS, COLUMN]:
        assert visible(payload, 60) in text, payload
    assert page.locator("h1").inner_text() == PAYLOADS[0] and page.title().startswith(PAYLOADS[0])
