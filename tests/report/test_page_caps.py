"""A page stays below two megabytes whatever comes; what it leaves out is named."""

import gzip
import warnings

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command
from manyhands.exceptions import CrowdWarning
from manyhands.report import build, make_run, read_page, render_page, run_data
from manyhands.report.run import Provenance, chips
from manyhands.simulate import make_crowd

N = 12_000


def _triples(item=lambda i: f"i{i % 3000}", worker=lambda i: f"w{i % 400}", label=lambda i: str(i * 7 % 3)):
    return [item(i) for i in range(N)], [worker(i) for i in range(N)], [label(i) for i in range(N)]


CROWDS = {
    "long-worker-ids": _triples(worker=lambda i: f"w{i % 2000}" + "<" * 3000),
    "long-ids-of-items": _triples(item=lambda i: f"{'&' * 100}{i % 3000}"),
    "many-classes-with-long-names": _triples(label=lambda i: f"class {i % 2000} " + "<" * 300),
    "every-worker-another-class": _triples(
        item=lambda i: f"i{i % 40}",
        worker=lambda i: f"w{i // 40 % 150}",
        label=lambda i: f"{i // 40 % 120} " + "<" * 300,
    ),
}


@pytest.mark.parametrize("name", CROWDS)
def test_no_crowd_makes_a_page_of_two_megabytes(name):
    """Names are escaped six times their size at worst, and there may be thousands of each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = mh.MajorityVote().fit(mh.Annotations.from_triples(*CROWDS[name]))
    files = {f"{'f' * 5000}{i}": "0" * 64 for i in range(500)}
    known = Provenance("1", "m", command="c" * 3_000_000, files=files)
    run = make_run(model, reveal=True, title="T" * 3_000_000, provenance=known, full_labels="l.csv")
    report = build(run)
    page = render_page(report, run_data(run, report))
    assert len(page) < 2_000_000


def test_ten_thousand_items_by_two_hundred_workers(tmp_path):
    """At most 500 kB, and 120 kB compressed."""
    crowd = make_crowd(10_000, 200, 4, 10, bad="random", bad_share=0.2, random_state=0)
    page = mh.write_report(mh.MajorityVote().fit(crowd.annotations), tmp_path / "r.html").read_bytes()
    assert len(page) <= 500_000 and len(gzip.compress(page)) <= 120_000


def test_classes_beyond_the_cap_are_read_from_the_table_beside(tmp_path):
    """Where the names of the classes are too large for the page, a change is still found."""
    rows = [(f"i{i}", f"w{w}", f"class {i % 300} {'x' * 1000}") for i in range(600) for w in range(2)]
    for name in ("one", "two"):
        text = "".join(f"{i},{w},{k}\n" for i, w, k in rows)
        (tmp_path / f"{name}.csv").write_text("item,worker,label\n" + text)
        options = ["-m", "majority-vote", "--rare-classes", "keep", "-q", "-o", str(tmp_path / f"{name}.html")]
        assert run_command(["report", str(tmp_path / f"{name}.csv"), *options]) == 0
        rows += [("i0", f"new{w}", f"class 7 {'x' * 1000}") for w in range(3)]
    assert read_page(tmp_path / "one.html")["classes"] is None
    change = tmp_path / "change.html"
    assert run_command(["report", str(tmp_path / "one.html"), str(tmp_path / "two.html"), "-o", str(change), "-q"]) == 0
    assert read_page(change)["flipped"] == ["i0"]


def test_votes_of_an_item_are_cut_with_their_number():
    """Twelve classes, the most frequent first, then the rest as one; ties keep the order of the classes."""
    votes = [1] * 20
    votes[5], votes[3] = 4, 3
    found = chips([f"c{k}" for k in range(20)], votes).votes
    assert found[:3] == (("c5", 4), ("c3", 3), ("c0", 1)) and len(found) == 13
    assert found[-1] == ("8 more", 8) and sum(count for _, count in found) == sum(votes)
    assert chips(["a", "b"], [0, 2]).votes == (("b", 2),)


def test_workers_in_the_data_are_those_with_most_labels(tmp_path):
    """Beyond the cap of bytes those with few labels are left out."""
    workers = [f"{w}{'x' * 3000}" for w in range(200)]
    n_labels = np.arange(200) % 50 + 1
    triples = [(f"i{i}", worker, str(i % 2)) for worker, n in zip(workers, n_labels) for i in range(n)]
    model = mh.MajorityVote().fit(mh.Annotations.from_triples(*zip(*triples)))
    found = read_page(mh.write_report(model, tmp_path / "r.html", worker_names="ids"))["workers"]
    assert 90 <= len(found["worker"]) < 100
    assert min(found["n_labels"]) >= sorted(n_labels)[-100]
