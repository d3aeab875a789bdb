"""The site has every exported name and every attribute, its links lead somewhere, and its examples run."""

import ast
import doctest
import inspect
import re
import zlib
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import manyhands as mh
from manyhands import registry

pytestmark = pytest.mark.documents

PACKAGES = (  # with `__all__`
    "manyhands", "manyhands.aggregation", "manyhands.classifiers", "manyhands.comparison", "manyhands.datasets",
    "manyhands.io", "manyhands.metrics", "manyhands.plots", "manyhands.report", "manyhands.representation",
    "manyhands.reproduce", "manyhands.scorecards", "manyhands.simulate", "manyhands.testing", "manyhands.trust",
)  # fmt: skip
MODULES = ("manyhands.exceptions", "manyhands.registry")  # their own public functions and classes


class Page(HTMLParser):
    """Links, identifiers and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.words = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag in ("a", "link", "img", "script", "iframe"):
            self.links += [given[key] for key in ("href", "src") if given.get(key)]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def pages(site):
    """Every page of the site, by its place."""
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # a template of the theme is there
    found = {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in paths}
    assert len(found) > 300
    return found


@pytest.fixture(scope="module")
def inventory(site):
    """Names that the site documents, with their addresses."""
    content = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    rows = [row.split(" ") for row in zlib.decompress(content).decode().splitlines()]
    return {row[0]: row[3].replace("$", row[0]) for row in rows if row[1].startswith("py:")}


def exported():
    """Every exported name but packages, and the object."""
    for module in PACKAGES:
        found = import_module(module)
        for name in found.__all__:
            if not inspect.ismodule(getattr(found, name)):
                yield f"{module}.{name}", getattr(found, name)
    for module in MODULES:
        for name, value in vars(import_module(module)).items():
            if getattr(value, "__module__", None) == module and not name.startswith("_") and callable(value):
                yield f"{module}.{name}", value


def spark_names():
    """What `manyhands.spark` exports, read from its source: it needs pyspark."""
    source = (Path(mh.__file__).parent / "spark" / "__init__.py").read_text(encoding="utf-8")
    assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return next(ast.literal_eval(node.value) for node in assigned if getattr(node.targets[0], "id", "") == "__all__")


def test_every_exported_name_is_in_the_reference(inventory):
    """Under each package that exports it."""
    names = [name for name, _ in exported()] + [f"manyhands.spark.{name}" for name in spark_names()]
    assert len(names) > 250
    missing = [name for name in names if name not in inventory]
    assert not missing, f"the API reference lacks {', '.join(missing)}"


def documented_attributes(cls):
    """Attributes that the docstrings of a class and of its bases name, public properties and public methods."""
    for base in cls.__mro__:
        if not base.__module__.startswith("manyhands"):
            continue
        section = re.search(
            r"^Attributes\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", inspect.cleandoc(base.__doc__ or ""), re.M | re.S
        )
        if section and "__doc__" in vars(base):
            for names in re.findall(r"^(\w[\w, ]*)\s*:", section[1], re.MULTILINE):
                yield from (name.strip() for name in names.split(","))
        for name, value in vars(base).items():
            if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, (property, classmethod))):
                yield name


def test_every_attribute_is_on_the_page_of_its_class(pages, inventory):
    """Its own and the inherited ones: `posterior_` is on the page of every aggregator."""
    missing, n_attributes = [], 0
    classes = {value for _, value in exported() if inspect.isclass(value)}
    assert len(classes) > 90
    homes = {value: name for name, value in reversed([*exported()]) if inspect.isclass(value)}
    for cls in classes:
        place = inventory[homes[cls]].partition("#")[0]
        text = " ".join(pages[place].words)
        for name in set(documented_attributes(cls)):
            n_attributes += 1
            if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
                missing.append(f"{cls.__name__}.{name}")
    assert n_attributes > 1000
    assert not missing, f"{len(missing)} attributes are not shown: {', '.join(sorted(missing)[:40])}"


def test_the_signature_of_a_class_is_that_of_its_constructor(pages):
    """Not that of `__new__`, which takes anything."""
    text = "".join(pages["api/manyhands.aggregation.MACE.html"].words)
    shown = re.search(r"class\s*MACE\((.*?)\)\s*\[source\]", text, re.S)
    assert shown and list(inspect.signature(mh.MACE.__init__).parameters)[1] in shown[1] and "*args" not in shown[1]


def test_links_and_anchors_lead_somewhere(pages, site):
    """Every link within the site, to the file and to the place in it."""
    broken, n_links = [], 0
    for place, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link == "#":
                continue
            n_links += 1
            target = (site / place).parent / unquote(parts.path) if parts.path else site / place
            other = target.resolve().relative_to(site.resolve()).as_posix()
            anchor = unquote(parts.fragment)
            lost = bool(anchor) and other in pages and anchor not in pages[other].ids
            if lost or not target.exists():
                broken.append(f"{place}: {link}")
    assert n_links > 10_000
    assert not broken, f"{len(broken)} links lead nowhere:\n" + "\n".join(sorted(set(broken))[:30])


def test_nothing_is_loaded_from_elsewhere(pages, site):
    """Scripts, styles and pictures are files of the site."""
    found = []
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for tag in (r"(?:script|img|iframe)[^>]*\bsrc", r'link[^>]*rel="stylesheet"[^>]*href'):
            found += [(path.name, address) for address in re.findall(rf'<{tag}="((?:https?:)?//[^"]+)"', text)]
    assert not found, found[:5]


@pytest.mark.parametrize("name", registry.names())
def test_every_method_has_a_page_with_a_formula_and_an_example_that_runs(site, pages, name):
    """The formula is drawn by the browser, and the example gives what it says."""
    text = (site / "methods" / f"{name}.html").read_text(encoding="utf-8")
    assert text.count("<math") >= 1 and "merror" not in text and "\\text" not in text
    code = "".join(re.findall(r"^```python\n(>>>.*?)^```", _source(site, name), re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(code, {}, name, None, 0)
    assert test.examples
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert failed == 0


def _source(site, name):
    return (site.parent / "source" / "methods" / f"{name}.md").read_text(encoding="utf-8")


FACTS = {  # words that the search of the site is asked for -> a page that it must name
    "posterior_": "api/manyhands.aggregation.Aggregator",
    "PooledDawidSkene": "api/manyhands.aggregation.PooledDawidSkene",
    "mace": "methods/mace",
    "krippendorff": "api/manyhands.metrics.krippendorff_alpha",
}


@pytest.mark.parametrize("words", FACTS)
def test_the_search_works_without_a_server(open_page, words):
    """From a file, without a network: the index is a script of the site."""
    page = open_page("search.html", query=f"?q={words}")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    page.wait_for_timeout(1500)
    found = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.getAttribute('href'))")
    assert any(FACTS[words] in link for link in found), found[:10]
    assert page.requested == [] and page.errors == []


REPRESENTATIVE = {
    "start": "index.html",
    "method": "methods/pooled-dawid-skene.html",
    "class": "api/manyhands.aggregation.DawidSkene.html",
    "results": "results/leaderboard.html",
    "gallery": "gallery/index.html",
}
# Faults of the theme, which are not ours: rule -> what it is about.
OF_THE_THEME = {"summary-name": "arrows that open parts of the side bar have no name (pydata-sphinx-theme 0.24)"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", REPRESENTATIVE)
def test_pages_are_accessible(open_page, kind, theme):
    """The rules of axe-core, in both themes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(REPRESENTATIVE[kind], theme=theme)
    page.wait_for_timeout(300)
    violations = axe.run(page).response["violations"]
    ours = {v["id"]: [node["html"][:160] for node in v["nodes"]][:4] for v in violations if v["id"] not in OF_THE_THEME}
    assert not ours, ours


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", REPRESENTATIVE)
def test_pages_fit_the_screen(open_page, kind, width):
    """A wide table or formula scrolls by itself; the page does not."""
    page = open_page(REPRESENTATIVE[kind], width=width)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert page.requested == [] and page.errors == []
