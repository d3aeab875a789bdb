"""Rows of files that are not read."""

import gzip

import polars as pl
import pytest

from manyhands.io.reading import measure_files

ROWS = 5000
TABLE = pl.DataFrame({"item": [f"item-{i // 3}" for i in range(ROWS)], "worker": ["w"] * ROWS, "label": [1] * ROWS})


def test_the_footer_of_parquet_states_the_rows(tmp_path):
    """Exactly, whatever the row groups."""
    TABLE.write_parquet(tmp_path / "votes.parquet", row_group_size=700)
    found = measure_files([tmp_path / "votes.parquet"])
    assert found.n_rows == ROWS
    assert found.n_bytes == found.unpacked == (tmp_path / "votes.parquet").stat().st_size


@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl", "votes.csv.gz"])
def test_rows_of_text_are_estimated_from_its_first_lines(tmp_path, name):
    """Within some percent, packed or not."""
    text = (TABLE.write_ndjson() if "json" in name else TABLE.write_csv()).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    found = measure_files([str(tmp_path / name)])
    assert found.n_rows == pytest.approx(ROWS, rel=0.05)
    assert found.unpacked == pytest.approx(len(text), rel=0.05)


def test_files_and_folders_add_up(tmp_path):
    """As several files of one export do."""
    for part in range(3):
        TABLE.write_parquet(tmp_path / f"part-{part}.parquet")
    assert measure_files([tmp_path]).n_rows == 3 * ROWS
    assert measure_files(sorted(tmp_path.iterdir())).n_rows == 3 * ROWS


def test_what_cannot_be_measured_is_left_to_the_reader(tmp_path):
    """Standard input, a missing file, an empty folder; a damaged file counts by its bytes."""
    assert measure_files(["-"]) is None
    assert measure_files([tmp_path / "none.csv"]) is None
    assert measure_files([tmp_path]) is None
    (tmp_path / "cut.parquet").write_bytes(b"PAR1" + bytes(96))
    assert measure_files([tmp_path / "cut.parquet"]).n_rows == 25
    (tmp_path / "cut.csv.gz").write_bytes(b"\x1f\x8b" + bytes(30))
    assert measure_files([tmp_path / "cut.csv.gz"]).n_bytes == 32
    (tmp_path / "empty.csv").write_bytes(b"")
    assert measure_files([tmp_path / "empty.csv"]).n_rows == 0
