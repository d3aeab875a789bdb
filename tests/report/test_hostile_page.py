"""Hostile ids, classes, texts, names of files, columns and groups, command lines and notes stay text."""

import csv
import gzip
import json
import re
from html.parser import HTMLParser

import pytest

import manyhands as mh
from browser.hostile import CLASSES, COLUMN, FILE_NAME, GROUPS, LONG, PAYLOADS, write_hostile_report
from manyhands.cli.app import run as run_command
from manyhands.report import build, make_run, read_page, render_page, run_data
from manyhands.report.run import Chips, Panel, Provenance, Table
from manyhands.report.wording import visible


class _Elements(HTMLParser):
    """Counts elements, and collects attributes and text."""

    def __init__(self):
        super().__init__()
        self.tags, self.names, self.links, self.texts = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href", "action", "srcdoc")]

    def handle_data(self, data):
        self.texts.append(data)


def elements(page):
    """The elements of a page, after a check that none of them came from data."""
    found = _Elements()
    found.feed(page)
    found.close()
    assert found.tags.count("script") == 2 and found.tags.count("style") == 1
    assert not {"img", "iframe", "link", "base", "object", "form", "math", "plaintext", "embed"} & set(found.tags)
    assert not {name for name in found.names if name.startswith("on") or name == "style"}
    assert all(link.startswith("#") for link in found.links)
    json.loads(re.search(r'id="manyhands-data">([^<]*)</script>', page)[1])  # nothing in it can end the element
    forbidden = [c for c in page if c in "\u200f\u2028\u2029\u202e\u2066" or (ord(c) < 32 and c != "\n")]
    assert not forbidden
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_hostile_report(tmp_path_factory.mktemp("hostile"), run_command)


def test_hostile_texts_stay_text(page):
    """Two scripts, both ours; no handlers, no inline styles, no link that leaves the page; the data are unchanged."""
    text = page.read_text(encoding="utf-8")
    shown = "".join(elements(text).texts)
    for payload in [*PAYLOADS, COLUMN, FILE_NAME, *GROUPS]:
        assert visible(payload, 60) in shown, payload
    assert "default-src 'none'" in text and visible(LONG) not in shown
    data = read_page(page)
    assert set(data["classes"]) == set(CLASSES) and data["title"] == PAYLOADS[0]


@pytest.mark.parametrize("payload", [*PAYLOADS, LONG, "\x00\x08\x0b"])
def test_every_place_of_a_page_escapes(payload):
    """Names, notes, notices, the command line and files of the provenance: one payload in all places."""
    votes = mh.Annotations.from_triples(
        [payload, payload, "b", "b"], ["w1", payload, "w1", payload], [payload, payload, "x", payload]
    )
    model = mh.MajorityVote().fit(votes)
    model.notes_["note"] = payload
    odd = payload + "\udcff"  # a byte of a file name that is not text
    known = Provenance("1", payload, command=odd, files={odd: payload}, platform={payload: payload})
    run = make_run(model, reveal=True, title=payload, provenance=known, truth={payload: payload})
    report = build(run)
    panel = Panel(
        "extra",
        payload,
        payload,
        payload,
        table=(Table(payload, (payload, payload), ((payload, Chips(((payload, 1),))),), short=payload),),
        notes=(payload,),
    )
    report = type(report)(report.title, report.summary, (*report.panels, panel))
    elements(render_page(report, run_data(run, report)).decode())


def test_a_report_is_refused_as_a_template(tmp_path):
    """Text between braces is not evaluated."""
    votes = mh.Annotations.from_triples(["{{7*7}}"] * 2 + ["c"], ["${7*7}", "b", "b"], ["{% raw %}"] * 2 + ["y"])
    text = mh.write_report(mh.MajorityVote().fit(votes), tmp_path / "r.html", worker_names="ids").read_text(
        encoding="utf-8"
    )
    assert "{{7*7}}" in text and "${7*7}" in text and "{% raw %}" in text


def test_tables_beside_the_page_run_no_formulas(tmp_path):
    """Cells that a spreadsheet would run have a quote before them, and are read back without it."""
    formula, n = "=1+cmd|' /C calc'!A0", 22_000
    rows = "".join(f"{formula}{i},@worker{w},-{i % 2}x\n" for i in range(n) for w in range(2))
    for name, start in (("one", ""), ("two", "".join(f"{formula}0,more{w},-1x\n" for w in range(3)))):
        (tmp_path / f"{name}.csv").write_text("item,worker,label\n" + rows + start)
        options = ["-m", "majority-vote", "-q", "-o", str(tmp_path / f"{name}.html")]
        assert run_command(["report", str(tmp_path / f"{name}.csv"), *options]) == 0
    with (tmp_path / "one-labels.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert row["item"] == f"'{formula}0" and row["label"].startswith("'-")
    change = tmp_path / "change.html"
    assert run_command(["report", *(str(tmp_path / f"{n}.html") for n in ("one", "two")), "-o", str(change), "-q"]) == 0
    data = read_page(change)
    assert data["panels"]["labels"]["values"]["n_shared"] == n
    assert data["flipped"] == [f"{formula}0"]
    assert len(gzip.compress(change.read_bytes())) < 100_000
