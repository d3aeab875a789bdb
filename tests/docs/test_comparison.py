"""The comparison with other packages: tables are those of the stored rows, and rows are complete."""

import importlib
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "docs" / "results" / "peers.json"


@pytest.fixture(scope="module")
def peers():
    """The script that made them."""
    pytest.importorskip("pandas")
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module("peers")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_tables_are_those_of_the_rows(peers):
    """In README.md and docs/comparison.md; `python benchmarks/peers.py --page` writes them."""
    stored = json.loads(ROWS.read_text(encoding="utf-8"))
    for path in peers.PAGES:
        assert peers.page(path, stored) == path.read_text(encoding="utf-8"), path.name


def test_a_method_with_rows_has_one_for_every_set(peers):
    """Figures that can be, or the reason why there are none; a method without any row is shown as not measured."""
    stored = json.loads(ROWS.read_text(encoding="utf-8"))
    pairs = [(row["method"], row["data"]) for row in stored["rows"]]
    measured = {method for method, _ in pairs}
    assert {"manyhands: default", "pandas: majority vote"} <= measured <= set(peers.METHODS)
    assert set(pairs) == {(method, name) for method in measured for name in peers.SETS}
    assert len(pairs) == len(set(pairs))
    for row in stored["rows"]:
        if "accuracy" in row:
            assert 0 <= row["accuracy"] <= 1 and 0 <= row["calibration_error"] <= 1 and row["cpu_seconds"] >= 0
        else:
            assert row["reason"]


def test_figures_of_a_crowd_by_hand(peers):
    """Two of three labels are right with a confidence of .8; a tie counts by half in the second figure."""
    import numpy as np

    crowd = object.__new__(peers.Crowd)
    crowd.known, crowd.truth = np.arange(3), np.array([0, 1, 1])
    found = peers.figures_of(crowd, np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]))
    assert math.isclose(found["accuracy"], 2 / 3) and math.isclose(found["tie_averaged"], 2.5 / 3)
    assert math.isclose(found["calibration_error"], (0.2 + 0.2 + 0.5) / 3)
