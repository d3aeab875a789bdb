"""Workers and items that are left out, and what the labels would be without the flagged workers."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from manyhands import Annotations
from manyhands.cli.app import run
from manyhands.exceptions import ParameterError
from manyhands.io.reading import read_export
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.options import ExportOptions
from manyhands.report.html import read_page

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")]


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """240 items, 14 workers of whom three answer at random."""
    rng, classes = np.random.default_rng(3), ["cat", "dog", "fox"]
    rows = ["item,worker,label"]
    for item in range(240):
        truth = rng.integers(3)
        for w in rng.choice(14, 5, replace=False):
            label = truth if w >= 3 and rng.random() < 0.72 else rng.integers(3)
            rows.append(f"item{item},user{w}@x.org,{classes[label]}")
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_the_ledger_counts_what_is_left_out(votes):
    """Every row has one reason; items stay without labels, left-out workers and items are not in the result."""
    whole = read_export(votes)
    reading = read_export(votes, exclude_workers=["user1*", "user2@x.org,user3@x.org"], exclude_items="item9")
    gone = [
        w for w in whole.annotations.worker_ids.tolist() if w.startswith("user1") or w in ("user2@x.org", "user3@x.org")
    ]
    expected = whole.annotations.without_workers(gone).without_items("item9")
    assert reading.annotations == expected
    assert reading.ledger.excluded["excluded_worker"] == int(
        np.isin(whole.annotations.worker, [whole.annotations.worker_ids.tolist().index(w) for w in gone]).sum()
    )
    assert reading.ledger.rows_read == 1200 == reading.ledger.kept + sum(reading.ledger.excluded.values())
    assert reading.notes.keys() >= {"excluded_workers", "excluded_items"} and "x.org" not in str(reading.notes)
    only = read_export(votes, only_workers="user1*", only_items=["item1", "item2"])
    assert only.annotations.n_items == 2 and set(only.annotations.worker_ids) == {
        "user1@x.org",
        *(f"user1{n}@x.org" for n in range(4)),
    }


def test_a_file_of_ids(votes, tmp_path):
    """One id in each line, or a table with a column; unknown ids of a list for several exports are counted."""
    (tmp_path / "list.txt").write_text("user0@x.org\nsomebody@else.org\n")
    (tmp_path / "workers.csv").write_text("n,worker\n1,user0@x.org\n")
    for name, n_unknown in (("list.txt", 1), ("workers.csv", 0)):
        reading = read_export(votes, exclude_workers=str(tmp_path / name))
        assert reading.annotations.n_workers == 13 and ("unknown_workers" in reading.notes) == bool(n_unknown)
    (tmp_path / "none.txt").write_text("somebody@else.org\n")
    with pytest.raises(ParameterError, match="names no worker of "):
        read_export(votes, exclude_workers=str(tmp_path / "none.txt"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--exclude-workers", "user99"], "--exclude-workers: No worker is called 'user99'. Did you mean"),
        (["--only-items", "thing*"], "--only-items: No item matches 'thing*'"),
        (["--exclude-workers", "*"], "has no label that counts: 1200 rows read, 0 kept, 1200 excluded worker"),
    ],
)
def test_what_cannot_be_left_out_gets_one_sentence(votes, capsys, arguments, message):
    assert run(["aggregate", votes, *arguments]) != 0
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_the_page_and_the_summary_say_what_the_flagged_workers_change(votes, tmp_path, capsys):
    """The table has exactly the items whose label is another one in a fit without the flagged workers."""
    out = tmp_path / "out"
    assert run(["aggregate", votes, "-o", str(out), "--report", "--worker-names", "ids"]) == 0
    found = json.loads((out / "summary.json").read_text())["without_flagged"]
    changed = pl.read_csv(out / "without_flagged.csv")
    with_all, without = (
        aggregate([votes], ExportOptions(exclude_workers=names)).tables["labels.csv"]
        for names in ((), ("user0@x.org", "user1@x.org", "user2@x.org"))
    )
    differs = with_all["label"] != without["label"]
    assert changed["item"].to_list() == with_all["item"].filter(differs).to_list()
    assert changed["label_without"].to_list() == without["label"].filter(differs).to_list()
    assert (found["n_workers"], found["n_changed"]) == (3, len(changed)) and len(changed) > 0
    assert found["items"] == changed["item"].to_list()[:5]
    sentence = f"Without the 3 flagged workers, {len(changed)} of 240 items would have another label"
    assert sentence in capsys.readouterr().err.replace("\n", " ")
    page = (out / "report.html").read_text()
    assert f"{len(changed)} of 240 items would have another label" in page and changed["item"][0] in page


def test_flagged_workers_can_be_left_out_and_are_named_nowhere(votes, tmp_path):
    """By the alerts of a first fit; with pseudonyms, no id of anybody is in any file, nor in the recorded command."""
    out, config = tmp_path / "out", tmp_path / "options.toml"
    config.write_text('exclude-workers = ["user5@x.org", "flagged"]\n')
    command = ["aggregate", votes, "--config", str(config), "--worker-names", "pseudonyms", "--report", "-o", str(out)]
    assert run([*command, "-q"]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["n_workers"] == 10 and "3 workers were flagged" in summary["notes"]["flagged"]
    assert summary["without_flagged"] is None and not (out / "without_flagged.csv").exists()
    assert not any(b"x.org" in path.read_bytes() for path in out.iterdir())
    assert read_page(out / "report.html")["panels"]["ledger"]["values"]["excluded"].keys() == {"excluded_worker"}


@pytest.mark.parametrize("names", [None, "pseudonyms"])
def test_the_recorded_command_names_no_worker(votes, tmp_path, names):
    """Neither one who is left out nor one who stays."""
    command = "manyhands aggregate votes.csv --exclude-workers user5@x.org,user6@x.org"
    export = ExportOptions(exclude_workers=("user5@x.org,user6@x.org",))
    options = {"method": "majority-vote", "report": True, "worker_names": names}
    aggregate([votes], export, out=tmp_path, command=command + " --machines user7@x.org", **options)
    page = (tmp_path / "report.html").read_text()
    assert "--exclude-workers left-out-worker,left-out-worker --machines " in page and "x.org" not in page


def test_flagged_needs_a_file_that_can_be_read_twice():
    with pytest.raises(ParameterError, match="reads the export twice"):
        aggregate(["-"], ExportOptions(exclude_workers=("flagged",)))


def test_gold_of_an_item_that_is_left_out_is_left_out(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,worker,label,gold\n" + "".join(f"{i},{w},{'xy'[i % 2]},x\n" for i in range(4) for w in "ab"))
    assert read_export(path, exclude_items="0").gold.keys() == {"1", "2", "3"}
    assert isinstance(read_export(path, only_items=["1", "2"]).annotations, Annotations)
