"""`manyhands completion`: a script with which a shell completes commands, options and their values."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.cli.completion_scripts import SCRIPTS, CompletedCommand, CompletedOption
from manyhands.cli.printing import print_data
from manyhands.exceptions import ParameterError
from manyhands.spelling import did_you_mean

_Shell = Annotated[str, typer.Argument(metavar="SHELL", help=f"The shell: {', '.join(SCRIPTS)}.")]


def completion(shell: _Shell, ctx: typer.Context) -> None:
    r"""Print a script that completes commands, options and their values in a shell.

    It contains all names, so that completion is fast; print it again after an update. A new shell uses it.

    \b
    Examples:
      manyhands completion bash > ~/.local/share/bash-completion/completions/manyhands
      manyhands completion zsh > "${fpath[1]}/_manyhands"
      manyhands completion fish > ~/.config/fish/completions/manyhands.fish
    """
    if shell not in SCRIPTS:
        hint = did_you_mean(shell, SCRIPTS)
        raise ParameterError(f"There is no completion for {shell!r}; there is for {', '.join(SCRIPTS)}.{hint}")
    group: Any = ctx.parent.command if ctx.parent is not None else None
    commands = [_describe(name, command) for name, command in group.commands.items()]
    print_data(SCRIPTS[shell](commands))


def _describe(name: str, command: Any) -> CompletedCommand:
    """Return what a shell needs to know of a command."""
    options = [
        CompletedOption(tuple(param.opts), _first_sentence(param.help or ""), not param.is_flag, _values(name, param))
        for param in command.params
        if param.param_type_name == "option"
    ]
    options.append(CompletedOption(("--help",), "Show this message and exit.", False, ()))
    values = tuple(SCRIPTS) if name == "completion" else ()
    return CompletedCommand(name, _first_sentence(command.help or ""), tuple(options), values)


def _values(command: str, param: Any) -> tuple[str, ...]:
    """Return the values of an option that takes one of a few, otherwise nothing."""
    from manyhands.io.formats import NAMES
    from manyhands.io.read.row_filtering import DUPLICATES
    from manyhands.io.write.result_files import KINDS
    from manyhands.workflows.agreement_report import LEVELS
    from manyhands.workflows.routes import SHARDS

    kinds = {"aggregate": "aggregator", "train": "classifier"}
    known = {
        "format": sorted(NAMES) if command != "reproduce" else (),
        "duplicates": DUPLICATES,
        "rare_classes": ("drop", "keep", "merge:", "error"),
        "write": KINDS if command == "aggregate" else (),
        "level": LEVELS,
        "shards": SHARDS,
        "device": ("auto", "cpu", "cuda", "mps"),
        "method": registry.names(kinds[command]) if command in kinds else (),
    }
    return tuple(known.get(param.name, ()))


def _first_sentence(text: str) -> str:
    """Return the first sentence of a help text, on one line."""
    line = " ".join(text.split("\n\n")[0].split())
    end = line.find(". ")
    return (line if end < 0 else line[:end]).rstrip(".")
