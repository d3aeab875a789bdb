"""The command line as a person meets it."""

import csv
import json
import os
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


@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_aggregate_writes_three_files(votes, tmp_path, method):
    """Labels, workers and a summary, for every method."""
    out = tmp_path / "out"
    assert run(["aggregate", str(votes), "-m", method, "-o", str(out)]) == 0
    with (out / "labels.csv").open(newline="") as file:
        rows = {row["item"]: row for row in csv.DictReader(file)}
    assert [rows[item]["label"] for item in "1234"] == ["x", "y", "x", ""]
    assert rows["4"]["alerts"] == "unlabelled"
    result = json.loads((out / "summary.json").read_text())
    assert result["schema"] == 1 and result["method"] == method
    assert result["ledger"] == {"rows_read": 8, "kept": 7, "excluded": {"no_label": 1}}
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
    assert out.startswith("item,label,confidence,n_labels,alerts,p_x,p_y\n") and len(out.splitlines()) == 5
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
        (["aggregate", "{votes}", "-m", "magic"], 2, "There is no aggregator called 'magic'. Did you mean 'mace'?"),
        (["aggregate", "{votes}", "--metod", "wawa"], 2, "There is no option --metod. Did you mean '--method'? Try"),
        (["aggregate", "{votes}", "--format", "lng"], 2, "There is no format called 'lng'. Did you mean 'long'?"),
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
    """The second run refuses, and names the option."""
    out = str(tmp_path / "out")
    assert run(["aggregate", str(votes), "-o", out, "-q"]) == 0
    assert run(["aggregate", str(votes), "-o", out, "-q"]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["aggregate", str(votes), "-o", out, "-q", "--force"]) == 0


def test_methods_are_listed(capsys):
    """One line per method with its kind, and the default is marked."""
    assert run(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    every = ("aggregator", "classifier", "representation")
    kinds = {name: "+".join(kind for kind in every if name in registry.names(kind)) for name in registry.names()}
    assert kinds["neucrowd"] == "classifier+representation"
    assert [line.split()[:2] for line in lines] == [[name, kinds[name]] for name in registry.names()]
    assert next(line for line in lines if "(default)" in line).startswith(registry.DEFAULT)
    assert run(["methods", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["default"] == registry.DEFAULT and result["kinds"] == kinds


def test_control_characters_are_shown_not_obeyed(tmp_path, capsys):
    """A worker's name cannot move the cursor."""
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n1,\x1b[31mred,x\n1,b,x\n")
    assert run(["aggregate", str(path), "-o", str(tmp_path / "out")]) == 0
    assert "\x1b" not in capsys.readouterr().err
    assert "\x1b[31mred" in (tmp_path / "out" / "workers.csv").read_text()


def test_errors_and_notes_cannot_move_the_cursor(tmp_path, capsys):
    """Neither a file's name nor what stands in it reaches the terminal as a command."""
    path = tmp_path / "vo\x1b[31mtes.csv"
    path.write_text("t\x1b[2Jask,worker,label\n1,a,x\n")
    assert run(["aggregate", str(path)]) == 3
    assert run(["aggregate", str(path), "-m", "\x1b[31m"]) == 2
    assert run(["\x1b[31mfly"]) == 2
    path.write_text("task,worker,label\n\x1b[1m\u00e9,a,x\n\x1b[1me\u0301,a,x\n1,a,x\n1,b,x\n")
    assert run(["aggregate", str(path), "-q", "-o", str(tmp_path / "out")]) == 0
    err = capsys.readouterr().err
    assert "note: look_alike_ids" in err and "\x1b" not in err
    assert "look_alike_ids" in json.loads((tmp_path / "out" / "summary.json").read_text())["notes"]


HEADER = "task,worker,label\n"
EDGES = {  # the tables on which other tools crash, and whether there is anything to infer
    "empty table": (HEADER, False),
    "one row": (HEADER + "1,a,x\n", True),
    "single class": (HEADER + "".join(f"{i},{w},x\n" for i in range(5) for w in "abc"), True),
    "one worker": (HEADER + "".join(f"{i},a,{'xy'[i % 2]}\n" for i in range(6)), True),
    "one label per item": (HEADER + "".join(f"{i},{'abc'[i % 3]},{'xy'[i % 2]}\n" for i in range(6)), True),
    "duplicate pair": (HEADER + "1,a,x\n1,a,y\n1,b,x\n2,a,y\n2,b,y\n", True),
    "20 repeats by one worker": (HEADER + "1,spam,y\n" * 20 + "1,a,x\n1,b,x\n2,a,y\n2,b,y\n", True),
    "blank labels": (HEADER + "1,a,x\n1,b,\n2,a,y\n2,b, \n3,a,\n\n", True),
    "blank labels only": (HEADER + "1,a,\n1,b,\n", False),
    "three classes": (HEADER + "1,a,x\n1,b,x\n2,a,y\n2,b,y\n3,a,z\n3,b,z\n", True),
}


@pytest.mark.parametrize("method", registry.names("aggregator"))
@pytest.mark.parametrize("edge", EDGES)
def test_edge_tables_end_in_a_result_or_a_sentence(tmp_path, capsys, edge, method):
    """No table, however thin, ends in a traceback; a refusal is one sentence, and nothing is written."""
    text, usable = EDGES[edge]
    path, out = tmp_path / "votes.csv", tmp_path / "out"
    path.write_text(text)
    code = run(["aggregate", str(path), "-m", method, "-o", str(out), "--json"])
    printed, err = capsys.readouterr()
    if not usable or (method in ("kos", "ordinal-dawid-skene") and edge == "three classes"):
        assert code == 3 and not out.exists() and json.loads(printed)["error"]["code"] == 3
        assert len(err.splitlines()) == 1 and err.startswith("manyhands: ") and err.endswith(".\n")
        return
    assert code == 0
    result = json.loads(printed, parse_constant=pytest.fail)  # no NaN, no Infinity
    assert result == json.loads((out / "summary.json").read_text())
    assert result["ledger"]["rows_read"] == result["ledger"]["kept"] + sum(result["ledger"]["excluded"].values())
    with (out / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == result["n_items"] and all(0 <= float(row["confidence"] or 0) <= 1 for row in rows)
    if edge == "20 repeats by one worker":
        assert rows[0]["label"] == "x"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"task,worker,label\n",
        b"\0" * 100,
        b"task,worker,label,label\n1,a,x,y\n",
        b"task,worker,label,label,label_duplicated_0\n1,a,x,y,z\n",
        b"x" * 10_000,
        b",".join(b"c%d" % i for i in range(20_000)) + b"\n",
    ],
    ids=["empty", "header", "nul", "twice", "thrice", "long", "wide"],
)
def test_what_is_no_table_of_labels_gets_one_sentence(tmp_path, capsys, content):
    """Exit code 3, one line, nothing written."""
    path, out = tmp_path / "votes.csv", tmp_path / "out"
    path.write_bytes(content)
    assert run(["aggregate", str(path), "-o", str(out)]) == 3
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1 and len(err) < 600 and not out.exists()


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="file names are Unicode there")
def test_a_file_name_that_is_no_text(tmp_path, capsys):
    """A name from another age is read, and shown as what it is."""
    path = tmp_path / os.fsdecode(b"vot\xe9s.csv")
    path.write_text(VOTES)
    assert run(["aggregate", str(path), "-o", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [path.name]
    assert json.loads((tmp_path / "out" / "summary.json").read_bytes())["files"] == [path.name]
    assert run(["aggregate", str(path), "--item", "clip"]) == 3
    assert "vot\\udce9s.csv" in capsys.readouterr().err


def test_help_names_the_formats(capsys):
    """All formats are listed."""
    assert run(["aggregate", "--help"]) == 0
    assert "label-studio" in capsys.readouterr().out


def test_the_installed_command_starts(votes):
    """`python -m`-like start in a fresh process, through the console script's function."""
    code = "import sys; from manyhands.cli import main; sys.argv = ['manyhands', '--version']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("manyhands ")
