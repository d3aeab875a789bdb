"""What all tests share: where helpers are found, how hypothesis draws, and the real crowds."""

import csv
import os
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from manyhands import Annotations

sys.path.insert(0, str(Path(__file__).parent))  # for `strategies` and `reference`

settings.register_profile("manyhands", deadline=None, max_examples=40, derandomize=True, database=None)
settings.register_profile("first-failure", settings.get_profile("manyhands"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("manyhands")


@pytest.fixture(scope="session")
def real_annotations():
    """A function from the name of a real set to its annotations; ids and classes are text, rows as in the file."""
    folder = os.environ.get("MANYHANDS_DATA")
    if not folder:
        pytest.skip("MANYHANDS_DATA is not set, so there are no real crowds to test on")

    def read(name):
        path = Path(folder) / name / "annotations.csv"
        if not path.is_file():
            pytest.fail(f"MANYHANDS_DATA is set, but {path} is missing")
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = ([row[column] for row in rows] for column in ("task", "worker", "label"))
        return Annotations.from_triples(*columns, duplicates="all")

    return read


@pytest.fixture(params=["compiled", "plain"])
def either_path(request, monkeypatch):
    """Run a test on the compiled pass and on the plain one."""
    from manyhands._core import elementary, encoding
    from manyhands.em import kernels
    from manyhands.io import judgements

    if request.param == "plain":
        for module in (elementary, kernels):
            monkeypatch.setattr(module, "_fused", None)
        for module in (encoding, judgements, kernels):
            monkeypatch.setattr(module, "_columns", None)
    elif kernels._fused is None:
        pytest.skip("the compiled pass was not built")
    return request.param


@pytest.fixture
def votes():
    """Three items, one of them silent; three workers, one of them silent; three classes, one of them unused."""
    return Annotations.from_triples(
        ["b", "a", "b", "b"],
        ["ann", "ann", "bob", "bob"],
        ["dog", "cat", "cat", "cat"],
        item_ids=["a", "silent", "b"],
        worker_ids=["ann", "bob", "nobody"],
        classes=["cat", "dog", "emu"],
        duplicates="all",
    )


@pytest.fixture
def one_thread():
    """torch on one thread: small networks gain nothing from more, and tests run side by side."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
