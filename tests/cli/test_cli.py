"""The command line as a person meets it."""

import csv
import json
import subprocess
import sys

import pytest

from manyhands import registry
from manyhands.cli.app import run

VOTES = "task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,b,y\n3,a,x\n3,c,x\n4,b,\n"


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


@pytest.mark.parametrize("method", registry.names())
def test_aggregate_writes_three_files(votes, tmp_path, method):
    """Labels, workers and a summary, for every method."""
    out = tmp_path / "out"
    assert run(["aggregate", str(votes), "-m", method, "-o", str(out)]) == 0
    with (out / "labels.csv").open(newline="") as file:
        rows = {row["item"]: row for row in csv.DictReader(file)}
    assert [rows[item]["label"] for item in "1234"] == ["x", "y", "x", ""]
    assert rows["4"]["flags"] == "unlabelled"
    told = json.loads((out / "summary.json").read_text())
    assert told["schema"] == 1 and told["method"] == method
    assert told["ledger"] == {"rows_read": 8, "kept": 7, "excluded": {"no_label": 1}}
    with (out / "workers.csv").open(newline="") as file:
        assert [row["worker"] for row in csv.DictReader(file)] == ["a", "b", "c"]


def test_the_default_method_needs_no_name(votes, tmp_path):
    """Without -m the default method runs."""
    run(["aggregate", str(votes), "-o", str(tmp_path / "out")])
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["method"] == registry.DEFAULT


def test_data_goes_to_stdout_and_words_to_stderr(votes, capsys):
    """Without -o the labels are printed, and nothing but the labels; --json prints one object."""
    assert run(["aggregate", str(votes)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("item,label,confidence,n_labels,flags,p_x,p_y\n") and len(out.splitlines()) == 5
    assert "8 rows read, 7 kept" in err
    assert run(["aggregate", str(votes), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_items"] == 4


def test_same_seed_same_bytes(votes, tmp_path):
    """Two runs write the same bytes."""
    for name in ("one", "two"):
        run(["aggregate", str(votes), "-o", str(tmp_path / name), "-q"])
    for file in ("labels.csv", "workers.csv", "summary.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["aggregate", "nowhere.csv"], 3, "does not exist"),
        (["aggregate", "{votes}", "-m", "magic"], 2, "There is no method called 'magic'. There are: "),
        (["aggregate", "{votes}", "--item", "clip"], 3, "It has: task, worker, label. Name the right one with --item"),
        (["aggregate"], 2, "Missing argument"),
        (["aggregate", "{votes}", "--bogus"], 2, "bogus"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_mistakes_get_one_sentence_and_a_code(votes, capsys, arguments, code, words):
    """What, where and what to do; no traceback."""
    assert run([argument.format(votes=votes) for argument in arguments]) == code
    err = capsys.readouterr().err
    assert words in err and len(err.strip().splitlines()) == 1


def test_nothing_is_overwritten_without_force(votes, tmp_path, capsys):
    """The second run refuses, and says how to insist."""
    out = str(tmp_path / "out")
    assert run(["aggregate", str(votes), "-o", out, "-q"]) == 0
    assert run(["aggregate", str(votes), "-o", out, "-q"]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["aggregate", str(votes), "-o", out, "-q", "--force"]) == 0


def test_methods_are_listed(capsys):
    """One line per method, and the default is marked."""
    assert run(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    assert next(line for line in lines if "(default)" in line).startswith(registry.DEFAULT)
    assert run(["methods", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["default"] == registry.DEFAULT


def test_control_characters_are_shown_not_obeyed(tmp_path, capsys):
    """A worker's name cannot move the cursor."""
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n1,\x1b[31mred,x\n1,b,x\n")
    assert run(["aggregate", str(path), "-o", str(tmp_path / "out")]) == 0
    assert "\x1b" not in capsys.readouterr().err
    assert "\x1b[31mred" in (tmp_path / "out" / "workers.csv").read_text()


def test_the_installed_command_starts(votes):
    """`python -m`-like start in a fresh process, through the console script's function."""
    code = "import sys; from manyhands.cli import main; sys.argv = ['manyhands', '--version']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("manyhands ")
