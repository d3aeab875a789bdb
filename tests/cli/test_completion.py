"""Completion scripts: bash runs its own; those of zsh and fish have every command and option."""

import shutil
import subprocess

import pytest

from manyhands.cli.app import app, run
from manyhands.cli.completion_scripts import SCRIPTS, CompletedCommand, CompletedOption

ASK = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _manyhands; echo "${{COMPREPLY[*]}}"
"""


@pytest.fixture
def script(capsys, tmp_path):
    """Return the script of a shell as text, and keep it in a file."""

    def printed(shell):
        assert run(["completion", shell]) == 0
        text = capsys.readouterr().out
        (tmp_path / shell).write_text(text)
        return text

    return printed


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("manyhands ag", "aggregate agree"),
        ("manyhands aggregate x.csv -m dawid", "dawid-skene"),
        ("manyhands aggregate --merge", "--merge-spellings"),
        ("manyhands agree --level ord", "ordinal"),
        ("manyhands train x.csv --device c", "cpu cuda"),
        ("manyhands completion z", "zsh"),
        ("manyhands aggregate rat", ""),
    ],
)
def test_bash_completes(script, tmp_path, words, found):
    script("bash")
    asked = ASK.format(script=tmp_path / "bash", words=words)
    answer = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True)
    assert (answer.stdout.strip(), answer.stderr) == (found, "")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_command_and_the_values_of_options_are_there(script, shell):
    text = script(shell)
    assert all(command.name in text for command in app.registered_commands)
    for name in ("config", "merge-spellings", "question"):
        assert (f"-l {name}" if shell == "fish" else f"--{name}") in text
    assert "dawid-skene" in text and "label-studio-tasks" in text


def test_special_characters_are_escaped():
    option = CompletedOption(("--of",), "the crowd's [set]: a $HOME", True, ())
    commands = [CompletedCommand("show", "the crowd's set: all", (option,), ())]
    assert "'show:the crowd'\\''s set\\: all'" in SCRIPTS["zsh"](commands)
    assert "'*--of[the crowd'\\''s \\[set\\]\\: a $HOME]:value:_files'" in SCRIPTS["zsh"](commands)
    assert "-d 'the crowd'\\''s [set]: a $HOME'" in SCRIPTS["fish"](commands)


def test_an_unknown_shell(capsys):
    assert run(["completion", "fsh"]) == 2
    sentence = "There is no completion for 'fsh'; there is for bash, zsh, fish. Did you mean 'fish'?"
    assert capsys.readouterr().err == f"manyhands: {sentence}\n"
