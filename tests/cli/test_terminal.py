"""What reaches a terminal, and streams that are closed, full, or interrupted."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from manyhands._core import progress
from manyhands.cli import printing
from manyhands.cli.app import run
from measuring import TOML

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")

NASTY = ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\u202eevil\u202c", "\u2066x\u2069", "\x08\x08", "\x7f", "a\rb"]
OBEYED = ["\x1b", "\x07", "\x9b", "\u202e", "\u202c", "\u2066", "\u2069", "\x08", "\x7f"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def terminal(monkeypatch):
    """A function that runs a command with standard output on a terminal; what came out there, line ends as written."""

    def shown(*arguments, encoding="utf-8"):
        ours, theirs = pty.openpty()
        try:
            with monkeypatch.context() as patch, open(theirs, "w", encoding=encoding, closefd=False) as stream:
                patch.setattr(sys, "stdout", stream)
                assert run(list(arguments)) == 0
            os.write(theirs, b"\0end")
            found = b""
            while not found.endswith(b"\0end"):
                found += os.read(ours, 65536)
        finally:
            os.close(ours)
            os.close(theirs)
        return found.removesuffix(b"\0end").replace(b"\r\n", b"\n").decode(encoding)

    return shown


@pytest.fixture
def votes():
    """Items, workers and classes with everything that a terminal obeys."""
    rows = [f'"{bad}{k}","{bad}{w}","{bad}"\n' for k, bad in enumerate(NASTY) for w in "ab"]
    Path("votes.csv").write_bytes(("task,worker,label\n" + "".join(rows)).encode())
    return "votes.csv"


@pytest.mark.parametrize("command", ["aggregate", "convert", "agree"])
def test_a_terminal_is_shown_escapes_and_a_program_gets_the_bytes(command, votes, terminal, capfdbinary):
    """Control characters, those of the C1 block, and overrides of the direction of text."""
    printed = terminal(command, votes, "-q")
    assert not [bad for bad in OBEYED if bad in printed] and "\r" not in printed
    assert run([command, votes, "-q"]) == 0
    exact = capfdbinary.readouterr().out.decode()
    assert printed.count("\n") == exact.count("\n")
    if command != "agree":  # which prints no names
        assert "\\x1b[2J" in printed and "\\u202eevil" in printed and "\\x9b31m" in printed and "a\\rb" in printed
        assert all(bad in exact for bad in NASTY)


def test_tables_and_notes_on_standard_error_are_shown_escapes(votes, capsys):
    for arguments in (["inspect"], ["agree", "-o", "out"], ["aggregate", "-o", "labels", "--compare"]):
        assert run([arguments[0], votes, *arguments[1:]]) == 0
        message = capsys.readouterr().err
        assert not [bad for bad in OBEYED if bad in message] and "\\x1b[2J" in message


def test_json_on_a_terminal_stays_json(votes, terminal):
    import json

    printed = terminal("inspect", votes, "--json")
    assert not [bad for bad in OBEYED if bad in printed]
    assert NASTY[1] in json.loads(printed)["labels"]


def test_a_terminal_that_knows_few_letters(terminal):
    """What it cannot show is escaped, and no reason to fail."""
    Path("votes.csv").write_text("task,worker,label\n1,a,\u00e9\n1,b,\u00e9\n", encoding="utf-8")
    assert "\\xe9" in terminal("convert", "votes.csv", "-q", encoding="ascii")


@pytest.mark.parametrize("form", ["markdown", "csv"])
def test_a_table_of_figures_on_a_terminal(form, terminal):
    """Titles, rows and reasons of failures may come from files of the user."""
    nasty = TOML.replace("A small table", r"Small \u001b[31m").replace("Everything is", r"\u202eAll \u009b")
    Path("mine.toml").write_text(nasty.replace('name = "vote', r'name = "\u001b[31mvote'), encoding="utf-8")
    printed = terminal("reproduce", "mine.toml", "--show", "--format", form, "-o", "none")
    assert not [bad for bad in OBEYED if bad in printed]
    assert "\\x1b[31m" in printed


def test_names_are_not_taken_for_markup(capsys):
    """Square brackets in a title or in the name of a column are what they are."""
    table = pl.DataFrame({"[bold]x[/bold]": ["[red]y"], "[/]": [1]})
    printing.show_table(table, "[/nonsense] title\x1b[2J")
    message = capsys.readouterr().err
    assert all(text in message for text in ("[bold]x[/bold]", "[red]y", "[/]", "[/nonsense] title\\x1b[2J"))


def test_progress_shows_names_as_they_are(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    from manyhands._core.progress import report

    with printing.progress_bar(False):
        report(1, 2, "[/red] a\x9btable")
    assert "[/red] a table" in stream.getvalue() and "\x9b" not in stream.getvalue()


class TestClosedStreams:
    """`>&-` and the like: Python then has no stream at all."""

    def command(self, redirection, *arguments):
        line = f'"$@" {redirection}'
        words = ["sh", "-c", line, "sh", sys.executable, "-m", "manyhands", *arguments]
        return subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL)

    @pytest.fixture(autouse=True)
    def few_votes(self):
        Path("votes.csv").write_text("item,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n")

    def test_data_without_standard_output(self):
        """One sentence, and before the export is read."""
        done = self.command(">&-", "aggregate", "missing.csv")
        assert (done.returncode, done.stderr) == (3, b"manyhands: Standard output: it is closed.\n")

    def test_files_without_any_stream(self):
        """Nothing that is printed ends up in one of the files."""
        done = self.command(">&- 2>&- <&-", "convert", "votes.csv", "-o", "out/table.csv")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert Path("out/table.csv").read_text() == "item,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n"

    def test_words_without_standard_error_do_not_go_to_standard_output(self):
        done = self.command("2>&-", "convert", "votes.csv")
        assert done.returncode == 0 and done.stdout == Path("votes.csv").read_bytes()

    def test_an_export_from_a_closed_standard_input(self):
        done = self.command("<&-", "convert", "-")
        assert done.returncode == 3 and done.stderr.startswith(b"manyhands: standard input is empty")

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
    @pytest.mark.parametrize("arguments", [["--help"], ["methods", "--json"]])
    def test_a_full_standard_output(self, arguments):
        done = self.command(">/dev/full", *arguments)
        assert (done.returncode, done.stderr) == (3, b"manyhands: Standard output: No space left on device.\n")


def test_a_fault_of_ours_cannot_move_the_cursor(capsys):
    """A traceback may quote the data."""
    from manyhands.cli import _show_internal_error

    try:
        raise RuntimeError("\x1b[2J")
    except RuntimeError as error:
        _show_internal_error(type(error), error, error.__traceback__)
    message = capsys.readouterr().err
    assert "Traceback" in message and "RuntimeError: \\x1b[2J" in message and "\x1b" not in message


_INTERRUPTS = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def _listen():
    """Undo what tests inherit that a shell runs in the background: interruptions are ignored there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("module", ["numpy", "typer", "polars"])
@pytest.mark.parametrize("script", [False, True], ids=["python -m", "script"])
def test_an_interruption_of_imports_is_one_line(module, script, tmp_path):
    """Whatever is imported when Ctrl-C comes."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / f"{module}.py").write_text(_INTERRUPTS)
    path = os.pathsep.join([str(tmp_path / "first"), *filter(None, [os.environ.get("PYTHONPATH")])])
    # What pip makes of the entry point of a script:
    start = ["-c", "import sys; from manyhands.cli import main; sys.exit(main())"] if script else ["-m", "manyhands"]
    listen = _listen if os.name == "posix" else None
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *start, "inspect", "votes.csv"], capture_output=True, env=environment, preexec_fn=listen
    )
    assert done.returncode == 130
    assert done.stderr == b"manyhands: interrupted; all files that exist are complete\n"


def test_an_interruption_that_is_ignored_stays_ignored(tmp_path):
    """As of a command that a shell started in the background."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "typer.py").write_text(_INTERRUPTS + "raise SystemExit(7)\n")
    path = os.pathsep.join([str(tmp_path / "first"), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from manyhands.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 7


def test_the_entry_point_is_light():
    """Nothing that takes long is imported before interruptions are expected."""
    code = "import sys; import manyhands.cli; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "polars", "typer", "manyhands.annotations"} & set(done.stdout.split())


def test_commands_are_light():
    """`--version`, `--help` of the program and completion wait for none of the libraries that commands need."""
    code = "import sys; import manyhands.cli.app; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"polars", "numpy", "scipy", "sklearn", "torch", "rich", "manyhands.io", "manyhands.trust"}
    assert not heavy & set(done.stdout.split())
