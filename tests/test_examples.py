"""The examples run, and print what they are about."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = {  # what each example must print
    "aggregate_votes.py": ["photo-1: cat", "bob: ", "few_labels_per_worker"],
    "find_bad_workers.py": ["colluding group", "accuracy  true", "pooled Dawid-Skene: "],
}


def test_every_example_is_tested():
    """Every example is listed above."""
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs(name, capsys):
    """It runs from its first line to its last, and is short enough to be read."""
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    out = capsys.readouterr().out
    assert all(words in out for words in PRINTED[name])
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 40
