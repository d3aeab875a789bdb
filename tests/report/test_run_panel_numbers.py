"""Numbers of panels against plain loops: intervals, order and reasons of hard items, verdict, policy, changes."""

import base64
import hashlib
import math
import re

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command
from manyhands.metrics.vote_patterns import wilson
from manyhands.report import PANELS, build, make_run, read_page, render_page, run_data
from manyhands.report.run import SEVERITIES, mean_interval, ratio_interval
from manyhands.scorecards import ACCUSATIONS
from manyhands.simulate import make_crowd

pytestmark = pytest.mark.fast

Z = 1.959963984540054
N_GOLD = 12


@pytest.fixture(scope="module")
def run():
    """A crowd with workers who answer at random, and known classes of which some are contradicted."""
    crowd = make_crowd(150, 12, 3, 4, bad="random", bad_share=0.3, random_state=5)
    a = crowd.annotations
    gold = {
        item: a.classes[(crowd.truth[row] + (row < 2)) % 3] for row, item in enumerate(a.item_ids[:N_GOLD].tolist())
    }
    return make_run(mh.PooledDawidSkene().fit(a, gold=gold))


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (18, 20), (1, 3), (480, 1000)])
def test_ends_of_an_interval_are_the_shares_at_which_the_score_test_turns(right, n):
    """Wilson: an end p solves (right / n - p)^2 = z^2 p (1 - p) / n."""
    share = right / n
    for end in map(float, wilson(right, n)):
        assert (share - end) ** 2 == pytest.approx(Z**2 * end * (1 - end) / n, abs=1e-12)
    assert [float(end) for end in wilson(0, 0)] == [0.0, 1.0]


def test_intervals_of_means_and_ratios_are_those_of_loops():
    """The spread of the rows around the mean, or around the ratio, over the square of their number."""
    values = np.random.default_rng(0).dirichlet([1, 2, 3], 40)
    weight = np.arange(1.0, 41.0)
    mean, low, high = mean_interval(values)
    ratio, below, above = ratio_interval(values * weight[:, None], weight)
    for k in range(3):
        m = sum(values[:, k]) / 40
        half = Z * math.sqrt(sum((v - m) ** 2 for v in values[:, k])) / 40
        assert (mean[k], low[k], high[k]) == pytest.approx((m, max(m - half, 0), min(m + half, 1)))
        r = sum(v * w for v, w in zip(values[:, k], weight)) / sum(weight)
        half = Z * math.sqrt(sum((v * w - r * w) ** 2 for v, w in zip(values[:, k], weight))) / sum(weight)
        assert (ratio[k], below[k], above[k]) == pytest.approx((r, max(r - half, 0), min(r + half, 1)))


def test_hard_items_are_sorted_from_the_least_sure(run):
    """Contradicted gold first, then all items below 0.9 by their posterior; their number is in the title."""
    panel = PANELS["hard-items"](run)
    model, a = run.model, run.annotations
    votes = np.zeros((a.n_items, a.n_classes), int)
    for i, k in zip(a.item, a.label):
        votes[i, k] += 1
    contradicted = [r for r in range(N_GOLD) if votes[r].max() > votes[r, run.codes[r]]]
    unsure = [r for r in range(N_GOLD, a.n_items) if model.posterior_[r].max() < 0.9]
    unsure.sort(key=lambda r: (model.posterior_[r].max(), r))
    expected = [str(a.item_ids[r]) for r in [*contradicted, *unsure]]
    rows = panel.table[0].rows
    assert contradicted and [row[0] for row in rows] == expected[:60]
    assert panel.values["n"] == len(expected) and panel.title.startswith(f"{len(expected)} items need")
    for row, item in zip(rows, [*contradicted, *unsure]):
        found = dict(row[1].votes)
        assert found == {str(a.classes[k]): int(votes[item, k]) for k in range(3) if votes[item, k]}


def test_reasons_are_what_the_votes_show(run):
    """Recomputed for each item from its votes and the alerts of its workers."""
    a, alerts = run.annotations, run.cards.alerts
    accused = {w for w in range(a.n_workers) if set(alerts[w]) & set(ACCUSATIONS)}
    names = {str(item): row for row, item in enumerate(a.item_ids.tolist())}
    for name, _, label, _, reason in PANELS["hard-items"](run).table[0].rows:
        row = names[name]
        given = [(str(a.classes[k]), int(w)) for i, w, k in zip(a.item, a.worker, a.label) if i == row]
        count = {k: sum(c == k for c, _ in given) for k, _ in given}
        bad, top = sum(w in accused for _, w in given), max(count.values())
        if row < N_GOLD:
            expected = "known class"
        elif bad * 2 >= len(given):
            expected = "flagged workers"
        elif count.get(label, 0) < top:
            expected = "overruled"
        else:
            expected = "tied" if list(count.values()).count(top) > 1 else "disagree"
        assert expected in reason or (len(count) == 1 and "agree" in reason)


def test_verdict_counts_what_the_panels_count(run):
    """Sure labels, items to look at and flagged workers, each from the fitted model; notices by severity."""
    report = build(run)
    model = run.model
    sure = sum(model.posterior_[N_GOLD:].max(axis=1) >= 0.9)  # the others are gold
    assert f"{100 * sure / (150 - N_GOLD):.0f}% of the labels are at least 0.9 sure" in report.summary.title
    random = sum("random" in alerts for alerts in run.cards.alerts)
    assert random and f"{random} workers look random" in report.summary.title
    labels = sum(int(n) for n, alerts in zip(run.cards.n_labels, run.cards.alerts) if "random" in alerts)
    assert any(f"{random} workers look random; they gave {labels} labels." == a.text for a in report.summary.notices)
    severity = [SEVERITIES.index(notice.severity) for notice in report.summary.notices]
    assert severity == sorted(severity) and {notice.panel for notice in report.summary.notices} - {None}


def test_policy_has_the_hashes_of_the_page_itself(run):
    """One style and one script; the policy allows these texts and nothing else."""
    report = build(run)
    page = render_page(report, run_data(run, report)).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    style, script = (re.findall(rf"(?s)<{tag}>(.*?)</{tag}>", page) for tag in ("style", "script"))
    assert len(style) == len(script) == 1
    digest = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (*style, *script)]
    parts = [part.strip() for part in policy.replace("&#39;", "'").split(";")]
    assert parts == [
        "default-src 'none'",
        f"style-src 'sha256-{digest[0]}'",
        f"script-src 'sha256-{digest[1]}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert len(script[0]) <= 10_000


def test_cards_show_the_confusions_of_one_worker(run):
    """Rows are true classes by the posterior; flagged workers come first."""
    panel = PANELS["worker-cards"](run)
    a, posterior = run.annotations, run.model.posterior_
    first = run.workers.index(panel.parts[0].title.split(":")[0])
    assert set(run.cards.alerts[first]) & set(ACCUSATIONS)
    counts = np.zeros((3, 3))
    for i, w, k in zip(a.item, a.worker, a.label):
        if w == first:
            counts[:, k] += posterior[i]
    rate = counts / counts.sum(axis=1, keepdims=True)
    shown = re.findall(r'<text class="cell[^"]*"[^>]*>(\d+)</text>', panel.parts[0].svg[0])
    assert [int(text) for text in shown] == [round(float(f"{100 * v:.0f}")) for v in rate.ravel()]


def test_a_change_names_the_workers_that_moved(tmp_path):
    """A fall is clear if the old accuracy is above the new interval; counted from the data of the two pages."""
    a = make_crowd(120, 10, 3, 5, random_state=1).annotations
    rows = [(f"i{i}", f"w{w}", int(k)) for i, w, k in zip(a.item, a.worker, a.label)]
    wrong = [w == "w4" or (w == "w2" and at % 5 == 0) for at, (_, w, _) in enumerate(rows)]  # a large and a small fall
    spoilt = [(i, w, (k + bad) % 3) for (i, w, k), bad in zip(rows, wrong)]
    pages = []
    for name, found in (("one", rows), ("two", spoilt)):
        (tmp_path / f"{name}.csv").write_text("item,worker,label\n" + "".join(f"{i},{w},c{k}\n" for i, w, k in found))
        pages.append(str(tmp_path / f"{name}.html"))
        assert (
            run_command(["report", str(tmp_path / f"{name}.csv"), "--worker-names", "ids", "-q", "-o", pages[-1]]) == 0
        )
    change = tmp_path / "change.html"
    assert run_command(["report", *pages, "-o", str(change), "-q"]) == 0
    old, new = (read_page(page)["workers"] for page in pages)
    pairs = [
        (old["accuracy"][old["worker"].index(worker)], accuracy, low, high)
        for worker, accuracy, low, high in zip(new["worker"], new["accuracy"], new["low"], new["high"])
    ]
    fallen = sum(was - now >= 0.02 and high < was for was, now, _, high in pairs)
    risen = sum(now - was >= 0.02 and low > was for was, now, low, _ in pairs)
    assert any(was - now >= 0.02 and low < was <= high for was, now, low, high in pairs)  # not every fall is clear
    found = read_page(change)["panels"]["workers"]
    assert found["values"] == {"n_shared": 10, "risen": risen, "fallen": fallen} and fallen >= 1
    assert f"{fallen} worker{'s' if fallen > 1 else ''} clearly fell" in found["title"]
