"""The table of the alerts in docs/scorecards.md is the one that the measured values give."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_measured_values():
    """Rendering again changes nothing; every cell of the plan was measured."""
    spec = importlib.util.spec_from_file_location("flags_benchmark", ROOT / "benchmarks" / "alerts.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    values = json.loads((ROOT / "docs" / "results" / "alerts.json").read_text())
    page = (ROOT / "docs" / "scorecards.md").read_text()
    assert benchmark.page_with(benchmark.render(values), page) == page
    found = [(c["behaviour"], c["n_classes"], c["n_labels"], c["mean"]) for c in values["cells"]]
    assert found == list(benchmark.cells())
