"""`aggregate` on shards in memory: the files of an ordinary run, with items in the order of the shards."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest

from manyhands import registry
from manyhands.cli.app import run
from manyhands.io import verify_folder
from manyhands.jobs import out_of_core
from manyhands.jobs.aggregate import aggregate
from manyhands.sharded.fit import METHODS

CLASSES = np.array(["cat", "dog", "=owl"])


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Three hundred items, two groups of workers without common items, repeats, ties and a missing label."""
    rng = np.random.default_rng(5)
    rows = []
    for item in range(300):
        truth = rng.integers(3)
        for worker in rng.choice(8, rng.integers(1, 5), replace=False):
            label = truth if rng.random() < 0.6 + 0.04 * worker else rng.integers(3)
            rows.append((f"i{item}", f"{'ab'[item % 2]}{worker}", CLASSES[label]))
    rows += [("i0", "a9", "cat"), ("i0", "a9", "dog"), ("only", "a9", "")]
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    pl.DataFrame(rows, schema=["item", "worker", "label"], orient="row").write_csv(path)
    return str(path)


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
@pytest.mark.parametrize("method", METHODS)
def test_the_files_are_those_of_an_ordinary_run(votes, tmp_path, method):
    """The same columns, labels and alerts; probabilities to the printed digits."""
    whole = aggregate([votes], method=method, out=tmp_path / "whole", write=["parquet", "jsonl"])
    found = aggregate([votes], method=method, out=tmp_path / "shards", write=["parquet", "jsonl"], shards="hash")
    expected, got = (pl.read_csv(tmp_path / name / "labels.csv").sort("item") for name in ("whole", "shards"))
    assert got.columns == expected.columns
    exact = ["item", "label", "n_labels", "alerts"]
    assert got.select(exact).equals(expected.select(exact))
    numbers = [name for name in got.columns if name not in exact]
    assert np.allclose(got[numbers].fill_null(-1).to_numpy(), expected[numbers].fill_null(-1).to_numpy(), atol=3e-6)
    expected, got = (pl.read_csv(tmp_path / name / "workers.csv") for name in ("whole", "shards"))
    assert set(got.columns) <= set(expected.columns)
    assert got["worker"].to_list() == expected["worker"].to_list()
    assert got["n_labels"].to_list() == expected["n_labels"].to_list()
    if method != "majority-vote":  # without confusion matrices, the table has the share of the vote itself
        assert np.allclose(got["accuracy"].to_numpy(), expected["accuracy"].to_numpy(), atol=2e-6)
    for kind, read in (("parquet", pl.read_parquet), ("jsonl", partial(pl.read_ndjson, infer_schema_length=None))):
        table, other = (read(tmp_path / name / f"labels.{kind}") for name in ("shards", "whole"))
        assert table.schema == other.schema
        assert table["item"].to_list() == pl.read_csv(tmp_path / "shards" / "labels.csv")["item"].to_list()
        assert table.sort("item")["label"].to_list() == other.sort("item")["label"].to_list()
    assert len(verify_folder(tmp_path / "shards")) == len(found.written.names) - 1
    same = ["method", "parameters", "n_items", "n_workers", "n_classes", "n_annotations", "labels_per_item"]
    same += ["n_components", "n_unlabelled", "n_tied", "labels", "ledger", "n_iter", "converged", "columns", "notes"]
    summary = json.loads((tmp_path / "shards" / "summary.json").read_text())
    assert summary == found.summary
    assert {name: summary[name] for name in same} == {name: whole.summary[name] for name in same}
    for name in ("mean_confidence", "share_above_0.9"):
        assert summary[name] == pytest.approx(whole.summary[name], abs=2e-6)
    assert summary["n_components"] == 2
    assert (summary["route"], summary["n_shards"]) == ("in memory, on shards", 1)
    assert found.confident_share == pytest.approx(whole.confident_share, abs=2e-6)
    assert set(found.timings["seconds"]) == {"read", "fit", "workers", "labels"}


def test_the_command_prints_the_run(votes, tmp_path, capsys, monkeypatch):
    """What was decided first, then the figures; with --json one object, with -q nothing."""
    out = str(tmp_path / "out")
    monkeypatch.setattr(out_of_core, "_BYTES_IN_MEMORY", 10**9)
    command = ["aggregate", votes, "-m", "dawid-skene", "--max-memory", "500MB", "-o", out]
    assert run(command) == 0
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if not line.startswith("note:")]
    assert printed.out == ""
    assert lines[0].startswith("Out of core: ") and "needs about 1 GB in memory" in lines[0]
    assert any("The crowd consists of 2 groups that have no item in common" in line for line in lines)
    assert any(line.startswith("Out of core, 1 shard, ") and " passes: read " in line for line in lines)
    assert lines[-1] == f"Written to {out}: labels.csv, summary.json, workers.csv, manifest.json"
    assert run(command) == 2
    assert "already has labels.csv" in capsys.readouterr().err
    assert run([*command, "--force", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_shards"] == 1 and found["timings"]["seconds"] and "1 GB" in found["reason"]
    assert run([*command, "--force", "-q", "--fail-under", "1"]) == 4
    assert run(["aggregate", votes, "-m", "dawid-skene", "--max-memory", "2GB"]) == 0
    assert "In memory: " in capsys.readouterr().err


def test_cells_are_safe_for_spreadsheets_where_asked(votes, tmp_path):
    """Names of columns too; the bytes of the other formats stay as they are."""
    options = {
        "method": "majority-vote",
        "shards": "hash",
        "write": ["jsonl"],
        "out": tmp_path,
        "spreadsheet_safe": True,
    }
    aggregate([votes], **options)
    table = pl.read_csv(tmp_path / "labels.csv")
    assert "'=owl" in table["label"].to_list() and "=owl" not in table["label"].to_list()
    assert "=owl" in pl.read_ndjson(tmp_path / "labels.jsonl")["label"].to_list()


def test_the_methods_of_shards_are_methods_of_the_registry():
    """Their names are those that -m takes."""
    assert set(METHODS) <= set(registry.names("aggregator"))
