"""The questionnaire in the terminal: one item a screen, undo, skip, and an end at any time."""

from __future__ import annotations

import sys

from manyhands.cli.show import echo
from manyhands.io.read.answer_files import NO_ANSWER
from manyhands.io.write.question_table import ANSWER, DRAWN
from manyhands.workflows.asking import Questionnaire

_CLEAR = "\x1b[2J\x1b[H"
_COMMANDS = {"u": "undo", "s": "skip", "?": "cannot be answered", "q": "quit"}
_MAX_CELL = 2000  # characters of a field; a longer one would leave the screen


def fill_in(questionnaire: Questionnaire) -> None:
    """Ask every open question; each answer is saved before the next question is asked.

    A class is answered by its number or its name. A command that is also the name of a class is typed with a colon.

    Parameters
    ----------
    questionnaire : Questionnaire
        The questions.
    """
    history: list[int] = []
    waiting = questionnaire.open_rows
    while waiting:
        row = waiting[0]
        _show(questionnaire, row, len(waiting))
        reply = _read_line()
        command = _command(reply, questionnaire.classes)
        if reply is None or command == "q":
            return
        if command == "u":
            if not history:
                echo("There is nothing to undo.")
                continue
            row = history.pop()
            questionnaire.set(row, "")
            waiting = [row, *(other for other in waiting if other != row)]
        elif command == "s":
            waiting = [*waiting[1:], row] if len(waiting) > 1 else []
        elif (answer := NO_ANSWER if command == "?" else _class_of(reply, questionnaire.classes)) is not None:
            questionnaire.set(row, answer)
            history.append(row)
            waiting = waiting[1:]
        else:
            echo(f"{reply!r} is neither a number, nor a class, nor a command.")


def _show(questionnaire: Questionnaire, row: int, n_open: int) -> None:
    """Show one question; on a terminal it gets an empty screen."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
    table = questionnaire.table
    echo(f"--- {len(table) - n_open} of {len(table)} answered ---")
    hidden = {ANSWER, *DRAWN}
    methods = table.columns[table.columns.index(ANSWER) + 1 :]
    for name in table.columns[: table.columns.index(ANSWER)]:
        value = table[name][row]
        if value is not None and name not in hidden:
            echo(f"{name}: {value[:_MAX_CELL]}")
    said: dict[str, list[str]] = {}
    for name in methods:
        if name not in hidden and table[name][row] is not None:
            said.setdefault(table[name][row], []).append(name)
    for label, names in said.items():
        echo(f"  {label}: {', '.join(names)}")
    echo("")
    for number, label in enumerate(questionnaire.classes, start=1):
        echo(f"  {number}  {label}" if _numbered(questionnaire.classes) else f"  {label}")
    clash = set(questionnaire.classes) & _COMMANDS.keys()
    keys = [f"{':' if key in clash else ''}{key} {what}" for key, what in _COMMANDS.items()]
    echo(f"  {', '.join(keys)}")


def _read_line() -> str | None:
    """Read one line from standard input; None at its end."""
    if sys.stderr is not None:
        sys.stderr.write("> ")
        sys.stderr.flush()
    line = sys.stdin.readline() if sys.stdin is not None else ""
    return line.strip() if line else None


def _command(reply: str | None, classes: tuple[str, ...]) -> str | None:
    """Return the command that was typed, if any."""
    if reply is None or reply in classes:
        return None
    key = reply.removeprefix(":").lower()
    return key if key in _COMMANDS else None


def _class_of(reply: str | None, classes: tuple[str, ...]) -> str | None:
    """Return the class that was typed as its name or number; a name takes precedence."""
    if not reply:
        return None
    if reply in classes:
        return reply
    alike = [label for label in classes if label.casefold() == reply.casefold()]
    if len(alike) == 1:
        return alike[0]
    is_number = _numbered(classes) and reply.isascii() and reply.isdigit() and len(reply) < 9
    return classes[int(reply) - 1] if is_number and 1 <= int(reply) <= len(classes) else None


def _numbered(classes: tuple[str, ...]) -> bool:
    """Whether classes may be typed as numbers: not if some class is itself a number."""
    return not any(label.isdigit() for label in classes)
