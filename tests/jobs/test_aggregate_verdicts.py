"""`aggregate` on pairwise verdicts: the default method, notes, workers.csv, the page, and what replaces the default."""

import csv
from pathlib import Path

import pytest

from manyhands import registry
from manyhands.cli.app import run
from manyhands.exceptions import CrowdWarning
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.convert import convert
from manyhands.jobs.options import ExportOptions
from manyhands.jobs.report import report
from manyhands.report import read_page

SAMPLE = str(Path(__file__).parents[1] / "samples" / "long" / "verdicts.csv")
EXPORT = ExportOptions(verdicts="position")
TRUTH = "ABABBAAAABBA"  # of the sample, pair-1 to pair-12

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


def test_the_default_of_verdicts_in_both_orders():
    """It is the order-consistency vote, a note says so and what it cannot find; the consistent judge is right."""
    with pytest.warns(CrowdWarning, match="order_consistency: .*only answers of people"):
        job = aggregate([SAMPLE], EXPORT)
    labels = dict(job.tables["labels.csv"].select("item", "label").rows())
    assert [labels[f"pair-{at}"] for at in range(1, 13)] == list(TRUTH)
    assert job.summary["method"] == registry.DEFAULT_VERDICTS
    assert {"both_orders", "order_consistency"} <= set(job.summary["notes"])
    assert job.summary["ledger"] == {"rows_read": 94, "kept": 94, "excluded": {}}


def test_workers_have_flip_rates_and_first_shares():
    """With their intervals, in workers.csv, and under pseudonyms too."""
    for names in (None, "pseudonyms"):
        rows = aggregate([SAMPLE], EXPORT, worker_names=names).tables["workers.csv"].to_dicts()
        table = sorted((row["flip_rate"], row["first_share"], row["n_pairs"]) for row in rows)
        assert table[0] == (pytest.approx(1 / 12), pytest.approx(12 / 23), 12) and table[-1] == (1, 1, 12)
        for row in rows:
            assert row["flip_rate_low"] <= row["flip_rate"] <= row["flip_rate_high"]
            assert row["first_share_low"] <= row["first_share"] <= row["first_share_high"]
    assert "flip_rate" not in aggregate([_ordinary()]).tables["workers.csv"].columns


def _ordinary():
    return str(Path(SAMPLE).with_name("triples.csv"))


@pytest.mark.parametrize(
    ("export", "method", "expected"),
    [
        (EXPORT, "majority-vote", "majority-vote"),
        (ExportOptions(verdicts="position", duplicates="share"), None, registry.DEFAULT),
        (ExportOptions(verdicts="position", order="A,tie,B"), None, registry.DEFAULT_ORDINAL),
    ],
)
def test_what_replaces_the_default(export, method, expected):
    """A named method; labels with weights, which the vote does not take; ordered classes."""
    job = aggregate([SAMPLE], export, method=method)
    assert job.summary["method"] == expected and "order_consistency" not in job.summary["notes"]
    assert ("weights_without_order" in job.summary["notes"]) == (expected == registry.DEFAULT)


def test_one_order_only_keeps_the_ordinary_default(tmp_path):
    """Nothing is known of consistency."""
    lines = Path(SAMPLE).read_text().splitlines()
    path = tmp_path / "one.csv"
    path.write_text("\n".join([lines[0], *(line for line in lines[1:] if ",false," in line)]))
    job = aggregate([str(path)], EXPORT)
    assert job.summary["method"] == registry.DEFAULT and "one_order" in job.summary["notes"]


def test_a_converted_table_says_that_it_has_no_order():
    """Its labels are those of both orders, and it says how to read them."""
    with pytest.warns(CrowdWarning, match="order_not_written: .*`duplicates=all`"):
        assert len(convert([SAMPLE], EXPORT).table) == 94


def test_the_page_shows_flip_rates(tmp_path):
    """In the table of workers and on the cards."""
    report([SAMPLE], EXPORT, out=tmp_path / "page.html", worker_names="ids")
    page = (tmp_path / "page.html").read_text()
    assert "flip rate" in page and "the verdict changes with the order in 100% of 12 pairs (0.76 to 1.00)" in page
    assert "names the answer shown first in 100% of the verdicts (0.86 to 1.00)" in page
    assert read_page(tmp_path / "page.html")["provenance"]["method"] == registry.DEFAULT_VERDICTS


def test_the_command_says_what_is_missing(capsys, tmp_path):
    """Without --verdicts the file is refused in one sentence, with it the files are written."""
    assert run(["aggregate", SAMPLE, "-q"]) != 0
    assert "--verdicts answer" in capsys.readouterr().err
    assert run(["aggregate", SAMPLE, "--verdicts", "position", "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "workers.csv").open() as file:
        assert {row["worker"]: row["flip_rate"] for row in csv.DictReader(file)}["first-place"] == "1.000000"
