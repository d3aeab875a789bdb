"""Annotations as plain tables, and back."""

import pytest

from manyhands import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.reading import read_export
from manyhands.io.write.result_files import TARGETS, encode_table, triples_frame, wide_frame

IDS = ["007", "=1+1", 'say "hi"', "a,b", "two\nlines", "\u00e9", "None", "silent"]
VOTES = Annotations.from_triples(
    [item for item in IDS[:-1] for _ in range(2)],
    ["ann", "b@x.org"] * 7,
    ["x", "y,z"] * 7,
    item_ids=[*IDS[3:], *IDS[:3]],
    worker_ids=["ann", "b@x.org"],
)


@pytest.mark.parametrize("ending", TARGETS)
def test_what_is_written_long_comes_back(tmp_path, ending):
    """Items without a label included, whatever the ids look like."""
    path = tmp_path / f"table{ending}"
    path.write_bytes(encode_table(triples_frame(VOTES), ending))
    reading = read_export(path)
    assert reading.annotations == VOTES
    assert reading.ledger.as_dict() == {"rows_read": 15, "kept": 14, "excluded": {"no_label": 1}}


@pytest.mark.parametrize("ending", TARGETS)
def test_what_is_written_wide_comes_back(tmp_path, ending):
    """One row per item, one column per worker."""
    path = tmp_path / f"table{ending}"
    path.write_bytes(encode_table(wide_frame(VOTES), ending))
    reading = read_export(path, format="wide")
    assert reading.annotations == VOTES and reading.ledger.excluded == {"no_label": 2}


@pytest.mark.parametrize("ending", TARGETS)
def test_a_wide_table_is_known_by_itself(tmp_path, ending):
    """Where workers have classes in common."""
    votes = Annotations.from_triples(["1", "2", "2", "3"], ["ann", "ann", "bob", "bob"], ["x", "y", "x", "y"])
    path = tmp_path / f"table{ending}"
    path.write_bytes(encode_table(wide_frame(votes), ending))
    reading = read_export(path)
    assert reading.format == "wide" and reading.annotations == votes


def test_a_wide_table_has_room_for_one_label_only():
    """Repeats, and workers whose names would fall into one column, are refused."""
    twice = Annotations.from_triples([1, 1], ["a", "a"], ["x", "y"], duplicates="all")
    with pytest.raises(AnnotationError, match="several labels on an item"):
        wide_frame(twice)
    with pytest.raises(AnnotationError, match="same name"):
        wide_frame(Annotations.from_triples([1, 1], [1, "1"], ["x", "y"]))
