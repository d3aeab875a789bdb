"""Executors without the package, and an executor that is killed in the middle of a fit."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from spark_crowds import crowd_of

import manyhands
from manyhands.sharded.fit import fit
from manyhands.sharded.labels import InMemoryShards

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    os.environ.get("MANYHANDS_SPARK") != "classic", reason="executors are processes of their own on the JVM alone"
)

REFUSING = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("manyhands", "scipy", "sklearn", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing())
"""


def run_program(master, tmp_path, *arguments, **environment):
    """Run the driver in a process of its own; returns its results."""
    import pyspark

    paths = [str(HERE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    settings |= {"PYTHONPATH": os.pathsep.join(paths)} | environment
    out = tmp_path / "out.npz"
    command = [sys.executable, str(HERE / "executor_program.py"), master, str(tmp_path / "checkpoint"), str(out)]
    made = subprocess.run(
        [*command, *arguments], env=os.environ | settings, capture_output=True, text=True, timeout=200, check=False
    )
    assert made.returncode == 0, made.stderr[-3000:]
    return np.load(out), made.stderr


def in_memory(name):
    """Posteriors of the same fit in memory."""
    labels = InMemoryShards.from_annotations(manyhands.Annotations.from_triples(*crowd_of(400)), 4)
    method = manyhands.MajorityVote() if name == "MajorityVote" else getattr(manyhands, name)(max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(method, labels)
    return np.concatenate([shard.posterior for shard in labels.run(found.final_task, "")])


def test_executors_without_the_package_and_without_scipy(tmp_path):
    """The sources travel with the task; labels are equal and posteriors within 1e-9."""
    (tmp_path / "refusing").mkdir()
    (tmp_path / "refusing" / "sitecustomize.py").write_text(REFUSING)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/refusing:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    driver = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": str(python)}
    found, _ = run_program("local[2]", tmp_path, **driver)
    assert found["surroundings"].tolist() == [["SourceFinder", "False", "no scipy"]] * 4
    for name in ("DawidSkene", "PooledDawidSkene", "MajorityVote"):
        expected = in_memory(name)
        assert np.array_equal(found[name].argmax(axis=1), expected.argmax(axis=1))
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=1e-9)


def test_an_executor_that_is_killed_changes_nothing(tmp_path):
    """Two executors in processes of their own; one ends in the fourth pass, its tasks are run again elsewhere."""
    marker = tmp_path / "killed"
    found, log = run_program("local-cluster[2,1,1024]", tmp_path, str(marker))
    assert marker.exists() and "Lost executor" in log
    assert found["DawidSkene"].tobytes() == in_memory("DawidSkene").tobytes()
