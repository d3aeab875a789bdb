"""The votes of the tests of runs out of core."""

import gzip

import numpy as np
import polars as pl
import pytest

from manyhands.jobs import out_of_core


@pytest.fixture(scope="module")
def table():
    """Eight hundred items of three classes, with repeats and items that nobody labelled."""
    rng = np.random.default_rng(3)
    rows = []
    for item in range(800):
        truth = rng.integers(3)
        for worker in rng.choice(30, rng.integers(1, 6), replace=False):
            label = truth if rng.random() < 0.5 + 0.015 * worker else rng.integers(3)
            rows.append((f"item {item}", f"w{worker}", ["no", "yes", "don't, know"][label]))
    rows += [("item 0", "w0", "no"), ("item 0", "w0", "yes"), ("nobody", "w0", None), ('é"', "w1", "no")]
    return pl.DataFrame(rows, schema=["item", "worker", "label"], orient="row")


@pytest.fixture(scope="module")
def votes(table, tmp_path_factory):
    """The same rows in all formats that are read in parts."""
    folder = tmp_path_factory.mktemp("votes")
    table.write_parquet(folder / "votes.parquet", row_group_size=500)
    table.write_csv(folder / "votes.csv")
    (folder / "votes.csv.gz").write_bytes(gzip.compress((folder / "votes.csv").read_bytes()))
    table.write_ndjson(folder / "votes.jsonl")
    (folder / "parts").mkdir()
    for number, part in enumerate((table[:900], table[900:])):
        part.write_parquet(folder / "parts" / f"part-{number}.parquet")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The codes of labels go into the folder codes of the test, and not into the user's."""
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path))


@pytest.fixture
def large(monkeypatch):
    """Let small files need more memory than the limit, so that they go out of core."""
    monkeypatch.setattr(out_of_core, "_BYTES_IN_MEMORY", 10**9)
