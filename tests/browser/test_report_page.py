"""The report in a browser: nothing is loaded, nothing runs but our script, axe finds nothing, tables sort."""

import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command

Axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make test-browser installs it").Axe
pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The report of a simulated crowd with texts of items and times."""
    folder = tmp_path_factory.mktemp("demo")
    crowd = mh.simulate.make_crowd(150, 14, 3, 4, bad="random", bad_share=0.3, random_state=1)
    a, names = crowd.annotations, ["cat", "狗", "كلب"]
    rows = ["item,worker,label,text,time"]
    for at, (i, w, k) in enumerate(zip(a.item, a.worker, a.label)):
        rows.append(f"pic-{i},ann-{w},{names[k]},A text about item {i},2026-03-{1 + at % 28:02d}T10:{at % 60:02d}:00")
    (folder / "ratings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    truth = "item,label\n" + "".join(f"pic-{i},{names[k]}\n" for i, k in enumerate(crowd.truth[:60]))
    (folder / "truth.csv").write_text(truth, encoding="utf-8")
    command = ["report", str(folder / "ratings.csv"), "--truth", str(folder / "truth.csv"), "--compare", "-q"]
    assert run_command([*command, "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_accessible_and_silent(demo, open_page, width, theme, script):
    """axe finds nothing, nothing was requested, and no text is wider than the screen."""
    page = open_page(demo, width, theme, True)
    if not script:
        page = open_page(demo, width, theme, False)
    assert not page.requested and not page.errors
    if script:
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        found = Axe().run(page)
        assert not found.response["violations"], found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    else:  # axe itself is a script; what it judges is the same page without ours
        text = page.inner_text("main")
        assert "Krippendorff" in text and page.locator("table").count() > 8
        assert page.locator("th button").count() == 0


def test_accessible_without_our_script(demo, open_page, tmp_path):
    """The page as it is without JavaScript, with all tables open."""
    plain = tmp_path / "plain.html"
    text = demo.read_text(encoding="utf-8")
    at = text.rindex("<script>")
    plain.write_text(text[:at] + "</body></html>", encoding="utf-8")
    for width in (1280, 390):
        for theme in ("light", "dark"):
            page = open_page(plain, width, theme)
            page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
            found = Axe().run(page)
            assert not found.response["violations"], found.generate_report()


def test_tables_sort_filter_and_copy(demo, open_page):
    """A click on a head sorts, once more the other way round; a filter hides rows and counts them."""
    page = open_page(demo)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    head = page.locator("#workers th", has_text="labels").first
    button = head.locator("button")
    button.click()
    numbers = page.evaluate(
        "Array.from(document.querySelector('#workers table').tBodies[0].rows).map(row => +row.cells[1].textContent)"
    )
    assert numbers == sorted(numbers) and head.get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    workers = page.locator("#workers details").filter(has=page.locator("table")).first
    workers.locator("input").fill("random")
    shown = workers.locator("tbody tr:visible").count()
    assert 0 < shown < 14 and f"{shown} of 14 rows" in workers.locator("[role=status]").inner_text()


def test_policy_stops_other_scripts(demo, open_page, tmp_path):
    """A script or picture that somebody adds to the page neither runs nor loads."""
    changed = tmp_path / "changed.html"
    added = "<script>document.title='ran'</script><img src='https://example.org/x.png'>"
    changed.write_text(demo.read_text(encoding="utf-8").replace("<main", added + "<main", 1), encoding="utf-8")
    page = open_page(changed)
    assert page.title() != "ran" and not page.requested
