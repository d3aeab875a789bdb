"""The examples run, and print what they are about."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = {  # what each example must print
    "aggregate_votes.py": ["photo-1: cat", "bob: ", "few_labels_per_worker"],
    "find_bad_workers.py": ["colluding group", "accuracy  true", "pooled Dawid-Skene: "],
    "train_members.py": ["mean posterior of 2 members (processes: 1): members/posterior.npy"],
}
ELSEWHERE = {"spark_job.py"}  # one call, which tests/spark/test_job.py tests in an environment of its own


def test_every_example_is_tested():
    """Every example is listed above."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == PRINTED.keys() | ELSEWHERE


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs(name, capsys, monkeypatch, tmp_path):
    """It runs from its first line to its last, and is short enough to be read."""
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    out = capsys.readouterr().out
    assert all(words in out for words in PRINTED[name])
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 45


@pytest.mark.slow
def test_members_do_not_depend_on_the_number_of_processes(tmp_path):
    """Two processes that train a member each give what one process gives that trains both in turn."""
    script = str(EXAMPLES / "train_members.py")
    several = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    for command, folder in (([sys.executable, script], "one"), (several, "two")):
        alone = {name: value for name, value in os.environ.items() if name != "RANK"} | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run([*command, folder], cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert "(processes: 2)" in done.stdout
    one, two = (np.load(tmp_path / folder / "posterior.npy") for folder in ("one", "two"))
    assert one.shape == (400, 3) and [path.name for path in (tmp_path / "two").iterdir()] == ["posterior.npy"]
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.sum(axis=1), 1)
