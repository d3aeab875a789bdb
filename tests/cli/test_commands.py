"""`agree`, `convert`, `simulate`, and what all commands share."""

import csv
import json
from contextlib import suppress
from pathlib import Path

import pytest
from typer.main import get_command

from manyhands.cli.app import app, run
from manyhands.cli.printing import OPTIONS, in_options

SAMPLES = Path(__file__).parents[1] / "samples"
COMMANDS = [command.name for command in app.registered_commands]


def test_all_documented_commands_exist():
    """What the documents promise is there."""
    of_labels = {"inspect", "aggregate", "report", "ask", "agree", "convert"}
    of_features = {"train", "predict", "evaluate"}
    others = {"methods", "simulate", "demo", "doctor", "alt-test", "reproduce", "leaderboard"}
    assert set(COMMANDS) == of_labels | of_features | others


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_examples(command, capsys):
    """A new user sees what to type before what there is to choose."""
    assert run([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"manyhands {command}" in shown and shown.index("Examples:") < shown.index(" Output ")
    assert "\\b" not in shown


def test_parameters_in_sentences_become_options_that_exist():
    """Sentences of the library name parameters; each has an option of some command, or a variable."""
    known = {name for command in get_command(app).commands.values() for one in command.params for name in one.opts}
    assert {option.split()[0] for option in OPTIONS.values()} <= known | {"MANYHANDS_CACHE"}
    told = in_options('`random_state` is -1. Give `item=`, `missing=["?", "not sure"]` or `rows_in_order=True`, `x=1`.')
    assert told == "--seed is -1. Give --item COLUMN, --missing '?' --missing 'not sure' or --rows-in-order, `x=1`."


def test_help_has_groups(capsys, monkeypatch):
    """In this order, and within the width of the terminal."""
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run(["aggregate", "--help"]) == 0
        shown = capsys.readouterr().out
        groups = [shown.index(f" {name} ─") for name in ("Input", "Cleaning", "Method", "Trust", "Output", "Scale")]
        assert groups == sorted(groups) and max(map(len, shown.splitlines())) <= width
        assert "label-studio-tasks" in shown and "{" not in shown.replace("{FILE}", "") and "<bool>" not in shown


def test_completion_of_options_and_methods(monkeypatch, capsys):
    """By typer, without the lists of the help."""
    monkeypatch.setenv("_MANYHANDS_COMPLETE", "complete_bash")
    for words, at, found in (
        ("manyhands aggregate x.csv -m dawid", 4, "dawid-skene"),
        ("manyhands ag", 1, "aggregate"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(at))
        with suppress(SystemExit):
            run(["x"])
        assert found in capsys.readouterr().out.split()


def test_agreement_goes_to_stdout(tmp_path, capsys):
    """Three figures with intervals; files for classes, pairs and items; JSON has the same."""
    path = tmp_path / "stars.csv"
    path.write_text(
        "item,worker,label\n" + "".join(f"{i},{w},{(i + (w == 'b' and i == 3)) % 5}\n" for i in range(9) for w in "abc")
    )
    assert run(["agree", str(path), "--level", "interval", "-q"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["measure"] for row in rows][:2] == ["percent agreement", "Fleiss' kappa"]
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)
    assert run(["agree", str(path), "-o", str(tmp_path / "out"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["pairs"]) == 3 and len(result["classes"]) == 5
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"agreement.csv", "agreement.json", "classes.csv", "items.csv", "manifest.json", "pairs.csv"}


def test_agreement_on_an_order_that_nobody_knows(capsys):
    """Text has no order of its own."""
    assert run(["agree", str(SAMPLES / "long" / "triples.csv"), "--level", "ordinal"]) in (2, 3)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["label_studio/export.json", "mturk/batch_results.csv", "prodigy/choice.jsonl"])
def test_any_export_becomes_a_plain_table(name, tmp_path, capsys):
    """What counts in the export is what the table holds."""
    out = tmp_path / "ratings.csv"
    question = ["--question", "sentiment"] if name.startswith("label_studio") else []
    assert run(["convert", str(SAMPLES / name), *question, "-o", str(out), "-q"]) == 0
    assert run(["inspect", str(SAMPLES / name), *question, "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert run(["inspect", str(out), "--json"]) == 0
    after = json.loads(capsys.readouterr().out)
    for figure in ("n_items", "n_annotations", "labels", "n_unlabelled"):
        assert before[figure] == after[figure]
    assert run(["convert", str(out), "-o", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["convert", str(out), "-o", str(tmp_path / "ratings.docx")]) == 2


def test_a_simulated_crowd_comes_with_its_truth(tmp_path, capsys):
    """The same seed gives the same bytes; the truth is for every item."""
    for name in ("one", "two"):
        arguments = ["simulate", "-o", str(tmp_path / name), "--items", "50", "--classes", "3", "--bad-share", "0.2"]
        assert run(arguments) == 0
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert files["truth.csv"].count(b"\n") == 51 and files["planted_workers.csv"].count(b"true") == 8
    assert run(["simulate", "--bad", "wicked"]) == 2
    assert "wicked" in capsys.readouterr().err


def test_tables_of_pairs_can_be_pseudonymous_and_safe(tmp_path, capsys):
    """Whatever a command writes."""
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i},{w},=x\n" for i in range(6) for w in ("a@x.org", "b@x.org")))
    flags = ["--worker-names", "pseudonyms", "--spreadsheet-safe"]
    assert run(["agree", str(path), "-o", str(tmp_path / "out"), *flags]) == 0
    assert run(["convert", str(path), "-o", str(tmp_path / "out" / "plain.csv"), *flags]) == 0
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    assert b"x.org" not in written and (tmp_path / "out" / "manyhands.key").exists() and b"'=x" in written
    assert "x.org" not in capsys.readouterr().err


def test_ordinal_classes_in_words(tmp_path, capsys):
    """Text has an order once it is given."""
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n1,a,low\n1,b,mid\n2,a,high\n2,b,high\n3,a,low\n3,b,low\n")
    assert run(["agree", str(path), "--level", "ordinal", "--order", "low,mid,high", "-q"]) == 0
    assert "Krippendorff's alpha (ordinal)" in capsys.readouterr().out
    assert run(["agree", str(path), "--order", "low,mid,high", "-q"]) == 0  # an order means ordinal classes
    assert "Krippendorff's alpha (ordinal)" in capsys.readouterr().out
    assert run(["agree", str(path), "--level", "cardinal"]) == 2


def test_every_command_prints_json(tmp_path, capsys):
    """One object, whatever the command."""
    out = str(tmp_path / "crowd")
    assert run(["simulate", "-o", out, "--items", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_items"] == 20
    assert run(["convert", f"{out}/ratings.csv", "-o", f"{out}/wide.jsonl", "--wide", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["kept"] == 100
    assert run(["demo", "-o", str(tmp_path / "demo"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"][0]["method"]


def test_no_arguments_show_the_help(capsys):
    """Whoever types the name alone sees what there is."""
    assert run([]) == 0
    assert "Examples:" in capsys.readouterr().out
