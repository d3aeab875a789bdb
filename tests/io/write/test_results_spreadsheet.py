"""Cells that a spreadsheet would run are made harmless, and come back as they were."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.io.write.results import guard, guard_table, unguard

RISKY = st.text(st.sampled_from("=+-@\t\r＝＋－＠'\" \u00a0\n1.5eEa"), max_size=6)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1+1",
        "-cmd",
        "@sum",
        "\tx",
        "\rx",
        "＝1",
        "＋1",
        "－1",
        "＠a",
        " =1",
        '"=1',
        "' @a",
        "'=1",
        "-",
        "-1\n",
        "\n=1",
    ],
)
def test_what_might_run_gets_a_quote(text):
    assert guard(text) == "'" + text and unguard(guard(text)) == text


@pytest.mark.parametrize(
    "text", ["", "x", "a=b", "-1", "+3.5e2", "-.5", "1-2", "'x", "''", " x", "0", "+10", "a-b@c.de"]
)
def test_what_cannot_run_stays(text):
    assert guard(text) == text and unguard(text) == text


@given(st.text() | RISKY)
def test_nothing_is_lost(text):
    assert unguard(guard(text)) == text


@given(st.text() | RISKY)
def test_what_is_guarded_is_a_number_or_begins_with_nothing_that_runs(text):
    guarded = guard(text)
    assert guarded == text or guarded[0] == "'"
    if guarded[:1] in {*"=+-@\t\r＝＋－＠"} - {""}:
        float(guarded)


@given(st.lists(st.none() | st.text() | RISKY, max_size=5), st.text(min_size=1, max_size=3) | RISKY)
def test_a_table_is_guarded_cell_by_cell(cells, name):
    table = pl.DataFrame({name: pl.Series(cells, dtype=pl.String), f"{name} too": pl.Series(range(len(cells)))})
    guarded = guard_table(table)
    assert guarded.to_series(0).to_list() == [None if cell is None else guard(cell) for cell in cells]
    assert guarded.columns == [guard(name), guard(f"{name} too")]
    assert guarded.to_series(1).to_list() == list(range(len(cells)))
