"""One engine per process: MANYHANDS_SPARK is classic, connect or sail, as `make test-spark` sets it.

Without it the tests are skipped.
"""

import os
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

ENGINE = os.environ.get("MANYHANDS_SPARK", "")

Crowd = namedtuple("Crowd", "items workers labels")


def pytest_collection_modifyitems(items):
    """Every test of this folder is marked, and skipped where no engine is named."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.spark)
            if not ENGINE:
                item.add_marker(pytest.mark.skip(reason="MANYHANDS_SPARK names no engine; run make test-spark"))


@pytest.fixture(scope="session")
def spark():
    """A session on the engine."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    if ENGINE == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer()
        server.start()
        session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
        yield session
        session.stop()  # first: the client would try for minutes to reach a server that has ended
        server.stop()
        return
    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "4").config("spark.ui.enabled", "false")
    session = builder.remote("local[2]") if ENGINE == "connect" else builder.master("local[2]")
    session = session.getOrCreate()
    yield session
    session.stop()


def crowd_of(n_items, n_workers=20, n_classes=3, per_item=5, seed=0):
    """Three columns of simulated labels, without repeats, in random order."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    workers = np.array([rng.permutation(n_workers)[:per_item] for _ in range(n_items)]).ravel()
    items = np.repeat(np.arange(n_items), per_item)
    skill = rng.uniform(0.5, 0.95, n_workers)[workers]
    labels = np.where(rng.random(len(items)) < skill, truth[items], rng.integers(n_classes, size=len(items)))
    order = rng.permutation(len(items))
    names = np.array([f"klass {k}" for k in range(n_classes)], object)
    return Crowd(
        [f"ïtem {i}" for i in items[order].tolist()],
        [f"w{w}" for w in workers[order].tolist()],
        names[labels[order]].tolist(),
    )


def frame_of(spark, crowd, schema="item string, worker string, label string"):
    """The columns as a DataFrame."""
    return spark.createDataFrame(list(zip(*crowd)), schema)


@pytest.fixture(scope="session")
def crowd():
    """A crowd of 400 items."""
    return crowd_of(400)


@pytest.fixture(scope="session")
def frame(spark, crowd):
    """The same as a DataFrame."""
    return frame_of(spark, crowd)


@pytest.fixture(scope="session")
def shared_checkpoint(tmp_path_factory):
    """One folder for all fits on the same labels."""
    return str(tmp_path_factory.mktemp("checkpoint"))
