"""Files that somebody changes while they are read: one sentence, and never the end of the process."""

import gzip
import json
import os
import zipfile

import numpy as np
import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io import sources
from manyhands.io.features import read_features
from manyhands.io.reading import read_export

ROWS = [{"item": f"i{k}", "worker": f"w{k % 7}", "label": "ab"[k % 2]} for k in range(3000)]
FRAME = pl.DataFrame(ROWS)


def write_zip(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", FRAME.write_csv())


KINDS = {
    "x.csv": FRAME.write_csv,
    "x.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "x.json": lambda path: path.write_text(json.dumps(ROWS)),
    "x.jsonl": FRAME.write_ndjson,
    "x.parquet": FRAME.write_parquet,
    "x.csv.gz": lambda path: path.write_bytes(gzip.compress(FRAME.write_csv().encode())),
    "x.zip": write_zip,
}


@pytest.fixture
def changing(monkeypatch):
    """Calls a function right after a given look before a reading, and those to come, as if somebody wrote then.

    A file is looked at before and after its first bytes are read, and again before and after all of them are.
    """

    def begin(change, look):
        state, looks = sources._state, []

        def changed(file):
            found = state(file)
            looks.append(found)
            if len(looks) >= look and len(looks) % 2:
                change()
            return found

        monkeypatch.setattr(sources, "_state", changed)

    return begin


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("how", ["cut", "grown", "touched", "in a folder"])
@pytest.mark.parametrize("look", [1, 3])
def test_a_file_that_changes_while_it_is_read(tmp_path, changing, name, how, look):
    path = tmp_path / name
    KINDS[name](path)

    def change():
        if how == "touched":
            os.utime(path, ns=(1, path.stat().st_mtime_ns + 10**9))
        else:
            os.truncate(path, path.stat().st_size + (100 if how == "grown" else -100))

    changing(change, look)
    with pytest.raises(AnnotationError, match="was changed while it was read") as found:
        read_export(tmp_path if how == "in a folder" else path)
    assert name in str(found.value) and "\n" not in str(found.value)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet"])
def test_features_that_change_while_they_are_read(tmp_path, changing, name):
    path, x = tmp_path / name, np.zeros((500, 40))
    {"x.npy": np.save, "x.npz": lambda to, x: np.savez(to, X=x), "x.parquet": lambda to, _: FRAME.write_parquet(to)}[
        name
    ](path, x)
    changing(lambda: os.truncate(path, path.stat().st_size - 100), 1)
    with pytest.raises(AnnotationError, match="was changed while it was read"):
        read_features(path, rows_in_order=True)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_polars_is_given_bytes(tmp_path, monkeypatch, name):
    """A path, and an open file too, it would map into memory: where a mapped file is cut off, the process ends."""
    KINDS[name](tmp_path / name)
    seen = []
    for function in ("read_csv", "read_parquet"):
        whole = getattr(pl, function)
        monkeypatch.setattr(
            pl, function, lambda given, whole=whole, **how: (seen.append(given), whole(given, **how))[1]
        )
    read_export(tmp_path / name)
    if name == "x.parquet":
        read_features(tmp_path / name, text=["label"], id_column="item")
    assert seen and all(type(given) is bytes for given in seen)


def test_features_are_not_mapped(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    assert not isinstance(read_features(tmp_path / "x.npy", rows_in_order=True).numbers, np.memmap)


def test_a_file_that_is_gone_before_it_is_read(tmp_path):
    FRAME.write_csv(tmp_path / "x.csv")
    source = sources.open_path(tmp_path / "x.csv")
    (tmp_path / "x.csv").unlink()
    for ask in (lambda: source.size, source.read):
        with pytest.raises(AnnotationError, match="cannot be opened"):
            ask()
