"""Pages: Markdown, CSV and lines, all from one object that JSON can hold."""

import csv
import io
import json

import pytest

from manyhands.reproduce import pages
from manyhands.reproduce import pages as show
from manyhands.reproduce.cells import cells_of
from manyhands.reproduce.tables import Row
from measuring import CROWD, SKENE, UNKNOWN, VOTE, made_up, small_table

TABLE = small_table(
    [VOTE, SKENE, UNKNOWN, Row("a|b", "wawa")],
    seeds=4,
    metrics=("accuracy", "log_loss"),
    deviations=("The crowd is made up.",),
)
VALUES = {
    ("crowd", "vote"): [0.9, 0.91, 0.9, 0.905],
    ("crowd", "D&S"): [0.99, 0.99, 0.985, 0.99],
    ("crowd", "a|b"): ["ValueError: no luck"],
}
COMMAND = "manyhands reproduce own/small"


@pytest.fixture(name="shown")
def page():
    return pages.page(TABLE, cells_of(TABLE), made_up(TABLE, VALUES), COMMAND)


def test_the_object_says_where_figures_come_from(shown):
    """Command, commit, machine, seeds, deviations, and that no truth was used."""
    assert shown["command"] == COMMAND and shown["commits"] == ["c0ffee" * 6]
    assert shown["machines"] == ["2 cores, x86_64"] and shown["seeds"] == [1000, 1001, 1002, 1003]
    assert shown["deviations"] == ["The crowd is made up."] and shown["validation_truth"] is False
    assert show.unmeasured(shown) == ["oracle: it sees the truth"]
    assert (shown["n_cells"], shown["n_measured"], shown["n_failed"]) == (12, 8, 1)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_markdown_shows_all_of_it(shown):
    """Figures beside published ones, verdicts, pairs, what failed and what is not measured."""
    text = pages.to_markdown(shown)
    assert "| crowd | vote | 90.4 ± 0.5 | 90.0 | within | 4 |" in text
    assert "| crowd | D&S | 98.9 ± 0.2 | 95.0 ± 1.0 | above | 4 |" in text
    assert "| crowd | oracle |  | 99.0 | not measured | 0 |" in text
    assert "| crowd | a\\|b |  |  | not measured | 0, 1 failed |" in text
    assert "crowd: D&S above vote by 8.5 (p = " in text and "corrected for 1 pairs (Holm)" in text
    for sentence in ("The crowd is made up.", COMMAND, "c0ffeec0ffee", "2 cores, x86_64", "4, from 1000 to 1003"):
        assert sentence in text
    assert "a|b on crowd: ValueError: no luck" in text and "oracle: it sees the truth" in text
    assert "uses ground truth: held-out labels of workers decide" in text and "log loss" not in text


def test_truth_of_validation_items_is_marked():
    """Where a table reproduces such a protocol."""
    table = small_table(validation_truth=True)
    text = pages.to_markdown(pages.page(table, cells_of(table), made_up(table, {}), COMMAND))
    assert "chosen by the truth of validation items" in text and "held-out labels" not in text


def test_a_quick_run_gives_no_verdict():
    """Its figures mean nothing, and the page says so."""
    table = small_table()
    cells = cells_of(table, quick=True)
    records = made_up(table, {})
    records.by_key.update({c.key: {"key": c.key, "metrics": {"accuracy": 0.9}, "commit": None} for c in cells})
    shown = pages.page(table, cells, records, COMMAND)
    assert {entry["verdict"] for entry in shown["entries"]} == {"quick run"}
    assert "the figures have no meaning" in show.notes(shown)[0] and "not run from a clone" in " ".join(
        show.notes(shown)
    )


def test_csv_has_a_line_per_figure(shown):
    """Empty where there is none; each line says where it comes from."""
    rows = list(csv.DictReader(io.StringIO(pages.to_csv(shown))))
    assert len(rows) == 7  # four rows by accuracy, three by log loss, which nobody published
    first = rows[0]
    assert float(first["mean"]) == pytest.approx(90.375) and first["verdict"] == "within"
    assert (
        first["command"] == COMMAND and first["validation_truth"] == "false" and first["seeds"] == "1000 1001 1002 1003"
    )
    assert rows[2]["row"] == "oracle" and rows[2]["mean"] == "" and rows[2]["published"] == "99.0"


def test_further_metrics_stand_side_by_side():
    """What was never published needs no column for it."""
    table = small_table([VOTE], [CROWD], metrics=("accuracy", "log_loss", "fit_seconds"))
    records = made_up(table, {}, metrics={})
    values = [{"accuracy": 0.9, "log_loss": 0.25, "fit_seconds": 0.0123}, {"accuracy": 0.9, "log_loss": 0.35}]
    records.by_key.update({c.key: {"key": c.key, "metrics": v} for c, v in zip(cells_of(table), values)})
    shown = pages.page(table, cells_of(table), records, COMMAND)
    columns, rows = show.further(shown)
    assert columns == ["data set", "method", "log loss", "fit seconds"]
    assert rows == [["crowd", "vote", "0.300 ± 0.071", "0.012"]]
    assert show.compared(shown) == ["accuracy"]


@pytest.mark.parametrize(
    ("value", "deviation", "metric", "text"),
    [
        (81.26, 0.94, "accuracy", "81.3 ± 0.9"),
        (None, None, "accuracy", ""),
        (0.5, None, "log_loss", "0.500"),
        (2043.0, 12.34, "history.warm_up_items", "2043 ± 12"),
        (0.5, None, "round.combined_imbalance", "0.500"),
        (91.26, None, "label_accuracy.first", "91.3"),
        (123.4, 1.2, "fit_seconds", "123 ± 1"),
        (0.00123, None, "fit_seconds", "0.0012"),
    ],
)
def test_figures_are_as_precise_as_they_deserve(value, deviation, metric, text):
    """Not more."""
    assert show.figure(value, deviation, metric, points=True) == text
