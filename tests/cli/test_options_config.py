"""--config FILE: options from a TOML file; the command line takes precedence, and the summary records what was used."""

import json

import pytest

from manyhands.cli.app import app, run


@pytest.fixture
def config(job):
    """Write the file job.toml beside ratings.csv."""

    def write(text, name="job.toml"):
        (job / name).write_text(text)
        return name

    return write


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_options_come_from_the_file_and_are_recorded(config, job, capsys):
    name = config(
        'seed = 3\n[aggregate]\nmethod = "majority-vote"\nwrite = "jsonl"\nout = "out"\nspreadsheet_safe = true\n'
    )
    assert run(["aggregate", "ratings.csv", "--config", name]) == 0
    found = summary(job / "out")
    assert found["method"] == "majority-vote" and (job / "out" / "labels.jsonl").exists()
    options = {"method": "majority-vote", "write": ["jsonl"], "out": "out", "seed": 3, "spreadsheet-safe": True}
    assert found["config"] == {"file": "job.toml", "options": options}
    assert "Options from job.toml: method = majority-vote" in capsys.readouterr().err


def test_the_command_line_takes_precedence_also_over_lists(config, job):
    name = config('[aggregate]\nmethod = "majority-vote"\nwrite = ["jsonl"]\nseed = 1\n')
    arguments = ["-m", "wawa", "--write", "parquet", "-o", "out"]
    assert run(["aggregate", "ratings.csv", "--config", name, *arguments]) == 0
    found = summary(job / "out")
    assert found["method"] == "wawa" and found["config"]["options"] == {"seed": 1}
    assert not (job / "out" / "labels.jsonl").exists() and (job / "out" / "labels.parquet").exists()


def test_the_table_of_the_command_takes_precedence_over_keys_outside(config, job):
    name = config('method = "majority-vote"\n[aggregate]\nmethod = "wawa"\n[train]\nmethod = ["two-stage"]\n')
    assert run(["aggregate", "ratings.csv", "--config", name, "-o", "out"]) == 0
    assert summary(job / "out")["method"] == "wawa"


def test_a_required_option_may_come_from_the_file(config, job):
    name = config('[predict]\nfeatures = "X.npz"\n[train]\nfeatures = "X.npz"\nmethod = "two-stage"\nout = "model"\n')
    assert run(["train", "ratings.csv", "--config", name, "-q"]) == 0
    assert run(["predict", "model", "--config", name, "-o", "p.csv"]) == 0 and (job / "p.csv").exists()


def test_options_of_other_commands_are_named(config, capsys):
    name = config('level = "ordinal"\nmethod = "majority-vote"\n')
    assert run(["aggregate", "ratings.csv", "--config", name]) == 0
    assert "note: job.toml: level: not an option of aggregate, so not used here." in capsys.readouterr().err


def test_without_a_file_nothing_is_recorded(job):
    assert run(["aggregate", "ratings.csv", "-o", "out"]) == 0
    assert "config" not in summary(job / "out")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sede = 3", "job.toml: 'sede' is not an option of any command. Did you mean 'seed'?"),
        ("[agregate]\nseed = 1", "job.toml has a table [agregate], which is not a command. Did you mean 'aggregate'?"),
        ("[aggregate]\nlevel = 'x'", "job.toml: 'level' is not an option of aggregate."),
        ("[aggregate]\nmarge-spellings = true", "Did you mean 'merge-spellings'?"),
        ("seed = 'x'", "job.toml: seed is 'x': Invalid value for '--seed'"),
        ("quiet = 'yes'", "job.toml: quiet is 'yes'; it must be true or false."),
        ("question = true", "job.toml: question is True; it must be a text or a number."),
        ("seed = [1]", "job.toml: seed is [1]; it must be a text or a number."),
        ("missing = [['a']]", "it must be a list of texts or numbers."),
        ("seed = x", "job.toml is not TOML: Invalid value (at line 1, column 8)."),
        ("seed = " + "1" * 5000, "job.toml has a number with too many digits. Write fewer."),
        ("seed = 0x" + "f" * 5000, "job.toml has a number with too many digits. Write fewer."),
        ("x = " + "[" * 2000 + "]" * 2000, "job.toml is nested too deep."),
        ("x = " + "{a=" * 2000 + "1" + "}" * 2000, "job.toml is nested too deep."),
        ("[" + ".".join("a" * 5000) + "]", "job.toml is nested too deep."),
        ("seed = '" + "x" * 9999 + "'", f"job.toml: seed is '{'x' * 99}...: Invalid value for '--seed'"),
        ("config = 'other.toml'", "'config' is not an option of any command."),
    ],
)
def test_bad_files_get_one_sentence(config, capsys, text, sentence):
    assert run(["aggregate", "missing.csv", "--config", config(text)]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and sentence in told[0]


def test_a_large_file_is_refused_before_it_is_read(config, capsys):
    """A sparse file of five gigabytes takes no space on the disk."""
    name = config("seed = 1")
    with open(name, "r+b") as file:
        file.truncate(5 << 30)
    assert run(["aggregate", "ratings.csv", "--config", name]) == 5
    assert "job.toml has 5.4 GB; at most 1.0 MB are read." in capsys.readouterr().err


def test_a_file_that_does_not_exist(job, capsys):
    assert run(["aggregate", "ratings.csv", "--config", "no.toml"]) == 3
    assert capsys.readouterr().err == "manyhands: no.toml: No such file or directory.\n"


def test_every_command_has_the_option(capsys):
    for command in app.registered_commands:
        assert run([command.name, "--help"]) == 0
        assert "--config" in capsys.readouterr().out, command.name
