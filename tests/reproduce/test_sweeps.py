"""A row that is swept over a parameter: one cell per value, a line in a plot, a column in a table."""

import csv
import io
import json

import pytest

from manyhands.exceptions import ParameterError
from manyhands.reproduce import pages, runner
from manyhands.reproduce import pages as show
from manyhands.reproduce.cells import Cell, cells_of, check_methods, check_table, narrowed
from manyhands.reproduce.parsing import parse_table
from manyhands.reproduce.plots import described, file_names, pictures_of, to_svg
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import Published, Row
from manyhands.reproduce.verdicts import entries, pairs
from measuring import CROWD

TOML = """
title = "A sweep"
paper = "Nobody 2020"
number = "Figure 9"
seeds = 3
metrics = ["accuracy", "log_loss"]
points = true
figure = { x = "max_iter", metrics = ["accuracy", "log_loss"] }
deviations = ["Everything is made up."]
[[datasets]]
name = "crowd"
make = "make_crowd"
arguments = { n_items = 60, n_workers = 6 }
[[rows]]
name = "D&S"
method = "dawid-skene"
parameters = { smoothing = 0.1 }
sweep = { max_iter = [1, 20, 300] }
published = { crowd = { 20 = [95.0, 1.0] } }
published_also = { log_loss = { crowd = { 1 = 0.5 } } }
[[rows]]
name = "one-coin"
method = "one-coin"
sweep = { max_iter = [1, 20, 300] }
[[rows]]
name = "vote"
method = "majority-vote"
published = { crowd = 90.0 }
"""
TABLE = parse_table(TOML, "own/sweep")
ACCURACY = {"D&S": {1: 0.9, 20: 0.94, 300: 0.97}, "one-coin": {1: 0.8, 20: 0.81, 300: 0.82}, "vote": {None: 0.85}}


def made_up(table=TABLE):
    """Each seed is a little better than the one before."""
    found = {}
    for cell in cells_of(table):
        value = ACCURACY[cell.row.name][cell.row.at.get("max_iter")]
        figures = {"accuracy": value + (cell.seed - 1000) ** 2 / 1000, "log_loss": 1 - value}
        found[cell.key] = {"key": cell.key, "metrics": figures, "n_test": 60}
    return Records(found)


def page(records=None):
    return pages.page(TABLE, cells_of(TABLE), made_up() if records is None else records, "manyhands reproduce")


def test_a_point_is_a_row_with_the_value_among_its_parameters():
    """Published values belong to a point; whole numbers stay whole."""
    assert [(row.name, row.at) for row in TABLE.rows] == [
        *(("D&S", {"max_iter": n}) for n in (1, 20, 300)),
        *(("one-coin", {"max_iter": n}) for n in (1, 20, 300)),
        ("vote", {}),
    ]
    assert TABLE.rows[1].parameters == {"smoothing": 0.1, "max_iter": 20}
    assert isinstance(TABLE.rows[1].parameters["max_iter"], int)
    assert TABLE.rows[1].published == {"crowd": Published(95.0, 1.0)} and TABLE.rows[0].published == {}
    assert TABLE.rows[0].published_also["log_loss"] == {"crowd": Published(0.5)}
    assert TABLE.x == "max_iter" and TABLE.drawn == ("accuracy", "log_loss")
    check_table(TABLE)


def test_each_value_is_a_cell_that_a_plain_row_would_be():
    """A value that is added to a sweep is measured, and nothing else is."""
    plain = Row("other", "dawid-skene", parameters={"max_iter": 20, "smoothing": 0.1})
    keys = [cell.key for cell in cells_of(TABLE, seeds=1)]
    assert len(set(keys)) == 7 and Cell(TABLE, CROWD, plain, 1000).key == keys[1]
    assert str(cells_of(TABLE)[1]) == "D&S with max_iter = 20 on crowd, seed 1000"
    assert {cell.row.name for cell in cells_of(TABLE, only=["d&s"])} == {"D&S"}


def test_a_quick_run_measures_the_ends():
    """And shows no line for what lies between."""
    cells = cells_of(TABLE, quick=True, seeds=1)
    assert [cell.row.at.get("max_iter") for cell in cells] == [1, 300, 1, 300, None]
    records = Records({cell.key: {"key": cell.key, "metrics": {"accuracy": 0.9}} for cell in cells[:4]})
    _, lines = show.curves(pages.page(TABLE, cells, records, ""), "accuracy")
    assert [line[1] for line in lines] == ["", "1", "20", "300"]  # published of vote, and of 20
    assert lines[2] == ["crowd", "20", "(published 95.0 ± 1.0, not measured)", "", ""]


def test_a_sweep_goes_on_where_it_was(tmp_path):
    """Only the values that are not there yet are measured."""
    small = TOML.partition('[[rows]]\nname = "one-coin"')[0]
    shorter = small.replace("[1, 20, 300]", "[1, 20]")
    first = runner.run(parse_table(shorter, "own/sweep"), tmp_path, seeds=1, jobs=1)
    before = (tmp_path / "own-sweep.jsonl").read_bytes()
    found = runner.run(parse_table(small, "own/sweep"), tmp_path, seeds=1, jobs=1)
    assert len(first.by_key) == 2 and len(found.by_key) == 3
    assert (tmp_path / "own-sweep.jsonl").read_bytes().startswith(before)
    last = json.loads((tmp_path / "own-sweep.jsonl").read_text().splitlines()[-1])
    assert last["parameters"]["max_iter"] == 300 and last["row"] == "D&S"


def test_entries_know_where_they_stand():
    """By the value of the sweep; a row beside it stands nowhere."""
    found = {(e.row, e.x): e for e in entries(TABLE, cells_of(TABLE), made_up()) if e.metric == "accuracy"}
    assert set(found) == {(row, x) for row, values in ACCURACY.items() for x in values}
    assert found["D&S", 20].mean == pytest.approx(94 + 0.5 / 3) and found["D&S", 20].verdict == "within"
    assert found["D&S", 1].verdict == "not published" and found["vote", None].verdict == "below"


def test_pairs_are_of_one_value():
    """Of 21 pairs of points, those with the same value, and those with a row beside the sweep."""
    found = pairs(TABLE, entries(TABLE, cells_of(TABLE), made_up()))
    assert [(p.row, p.other, p.x) for p in found] == [
        ("D&S", "one-coin", 1),
        ("D&S", "vote", 1),
        ("D&S", "one-coin", 20),
        ("D&S", "vote", 20),
        ("D&S", "one-coin", 300),
        ("D&S", "vote", 300),
        ("one-coin", "vote", 1),
        ("one-coin", "vote", 20),
        ("one-coin", "vote", 300),
    ]
    shown = page() | {"pairs": [dict(vars(found[2])) | {"p_corrected": 0.01}]}
    assert show.differing(shown) == ["crowd, max iter 20: D&S above one-coin by 13.0 (p = 0.01)"]


def test_a_sweep_is_read_line_by_line():
    """A line for each value, a column for each row; what was published stands beside what was measured."""
    columns, lines = show.curves(page(), "accuracy")
    assert columns == ["data set", "max iter", "D&S", "one-coin", "vote"]
    assert lines == [
        ["crowd", "", "", "", "85.2 ± 0.2 (published 90.0, below)"],
        ["crowd", "1", "90.2 ± 0.2", "80.2 ± 0.2", ""],
        ["crowd", "20", "94.2 ± 0.2 (published 95.0 ± 1.0, within)", "81.2 ± 0.2", ""],
        ["crowd", "300", "97.2 ± 0.2", "82.2 ± 0.2", ""],
    ]
    text = pages.to_markdown(page())
    assert "## By accuracy\n\n| data set | max iter | D&S | one-coin | vote |" in text
    assert "## By log loss" in text and "| crowd | 300 | 97.2 ± 0.2 | 82.2 ± 0.2 |  |" in text


def test_a_row_beside_the_sweep_may_be_all_that_is_wanted():
    """It stands nowhere then, either."""
    table = narrowed(TABLE, ["vote"])
    shown = pages.page(table, cells_of(table), made_up(), "")
    assert show.curves(shown, "accuracy")[1] == [["crowd", "", "85.2 ± 0.2 (published 90.0, below)"]]
    assert b"vote" in to_svg(table, shown)


def test_csv_and_json_have_the_value():
    """As a number."""
    rows = list(csv.DictReader(io.StringIO(pages.to_csv(page()))))
    assert [(r["row"], r["x"]) for r in rows if r["metric"] == "accuracy"][2:5] == [
        ("D&S", "300"),
        ("one-coin", "1"),
        ("one-coin", "20"),
    ]
    shown = json.loads(json.dumps(page()))
    assert shown["x"] == "max_iter" and {entry["x"] for entry in shown["entries"]} == {1, 20, 300, None}


def test_a_point_that_failed_says_which():
    """Parameter and value are in the note, and the table says that it failed."""
    records = made_up()
    cell = cells_of(TABLE)[2]
    records.by_key.update({cell.key: {"key": cell.key, "error": "no luck"}})
    records = Records({key: record for key, record in records.by_key.items() if key == cell.key})
    assert show.failures(page(records)) == ["D&S with max iter 300 on crowd: no luck"]
    assert ["crowd", "300", "failed", "", ""] in show.curves(page(records), "accuracy")[1]


def test_a_plot_for_each_metric_that_is_drawn():
    """The names of the files tell them apart, and the same page gives the same bytes."""
    files = file_names(TABLE)
    assert list(files) == ["own-sweep-accuracy.svg", "own-sweep-log-loss.svg"]
    drawn = {picture.metric: to_svg(TABLE, page(), picture) for picture in files.values()}
    assert drawn["accuracy"] == to_svg(TABLE, page()) != drawn["log_loss"]
    for word in (b"D&amp;S", b"one-coin", b"vote", b">max iter<", b"D&amp;S, published"):
        assert word in drawn["accuracy"]
    assert b"accuracy (%)" in drawn["accuracy"] and b"log loss" in drawn["log_loss"]


@pytest.mark.parametrize(("largest", "is_log"), [(300, True), (99, False)])
def test_a_line_over_the_values_and_a_level_one_beside(largest, is_log):
    """Over two decades and more, the axis shows factors."""
    shown = page()
    for entry in shown["entries"]:
        entry["x"] = largest if entry["x"] == 300 else entry["x"]
    rows, (panel,) = described(TABLE, shown, pictures_of(TABLE)[0])
    traces = {trace.name: trace for trace in panel.traces}
    assert rows == [] and set(traces) == {"vote", "D&S, published", "D&S", "one-coin"}
    apart = 0 if is_log else 0.3 * 19  # of the least distance; so far are the two series moved from one another
    assert traces["D&S"].x == [x - apart / 2 for x in (1, 20, largest)] and traces["D&S"].line == ""
    assert traces["vote"].y == pytest.approx([85.0 + 0.5 / 3] * 2) and traces["vote"].line
    assert panel.is_log == is_log and panel.x[0] < 1 < largest < panel.x[1]


def test_the_command_draws_them_all(tmp_path, monkeypatch, capsys):
    """And shows a table for each metric; no drawing is replaced unasked."""
    from manyhands.cli.app import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(TOML)
    command = ["reproduce", "sweep.toml", "--quick", "--seeds", "1", "--jobs", "1", "-o", "out", "--plot"]
    assert run(command) == 0
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {
        "own-sweep-accuracy.svg",
        "own-sweep-log-loss.svg",
    }
    err = capsys.readouterr().err
    assert "own/sweep: by accuracy" in err and "own/sweep: by log loss" in err
    assert run(command) == 2 and "own-sweep-accuracy.svg" in capsys.readouterr().err


MISTAKES = {
    "a sweep over nothing": ("{ max_iter = [1, 20, 300] }\npublished", "{}\npublished", "sweep must be one parameter"),
    "a value twice": ("[1, 20, 300]", "[1, 1]", "a list of different numbers"),
    "one value": ("[1, 20, 300]", "[1]", "a list of different numbers"),
    "text": ("[1, 20, 300]", '["a", "b"]', "a list of different numbers"),
    "no axis": ('x = "max_iter", ', "", "figure: rows have a sweep over max_iter"),
    "another axis": ('x = "max_iter"', 'x = "remove"', "let x name it"),
    "two sweeps": (
        'method = "one-coin"\nsweep = { max_iter =',
        'method = "one-coin"\nsweep = { smoothing =',
        "a sweep over max_iter and smoothing",
    ),
    "a parameter that is swept over": ("{ smoothing = 0.1 }", "{ max_iter = 3 }", "max_iter is what the sweep is over"),
    "published of no value": ("{ 20 = [95.0, 1.0] }", "95.0", "must name the value of the sweep: { 1 = ... }"),
    "published of another value": ("{ 20 = [95.0", "{ 21 = [95.0", "no value of the sweep called '21'"),
    "further published of no value": ("{ crowd = { 1 = 0.5 } }", "{ crowd = 0.5 }", "must name the value of the sweep"),
    "a metric that is not measured": (
        '"log_loss"] }',
        '"ece"] }',
        "no metric in this table called 'ece'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake):
    """Which table, which part, what would be right."""
    right, wrong, message = MISTAKES[mistake]
    assert right in TOML
    with pytest.raises(ParameterError, match="own/sweep") as caught:
        parse_table(TOML.replace(right, wrong, 1), "own/sweep")
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_value_that_a_method_refuses_is_found_before_any_work():
    """Also where it is not the first of the sweep, nor the last."""
    table = parse_table(TOML.replace("[1, 20, 300]", "[1, -20, 300]").replace("{ 20 =", "{ 1 ="), "own/sweep")
    with pytest.raises(ParameterError, match="own/sweep, row 'D&S': The parameter `max_iter`"):
        check_methods(cells_of(table))


def test_what_is_published_of_a_sweep_may_stand_without_a_method():
    """A curve of the paper beside ours."""
    text = TOML.replace('method = "one-coin"', 'why = "not ours"\npublished = { crowd = { 300 = 99.0 } }')
    table = parse_table(text, "own/sweep")
    (point,) = [row for row in table.rows if row.published and row.name == "one-coin"]
    assert point.at == {"max_iter": 300} and point.parameters == {} and point not in table.measured
