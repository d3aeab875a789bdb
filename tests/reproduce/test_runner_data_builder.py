"""Data sets are built once per run, in a process of their own, with the bits that a cell would build itself."""

from dataclasses import replace

import numpy as np
import pytest

from manyhands.exceptions import AnnotationError, ManyhandsError
from manyhands.reproduce import runner
from manyhands.reproduce.cells import Cell, run_cell
from manyhands.reproduce.runner import DataBuilder, _Recent
from manyhands.reproduce.tables import DataSet
from measuring import BLOBS, CROWD, LINEAR, SKENE, VOTE, small_table

DRAWN = replace(BLOBS, arguments=BLOBS.arguments | {"random_state": 3}, seeded=(), items=40, drawn=True)


@pytest.fixture
def builder():
    with DataBuilder() as found:
        yield found


def test_a_run_builds_each_data_set_once(builder, tmp_path):
    """Two rows and two seeds of simulated data: two data sets."""
    found = runner.run(small_table([VOTE, SKENE], [CROWD]), tmp_path, quick=True, jobs=2, builder=builder)
    assert len(found.by_key) == 4 and builder.n_built == 2
    assert not [record for record in found.by_key.values() if "error" in record]
    runner.run(small_table([VOTE, SKENE], [CROWD]), tmp_path, quick=True, jobs=2, builder=builder)
    assert builder.n_built == 2


def test_data_that_do_not_depend_on_the_seed_are_built_once_for_all(builder):
    """Simulated without a seed; items that are drawn are different data."""
    fixed = replace(CROWD, seeded=())
    for seed in (1000, 1001):
        builder.build(Cell(small_table(), fixed, VOTE, seed))
    assert builder.n_built == 1
    for seed in (1000, 1001, 1000):
        builder.build(Cell(small_table(), DRAWN, LINEAR, seed))
    assert builder.n_built == 3


@pytest.mark.parametrize("dataset", [BLOBS, DRAWN, replace(BLOBS, remove=0.3, features="standardised")])
def test_the_bits_are_those_of_a_cell_of_its_own(dataset, tmp_path):
    """The figures of a run are those of `run_cell`, which builds the data in this process."""
    table = small_table([LINEAR], [dataset], seeds=1, metrics=("accuracy", "log_loss"))
    (record,) = runner.run(table, tmp_path, jobs=1).by_key.values()
    expected = run_cell(Cell(table, dataset, LINEAR, 1000)).metrics
    different = {name for name, value in expected.items() if record["metrics"][name] != value}
    assert different <= {"fit_seconds"}


def test_errors_come_back_as_they_are(builder, monkeypatch):
    """With the environment of the process that asks, and without ending the builder."""
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    birds = Cell(small_table(), DataSet("birds", load="agg/bluebirds"), VOTE, 1000)
    with pytest.raises(AnnotationError, match="MANYHANDS_DATA is not set"):
        builder.build(birds)
    assert builder.get(birds) is None and builder.n_built == 0
    assert builder.get(Cell(small_table(), CROWD, VOTE, 1000)) is not None


def test_a_builder_that_dies_is_replaced(builder):
    """Its error is one sentence, and the next request starts another process."""
    cell = Cell(small_table(), CROWD, VOTE, 1000)
    builder.build(cell)
    builder._process.kill()
    with pytest.raises(ManyhandsError, match="builds data sets was ended by SIGKILL"):
        builder.build(replace(cell, seed=7))
    assert builder.get(replace(cell, seed=7)) is not None


def test_only_recent_data_are_kept():
    """Up to a total size; the last one in any case."""
    recent = _Recent(limit_mb=1)
    for name in "abc":
        recent.put(name, name, 2**19)
    assert [recent.get(name) for name in "abc"] == [None, "b", "c"]
    recent.put("large", "x", 2**21)
    assert [recent.get(name) for name in ("b", "c", "large")] == [None, None, "x"]


def test_a_loaded_data_set_is_loaded_once(monkeypatch):
    """For all folds and seeds; other arguments are another data set."""
    loaded = []

    class Data:
        X, X_test = np.zeros((2, 2)), None

    load = runner._remembering(lambda name, **arguments: loaded.append((name, arguments)) or Data())
    for arguments in ({}, {}, {"features": "raw"}):
        load("labelme", **arguments)
    assert loaded == [("labelme", {}), ("labelme", {"features": "raw"})]
