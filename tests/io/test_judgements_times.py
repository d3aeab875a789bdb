"""Times as tools write them: read to the microsecond, or null and counted; never an error."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.io.judgements import parse_time, parse_times
from manyhands.io.reading import read_export

pytestmark = pytest.mark.fast

NINE = 1_767_603_600_000_000  # 2026-01-05 09:00 UTC


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05T09:00:00Z",
        "2026-01-05T09:00:00.000Z",
        "2026-01-05 09:00:00",
        "2026-01-05 09:00",
        "2026-01-05T10:00:00+01:00",
        "2026-01-05T10:00:00+0100",
        "2026-01-05 10:00:00+01",
        "2026-01-05 09:00:00 UTC",
        "2026-01-05 01:00:00 PST",
        "Mon Jan 05 01:00:00 PST 2026",
        "Mon Jan 05 02:00:00 MST 2026",
        "1/5/2026 09:00:00",
        "01/05/2026 09:00",
        "1/5/2026 9:00 AM",
        " 2026-01-05T09:00:00Z ",
        "1767603600",
        "1767603600.0",
        "1767603600000",
        "1767603600000000",
        "1767603600000000000",
        1767603600,
        1767603600.0,
        1767603600000,
    ],
)
def test_one_moment_in_many_words(text):
    assert parse_time(text) == NINE


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2026-01-05", NINE - 9 * 3_600_000_000),
        ("2026-01-05T09:00:00.123456789Z", NINE + 123_456),
        ("1/5/2026 9:00 PM", NINE + 12 * 3_600_000_000),
        ("1/5/2026 12:00 AM", NINE - 9 * 3_600_000_000),
        ("1969-12-31T23:59:59Z", -1_000_000),
        ("2999-01-01", 32_472_144_000_000_000),
        (-1.5, -1_500_000),
        (0, 0),
    ],
)
def test_other_moments(text, microseconds):
    assert parse_time(text) == microseconds


JUNK = ["", " ", "?", "yesterday", "2026-13-45", "2026-02-30T00:00:00Z", "2026-01-05 09:00:00 XYZ", "9" * 400, "1e400"]
JUNK += ["2026-01-05T09:00:00+99:99", "Mon Feb 30 01:00:00 PST 2026", "13/45/2026 09:00", "1/5/2026 13:00 PM", "１２"]
JUNK += [None, True, [], {}, float("nan"), float("inf"), -float("inf"), 1e300, 10**400, "-", "00:00", "\0"]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: str(junk)[:20])
def test_junk_is_nothing(junk):
    assert parse_time(junk) is None


@given(st.one_of(st.text(max_size=40), st.integers(), st.floats(), st.datetimes().map(str), st.binary(max_size=9)))
def test_never_an_error_and_always_a_number_that_fits(value):
    time = parse_time(value)
    assert time is None or -(2**63) <= time < 2**63


def test_a_column_is_read_like_its_cells():
    """The usual form is read by other means, and must mean the same."""
    cells = ["2026-01-05T09:00:00Z", "2026-01-05T09:00:00.5Z", "2026-01-05T09:00:00.123456789Z", "1969-12-31T23:59:59Z"]
    cells += [
        "2026-01-05 09:00:00",
        "2026-02-30T00:00:00Z",
        "2026-01-05T09:00:00+01:00",
        "1767603600",
        " ",
        "soon",
        None,
    ]
    times, _ = parse_times(pl.Series(cells))
    assert times.to_list() == [parse_time(cell) for cell in cells]


def test_a_column_counts_what_it_cannot_read():
    times, notes = parse_times(pl.Series(["1", "soon", None, " ", "soon", "never"]))
    assert times.to_list() == [1_000_000, None, None, None, None, None]
    assert notes["unparsed_times"].startswith("3 time(s) could not be read (such as 'soon')")


@pytest.mark.parametrize("column", [[], [None, None], ["", " "]])
def test_a_column_without_times(column):
    times, notes = parse_times(pl.Series(column, dtype=pl.String))
    assert times.to_list() == [None] * len(column)
    assert notes == {}


def test_the_later_answer_counts_whatever_the_order(tmp_path):
    """Rows in reverse, in other zones and without a time: the last by the clock counts, and those without are older."""
    path = tmp_path / "votes.csv"
    path.write_text(
        "item,worker,label,timestamp\n"
        "1,ann,late,2026-01-05T09:00:00-08:00\n1,ann,early,2026-01-05T16:00:00Z\n1,ann,undated,\n"
    )
    reading = read_export(path)
    assert reading.annotations.classes.tolist() == ["late"]
    assert reading.ledger.excluded == {"duplicate": 2}
