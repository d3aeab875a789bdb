"""One engine per process: MANYHANDS_SPARK is classic, connect or sail, as `make test-spark` sets it.

Without it the tests are skipped.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from spark_crowds import crowd_of, frame_of

ENGINE = os.environ.get("MANYHANDS_SPARK", "")


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
    # Executors import the tasks of `spark_crowds`.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    if ENGINE == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer()
        server.start()
        os.environ["SPARK_REMOTE"] = f"sc://localhost:{server.listening_address[1]}"
        session = SparkSession.builder.getOrCreate()
        yield session
        session.stop()  # first: the client would try for minutes to reach a server that has ended
        server.stop()
        return
    # One JVM serves all tests, and a Connect server keeps what it has sent: 1 GB, the default, was too little once.
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "3g")
    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "4").config("spark.ui.enabled", "false")
    session = builder.remote("local[2]") if ENGINE == "connect" else builder.master("local[2]")
    session = session.getOrCreate()
    yield session
    session.stop()


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
