"""Sentences of the page that must not say more than the picture or the data."""

from __future__ import annotations

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command
from manyhands.report import PANELS, make_run, read_page

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")]


def page_of(tmp_path, text, *options):
    """The data of the report of a table, and the page as text."""
    path = tmp_path / "votes.csv"
    path.write_text(text)
    out = tmp_path / "report.html"
    assert run_command(["report", str(path), "-o", str(out), "-q", "--force", *options]) == 0
    return read_page(out)["panels"], out.read_text(encoding="utf-8")


def test_the_title_of_confusions_names_both_the_number_and_the_largest_cell():
    """Most labels are wrong on a frequent class; the largest share, and cell of the picture, is of a rare one."""
    rows = []
    for item in range(200):
        truth = "common" if item < 160 else "rare"
        for w in range(5):
            wrong = w == item % 5 and (item % 2 == 0 if truth == "common" else True)
            rows.append((item, w, {"common": "other", "rare": "third"}[truth] if wrong else truth))
    rows += [(200 + i, w, "other" if i % 2 else "third") for i in range(40) for w in range(5)]
    run = make_run(mh.DawidSkene().fit(mh.Annotations.from_triples(*zip(*rows))))
    panel = PANELS["confusable-classes"](run)
    assert panel.values["top"][0][:2] == ("common", "other")
    assert "“common” is labelled as “other” most often: about 80 labels, 10% of those on it." in panel.title
    assert "The largest share is of fewer labels: “rare” as “third”, 20% (about 40 labels)." in panel.title


def test_the_largest_cell_is_named_where_no_pair_of_classes_stands_out():
    rows = []
    for item in range(300):  # every worker errs on a fifth of "a" and "b" and, on fewer items, a quarter of "c"
        truth = "aaabbbc"[item % 7]
        for w in range(5):
            wrong = (item // 7 + w) % (4 if truth == "c" else 5) == 0
            rows.append((item, w, "abc"["abc".index(truth) - 1 - (item + w) % 2] if wrong else truth))
    panel = PANELS["confusable-classes"](make_run(mh.DawidSkene().fit(mh.Annotations.from_triples(*zip(*rows)))))
    assert panel.title.startswith("No two classes are confused much more often than others; ")
    assert " The largest share is of fewer labels: “c” as “" in panel.title


def rows_at(minutes, n_items=60):
    stamps = np.linspace(0, minutes, n_items * 3).astype(int)
    rows = [
        f"i{k // 3},w{k % 3},{'ab'[(k // 3) % 2]},2026-03-02T{9 + at // 60:02d}:{at % 60:02d}:00Z"
        for k, at in enumerate(stamps)
    ]
    return "item,worker,label,timestamp\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (40, "on 2 Mar; only one hour has 20 labels or more, so quality over time is not compared"),
        (170, "nothing shows that quality fell"),
    ],
)
def test_one_hour_is_not_called_steady(tmp_path, minutes, expected):
    panels, _ = page_of(tmp_path, rows_at(minutes))
    assert expected in panels["time"]["title"] and "steady" not in panels["time"]["title"]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.45, "Agreement is low (alpha 0."), (1.0, "Nothing shows that workers agree more than by chance")],
)
def test_low_agreement_is_not_called_chance(tmp_path, share, expected):
    """Only agreement whose interval reaches 0 is."""
    rng = np.random.default_rng(1)
    rows = [f"{i},{w},{(i % 3) if rng.random() > share else rng.integers(3)}" for i in range(150) for w in range(4)]
    _, page = page_of(tmp_path, "item,worker,label\n" + "\n".join(rows) + "\n")
    assert expected in page and "little more than by chance" not in page


def test_blank_cells_of_a_wide_table_are_not_rows_left_out(tmp_path, capsys):
    """They are counted as blank cells, without a warning; the command line says the same."""
    workers = [f"ann{w}" for w in range(8)]
    rows = [
        ",".join([f"i{i}", *("yes" if i % 2 else "no" if w % 4 == i % 4 else "" for w in range(8))]) for i in range(40)
    ]
    panels, page = page_of(tmp_path, "item," + ",".join(workers) + "\n" + "\n".join(rows) + "\n")
    assert panels["ledger"]["title"] == "All 200 cells with a label of the export count; 120 cells are blank."
    assert "left out, most of them as" not in page
    capsys.readouterr()
    assert run_command(["aggregate", str(tmp_path / "votes.csv"), "-o", str(tmp_path / "out")]) == 0
    assert "320 cells read, 200 kept, 120 blank" in capsys.readouterr().err


def test_rows_that_were_left_out_by_request_are_no_warning(tmp_path):
    """Rows without a label in a long table still are."""
    text = "item,worker,label\n" + "".join(f"{i},{w},{'xy'[i % 2]}\n" for i in range(30) for w in "abcd")
    assert "were left out, most" not in page_of(tmp_path, text, "--exclude-workers", "a")[1]
    assert (
        "were left out, most of them as: no label"
        in page_of(tmp_path, text + "".join(f"{i},e,\n" for i in range(30)))[1]
    )
