"""In memory or out of core."""

import gzip

import polars as pl
import pytest

from manyhands.exceptions import ParameterError
from manyhands.jobs import out_of_core
from manyhands.jobs.out_of_core import choose_memory, free_bytes


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"item": range(10_000), "worker": ["w"] * 10_000, "label": ["x"] * 10_000}).write_parquet(path)
    return path


def test_a_limit_that_is_given_decides(votes):
    """The reason names both sizes."""
    small, large = choose_memory([votes], "100MB"), choose_memory([votes], "1GB")
    assert not small.fits and large.fits
    assert small.needed == large.needed == pytest.approx(150e6 + 4.2e6, rel=0.01)
    assert small.reason == "needs about 154 MB in memory, and the limit is 100 MB"


def test_without_a_limit_the_free_memory_decides(votes, monkeypatch):
    """Most of the least of what is known; an unknown amount refuses nothing."""
    monkeypatch.setattr(out_of_core, "available_bytes", lambda: 10_000_000)
    assert free_bytes() == 8_000_000
    assert choose_memory([votes]).reason == "needs about 154 MB in memory, and 8 MB may be used"
    assert not choose_memory([votes]).fits
    monkeypatch.setattr(out_of_core, "available_bytes", lambda: None)
    assert choose_memory([votes]).fits
    assert "how much is free is not known" in choose_memory([votes]).reason


def test_a_gzip_file_that_unpacks_too_far_does_not_fit(tmp_path, monkeypatch):
    """Whatever memory there is: it would be refused by the reader."""
    (tmp_path / "votes.csv.gz").write_bytes(gzip.compress(b"i,w,x\n" * 20_000))
    assert choose_memory([tmp_path / "votes.csv.gz"], "1TB").fits
    monkeypatch.setattr(out_of_core, "MAX_BYTES", 100_000)
    found = choose_memory([tmp_path / "votes.csv.gz"], "1TB")
    assert not found.fits
    assert found.reason == "unpacks to about 120 kB, more than the 100 kB that are unpacked in memory"


def test_standard_input_is_not_measured():
    """It runs in memory, as its size is known only when it was read."""
    assert choose_memory(["-"], "1kB").fits
    assert "does not say how much memory it needs" in choose_memory(["-"], "1kB").reason


def test_a_limit_that_is_no_size_is_named(votes):
    """Before anything is opened."""
    with pytest.raises(ParameterError, match="`max_memory` is 'lots'; it must be a size such as 4GB"):
        choose_memory([votes], "lots")
