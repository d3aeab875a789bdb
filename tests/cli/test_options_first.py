"""Options are checked before any file is read: with a missing file, a bad option is what is reported."""

import os

import pytest

from manyhands.cli.app import app, run

EXPORT = [  # bad options of every command that reads an export
    (["--format", "parchment"], "There is no format called 'parchment'"),
    (["--duplicates", "some"], "duplicates is 'some'"),
    (["--encoding", "klingon"], "There is no encoding called 'klingon'"),
]
SEED = (["--seed", "-1"], "--seed is -1; it must be a whole number at least 0")
MATCHING = (["--rows-in-order", "--feature-ids", "no.txt"], "--rows-in-order matches rows by position")
COMMANDS = {  # command -> (arguments with files that do not exist, [(bad options, part of the sentence)])
    "inspect": (["missing.csv"], EXPORT),
    "aggregate": (
        ["missing.csv"],
        [
            *EXPORT,
            SEED,
            (["--fail-under", "7"], "--fail-under is 7; it must be a share"),
            (["--write", "docx", "-o", "out"], "cannot be written as 'docx'"),
            (["--write", "jsonl"], "--write needs a folder"),
            (["-m", "no-such"], "There is no aggregator called 'no-such'"),
            (["-m", "crowd-layer"], "'crowd-layer' learns from features"),
            (["--seed", "x"], "Invalid value for '--seed'"),
        ],
    ),
    "ask": (
        ["missing.csv"],
        [
            *EXPORT,
            SEED,
            (["--purpose", "fun"], "--purpose is 'fun'"),
            (["-n", "0"], "ask at least one question"),
            (["-o", "questions.docx"], "does not end in .csv"),
        ],
    ),
    "agree": (
        ["missing.csv"],
        [
            *EXPORT,
            SEED,
            (["--level", "cardinal"], "--level is 'cardinal'"),
            (["--order", "a,,b"], "--order is 'a,,b'; it must name the classes from low to high"),
            (["--bootstrap", "-1"], "Invalid value for '--bootstrap'"),
        ],
    ),
    "convert": (["missing.csv"], [*EXPORT, (["-o", "table.docx"], "Tables are written as")]),
    "train": (
        ["missing.csv", "--features", "missing.npz", "-o", "model"],
        [
            *EXPORT,
            SEED,
            MATCHING,
            (["-m", "no-such"], "There is no classifier called 'no-such'"),
            (["-m", "dawid-skene"], "dawid-skene uses labels alone"),
            (["-m", "triplet"], "triplet learns a representation and predicts no labels"),
            (["-m", "two-stage", "--set", "no=1"], "two-stage has no parameter 'no'"),
            (["-m", "two-stage", "--set", "dropout=2"], "`dropout` of two-stage must be"),
            (["-m", "two-stage", "--choose"], "--choose is for several methods"),
        ],
    ),
    "predict": (
        ["missing", "--features", "missing.npz"],
        [MATCHING, (["-o", "table.pkl"], "Tables are written as")],
    ),
    "evaluate": (["missing", "--features", "missing.npz", "--truth", "missing.csv"], [MATCHING]),
    "simulate": ([], [SEED, (["--bad", "wicked"], "wicked"), (["--items", "0", "-o", "out"], "n_items")]),
    "reproduce": (
        ["missing.toml"],
        [
            (["--format", "pdf"], "--format is 'pdf'"),
            (["--seeds", "0"], "Invalid value for '--seeds'"),
            (["--jobs", "0"], "Invalid value for '--jobs'"),
        ],
    ),
    "leaderboard": (
        [],
        [
            (["--only", "parrots"], "no data set and no method 'parrots'"),
            (["--seeds", "0"], "Invalid value for '--seeds'"),
            (["--jobs", "0"], "Invalid value for '--jobs'"),
        ],
    ),
    "demo": (["-o", "out"], [SEED]),
    "alt-test": (
        ["missing.csv"],
        [
            *EXPORT,
            (["--level", "cardinal"], "--level is 'cardinal'"),
            (["--machines", "a", "--kinds", "b"], "give only one of them"),
        ],
    ),
    "report": (
        ["missing.csv", "-o", "page.html"],
        [*EXPORT, (["-m", "no-such"], "There is no aggregator called 'no-such'")],
    ),
    "doctor": ([], [(["--yaml"], "No such option: --yaml")]),
    "methods": ([], [(["--yaml"], "No such option: --yaml")]),
}


def test_every_command_is_here():
    """A new command comes with its bad options."""
    assert set(COMMANDS) == {command.name for command in app.registered_commands}


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [(command, *bad) for command, (_, all_bad) in COMMANDS.items() for bad in all_bad],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value)[:20],
)
def test_a_bad_option_is_reported_before_a_missing_file(command, options, sentence, tmp_path, monkeypatch, capsys):
    """Exit code 2, one sentence about the option, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    assert run([command, *COMMANDS[command][0], *options]) == 2
    message = capsys.readouterr().err.strip().splitlines()
    assert len(message) == 1 and sentence in message[0]
    assert os.listdir() == []
