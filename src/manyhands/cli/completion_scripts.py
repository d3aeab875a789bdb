"""Scripts for completion in bash, zsh and fish, written from a list of commands and options.

The scripts contain all names: a shell that had to start Python at each press of the key would wait for its imports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

_PROGRAM = "manyhands"


class CompletedOption(NamedTuple):
    """An option.

    Attributes
    ----------
    names : tuple of str
        Its names, hyphens included.
    help : str
        One line.
    takes_value : bool
        False for a flag.
    values : tuple of str
        The values it may have; empty where these are files, columns, numbers, ...
    """

    names: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...]


class CompletedCommand(NamedTuple):
    """A command.

    Attributes
    ----------
    name : str
        Its name.
    help : str
        One line.
    options : tuple of CompletedOption
        Its options.
    values : tuple of str
        Values of its argument; empty where these are files.
    """

    name: str
    help: str
    options: tuple[CompletedOption, ...]
    values: tuple[str, ...]


def bash_script(commands: Sequence[CompletedCommand]) -> str:
    """Return the script for bash.

    Parameters
    ----------
    commands : sequence of CompletedCommand
        All commands.

    Returns
    -------
    str
        Defines a function and registers it; files are completed where the function finds nothing.
    """
    valued = [
        _bash_case("|".join(f'"{command.name} {name}"' for name in option.names), option.values)
        for command in commands
        for option in command.options
        if option.values
    ]
    names = [_bash_case(c.name, [name for option in c.options for name in option.names]) for c in commands]
    arguments = [_bash_case(command.name, command.values) for command in commands if command.values]
    every = " ".join(command.name for command in commands)
    lines = [
        f"# Completion of {_PROGRAM} in bash.",
        f"_{_PROGRAM}() {{",
        '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        words="{every} --help --version"',
        "    fi",
        '    case "${COMP_WORDS[1]} $previous" in',
        *valued,
        "    esac",
        '    if [ -z "$words" ] && [ "${current:0:1}" = "-" ]; then',
        '        case "${COMP_WORDS[1]}" in',
        *names,
        "        esac",
        '    elif [ -z "$words" ]; then',
        '        case "${COMP_WORDS[1]}" in',
        *arguments,
        "        esac",
        "    fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        f"complete -o default -F _{_PROGRAM} {_PROGRAM}",
    ]
    return "\n".join(lines) + "\n"


def zsh_script(commands: Sequence[CompletedCommand]) -> str:
    """Return the script for zsh.

    Parameters
    ----------
    commands : sequence of CompletedCommand
        All commands.

    Returns
    -------
    str
        Works as a file of ``fpath`` and with ``eval``.
    """
    lines = [f"#compdef {_PROGRAM}", f"_{_PROGRAM}() {{", "    local -a commands", "    commands=("]
    lines += ["        " + _quoted(f"{command.name}:{_without(command.help, ':')}") for command in commands]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe -t commands command commands",
        "        return",
    ]
    lines += ["    fi", "    local name=${words[2]}", "    shift words", "    (( CURRENT-- ))", "    case $name in"]
    for command in commands:
        argument = f"*:value:({' '.join(command.values)})" if command.values else "*:file:_files"
        shown = [_zsh_option(option) for option in command.options]
        lines += [f"        {command.name})", "            _arguments \\"]
        lines += [f"                {entry} \\" for entry in shown] + [
            f"                {_quoted(argument)}",
            "            ;;",
        ]
    lines += ["    esac", "}", f'if [ "${{funcstack[1]}}" = "_{_PROGRAM}" ]; then', f'    _{_PROGRAM} "$@"', "else"]
    lines += [f"    compdef _{_PROGRAM} {_PROGRAM}", "fi"]
    return "\n".join(lines) + "\n"


def fish_script(commands: Sequence[CompletedCommand]) -> str:
    """Return the script for fish.

    Parameters
    ----------
    commands : sequence of CompletedCommand
        All commands.

    Returns
    -------
    str
        One line per command and option.
    """
    start = f"complete -c {_PROGRAM}"
    lines = [f"# Completion of {_PROGRAM} in fish."]
    for command in commands:
        lines.append(f"{start} -n __fish_use_subcommand -f -a {command.name} -d {_quoted(command.help)}")
        within = f"{start} -n '__fish_seen_subcommand_from {command.name}'"
        if command.values:
            lines.append(f"{within} -f -a {_quoted(' '.join(command.values))}")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = (
                f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -r" if option.takes_value else ""
            )
            lines.append(f"{within} {names}{value} -d {_quoted(option.help)}")
    return "\n".join(lines) + "\n"


SCRIPTS: dict[str, Callable[[Sequence[CompletedCommand]], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}


def _bash_case(pattern: str, words: Sequence[str]) -> str:
    """Return a branch of a case statement that sets the words to choose from."""
    return f'            {pattern}) words="{" ".join(words)}" ;;'


def _zsh_option(option: CompletedOption) -> str:
    """Return an option as an argument of zsh's ``_arguments``; every option may be repeated."""
    value = f":value:({' '.join(option.values)})" if option.values else ":value:_files" if option.takes_value else ""
    return " ".join(_quoted(f"*{name}[{_without(option.help, '[]:')}]{value}") for name in option.names)


def _quoted(text: str) -> str:
    """Return text in single quotes, for any of the shells."""
    return "'" + text.replace("'", "'\\''") + "'"


def _without(text: str, characters: str) -> str:
    """Return text with some characters escaped by backslashes."""
    return "".join(f"\\{letter}" if letter in characters else letter for letter in text)
