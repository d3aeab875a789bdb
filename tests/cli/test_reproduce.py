"""`reproduce` and `leaderboard`, as typed."""

import csv
import json

import pytest

from manyhands.cli.app import run
from measuring import TOML


@pytest.fixture(name="table")
def own_table(tmp_path, monkeypatch):
    """A table of one's own, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "small.toml").write_text(TOML)
    return "own/small.toml"


def fails(capsys, code, sentence, *arguments):
    assert run(list(arguments)) == code
    err = capsys.readouterr().err
    assert sentence in err.strip().splitlines()[-1] and "Traceback" not in err, err


def test_tables_are_listed_one_a_line(capsys):
    """With their number and title, and as JSON."""
    assert run(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("crowding/table-1 ") for line in lines)
    assert run(["reproduce", "--list", "--json"]) == 0
    assert [t["name"] for t in json.loads(capsys.readouterr().out)["tables"]] == [line.split()[0] for line in lines]


def test_a_table_in_all_formats(table, tmp_path, capsys):
    """Measured once, then shown without measuring."""
    assert run(["reproduce", table, "--quick", "--jobs", "1", "-o", "out"]) == 0
    captured = capsys.readouterr()
    assert (
        captured.out == ""
        and "quick run" in captured.err
        and "Command: `manyhands reproduce small.toml --quick`" in captured.err
    )
    assert "Differs from the paper: Everything is made up." in captured.err
    before = (tmp_path / "out" / "own-small.jsonl").read_bytes()
    again = ["reproduce", table, "--quick", "-o", "out", "--show"]
    assert run([*again, "--format", "markdown"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("# A small table\n") and captured.err == ""
    assert run([*again, "--format", "csv", "--only", "vote"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["row"] for row in rows} == {"vote"} and rows[0]["command"].endswith("--quick --only vote")
    assert run([*again, "--json"]) == 0
    (page,) = json.loads(capsys.readouterr().out)["tables"]
    assert page["n_measured"] == page["n_cells"] == 4 and page["quick"]
    assert (tmp_path / "out" / "own-small.jsonl").read_bytes() == before


def test_a_row_that_is_not_measured_is_shown(capsys, tmp_path, monkeypatch):
    """With what was published of it, and why; a command can be typed as it is printed."""
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "neucrowd/table-2", "--show", "--only", "EM", "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "0.857" in out and "workers cannot be distinguished" in out and "Lifted" not in out
    assert run(["reproduce", "baselines/crowd-kit", "--show", "--only", "D&S", "--format", "markdown"]) == 0
    assert "--only 'D&S'`" in capsys.readouterr().out


def test_what_cannot_run_is_refused_before_any_cell(table, tmp_path, capsys):
    """Also where it stands in the second table; nothing is measured then."""
    (tmp_path / "other.toml").write_text(TOML.replace("make_crowd", "make_nothing"))
    fails(capsys, 2, "make_nothing", "reproduce", table, "other.toml", "--quick", "-o", "out")
    (tmp_path / "bad.toml").write_text("validation_truth = true\n" + TOML)
    fails(capsys, 2, "held-out annotations", "reproduce", "bad.toml", "--quick", "-o", "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_data_set_is_refused_before_any_table(table, tmp_path, monkeypatch, capsys):
    """Though the first table needs none."""
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    real = TOML.replace('make = "make_crowd"', 'load = "agg/bluebirds"').replace(
        "arguments = { n_items = 60, n_workers = 6 }", ""
    )
    (tmp_path / "real.toml").write_text(real)
    fails(capsys, 3, "MANYHANDS_DATA is not set", "reproduce", table, "real.toml", "--quick", "-o", "out")
    assert not (tmp_path / "out").exists()


def test_a_run_in_which_all_fails_is_no_success(table, tmp_path, capsys):
    """The reasons are shown, and the code is not 0."""
    (tmp_path / "net.toml").write_text(TOML.replace('"majority-vote"', '"raykar"').replace('"dawid-skene"', '"raykar"'))
    fails(capsys, 2, "Every cell failed", "reproduce", "net.toml", "--quick", "--jobs", "1", "-o", "out")


def test_rows_of_another_commit_are_used_and_stale_rows_are_named(table, tmp_path, capsys):
    """A commit is provenance only; a row of another revision, or of a renamed method, stays in the file, unused."""
    assert run(["reproduce", table, "--quick", "--jobs", "1", "-o", "out", "-q"]) == 0
    path = tmp_path / "out" / "own-small.jsonl"
    rows = [json.loads(line) | {"commit": "1" * 40} for line in path.read_text().splitlines()]
    stale = [
        rows[0] | {"key": "a", "revisions": {"majority-vote": 0}},
        rows[1] | {"key": "b", "method": "dawid-skene-1979"},
        rows[1] | {"key": "c", "parameters": {"max_iter": 3}},
        rows[1] | {"key": "d", "row": "EM"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*rows, *stale]))
    before = path.read_bytes()
    capsys.readouterr()
    assert run(["reproduce", table, "--quick", "-o", "out", "--only", "vote"]) == 0
    message = capsys.readouterr().err
    assert "Commit: 111111111111" in message and path.read_bytes() == before
    for sentence in (
        "Not used: 1 stale row of 'vote': measured with revision 0 of majority-vote, which is 1 now",
        "Not used: 1 stale row of 'D&S': there is no method 'dawid-skene-1979' any more",
        "Not used: 1 stale row of 'D&S': the data set or the parameters have changed",
        "Not used: 1 stale row of 'EM': the table has no such row any more",
    ):
        assert sentence in message
    assert run(["reproduce", table, "--quick", "-o", "out", "--show", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tables"][0]["stale"]) == 4


def test_showing_needs_no_run(table, tmp_path, capsys):
    """And makes no file."""
    assert run(["reproduce", table, "--show", "-o", "out", "--json"]) == 0
    (page,) = json.loads(capsys.readouterr().out)["tables"]
    assert page["n_measured"] == 0 and page["commits"] == [] and not (tmp_path / "out").exists()
    assert {entry["verdict"] for entry in page["entries"]} == {"not measured"}


def test_what_cannot_be_done_is_one_sentence(table, tmp_path, capsys, monkeypatch):
    """A table, a method, a data set, a name, a format that there is not."""
    fails(capsys, 2, "There is no table 'iced/table-99'", "reproduce", "iced/table-99")
    fails(capsys, 2, "Name a table; manyhands reproduce --list", "reproduce")
    fails(capsys, 2, "--format is 'pdf'", "reproduce", table, "--format", "pdf")
    fails(capsys, 2, "no data set and no row called 'x'", "reproduce", table, "--only", "x")
    (tmp_path / "own" / "bad.toml").write_text(TOML.replace("majority-vote", "minority-vote"))
    fails(capsys, 2, "'minority-vote'", "reproduce", "own/bad.toml", "--quick")
    made = 'make = "make_crowd"\narguments = { n_items = 60, n_workers = 6 }'
    (tmp_path / "own" / "real.toml").write_text(TOML.replace(made, 'load = "bluebirds"'))
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    fails(capsys, 3, "MANYHANDS_DATA is not set", "reproduce", "own/real.toml", "--quick")
    fails(capsys, 3, "MANYHANDS_DATA is not set", "leaderboard", "--quick", "--only", "bluebirds")
    fails(capsys, 2, "no data set and no method 'parrots'", "leaderboard", "--only", "parrots")


def test_no_page_is_replaced_unasked(tmp_path, capsys):
    """It is refused before the work."""
    (tmp_path / "board.md").write_text("mine")
    fails(capsys, 2, "Add --force", "leaderboard", "--only", "parrots", "--write", str(tmp_path / "board.md"))
    assert (tmp_path / "board.md").read_text() == "mine"


def test_a_leaderboard_of_one_set(tmp_path, capsys, real_annotations):
    """Page, ranks and JSON."""
    page = tmp_path / "docs" / "board.md"
    wanted = ["leaderboard", "--quick", "--jobs", "1", "-o", str(tmp_path / "out"), "--only", "bluebirds"]
    some = [*wanted, "--only", "kos", "--only", "majority-vote"]
    assert run([*some, "--write", str(page)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and "mean rank" in captured.err
    text = page.read_text()
    assert "`manyhands leaderboard --quick --only bluebirds --only kos --only majority-vote`" in text
    assert "| majority-vote | " in text and "Methods with features" not in text and "| wawa" not in text
    assert run([*some, "--show", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert {s["row"] for s in table["standings"]} == {"kos", "majority-vote"} and table["n_measured"] == 2
